// The dashboard's page: where one is (the address after #), what is shown (live or a recording), and the frame around every view.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type About, RequestError, getJson } from "./net/api";
import { Live, Replay, type Source } from "./net/source";
import { searchKeys } from "./model/search";
import { count } from "./model/format";
import { AppContext, remember, remembered, useApp, useChanges } from "./views/hooks";
import { BudgetsView, NodesView, PodsView } from "./views/lists";
import { MapView } from "./views/mapView";
import { NowView } from "./views/now";
import { PendingView } from "./views/pending";
import { RecordingView, ReplayBar } from "./views/replayBar";
import { Missing, NodePage, PodPage } from "./views/story";
import { TroubleChip } from "./views/troublePanel";
import { WhatIfView } from "./views/whatIf";

const places: [string, string][] = [
  ["map", "Map"],
  ["nodes", "Nodes"],
  ["pods", "Pods"],
  ["pending", "Pending"],
  ["now", "Now"],
  ["what-if", "What if?"],
  ["recording", "Recording"],
];

/** "#/nodes?search=zone:b": the view, and what is searched there. */
function useRoute(setSearch: (text: string) => void): string[] {
  const read = () => (location.hash.split("?")[0] ?? "").replace(/^#\//, "").split("/").map(decoded);
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const take = () => {
      const given = new URLSearchParams(location.hash.split("?")[1] ?? "").get("search");
      if (given !== null) setSearch(given);
    };
    take();
    const follow = () => {
      setRoute(read());
      take();
      document.querySelector("main")?.focus();
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function View({ route }: { route: string[] }) {
  const [place = "", first = "", second = ""] = route;
  switch (place) {
    case "":
    case "map":
      return <MapView />;
    case "nodes":
      return <NodesView />;
    case "pods":
      return <PodsView />;
    case "pending":
      return <PendingView />;
    case "budgets":
      return <BudgetsView />;
    case "now":
      return <NowView />;
    case "what-if":
      return <WhatIfView asked={first} />;
    case "recording":
      return <RecordingView />;
    case "node":
      return <NodePage name={first} key={first} />;
    case "pod":
      return <PodPage ns={first} name={second} key={`${first}/${second}`} />;
    default:
      return <Missing what={place} />;
  }
}

function useTheme(): { isDark: boolean; theme: string; setTheme(theme: string): void } {
  const [theme, setTheme] = useState(remembered("theme", "auto"));
  const media = matchMedia("(prefers-color-scheme: dark)");
  const [system, setSystem] = useState(media.matches);
  useEffect(() => {
    const follow = () => setSystem(media.matches);
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, []);
  const isDark = theme === "auto" ? system : theme === "dark";
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
  return { isDark, theme, setTheme: (next) => (remember("theme", next), setTheme(next)) };
}

function Frame(props: { about: About; live: Live }) {
  const { about, live } = props;
  const [search, setSearch] = useState("");
  const route = useRoute(setSearch);
  const [replay, setReplay] = useState<Replay>();
  const { isDark, theme, setTheme } = useTheme();
  useEffect(() => {
    if (!about.recording) return;
    const first = new Replay();
    setReplay(first);
    void first.load();
  }, []);
  const source: Source = replay ?? live;
  return (
    <AppContext.Provider value={{ about, live, replay, source, search, setSearch, setReplay, isDark }}>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.querySelector("main")?.focus())}>
        To the content
      </a>
      <header>
        <span class="brand" title={about.server}>
          <img src="/icon.svg" alt="" width="22" height="22" /> berth
          {about.context && <span class="quiet context">{about.context}</span>}
        </span>
        <TroubleChip />
        <Navigation place={route[0] || "map"} />
        <input
          class="search"
          type="search"
          value={search}
          placeholder="Search, e.g. ns:shop web"
          aria-label={`Search. Words, or one of ${searchKeys.map((key) => `${key}:`).join(" ")} and a value`}
          spellcheck={false}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <label class="theme">
          <span class="hidden">Colours of the page</span>
          <select value={theme} onChange={(event) => setTheme(event.currentTarget.value)}>
            <option value="auto">auto</option>
            <option value="light">light</option>
            <option value="dark">dark</option>
          </select>
        </label>
      </header>
      {replay ? <ReplayBar replay={replay} /> : <Connection />}
      <main id="main" tabIndex={-1}>
        <View route={route} />
      </main>
    </AppContext.Provider>
  );
}

function Navigation(props: { place: string }) {
  const { source } = useApp();
  useChanges(source, 1000);
  const pending = source.cluster.pending.size;
  let dead = 0;
  for (const { row } of source.cluster.nodes.values()) if (row && !row.ready) ++dead;
  return (
    <nav aria-label="Views">
      {places.map(([name, title]) => (
        <a href={`#/${name}`} aria-current={props.place === name ? "page" : undefined} key={name}>
          {title}
          {name === "nodes" && dead > 0 && (
            <span class="badge bad-badge">
              {count(dead)}
              <span class="hidden"> not ready</span>
            </span>
          )}
          {name === "pending" && pending > 0 && <span class="badge">{count(pending)}</span>}
        </a>
      ))}
    </nav>
  );
}

/** What keeps the page from showing the present, said where everybody sees it. */
function Connection() {
  const { live, about } = useApp();
  useChanges(live, 300);
  if (!about.live) return null;
  const problems = live.problems.map((one) => (one.only ? `Of all ${one.what} only those of namespace ${one.only} are shown (berth dashboard -n NAMESPACE shows another's): ${one.message}` : one.what === "cluster" ? `The cluster does not answer: ${one.message}` : `${one.what} cannot be shown: ${one.message}`));
  if (live.status === "lost") problems.unshift(`The connection is lost (${live.reason}). What you see may be out of date; trying again…`);
  if (live.status === "ended") problems.unshift(`The session has ended. Open the address that berth prints. (${live.reason})`);
  const isReading = live.status === "connecting" || (live.status === "live" && !live.isSynced);
  return (
    <div role="status" class={problems.length > 0 ? "banner shown" : "banner"}>
      {problems.map((one) => (
        <p>{one}</p>
      ))}
      {isReading && problems.length === 0 && <p class="reading">Reading the cluster: {count(live.cluster.nodes.size)} nodes, {count(live.cluster.pods.size)} pods…</p>}
    </div>
  );
}

async function start(): Promise<void> {
  const root = document.getElementById("app");
  if (!root) return;
  try {
    const about = await getJson<About>("/berth/about");
    const live = new Live();
    if (about.live) void live.run();
    document.title = about.context ? `berth: ${about.context}` : "berth";
    render(<Frame about={about} live={live} />, root);
  } catch (error) {
    const message = error instanceof RequestError ? error.message : String(error);
    render(<p class="page bad" role="alert">{message}</p>, root);
  }
}

void start();
