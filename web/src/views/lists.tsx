// All nodes, all pods: tables of what the search finds.
import { useMemo } from "preact/hooks";
import type { NodeState } from "../model/cluster";
import { amount, count, duration, percent, sortKey } from "../model/format";
import { type PodRow, type Resource, keyOf, statusOf } from "../model/rows";
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

export function stateOf(node: NodeState): string {
  const words = [node.row?.ready ? "Ready" : "NotReady", ...(node.row?.cordoned ? ["SchedulingDisabled"] : []), ...(node.row?.pressure ?? [])];
  return words.join(", ");
}

export function Meter(props: { share: number; title: string }) {
  return (
    <span class="meter" title={props.title}>
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

export function NodesView() {
  const { source, search } = useApp();
  const version = useChanges(source, 500);
  const parsed = useMemo(() => new Search(search), [search]);
  const rows = useMemo(
    () => [...source.cluster.nodes.values()].filter((node) => node.row && (parsed.isEmpty || parsed.hasNode(node))),
    [source, version, parsed],
  );
  const now = source.now() / 1000;
  const columns: Column<NodeState>[] = [
    { title: "Node", grow: 2.2, cell: (node) => <NodeLink name={node.name} />, sort: (node) => sortKey(node.name) },
    { title: "Zone", grow: 1, rank: 4, cell: (node) => node.zone, sort: (node) => node.zone },
    { title: "State", grow: 1.4, rank: 1, cell: (node) => <span class={node.row?.ready ? "" : "bad"}>{stateOf(node)}</span>, sort: stateOf },
    fillColumn("cpu", 1),
    fillColumn("memory", 2),
    { title: "Pods", grow: 0.8, rank: 3, isNumber: true, cell: (node) => `${node.used.pods} / ${node.row?.pods ?? "–"}`, sort: (node) => node.used.pods },
    fillColumn("gpu", 6),
    { title: "Type", grow: 1.2, rank: 7, cell: (node) => node.row?.type ?? "", sort: (node) => node.row?.type ?? "" },
    { title: "Taints", grow: 1.6, rank: 8, cell: (node) => node.row?.taints?.join(" ") ?? "", sort: (node) => node.row?.taints?.join(" ") ?? "" },
    { title: "Age", grow: 0.6, rank: 5, isNumber: true, cell: (node) => duration(now - (node.row?.created ?? now)), sort: (node) => -(node.row?.created ?? 0) },
  ];
  return (
    <section class="list-page" aria-labelledby="nodes-title">
      <h1 id="nodes-title">
        Nodes <span class="quiet">{count(rows.length)}</span>
      </h1>
      <Table label="Nodes" columns={columns} rows={rows} keyOf={(node) => node.name} hrefOf={(node) => nodeHref(node.name)} empty="No node is found." sortBy={0} />
    </section>
  );
}

export function podColumns(now: number): Column<PodRow>[] {
  return [
    { title: "Namespace", grow: 1.2, rank: 3, cell: (pod) => pod.ns, sort: (pod) => pod.ns },
    { title: "Pod", grow: 2.6, cell: (pod) => <a href={podHref(keyOf(pod))} title={keyOf(pod)}>{pod.name}</a>, sort: (pod) => pod.name },
    { title: "Status", grow: 1.2, rank: 1, cell: (pod) => <span class={pod.phase === "Failed" ? "bad" : pod.node ? "" : "warn"}>{statusOf(pod)}</span>, sort: statusOf },
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
