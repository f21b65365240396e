#!/usr/bin/env bash
# Simulations: the same bytes from two processes, mistakes said with their place, and the same counts as `berth up` in real time.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
sim() { "$berth" simulate "$@"; }

cat >web.yaml <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 7
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: nginx, resources: {requests: {cpu: "9"}}}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  completions: 4
  parallelism: 2
  template:
    metadata: {labels: {app: once}, annotations: {sim.berth.dev/run-for: 2s}}
    spec: {restartPolicy: Never, containers: [{name: c, image: job, resources: {requests: {cpu: "1"}}}]}
YAML
cat >scenario.yaml <<'YAML'
duration: 1m
nodes: [{name: node, count: 2, cpu: "32", memory: 256Gi}]
workloads: [{name: all, manifests: web.yaml}]
faults: [{at: 20s, cordon: node-1}]
assert: ['pods.running == 6 && pods.pending == 1 && pods.succeeded == 4']
YAML
check "a scenario runs and its assertion holds" sim scenario.yaml
sim scenario.yaml --json a.json --html a.html --recording a.jsonl -q >a.txt 2>&1
sim scenario.yaml --json b.json --html b.html --recording b.jsonl -q >b.txt 2>&1
for file in json html jsonl txt; do check "two processes write the same $file" cmp a.$file b.$file; done
sed -i 's/pods.pending == 1/pods.pending == 0/' scenario.yaml
check "an assertion that fails is exit code 1" refused sim scenario.yaml
check "... and says what" says "FAILED at 00:01" sim scenario.yaml
check "a value without unit is refused with its line" says "scenario.yaml:1: duration: \"60\" has no unit" sh -c "sed -i 's/duration: 1m/duration: 60/' scenario.yaml; '$berth' simulate scenario.yaml"
check "no file" says "missing.yaml" sim missing.yaml
check "the schema is JSON" sh -c "'$berth' simulate --schema | python3 -m json.tool"
head -c 3000 a.jsonl >cut.jsonl
printf 'duration: 1m\nreplay: cut.jsonl\n' >replay.yaml
check "a recording that is cut off is refused" says "is cut off" sim replay.yaml
cp a.jsonl cut.jsonl
check "a whole one runs again" says "2 nodes, 2 ready" sim replay.yaml
for example in "$root"/examples/simulate/*.yaml; do check "examples/simulate/$(basename "$example") is valid" sim --validate "$example"; done
check "the descheduler and the autoscaler do their part" says "asked for by the autoscaler" sim "$root/examples/simulate/nightly-autoscaling.yaml" -q

# An etcd snapshot is a dump.
snapshot=$root/tests/model/etcd_snapshot.db
check "what-if asks an etcd snapshot" says "1 pod stays pending" "$berth" what-if --cluster "$snapshot" --drain node-2
check "... and says what it left out" says "encrypted" "$berth" what-if --cluster "$snapshot" --drain node-2
printf 'duration: 10m\nfrom: snapshot.db\nassert: [pods.running == 2]\n' >etcd.yaml
cp "$snapshot" snapshot.db
check "a simulation starts from it" sim etcd.yaml
head -c 30000 "$snapshot" >snapshot.db
check "one that is cut off is refused" says "is cut off: 17 pages" sim etcd.yaml

# In real time: the same objects, the same nodes, the same fault; with an audit log.
printf '%s\n' 'apiVersion: audit.k8s.io/v1' 'kind: Policy' 'rules:' \
  '- {level: RequestResponse, resources: [{group: "", resources: ["pods", "pods/*", "nodes", "nodes/*"]}]}' '- {level: Metadata}' >audit-policy.yaml
start_up --nodes 2 --prefix node- --audit-policy-file "$work/audit-policy.yaml" --audit-log-path "$work/audit.log"
eventually 20 kubectl wait --for=condition=Ready node --all --timeout=1s
"$berth" record -o real.jsonl --for 12s >record.txt 2>&1 &
recorder=$!
kubectl apply -f web.yaml >/dev/null
counts_are() { # counts_are RUNNING PENDING SUCCEEDED
  local phases; phases=$(kubectl get pods --no-headers | awk '{print $3}' | sort | uniq -c | awk '{print $2"="$1}' | tr '\n' ' ')
  [ "$phases" = "Completed=$3 Pending=$2 Running=$1 " ] || { echo "$phases"; return 1; }
}
check "berth up ends in the same counts" eventually 30 counts_are 6 1 4
check "the recording ends by itself" wait $recorder
check "... and tells how much there was" says "changes in 12s" cat record.txt
printf 'duration: 30s\nreplay: real.jsonl\nassert: [pods.running == 6 && pods.pending == 1]\n' >real.yaml
check "a recorded cluster runs again, to the same end" sim real.yaml
printf 'duration: 60s\nreplay: audit.log\nassert: [pods.running == 6 && pods.pending == 1 && pods.created == 11]\n' >audited.yaml
check "so does the day that the audit log tells of" sim audited.yaml
check "an audit log becomes a recording" says "changes in" "$berth" record --audit-log audit.log -o audited.jsonl
sed "s/audit.log/audited.jsonl/" audited.yaml >again.yaml
check "... which is the same day" sim again.yaml
check "without a cluster the recorder says so" says "kubeconfig" env KUBECONFIG="$work/none" "$berth" record --for 1s
finish
