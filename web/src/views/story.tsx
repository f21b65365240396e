// One node's or one pod's page: what it is, its story, and what one can do.
import { useMemo, useState } from "preact/hooks";
import type { NodeState } from "../model/cluster";
import { amount, clock, count, dateAndClock, duration, percent, sinceWords } from "../model/format";
import type { Happening } from "../model/happenings";
import { type PodRow, keyOf, resources, stateOf, statusOf, taintWords } from "../model/rows";
import { getJson, nodePath, podPath, sendJson } from "../net/api";
import { Explain } from "./explain";
import { useAnswer, useApp, useChanges } from "./hooks";
import { NodeLink, PodLink, podColumns, podHref } from "./lists";
import { Table } from "./table";

interface ApiEvent {
  type?: string;
  reason?: string;
  message?: string;
  note?: string;
  count?: number;
  lastTimestamp?: string;
  eventTime?: string;
  metadata: { creationTimestamp?: string };
  source?: { component?: string };
  reportingComponent?: string;
}

interface Step {
  at: number;
  what: string;
  text: string;
  by: string;
  isWarning: boolean;
}

/** What the cluster has recorded of it, and what this page has seen; oldest first. */
function useStory(field: string, isLive: boolean, seen: Happening[]): { steps: Step[]; error?: string; again(): void } {
  const asked = useAnswer(isLive ? field : undefined, () => getJson<{ items: ApiEvent[] }>(field));
  const steps = useMemo(() => {
    const out: Step[] = (asked.value?.items ?? []).map((event) => ({
      at: Date.parse(event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? "") || 0,
      what: event.reason ?? "",
      text: (event.message ?? event.note ?? "") + ((event.count ?? 1) > 1 ? ` (${event.count} times)` : ""),
      by: event.source?.component ?? event.reportingComponent ?? "",
      isWarning: event.type === "Warning",
    }));
    for (const one of seen) out.push({ at: one.at, what: one.what, text: one.text, by: "seen here", isWarning: one.what === "evicted" || one.what === "preempted" });
    return out.sort((a, b) => a.at - b.at);
  }, [asked.value, seen.length]);
  return { steps, error: asked.error, again: asked.again };
}

function Story(props: { steps: Step[]; error?: string | undefined }) {
  return (
    <>
      {props.error && <p class="bad">{props.error}</p>}
      {props.steps.length === 0 && !props.error && <p class="quiet">Nothing is recorded of it. Events are kept for an hour.</p>}
      <ol class="story">
        {props.steps.slice(-200).map((step) => (
          <li class={step.isWarning ? "warning" : ""}>
            <time dateTime={new Date(step.at).toISOString()} title={dateAndClock(step.at)}>
              {clock(step.at)}
            </time>{" "}
            <strong>{step.what}</strong> {step.text} <span class="quiet">{step.by}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

function Facts(props: { facts: [string, unknown][] }) {
  return (
    <dl class="facts">
      {props.facts
        .filter(([, value]) => value !== undefined && value !== "")
        .map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value as never}</dd>
          </div>
        ))}
    </dl>
  );
}

/** A change of the cluster: asked twice, its failure said. Not there unless berth was started with --allow-changes. */
function Action(props: { label: string; run(): Promise<unknown> }) {
  const { about, source, live } = useApp();
  const [state, setState] = useState<{ step: "idle" | "sure" | "running" | "done"; error?: string }>({ step: "idle" });
  if (!about.allowsChanges || source !== live) return null;
  const go = () => {
    if (state.step !== "sure") return setState({ step: "sure" });
    setState({ step: "running" });
    props.run().then(
      () => setState({ step: "done" }),
      (error: unknown) => setState({ step: "idle", error: error instanceof Error ? error.message : String(error) }),
    );
  };
  return (
    <>
      <button type="button" class={state.step === "sure" ? "danger" : ""} disabled={state.step === "running"} onClick={go} onBlur={() => state.step === "sure" && setState({ step: "idle" })}>
        {state.step === "sure" ? `Really ${props.label.toLowerCase()}?` : state.step === "done" ? `${props.label}: done` : props.label}
      </button>
      {state.error && <span class="bad" role="alert">{state.error}</span>}
    </>
  );
}

function ask(changes: object[]): string {
  return `#/what-if/${encodeURIComponent(JSON.stringify(changes))}`;
}

export function NodePage(props: { name: string }) {
  const { source, live, about } = useApp();
  useChanges(source, 400);
  const isLive = source === live && about.live;
  const node = source.cluster.nodes.get(props.name);
  const seen = source.cluster.log.entries.filter((one) => one.node === props.name && one.what !== "gone").slice(-100);
  const field = `/api/v1/events?limit=200&fieldSelector=${encodeURIComponent(`involvedObject.kind=Node,involvedObject.name=${props.name}`)}`;
  const story = useStory(field, isLive, seen);
  const keeps = useAnswer(isLive && about.explain ? props.name : undefined, () => getJson<{ text: string }>(`/berth/node?name=${encodeURIComponent(props.name)}`));
  if (!node?.row) return <Missing what={`Node ${props.name}`} />;
  const pods = [...node.pods];
  return (
    <article class="page" aria-labelledby="node-title">
      <h1 id="node-title">
        <span class="quiet">Node</span> {props.name}
      </h1>
      <div class="actions">
        {isLive && about.whatIf && (
          <>
            <a class="button" href={ask([{ drain: props.name }])}>What if it is drained?</a>
            <a class="button" href={ask([{ fail: props.name }])}>What if it is lost?</a>
          </>
        )}
        <Action
          label={node.row.cordoned ? "Uncordon" : "Cordon"}
          run={() => sendJson("PATCH", nodePath(props.name), { spec: { unschedulable: !node.row?.cordoned || null } }, "application/merge-patch+json")}
        />
      </div>
      <NodeFacts node={node} now={source.now() / 1000} />
      <h2>
        Pods <span class="quiet">{count(pods.length)}</span>
      </h2>
      <Table label={`Pods of ${props.name}`} columns={podColumns(source.now() / 1000).filter((one) => one.title !== "Node")} rows={pods} keyOf={keyOf} hrefOf={(pod) => podHref(keyOf(pod))} empty="No pod." most={10} />
      <h2>Story</h2>
      <Story steps={story.steps} error={story.error} />
      {keeps.value && (
        <>
          <h2>The autoscaler</h2>
          <pre class="words">{keeps.value.text}</pre>
        </>
      )}
    </article>
  );
}

function NodeFacts(props: { node: NodeState; now: number }) {
  const { node, now } = props;
  return (
    <Facts
      facts={[
        ["State", node.row && stateOf(node.row)],
        ["Not ready since", node.row?.since && sinceWords(node.row.since, now * 1000)],
        ["Why", node.row?.why],
        ["Zone", node.zone],
        ["Type", node.row?.type],
        ["Taints", taintWords(node.row?.taints ?? [])],
        ...resources
          .filter((one) => (node.row?.[one] ?? 0) > 0)
          .map((one): [string, unknown] => [one === "gpu" ? "GPU" : one, `${amount(one, node.used[one])} of ${amount(one, node.row?.[one] ?? 0)} (${percent(node.fill(one))})`]),
        ["Age", duration(now - (node.row?.created ?? now))],
      ]}
    />
  );
}

export function PodPage(props: { ns: string; name: string }) {
  const { source, live, about } = useApp();
  useChanges(source, 400);
  const isLive = source === live && about.live;
  const key = `${props.ns}/${props.name}`;
  const pod = source.cluster.pods.get(key);
  const seen = source.cluster.log.entries.filter((one) => one.pod === key).slice(-50);
  const field = `/api/v1/namespaces/${encodeURIComponent(props.ns)}/events?limit=200&fieldSelector=${encodeURIComponent(`involvedObject.kind=Pod,involvedObject.name=${props.name}`)}`;
  const story = useStory(field, isLive, seen);
  const [wantsWhy, setWantsWhy] = useState(false);
  return (
    <article class="page" aria-labelledby="pod-title">
      <h1 id="pod-title">
        <span class="quiet">Pod</span> {key}
      </h1>
      {!pod && <p class="warn">It is not there{isLive ? " (any more)" : " at this time"}.</p>}
      {pod && <PodActions pod={pod} isLive={isLive} />}
      {pod && <PodFacts pod={pod} now={source.now() / 1000} />}
      {pod?.message && <p class={pod.node ? "" : "warn"}>{pod.message}</p>}
      {pod && isLive && about.explain && (
        <>
          <h2>{pod.node ? `Why ${pod.node}?` : "Why no node?"}</h2>
          {wantsWhy || !pod.node ? <Explain ns={props.ns} name={props.name} said={pod.message} /> : <button type="button" onClick={() => setWantsWhy(true)}>Explain</button>}
        </>
      )}
      <h2>Story</h2>
      <Story steps={story.steps} error={story.error} />
      {isLive && pod && <Document path={podPath(props.ns, props.name)} version={`${pod.uid} ${pod.phase}`} />}
    </article>
  );
}

const scaled: Record<string, string> = { Deployment: "deployments", ReplicaSet: "replicasets", StatefulSet: "statefulsets" };

function Scale(props: { path: string; what: string; present: number }) {
  const { about } = useApp();
  const [replicas, setReplicas] = useState(String(props.present));
  if (!about.allowsChanges) return null;
  return (
    <>
      <label>
        Replicas of {props.what} <input type="number" min="0" max="100000" value={replicas} onInput={(event) => setReplicas(event.currentTarget.value)} />
      </label>
      <Action label="Scale" run={() => sendJson("PATCH", props.path, { spec: { replicas: Number(replicas) } }, "application/merge-patch+json")} />
    </>
  );
}

function PodActions(props: { pod: PodRow; isLive: boolean }) {
  const { pod } = props;
  const { about } = useApp();
  const { live } = useApp();
  const [kind = "", workload] = pod.workload?.split("/") ?? [];
  const isScaled = workload !== undefined && scaled[kind] !== undefined;
  const replicas = useMemo(() => (isScaled ? [...live.cluster.pods.values()].filter((one) => one.ns === pod.ns && one.workload === pod.workload).length : 0), [pod.workload]);
  return (
    <div class="actions">
      {props.isLive && about.whatIf && pod.node && <a class="button" href={ask([{ evict: keyOf(pod) }])}>What if it is evicted?</a>}
      {props.isLive && about.whatIf && isScaled && (
        <a class="button" href={ask([{ scale: `${pod.ns}/${workload}`, kind, replicas: 2 * replicas }])}>What if {workload} has {count(2 * replicas)} replicas?</a>
      )}
      <Action
        label="Evict"
        run={() => sendJson("POST", `${podPath(pod.ns, pod.name)}/eviction`, { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod.name, namespace: pod.ns } })}
      />
      {isScaled && <Scale path={`/apis/apps/v1/namespaces/${encodeURIComponent(pod.ns)}/${scaled[kind]}/${encodeURIComponent(workload)}/scale`} what={workload} present={replicas} />}
    </div>
  );
}

function PodFacts(props: { pod: PodRow; now: number }) {
  const { pod, now } = props;
  return (
    <Facts
      facts={[
        ["Status", statusOf(pod)],
        ["Node", pod.node && <NodeLink name={pod.node} />],
        ["Workload", pod.workload],
        ["Priority", count(pod.priority ?? 0)],
        ["CPU", amount("cpu", pod.cpu ?? 0)],
        ["Memory", amount("memory", pod.memory ?? 0)],
        ["GPU", pod.gpu ? String(pod.gpu) : undefined],
        ["Not ready since", pod.unready && sinceWords(pod.unready, now * 1000)],
        ["Last ended with", pod.ended],
        ["Gang", pod.gang],
        ["Scheduler", pod.scheduler],
        ["Nominated", pod.nominated && <NodeLink name={pod.nominated} />],
        ["Disruption", pod.disruption],
        ["Restarts", pod.restarts ? String(pod.restarts) : undefined],
        ["Waited", pod.bound && pod.created ? duration(pod.bound - pod.created) : undefined],
        ["Age", duration(now - (pod.created ?? now))],
      ]}
    />
  );
}

function Document(props: { path: string; version: string }) {
  const [isOpen, setOpen] = useState(false);
  const asked = useAnswer(isOpen ? `${props.path} ${props.version}` : undefined, async () => {
    const document = await getJson<{ metadata: Record<string, unknown> }>(props.path);
    delete document.metadata["managedFields"];
    return JSON.stringify(document, undefined, 2);
  });
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The object</summary>
      {asked.error && <p class="bad">{asked.error}</p>}
      <pre tabIndex={0}>{asked.value ?? ""}</pre>
    </details>
  );
}

export function Missing(props: { what: string }) {
  return (
    <section class="page">
      <h1>{props.what}</h1>
      <p class="warn">It is not there.</p>
      <p>
        <a href="#/map">To the map</a>
      </p>
    </section>
  );
}

export { PodLink };
