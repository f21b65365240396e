// All nodes, all pods: tables of what the search finds.
import { useMemo } from "preact/hooks";
import type { NodeState } from "../model/cluster";
import { amount, count, duration, percent, sinceWords, sortKey } from "../model/format";
import { type BudgetRow, type PodRow, type Resource, keyOf, stateOf, statusOf, taintWords } from "../model/rows";
import { Search } from "../model/search";
import { useApp, useChanges } from "./hooks";
import { type Column, Table } from "./table";

export const nodeHref = (name: string) => `#/node/${encodeURIComponent(name)}`;
export const podHref = (key: string) => `#/pod/${key.split("/").map(encodeURIComponent).join("/")}`;

export function NodeLink(props: { name: string | undefined }) {
  return props.name ? <a href={nodeHref(props.name)}>{props.name}</a> : <span class="quiet">–</span>;
}
export function PodLink(props: { pod: string }) {
  return (
    <a href={podHref(props.pod)} title={props.pod}>
      {props.pod}
    </a>
  );
}

export function Meter(props: { share: number; title: string }) {
  return (
    <span class={`meter ${props.share >= 0.95 ? "full" : props.share >= 0.75 ? "high" : ""}`} title={props.title}>
      <span class="meter-bar" style={{ width: `${Math.min(100, props.share * 100)}%` }} />
      <span class="meter-text">{percent(props.share)}</span>
    </span>
  );
}

function fillColumn(resource: Resource, rank: number): Column<NodeState> {
  return {
    title: resource === "gpu" ? "GPU" : resource,
    grow: 1.2,
    rank,
    cell: (node) =>
      (node.row?.[resource] ?? 0) > 0 ? (
        <Meter share={node.fill(resource)} title={`${amount(resource, node.used[resource])} of ${amount(resource, node.row?.[resource] ?? 0)}`} />
      ) : (
        <span class="quiet">–</span>
      ),
    sort: (node) => node.fill(resource),
  };
}

const byName = new Intl.Collator("en", { numeric: true });

/** Those that are in trouble first. */
function inOrder(nodes: NodeState[]): NodeState[] {
  const rank = ({ row }: NodeState) => (!row?.ready ? 0 : row.pressure ? 1 : row.cordoned ? 2 : 3);
  return nodes.map((node) => [rank(node), node] as const).sort(([a, one], [b, other]) => a - b || byName.compare(one.name, other.name)).map(([, node]) => node);
}

function State({ node, now }: { node: NodeState; now: number }) {
  if (!node.row) return null;
  const words = stateOf(node.row);
  if (node.row.ready) return <span class={node.row.pressure ? "warn" : ""} title={words}>{words}</span>;
  const since = node.row.since ? ` ${duration(now / 1000 - node.row.since)}` : "";
  return <strong class="bad" title={node.row.why}>✕ {words}{since}</strong>;
}

export function NodesView() {
  const { source, search } = useApp();
  const version = useChanges(source, 500);
  const parsed = useMemo(() => new Search(search), [search]);
  const rows = useMemo(
    () => inOrder([...source.cluster.nodes.values()].filter((node) => node.row && (parsed.isEmpty || parsed.hasNode(node)))),
    [source, version, parsed],
  );
  const now = source.now() / 1000;
  const columns: Column<NodeState>[] = [
    { title: "Node", grow: 1.8, cell: (node) => <NodeLink name={node.name} />, sort: (node) => sortKey(node.name) },
    { title: "Zone", grow: 0.8, rank: 4, cell: (node) => node.zone, sort: (node) => node.zone },
    { title: "State", grow: 2.2, rank: 1, cell: (node) => <State node={node} now={source.now()} />, sort: (node) => (node.row ? stateOf(node.row) : "") },
    fillColumn("cpu", 1),
    fillColumn("memory", 2),
    { title: "Pods", grow: 0.8, rank: 3, isNumber: true, cell: (node) => `${node.used.pods} / ${node.row?.pods ?? "–"}`, sort: (node) => node.used.pods },
    ...(rows.some((node) => node.row?.gpu) ? [fillColumn("gpu", 6)] : []),
    { title: "Type", grow: 1, rank: 7, cell: (node) => node.row?.type ?? "", sort: (node) => node.row?.type ?? "" },
    { title: "Taints", grow: 2.4, rank: 8, cell: (node) => <span title={node.row?.taints?.join(" ")}>{taintWords(node.row?.taints ?? [])}</span>, sort: (node) => node.row?.taints?.join(" ") ?? "" },
    { title: "Age", grow: 0.6, rank: 5, isNumber: true, cell: (node) => duration(now - (node.row?.created ?? now)), sort: (node) => -(node.row?.created ?? 0) },
  ];
  return (
    <section class="list-page" aria-labelledby="nodes-title">
      <h1 id="nodes-title">
        Nodes <span class="quiet">{count(rows.length)}</span>
      </h1>
      <Table label="Nodes" columns={columns} rows={rows} keyOf={(node) => node.name} hrefOf={(node) => nodeHref(node.name)} empty="No node is found." />
    </section>
  );
}

export function podColumns(now: number): Column<PodRow>[] {
  return [
    { title: "Namespace", grow: 1.2, rank: 3, cell: (pod) => pod.ns, sort: (pod) => pod.ns },
    { title: "Pod", grow: 2.6, cell: (pod) => <a href={podHref(keyOf(pod))} title={keyOf(pod)}>{pod.name}</a>, sort: (pod) => pod.name },
    { title: "Status", grow: 1.2, rank: 1, cell: (pod) => <span class={pod.phase === "Failed" || pod.waiting ? "bad" : pod.node ? "" : "warn"}>{statusOf(pod)}</span>, sort: statusOf },
    { title: "Node", grow: 1.6, rank: 2, cell: (pod) => <NodeLink name={pod.node} />, sort: (pod) => sortKey(pod.node ?? "") },
    { title: "CPU", grow: 0.7, rank: 4, isNumber: true, cell: (pod) => amount("cpu", pod.cpu ?? 0), sort: (pod) => pod.cpu ?? 0 },
    { title: "Memory", grow: 0.9, rank: 5, isNumber: true, cell: (pod) => amount("memory", pod.memory ?? 0), sort: (pod) => pod.memory ?? 0 },
    { title: "Priority", grow: 0.9, rank: 7, isNumber: true, cell: (pod) => count(pod.priority ?? 0), sort: (pod) => pod.priority ?? 0 },
    { title: "Workload", grow: 1.6, rank: 8, cell: (pod) => pod.workload ?? "", sort: (pod) => pod.workload ?? "" },
    { title: "Restarts", grow: 0.7, rank: 9, isNumber: true, cell: (pod) => String(pod.restarts ?? 0), sort: (pod) => pod.restarts ?? 0 },
    { title: "Age", grow: 0.6, rank: 6, isNumber: true, cell: (pod) => duration(now - (pod.created ?? now)), sort: (pod) => -(pod.created ?? 0) },
  ];
}

export function PodsView() {
  const { source, search } = useApp();
  const version = useChanges(source, source.cluster.pods.size > 20_000 ? 1000 : 400);
  const parsed = useMemo(() => new Search(search), [search]);
  const rows = useMemo(() => {
    const all = [...source.cluster.pods.values()];
    return parsed.isEmpty ? all : all.filter((pod) => parsed.hasPod(pod, pod.node ? source.cluster.nodes.get(pod.node) : undefined));
  }, [source, version, parsed]);
  return (
    <section class="list-page" aria-labelledby="pods-title">
      <h1 id="pods-title">
        Pods <span class="quiet">{count(rows.length)}</span>
      </h1>
      <Table label="Pods" columns={podColumns(source.now() / 1000)} rows={rows} keyOf={keyOf} hrefOf={(pod) => podHref(keyOf(pod))} empty="No pod is found." />
    </section>
  );
}

export function BudgetsView() {
  const { source, search } = useApp();
  const version = useChanges(source, 500);
  const rows = useMemo(
    () => [...source.cluster.budgets.values()].filter((one) => keyOf(one).includes(search.replace(/^ns:/, ""))).sort((a, b) => budgetRank(a) - budgetRank(b) || (keyOf(a) < keyOf(b) ? -1 : 1)),
    [source, version, search],
  );
  const columns: Column<BudgetRow>[] = [
    { title: "Budget", grow: 2, cell: (one) => <span title={keyOf(one)}>{keyOf(one)}</span>, sort: keyOf },
    { title: "State", grow: 1.6, rank: 1, cell: (one) => <span class={(one.healthy ?? 0) < (one.desired ?? 0) ? "bad" : one.allowed || !one.expected ? "" : "warn"}>{budgetWords(one)}</span>, sort: budgetWords },
    { title: "Allowed", grow: 0.7, rank: 1, isNumber: true, cell: (one) => count(one.allowed ?? 0), sort: (one) => one.allowed ?? 0 },
    { title: "Healthy", grow: 0.7, rank: 2, isNumber: true, cell: (one) => count(one.healthy ?? 0), sort: (one) => one.healthy ?? 0 },
    { title: "Wanted", grow: 0.7, rank: 3, isNumber: true, cell: (one) => count(one.desired ?? 0), sort: (one) => one.desired ?? 0 },
    { title: "Pods", grow: 0.7, rank: 4, isNumber: true, cell: (one) => count(one.expected ?? 0), sort: (one) => one.expected ?? 0 },
    { title: "Since", grow: 1.2, rank: 5, cell: (one) => (one.since ? sinceWords(one.since, source.now()) : ""), sort: (one) => one.since ?? 0 },
  ];
  return (
    <section class="list-page" aria-labelledby="budgets-title">
      <h1 id="budgets-title">
        Disruption budgets <span class="quiet">{count(rows.length)}</span>
      </h1>
      <Table label="Disruption budgets" columns={columns} rows={rows} keyOf={keyOf} empty="There is no PodDisruptionBudget." />
    </section>
  );
}

/** Those in trouble first. */
function budgetRank(one: BudgetRow): number {
  if (!one.expected) return 3;
  return (one.healthy ?? 0) < (one.desired ?? 0) ? 0 : one.allowed ? 2 : 1;
}

function budgetWords(one: BudgetRow): string {
  if (!one.expected) return "covers no pods";
  if ((one.healthy ?? 0) < (one.desired ?? 0)) return "too few are healthy";
  return one.allowed ? "has room" : "allows no disruption";
}
