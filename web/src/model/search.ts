// The search field: words that all must be found, "key:value" for one field. The same for pods and for nodes.
import type { NodeState } from "./cluster";
import type { PodRow } from "./rows";
import { stateOf, statusOf } from "./rows";

type Field = (pod: PodRow | undefined, node: NodeState | undefined) => string;

const fields: Record<string, Field> = {
  ns: (pod) => pod?.ns ?? "",
  pod: (pod) => pod?.name ?? "",
  workload: (pod) => pod?.workload ?? "",
  gang: (pod) => pod?.gang ?? "",
  status: (pod, node) => (pod ? statusOf(pod) : node?.row ? stateOf(node.row) : ""),
  priority: (pod) => (pod ? String(pod.priority ?? 0) : ""),
  node: (pod, node) => node?.name ?? pod?.node ?? "",
  zone: (_, node) => node?.zone ?? "",
  type: (_, node) => node?.row?.type ?? "",
  taint: (_, node) => node?.row?.taints?.join(" ") ?? "",
};
export const searchKeys = Object.keys(fields);

interface Term {
  field: Field | undefined;
  value: string;
}

export class Search {
  private readonly terms: Term[];
  constructor(readonly text: string) {
    this.terms = text
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "")
      .map((word) => {
        const colon = word.indexOf(":");
        const field = colon > 0 ? fields[word.slice(0, colon)] : undefined;
        return { field, value: field ? word.slice(colon + 1) : word };
      });
  }

  get isEmpty(): boolean {
    return this.terms.length === 0;
  }

  hasPod(pod: PodRow, node: NodeState | undefined): boolean {
    return this.terms.every(({ field, value }) =>
      field ? field(pod, node).toLowerCase().includes(value) : anyOf(value, pod.ns, pod.name, pod.workload, node?.name ?? pod.node, node?.zone),
    );
  }

  /** By the node alone; a node may have pods that are found though it is not. */
  hasNode(node: NodeState): boolean {
    return this.terms.every(({ field, value }) =>
      field ? field(undefined, node).toLowerCase().includes(value) : anyOf(value, node.name, node.zone, node.row?.type),
    );
  }
}

function anyOf(value: string, ...texts: (string | undefined)[]): boolean {
  return texts.some((text) => text !== undefined && text.toLowerCase().includes(value));
}
