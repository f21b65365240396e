// One cluster as a map: a canvas to look at and point at, a list to the keyboard and to screen readers (arrow keys go from node to node).
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Cluster, NodeState } from "../model/cluster";
import type { Colouring } from "../model/colours";
import { amount, count, counted, percent, sinceWords } from "../model/format";
import type { What } from "../model/happenings";
import { type Layout, layOut, neighbour, nodeAt, positionOf, zoneHeader, zonesOf } from "../model/layout";
import { type Resource, resources } from "../model/rows";
import type { Search } from "../model/search";
import { useSize } from "./hooks";
import { Raster } from "./raster";

interface Props {
  label: string;
  cluster: Cluster;
  /** Differs when the cluster changed. */
  version: number;
  resource: Resource;
  colouring: Colouring;
  search: Search;
  isDark: boolean;
  now: number;
  marks: Map<string, What | "selected">;
  onZone?(zone: string): void;
  height?: number;
}

const kAllAgainMs = 5000;

export function describeNode(node: NodeState): string {
  const state = [node.row?.ready ? "" : `not ready${node.row?.since ? ` since ${sinceWords(node.row.since, Date.now())}` : ""}`, node.row?.cordoned ? "cordoned" : "", ...(node.row?.pressure ?? [])].filter((one) => one !== "");
  const fills = resources.filter((one) => (node.row?.[one] ?? 0) > 0).map((one) => `${one} ${percent(node.fill(one))}`);
  return [node.name, node.zone && `zone ${node.zone}`, counted(node.used.pods, "pod"), ...fills, ...state].filter((one) => one).join(", ");
}

export function MapCanvas(props: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const raster = useRef(new Raster());
  const painted = useRef<{ key: string; at: number; layout?: Layout; context?: CanvasRenderingContext2D }>({ key: "", at: 0 });
  const { width, height } = useSize(frame);
  const [focus, setFocus] = useState<NodeState>();
  const [hover, setHover] = useState<{ node: NodeState; x: number; y: number }>();

  const layout = useMemo<Layout>(
    () => layOut(zonesOf(props.cluster), Math.max(40, width), props.height ?? Math.max(200, height - 4)),
    [props.cluster, props.cluster.shape, width, height, props.height],
  );
  const scale = Math.min(2, globalThis.devicePixelRatio || 1);

  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || width === 0) return;
    const marks = new Map(props.marks);
    if (focus) marks.set(focus.name, "selected");
    const key = `${props.resource} ${props.colouring.by} ${props.colouring.resource} ${props.colouring.legend.map((one) => one.label + one.colour).join()} ${props.search.text} ${props.isDark} ${scale}`;
    const state = painted.current;
    const isFresh = state.key === key && state.context === context && state.layout === layout;
    const isYoung = performance.now() - state.at < kAllAgainMs;
    const only = isFresh && isYoung ? new Set(props.cluster.dirty) : undefined;
    props.cluster.dirty.clear();
    raster.current.paint(context, { ...props, layout, marks }, scale, only);
    painted.current = { key, at: only ? state.at : performance.now(), layout, context };
  });

  const point = (event: MouseEvent): NodeState | undefined => {
    const box = canvas.current?.getBoundingClientRect();
    return box ? nodeAt(layout, event.clientX - box.left, event.clientY - box.top) : undefined;
  };
  const open = (node: NodeState | undefined) => {
    if (node) location.hash = `#/node/${encodeURIComponent(node.name)}`;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") return open(focus);
    const next = neighbour(layout, focus, event.key);
    if (!next || !(event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End")) return;
    event.preventDefault();
    setFocus(next);
    const zone = layout.zones.find((one) => one.nodes.includes(next));
    if (zone && frame.current) {
      const { y } = positionOf(layout, zone, zone.nodes.indexOf(next));
      if (y < frame.current.scrollTop || y + layout.cellHeight > frame.current.scrollTop + frame.current.clientHeight) frame.current.scrollTop = y - zoneHeader;
    }
  };

  return (
    <div class="map-frame" ref={frame} style={props.height === undefined ? undefined : { height: `${props.height}px` }}>
      <div class="map-space" style={{ height: `${layout.height}px` }}>
        <canvas
          ref={canvas}
          width={Math.round(layout.width * scale)}
          height={Math.round(layout.height * scale)}
          style={{ width: `${layout.width}px`, height: `${layout.height}px` }}
          tabIndex={0}
          role="application"
          aria-roledescription="map of nodes"
          aria-label={`${props.label}. Arrow keys go from node to node, Enter opens one. The page Nodes has the same as a table.`}
          onClick={(event) => open(point(event))}
          onMouseMove={(event) => {
            const node = point(event);
            setHover(node && { node, x: event.offsetX, y: event.offsetY });
          }}
          onMouseLeave={() => setHover(undefined)}
          onFocus={() => focus ?? setFocus(layout.zones[0]?.nodes[0])}
          onBlur={() => setFocus(undefined)}
          onKeyDown={onKeyDown}
        />
        {layout.zones.map((zone) => (
          <div class="zone" key={zone.name} style={{ top: `${zone.y}px`, left: `${zone.x}px`, width: `${zone.width}px` }}>
            <ZoneTitle zone={zone.name} nodes={zone.nodes} resource={props.resource} onZone={props.onZone} />
          </div>
        ))}
        {hover && <Hint node={hover.node} x={hover.x} y={hover.y} width={layout.width} />}
      </div>
      <p class="hidden" aria-live="polite">
        {focus ? describeNode(focus) : ""}
      </p>
    </div>
  );
}

function ZoneTitle(props: { zone: string; nodes: NodeState[]; resource: Resource; onZone?: ((zone: string) => void) | undefined }) {
  let used = 0;
  let capacity = 0;
  let dead = 0;
  for (const node of props.nodes) {
    if (!node.row?.ready) ++dead;
    used += node.used[props.resource];
    capacity += node.row?.[props.resource] ?? 0;
  }
  const name = props.zone || "no zone";
  return (
    <>
      <span class="zone-name" title={name}>
        {name}
      </span>
      <span class="quiet">
        {counted(props.nodes.length, "node")}
        {capacity > 0 && `, ${props.resource} ${percent(used / capacity)}`}
      </span>
      {dead > 0 && <strong class="bad">✕ {dead === props.nodes.length ? "none is ready" : `${count(dead)} not ready`}</strong>}
      {props.onZone && props.zone && dead < props.nodes.length && (
        <button type="button" class="small" onClick={() => props.onZone?.(props.zone)}>
          What if lost?
        </button>
      )}
    </>
  );
}

function Hint(props: { node: NodeState; x: number; y: number; width: number }) {
  const { node } = props;
  const left = Math.max(0, Math.min(props.x + 14, props.width - 230));
  return (
    <div class="hint" aria-hidden="true" style={{ left: `${left}px`, top: `${props.y + 16}px` }}>
      <strong>{node.name}</strong>
      {!node.row?.ready && <div class="bad">NotReady{node.row?.since && ` since ${sinceWords(node.row.since, Date.now())}`}</div>}
      {node.row?.why && <div>{node.row.why}</div>}
      {node.row?.cordoned && <div>cordoned</div>}
      {node.row?.pressure?.map((one) => <div class="bad">{one}</div>)}
      {resources
        .filter((one) => (node.row?.[one] ?? 0) > 0)
        .map((one) => (
          <div>
            {one} {amount(one, node.used[one])} of {amount(one, node.row?.[one] ?? 0)} ({percent(node.fill(one))})
          </div>
        ))}
    </div>
  );
}
