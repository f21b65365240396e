// Which colour a pod's part of a node has, and what the legend says. Categories get the palette's colours, the commonest first; the rest is grey.
import type { Cluster, NodeState } from "./cluster";
import { type PodRow, type Resource, shortTaint } from "./rows";

export type ColourBy = "load" | "workload" | "gang" | "namespace" | "priority" | "age" | "pressure" | "taint";
export const colourings: ColourBy[] = ["load", "workload", "gang", "namespace", "priority", "age", "pressure", "taint"];

export interface LegendEntry {
  label: string;
  /** Where the label is shortened: the whole. */
  title?: string;
  colour: string;
  count: number;
  /** For the search field; none where the entry is no single value. */
  search?: string;
}

/** Distinguishable on both grounds, and by most who see few colours: Okabe and Ito's, and four more. None is red: red is what is wrong. */
export const palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8c6bb1", "#b2a200", "#5f8d4e", "#2f9aa0", "#8a6a4f"];
export const otherColour = "#8a8f98";
const good = "#2e9e6b";
const noGang = "no gang";
export const badColour = "#d1263b";
const scale = ["#3b6fb6", "#4aa3b5", "#7cc09b", "#d9c85b", "#e08c3f", "#9a5aa8"];
/** How full a node is: from which share on, and the colour. Apart in lightness and in hue. */
const loads: [number, string, string][] = [
  [0.95, "95 % and more", "#e08a00"],
  [0.75, "75 to 95 %", "#a65bc0"],
  [0.5, "50 to 75 %", "#5f6bd0"],
  [0.25, "25 to 50 %", "#2f86c9"],
  [0, "up to 25 %", "#45b3bd"],
];

export class Colouring {
  legend: LegendEntry[] = [];
  private readonly ofCategory = new Map<string, string>();
  private readonly ranks = new Map([...palette, ...scale, ...loads.map(([, , colour]) => colour)].map((colour, i) => [colour, i]));

  /** `resource`: of which load is told. */
  constructor(
    readonly by: ColourBy,
    readonly resource: Resource = "cpu",
  ) {}

  /** Looks at the cluster anew: categories keep their colours while they are among the common ones. */
  look(cluster: Cluster, now: number): void {
    if (this.by === "age") return this.lookAtAges(cluster, now);
    if (this.by === "load") return this.lookAtLoads(cluster);
    const counts = new Map<string, number>();
    const count = (category: string) => counts.set(category, (counts.get(category) ?? 0) + 1);
    for (const node of cluster.nodes.values()) {
      if (!node.row) continue;
      if (this.by === "pressure" || this.by === "taint") count(this.category(undefined, node));
      else for (const pod of node.pods) count(this.category(pod, node));
    }
    const order = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    if (this.by === "priority") return this.lookAtPriorities(order);
    const common = order.slice(0, palette.length);
    const names = new Set(common.map(([name]) => name));
    for (const name of this.ofCategory.keys()) if (!names.has(name)) this.ofCategory.delete(name);
    const taken = new Set(this.ofCategory.values());
    const free = palette.filter((colour) => !taken.has(colour));
    for (const [name] of common) if (!this.ofCategory.has(name)) this.ofCategory.set(name, this.fixedColour(name) ?? free.shift() ?? otherColour);
    this.legend = common.map(([name, n]) => ({
      label: this.by === "taint" ? shortTaint(name) : name,
      title: name,
      colour: this.ofCategory.get(name) ?? otherColour,
      count: n,
      search: this.searchFor(name),
    }));
    const rest = order.slice(palette.length).reduce((sum, [, n]) => sum + n, 0);
    if (rest > 0) this.legend.push({ label: `${order.length - palette.length} others`, colour: otherColour, count: rest });
  }

  colourOf(pod: PodRow, node: NodeState, now: number): string {
    if (this.by === "load") return loadOf(node, this.resource)[2];
    if (this.by === "age") return scale[ageBand(pod, now)] ?? otherColour;
    return this.ofCategory.get(this.category(pod, node)) ?? otherColour;
  }

  /** In which order colours stand in a node, from below. */
  rankOf(colour: string): number {
    return this.ranks.get(colour) ?? this.ranks.size;
  }

  private fixedColour(name: string): string | undefined {
    if (this.by === "pressure") return name === "none" ? good : name === "NotReady" ? badColour : undefined;
    if ((this.by === "taint" && name === "none") || (this.by === "gang" && name === noGang)) return otherColour;
    return undefined;
  }

  private searchFor(name: string): string | undefined {
    if (this.by === "workload") {
      const [workload, ns] = name.split(" · ");
      return ns === undefined ? undefined : `workload:${workload?.replace(/ \(.*/, "") ?? ""} ns:${ns}`;
    }
    if (this.by === "gang") {
      const [ns, gang] = name.split("/");
      return gang === undefined ? undefined : `gang:${gang} ns:${ns ?? ""}`;
    }
    if (this.by === "namespace") return `ns:${name}`;
    if (this.by === "pressure") return name === "none" ? undefined : `status:${name === "cordoned" ? "SchedulingDisabled" : (name.split(" ")[0] ?? "")}`;
    if (this.by === "taint") return name === "none" ? undefined : `taint:${name}`;
    return undefined;
  }

  private category(pod: PodRow | undefined, node: NodeState): string {
    switch (this.by) {
      case "workload":
        return pod ? workloadOf(pod) : "";
      case "gang":
        return pod?.gang ? `${pod.ns}/${pod.gang}` : noGang;
      case "namespace":
        return pod?.ns ?? "";
      case "priority":
        return String(pod?.priority ?? 0);
      case "pressure":
        if (!node.row?.ready) return "NotReady";
        return node.row.pressure?.join(" + ") ?? (node.row.cordoned ? "cordoned" : "none");
      case "taint":
        return node.row?.taints?.[0] ?? "none";
      case "age":
      case "load":
        return "";
    }
  }

  private lookAtPriorities(order: [string, number][]): void {
    this.ofCategory.clear();
    const sorted = order.map(([name, n]) => [Number(name), n] as const).sort((a, b) => a[0] - b[0]);
    sorted.forEach(([value], i) => {
      const at = sorted.length === 1 ? 0 : Math.round((i / (sorted.length - 1)) * (scale.length - 1));
      this.ofCategory.set(String(value), scale[at] ?? otherColour);
    });
    this.legend = sorted
      .map(([value, n]) => ({ label: String(value), colour: this.ofCategory.get(String(value)) ?? otherColour, count: n, search: `priority:${value}` }))
      .reverse()
      .slice(0, 12);
  }

  private lookAtLoads(cluster: Cluster): void {
    const counts = new Map<string, number>();
    for (const node of cluster.nodes.values()) {
      if (!node.row?.ready || !node.row[this.resource]) continue;
      const label = loadOf(node, this.resource)[1];
      counts.set(label, (counts.get(label) ?? 0) + 1);
    }
    this.legend = loads.map(([, label, colour]) => ({ label, colour, count: counts.get(label) ?? 0 }));
  }

  private lookAtAges(cluster: Cluster, now: number): void {
    const counts = scale.map(() => 0);
    for (const node of cluster.nodes.values())
      for (const pod of node.pods) {
        const band = ageBand(pod, now);
        counts[band] = (counts[band] ?? 0) + 1;
      }
    this.legend = counts.map((count, i) => ({ label: ages[i]?.[1] ?? "", colour: scale[i] ?? otherColour, count })).reverse();
  }
}

function loadOf(node: NodeState, resource: Resource): [number, string, string] {
  const fill = node.fill(resource);
  return loads.find(([from]) => fill >= from) ?? loads[loads.length - 1]!;
}

const workloads = new WeakMap<PodRow, string>();

/** "web · shop"; the kind where it is no Deployment: "db (StatefulSet) · shop". */
function workloadOf(pod: PodRow): string {
  let out = workloads.get(pod);
  if (out === undefined) {
    const slash = pod.workload?.indexOf("/") ?? -1;
    const kind = pod.workload?.slice(0, slash);
    out = pod.workload ? `${pod.workload.slice(slash + 1)}${kind === "Deployment" ? "" : ` (${kind})`} · ${pod.ns}` : "no controller";
    workloads.set(pod, out);
  }
  return out;
}

const ages: [number, string][] = [
  [Infinity, "older than 30 days"],
  [30 * 86400, "up to 30 days"],
  [86400, "up to a day"],
  [3600, "up to an hour"],
  [600, "up to 10 minutes"],
  [60, "up to a minute"],
];

function ageBand(pod: PodRow, now: number): number {
  const age = now / 1000 - (pod.created ?? 0);
  let band = 0;
  for (let i = 1; i < ages.length; ++i) if (age <= (ages[i]?.[0] ?? 0)) band = i;
  return band;
}
