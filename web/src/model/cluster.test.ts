import assert from "node:assert/strict";
import { test } from "node:test";
import { Cluster, totals } from "./cluster";
import type { NodeRow, PodRow } from "./rows";

const node = (name: string, more: Partial<NodeRow> = {}): NodeRow => ({ kind: "node", name, zone: "a", cpu: 4000, memory: 1000, pods: 10, ready: true, ...more });
const pod = (name: string, more: Partial<PodRow> = {}): PodRow => ({ kind: "pod", ns: "shop", name, cpu: 1000, memory: 100, phase: "Running", ...more });

function withNews(): Cluster {
  const cluster = new Cluster();
  cluster.apply(node("n1"), 0);
  cluster.tellsNews = true;
  return cluster;
}

test("pods fill their node, and leave it as they came", () => {
  const cluster = withNews();
  cluster.apply(pod("p", { node: "n1" }), 1);
  assert.deepEqual({ ...cluster.nodes.get("n1")?.used }, { cpu: 1000, memory: 100, pods: 1, gpu: 0 });
  assert.equal(cluster.nodes.get("n1")?.fill("cpu"), 0.25);
  cluster.apply(pod("p", { node: "n1", cpu: 3000 }), 2);
  assert.equal(cluster.nodes.get("n1")?.used.cpu, 3000);
  cluster.apply({ gone: "pod", ns: "shop", name: "p" }, 3);
  assert.deepEqual({ ...cluster.nodes.get("n1")?.used }, { cpu: 0, memory: 0, pods: 0, gpu: 0 });
  assert.equal(cluster.pods.size, 0);
});

test("pods that have ended hold nothing and wait for nothing", () => {
  const cluster = withNews();
  cluster.apply(pod("p", { node: "n1" }), 1);
  cluster.apply(pod("p", { node: "n1", phase: "Succeeded" }), 2);
  assert.equal(cluster.nodes.get("n1")?.used.pods, 0);
  cluster.apply(pod("q", { phase: "Failed" }), 2);
  assert.equal(cluster.pending.size, 0);
});

test("a pod on a node that is not there is counted, and the node not drawn", () => {
  const cluster = new Cluster();
  cluster.apply(pod("p", { node: "ghost" }), 1);
  assert.equal(cluster.nodes.get("ghost")?.row, undefined);
  assert.equal(totals(cluster).cpu.used, 0);
  cluster.apply(node("ghost"), 2);
  assert.equal(totals(cluster).cpu.used, 1000);
  cluster.apply({ gone: "node", name: "ghost" }, 3);
  assert.equal(cluster.nodes.get("ghost")?.pods.size, 1);
  cluster.apply({ gone: "pod", ns: "shop", name: "p" }, 4);
  assert.equal(cluster.nodes.has("ghost"), false);
});

test("what happens is told once, with its pod and node", () => {
  const cluster = withNews();
  cluster.apply(pod("p", { phase: "Pending", reason: "Unschedulable", message: "0/1 nodes" }), 1000);
  cluster.apply(pod("p", { phase: "Pending", reason: "Unschedulable", message: "0/2 nodes" }), 1500);
  cluster.apply(pod("p", { node: "n1", created: 10, bound: 14 }), 2000);
  cluster.apply(pod("p", { node: "n1", disruption: "PreemptionByScheduler" }), 3000);
  cluster.apply(pod("p", { node: "n1", disruption: "PreemptionByScheduler", deleting: true }), 3100);
  cluster.apply({ gone: "pod", ns: "shop", name: "p" }, 4000);
  assert.deepEqual(
    cluster.log.entries.map((one) => [one.what, one.pod, one.node]),
    [["refused", "shop/p", undefined], ["placed", "shop/p", "n1"], ["preempted", "shop/p", "n1"], ["gone", "shop/p", "n1"]],
  );
  assert.deepEqual(cluster.log.waits, [4]);
  assert.deepEqual(cluster.log.rate("placed", 2999, 3), [0, 0, 1]);
});

test("what was there already is no news", () => {
  const cluster = new Cluster();
  cluster.apply(node("n1"), 0);
  cluster.apply(pod("p", { node: "n1" }), 0);
  assert.equal(cluster.log.entries.length, 0);
});

test("events tell what objects do not: scaling, descheduling, warnings", () => {
  const cluster = withNews();
  const event = (name: string, reason: string, more = {}) => cluster.apply({ kind: "event", ns: "shop", name, at: 1, reason, object: "Pod", on: "p", message: "m", ...more }, 1);
  event("a", "TriggeredScaleUp");
  event("b", "Evicted", { source: "sigs.k8s.io/descheduler", type: "Warning" });
  event("c", "BackOff", { type: "Warning" });
  event("d", "Scheduled", { type: "Normal" });
  event("c", "BackOff", { type: "Warning" });
  assert.deepEqual(cluster.log.entries.map((one) => one.what), ["scaling", "descheduled", "warning"]);
});

test("a fork is changed alone", () => {
  const cluster = withNews();
  cluster.apply(pod("p", { node: "n1" }), 1);
  const fork = cluster.fork();
  fork.apply({ gone: "pod", ns: "shop", name: "p" }, 2);
  assert.equal(cluster.nodes.get("n1")?.used.pods, 1);
  assert.equal(fork.nodes.get("n1")?.used.pods, 0);
});

test("a hundred thousand pods are applied in a blink", () => {
  const cluster = new Cluster();
  for (let i = 0; i < 5000; ++i) cluster.apply(node(`n${i}`), 0);
  const start = process.cpuUsage().user;
  for (let i = 0; i < 100_000; ++i) cluster.apply(pod(`p${i}`, { node: `n${i % 5000}` }), 0);
  const ms = (process.cpuUsage().user - start) / 1000;
  assert.equal(cluster.nodes.get("n7")?.used.pods, 20);
  assert.ok(ms < 2000, `${ms} ms of processor time`);
});
