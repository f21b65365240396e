// Questions and answers of what-if (docs/what-if.md), and the answer as a cluster to draw.
import type { Cluster, NodeState as ClusterNode } from "./cluster";
import { count, counted, some } from "./format";
import { refusalOf } from "./reasons";
import { type PodRow, keyOf } from "./rows";

export type Change = Record<string, unknown>;

export interface Move {
  pod: string;
  from?: string;
  to: string;
  reason?: string;
  when?: string;
}
export interface Waiting {
  pod: string;
  reason?: string;
  message?: string;
  before?: boolean;
}
export interface Eviction {
  pod: string;
  node?: string;
  outcome?: string;
  reason?: string;
  budget?: string;
  by?: string;
}
export interface Share {
  pods?: number;
  cpu?: number;
  memory?: number;
}
export interface NodeChange {
  name: string;
  zone?: string;
  state?: string;
  before?: Share;
  after?: Share;
}
export interface BudgetChange {
  budget: string;
  broken?: boolean;
  blocks?: unknown;
}
export interface Loss {
  lost?: string;
  moves?: number;
  pendingCount?: number;
  lostPodsCount?: number;
  blockedCount?: number;
  broken?: string[];
}
export interface Answer {
  summary?: Record<string, number>;
  moves?: Move[];
  pending?: Waiting[];
  evictions?: Eviction[];
  nodes?: NodeChange[];
  zones?: NodeChange[];
  budgets?: BudgetChange[];
  each?: Loss[];
  eachCount?: number;
  eachPending?: number;
  /** The same changes, played with pods that arrive in other orders. */
  orders?: { tried: number; pendingLeast: number; pendingMost: number; undecided: { pods: string }[] };
  notes?: string[];
  /** The moment that the answer is of: the newest revision among the objects, and when they were read. */
  of?: { revision?: string; newest?: string; asked?: string };
  /** What the answer speaks of, as the server saw it. */
  seen?: { kind: string; name: string; uid?: string }[];
}

/** One change in words. */
export function describe(change: Change): string {
  const of = (key: string) => (typeof change[key] === "string" ? (change[key] as string) : JSON.stringify(change[key]));
  if ("drain" in change) return `drain ${of("drain")}`;
  if ("fail" in change) return `lose ${of("fail")}`;
  if ("remove" in change) return `remove ${of("remove")}`;
  if ("cordon" in change) return `cordon ${of("cordon")}`;
  if ("scale" in change) return `scale ${of("scale")} to ${of("replicas")}`;
  if ("add" in change) return `add ${of("count")} × ${of("add")}`;
  if ("evict" in change) return `evict ${of("evict")}`;
  return JSON.stringify(change);
}

export interface Verdict {
  isGood: boolean;
  /** What was asked for, in a sentence. */
  sentence: string;
  /** What else happens, the worst first. */
  more: string[];
}

/** The answer in a sentence: whether anything is left without a place, then what it takes. */
export function verdictOf(answer: Answer): Verdict {
  const n = (key: string) => answer.summary?.[key] ?? 0;
  const bad = [
    n("pending") > 0 ? `${counted(n("pending"), "pod")} ${n("pending") === 1 ? "stays" : "stay"} without a node${because(answer)}` : "",
    n("lost") > 0 ? `${counted(n("lost"), "pod")} ${n("lost") === 1 ? "is" : "are"} lost for good` : "",
    n("budgetsBroken") > 0 ? `${counted(n("budgetsBroken"), "budget")} ${n("budgetsBroken") === 1 ? "is" : "are"} broken (${some((answer.budgets ?? []).filter((one) => one.broken).map((one) => one.budget))})` : "",
    n("blocked") > 0 ? `${counted(n("blocked"), "eviction")} ${n("blocked") === 1 ? "is" : "are"} refused by a budget` : "",
    n("preempted") > 0 ? `${counted(n("preempted"), "pod")} ${n("preempted") === 1 ? "is" : "are"} preempted` : "",
  ].filter((one) => one);
  const else_ = [
    ordersOf(answer),
    n("moves") > 0 ? `${counted(n("moves"), "pod")} ${n("moves") === 1 ? "moves" : "move"}` : "",
    n("placed") > 0 ? `${counted(n("placed"), "new or waiting pod")} ${n("placed") === 1 ? "gets its node" : "get their nodes"}` : "",
    n("deleted") > 0 ? `${counted(n("deleted"), "pod")} ${n("deleted") === 1 ? "is" : "are"} deleted` : "",
    n("pendingBefore") > 0 ? `${counted(n("pendingBefore"), "pod")} had no node before, and still ${n("pendingBefore") === 1 ? "has" : "have"} none` : "",
  ].filter((one) => one);
  if (answer.eachCount !== undefined) return verdictOfEach(answer, [...bad, ...else_]);
  if (bad.length > 0) return { isGood: false, sentence: `${bad[0]}.`, more: [...bad.slice(1), ...else_] };
  return { isGood: true, sentence: n("moves") + n("placed") + n("deleted") === 0 ? "Nothing has to move, and every budget is kept." : "Every pod finds a place, and every budget is kept.", more: else_ };
}

/** What depends on the order in which pods arrive; empty where nothing does. */
function ordersOf(answer: Answer): string {
  const orders = answer.orders;
  if (orders === undefined || orders.undecided.length === 0) return "";
  const range = orders.pendingLeast === orders.pendingMost ? count(orders.pendingLeast) : `${count(orders.pendingLeast)} to ${count(orders.pendingMost)}`;
  return `the order of arrival decides who stays pending: ${range} in ${count(orders.tried)} orders that were played (${some(orders.undecided.map((one) => one.pods))})`;
}

function verdictOfEach(answer: Answer, more: string[]): Verdict {
  const all = answer.eachCount ?? 0;
  const leaving = answer.each ?? [];
  if (leaving.length === 0) return { isGood: true, sentence: `None of ${count(all)} single losses leaves a pod without a node.`, more };
  const worst = leaving.reduce((a, b) => ((b.pendingCount ?? 0) > (a.pendingCount ?? 0) ? b : a));
  const what = (worst.pendingCount ?? 0) > 0 ? `; the worst is ${worst.lost ?? ""}: ${counted(worst.pendingCount ?? 0, "pod")} without a node` : "";
  return { isGood: false, sentence: `${count(leaving.length)} of ${count(all)} single losses leave something undone${what}.`, more };
}

/** ": Insufficient cpu on 6 of 9 nodes", of the first pod that waits newly. */
function because(answer: Answer): string {
  const first = (answer.pending ?? []).find((one) => !one.before && one.message);
  if (!first?.message) return "";
  const { all, reasons } = refusalOf(first.message);
  const main = reasons[0];
  return main ? ` (${main.text}${all > 0 ? ` on ${count(main.nodes)} of ${count(all)} nodes` : ""})` : "";
}

/** The cluster after the answer. Pods that nobody has seen yet (of a scaled workload) stand there as plain ones. */
export function after(present: Cluster, answer: Answer): Cluster {
  const out = present.fork();
  // A pod that comes back under a new name leaves its old one behind: whoever was evicted, lost or deleted is not there any more.
  for (const one of answer.evictions ?? []) if (one.outcome !== "blocked") out.apply({ gone: "pod", ...split(one.pod) }, 0);
  const siblings = new Map<string, PodRow>();
  for (const pod of present.pods.values()) siblings.set(keyOf({ ns: pod.ns, name: prefix(pod.name) }), pod);
  for (const move of answer.moves ?? []) {
    const { ns, name } = split(move.pod);
    const like = present.pods.get(move.pod) ?? siblings.get(keyOf({ ns, name: prefix(name) }));
    out.apply({ ...(like ?? { kind: "pod" }), kind: "pod", ...split(move.pod), node: move.to, phase: "Running", deleting: false }, 0);
  }
  for (const waiting of answer.pending ?? []) {
    const known = present.pods.get(waiting.pod);
    if (known?.node) out.apply({ gone: "pod", ...split(waiting.pod) }, 0);
    out.apply({ ...known, kind: "pod", ...split(waiting.pod), node: undefined, phase: "Pending", reason: waiting.reason, message: waiting.message }, 0);
  }
  for (const node of answer.nodes ?? []) {
    const row = out.nodes.get(node.name)?.row;
    if (!row) continue;
    if (node.state === "removed") out.apply({ gone: "node", name: node.name }, 0);
    else if (node.state === "failed" || node.state === "lost") out.apply({ ...row, ready: false }, 0);
    else if (node.state === "drained" || node.state === "cordoned") out.apply({ ...row, cordoned: true }, 0);
  }
  return out;
}

/** What of the answer no longer speaks of the cluster as it is: its pods that have gone elsewhere or are others, its nodes that are gone, changed or filled otherwise. In words. */
export function outrun(answer: Answer, before: Cluster, now: Cluster): string[] {
  const out: string[] = [];
  const uids = new Map((answer.seen ?? []).filter((one) => one.kind === "Pod").map((one) => [one.name, one.uid]));
  const pods = [...(answer.evictions ?? []), ...(answer.moves ?? []), ...(answer.pending ?? [])].map((one) => one.pod);
  for (const pod of new Set(pods)) {
    const was = before.pods.get(pod), is = now.pods.get(pod), uid = uids.get(pod);
    if (was && !is) out.push(`pod ${pod} is gone`);
    else if (is?.uid && uid && is.uid !== uid) out.push(`pod ${pod} is another one of that name`);
    else if (is && (is.node ?? "") !== (was?.node ?? "")) out.push(`pod ${pod} is ${is.node ? `on ${is.node}` : "without a node"}`);
    else if (is?.deleting && !was?.deleting) out.push(`pod ${pod} is being deleted`);
  }
  // Where every node was asked whether it takes a pod, every node matters; elsewhere those that the answer names.
  const asksAll = (answer.pending ?? []).length > 0 || answer.each !== undefined;
  const named = [...(answer.nodes ?? []).map((one) => one.name), ...(answer.moves ?? []).flatMap((one) => [one.to, one.from ?? ""])];
  const nodes = new Set(asksAll ? [...before.nodes.keys(), ...now.nodes.keys()] : named);
  for (const name of nodes) {
    const words = nodeChange(before.nodes.get(name), now.nodes.get(name));
    if (words) out.push(`node ${name} ${words}`);
  }
  return out;
}

/** Empty: the node is as it was, for all that an answer depends on. */
function nodeChange(before: ClusterNode | undefined, now: ClusterNode | undefined): string {
  const was = before?.row, is = now?.row;
  if (!was) return is ? "has come" : "";
  if (!is) return "is gone";
  if (!was.ready !== !is.ready) return `is ${is.ready ? "ready" : "not ready"}`;
  if (!was.cordoned !== !is.cordoned) return `is ${is.cordoned ? "cordoned" : "schedulable"}`;
  if (String(was.taints ?? []) !== String(is.taints ?? [])) return "has other taints";
  if (was.cpu !== is.cpu || was.memory !== is.memory || was.gpu !== is.gpu) return "has other amounts";
  const then = before?.used, used = now?.used;
  if (then && used && then.pods !== used.pods) return `has ${used.pods} pods (was: ${then.pods})`;
  return then && used && (then.cpu !== used.cpu || then.memory !== used.memory) ? "has other pods" : "";
}

function split(key: string): { ns: string; name: string } {
  const slash = key.indexOf("/");
  return { ns: key.slice(0, slash), name: key.slice(slash + 1) };
}

function prefix(name: string): string {
  return name.slice(0, name.lastIndexOf("-") + 1) || name;
}
