// The map's pixels, written by hand: five thousand nodes and a hundred thousand pods are repainted in a few milliseconds, and only where they changed.
import type { Cluster, NodeState } from "../model/cluster";
import type { Colouring } from "../model/colours";
import type { What } from "../model/happenings";
import { type Layout, positionOf } from "../model/layout";
import type { Resource } from "../model/rows";
import { amountOf } from "../model/rows";
import type { Search } from "../model/search";

export interface Picture {
  cluster: Cluster;
  layout: Layout;
  resource: Resource;
  colouring: Colouring;
  search: Search;
  isDark: boolean;
  /** Milliseconds since 1970: of ages. */
  now: number;
  /** Nodes to be marked, by why. */
  marks: Map<string, What | "selected">;
}

export const markColours: Record<What | "selected", string> = {
  placed: "#2e9e6b",
  preempted: "#d55e00",
  evicted: "#d1495b",
  descheduled: "#8c6bb1",
  refused: "#b2a200",
  node: "#0072b2",
  scaling: "#0072b2",
  gone: "#8a8f98",
  warning: "#e69f00",
  selected: "#0b66d8",
};

const packed = new Map<string, number>();
/** "#rrggbb" as a pixel. */
function pixel(colour: string): number {
  let value = packed.get(colour);
  if (value === undefined) {
    const rgb = parseInt(colour.slice(1), 16);
    value = (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
    packed.set(colour, value);
  }
  return value;
}
/** Towards the ground: what the search did not find. */
function faded(value: number, ground: number): number {
  let out = 0xff000000;
  for (const shift of [0, 8, 16]) out |= Math.round(((value >> shift) & 255) * 0.18 + ((ground >> shift) & 255) * 0.82) << shift;
  return out >>> 0;
}

export class Raster {
  private image: ImageData | undefined;
  private pixels = new Uint32Array(0);
  private width = 0;
  private scale = 1;

  /** Paints everything, or the cells of `only` where the rest is as it was painted before. */
  paint(context: CanvasRenderingContext2D, picture: Picture, scale: number, only?: Set<string>): void {
    const width = Math.max(1, Math.round(picture.layout.width * scale));
    const height = Math.max(1, Math.round(picture.layout.height * scale));
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.width = width;
    }
    this.scale = scale;
    if (!only) this.pixels.fill(0);
    for (const zone of picture.layout.zones)
      zone.nodes.forEach((node, i) => {
        if (only && !only.has(node.name)) return;
        const { x, y } = positionOf(picture.layout, zone, i);
        this.cell(picture, node, x, y);
      });
    context.putImageData(this.image, 0, 0);
    if (picture.layout.label > 0) this.names(context, picture);
    this.marks(context, picture);
  }

  private cell(picture: Picture, node: NodeState, left: number, top: number): void {
    const { isDark, resource, search } = picture;
    const size = Math.round(picture.layout.cell * this.scale);
    const x = Math.round(left * this.scale);
    const y = Math.round(top * this.scale);
    const ground = pixel(isDark ? "#15181d" : "#ffffff");
    const isFound = search.isEmpty || search.hasNode(node);
    const empty = pixel(isDark ? "#2b3038" : "#e3e6ea");
    this.fill(x, y, size, size, isFound ? empty : faded(empty, ground));
    const capacity = node.row?.[resource] ?? 0;
    if (capacity > 0) this.stack(picture, node, { x, y, size, capacity, isFound, ground });
    if (!node.row?.ready) this.stripes(x, y, size, pixel("#d1495b"), 3);
    else if (node.row.cordoned) this.stripes(x, y, size, pixel(isDark ? "#aab2bd" : "#5b6470"), 5);
  }

  /** Pods one above the other, each as high as its part of the node; those of one colour together. */
  private stack(picture: Picture, node: NodeState, at: { x: number; y: number; size: number; capacity: number; isFound: boolean; ground: number }): void {
    const { resource, search, colouring, now } = picture;
    const slices: { rank: number; colour: number; amount: number }[] = [];
    for (const pod of node.pods) {
      const amount = amountOf(pod, resource);
      if (amount <= 0) continue;
      const colour = colouring.colourOf(pod, node, now);
      const isFaded = !search.isEmpty && !at.isFound && !search.hasPod(pod, node);
      slices.push({ rank: colouring.rankOf(colour) + (isFaded ? 100 : 0), colour: isFaded ? faded(pixel(colour), at.ground) : pixel(colour), amount });
    }
    slices.sort((a, b) => a.rank - b.rank);
    let sum = 0;
    let from = at.y + at.size;
    for (const slice of slices) {
      sum += slice.amount;
      const to = Math.max(at.y, at.y + at.size - Math.round(Math.min(1, sum / at.capacity) * at.size));
      if (to >= from) continue;
      // A line between pods where there is room for one.
      const line = from - to >= 5 ? 1 : 0;
      this.fill(at.x, to + line, at.size, from - to - line, slice.colour);
      from = to;
      if (from <= at.y) break;
    }
  }

  private fill(x: number, y: number, width: number, height: number, value: number): void {
    for (let row = y; row < y + height; ++row) this.pixels.fill(value, row * this.width + x, row * this.width + x + width);
  }

  /** Not by colour alone: what is wrong with a node is a pattern, too. */
  private stripes(x: number, y: number, size: number, value: number, every: number): void {
    for (let row = 0; row < size; ++row) for (let column = 0; column < size; ++column) if ((row + column) % every === 0) this.pixels[(y + row) * this.width + x + column] = value;
  }

  private names(context: CanvasRenderingContext2D, picture: Picture): void {
    const { cell, zones } = picture.layout;
    context.font = `${12 * this.scale}px system-ui, sans-serif`;
    context.textBaseline = "top";
    context.fillStyle = picture.isDark ? "#a3acb8" : "#5b6470";
    for (const zone of zones)
      zone.nodes.forEach((node, i) => {
        const { x, y } = positionOf(picture.layout, zone, i);
        context.fillText(shortened(context, node.name, cell * this.scale), x * this.scale, (y + cell + 2) * this.scale);
      });
  }

  private marks(context: CanvasRenderingContext2D, picture: Picture): void {
    if (picture.marks.size === 0) return;
    const { cell, zones } = picture.layout;
    for (const zone of zones)
      zone.nodes.forEach((node, i) => {
        const mark = picture.marks.get(node.name);
        if (!mark) return;
        const { x, y } = positionOf(picture.layout, zone, i);
        // Large cells have the frame within, so that neighbours' frames do not touch; small ones have no room for it.
        const width = Math.max(1.5, Math.min(3, cell / 8));
        const inset = cell >= 24 ? width / 2 : -0.5;
        context.lineWidth = width * this.scale;
        context.strokeStyle = markColours[mark];
        context.strokeRect((x + inset) * this.scale, (y + inset) * this.scale, (cell - 2 * inset) * this.scale, (cell - 2 * inset) * this.scale);
      });
  }
}

/** The end of a name tells nodes apart: what is too long loses its middle. */
function shortened(context: CanvasRenderingContext2D, name: string, width: number): string {
  if (context.measureText(name).width <= width) return name;
  for (let kept = name.length - 1; kept > 4; --kept) {
    const head = Math.ceil(kept / 3);
    const text = `${name.slice(0, head)}…${name.slice(name.length - (kept - head))}`;
    if (context.measureText(text).width <= width) return text;
  }
  return name.slice(-4);
}
