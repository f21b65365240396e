// Pods without a node: by reason, and each one's way out.
import { useMemo, useState } from "preact/hooks";
import { count, duration } from "../model/format";
import { type PodRow, keyOf } from "../model/rows";
import { Search } from "../model/search";
import { Explain } from "./explain";
import { useApp, useChanges } from "./hooks";
import { podHref } from "./lists";
import { type Column, Table } from "./table";

/** "0/3 nodes are available: 1 Insufficient cpu, 2 …" → what stands after the colon, without the numbers. */
export function gist(pod: PodRow): string {
  if (pod.deleting) return "is being deleted";
  if (!pod.message) return pod.reason ?? "not looked at yet";
  const colon = pod.message.indexOf(": ");
  const text = /^\d+\/\d+ nodes are available/.test(pod.message) && colon > 0 ? pod.message.slice(colon + 2) : pod.message;
  return text
    .split(/[.,]? ?(?:no new claims to deallocate,? ?)?preemption: /)[0]!
    .replace(/\b\d+ (?=[A-Z]|node)/g, "")
    .replace(/\.$/, "");
}

export function PendingView() {
  const { source, search, setSearch } = useApp();
  const version = useChanges(source, 400);
  const [chosen, setChosen] = useState<string>();
  const parsed = useMemo(() => new Search(search), [search]);
  const rows = useMemo(
    () => [...source.cluster.pending.values()].filter((pod) => parsed.isEmpty || parsed.hasPod(pod, undefined)).sort((a, b) => (b.priority ?? 0) - (a.priority ?? 0) || (a.created ?? 0) - (b.created ?? 0)),
    [source, version, parsed],
  );
  const reasons = useMemo(() => {
    const out = new Map<string, number>();
    for (const pod of rows) out.set(gist(pod), (out.get(gist(pod)) ?? 0) + 1);
    return [...out].sort((a, b) => b[1] - a[1]);
  }, [rows]);
  const now = source.now() / 1000;
  const columns: Column<PodRow>[] = [
    { title: "Pod", grow: 2.2, cell: (pod) => <a href={podHref(keyOf(pod))} title={keyOf(pod)}>{keyOf(pod)}</a>, sort: keyOf },
    { title: "Why", grow: 4, rank: 1, cell: (pod) => <span title={pod.message}>{gist(pod)}</span>, sort: gist },
    { title: "Priority", grow: 0.8, rank: 4, isNumber: true, cell: (pod) => count(pod.priority ?? 0), sort: (pod) => pod.priority ?? 0 },
    { title: "Waits", grow: 0.6, rank: 2, isNumber: true, cell: (pod) => duration(now - (pod.created ?? now)), sort: (pod) => now - (pod.created ?? now) },
    { title: "Nominated", grow: 1, rank: 5, cell: (pod) => pod.nominated ?? "", sort: (pod) => pod.nominated ?? "" },
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
      {reasons.length > 1 && (
        <ul class="reasons" aria-label="By reason">
          {reasons.slice(0, 6).map(([reason, n]) => (
            <li>
              <strong>{count(n)}</strong> {reason}
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
