// The cluster as a map, with what its colours mean.
import { useMemo, useRef, useState } from "preact/hooks";
import { Colouring, type ColourBy, colourings } from "../model/colours";
import { totals } from "../model/cluster";
import { amount, count, counted, percent } from "../model/format";
import type { What } from "../model/happenings";
import { type Resource, resources } from "../model/rows";
import { Search } from "../model/search";
import { remember, remembered, useApp, useChanges, useEvery } from "./hooks";
import { MapCanvas } from "./mapCanvas";

const kLookMs = 1500;
const kMarkMs = 3000;

/** The colouring, looking at the cluster anew from time to time. */
function useColouring(by: ColourBy, version: number): Colouring {
  const { source } = useApp();
  const colouring = useMemo(() => new Colouring(by), [by, source]);
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
  const [by, setBy] = useState(remembered("colour", "workload") as ColourBy);
  return {
    resource: resources.includes(resource) ? resource : "cpu",
    by: colourings.includes(by) ? by : "workload",
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
  const colouring = useColouring(by, version);
  const parsed = useMemo(() => new Search(search), [search]);
  const marks = new Map<string, What>();
  const now = source.now();
  const entries = source.cluster.log.entries;
  for (let i = entries.length - 1; i >= 0 && (entries[i]?.at ?? 0) > now - kMarkMs; --i) {
    const one = entries[i];
    if (one?.node && one.what !== "gone" && !marks.has(one.node)) marks.set(one.node, one.what);
  }
  const all = totals(source.cluster);
  return (
    <section class="map-page" aria-labelledby="map-title">
      <h1 id="map-title" class="hidden">
        Map of the cluster
      </h1>
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
        <dl class="totals">
          <div>
            <dt>Nodes</dt>
            <dd>{count([...source.cluster.nodes.values()].filter((node) => node.row).length)}</dd>
          </div>
          <div>
            <dt>Pods</dt>
            <dd>{count(source.cluster.pods.size)}</dd>
          </div>
          <div>
            <dt>Pending</dt>
            <dd class={source.cluster.pending.size > 0 ? "warn" : ""}>
              <a href="#/pending">{count(source.cluster.pending.size)}</a>
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
      </div>
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
    </section>
  );
}

function isReplay(source: object): boolean {
  return "seek" in source;
}

export function Legend(props: { colouring: Colouring; search: string; onChoose?(text: string): void }) {
  return (
    <ul class="legend" aria-label={`Colours: by ${props.colouring.by}`}>
      {props.colouring.legend.map((entry) => {
        const text = (
          <>
            <span class="swatch" style={{ background: entry.colour }} aria-hidden="true" />
            <span class="legend-label">{entry.label}</span>
            <span class="quiet">{count(entry.count)}</span>
          </>
        );
        const isOn = entry.search !== undefined && props.search === entry.search;
        return (
          <li key={entry.label}>
            {entry.search !== undefined && props.onChoose ? (
              <button type="button" class="plain legend-entry" aria-pressed={isOn} title={entry.label} onClick={() => props.onChoose?.(isOn ? "" : (entry.search ?? ""))}>
                {text}
              </button>
            ) : (
              <span class="legend-entry" title={entry.label}>
                {text}
              </span>
            )}
          </li>
        );
      })}
      <li class="legend-entry quiet">
        <span class="swatch striped" aria-hidden="true" /> not ready
      </li>
    </ul>
  );
}
