// The cluster as the page knows it: rows applied one after the other, with what is asked of it all the time kept beside. Live and replayed alike.
import type { BudgetRow, EventRow, GroupRow, NodeRow, ObjectRow, PodRow, Resource } from "./rows";
import { isAiling, isOver, keyOf } from "./rows";
import { CostCourse } from "./costs";
import { type Happening, Log, ofEvent, ofGonePod, ofNode, ofPod } from "./happenings";

const kMostEvents = 2000;

export class NodeState {
  /** Without a row: pods name a node that is not there (any more, or yet). */
  row: NodeRow | undefined;
  readonly pods = new Set<PodRow>();
  readonly used: Record<Resource, number> = { cpu: 0, memory: 0, pods: 0, gpu: 0 };
  constructor(readonly name: string) {}

  /** What is requested of what there is: 0 to 1, more when overcommitted. */
  fill(resource: Resource): number {
    const capacity = this.row?.[resource] ?? 0;
    return capacity > 0 ? this.used[resource] / capacity : 0;
  }
  get zone(): string {
    return this.row?.zone ?? "";
  }
  count(pod: PodRow, sign: 1 | -1): void {
    this.used.cpu += sign * (pod.cpu ?? 0);
    this.used.memory += sign * (pod.memory ?? 0);
    this.used.gpu += sign * (pod.gpu ?? 0);
    this.used.pods += sign;
  }
}

export class Cluster {
  readonly nodes = new Map<string, NodeState>();
  readonly pods = new Map<string, PodRow>();
  /** Without a node, and not over. */
  readonly pending = new Map<string, PodRow>();
  /** Failed, waiting for what does not come, or not ready. */
  readonly ailing = new Map<string, PodRow>();
  readonly events = new Map<string, EventRow>();
  readonly budgets = new Map<string, BudgetRow>();
  readonly groups = new Map<string, GroupRow>();
  /** Rises with every row. */
  version = 0;
  /** Rises when nodes come, go or change zone: what a map's layout depends on. */
  shape = 0;
  /** Names of nodes that changed since somebody (the map) cleared it. */
  readonly dirty = new Set<string>();
  /** False while what already was is being told: that is no news. */
  tellsNews = false;
  readonly costs = new CostCourse();
  /** Nodes that have a price. */
  private priced = 0;

  constructor(readonly log = new Log()) {}

  /** `at`: now, in milliseconds; of a replay, the row's time. */
  apply(row: ObjectRow, at: number): void {
    ++this.version;
    if ("gone" in row) {
      if (row.gone === "pod") this.removePod(keyOf(row), at);
      else if (row.gone === "node") this.removeNode(row.name, at);
      else if (row.gone === "budget") this.budgets.delete(keyOf(row));
      else if (row.gone === "group") this.groups.delete(keyOf(row));
    } else if (row.kind === "pod") this.putPod(row, at);
    else if (row.kind === "node") this.putNode(row, at);
    else if (row.kind === "budget") this.budgets.set(keyOf(row), row);
    else if (row.kind === "group") this.groups.set(keyOf(row), row);
    else this.putEvent(row, at);
    if (at > 0 && (this.priced > 0 || this.costs.samples.length > 0)) this.costs.note(this, at);
  }

  /** A copy that may be changed freely. Its log is empty. */
  fork(): Cluster {
    const out = new Cluster();
    for (const node of this.nodes.values()) if (node.row) out.putNode(node.row, 0);
    for (const pod of this.pods.values()) out.putPod(pod, 0);
    for (const [key, budget] of this.budgets) out.budgets.set(key, budget);
    for (const [key, group] of this.groups) out.groups.set(key, group);
    return out;
  }

  /** To begin anew. The log stays. */
  forget(): void {
    this.nodes.clear();
    this.pods.clear();
    this.pending.clear();
    this.ailing.clear();
    this.events.clear();
    this.budgets.clear();
    this.groups.clear();
    ++this.version;
    this.priced = 0;
    ++this.shape;
    this.tellsNews = false;
  }

  nodeOf(name: string): NodeState {
    let node = this.nodes.get(name);
    if (!node) this.nodes.set(name, (node = new NodeState(name)));
    return node;
  }

  private news(happening: Happening | undefined): void {
    if (happening && this.tellsNews) this.log.add(happening);
  }

  private putNode(row: NodeRow, at: number): void {
    const node = this.nodeOf(row.name);
    if (!node.row || node.row.zone !== row.zone) ++this.shape;
    this.news(ofNode(node.row, row, at));
    this.priced += (row.price ? 1 : 0) - (node.row?.price ? 1 : 0);
    node.row = row;
    this.dirty.add(row.name);
  }

  private removeNode(name: string, at: number): void {
    const node = this.nodes.get(name);
    if (!node?.row) return;
    this.news({ at, what: "node", text: "is gone", node: name });
    if (node.row.price) --this.priced;
    node.row = undefined;
    if (node.pods.size === 0) this.nodes.delete(name);
    ++this.shape;
  }

  private putPod(row: PodRow, at: number): void {
    const key = keyOf(row);
    const before = this.pods.get(key);
    if (before) this.leave(before);
    this.pods.set(key, row);
    if (isAiling(row)) this.ailing.set(key, row);
    else this.ailing.delete(key);
    this.news(ofPod(before, row, at));
    if (isOver(row)) {
      this.pending.delete(key);
      return;
    }
    if (!row.node) {
      this.pending.set(key, row);
      return;
    }
    this.pending.delete(key);
    const node = this.nodeOf(row.node);
    node.pods.add(row);
    node.count(row, 1);
    this.dirty.add(row.node);
  }

  private removePod(key: string, at: number): void {
    const before = this.pods.get(key);
    if (!before) return;
    this.leave(before);
    this.pods.delete(key);
    this.pending.delete(key);
    this.ailing.delete(key);
    this.news(ofGonePod(before, at));
  }

  private leave(pod: PodRow): void {
    if (!pod.node || isOver(pod)) return;
    const node = this.nodes.get(pod.node);
    if (!node?.pods.delete(pod)) return;
    node.count(pod, -1);
    this.dirty.add(node.name);
    if (!node.row && node.pods.size === 0) this.nodes.delete(node.name);
  }

  private putEvent(row: EventRow, at: number): void {
    const key = keyOf(row);
    const isNew = this.events.get(key)?.at !== row.at;
    this.events.delete(key);
    this.events.set(key, row);
    if (isNew) this.news(ofEvent(row, at));
    if (this.events.size > kMostEvents) this.events.delete(this.events.keys().next().value as string);
  }
}

/** What the nodes have and what is asked of them, in all. */
export function totals(cluster: Cluster): Record<Resource, { used: number; capacity: number }> {
  const out = { cpu: { used: 0, capacity: 0 }, memory: { used: 0, capacity: 0 }, pods: { used: 0, capacity: 0 }, gpu: { used: 0, capacity: 0 } };
  for (const node of cluster.nodes.values()) {
    if (!node.row) continue;
    for (const resource of ["cpu", "memory", "pods", "gpu"] as const) {
      out[resource].used += node.used[resource];
      out[resource].capacity += node.row[resource] ?? 0;
    }
  }
  return out;
}
