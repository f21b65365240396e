import assert from "node:assert/strict";
import { test } from "node:test";
import { Cluster } from "./cluster";
import { costsOf } from "./costs";
import type { NodeRow, PodRow } from "./rows";

const node = (more: Partial<NodeRow> = {}): NodeRow => ({ kind: "node", name: "n", cpu: 4000, memory: 8e9, price: 0.4, currency: "USD", pool: "general", ...more });
const pod = (name: string, more: Partial<PodRow> = {}): PodRow => ({ kind: "pod", ns: "shop", name, node: "n", workload: "Deployment/web", cpu: 1000, memory: 4e9, ...more });

test("a node's price is its pods', and what nobody asks for is idle", () => {
  const cluster = new Cluster();
  cluster.apply(node(), 0);
  cluster.apply(pod("a"), 0);
  const costs = costsOf(cluster);
  assert.equal(costs.total, 0.4);
  assert.deepEqual([...costs.pools], [["general", 0.4]]);
  assert.ok(Math.abs((costs.workloads.get("shop/web") ?? 0) - 0.15) < 1e-9);
  assert.ok(Math.abs((costs.workloads.get("(idle)") ?? 0) - 0.25) < 1e-9);
});

test("what was paid follows nodes that come and go, and nothing is kept where no node has a price", () => {
  const cluster = new Cluster();
  cluster.apply({ kind: "node", name: "bare", cpu: 4000 }, 1000);
  assert.equal(cluster.costs.samples.length, 0);
  cluster.apply(node(), 1_000_000);
  cluster.apply({ gone: "node", name: "n" }, 1_000_000 + 1_800_000);
  cluster.apply(node({ name: "later" }), 1_000_000 + 3_600_000);
  assert.ok(Math.abs(cluster.costs.spent("pools", "general", 1_000_000 + 3_600_000) - 0.2) < 1e-9);
});
