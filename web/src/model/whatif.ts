// Questions and answers of what-if (docs/what-if.md), and the answer as a cluster to draw.
import type { Cluster } from "./cluster";
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

/** What of the answer no longer speaks of the cluster as it is: its pods that have gone elsewhere, its nodes that are gone or other than they were. In words. */
export function outrun(answer: Answer, before: Cluster, now: Cluster): string[] {
  const out: string[] = [];
  const pods = [...(answer.evictions ?? []), ...(answer.moves ?? []), ...(answer.pending ?? [])].map((one) => one.pod);
  for (const pod of new Set(pods)) {
    const was = before.pods.get(pod), is = now.pods.get(pod);
    if (was && !is) out.push(`pod ${pod} is gone`);
    else if (is && (is.node ?? "") !== (was?.node ?? "")) out.push(`pod ${pod} is ${is.node ? `on ${is.node}` : "without a node"}`);
  }
  const nodes = [...(answer.nodes ?? []).map((one) => one.name), ...(answer.moves ?? []).map((one) => one.to)];
  for (const name of new Set(nodes)) {
    const was = before.nodes.get(name)?.row, is = now.nodes.get(name)?.row;
    if (was && !is) out.push(`node ${name} is gone`);
    else if (was && is && !was.ready !== !is.ready) out.push(`node ${name} is ${is.ready ? "ready" : "not ready"}`);
    else if (was && is && !was.cordoned !== !is.cordoned) out.push(`node ${name} is ${is.cordoned ? "cordoned" : "schedulable"}`);
  }
  return out;
}

function split(key: string): { ns: string; name: string } {
  const slash = key.indexOf("/");
  return { ns: key.slice(0, slash), name: key.slice(slash + 1) };
}

function prefix(name: string): string {
  return name.slice(0, name.lastIndexOf("-") + 1) || name;
}
