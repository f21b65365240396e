// Questions and answers of what-if (docs/what-if.md), and the answer as a cluster to draw.
import type { Cluster, NodeState as ClusterNode } from "./cluster";
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
  pending?: unknown;
  lostPods?: number;
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
