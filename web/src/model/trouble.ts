// Is anything wrong, where, since when, and what to do about it: what the page says first. Worst first, in words; each with the command that goes on.
import type { Cluster, NodeState } from "./cluster";
import { count, counted, some } from "./format";
import { gangOf, whyWords } from "./gangs";
import { type Group, askedWords, byReason } from "./reasons";
import { type PodRow, keyOf, workloadName } from "./rows";

export type Level = "bad" | "warn" | "note";
export interface Trouble {
  key: string;
  level: Level;
  what: string;
  /** What else is known of it. */
  more?: string;
  /** Seconds since 1970. */
  since?: number | undefined;
  /** Where it is on this page. */
  href: string;
  command: string;
}

/** Seconds that starting and placing may take before somebody should look. */
const kStart = 120;
const kPlace = 60;

const found = (view: string, search: string) => `#/${view}?search=${encodeURIComponent(search)}`;
const byNumber = new Intl.Collator("en", { numeric: true });
const namesOf = (nodes: NodeState[]) => some(nodes.map((one) => one.name).sort(byNumber.compare));
const earliest = (times: (number | undefined)[]): number | undefined => {
  const known = times.filter((one): one is number => one !== undefined && one > 0);
  return known.length > 0 ? Math.min(...known) : undefined;
};
const are = (n: number, one: string) => `${counted(n, one)} ${n === 1 ? "is" : "are"}`;

/** `now`: milliseconds. Levels in order, within one the gravest kind first. */
export function troublesOf(cluster: Cluster, now: number): Trouble[] {
  const nodes = [...cluster.nodes.values()].filter((node) => node.row);
  const placed = placedGangs(cluster);
  const out = [
    ...lostNodes(nodes),
    ...ailing(cluster, now / 1000),
    ...gangs(cluster, placed),
    ...pending(cluster, now / 1000, placed),
    ...pressed(nodes),
    ...budgets(cluster),
    ...cordoned(nodes),
  ];
  const order: Level[] = ["bad", "warn", "note"];
  return order.flatMap((level) => out.filter((one) => one.level === level));
}

function lostNodes(nodes: NodeState[]): Trouble[] {
  const zones = new Map<string, { all: number; lost: NodeState[] }>();
  for (const node of nodes) {
    let zone = zones.get(node.zone);
    if (!zone) zones.set(node.zone, (zone = { all: 0, lost: [] }));
    ++zone.all;
    if (!node.row?.ready) zone.lost.push(node);
  }
  const hit = [...zones].filter(([, zone]) => zone.lost.length > 0);
  if (hit.length > 1 && hit.length === zones.size && hit.every(([, zone]) => zone.lost.length === zone.all))
    return [lost(nodes, "No node of the cluster is ready", "status:NotReady", "kubectl get nodes -o wide")];
  return hit
    .map(([name, { all, lost: gone }]) => {
      const first = gone[0]!;
      const command = gone.length === 1 ? `kubectl describe node ${first.name}` : name ? "kubectl get nodes -L topology.kubernetes.io/zone" : "kubectl get nodes -o wide";
      if (all > 1 && gone.length === all && zones.size > 1) return lost(gone, `Zone ${name || "none"} is lost: none of its ${count(all)} nodes is ready`, `status:NotReady zone:${name}`, command);
      const where = name ? ` in zone ${name}` : "";
      const what = gone.length === 1 ? `Node ${first.name}${where} is not ready` : `${counted(gone.length, "node")} of ${count(all)}${where} are not ready: ${namesOf(gone)}`;
      return lost(gone, what, gone.length === 1 ? first.name : `status:NotReady${name ? ` zone:${name}` : ""}`, command);
    })
    .sort((a, b) => b.weight - a.weight);
}

function lost(nodes: NodeState[], what: string, search: string, command: string): Trouble & { weight: number } {
  const pods = nodes.reduce((sum, node) => sum + node.pods.size, 0);
  const why = nodes.find((node) => node.row?.why)?.row?.why ?? "";
  const href = nodes.length === 1 ? `#/node/${encodeURIComponent(nodes[0]!.name)}` : found("nodes", search);
  return { key: `nodes ${search}`, level: "bad", what, more: [pods > 0 ? `${are(pods, "pod")} on ${nodes.length === 1 ? "it" : "them"}` : "", why.replace(/\.$/, "")].filter((one) => one).join(". "), since: earliest(nodes.map((node) => node.row?.since)), href, command, weight: nodes.length };
}

/** Pods of one workload with one complaint are one trouble. */
function ailing(cluster: Cluster, now: number): Trouble[] {
  const groups = new Map<string, { complaint: string; pods: PodRow[] }>();
  for (const pod of cluster.ailing.values()) {
    const complaint = complaintOf(pod, cluster, now);
    if (!complaint) continue;
    const key = `${complaint} ${workloadName(pod)}`;
    const group = groups.get(key);
    if (group) group.pods.push(pod);
    else groups.set(key, { complaint, pods: [pod] });
  }
  return [...groups].sort(([, a], [, b]) => b.pods.length - a.pods.length).map(([key, { complaint, pods }]) => ofAiling(key, complaint, pods));
}

/** Empty: it may yet come right by itself, or another trouble says it. */
function complaintOf(pod: PodRow, cluster: Cluster, now: number): string {
  if (pod.phase === "Failed") return pod.disruption || pod.reason === "Evicted" ? "" : "failed";
  if (!cluster.nodes.get(pod.node ?? "")?.row?.ready) return "";
  if (pod.waiting) return pod.waiting;
  if (now - (pod.unready ?? now) < kStart) return "";
  return pod.phase === "Running" ? "not ready" : "not started";
}

function ofAiling(key: string, complaint: string, pods: PodRow[]): Trouble {
  const first = pods[0]!;
  const n = pods.length;
  const restarts = pods.reduce((sum, pod) => sum + (pod.restarts ?? 0), 0);
  const ended = pods.find((pod) => pod.ended)?.ended;
  const words: Record<string, string> = {
    failed: n === 1 ? "1 pod has failed" : `${count(n)} pods have failed`,
    "not ready": n === 1 ? "1 pod runs and is not ready" : `${count(n)} pods run and are not ready`,
    "not started": n === 1 ? "1 pod has a node and does not start" : `${count(n)} pods have a node and do not start`,
  };
  const more = [restarts > 0 ? counted(restarts, "restart") : "", ended ? `the last ended with ${ended}` : "", complaint === "failed" ? first.reason ?? "" : ""].filter((one) => one).join(", ");
  const crashes = complaint === "CrashLoopBackOff" || complaint === "failed";
  const status = words[complaint] === undefined ? ` status:${complaint}` : complaint === "failed" ? " status:Failed" : "";
  return {
    key: `pods ${key}`,
    level: words[complaint] === undefined ? "bad" : "warn",
    what: `${workloadName(first)}: ${words[complaint] ?? `${are(n, "pod")} in ${complaint}`}`,
    more,
    since: earliest(pods.map((pod) => pod.unready)),
    href: n === 1 ? `#/pod/${encodeURIComponent(first.ns)}/${encodeURIComponent(first.name)}` : found("pods", `ns:${first.ns} ${first.workload ? `workload:${first.workload}` : `pod:${first.name}`}${status}`),
    command: crashes ? `kubectl logs -n ${first.ns} ${first.name}${complaint === "failed" ? "" : " --previous"}` : `kubectl describe pod -n ${first.ns} ${first.name}`,
  };
}

/** Of those that have pods without a node: the ones that have pods with one, too. */
function placedGangs(cluster: Cluster): Set<string> {
  const out = new Set<string>();
  if (![...cluster.pending.values()].some((pod) => pod.gang)) return out;
  for (const node of cluster.nodes.values()) for (const pod of node.pods) if (pod.gang) out.add(gangOf(pod));
  return out;
}

/** Gangs of which nobody has a node: placing one of them is no help. */
function gangs(cluster: Cluster, placed: Set<string>): Trouble[] {
  const waiting = new Map<string, PodRow[]>();
  for (const pod of cluster.pending.values()) if (pod.gang && !pod.deleting && !placed.has(gangOf(pod))) waiting.set(gangOf(pod), [...(waiting.get(gangOf(pod)) ?? []), pod]);
  return [...waiting].map(([name, pods]) => {
    const first = pods[0]!;
    return { key: `gang ${name}`, level: "bad", what: `Gang ${name}: none of its ${counted(pods.length, "pod")} has a node`, more: more(cluster, name, pods), since: earliest(pods.map((pod) => pod.created)), href: found("pending", `ns:${first.ns} gang:${first.gang ?? ""}`), command: cluster.groups.has(name) ? `berth explain podgroup ${first.gang ?? ""} -n ${first.ns}` : explain(first) };
  });
}

function more(cluster: Cluster, name: string, pods: PodRow[]): string {
  return whyWords({ name, row: cluster.groups.get(name), waiting: pods, placed: 0 });
}

const explain = (pod: PodRow) => `berth explain pod ${pod.name} -n ${pod.ns}`;

function pending(cluster: Cluster, now: number, placed: Set<string>): Trouble[] {
  const gated: PodRow[] = [];
  const others: PodRow[] = [];
  for (const pod of cluster.pending.values()) {
    if (pod.deleting || (pod.gang && !placed.has(gangOf(pod)))) continue;
    if (pod.reason === "SchedulingGated") gated.push(pod);
    else if (pod.message || now - (pod.created ?? now) > kPlace) others.push(pod);
  }
  const out = byReason(others).map((group) => ofPending(group, now));
  if (gated.length > 0) out.push({ key: "gated", level: "note", what: `${counted(gated.length, "pod")} ${gated.length === 1 ? "waits for its" : "wait for their"} scheduling gates`, since: earliest(gated.map((pod) => pod.created)), href: found("pending", "status:SchedulingGated"), command: `kubectl get pod -n ${gated[0]!.ns} ${gated[0]!.name} -o yaml` });
  return out;
}

function ofPending({ reason, pods, oldest }: Group, now: number): Trouble {
  const first = pods.reduce((a, b) => ((b.created ?? Infinity) < (a.created ?? Infinity) ? b : a));
  return {
    key: `pending ${reason}`,
    level: now - oldest > kPlace ? "bad" : "warn",
    what: `${counted(pods.length, "pod")} ${pods.length === 1 ? "has" : "have"} no node: ${reason}`,
    more: askedWords(first.message),
    since: Number.isFinite(oldest) ? oldest : undefined,
    href: pods.length === 1 ? `#/pod/${encodeURIComponent(first.ns)}/${encodeURIComponent(first.name)}` : "#/pending",
    command: explain(first),
  };
}

function pressed(nodes: NodeState[]): Trouble[] {
  const kinds = new Map<string, NodeState[]>();
  for (const node of nodes) for (const kind of node.row?.pressure ?? []) kinds.set(kind, [...(kinds.get(kind) ?? []), node]);
  return [...kinds].map(([kind, hit]) => ({
    key: `pressure ${kind}`,
    level: "warn",
    what: `${kind} on ${hit.length === 1 ? `node ${hit[0]!.name}` : `${counted(hit.length, "node")}: ${namesOf(hit)}`}`,
    since: earliest(hit.map((node) => node.row?.pressed)),
    href: hit.length === 1 ? `#/node/${encodeURIComponent(hit[0]!.name)}` : found("nodes", `status:${kind}`),
    command: `kubectl describe node ${hit[0]!.name}`,
  }));
}

function budgets(cluster: Cluster): Trouble[] {
  const spent = [...cluster.budgets.values()].filter((one) => (one.expected ?? 0) > 0 && !one.allowed);
  const broken = spent.filter((one) => (one.healthy ?? 0) < (one.desired ?? 0));
  const kept = spent.filter((one) => !broken.includes(one));
  const tell = (list: typeof spent, level: Level, what: string, more: string): Trouble[] => {
    const first = list[0];
    if (!first) return [];
    return [{ key: `budgets ${level}`, level, what, more, since: earliest(list.map((one) => one.since)), href: "#/budgets", command: list.length === 1 ? `kubectl describe pdb -n ${first.ns} ${first.name}` : "kubectl get pdb -A" }];
  };
  const names = (list: typeof spent) => some(list.map(keyOf));
  const below = some(broken.map((one) => `${keyOf(one)} has ${one.healthy ?? 0} healthy of ${one.desired ?? 0} wanted`));
  return [
    ...tell(broken, "bad", broken.length === 1 ? `Budget ${below}` : `${counted(broken.length, "budget")} have too few healthy pods: ${below}`, "evictions are refused"),
    ...tell(kept, "warn", kept.length === 1 ? `Budget ${names(kept)} allows no disruption` : `${counted(kept.length, "budget")} allow no disruption: ${names(kept)}`, "a drain will wait for it"),
  ];
}

function cordoned(nodes: NodeState[]): Trouble[] {
  const hit = nodes.filter((node) => node.row?.cordoned && node.row.ready);
  if (hit.length === 0) return [];
  return [{ key: "cordoned", level: "note", what: `${are(hit.length, "node")} cordoned: ${namesOf(hit)}`, href: found("nodes", "status:SchedulingDisabled"), command: `kubectl uncordon ${hit[0]!.name}` }];
}

/** "3 things are wrong, 1 to watch"; empty: nothing is. Notes do not count. */
export function headline(troubles: Trouble[]): string {
  const bad = troubles.filter((one) => one.level === "bad").length;
  const warn = troubles.filter((one) => one.level === "warn").length;
  const parts = [bad > 0 ? `${count(bad)} ${bad === 1 ? "thing is" : "things are"} wrong` : "", warn > 0 ? `${count(warn)} to watch` : ""];
  return parts.filter((one) => one).join(", ");
}

/** The calm sentence, of what was looked at. */
export function allWell(cluster: Cluster): string {
  const nodes = [...cluster.nodes.values()].filter((node) => node.row).length;
  const running = [...cluster.nodes.values()].reduce((sum, node) => sum + node.pods.size, 0);
  const budgetCount = cluster.budgets.size;
  return [
    nodes === 1 ? "The node is ready" : `All ${count(nodes)} nodes are ready`,
    `${counted(running, "pod")} ${running === 1 ? "has its node" : "have their nodes"} and nobody waits`,
    ...(budgetCount > 0 ? [`${budgetCount === 1 ? "the disruption budget has" : `all ${count(budgetCount)} disruption budgets have`} room`] : []),
  ].join(", ");
}
