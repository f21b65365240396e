// The cluster as a map, with what its colours mean.
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { Colouring, type ColourBy, colourings } from "../model/colours";
import { totals } from "../model/cluster";
import { amount, count, counted, percent } from "../model/format";
import type { What } from "../model/happenings";
import { type Resource, resources } from "../model/rows";
import { Search } from "../model/search";
import { remember, remembered, useApp, useChanges, useEvery } from "./hooks";
import { MapCanvas } from "./mapCanvas";
import { TroublePanel } from "./troublePanel";

const kLookMs = 1500;
const kMarkMs = 3000;

/** The colouring, looking at the cluster anew from time to time. */
function useColouring(by: ColourBy, resource: Resource, version: number): Colouring {
  const { source } = useApp();
  const colouring = useMemo(() => new Colouring(by, resource), [by, resource, source]);
  const looked = useRef<{ at: number; of: Colouring | undefined; cluster: unknown }>({ at: 0, of: undefined, cluster: undefined });
  const isDue = performance.now() - looked.current.at >= kLookMs - 100 || looked.current.of !== colouring || looked.current.cluster !== source.cluster;
  if (isDue && version >= 0) {
    colouring.look(source.cluster, source.now());
    looked.current = { at: performance.now(), of: colouring, cluster: source.cluster };
  }
  return colouring;
}

export function useMapChoices() {
  const [resource, setResource] = useState(remembered("resource", "cpu") as Resource);
  const [by, setBy] = useState(remembered("colour", "load") as ColourBy);
  return {
    resource: resources.includes(resource) ? resource : "cpu",
    by: colourings.includes(by) ? by : "load",
    setResource: (value: Resource) => (setResource(value), remember("resource", value)),
    setBy: (value: ColourBy) => (setBy(value), remember("colour", value)),
  };
}

export function MapView() {
  const { source, search, setSearch, isDark, about } = useApp();
  const version = useChanges(source, source.cluster.pods.size > 20_000 ? 150 : 60);
  // What stands still (a paused recording) is looked at again, too: its colours may be of a moment before.
  const [, setRound] = useState(0);
  useEvery(kLookMs, () => setRound((round) => round + 1));
  const { resource, by, setResource, setBy } = useMapChoices();
  const colouring = useColouring(by, resource, version);
  const parsed = useMemo(() => new Search(search), [search]);
  const marks = new Map<string, What>();
  const now = source.now();
  const entries = source.cluster.log.entries;
  for (let i = entries.length - 1; i >= 0 && (entries[i]?.at ?? 0) > now - kMarkMs; --i) {
    const one = entries[i];
    if (one?.node && one.what !== "gone" && !marks.has(one.node)) marks.set(one.node, one.what);
  }
  return (
    <section class="map-page" aria-labelledby="map-title">
      <h1 id="map-title" class="hidden">
        The cluster
      </h1>
      <TroublePanel />
      <div class="bar">
        <label>
          Fill by{" "}
          <select value={resource} onChange={(event) => setResource(event.currentTarget.value as Resource)}>
            {resources.map((one) => (
              <option value={one}>{one === "gpu" ? "GPU" : one}</option>
            ))}
          </select>
        </label>
        <label>
          Colour by{" "}
          <select value={by} onChange={(event) => setBy(event.currentTarget.value as ColourBy)}>
            {colourings.map((one) => (
              <option value={one}>{one}</option>
            ))}
          </select>
        </label>
        <Totals />
      </div>
      <div class="map-beside">
        <MapCanvas
          label={`Map: ${counted(source.cluster.nodes.size, "node")}, filled by ${resource}, coloured by ${by}`}
          cluster={source.cluster}
          version={version}
          resource={resource}
          colouring={colouring}
          search={parsed}
          isDark={isDark}
          now={now}
          marks={marks}
          onZone={about.whatIf && !isReplay(source) ? (zone) => (location.hash = `#/what-if/${encodeURIComponent(JSON.stringify([{ fail: `zone=${zone}` }]))}`) : undefined}
        />
        <Legend colouring={colouring} onChoose={setSearch} search={search} />
      </div>
    </section>
  );
}

function isReplay(source: object): boolean {
  return "seek" in source;
}

function Totals() {
  const { source } = useApp();
  const all = totals(source.cluster);
  const nodes = [...source.cluster.nodes.values()].filter((node) => node.row);
  const dead = nodes.filter((node) => !node.row?.ready).length;
  return (
    <dl class="totals">
      <div>
        <dt>Nodes</dt>
        <dd>{count(nodes.length)}</dd>
      </div>
      {dead > 0 && (
        <div>
          <dt>NotReady</dt>
          <dd class="bad">
            <a class="bad" href="#/nodes?search=status:NotReady">{count(dead)}</a>
          </dd>
        </div>
      )}
      <div>
        <dt>Pods</dt>
        <dd>{count(source.cluster.pods.size)}</dd>
      </div>
      <div>
        <dt>Pending</dt>
        <dd>
          <a class={source.cluster.pending.size > 0 ? "warn" : ""} href="#/pending">{count(source.cluster.pending.size)}</a>
        </dd>
      </div>
      {resources
        .filter((one) => one !== "pods" && all[one].capacity > 0)
        .map((one) => (
          <div title={`${amount(one, all[one].used)} of ${amount(one, all[one].capacity)} requested`}>
            <dt>{one === "gpu" ? "GPU" : one}</dt>
            <dd>{percent(all[one].used / all[one].capacity)}</dd>
          </div>
        ))}
    </dl>
  );
}

/** States that are patterns on the map, with how many nodes have them. */
function States(props: { search: string; onChoose?: ((text: string) => void) | undefined }) {
  const { source } = useApp();
  let dead = 0;
  let cordoned = 0;
  let pressed = 0;
  for (const { row } of source.cluster.nodes.values()) {
    if (!row) continue;
    if (!row.ready) ++dead;
    else {
      if (row.cordoned) ++cordoned;
      if (row.pressure) ++pressed;
    }
  }
  const entries: [string, string, number, string][] = [
    ["dead", "not ready", dead, "status:NotReady"],
    ["striped", "cordoned", cordoned, "status:SchedulingDisabled"],
    ["cornered", "under pressure", pressed, "status:Pressure"],
  ];
  return (
    <ul class="legend" aria-label="States of nodes">
      {entries
        .filter(([name, , n]) => n > 0 || name === "dead")
        .map(([name, label, n, search]) => (
          <li key={name}>
            <Entry swatch={<span class={`swatch ${name}`} aria-hidden="true">{name === "dead" ? "✕" : ""}</span>} label={label} count={n} search={n > 0 ? search : undefined} chosen={props.search} onChoose={props.onChoose} />
          </li>
        ))}
    </ul>
  );
}

function Entry(props: { swatch: ComponentChildren; label: string; title?: string | undefined; count: number; search?: string | undefined; chosen: string; onChoose?: ((text: string) => void) | undefined }) {
  const { search, onChoose, title = props.label } = props;
  const text = (
    <>
      {props.swatch}
      <span class="legend-label">{props.label}</span>
      <span class="quiet">{count(props.count)}</span>
    </>
  );
  if (search === undefined || !onChoose)
    return (
      <span class="legend-entry" title={title}>
        {text}
      </span>
    );
  const isOn = props.chosen === search;
  return (
    <button type="button" class="plain legend-entry" aria-pressed={isOn} title={title} onClick={() => onChoose(isOn ? "" : search)}>
      {text}
    </button>
  );
}

const headings: Record<ColourBy, string> = { load: "requested, nodes", workload: "pods by workload", gang: "pods by gang", namespace: "pods by namespace", priority: "pods by priority", age: "pods by age", pressure: "nodes by pressure", taint: "nodes by taint" };

export function Legend(props: { colouring: Colouring; search: string; onChoose?(text: string): void }) {
  const { by, resource, legend } = props.colouring;
  return (
    <aside class="legend-side" aria-label="What the map's colours mean">
      <h2>{by === "load" ? `${resource === "gpu" ? "GPU" : resource} ${headings.load}` : headings[by]}</h2>
      <ul class="legend" aria-label={`Colours: by ${by}`}>
        {legend.map((entry) => (
          <li key={entry.title ?? entry.label}>
            <Entry swatch={<span class="swatch" style={{ background: entry.colour }} aria-hidden="true" />} label={entry.label} title={entry.title} count={entry.count} search={entry.search} chosen={props.search} onChoose={props.onChoose} />
          </li>
        ))}
      </ul>
      <States search={props.search} onChoose={props.onChoose} />
    </aside>
  );
}
