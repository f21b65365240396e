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
  cordoned?: boolean;
  taints?: string[];
  pressure?: string[];
  type?: string;
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

export interface GoneRow {
  gone: "node" | "pod" | "event";
  ns?: string;
  name: string;
}

export interface StateRow {
  kind: "state";
  synced: boolean;
  problems: { what: string; message: string; only?: string }[];
}

export type ObjectRow = NodeRow | PodRow | EventRow | GoneRow;
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

/** As kubectl's STATUS column, as far as rows tell. */
export function statusOf(pod: PodRow): string {
  if (pod.deleting) return "Terminating";
  if (pod.phase === "Failed" && pod.reason) return pod.reason;
  if (pod.phase === "Pending" && !pod.node) return pod.reason ?? "Pending";
  return pod.phase ?? "Unknown";
}
