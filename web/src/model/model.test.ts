import assert from "node:assert/strict";
import { test } from "node:test";
import { Cluster } from "./cluster";
import { Colouring } from "./colours";
import { amount, duration } from "./format";
import { layOut, neighbour, nodeAt, positionOf, zonesOf } from "./layout";
import { parseMetrics, quantile, sum } from "./metrics";
import { type PodRow, taintWords } from "./rows";
import { Search } from "./search";
import { Timeline } from "./timeline";
import { after, describe, outrun } from "./whatif";

function clusterOf(nodes: number, zones: number, pods: number): Cluster {
  const cluster = new Cluster();
  for (let i = 0; i < nodes; ++i) cluster.apply({ kind: "node", name: `node-${i}`, zone: `z${i % zones}`, cpu: 4000, ready: true, taints: i === 0 ? ["gpu=a:NoSchedule"] : undefined }, 0);
  for (let i = 0; i < pods; ++i)
    cluster.apply({ kind: "pod", ns: i % 2 ? "shop" : "bank", name: `web-${i}`, node: `node-${i % nodes}`, cpu: 100, workload: `Deployment/w${i % 3}`, phase: "Running", priority: i % 2 }, 0);
  return cluster;
}

test("search: all words must be found; key:value looks into one field", () => {
  const cluster = clusterOf(4, 2, 8);
  const found = (text: string) => [...cluster.pods.values()].filter((pod) => new Search(text).hasPod(pod, cluster.nodes.get(pod.node ?? ""))).length;
  assert.equal(found(""), 8);
  assert.equal(found("ns:shop"), 4);
  assert.equal(found("ns:shop web-3"), 1);
  assert.equal(found("NODE-1"), 2);
  assert.equal(found("zone:z1"), 4);
  assert.equal(found("taint:gpu"), 2);
  assert.equal(found("unknown:thing"), 0);
  cluster.apply({ kind: "node", name: "node-2", zone: "z0", cpu: 4000, cordoned: true }, 0);
  const nodes = (text: string) => [...cluster.nodes.values()].filter((node) => new Search(text).hasNode(node)).map((node) => node.name);
  assert.deepEqual(nodes("status:notready"), ["node-2"]);
  assert.deepEqual(nodes("status:SchedulingDisabled zone:z1"), []);
  assert.equal([...cluster.nodes.values()].filter((node) => new Search("zone:z0").hasNode(node)).length, 2);
  assert.equal([...cluster.nodes.values()].filter((node) => new Search("ns:shop").hasNode(node)).length, 0);
});

test("layout: everything fits where it can, and cells are found where they are drawn", () => {
  for (const [nodes, zones, width, height] of [[1, 1, 390, 600], [12, 3, 1200, 700], [5000, 3, 1280, 700], [5000, 10, 390, 600]] as const) {
    const cluster = clusterOf(nodes, zones, 0);
    const layout = layOut(zonesOf(cluster), width, height);
    assert.equal(layout.zones.reduce((total, zone) => total + zone.nodes.length, 0), nodes);
    if (width > 400) assert.ok(layout.height <= height, `${nodes} nodes need ${layout.height}`);
    for (const zone of layout.zones)
      for (const i of [0, zone.nodes.length >> 1, zone.nodes.length - 1]) {
        const { x, y } = positionOf(layout, zone, i);
        assert.ok(x + layout.cellWidth <= width);
        assert.equal(nodeAt(layout, x + 1, y + 1), zone.nodes[i]);
      }
    assert.equal(nodeAt(layout, 1, 1), undefined, "the zone's title is no node");
  }
});

test("layout: a handful of nodes takes the width, however many zones they are in", () => {
  for (const [nodes, zones] of [[9, 3], [3, 3], [9, 1], [12, 4]] as const) {
    const layout = layOut(zonesOf(clusterOf(nodes, zones, 0)), 1000, 480);
    const right = Math.max(...layout.zones.flatMap((zone) => zone.nodes.map((_, i) => positionOf(layout, zone, i).x + layout.cellWidth)));
    assert.ok(right > 900 && right <= 1000, `${nodes} in ${zones}: up to ${right}`);
  }
});

test("layout: names in their natural order, arrows go on", () => {
  const cluster = clusterOf(12, 1, 0);
  const layout = layOut(zonesOf(cluster), 300, 300);
  assert.deepEqual(layout.zones[0]?.nodes.slice(1, 4).map((one) => one.name), ["node-1", "node-2", "node-3"]);
  const first = neighbour(layout, undefined, "ArrowRight");
  assert.equal(first?.name, "node-0");
  assert.equal(neighbour(layout, first, "ArrowRight")?.name, "node-1");
  assert.equal(neighbour(layout, first, "ArrowLeft")?.name, "node-0");
  assert.equal(neighbour(layout, first, "End")?.name, "node-11");
  const below = neighbour(layout, first, "ArrowDown");
  assert.equal(below?.name, `node-${layout.columns}`);
  assert.equal(neighbour(layout, below, "ArrowUp")?.name, "node-0");
});

test("colours: by load what is little, half and full is told apart, and dead nodes do not count as loaded", () => {
  const cluster = clusterOf(4, 1, 0);
  [40, 460, 1000].forEach((thousandths, i) => cluster.apply({ kind: "pod", ns: "a", name: `p${i}`, node: `node-${i}`, cpu: 4 * thousandths }, 0));
  cluster.apply({ kind: "node", name: "node-3", zone: "z0", cpu: 4000 }, 0);
  const colouring = new Colouring("load", "cpu");
  colouring.look(cluster, 0);
  assert.deepEqual(colouring.legend.map((one) => one.count), [1, 0, 0, 1, 1]);
  const of = (i: number) => colouring.colourOf(cluster.pods.get(`a/p${i}`)!, cluster.nodes.get(`node-${i}`)!, 0);
  assert.equal(new Set([of(0), of(1), of(2)]).size, 3);
});

test("colours: taints in the legend lose Kubernetes' own prefix, and are found by the whole", () => {
  const cluster = clusterOf(1, 1, 0);
  cluster.apply({ kind: "node", name: "node-0", ready: true, taints: ["node.kubernetes.io/unreachable:NoExecute"] }, 0);
  const colouring = new Colouring("taint");
  colouring.look(cluster, 0);
  assert.equal(colouring.legend[0]?.label, "unreachable:NoExecute");
  assert.equal(colouring.legend[0]?.search, "taint:node.kubernetes.io/unreachable:NoExecute");
});

test("colours: the commonest get colours of their own, and keep them", () => {
  const cluster = clusterOf(3, 1, 60);
  const colouring = new Colouring("workload");
  colouring.look(cluster, 0);
  assert.equal(colouring.legend.length, 6);
  const before = new Map(colouring.legend.map((one) => [one.label, one.colour]));
  assert.equal(new Set(before.values()).size, 6);
  for (let i = 0; i < 50; ++i) cluster.apply({ kind: "pod", ns: "new", name: `x${i}`, node: "node-1", workload: "Job/j" }, 0);
  colouring.look(cluster, 0);
  for (const one of colouring.legend) if (before.has(one.label)) assert.equal(one.colour, before.get(one.label), one.label);
  for (let i = 0; i < 30; ++i) cluster.apply({ kind: "pod", ns: "many", name: `y${i}`, node: "node-1", workload: `Job/j${i}` }, 0);
  colouring.look(cluster, 0);
  assert.equal(colouring.legend.length, 11);
  assert.match(colouring.legend[10]?.label ?? "", /^\d+ others$/);
});

test("colours: a node's trouble is its colour by pressure", () => {
  const cluster = clusterOf(2, 1, 2);
  cluster.apply({ kind: "node", name: "node-0", zone: "z0", cpu: 4000 }, 0);
  const colouring = new Colouring("pressure");
  colouring.look(cluster, 0);
  assert.deepEqual(new Set(colouring.legend.map((one) => one.label)), new Set(["none", "NotReady"]));
});

test("a node's taints are said with each key once, without Kubernetes' own prefix", () => {
  assert.equal(taintWords(["node.kubernetes.io/unreachable:NoSchedule", "dedicated=gpu:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"]), "unreachable:NoSchedule,NoExecute dedicated=gpu:NoSchedule");
  assert.equal(taintWords([]), "");
});

test("amounts are said as people say them", () => {
  assert.equal(amount("cpu", 1500), "1.5");
  assert.equal(amount("cpu", 250), "0.25");
  assert.equal(amount("memory", 3.25 * 2 ** 30), "3.25 Gi");
  assert.equal(amount("memory", 0), "0");
  assert.equal(amount("pods", 110), "110");
  assert.equal(duration(59), "59s");
  assert.equal(duration(3 * 86400), "3d");
});

test("metrics: sums by label, quantiles between two readings", () => {
  const text = (n: number) => `# HELP x y\nq_total{queue="active"} 3\nq_total{queue="gated"} 4 1700000000\nd_bucket{le="0.1"} ${n}\nd_bucket{le="0.2"} ${2 * n}\nd_bucket{le="+Inf"} ${2 * n}\nbroken{\n`;
  const metrics = parseMetrics(text(10));
  assert.equal(sum(metrics, "q_total", { queue: "gated" }), 4);
  assert.equal(sum(metrics, "q_total"), 7);
  assert.equal(quantile(0.5, "d", metrics), 0.1);
  assert.ok(Math.abs((quantile(0.75, "d", metrics) ?? 0) - 0.15) < 1e-9);
  assert.equal(quantile(0.5, "d", metrics, metrics), undefined);
  assert.equal(quantile(0.5, "nothing", metrics), undefined);
});

test("timeline: forth and back gives the same cluster", () => {
  const timeline = new Timeline();
  timeline.rows.push({ kind: "node", name: "n", ready: true, t: 0 });
  for (let i = 0; i < 50_000; ++i) {
    if (i >= 10) timeline.rows.push({ gone: "pod", ns: "a", name: `p${i - 10}`, t: i });
    timeline.rows.push({ kind: "pod", ns: "a", name: `p${i}`, node: "n", t: i });
  }
  const at = (time: number) => {
    timeline.seek(time);
    return [...timeline.cluster.pods.keys()].sort().join();
  };
  const early = at(1000);
  assert.equal(timeline.cluster.pods.size, 10);
  const late = at(49_000);
  assert.equal(at(1000), early);
  assert.equal(at(49_000), late);
  assert.equal(at(0), "a/p0");
  assert.equal(timeline.cluster.nodes.get("n")?.used.pods, 1);
});

test("what-if: the answer is drawn as a cluster", () => {
  const cluster = clusterOf(3, 1, 6);
  const then = after(cluster, {
    evictions: [{ pod: "bank/web-0", node: "node-0", outcome: "evicted" }, { pod: "shop/web-3", node: "node-0", outcome: "blocked" }],
    moves: [{ pod: "bank/web-99", from: "node-0", to: "node-1" }],
    pending: [{ pod: "bank/web-100", reason: "Unschedulable", message: "0/3" }],
    nodes: [{ name: "node-0", state: "cordoned" }],
  });
  assert.equal(then.nodes.get("node-0")?.used.pods, 1, "the blocked one stays");
  assert.equal(then.nodes.get("node-1")?.used.pods, 3);
  assert.equal(then.pods.get("bank/web-99")?.cpu, 100, "as large as its siblings");
  assert.equal(then.pending.size, 1);
  assert.equal(then.nodes.get("node-0")?.row?.cordoned, true);
  assert.equal(cluster.nodes.get("node-0")?.used.pods, 2, "the present stays");
  assert.equal(describe({ scale: "shop/web", replicas: 3 }), "scale shop/web to 3");
});

test("what-if: what has changed since the answer is said", () => {
  const before = clusterOf(3, 1, 6);
  const answer = { moves: [{ pod: "bank/web-0", from: "node-0", to: "node-1" }], nodes: [{ name: "node-0", state: "drained" }] };
  const now = before.fork();
  assert.deepEqual(outrun(answer, before, now), []);
  now.apply({ ...before.pods.get("bank/web-0")!, node: "node-2" }, 0);
  now.apply({ ...before.nodes.get("node-1")!.row!, ready: false }, 0);
  now.apply({ gone: "node", name: "node-0" }, 0);
  now.apply({ gone: "pod", ns: "shop", name: "web-3" }, 0); // Nobody spoke of it.
  assert.deepEqual(outrun(answer, before, now).sort(), ["node node-0 is gone", "node node-1 is not ready", "pod bank/web-0 is on node-2"]);
  // A pod that waits depends on every node: also on one that comes.
  const waits = { pending: [{ pod: "bank/new-1" }] };
  const later = before.fork();
  assert.deepEqual(outrun(waits, before, later), []);
  later.apply({ ...before.nodes.get("node-1")!.row!, name: "node-9" }, 0);
  assert.deepEqual(outrun(waits, before, later), ["node node-9 has come"]);
  assert.deepEqual(outrun(answer, before, later), []);
  // A node that others have filled meanwhile; a pod of the same name that is another one.
  later.apply({ ...before.pods.get("shop/web-3")!, name: "web-77", node: "node-1" }, 0);
  assert.deepEqual(outrun(answer, before, later), [`node node-1 has ${later.nodes.get("node-1")!.used.pods} pods (was: ${before.nodes.get("node-1")!.used.pods})`]);
  const other = before.fork();
  other.apply({ ...before.pods.get("bank/web-0")!, uid: "another" }, 0);
  assert.deepEqual(outrun({ ...answer, seen: [{ kind: "Pod", name: "bank/web-0", uid: "one" }] }, before, other), ["pod bank/web-0 is another one of that name"]);
  now.apply({ gone: "pod", ns: "bank", name: "web-0" }, 0);
  assert.ok(outrun(answer, before, now).includes("pod bank/web-0 is gone"));
});

test("markup in names stays text in every word that is made of it", () => {
  const name = "<img src=x onerror=alert(1)>";
  const cluster = clusterOf(1, 1, 0);
  const pod: PodRow = { kind: "pod", ns: name, name, node: "node-0", workload: name };
  cluster.apply(pod, 0);
  const colouring = new Colouring("workload");
  colouring.look(cluster, 0);
  assert.ok(colouring.legend[0]?.label.includes(name));
});
