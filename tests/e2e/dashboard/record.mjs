// record.mjs NODES PODS: writes a recording of a made-up day to standard output: nodes and pods come, a zone is lost for a while, pods wait. With
// --attack every text that a cluster may hold is markup.
const [nodes, pods] = process.argv.slice(2, 4).map(Number);
const isAttack = process.argv.includes("--attack");
const evil = (text) => (isAttack ? `<img src=x onerror="window.harmed=1">${text}` : text);
const time = (seconds) => new Date(Date.UTC(2026, 10, 1, 8) + seconds * 1000).toISOString().replace(/\.\d+Z/, "Z");
const lines = [];
const put = (at, type, object) => lines.push({ at, type, object });

lines.push({ recording: "berth/v1", start: time(0), source: evil("made up") });
const node = (i, ready = true, since = 0) => ({
  kind: "Node", apiVersion: "v1",
  metadata: { name: evil(`node-${i}`), creationTimestamp: time(0), labels: { "topology.kubernetes.io/zone": evil(`zone-${"abc"[i % 3]}`), "node.kubernetes.io/instance-type": evil("m5.2xlarge") } },
  spec: isAttack || i % 50 === 0 ? { taints: [{ key: evil("dedicated"), value: evil("gpu"), effect: "NoSchedule" }] } : {},
  status: { allocatable: { cpu: "8", memory: "32Gi", pods: "110", ...(i % 10 === 0 ? { "nvidia.com/gpu": "4" } : {}) }, conditions: [{ type: "Ready", status: ready ? "True" : "Unknown", lastTransitionTime: time(since), ...(ready ? {} : { message: evil("Kubelet stopped posting node status.") }) }, ...(i % 97 === 5 ? [{ type: evil("MemoryPressure"), status: "True" }] : [])] },
});
const pod = (i, on, more = {}) => {
  const workload = `${["checkout", "catalogue", "search-index", "payments", "recommendation-engine", "mail", "batch"][i % 7]}`;
  return {
    kind: "Pod", apiVersion: "v1",
    metadata: { namespace: evil(["shop", "bank", "platform-engineering"][i % 3]), name: evil(`${workload}-5d8f-${i.toString(36)}`), uid: `u${i}`, creationTimestamp: time(Math.floor(i / 100)), labels: { "pod-template-hash": "5d8f" }, ownerReferences: [{ kind: "ReplicaSet", name: evil(`${workload}-5d8f`), controller: true }] },
    spec: { ...(on === undefined ? {} : { nodeName: evil(`node-${on}`) }), priority: (i % 4) * 1000, containers: [{ name: "c", resources: { requests: { cpu: `${100 + (i % 5) * 50}m`, memory: `${256 << (i % 3)}Mi` } } }] },
    status: { phase: on === undefined ? "Pending" : "Running", conditions: on === undefined ? [{ type: "PodScheduled", status: "False", reason: evil("Unschedulable"), message: evil(`0/${nodes} nodes are available: ${nodes} Insufficient cpu.`) }] : [{ type: "PodScheduled", status: "True", lastTransitionTime: time(Math.floor(i / 100) + 1) }, { type: "Ready", status: "True" }], ...more },
  };
};
for (let i = 0; i < nodes; ++i) put(0, "ADDED", node(i));
const day = 3_600_000;
for (let i = 0; i < pods; ++i) put(Math.floor((i / pods) * day * 0.5), "ADDED", pod(i, i % 331 === 7 ? undefined : (i * 7919) % nodes));
for (let i = 2; i < nodes; i += 3) put(day * 0.6 + i, "MODIFIED", node(i, false, (day * 0.6) / 1000));
for (let i = 2; i < Math.min(pods, 2000); i += 3) put(day * 0.65 + i, "MODIFIED", pod(i, i % 331 === 7 ? undefined : (i * 7919) % nodes, { conditions: [{ type: "DisruptionTarget", status: "True", reason: "DeletionByTaintManager" }] }));
put(day * 0.7, "ADDED", { kind: "Event", apiVersion: "v1", metadata: { namespace: evil("shop"), name: evil("e1") }, involvedObject: { kind: "Pod", name: evil("x") }, type: "Warning", reason: evil("BackOff"), message: evil("again and again"), lastTimestamp: time(2000), source: { component: evil("kubelet") } });
for (let i = 2; i < nodes; i += 3) put(day * 0.8 + i, "MODIFIED", node(i, true, (day * 0.8) / 1000));
put(day, "MODIFIED", node(0));
// One line after the other: the whole would not fit into a string.
const sorted = [lines[0], ...lines.slice(1).sort((a, b) => a.at - b.at)];
for (let i = 0; i < sorted.length; i += 1000) process.stdout.write(`${sorted.slice(i, i + 1000).map((one) => JSON.stringify(one)).join("\n")}\n`);
