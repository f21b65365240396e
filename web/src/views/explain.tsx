// Why a pod is where it is, or why it is pending: berth explain's answer (src/placement/explain_output.cpp).
import { sortKey } from "../model/format";
import { getJson } from "../net/api";
import { useAnswer, useApp } from "./hooks";
import { NodeLink } from "./lists";
import { type Column, Table } from "./table";

interface NodeReport {
  name: string;
  feasible: boolean;
  total?: number;
  scores?: Record<string, number>;
  rejections?: { plugin: string; code: string; reasons: string[]; lacks: string[] }[];
  lacks?: string[];
}
interface Explanation {
  verdict: string;
  summary: string;
  message?: string;
  configuration?: string;
  notes?: string[];
  whyWinner?: string[];
  nearestNode?: string;
  relaxations?: { changes: string[]; nodes: string[] }[];
  nodeChanges?: { node: string; commands?: string[]; addOneLikeIt?: boolean }[];
  eviction?: { node: string; victims: string[]; violatedBudgets: string[]; withoutController: string[]; allowed: boolean };
  growth?: string;
  nodes: NodeReport[];
}

const columns: Column<NodeReport>[] = [
  { title: "Node", grow: 1.4, cell: (node) => <NodeLink name={node.name} />, sort: (node) => sortKey(node.name) },
  { title: "Fits", grow: 0.6, cell: (node) => (node.feasible ? <span class="good">yes</span> : <span class="bad">no</span>), sort: (node) => (node.feasible ? 1 : 0) },
  { title: "Score", grow: 0.6, rank: 2, isNumber: true, cell: (node) => (node.total === undefined ? "" : String(node.total)), sort: (node) => node.total ?? -1 },
  { title: "Why", grow: 5, cell: (node) => <span title={why(node)}>{why(node)}</span>, sort: why },
];

function why(node: NodeReport): string {
  if (node.feasible)
    return Object.entries(node.scores ?? {})
      .sort((a, b) => b[1] - a[1])
      .map(([plugin, score]) => `${plugin} ${score}`)
      .join(", ");
  if (node.lacks && node.lacks.length > 0) return node.lacks.join("; ");
  return (node.rejections ?? []).map((one) => `${one.plugin}: ${one.reasons.join(", ")}`).join("; ");
}

/** `said`: the message that stands on the page already. */
export function Explain(props: { ns: string; name: string; said?: string | undefined }) {
  const { about } = useApp();
  const key = `${props.ns}/${props.name}`;
  const asked = useAnswer(about.explain ? key : undefined, () =>
    getJson<Explanation>(`/berth/explain?namespace=${encodeURIComponent(props.ns)}&pod=${encodeURIComponent(props.name)}`),
  );
  if (!about.explain) return <p class="quiet">Explanations need a live cluster.</p>;
  const answer = asked.value;
  return (
    <div aria-busy={asked.isAsking} class="explain">
      <button type="button" class="small" onClick={asked.again} disabled={asked.isAsking}>
        {asked.isAsking ? "Asking every node…" : "Ask again"}
      </button>
      {asked.error && <p class="bad" role="alert">{asked.error}</p>}
      {answer && <Answer answer={answer} said={props.said} />}
    </div>
  );
}

function Answer({ answer, said }: { answer: Explanation; said?: string | undefined }) {
  return (
    <>
      <p>
        <strong>{answer.summary}.</strong>
        {answer.message && answer.message !== said && ` ${answer.message}`}
      </p>
      {answer.notes?.map((note) => <p>{note}.</p>)}
      {answer.whyWinner && answer.whyWinner.length > 0 && (
        <ul>
          {answer.whyWinner.map((line) => (
            <li>{line}</li>
          ))}
        </ul>
      )}
      <Changes answer={answer} />
      {answer.growth !== undefined && (
        <>
          <h3>Would a group of nodes grow?</h3>
          <pre class="words">{answer.growth || "The autoscaler has nothing to say about this pod."}</pre>
        </>
      )}
      <h3>Each node</h3>
      <Table label="Each node's verdict" columns={columns} rows={answer.nodes} keyOf={(node) => node.name} empty="There is no node." most={12} />
      {answer.configuration && <p class="quiet">By the configuration of {answer.configuration}.</p>}
    </>
  );
}

function Changes({ answer }: { answer: Explanation }) {
  const { relaxations = [], nodeChanges = [], eviction } = answer;
  if (relaxations.length + nodeChanges.length === 0 && !eviction) return null;
  return (
    <>
      <h3>The smallest change that would place it</h3>
      <ul>
        {relaxations.slice(0, 6).map((one) => (
          <li>
            Of the pod: {one.changes.join(", and ")} <span class="quiet">(then {one.nodes.length === 1 ? one.nodes[0] : `${one.nodes.length} nodes`})</span>
          </li>
        ))}
        {nodeChanges.slice(0, 6).map((one) => (
          <li>
            {one.addOneLikeIt ? (
              <>Of the nodes: one more like {one.node}</>
            ) : (
              <>
                Of {one.node}:{" "}
                {one.commands?.map((command) => (
                  <code>{command}</code>
                ))}
              </>
            )}
          </li>
        ))}
        {eviction && (
          <li>
            {eviction.allowed ? "By preemption" : "By evictions that the scheduler itself may not do"}: on {eviction.node} these would go: {eviction.victims.join(", ")}
            {eviction.violatedBudgets.length > 0 && <span class="bad"> (against the budgets {eviction.violatedBudgets.join(", ")})</span>}
          </li>
        )}
      </ul>
    </>
  );
}
