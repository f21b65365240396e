// Where each node stands on the map: zones one below the other, nodes in rows, as large as fits.
import type { Cluster, NodeState } from "./cluster";

export interface Zone {
  name: string;
  y: number;
  height: number;
  nodes: NodeState[];
}
export interface Layout {
  width: number;
  height: number;
  /** Of a node's cell, without the gap. */
  cell: number;
  gap: number;
  /** Room below a cell for its node's name; 0 where cells are too small for names. */
  label: number;
  columns: number;
  zones: Zone[];
}

export const zoneHeader = 24;
const zoneGap = 10;
const smallest = 6;
const largest = 128;
const labelFrom = 72;

const byName = new Intl.Collator("en", { numeric: true });

export function zonesOf(cluster: Cluster): Map<string, NodeState[]> {
  const zones = new Map<string, NodeState[]>();
  for (const node of cluster.nodes.values()) {
    if (!node.row) continue;
    const zone = zones.get(node.zone);
    if (zone) zone.push(node);
    else zones.set(node.zone, [node]);
  }
  for (const nodes of zones.values()) nodes.sort((a, b) => byName.compare(a.name, b.name));
  return new Map([...zones].sort((a, b) => byName.compare(a[0], b[0])));
}

/** The largest cells with which all fits `height`; with the smallest ones the map may become higher. */
export function layOut(zones: Map<string, NodeState[]>, width: number, height: number): Layout {
  const place = (cell: number): Layout => {
    const gap = cell >= labelFrom ? 8 : cell >= 24 ? 4 : cell >= 12 ? 2 : 1;
    const label = cell >= labelFrom ? 16 : 0;
    const columns = Math.max(1, Math.floor((width + gap) / (cell + gap)));
    let y = 0;
    const out: Zone[] = [];
    for (const [name, nodes] of zones) {
      const rows = Math.ceil(nodes.length / columns);
      const high = zoneHeader + rows * (cell + gap + label);
      out.push({ name, y, height: high, nodes });
      y += high + zoneGap;
    }
    return { width, height: y, cell, gap, label, columns, zones: out };
  };
  for (let cell = largest; cell > smallest; --cell) {
    const layout = place(cell);
    if (layout.height <= height) return layout;
  }
  return place(smallest);
}

/** The upper left corner of the cell. */
export function positionOf(layout: Layout, zone: Zone, index: number): { x: number; y: number } {
  const step = layout.cell + layout.gap;
  return { x: (index % layout.columns) * step, y: zone.y + zoneHeader + Math.floor(index / layout.columns) * (step + layout.label) };
}

export function nodeAt(layout: Layout, x: number, y: number): NodeState | undefined {
  const step = layout.cell + layout.gap;
  const zone = layout.zones.find((one) => y >= one.y + zoneHeader && y < one.y + one.height);
  const column = Math.floor(x / step);
  if (!zone || column < 0 || column >= layout.columns) return undefined;
  return zone.nodes[Math.floor((y - zone.y - zoneHeader) / (step + layout.label)) * layout.columns + column];
}

/** The neighbour for an arrow key; across zones, too. */
export function neighbour(layout: Layout, from: NodeState | undefined, key: string): NodeState | undefined {
  const all = layout.zones.flatMap((zone) => zone.nodes);
  const at = from ? all.indexOf(from) : -1;
  if (at < 0) return all[0];
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -layout.columns, ArrowDown: layout.columns }[key];
  if (key === "Home") return all[0];
  if (key === "End") return all[all.length - 1];
  return step === undefined ? from : (all[at + step] ?? from);
}
