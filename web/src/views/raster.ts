// The map's pixels, written by hand: five thousand nodes and a hundred thousand pods are repainted in a few milliseconds, and only where they changed.
import type { Cluster, NodeState } from "../model/cluster";
import { type Colouring, badColour } from "../model/colours";
import { duration, percent } from "../model/format";
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

const kHeatBelow = 12;

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export const markColours: Record<What | "selected", string> = {
  placed: "#2e9e6b",
  preempted: "#c26a00",
  evicted: "#c2526b",
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
    const { isDark, resource, search, layout } = picture;
    const at = { x: Math.round(left * this.scale), y: Math.round(top * this.scale), width: Math.round(layout.cellWidth * this.scale), height: Math.round(layout.cellHeight * this.scale) };
    const ground = pixel(isDark ? "#15181d" : "#ffffff");
    const isFound = search.isEmpty || search.hasNode(node);
    if (!node.row?.ready) return this.dead(at, isFound ? pixel(badColour) : faded(pixel(badColour), ground));
    const empty = pixel(isDark ? "#2b3038" : "#e3e6ea");
    this.fill(at.x, at.y, at.width, at.height, isFound ? empty : faded(empty, ground));
    const capacity = node.row[resource] ?? 0;
    if (capacity > 0) this.stack(picture, node, { ...at, capacity, isFound, ground });
    if (node.row.cordoned) this.stripes(at, pixel(isDark ? "#aab2bd" : "#5b6470"), Math.max(5, Math.round(6 * this.scale)));
    if (node.row.pressure) this.corner(at, pixel(isDark ? "#ffd166" : "#1b1f24"));
  }

  /** Nothing else on the map is red all over, and crossed out. */
  private dead(at: Box, colour: number): void {
    this.fill(at.x, at.y, at.width, at.height, colour);
    const size = Math.min(at.width, at.height);
    const side = size < 12 ? size : Math.round(size * 0.6);
    const thick = Math.max(0.5, side / 12);
    const cross = size < 12 ? pixel("#6b0a18") : 0xffffffff; // White would make the smallest ones pink.
    const x = at.x + ((at.width - side) >> 1);
    const y = at.y + ((at.height - side) >> 1);
    for (let row = 0; row < side; ++row)
      for (let column = 0; column < side; ++column)
        if (Math.abs(row - column) < thick || Math.abs(row + column - side + 1) < thick) this.pixels[(y + row) * this.width + x + column] = cross;
  }

  /** Pods one above the other, each as high as its part of the node; those of one colour together. */
  private stack(picture: Picture, node: NodeState, at: Box & { capacity: number; isFound: boolean; ground: number }): void {
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
    // In the smallest cells heights are hard to tell apart: the load's colour has all of it.
    if (colouring.by === "load" && picture.layout.cellHeight < kHeatBelow && slices[0]) return this.fill(at.x, at.y, at.width, at.height, slices[0].colour);
    let sum = 0;
    let from = at.y + at.height;
    // A little is not nothing, and is seen not to be.
    const least = at.height >= 24 ? 3 : 1;
    for (const slice of slices) {
      sum += slice.amount;
      const high = Math.max(least, Math.round(Math.min(1, sum / at.capacity) * at.height));
      const to = Math.max(at.y, at.y + at.height - high);
      if (to >= from) continue;
      // A line between pods where there is room for one.
      const line = from - to >= 5 ? 1 : 0;
      this.fill(at.x, to + line, at.width, from - to - line, slice.colour);
      from = to;
      if (from <= at.y) break;
    }
  }

  private fill(x: number, y: number, width: number, height: number, value: number): void {
    for (let row = y; row < y + height; ++row) this.pixels.fill(value, row * this.width + x, row * this.width + x + width);
  }

  /** Not by colour alone: what is special about a node is a pattern, too. */
  private stripes(at: Box, value: number, every: number): void {
    for (let row = 0; row < at.height; ++row) for (let column = 0; column < at.width; ++column) if ((row + column) % every < this.scale) this.pixels[(at.y + row) * this.width + at.x + column] = value;
  }

  private corner(at: Box, value: number): void {
    const side = Math.max(3, Math.min(Math.round(22 * this.scale), Math.round(Math.min(at.width, at.height) / 3)));
    for (let row = 0; row < side; ++row) this.fill(at.x + at.width - side + row, at.y + row, side - row, 1, value);
  }

  /** Below each cell its name, in it how full it is, or since when it is dead. */
  private names(context: CanvasRenderingContext2D, picture: Picture): void {
    const { cellWidth, cellHeight, zones } = picture.layout;
    const { isDark, resource, now } = picture;
    context.textBaseline = "top";
    for (const zone of zones)
      zone.nodes.forEach((node, i) => {
        const { x, y } = positionOf(picture.layout, zone, i);
        const isDead = !node.row?.ready;
        context.font = `${isDead ? "bold " : ""}${12 * this.scale}px system-ui, sans-serif`;
        context.fillStyle = isDead ? (isDark ? "#ff8b98" : "#b3263a") : isDark ? "#a3acb8" : "#5b6470";
        context.fillText(shortened(context, node.name, cellWidth * this.scale), x * this.scale, (y + cellHeight + 2) * this.scale);
        const told = isDead ? `NotReady${node.row?.since && cellWidth >= 110 ? ` ${duration(now / 1000 - node.row.since)}` : ""}` : (node.row?.[resource] ?? 0) > 0 ? percent(node.fill(resource)) : "";
        if (told) this.plate(context, told, x * this.scale, y * this.scale, isDark);
      });
  }

  /** Words upon colours: on a ground of their own. */
  private plate(context: CanvasRenderingContext2D, text: string, x: number, y: number, isDark: boolean): void {
    context.font = `600 ${12 * this.scale}px system-ui, sans-serif`;
    const width = context.measureText(text).width + 8 * this.scale;
    context.fillStyle = isDark ? "#15181d" : "#ffffff";
    context.fillRect(x + 3 * this.scale, y + 3 * this.scale, width, 17 * this.scale);
    context.fillStyle = isDark ? "#e6e9ed" : "#1b1f24";
    context.fillText(text, x + 7 * this.scale, y + 5.5 * this.scale);
  }

  private marks(context: CanvasRenderingContext2D, picture: Picture): void {
    if (picture.marks.size === 0) return;
    const { cellWidth, cellHeight, zones } = picture.layout;
    for (const zone of zones)
      zone.nodes.forEach((node, i) => {
        const mark = picture.marks.get(node.name);
        if (!mark) return;
        const { x, y } = positionOf(picture.layout, zone, i);
        // Large cells have the frame within, so that neighbours' frames do not touch; small ones have no room for it.
        const width = Math.max(1.5, Math.min(3, cellHeight / 8));
        const inset = cellHeight >= 24 ? width / 2 : -0.5;
        context.lineWidth = width * this.scale;
        context.strokeStyle = markColours[mark];
        context.strokeRect((x + inset) * this.scale, (y + inset) * this.scale, (cellWidth - 2 * inset) * this.scale, (cellHeight - 2 * inset) * this.scale);
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
