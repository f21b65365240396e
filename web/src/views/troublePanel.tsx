// What is wrong, worst first, before anything else; and when nothing is, that it is so.
import { useMemo, useState } from "preact/hooks";
import { clock, count, sinceWords } from "../model/format";
import { type Level, type Trouble, allWell, headline, troublesOf } from "../model/trouble";
import type { Source } from "../net/source";
import { useApp, useChanges } from "./hooks";

/** A small window shows the worst, and its map. */
const shownAtOnce = () => (innerWidth < 640 ? 2 : 4);
const signs: Record<Level, string> = { bad: "✕", warn: "!", note: "i" };
const words: Record<Level, string> = { bad: "Wrong", warn: "To watch", note: "To know" };

const looked = new WeakMap<object, { at: number; version: number; troubles: Trouble[] }>();

/** Several parts of the page ask at the same moment. */
function troublesNow(source: Source): Trouble[] {
  const { cluster } = source;
  const last = looked.get(cluster);
  const at = source.now();
  if (last && last.version === cluster.version && Math.abs(at - last.at) < 800) return last.troubles;
  const troubles = troublesOf(cluster, at);
  looked.set(cluster, { at, version: cluster.version, troubles });
  return troubles;
}

/** `doubt`: why nobody can say that all is well. */
export function useTroubles(): { troubles: Trouble[]; doubt: string } {
  const { source, live } = useApp();
  const version = useChanges(source, 1000);
  const troubles = useMemo(() => troublesNow(source), [source, source.cluster, version]);
  return { troubles, doubt: source === live ? doubtOf(live) : "" };
}

function doubtOf(live: { status: string; isSynced: boolean; problems: { what: string; only?: string }[] }): string {
  if (live.status === "lost" || live.status === "ended") return "The connection is lost: what you see may be out of date";
  if (!live.isSynced) return "Reading the cluster…";
  const unseen = live.problems.filter((one) => one.what !== "events").map((one) => (one.only ? `${one.what} of other namespaces` : one.what));
  return unseen.length > 0 ? `Nothing is wrong in what can be seen; not seen: ${unseen.join(", ")}` : "";
}

/** In the page's head, on every view. */
export function TroubleChip() {
  const { troubles, doubt } = useTroubles();
  const told = headline(troubles);
  const level = troubles.some((one) => one.level === "bad") ? "bad" : told ? "warn" : doubt ? "doubt" : "good";
  const sign = { bad: "✕", warn: "!", doubt: "?", good: "✓" }[level];
  const text = told || (doubt ? "not known" : "all is well");
  return (
    <a class={`chip ${level}`} href="#/map" title={troubles[0]?.what ?? doubt}>
      <span aria-hidden="true">{sign}</span> <span role="status">{text}</span>
    </a>
  );
}

export function TroublePanel() {
  const { source } = useApp();
  const { troubles, doubt } = useTroubles();
  const [showsAll, setShowsAll] = useState(false);
  const told = headline(troubles);
  const atOnce = shownAtOnce();
  const isLong = troubles.length > atOnce + 1;
  const most = showsAll || !isLong ? troubles.length : atOnce;
  const rest = troubles.length - most;
  return (
    <section class="troubles" aria-labelledby="troubles-title">
      {told ? (
        <h2 id="troubles-title" class="hidden">
          {told}
        </h2>
      ) : (
        <h2 id="troubles-title" class="calm">
          {doubt ? (
            <span class="quiet">{doubt}{doubt.endsWith("…") ? "" : "."}</span>
          ) : (
            <>
              <span class="sign good" aria-hidden="true">✓</span> Nothing is wrong. <span class="quiet">{allWell(source.cluster)} (at {clock(source.now())}).</span>
            </>
          )}
        </h2>
      )}
      {troubles.length > 0 && (
        <ul>
          {troubles.slice(0, most).map((one) => (
            <Item trouble={one} key={one.key} />
          ))}
        </ul>
      )}
      {isLong && (
        <button type="button" class="small" aria-expanded={showsAll} onClick={() => setShowsAll(!showsAll)}>
          {showsAll ? "Show the worst only" : `Show ${count(rest)} more`}
        </button>
      )}
    </section>
  );
}

function Item({ trouble }: { trouble: Trouble }) {
  const { source, live } = useApp();
  return (
    <li class={`is-${trouble.level}`}>
      <span class={`sign ${trouble.level}`} aria-hidden="true">{signs[trouble.level]}</span>
      <p class="trouble-what">
        <span class="hidden">{words[trouble.level]}: </span>
        <a href={trouble.href}>{trouble.what}</a>
        {trouble.more && <span class="quiet"> {trouble.more}.</span>}
      </p>
      <span class="trouble-since">{trouble.since !== undefined && <>since {sinceWords(trouble.since, source.now())}</>}</span>
      {source === live && <Command text={trouble.command} />}
    </li>
  );
}

export function Command({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard?.writeText(text).then(
      () => (setCopied(true), setTimeout(() => setCopied(false), 1500)),
      () => undefined,
    );
  };
  return (
    <span class="command">
      <code title={text}>{text}</code>
      <button type="button" class="small" aria-label={`Copy: ${text}`} onClick={copy}>
        {isCopied ? "copied" : "copy"}
      </button>
    </span>
  );
}
