// What if? Changes by clicks, the answer beside the present.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Colouring } from "../model/colours";
import type { Cluster } from "../model/cluster";
import { count, percent } from "../model/format";
import type { What } from "../model/happenings";
import { gist } from "../model/reasons";
import { Search } from "../model/search";
import { type Answer, type Change, type Eviction, type Loss, type Move, type NodeChange, type Waiting, after, describe, outrun, verdictOf } from "../model/whatif";
import { sendJson } from "../net/api";
import { useApp, useChanges } from "./hooks";
import { NodeLink, PodLink } from "./lists";
import { MapCanvas } from "./mapCanvas";
import { Legend, useMapChoices } from "./mapView";
import { type Column, Table } from "./table";

type Verb = "drain" | "fail" | "zone" | "scale" | "add" | "remove" | "cordon";
const verbs: [Verb, string][] = [
  ["drain", "drain a node"],
  ["fail", "lose a node"],
  ["zone", "lose a zone"],
  ["scale", "scale a workload"],
  ["add", "add nodes"],
  ["remove", "remove a node"],
  ["cordon", "cordon a node"],
];

interface Result {
  answer: Answer;
  /** Asks the same anew. */
  again(): void;
  before: Cluster;
  after: Cluster;
}

export function WhatIfView(props: { asked: string }) {
  const { live, about } = useApp();
  const [changes, setChanges] = useState<Change[]>(() => parse(props.asked));
  const [state, setState] = useState<{ isAsking: boolean; error?: string; result?: Result }>({ isAsking: false });
  const round = useRef(0);

  const ask = (what: Change[], each?: string) => {
    const mine = ++round.current;
    setState((before) => ({ ...before, isAsking: true, error: undefined }));
    sendJson<Answer>("POST", "/berth/what-if", each ? { changes: what, each } : { changes: what }).then(
      (answer) => mine === round.current && setState({ isAsking: false, result: { answer, again: () => ask(what, each), before: live.cluster.fork(), after: after(live.cluster, answer) } }),
      (error: unknown) => mine === round.current && setState({ isAsking: false, error: error instanceof Error ? error.message : String(error) }),
    );
  };
  useEffect(() => {
    const given = parse(props.asked);
    setChanges(given);
    if (given.length > 0) ask(given);
  }, [props.asked]);

  if (!about.whatIf) return <section class="page"><h1>What if?</h1><p class="warn">This dashboard was started without a cluster to ask about, or its berth cannot answer what-if.</p></section>;
  const set = (next: Change[]) => (location.hash = `#/what-if/${next.length > 0 ? encodeURIComponent(JSON.stringify(next)) : ""}`);
  const hasAsked = changes.length > 0 || state.result !== undefined || state.isAsking || state.error !== undefined;
  return (
    <section class="page wide" aria-labelledby="what-if-title">
      <h1 id="what-if-title">{changes.length > 0 ? `What if: ${changes.map(describe).join(", then ")}?` : "What if?"}</h1>
      <p role="status" class={state.isAsking ? "quiet" : "hidden"}>{state.isAsking ? "Asking…" : ""}</p>
      {state.error && <p class="bad" role="alert">{state.error}</p>}
      {state.result && <Told result={state.result} isAsking={state.isAsking} />}
      <div class="card question">
        <h2 class={hasAsked ? "" : "hidden"}>The question</h2>
        {changes.length > 0 && (
          <ol class="chips" aria-label="Changes, in this order">
            {changes.map((change, i) => (
              <li>
                {describe(change)}{" "}
                <button type="button" class="small" aria-label={`Leave out: ${describe(change)}`} onClick={() => set(changes.filter((_, at) => at !== i))}>
                  ×
                </button>
              </li>
            ))}
          </ol>
        )}
        <Form isMore={changes.length > 0} onAdd={(change) => set([...changes, change])} />
        <div class="actions">
          <button type="button" disabled={changes.length === 0 || state.isAsking} onClick={() => ask(changes)}>
            Ask again
          </button>
          <button type="button" disabled={state.isAsking} onClick={() => ask(changes, "node")}>
            Every single node lost in turn
          </button>
          <button type="button" disabled={state.isAsking} onClick={() => ask(changes, "zone")}>
            Every zone in turn
          </button>
        </div>
        <p class="quiet">Nothing is changed: the engine tries it on a copy of the cluster.</p>
      </div>
      {state.result && <Shown result={state.result} />}
    </section>
  );
}

function parse(text: string): Change[] {
  try {
    const given: unknown = JSON.parse(text || "[]");
    return Array.isArray(given) ? (given as Change[]) : [];
  } catch {
    return [];
  }
}

function Form(props: { isMore: boolean; onAdd(change: Change): void }) {
  const { live } = useApp();
  const [verb, setVerb] = useState<Verb>("drain");
  const [name, setName] = useState("");
  const [number, setNumber] = useState("10");
  const suggestions = useMemo(() => {
    const out = new Set<string>();
    if (verb === "zone") for (const node of live.cluster.nodes.values()) out.add(node.zone);
    else if (verb === "scale") for (const pod of live.cluster.pods.values()) { if (pod.workload && !/^(DaemonSet|Node)\//.test(pod.workload)) out.add(`${pod.ns}/${pod.workload.split("/")[1] ?? ""}`); }
    else for (const node of live.cluster.nodes.values()) out.add(node.name);
    return [...out].filter((one) => one).sort().slice(0, 500);
  }, [verb, live.cluster]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!name) return;
    if (verb === "zone") props.onAdd({ fail: `zone=${name}` });
    else if (verb === "scale") props.onAdd({ scale: name, replicas: Number(number) });
    else if (verb === "add") props.onAdd({ add: name, count: Number(number) });
    else props.onAdd({ [verb]: name });
    setName("");
  };
  const label = { zone: "zone", scale: "namespace/name", add: "like node, or instance type" }[verb as "zone" | "scale" | "add"] ?? "node";
  return (
    <form class="bar" onSubmit={submit}>
      <label>
        {props.isMore ? "and then" : "I"}{" "}
        <select value={verb} onChange={(event) => setVerb(event.currentTarget.value as Verb)}>
          {verbs.map(([value, text]) => (
            <option value={value}>{text}</option>
          ))}
        </select>
      </label>
      <label>
        {label} <input value={name} list="what-if-names" required autocomplete="off" spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <datalist id="what-if-names">
        {suggestions.map((one) => (
          <option value={one} />
        ))}
      </datalist>
      {(verb === "scale" || verb === "add") && (
        <label>
          {verb === "scale" ? "replicas" : "how many"} <input type="number" min="0" max="100000" value={number} onInput={(event) => setNumber(event.currentTarget.value)} />
        </label>
      )}
      <button type="submit" class="primary">Ask</button>
    </form>
  );
}

const moveColumns: Column<Move>[] = [
  { title: "Pod", grow: 2, cell: (one) => <PodLink pod={one.pod} />, sort: (one) => one.pod },
  { title: "From", grow: 1.2, rank: 1, cell: (one) => (one.from ? <NodeLink name={one.from} /> : <span class="quiet">new</span>), sort: (one) => one.from ?? "" },
  { title: "To", grow: 1.2, rank: 1, cell: (one) => <NodeLink name={one.to} />, sort: (one) => one.to },
  { title: "Why", grow: 2, rank: 2, cell: (one) => <span title={one.when ?? one.reason}>{[one.reason, one.when].filter((text) => text).join("; ")}</span> },
];
const why = (one: Waiting) => gist({ kind: "pod", ns: "", name: one.pod, message: one.message, reason: one.reason });
const waitingColumns: Column<Waiting>[] = [
  { title: "Pod", grow: 2, cell: (one) => <PodLink pod={one.pod} />, sort: (one) => one.pod },
  { title: "Before", grow: 0.8, rank: 1, cell: (one) => (one.before ? "pending, too" : ""), sort: (one) => (one.before ? 1 : 0) },
  { title: "Why", grow: 4, rank: 0, cell: (one) => <span title={one.message}>{why(one)}</span>, sort: why },
];
const evictionColumns: Column<Eviction>[] = [
  { title: "Pod", grow: 2, cell: (one) => <PodLink pod={one.pod} />, sort: (one) => one.pod },
  { title: "Outcome", grow: 0.8, cell: (one) => <span class={one.outcome === "evicted" ? "" : "warn"}>{one.outcome}</span>, sort: (one) => one.outcome ?? "" },
  { title: "Node", grow: 1.2, rank: 1, cell: (one) => <NodeLink name={one.node} />, sort: (one) => one.node ?? "" },
  { title: "Why", grow: 3, rank: 2, cell: (one) => <span title={one.reason}>{[one.reason, one.budget && `budget ${one.budget}`, one.by && `by ${one.by}`].filter((text) => text).join("; ")}</span> },
];

/** Nodes that change, as the maps mark them. */
function marksOf(answer: Answer): Map<string, What> {
  const out = new Map<string, What>();
  for (const node of answer.nodes ?? []) out.set(node.name, "node");
  for (const one of answer.evictions ?? []) if (one.node) out.set(one.node, "evicted");
  for (const one of answer.moves ?? []) out.set(one.to, "placed");
  return out;
}

/** The answer, before all that it is made of. */
function Told({ result, isAsking }: { result: Result; isAsking: boolean }) {
  const { isGood, sentence, more } = verdictOf(result.answer);
  return (
    <div class={`verdict ${isGood ? "good-side" : "bad-side"}`} role="status">
      <p class="verdict-sentence">
        <span class={`sign ${isGood ? "good" : "bad"}`} aria-hidden="true">{isGood ? "✓" : "✕"}</span> {sentence}
      </p>
      {more.length > 0 && (
        <ul>
          {more.map((one) => (
            <li>{one}</li>
          ))}
        </ul>
      )}
      <Outrun result={result} isAsking={isAsking} />
    </div>
  );
}

function Shown({ result }: { result: Result }) {
  const { answer } = result;
  const { isDark, live } = useApp();
  const { resource, by } = useMapChoices();
  const colouring = useMemo(() => {
    const out = new Colouring(by, resource);
    out.look(result.before, live.now());
    return out;
  }, [result, by, resource]);
  const marks = useMemo(() => marksOf(answer), [answer]);
  const map = { resource, colouring, search: new Search(""), isDark, now: live.now(), marks, version: 0, height: 320 };
  return (
    <>
      {answer.each && <Each answer={answer} />}
      <Part title="Stay pending" rows={newFirst(answer.pending ?? [])} columns={waitingColumns} keyOf={(one) => one.pod} />
      <div class="beside">
        <figure>
          <figcaption>Present</figcaption>
          <MapCanvas label="The present" cluster={result.before} {...map} />
        </figure>
        <figure>
          <figcaption>Then</figcaption>
          <MapCanvas label="After the changes" cluster={result.after} {...map} />
        </figure>
      </div>
      <Legend colouring={colouring} search="" />
      <Zones zones={answer.zones ?? []} />
      <Part title="Evicted" rows={answer.evictions ?? []} columns={evictionColumns} keyOf={(one) => `${one.pod} ${one.outcome}`} />
      <Part title="Moves" rows={answer.moves ?? []} columns={moveColumns} keyOf={(one) => `${one.pod} ${one.to}`} />
      {answer.notes && answer.notes.length > 0 && (
        <ul class="quiet">
          {answer.notes.map((note) => (
            <li>{note}</li>
          ))}
        </ul>
      )}
    </>
  );
}

/** Who waits because of the changes stands before those who waited anyhow. */
function newFirst(waiting: Waiting[]): Waiting[] {
  return [...waiting].sort((a, b) => Number(a.before ?? false) - Number(b.before ?? false));
}

/** An answer is about a moment: which, and what has changed since then, is said before anybody acts on it. */
function Outrun({ result, isAsking }: { result: Result; isAsking: boolean }) {
  const { live } = useApp();
  const version = useChanges(live, 2000);
  const changed = useMemo(() => outrun(result.answer, result.before, live.cluster), [result, version]);
  const { revision, asked } = result.answer.of ?? {};
  const moment = [asked && `at ${new Date(asked).toLocaleTimeString()}`, revision && `revision ${revision}`].filter((one) => one).join(", ");
  const more = changed.length > 3 ? ` and ${count(changed.length - 3)} more` : "";
  return (
    <>
      {moment && <p class="quiet moment">Of the cluster {moment}.</p>}
      {changed.length > 0 && (
        <div class="stale" role="status">
          <p class="warn">The cluster has moved on since this was asked: {changed.slice(0, 3).join(", ")}{more}. Ask again before you act on it.</p>
          <button type="button" disabled={isAsking} onClick={result.again}>Ask the same again</button>
        </div>
      )}
    </>
  );
}

function Part<T>(props: { title: string; rows: T[]; columns: Column<T>[]; keyOf(row: T): string }) {
  if (props.rows.length === 0) return null;
  return (
    <>
      <h2>
        {props.title} <span class="quiet">{count(props.rows.length)}</span>
      </h2>
      <Table label={props.title} columns={props.columns} rows={props.rows} keyOf={props.keyOf} empty="" most={8} />
    </>
  );
}

function Zones(props: { zones: NodeChange[] }) {
  const share = (value: number | undefined) => (value === undefined ? "–" : percent(value));
  if (props.zones.length === 0) return null;
  return (
    <table class="plain-table">
      <caption class="hidden">Zones before and after</caption>
      <thead>
        <tr>
          <th scope="col">Zone</th>
          <th scope="col">cpu before</th>
          <th scope="col">then</th>
          <th scope="col">memory before</th>
          <th scope="col">then</th>
        </tr>
      </thead>
      <tbody>
        {props.zones.slice(0, 20).map((zone) => (
          <tr>
            <th scope="row">{zone.name || zone.zone || "no zone"}</th>
            <td>{share(zone.before?.cpu)}</td>
            <td>{share(zone.after?.cpu)}</td>
            <td>{share(zone.before?.memory)}</td>
            <td>{share(zone.after?.memory)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const lossColumns: Column<Loss>[] = [
  { title: "Lost", grow: 1.6, cell: (one) => one.lost ?? "", sort: (one) => one.lost ?? "" },
  { title: "Pending", grow: 0.8, rank: 1, isNumber: true, cell: (one) => <span class={one.pendingCount ? "bad" : ""}>{count(one.pendingCount ?? 0)}</span>, sort: (one) => one.pendingCount ?? 0 },
  { title: "Lost pods", grow: 0.8, rank: 2, isNumber: true, cell: (one) => count(one.lostPodsCount ?? 0), sort: (one) => one.lostPodsCount ?? 0 },
  { title: "Refused", grow: 0.8, rank: 4, isNumber: true, cell: (one) => count(one.blockedCount ?? 0), sort: (one) => one.blockedCount ?? 0 },
  { title: "Moves", grow: 0.8, rank: 5, isNumber: true, cell: (one) => count(one.moves ?? 0), sort: (one) => one.moves ?? 0 },
  { title: "Budgets broken", grow: 2, rank: 3, cell: (one) => <span title={one.broken?.join(", ")}>{one.broken?.join(", ")}</span>, sort: (one) => one.broken?.length ?? 0 },
];

function Each({ answer }: { answer: Answer }) {
  const bad = answer.each ?? [];
  return (
    <>
      <h2>Each in turn</h2>
      <Table label="Single losses that leave something" columns={lossColumns} rows={bad} keyOf={(one) => one.lost ?? ""} empty="None of them leaves a pod without a node." most={8} />
    </>
  );
}
