import assert from "node:assert/strict";
import { test } from "node:test";
import { Cluster } from "./cluster";
import { pastOf } from "./happenings";
import { byReason, gist, refusalOf } from "./reasons";
import type { BudgetRow, NodeRow, PodRow } from "./rows";
import { allWell, headline, troublesOf } from "./trouble";
import { verdictOf } from "./whatif";

const kNow = 1_000_000;
const node = (name: string, more: Partial<NodeRow> = {}): NodeRow => ({ kind: "node", name, zone: "a", cpu: 4000, ready: true, ...more });
const pod = (name: string, more: Partial<PodRow> = {}): PodRow => ({ kind: "pod", ns: "shop", name, uid: name, phase: "Running", ...more });
const waits = (name: string, message: string, more: Partial<PodRow> = {}): PodRow => pod(name, { phase: "Pending", reason: "Unschedulable", message, created: kNow - 600, ...more });
const budget = (name: string, more: Partial<BudgetRow>): BudgetRow => ({ kind: "budget", ns: "shop", name, expected: 3, desired: 2, healthy: 3, ...more });

function clusterOf(...rows: (NodeRow | PodRow | BudgetRow)[]): Cluster {
  const cluster = new Cluster();
  for (const row of rows) cluster.apply(row, 0);
  return cluster;
}
const told = (cluster: Cluster, now = kNow) => troublesOf(cluster, now * 1000);
const words = (cluster: Cluster, now = kNow) => told(cluster, now).map((one) => `${one.level} ${one.what}`);

test("nothing is wrong: no trouble, and a calm sentence of what was looked at", () => {
  const cluster = clusterOf(node("n1"), node("n2"), pod("p", { node: "n1", ready: true }), budget("web", { allowed: 1 }));
  assert.deepEqual(told(cluster), []);
  assert.equal(headline([]), "");
  assert.equal(allWell(cluster), "All 2 nodes are ready, 1 pod has its node and nobody waits, the disruption budget has room");
});

test("a node that is not ready comes first, with its pods, its words, since when and the command", () => {
  const lost = { ready: false, since: kNow - 720, why: "Kubelet stopped posting node status." };
  const cluster = clusterOf(node("n1"), node("n2", lost), pod("p", { node: "n2", unready: kNow - 700 }), pod("q", { phase: "Pending", created: kNow - 90, reason: "Unschedulable", message: "0/2 nodes are available: 2 Insufficient cpu." }));
  const [first, second] = told(cluster);
  assert.equal(first?.what, "Node n2 in zone a is not ready");
  assert.equal(first?.more, "1 pod is on it. Kubelet stopped posting node status");
  assert.equal(first?.since, kNow - 720);
  assert.equal(first?.href, "#/node/n2");
  assert.equal(first?.command, "kubectl describe node n2");
  assert.equal(second?.what, "1 pod has no node: Insufficient cpu");
  assert.equal(told(cluster).length, 2, "the pods of a dead node are not a trouble of their own");
  cluster.apply(node("n2"), 0);
  assert.deepEqual(words(cluster), ["bad 1 pod has no node: Insufficient cpu", "warn shop/p: 1 pod runs and is not ready"], "ready again: forgotten");
});

test("a zone of which no node is ready is lost; with all zones the cluster is", () => {
  const cluster = clusterOf(node("a1"), node("a2"), node("b2", { zone: "b", ready: false }), node("b10", { zone: "b", ready: false }), node("c1", { zone: "c", ready: false }), node("c2", { zone: "c" }), node("c3", { zone: "c", ready: false }));
  assert.deepEqual(words(cluster), ["bad Zone b is lost: none of its 2 nodes is ready", "bad 2 nodes of 3 in zone c are not ready: c1, c3"]);
  for (const name of ["a1", "a2"]) cluster.apply(node(name, { ready: false }), 0);
  cluster.apply(node("c2", { zone: "c", ready: false }), 0);
  assert.deepEqual(words(cluster), ["bad No node of the cluster is ready"]);
});

test("pods without a node are put together by what stands in the way, and counted", () => {
  const full = (n: number) => `0/9 nodes are available: 1 node(s) were unschedulable, 3 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, ${n} Insufficient cpu. preemption: 0/9 nodes are available: 9 No preemption victims found.`;
  const cluster = clusterOf(node("n"), waits("w1", full(5)), waits("w2", full(4), { created: kNow - 900 }), waits("d", "0/9 nodes are available: 2 node(s) had volume node affinity conflict, 7 node(s) didn't match Pod's node affinity/selector."));
  assert.deepEqual(words(cluster), ["bad 2 pods have no node: Insufficient cpu", "bad 1 pod has no node: volume node affinity conflict"]);
  const first = told(cluster)[0];
  assert.equal(first?.since, kNow - 900);
  assert.equal(first?.command, "berth explain pod w2 -n shop");
  assert.equal(first?.more, "on 4 of 9 nodes; untolerated taint unreachable on 3; unschedulable on 1");
  cluster.apply({ gone: "pod", ns: "shop", name: "d" }, 0);
  assert.equal(words(cluster).length, 1);
});

test("who has just come is given time; a scheduler that never looks is said", () => {
  const young = clusterOf(node("n"), pod("p", { phase: "Pending", created: kNow - 5 }));
  assert.deepEqual(words(young), []);
  assert.deepEqual(words(young, kNow + 60), ["bad 1 pod has no node: the scheduler has not looked at it"]);
  assert.deepEqual(words(clusterOf(node("n"), waits("q", "0/1 nodes are available: 1 Insufficient cpu.", { created: kNow - 5 }))), ["warn 1 pod has no node: Insufficient cpu"]);
  assert.deepEqual(words(clusterOf(node("n"), pod("g", { phase: "Pending", reason: "SchedulingGated", created: kNow - 500 }))), ["note 1 pod waits for its scheduling gates"]);
});

test("a gang of which nobody has a node is one trouble; with one placed its pods wait like others", () => {
  const message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";
  const cluster = clusterOf(node("n"), ...[1, 2, 3].map((i) => waits(`t${i}`, message, { gang: "train" })));
  assert.deepEqual(words(cluster), ["bad Gang shop/train: none of its 3 pods has a node"]);
  cluster.apply(pod("t1", { gang: "train", node: "n" }), 0);
  assert.deepEqual(words(cluster), ["bad 2 pods have no node: Insufficient nvidia.com/gpu"]);
});

test("crashing pods of one workload are one trouble, with how they ended", () => {
  const crash = { node: "n", workload: "Deployment/api", waiting: "CrashLoopBackOff", unready: kNow - 300, restarts: 4, ended: "OOMKilled" };
  const cluster = clusterOf(node("n"), pod("a1", crash), pod("a2", { ...crash, unready: kNow - 400 }), pod("i", { node: "n", phase: "Pending", waiting: "ImagePullBackOff", unready: kNow - 30 }), pod("f", { phase: "Failed", node: "n", workload: "Job/nightly" }));
  const list = told(cluster);
  assert.deepEqual(list.map((one) => `${one.level} ${one.what}`), ["bad shop/api: 2 pods are in CrashLoopBackOff", "bad shop/i: 1 pod is in ImagePullBackOff", "warn shop/nightly: 1 pod has failed"]);
  assert.equal(list[0]?.more, "8 restarts, the last ended with OOMKilled");
  assert.equal(list[0]?.since, kNow - 400);
  assert.equal(list[0]?.command, "kubectl logs -n shop a1 --previous");
  assert.equal(list[1]?.command, "kubectl describe pod -n shop i");
  for (const name of ["a1", "a2"]) cluster.apply(pod(name, { node: "n", workload: "Deployment/api", ready: true, restarts: 4 }), 0);
  cluster.apply({ gone: "pod", ns: "shop", name: "f" }, 0);
  assert.deepEqual(words(cluster), ["bad shop/i: 1 pod is in ImagePullBackOff"]);
  assert.equal(cluster.ailing.size, 1);
});

test("evicted and preempted pods are no failures; a start may take its time", () => {
  const cluster = clusterOf(node("n"), pod("e", { phase: "Failed", reason: "Evicted" }), pod("v", { phase: "Failed", disruption: "PreemptionByScheduler" }), pod("s", { phase: "Pending", node: "n", unready: kNow - 20 }));
  assert.deepEqual(words(cluster), []);
  assert.deepEqual(words(cluster, kNow + 120), ["warn shop/s: 1 pod has a node and does not start"]);
});

test("budgets without room: too few healthy is wrong, none to spare is to be watched, no pods is neither", () => {
  const cluster = clusterOf(node("n"), budget("web", { healthy: 1, since: kNow - 60 }), budget("db", { healthy: 2, desired: 2 }), budget("none", { expected: 0, healthy: 0, desired: 0 }), budget("ok", { allowed: 1 }));
  assert.deepEqual(words(cluster), ["bad Budget shop/web has 1 healthy of 2 wanted", "warn Budget shop/db allows no disruption"]);
  cluster.apply(budget("web", { allowed: 1 }), 0);
  cluster.apply({ gone: "budget", ns: "shop", name: "db" }, 0);
  assert.deepEqual(words(cluster), []);
});

test("pressure is watched, cordoned nodes are told; the headline counts what is wrong and what is to be watched", () => {
  const cluster = clusterOf(node("n1", { pressure: ["MemoryPressure"], pressed: kNow - 60 }), node("n2", { cordoned: true }), node("n3", { ready: false, cordoned: true }), node("n4"));
  assert.deepEqual(words(cluster), ["bad Node n3 in zone a is not ready", "warn MemoryPressure on node n1", "note 1 node is cordoned: n2"]);
  assert.equal(headline(told(cluster)), "1 thing is wrong, 1 to watch");
});

test("a hundred thousand pods are looked at in a blink: only those that ail or wait are", () => {
  const cluster = new Cluster();
  for (let i = 0; i < 5000; ++i) cluster.apply(node(`n${i}`, { zone: `z${i % 3}`, ready: i % 3 !== 1 }), 0);
  let looked = 0;
  for (let i = 0; i < 100_000; ++i) cluster.apply(new Proxy(pod(`p${i}`, { node: `n${i % 5000}`, ready: true }), { get: (row, key) => (++looked, Reflect.get(row, key)) }), 0);
  looked = 0;
  assert.equal(told(cluster)[0]?.what, "Zone z1 is lost: none of its 1,667 nodes is ready");
  assert.equal(looked, 0);
});

test("the scheduler's message is taken apart, what stands in the way first", () => {
  assert.deepEqual(refusalOf("0/4 nodes are available: 1 node(s) had untolerated taint {dedicated: gpu}, 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector. preemption: not eligible").reasons, [
    { nodes: 2, text: "didn't match Pod's node affinity/selector" },
    { nodes: 1, text: "untolerated taint dedicated: gpu" },
    { nodes: 1, text: "unschedulable" },
  ]);
  assert.deepEqual(refusalOf("running PreBind plugin failed"), { all: 0, reasons: [{ nodes: 0, text: "running PreBind plugin failed" }] });
  assert.equal(gist(waits("p", "0/3 nodes are available: 3 Insufficient cpu.")), "Insufficient cpu on 3 of 3 nodes");
  assert.equal(gist(waits("p", "", { deleting: true })), "is being deleted");
  assert.deepEqual(byReason([waits("a", "0/3 nodes are available: 3 Insufficient cpu."), waits("b", "0/3 nodes are available: 2 Insufficient cpu, 1 Too many pods.")]).map((one) => [one.reason, one.pods.length]), [["Insufficient cpu", 2]]);
});

test("the past hour is told to who opens the page now: nodes, placements, events, in order; no more than that", () => {
  const cluster = clusterOf(node("n1", { created: kNow - 3000 }), node("n2", { created: kNow - 90_000, ready: false, since: kNow - 100 }), pod("p", { node: "n1", created: kNow - 210, bound: kNow - 200 }), pod("old", { node: "n1", bound: kNow - 7200 }));
  cluster.apply({ kind: "event", ns: "shop", name: "e", at: kNow - 150, type: "Warning", reason: "BackOff", object: "Pod", on: "p", message: "m" }, 0);
  cluster.apply({ kind: "event", ns: "shop", name: "f", at: kNow - 50, type: "Warning", reason: "FailedScheduling", object: "Pod", on: "q", message: "0/1" }, 0);
  const past = pastOf(cluster, (kNow - 3600) * 1000, kNow * 1000);
  assert.deepEqual(past.map((one) => [one.what, one.pod ?? one.node]), [["node", "n1"], ["placed", "shop/p"], ["warning", "shop/p"], ["node", "n2"], ["refused", "shop/q"]]);
  assert.equal(past[1]?.waited, 10);
  assert.deepEqual(pastOf(cluster, (kNow - 120) * 1000, kNow * 1000).length, 2, "after a lost connection only what was missed");
});

test("what-if: the answer is a sentence, and what is bad stands first in it", () => {
  const bad = verdictOf({ summary: { moves: 18, pending: 3, budgetsBroken: 1, pendingBefore: 1 }, budgets: [{ budget: "shop/web", broken: true }, { budget: "shop/db" }], pending: [{ pod: "a/old", before: true, message: "0/9 nodes are available: 9 Too many pods." }, { pod: "a/new", message: "0/9 nodes are available: 6 Insufficient cpu, 3 node(s) were unschedulable." }] });
  assert.deepEqual(bad, { isGood: false, sentence: "3 pods stay without a node (Insufficient cpu on 6 of 9 nodes).", more: ["1 budget is broken (shop/web)", "18 pods move", "1 pod had no node before, and still has none"] });
  assert.deepEqual(verdictOf({ summary: { moves: 2 } }), { isGood: true, sentence: "Every pod finds a place, and every budget is kept.", more: ["2 pods move"] });
  assert.equal(verdictOf({ summary: {} }).sentence, "Nothing has to move, and every budget is kept.");
  assert.equal(verdictOf({ summary: {}, eachCount: 3, each: [] }).isGood, true);
  const orders = { tried: 4, pendingLeast: 0, pendingMost: 1, undecided: [{ pods: "shop/web" }] };
  assert.equal(verdictOf({ summary: { moves: 2 }, orders }).more[0], "the order of arrival decides who stays pending: 0 to 1 in 4 orders that were played (shop/web)");
  assert.equal(verdictOf({ summary: { moves: 2 }, orders: { ...orders, undecided: [] } }).more.length, 1);
  assert.equal(verdictOf({ summary: {}, eachCount: 3, each: [{ lost: "zone-a", pendingCount: 1 }, { lost: "zone-b", pendingCount: 7 }] }).sentence, "2 of 3 single losses leave something undone; the worst is zone-b: 7 pods without a node.");
});
