import assert from "node:assert/strict";
import { test } from "node:test";
import { Cluster } from "./cluster";
import { Colouring } from "./colours";
import { placedWords, waitingGangs, whyWords } from "./gangs";
import type { ObjectRow, PodRow } from "./rows";
import { Search } from "./search";

const message = "0/1 nodes are available: 1 Insufficient cpu.";
const pod = (name: string, more: Partial<PodRow> = {}): PodRow => ({ kind: "pod", ns: "ml", name, phase: "Pending", gang: "train", created: 10, ...more });
const group = (min: number, more: object = {}): ObjectRow => ({ kind: "group", ns: "ml", name: "train", min, ...more });
function clusterOf(...rows: ObjectRow[]): Cluster {
  const out = new Cluster();
  for (const row of rows) out.apply(row, 0);
  return out;
}
const told = (cluster: Cluster) => waitingGangs(cluster, cluster.pending.values()).map((gang) => `${gang.name}: ${placedWords(gang)}; ${whyWords(gang)}`);

test("a gang is one thing with its members inside, and says why in a member's words", () => {
  const cluster = clusterOf({ kind: "node", name: "n" }, group(3, { message: "pod group is unschedulable" }), pod("a", { message: "pod group is unschedulable" }), pod("b", { message }), pod("c", { message }));
  assert.deepEqual(told(cluster), ["ml/train: 0 of 3 placed; Insufficient cpu on 1 of 1 nodes"]);
  assert.deepEqual(waitingGangs(cluster, cluster.pending.values())[0]?.waiting.map((one) => one.name), ["a", "b", "c"]);
  for (const name of ["a", "b", "c"]) cluster.apply(pod(name, { node: "n", phase: "Running" }), 0);
  assert.deepEqual(told(cluster), []);
  cluster.apply(pod("d", { message }), 0);
  assert.deepEqual(told(cluster), ["ml/train: 3 placed, 1 more waits; Insufficient cpu on 1 of 1 nodes"]);
  cluster.apply({ gone: "group", ns: "ml", name: "train" }, 0);
  assert.deepEqual(told(cluster), ["ml/train: 3 placed, 1 wait; Insufficient cpu on 1 of 1 nodes"]);
});

test("a gang with too few pods waits for pods", () => {
  assert.deepEqual(told(clusterOf(group(3), pod("a"), pod("b"))), ["ml/train: 0 of 3 placed; 2 pods of the 3 that it needs are there: none is tried before"]);
});

test("the more important gang is first, then the elder; pods without one are no gang", () => {
  const cluster = clusterOf(pod("a"), pod("b", { gang: "old", created: 1 }), pod("c", { gang: "urgent", priority: 9 }), { ...pod("single"), gang: undefined } as unknown as ObjectRow);
  assert.deepEqual(waitingGangs(cluster, cluster.pending.values()).map((gang) => gang.name), ["ml/urgent", "ml/old", "ml/train"]);
});

test("the map colours by gang, and the search finds one", () => {
  const cluster = clusterOf({ kind: "node", name: "n" }, pod("a", { node: "n" }), pod("b", { node: "n" }), pod("c", { node: "n", gang: undefined as unknown as string }));
  const colouring = new Colouring("gang");
  colouring.look(cluster, 0);
  assert.deepEqual(colouring.legend.map(({ label, count, search }) => [label, count, search]), [["ml/train", 2, "gang:train ns:ml"], ["no gang", 1, undefined]]);
  const found = new Search("gang:train ns:ml");
  assert.deepEqual([...cluster.pods.values()].filter((one) => found.hasPod(one, undefined)).map((one) => one.name), ["a", "b"]);
});
