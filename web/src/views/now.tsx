// What happens now: the stream, its rates, how long pods wait, how long the scheduler's queues are.
import { useMemo, useRef, useState } from "preact/hooks";
import type { CostCourse } from "../model/costs";
import { clock, count, dateAndClock } from "../model/format";
import { type Happening, type What, whats } from "../model/happenings";
import { type Metrics, parseMetrics, quantile, sum } from "../model/metrics";
import { Search } from "../model/search";
import { getText } from "../net/api";
import { useApp, useChanges, useEvery } from "./hooks";
import { NodeLink, PodLink } from "./lists";
import { markColours } from "./raster";
import { type Column, Table } from "./table";

const kSeconds = 120;

const columns: Column<Happening>[] = [
  { title: "Time", grow: 0.7, cell: (one) => <time title={dateAndClock(one.at)}>{clock(one.at)}</time>, sort: (one) => one.at },
  {
    title: "What",
    grow: 0.9,
    cell: (one) => (
      <>
        <span class="swatch" style={{ background: markColours[one.what] }} aria-hidden="true" /> {one.what}
      </>
    ),
    sort: (one) => one.what,
  },
  { title: "Pod", grow: 2, rank: 1, cell: (one) => (one.pod ? <PodLink pod={one.pod} /> : ""), sort: (one) => one.pod ?? "" },
  { title: "Node", grow: 1.4, rank: 2, cell: (one) => (one.node ? <NodeLink name={one.node} /> : ""), sort: (one) => one.node ?? "" },
  { title: "Told", grow: 3, rank: 3, cell: (one) => <span title={one.text}>{one.text}</span> },
];

export function NowView() {
  const { source, search, about, live } = useApp();
  const version = useChanges(source, 500);
  const [hidden, setHidden] = useState<ReadonlySet<What>>(new Set<What>(["gone"]));
  const parsed = useMemo(() => new Search(search), [search]);
  const log = source.cluster.log;
  const rows = useMemo(() => {
    const out: Happening[] = [];
    for (let i = log.entries.length - 1; i >= 0; --i) {
      const one = log.entries[i] as Happening;
      if (hidden.has(one.what) || !isFound(one, parsed)) continue;
      out.push(one);
    }
    return out;
  }, [source, version, hidden, parsed]);
  const toggle = (what: What) => {
    const next = new Set(hidden);
    if (!next.delete(what)) next.add(what);
    setHidden(next);
  };
  const now = source.now();
  return (
    <section class="list-page" aria-labelledby="now-title">
      <h1 id="now-title">
        Now <span class="quiet">{source === live ? "and the last hour" : "in the recording so far"}</span>
      </h1>
      <div class="figures">
        {whats
          .filter((what) => what !== "gone")
          .map((what) => (
            <button type="button" class="figure" aria-pressed={!hidden.has(what)} onClick={() => toggle(what)} title={`Show or hide: ${what}`}>
              <span>
                <span class="swatch" style={{ background: markColours[what] }} aria-hidden="true" /> {what}
              </span>
              <strong>{count(log.counts.get(what) ?? 0)}</strong>
              <Spark values={log.rate(what, now, kSeconds)} colour={markColours[what]} />
            </button>
          ))}
      </div>
      <Waits waits={log.waits} />
      <CostTable course={source.cluster.costs} now={now} />
      {about.metrics && source === live ? <Queues /> : <p class="quiet">Queue lengths and the scheduler's own latencies are known where berth up runs the scheduler.</p>}
      <Table label="What happened, latest first" columns={columns} rows={rows} keyOf={(one) => `${one.at} ${one.what} ${one.pod ?? ""} ${one.node ?? ""} ${one.text}`} empty="Nothing has happened in the last hour." />
    </section>
  );
}

function isFound(one: Happening, search: Search): boolean {
  return search.isEmpty || search.text.toLowerCase().split(/\s+/).every((word) => `${one.pod} ${one.node} ${one.text} ${one.what}`.toLowerCase().includes(word.replace(/^\w+:/, "")));
}

function Spark(props: { values: number[]; colour: string }) {
  const most = Math.max(1, ...props.values);
  const points = props.values.map((value, i) => `${i},${20 - (18 * value) / most}`).join(" ");
  const last = props.values.slice(-10).reduce((sum, one) => sum + one, 0) / 10;
  return (
    <span class="spark">
      <svg viewBox={`0 0 ${props.values.length - 1} 20`} preserveAspectRatio="none" aria-hidden="true">
        <polyline points={points} fill="none" stroke={props.colour} stroke-width="1.5" vector-effect="non-scaling-stroke" />
      </svg>
      <span class="quiet">{last >= 10 ? Math.round(last) : last.toFixed(1)} / s</span>
    </span>
  );
}

interface CostRow {
  what: "pool" | "workload";
  name: string;
  perHour: number;
  spent: number;
  course: number[];
}

const costColumns = (currency: string): Column<CostRow>[] => [
  { title: "Cost of", grow: 0.8, cell: (one) => one.what, sort: (one) => one.what },
  { title: "Name", grow: 2, cell: (one) => one.name, sort: (one) => one.name },
  { title: `An hour (${currency})`, grow: 1, cell: (one) => one.perHour.toFixed(4), sort: (one) => one.perHour },
  { title: "Since it is watched", grow: 1, rank: 1, cell: (one) => one.spent.toFixed(4), sort: (one) => one.spent },
  { title: "Course", grow: 1.6, rank: 2, cell: (one) => <Course values={one.course} /> },
];

/** Nodes of NodePools alone have prices. */
function CostTable(props: { course: CostCourse; now: number }) {
  const { course, now } = props;
  const last = course.samples[course.samples.length - 1]?.costs;
  if (!last) return null;
  const names = (which: "pools" | "workloads") => [...new Set(course.samples.flatMap((one) => [...one.costs[which].keys()]))];
  const rows = (["pools", "workloads"] as const).flatMap((which) =>
    names(which).map((name): CostRow => ({ what: which === "pools" ? "pool" : "workload", name, perHour: last[which].get(name) ?? 0, spent: course.spent(which, name, now), course: course.course(which, name) })),
  );
  rows.sort((a, b) => (a.what === b.what ? b.spent - a.spent : a.what < b.what ? -1 : 1));
  return (
    <>
      <p>
        Nodes of NodePools cost {last.total.toFixed(4)} {last.currency} an hour. A node's price is its pods', by their share of it; what nobody asks for is idle.
      </p>
      <Table label="Cost by pool and by workload" columns={costColumns(last.currency)} rows={rows} keyOf={(one) => `${one.what} ${one.name}`} empty="Nothing is bought." most={8} />
    </>
  );
}

function Course(props: { values: number[] }) {
  const most = Math.max(1e-9, ...props.values);
  const points = props.values.map((value, i) => `${i},${20 - (18 * value) / most}`).join(" ");
  return (
    <span class="spark">
      <svg viewBox={`0 0 ${Math.max(1, props.values.length - 1)} 20`} preserveAspectRatio="none" aria-hidden="true">
        <polyline points={points} fill="none" stroke="currentColor" stroke-width="1.5" vector-effect="non-scaling-stroke" />
      </svg>
    </span>
  );
}

/** From creation to placement, as the pods' own times (whole seconds) say. */
function Waits(props: { waits: number[] }) {
  if (props.waits.length === 0) return null;
  const sorted = [...props.waits].sort((a, b) => a - b);
  const at = (q: number) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
  return (
    <p>
      The last {count(sorted.length)} placed pods waited {at(0.5)} s (median), {at(0.99)} s (99 of 100).
    </p>
  );
}

function seconds(value: number | undefined): string {
  if (value === undefined) return "–";
  return value < 1 ? `${Number((value * 1000).toPrecision(2))} ms` : `${Number(value.toPrecision(2))} s`;
}

/** The scheduler's own figures: of all times, and since the page was opened. */
function Queues() {
  const [now, setNow] = useState<Metrics>();
  const [error, setError] = useState("");
  const first = useRef<Metrics | undefined>(undefined);
  useEvery(2000, () => {
    getText("/berth/metrics").then(
      (text) => {
        const metrics = parseMetrics(text);
        first.current ??= metrics;
        setNow(metrics);
        setError("");
      },
      (problem: Error) => setError(problem.message),
    );
  });
  if (error) return <p class="bad">{error}</p>;
  if (!now) return null;
  const latency = (name: string) => `${seconds(quantile(0.5, name, now))} / ${seconds(quantile(0.99, name, now))}`;
  return (
    <dl class="facts">
      {["active", "backoff", "unschedulable", "gated"].map((queue) => (
        <div>
          <dt>{queue} queue</dt>
          <dd>{count(sum(now, "scheduler_pending_pods", { queue }))}</dd>
        </div>
      ))}
      <div>
        <dt>attempts</dt>
        <dd>{count(sum(now, "scheduler_schedule_attempts_total"))}</dd>
      </div>
      <div title="Median and 99th of 100: one attempt of the scheduler">
        <dt>an attempt takes</dt>
        <dd>{latency("scheduler_scheduling_attempt_duration_seconds")}</dd>
      </div>
      <div title="Median and 99th of 100: from a pod's first sight to its binding">
        <dt>a pod waits</dt>
        <dd>{latency("scheduler_pod_scheduling_sli_duration_seconds")}</dd>
      </div>
    </dl>
  );
}
