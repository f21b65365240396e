// Where each node stands on the map: zones below or beside one another, nodes in rows, as large as fits. A handful of nodes takes the whole width.
import type { Cluster, NodeState } from "./cluster";

export interface Zone {
  name: string;
  x: number;
  y: number;
  width: number;
  height: number;
  nodes: NodeState[];
}
export interface Layout {
  width: number;
  height: number;
  /** Of a node's cell, without the gap. */
  cellWidth: number;
  cellHeight: number;
  gap: number;
  /** Room below a cell for its node's name; 0 where cells are too small for names. */
  label: number;
  columns: number;
  zones: Zone[];
}

export const zoneHeader = 24;
const zoneGap = 10;
const zoneGapBeside = 24;
/** Narrower, a zone's title has no room. */
const zoneLeast = 220;
const smallest = 6;
const largest = 190;
const widest = 620;
const labelFrom = 64;
/** Wider cells are no larger to the eye. */
const usefulRatio = 2.2;

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

/** Cells of `cell` height, `beside` zones in a row. */
function place(zones: Map<string, NodeState[]>, width: number, cell: number, beside: number): Layout {
  const zoneWidth = Math.floor((width - (beside - 1) * zoneGapBeside) / beside);
  const gap = cell >= labelFrom ? 8 : cell >= 24 ? 4 : cell >= 12 ? 2 : 1;
  const most = Math.max(1, ...[...zones.values()].map((nodes) => nodes.length));
  const columns = Math.max(1, Math.min(most, Math.floor((zoneWidth + gap) / (cell + gap))));
  const cellWidth = cell < 24 ? cell : Math.max(1, Math.min(widest, Math.floor((zoneWidth + gap) / columns) - gap));
  const label = cell >= 40 && cellWidth >= labelFrom ? 16 : 0;
  const out: Zone[] = [];
  let y = 0;
  let rowHeight = 0;
  for (const [name, nodes] of zones) {
    const column = out.length % beside;
    if (column === 0 && out.length > 0) {
      y += rowHeight + zoneGap;
      rowHeight = 0;
    }
    const high = zoneHeader + Math.ceil(nodes.length / columns) * (cell + gap + label);
    rowHeight = Math.max(rowHeight, high);
    out.push({ name, x: column * (zoneWidth + zoneGapBeside), y, width: zoneWidth, height: high, nodes });
  }
  return { width, height: y + rowHeight + (out.length > 0 ? zoneGap : 0), cellWidth, cellHeight: cell, gap, label, columns, zones: out };
}

/** Which share of the places has a node: rows that end early waste the width. */
function taken(layout: Layout): number {
  let nodes = 0;
  let places = 0;
  for (const zone of layout.zones) {
    nodes += zone.nodes.length;
    places += Math.ceil(zone.nodes.length / layout.columns) * layout.columns;
  }
  return places > 0 ? nodes / places : 1;
}

/** The largest cells with which all fits `height`; with the smallest ones the map may become higher. */
export function layOut(zones: Map<string, NodeState[]>, width: number, height: number): Layout {
  let best: Layout | undefined;
  let bestSize = 0;
  for (let beside = 1; beside <= Math.min(6, zones.size); ++beside) {
    if (beside > 1 && width / beside < zoneLeast) break;
    if (zones.size % beside !== 0 && zones.size < 2 * beside) continue; // A last row with gaps looks like zones that are missing.
    for (let cell = largest; cell > smallest; --cell) {
      const layout = place(zones, width, cell, beside);
      if (layout.height > height) continue;
      const size = Math.min(layout.cellWidth, usefulRatio * cell) * cell * taken(layout);
      if (size > bestSize * 1.05) [best, bestSize] = [layout, size];
    }
  }
  return best ?? place(zones, width, smallest, 1);
}

/** The upper left corner of the cell. */
export function positionOf(layout: Layout, zone: Zone, index: number): { x: number; y: number } {
  return {
    x: zone.x + (index % layout.columns) * (layout.cellWidth + layout.gap),
    y: zone.y + zoneHeader + Math.floor(index / layout.columns) * (layout.cellHeight + layout.gap + layout.label),
  };
}

export function nodeAt(layout: Layout, x: number, y: number): NodeState | undefined {
  const zone = layout.zones.find((one) => x >= one.x && x < one.x + one.width && y >= one.y + zoneHeader && y < one.y + one.height);
  if (!zone) return undefined;
  const column = Math.floor((x - zone.x) / (layout.cellWidth + layout.gap));
  if (column >= layout.columns) return undefined;
  return zone.nodes[Math.floor((y - zone.y - zoneHeader) / (layout.cellHeight + layout.gap + layout.label)) * layout.columns + column];
}

/** The neighbour for an arrow key, across zones, too: left and right in the order of names, up and down to the nearest. */
export function neighbour(layout: Layout, from: NodeState | undefined, key: string): NodeState | undefined {
  const all = layout.zones.flatMap((zone) => zone.nodes.map((node, i) => ({ node, ...positionOf(layout, zone, i) })));
  const at = from ? all.findIndex((one) => one.node === from) : -1;
  const here = all[at];
  if (!here) return all[0]?.node;
  if (key === "Home") return all[0]?.node;
  if (key === "End") return all[all.length - 1]?.node;
  if (key === "ArrowLeft" || key === "ArrowRight") return (all[at + (key === "ArrowLeft" ? -1 : 1)] ?? here).node;
  const sign = key === "ArrowUp" ? -1 : key === "ArrowDown" ? 1 : 0;
  let best = here;
  let bestRank = Infinity;
  if (sign !== 0)
    for (const one of all) {
      const down = sign * (one.y - here.y);
      const rank = down * 10_000 + Math.abs(one.x - here.x);
      if (down > 0 && rank < bestRank) [best, bestRank] = [one, rank];
    }
  return best.node;
}
