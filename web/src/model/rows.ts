// The rows that berth sends: src/dashboard/rows.h says what becomes of an object. What is empty, zero or false is left out.

export interface NodeRow {
  kind: "node";
  name: string;
  zone?: string;
  /** Thousandths of a core. */
  cpu?: number;
  /** Bytes. */
  memory?: number;
  pods?: number;
  gpu?: number;
  ready?: boolean;
  /** Not ready, for nothing is heard of it. */
  unknown?: boolean;
  /** When it stopped being ready, and why, in its own words. */
  since?: number;
  why?: string;
  cordoned?: boolean;
  taints?: string[];
  pressure?: string[];
  /** Since when. */
  pressed?: number;
  type?: string;
  /** Of an hour, of a node of a NodePool. */
  price?: number;
  currency?: string;
  pool?: string;
  /** Seconds since 1970. */
  created?: number;
}

export interface PodRow {
  kind: "pod";
  ns: string;
  name: string;
  uid?: string;
  node?: string;
  phase?: string;
  ready?: boolean;
  cpu?: number;
  memory?: number;
  gpu?: number;
  priority?: number;
  /** "Deployment/web" */
  workload?: string;
  created?: number;
  bound?: number;
  reason?: string;
  message?: string;
  nominated?: string;
  disruption?: string;
  deleting?: boolean;
  restarts?: number;
  scheduler?: string;
  /** Since when it has a node and is not ready. */
  unready?: number;
  /** What a container waits for, beyond its ordinary start: "CrashLoopBackOff". */
  waiting?: string;
  /** How a container ended that was started again. */
  ended?: string;
  /** Its pod group: placed together or not at all. */
  gang?: string;
}

export interface EventRow {
  kind: "event";
  ns?: string;
  name: string;
  at: number;
  type?: string;
  reason?: string;
  object?: string;
  on?: string;
  message?: string;
  source?: string;
  count?: number;
}

export interface BudgetRow {
  kind: "budget";
  ns: string;
  name: string;
  allowed?: number;
  healthy?: number;
  desired?: number;
  expected?: number;
  /** When it began to allow no disruption. */
  since?: number;
  created?: number;
}

/** A group of pods (PodGroup): a gang where it has a minimum. */
export interface GroupRow {
  kind: "group";
  ns: string;
  name: string;
  /** Fewer are never placed. */
  min?: number;
  /** The label in whose domains they stay together. */
  topology?: string;
  priority?: number;
  /** It was placed. */
  scheduled?: boolean;
  reason?: string;
  /** Why it is not placed, since when. */
  message?: string;
  since?: number;
  created?: number;
}

export interface GoneRow {
  gone: "node" | "pod" | "event" | "budget" | "group";
  ns?: string;
  name: string;
}

export interface StateRow {
  kind: "state";
  synced: boolean;
  problems: { what: string; message: string; only?: string }[];
}

export type ObjectRow = NodeRow | PodRow | EventRow | BudgetRow | GroupRow | GoneRow;
export type LiveRow = ObjectRow | StateRow;

export type Resource = "cpu" | "memory" | "pods" | "gpu";
export const resources: Resource[] = ["cpu", "memory", "pods", "gpu"];

export function keyOf(pod: { ns?: string; name: string }): string {
  return `${pod.ns ?? ""}/${pod.name}`;
}

/** Pods that have ended hold nothing. */
export function isOver(pod: PodRow): boolean {
  return pod.phase === "Succeeded" || pod.phase === "Failed";
}

export function amountOf(pod: PodRow, resource: Resource): number {
  return resource === "pods" ? 1 : (pod[resource] ?? 0);
}

/** Something keeps it from doing its work; whether for long, `unready` tells. */
export function isAiling(pod: PodRow): boolean {
  if (pod.deleting) return false;
  return pod.phase === "Failed" || (!isOver(pod) && (pod.waiting !== undefined || pod.unready !== undefined));
}

/** "shop/web", whatever the kind of the workload; of a pod that has none the pod itself. */
export function workloadName(pod: PodRow): string {
  return `${pod.ns}/${pod.workload?.split("/")[1] ?? pod.name}`;
}

/** Taints of Kubernetes' own without its long prefix, which all of them have. */
export function shortTaint(taint: string): string {
  return taint.replace(/^node(-role)?\.kubernetes\.io\//, "");
}

/** "unreachable:NoSchedule,NoExecute dedicated=gpu:NoSchedule": each key once. */
export function taintWords(taints: string[]): string {
  const effects = new Map<string, string[]>();
  for (const taint of taints.map(shortTaint)) {
    const colon = taint.lastIndexOf(":");
    effects.set(taint.slice(0, colon), [...(effects.get(taint.slice(0, colon)) ?? []), taint.slice(colon + 1)]);
  }
  return [...effects].map(([key, list]) => `${key}:${list.join(",")}`).join(" ");
}

/** As kubectl's STATUS column, as far as rows tell. */
export function statusOf(pod: PodRow): string {
  if (pod.deleting) return "Terminating";
  if (pod.phase === "Failed" && pod.reason) return pod.reason;
  if (pod.waiting) return pod.waiting;
  if (pod.phase === "Pending" && !pod.node) return pod.reason ?? "Pending";
  return pod.phase ?? "Unknown";
}

/** As kubectl's STATUS column of nodes, and what presses it. */
export function stateOf(node: NodeRow): string {
  return [node.ready ? "Ready" : "NotReady", ...(node.cordoned ? ["SchedulingDisabled"] : []), ...(node.pressure ?? [])].join(", ");
}
