// What nodes cost, by pool and by workload, and how that went: a node's price is its pods', by their share of it, and what nobody asks for is idle
// (src/pools/ledger.h has the same rule).
import type { Cluster, NodeState } from "./cluster";
import { type PodRow, workloadName } from "./rows";

export const kIdle = "(idle)";
const kMostSamples = 720;

export interface Costs {
  /** Of an hour. */
  total: number;
  currency: string;
  pools: Map<string, number>;
  workloads: Map<string, number>;
}

/** Of a node with GPUs, which are what it is bought for, the share of these; else the mean of the shares of cpu and memory. */
function share(pod: PodRow, node: NodeState): number {
  const row = node.row;
  if (!row) return 0;
  const of = (part: number | undefined, whole: number | undefined) => (whole ? (part ?? 0) / whole : 0);
  return row.gpu ? of(pod.gpu, row.gpu) : (of(pod.cpu, row.cpu) + of(pod.memory, row.memory)) / 2;
}

export function costsOf(cluster: Cluster): Costs {
  const out: Costs = { total: 0, currency: "", pools: new Map(), workloads: new Map() };
  const add = (to: Map<string, number>, name: string, amount: number) => to.set(name, (to.get(name) ?? 0) + amount);
  for (const node of cluster.nodes.values()) {
    const price = node.row?.price ?? 0;
    if (price <= 0) continue;
    out.total += price;
    out.currency = node.row?.currency ?? out.currency;
    add(out.pools, node.row?.pool ?? node.row?.type ?? "", price);
    const shares = [...node.pods].map((pod) => [workloadName(pod), share(pod, node)] as const);
    const used = shares.reduce((sum, [, one]) => sum + one, 0);
    for (const [name, one] of shares) add(out.workloads, name, (price * one) / Math.max(1, used));
    add(out.workloads, kIdle, price * Math.max(0, 1 - used));
  }
  return out;
}

/** Samples at an even pace; of a long time fewer, further apart. */
export class CostCourse {
  samples: { at: number; costs: Costs }[] = [];
  private step = 10_000;

  note(cluster: Cluster, at: number): void {
    const last = this.samples[this.samples.length - 1];
    if (last && at < last.at) this.samples = this.samples.filter((one) => one.at <= at);
    if (last && at - last.at < this.step) return;
    this.samples.push({ at, costs: costsOf(cluster) });
    if (this.samples.length <= kMostSamples) return;
    this.samples = this.samples.filter((_, i) => i % 2 === 0);
    this.step *= 2;
  }

  /** What was paid since the first sample, up to `now`. */
  spent(which: "pools" | "workloads", name: string, now: number): number {
    let sum = 0;
    this.samples.forEach((one, i) => {
      const until = this.samples[i + 1]?.at ?? now;
      sum += ((one.costs[which].get(name) ?? 0) * Math.max(0, until - one.at)) / 3_600_000;
    });
    return sum;
  }
  course(which: "pools" | "workloads", name: string): number[] {
    return this.samples.map((one) => one.costs[which].get(name) ?? 0);
  }
}
