// Pods without a node: by reason, and each one's way out.
import { useMemo, useState } from "preact/hooks";
import { count, duration, sinceWords } from "../model/format";
import { placedWords, waitingGangs, whyWords } from "../model/gangs";
import { askedWords, byReason, gist } from "../model/reasons";
import { type PodRow, keyOf } from "../model/rows";
import { Search } from "../model/search";
import { Explain } from "./explain";
import { useApp, useChanges } from "./hooks";
import { podHref } from "./lists";
import { type Column, Table } from "./table";

export function PendingView() {
  const { source, search, setSearch } = useApp();
  const version = useChanges(source, 400);
  const [chosen, setChosen] = useState<string>();
  const parsed = useMemo(() => new Search(search), [search]);
  const rows = useMemo(
    () => [...source.cluster.pending.values()].filter((pod) => parsed.isEmpty || parsed.hasPod(pod, undefined)).sort((a, b) => (b.priority ?? 0) - (a.priority ?? 0) || (a.created ?? 0) - (b.created ?? 0)),
    [source, version, parsed],
  );
  const reasons = useMemo(() => byReason(rows), [rows]);
  const gangs = useMemo(() => waitingGangs(source.cluster, rows), [rows]);
  const now = source.now() / 1000;
  const columns: Column<PodRow>[] = [
    { title: "Pod", grow: 2.2, cell: (pod) => <a href={podHref(keyOf(pod))} title={keyOf(pod)}>{keyOf(pod)}</a>, sort: keyOf },
    { title: "Why", grow: 4, rank: 1, cell: (pod) => <span title={pod.message}>{gist(pod)}</span>, sort: gist },
    { title: "Priority", grow: 0.8, rank: 4, isNumber: true, cell: (pod) => count(pod.priority ?? 0), sort: (pod) => pod.priority ?? 0 },
    { title: "Waits", grow: 0.6, rank: 2, isNumber: true, cell: (pod) => duration(now - (pod.created ?? now)), sort: (pod) => now - (pod.created ?? now) },
    ...(rows.some((pod) => pod.nominated) ? [{ title: "Nominated", grow: 1, rank: 5, cell: (pod: PodRow) => pod.nominated ?? "", sort: (pod: PodRow) => pod.nominated ?? "" }] : []),
    {
      title: "Explain",
      grow: 0.8,
      width: "78px",
      rank: 0,
      cell: (pod) => (
        <button type="button" class="small" aria-label={`Explain ${keyOf(pod)}`} onClick={() => setChosen(keyOf(pod))}>
          why?
        </button>
      ),
    },
  ];
  const pod = chosen === undefined ? undefined : source.cluster.pods.get(chosen);
  return (
    <section class="list-page" aria-labelledby="pending-title">
      <h1 id="pending-title">
        Pending <span class="quiet">{count(rows.length)}</span>
      </h1>
      {reasons.length > 0 && (
        <ul class="reasons" aria-label="By reason">
          {reasons.slice(0, 8).map(({ reason, pods, oldest }) => (
            <li key={reason}>
              <strong class="reason-count">{count(pods.length)}</strong>
              <span>
                {reason} <span class="quiet">{askedWords(pods[0]!.message)}</span>
              </span>
              <span class="quiet">{Number.isFinite(oldest) && <>the oldest since {sinceWords(oldest, source.now())}</>}</span>
              <button type="button" class="small" aria-label={`Why: ${reason}`} onClick={() => setChosen(keyOf(pods[0]!))}>
                why?
              </button>
            </li>
          ))}
        </ul>
      )}
      {gangs.length > 0 && (
        <ul class="reasons" aria-label="Gangs">
          {gangs.slice(0, 20).map((gang) => (
            <li key={gang.name}>
              <strong class="reason-count" title="placed together or not at all">{placedWords(gang)}</strong>
              <details>
                <summary>
                  Gang {gang.name} <span class="quiet">{whyWords(gang)}</span>
                </summary>
                <ul>
                  {gang.waiting.map((pod) => (
                    <li key={keyOf(pod)}>
                      <a href={podHref(keyOf(pod))}>{keyOf(pod)}</a> <span class="quiet">{gist(pod)}</span>
                    </li>
                  ))}
                </ul>
              </details>
              <span class="quiet">{gang.row?.topology ? `all in one ${gang.row.topology}` : ""}</span>
              <code class="quiet">{`berth explain podgroup ${gang.name.split("/")[1] ?? ""} -n ${gang.name.split("/")[0] ?? ""}`}</code>
            </li>
          ))}
        </ul>
      )}
      <Table label="Pending pods" columns={columns} rows={rows} keyOf={keyOf} hrefOf={(one) => podHref(keyOf(one))} empty={search ? "No pending pod is found." : "Every pod has a node."} most={pod ? 8 : undefined} />
      {search && rows.length === 0 && (
        <button type="button" class="small" onClick={() => setSearch("")}>
          Show all
        </button>
      )}
      {pod && (
        <div class="card">
          <h2>{chosen}</h2>
          {pod.message && <p>{pod.message}</p>}
          <Explain ns={pod.ns} name={pod.name} said={pod.message} />
        </div>
      )}
    </section>
  );
}
