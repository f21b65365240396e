// Why pods have no node, in the scheduler's words ("0/9 nodes are available: 1 node(s) were unschedulable, 8 Insufficient cpu."): taken apart, and
// what stands in the way first. What concerns a few nodes that nobody expects pods on is said last.
import { count } from "./format";
import { type PodRow, shortTaint } from "./rows";

export interface Reason {
  /** How many nodes say so; 0: it is not about nodes. */
  nodes: number;
  text: string;
}
export interface Refusal {
  /** Nodes that were asked; 0: none was. */
  all: number;
  reasons: Reason[];
}

const kRest = /[.,]? ?(?:no new claims to deallocate,? ?)?preemption: /;
/** Nodes that the pod may not use at all: the scheduler asks for this first, and no further. */
const kElsewhere = /^didn't match Pod's node affinity|^didn't match the requested node name|untolerated taint/;
/** Of nodes that are out of order, or another's: so it is meant. */
const kAside = /^unschedulable$|untolerated taint.* (not-ready|unreachable|unschedulable|uninitialized|control-plane|master|[a-z]+-pressure|network-unavailable)\b/;

function rank(text: string): number {
  return kAside.test(text) ? 2 : kElsewhere.test(text) ? 1 : 0;
}

function plain(text: string): string {
  return text
    .replace(/^node\(s\) (had |were )?/, "")
    .replace(/\{([^}]*)\}/g, (_, taint: string) => shortTaint(taint.replace(/: *$/, "")))
    .replace(/\.$/, "");
}

/** The likeliest obstacle first. */
export function refusalOf(message: string): Refusal {
  const text = message.split(kRest)[0] ?? "";
  const match = /^\d+\/(\d+) nodes are available: (.*)$/s.exec(text);
  if (!match) return { all: 0, reasons: [{ nodes: 0, text: plain(text) }] };
  const reasons = (match[2] ?? "").split(/, (?=\d+ )/).map((part): Reason => {
    const counted = /^(\d+) (.*)$/s.exec(part);
    return { nodes: Number(counted?.[1] ?? 0), text: plain(counted?.[2] ?? part) };
  });
  reasons.sort((a, b) => rank(a.text) - rank(b.text) || b.nodes - a.nodes);
  return { all: Number(match[1]), reasons };
}

/** By which pods are put together: the main reason, without numbers. */
export function mainReason(pod: PodRow): string {
  if (pod.deleting) return "is being deleted";
  if (!pod.message) return pod.reason ?? (pod.scheduler ? `${pod.scheduler} has not looked at it` : "the scheduler has not looked at it");
  return refusalOf(pod.message).reasons[0]?.text || pod.message;
}

/** Beside the main reason: "on 8 of 9 nodes; unschedulable on 1". Empty: no node was asked. */
export function askedWords(message: string | undefined): string {
  const { all, reasons } = refusalOf(message ?? "");
  return all === 0 ? "" : reasons.map((one, i) => (i === 0 ? `on ${count(one.nodes)} of ${count(all)} nodes` : `${one.text} on ${count(one.nodes)}`)).join("; ");
}

/** "Insufficient cpu on 8 of 9 nodes; unschedulable on 1" */
export function gist(pod: PodRow): string {
  return pod.deleting ? mainReason(pod) : `${mainReason(pod)} ${askedWords(pod.message)}`.trim();
}

export interface Group {
  reason: string;
  pods: PodRow[];
  /** Of the pod that waits longest. */
  oldest: number;
}

/** Pods by their main reason, the most first. */
export function byReason(pods: Iterable<PodRow>): Group[] {
  const groups = new Map<string, Group>();
  for (const pod of pods) {
    const reason = mainReason(pod);
    let group = groups.get(reason);
    if (!group) groups.set(reason, (group = { reason, pods: [], oldest: Infinity }));
    group.pods.push(pod);
    group.oldest = Math.min(group.oldest, pod.created ?? Infinity);
  }
  return [...groups.values()].sort((a, b) => b.pods.length - a.pods.length);
}
