// Gangs as one thing: groups of pods that are placed together or not at all, with those of them that wait.
import type { Cluster } from "./cluster";
import { count, counted } from "./format";
import { byReason, gist } from "./reasons";
import { type GroupRow, type PodRow, keyOf } from "./rows";

export interface Gang {
  /** "shop/train" */
  name: string;
  /** Where the server has PodGroups. */
  row: GroupRow | undefined;
  /** Without a node, the most important and eldest first. */
  waiting: PodRow[];
  placed: number;
}

export const gangOf = (pod: PodRow) => `${pod.ns}/${pod.gang ?? ""}`;

/** Those that have pods among `waiting`, and PodGroups that wait for pods to come; the most important first, then the eldest. */
export function waitingGangs(cluster: Cluster, waiting: Iterable<PodRow>): Gang[] {
  const gangs = new Map<string, Gang>();
  for (const pod of waiting) {
    if (!pod.gang || pod.deleting) continue;
    const name = gangOf(pod);
    const known = gangs.get(name);
    if (known) known.waiting.push(pod);
    else gangs.set(name, { name, row: cluster.groups.get(name), waiting: [pod], placed: 0 });
  }
  if (gangs.size > 0)
    for (const node of cluster.nodes.values())
      for (const pod of node.pods) {
        const gang = pod.gang ? gangs.get(gangOf(pod)) : undefined;
        if (gang) ++gang.placed;
      }
  const eldest = (gang: Gang) => Math.min(...gang.waiting.map((pod) => pod.created ?? Infinity));
  const priority = (gang: Gang) => gang.row?.priority ?? Math.max(...gang.waiting.map((pod) => pod.priority ?? 0));
  for (const gang of gangs.values()) gang.waiting.sort((a, b) => (b.priority ?? 0) - (a.priority ?? 0) || (a.created ?? 0) - (b.created ?? 0) || (keyOf(a) < keyOf(b) ? -1 : 1));
  return [...gangs.values()].sort((a, b) => priority(b) - priority(a) || eldest(a) - eldest(b) || (a.name < b.name ? -1 : 1));
}

/** "0 of 3 placed", "3 placed, 2 more wait" */
export function placedWords(gang: Gang): string {
  const min = gang.row?.min;
  if (min === undefined) return gang.placed > 0 ? `${count(gang.placed)} placed, ${count(gang.waiting.length)} wait` : `0 of ${count(gang.waiting.length)} placed`;
  return gang.placed >= min ? `${count(gang.placed)} placed, ${count(gang.waiting.length)} more ${gang.waiting.length === 1 ? "waits" : "wait"}` : `${count(gang.placed)} of ${count(min)} placed`;
}

/** Why it waits, in one sentence. */
export function whyWords(gang: Gang): string {
  const min = gang.row?.min;
  const there = gang.placed + gang.waiting.length;
  if (min !== undefined && there < min) return `${counted(there, "pod")} of the ${count(min)} that it needs ${there === 1 ? "is" : "are"} there: none is tried before`;
  const said = byReason(gang.waiting.filter((pod) => pod.message !== gang.row?.message));
  const pod = said[0]?.pods[0];
  return pod ? gist(pod) : (gang.row?.message ?? "");
}
