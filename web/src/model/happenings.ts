// What happens, told by how rows follow one another: placements, preemptions, evictions, nodes that come and go. And by events where only they tell:
// scaling, descheduling, warnings.
import type { Cluster } from "./cluster";
import type { EventRow, NodeRow, PodRow } from "./rows";
import { keyOf } from "./rows";

export type What = "placed" | "preempted" | "evicted" | "descheduled" | "refused" | "node" | "scaling" | "gone" | "warning";
export const whats: What[] = ["placed", "preempted", "evicted", "descheduled", "refused", "node", "scaling", "gone", "warning"];

export interface Happening {
  /** Milliseconds. */
  at: number;
  what: What;
  text: string;
  /** "ns/name" */
  pod?: string;
  node?: string;
  /** Of a placement: seconds from the pod's creation, as far as it is known (whole seconds). */
  waited?: number;
}

const kMost = 5000;
const kSeconds = 300;

/** The latest happenings, and how many of each there were in each of the last 300 seconds. */
export class Log {
  readonly entries: Happening[] = [];
  /** Of all times. */
  readonly counts = new Map<What, number>();
  /** Seconds of placements: of the latest 2,000. */
  readonly waits: number[] = [];
  private readonly perSecond = new Map<What, Map<number, number>>();

  add(happening: Happening): void {
    this.entries.push(happening);
    if (this.entries.length > kMost * 1.2) this.entries.splice(0, this.entries.length - kMost);
    this.counts.set(happening.what, (this.counts.get(happening.what) ?? 0) + 1);
    let seconds = this.perSecond.get(happening.what);
    if (!seconds) this.perSecond.set(happening.what, (seconds = new Map()));
    const second = Math.floor(happening.at / 1000);
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
    if (seconds.size > kSeconds * 2) for (const one of seconds.keys()) if (one < second - kSeconds) seconds.delete(one);
    if (happening.waited !== undefined) {
      this.waits.push(happening.waited);
      if (this.waits.length > 4000) this.waits.splice(0, 2000);
    }
  }

  /** How many in each of the `length` seconds up to the one of `now`, oldest first. */
  rate(what: What, now: number, length: number): number[] {
    const last = Math.floor(now / 1000);
    const seconds = this.perSecond.get(what);
    return Array.from({ length }, (_, i) => seconds?.get(last - length + 1 + i) ?? 0);
  }

  clear(): void {
    this.entries.length = 0;
    this.waits.length = 0;
    this.counts.clear();
    this.perSecond.clear();
  }
}

const disruptions: Record<string, [What, string]> = {
  PreemptionByScheduler: ["preempted", "makes room for a pod of higher priority"],
  EvictionByEvictionAPI: ["evicted", "evicted through the API"],
  DeletionByTaintManager: ["evicted", "evicted: it does not tolerate a taint"],
  DeletionByPodGC: ["evicted", "its node is gone"],
  TerminationByKubelet: ["evicted", "evicted by its node"],
};

function placed(pod: PodRow, at: number): Happening {
  const waited = pod.bound && pod.created ? Math.max(0, pod.bound - pod.created) : undefined;
  return { at, what: "placed", text: waited === undefined ? "" : `after ${waited} s`, pod: keyOf(pod), node: pod.node, waited };
}

export function ofPod(before: PodRow | undefined, pod: PodRow, at: number): Happening | undefined {
  const key = keyOf(pod);
  if (pod.disruption && pod.disruption !== before?.disruption) {
    const [what, text] = disruptions[pod.disruption] ?? ["evicted", pod.disruption];
    return { at, what, text, pod: key, node: pod.node };
  }
  if (pod.node && !before?.node && pod.phase !== "Succeeded" && pod.phase !== "Failed") return placed(pod, at);
  if (pod.phase === "Failed" && before?.phase !== "Failed" && pod.reason === "Evicted")
    return { at, what: "evicted", text: pod.message ?? "evicted by its node", pod: key, node: pod.node };
  if (!pod.node && pod.reason && pod.reason !== before?.reason) return { at, what: "refused", text: pod.message ?? pod.reason, pod: key };
  return undefined;
}

export function ofGonePod(pod: PodRow, at: number): Happening {
  return { at, what: "gone", text: "is gone", pod: keyOf(pod), node: pod.node };
}

export function ofNode(before: NodeRow | undefined, node: NodeRow, at: number): Happening | undefined {
  const tell = (text: string): Happening => ({ at, what: "node", text, node: node.name });
  if (!before) return tell("has come");
  if (!!before.ready !== !!node.ready) return tell(node.ready ? "is ready" : "is not ready");
  if (!!before.cordoned !== !!node.cordoned) return tell(node.cordoned ? "was cordoned" : "was uncordoned");
  const pressure = (node.pressure ?? []).filter((one) => !before.pressure?.includes(one));
  if (pressure.length > 0) return tell(pressure.join(", "));
  return undefined;
}

const scaling = new Set([
  "TriggeredScaleUp", "NotTriggerScaleUp", "ScaledUpGroup", "ScaleUpFailed", "FailedToScaleUpGroup", "ScaleDown", "ScaleDownEmpty", "ScaleDownFailed",
  "ScalingReplicaSet", "SuccessfulRescale",
]);

export function ofEvent(event: EventRow, at: number): Happening | undefined {
  const reason = event.reason ?? "";
  const on = event.object === "Pod" ? { pod: keyOf({ ns: event.ns, name: event.on ?? "" }) } : event.object === "Node" ? { node: event.on } : {};
  const named = "pod" in on || "node" in on ? "" : `${event.object ?? ""} ${event.on ?? ""}: `;
  const text = `${named}${event.message ?? reason}`;
  if (scaling.has(reason)) return { at, what: "scaling", text, ...on };
  if (/descheduler/i.test(event.source ?? "") || /^Descheduled/.test(reason)) return { at, what: "descheduled", text, ...on };
  if (reason === "Preempted" || reason === "FailedScheduling") return undefined; // The pods themselves tell.
  if (event.type === "Warning") return { at, what: "warning", text: `${reason}: ${text}`, ...on };
  return undefined;
}

/** What events tell of pods that nobody watched meanwhile. */
function ofPastEvent(event: EventRow, at: number): Happening | undefined {
  const pod = event.object === "Pod" ? keyOf({ ns: event.ns, name: event.on ?? "" }) : undefined;
  const text = event.message ?? event.reason ?? "";
  if (pod && event.reason === "Preempted") return { at, what: "preempted", text, pod };
  if (pod && event.reason === "FailedScheduling") return { at, what: "refused", text, pod };
  return ofEvent(event, at);
}

/** What happened from `from` to `to` (milliseconds), as far as the cluster's objects and events still tell: for whoever opens the page only now. In order of time. */
export function pastOf(cluster: Cluster, from: number, to: number): Happening[] {
  const out: Happening[] = [];
  const tell = (happening: Happening | undefined) => {
    if (happening && happening.at >= from && happening.at <= to) out.push(happening);
  };
  for (const { row } of cluster.nodes.values()) {
    if (row?.created) tell({ at: row.created * 1000, what: "node", text: "has come", node: row.name });
    if (row?.since) tell({ at: row.since * 1000, what: "node", text: "is not ready", node: row.name });
    if (row?.pressed) tell({ at: row.pressed * 1000, what: "node", text: (row.pressure ?? []).join(", "), node: row.name });
  }
  for (const pod of cluster.pods.values()) if (pod.bound && pod.node) tell(placed(pod, pod.bound * 1000));
  for (const event of cluster.events.values()) tell(ofPastEvent(event, event.at * 1000));
  return out.sort((a, b) => a.at - b.at);
}
