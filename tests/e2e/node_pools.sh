#!/usr/bin/env bash
# Node pools by kubectl: what a new user does wrong, load that comes, the cheapest nodes for it, load that goes, consolidation, faults.
. "$(dirname "$0")/lib.sh"
examples=$root/examples/node-pools
apply() { printf '# YAML\n%s\n' "$1" | kubectl apply -f -; }  # What begins with a brace kubectl takes for JSON.
pool() { # pool NAME TEMPLATE-SPEC MORE
  apply "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: $1}, spec: {template: {spec: $2}${3:+, $3}}}"
}
class='nodeClassRef: {group: sim.berth.dev, kind: SimulatedNodeClass, name: default}'

# ---- asked beforehand, without a cluster
plan() { "$berth" pools plan --instance-types "$examples/instance-types.yaml" "$@"; }
check "a plan names nodes and their cost" says 'USD an hour' plan --node-pool "$examples/node-pool.yaml" -f "$examples/web.yaml"
check "and how far from the best it can be" says 'above what is possible' plan --node-pool "$examples/node-pool.yaml" -f "$examples/web.yaml"
check "as JSON" says '"lowerBoundPerHour"' plan --node-pool "$examples/node-pool.yaml" -f "$examples/web.yaml" -o json
check "no pool" says 'there is no NodePool' plan --cluster "$examples/web.yaml"
check "what-if buys from pools" says '0.000 → 0.393 USD' "$berth" what-if --cluster "$examples/node-pool.yaml" -f "$examples/web.yaml" --node-pool "$examples/node-pool.yaml" --instance-types "$examples/instance-types.yaml"
check "not without prices" says 'needs --instance-types' "$berth" what-if --cluster "$examples/node-pool.yaml" -f "$examples/web.yaml" --node-pool "$examples/node-pool.yaml"
check "pack with a catalogue" says 'Cost an hour' "$berth" pack --cluster "$root/examples/what-if/cluster.yaml" --catalogue "$examples/instance-types.yaml"
check "a verb that is none" says 'has no verb "buy"' "$berth" pools buy
printf 'kind: InstanceTypeCatalogue\ninstanceTypes:\n- {name: a, cpu: two, memory: 4Gi, price: 1}\n' >"$work/bad.yaml"
check "a bad catalogue is refused with its lines" says 'bad.yaml:3: instanceTypes[0].cpu: "two" is no amount' "$berth" pools plan --instance-types "$work/bad.yaml" --node-pool "$examples/node-pool.yaml" -f "$examples/web.yaml"
check "a typo in a pool is refused with its line" says 'pool.yaml:14: spec.template.spec.requirments: unknown field; did you mean "requirements"?' sh -c 'sed s/requirements:/requirments:/ "$1" >"$2/pool.yaml"; "$3" pools plan --instance-types "$4" --node-pool "$2/pool.yaml" -f "$5"' - "$examples/node-pool.yaml" "$work" "$berth" "$examples/instance-types.yaml" "$examples/web.yaml"
check "an operator that is none, too" says 'spec.template.spec.requirements[0].operator: Unsupported value: "Inn"' sh -c 'sed "s/operator: In,/operator: Inn,/" "$1" >"$2/pool.yaml"; "$3" pools plan --instance-types "$4" --node-pool "$2/pool.yaml" -f "$5"' - "$examples/node-pool.yaml" "$work" "$berth" "$examples/instance-types.yaml" "$examples/web.yaml"
check "a field that a workload does not have is told" says 'web.yaml:5: unknown field "spec.replcas"; did you mean "replicas"?' sh -c 'sed s/replicas:/replcas:/ "$1" >"$2/web.yaml"; "$3" pools plan --instance-types "$4" --node-pool "$5" -f "$2/web.yaml"' - "$examples/web.yaml" "$work" "$berth" "$examples/instance-types.yaml" "$examples/node-pool.yaml"
check "up refuses it, too" says 'unknown field "price"; did you mean "prices"?' "$berth" up --data-dir "$work/none" --instance-types "$work/bad.yaml" --validate

start_up --nodes 0 --real-node off --instance-types "$examples/instance-types.yaml"
check "the kinds are there" eventually 20 says 'nodeclaims' kubectl api-resources --api-group=karpenter.sh
check "they are explained" eventually 10 says 'minValues' kubectl explain nodepool.spec.template.spec.requirements

# ---- mistakes
check "an operator that is none" says 'Unsupported value: "Equals"' pool bad "{$class, requirements: [{key: kubernetes.io/arch, operator: Equals, values: [amd64]}]}"
check "In without values" says 'operator In needs values' pool bad "{$class, requirements: [{key: kubernetes.io/arch, operator: In}]}"
check "Gt of a word" says 'a whole number' pool bad "{$class, requirements: [{key: example.com/cpu, operator: Gt, values: [many]}]}"
check "no class" says 'nodeClassRef: Required value' pool bad '{requirements: []}'
check "a policy that is none" says 'consolidationPolicy: Unsupported value' pool bad "{$class, requirements: []}" 'disruption: {consolidateAfter: 1s, consolidationPolicy: Always}'
check "a time that is none" says 'consolidateAfter' pool bad "{$class, requirements: []}" 'disruption: {consolidateAfter: soon}'
check "a schedule without duration" says 'schedule and duration go together' pool bad "{$class, requirements: []}" 'disruption: {consolidateAfter: 1s, budgets: [{nodes: "1", schedule: "@daily"}]}'
check "a field in wrong letters" says 'unknown field "spec.template.spec.startuptaints"' pool bad "{$class, requirements: [], startuptaints: []}"
check "a pool whose class is not there" pool early "{nodeClassRef: {group: sim.berth.dev, kind: SimulatedNodeClass, name: nope}, requirements: []}"
ready() { kubectl get nodepool "$1" -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.message}{"\n"}{end}'; }
check "says so" eventually 10 says 'Ready=False there is no SimulatedNodeClass named "nope"' ready early
check "a pool that no type fits" pool none "{$class, requirements: [{key: kubernetes.io/arch, operator: In, values: [s390x]}]}"
check "says so, too" eventually 10 says 'ValidationSucceeded=False no instance type of the catalogue meets the requirements' ready none
kubectl delete nodepool early none >/dev/null

# ---- load comes
check "a pool" kubectl apply -f "$examples/node-pool.yaml"
check "is ready" eventually 10 says 'Ready=True' ready general
check "its columns" says 'NODECLASS' kubectl get nodepools
check "without pods no nodes" says 'No resources found' kubectl get nodes
kubectl apply -f "$examples/web.yaml" >/dev/null
running() { [ "$(kubectl get deploy "$1" -o jsonpath='{.status.readyReplicas}')" = "$2" ]; }
check "all pods run" eventually 40 running web 10
check "of both workloads" eventually 20 running cache 4
check "claims say what they are" says 'on-demand' kubectl get nodeclaims
claims() { kubectl get nodeclaims -o jsonpath='{range .items[*]}{.metadata.labels.node\.kubernetes\.io/instance-type} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}'; }
cheapest() { [ "$(claims | sort | uniq -c | tr -s ' ' | tr '\n' ';')" = " 1 r6a.xlarge True; 4 t3.medium True;" ] || { claims; return 1; }; }
check "they are the cheapest mixture, all ready" eventually 20 cheapest
check "the pool counts them" eventually 10 says '5' kubectl get nodepool general -o jsonpath='{.status.nodes}'
check "its event says what they cost" says '5 claims for 14 pods, 0.3932 USD an hour' kubectl get events -A --field-selector reason=Provisioned
check "a node tells its claim and its labels" says 'everybody' kubectl get nodes -L team
check "what pods do not get is not offered" says '1930m' kubectl get nodes -l node.kubernetes.io/instance-type=t3.medium -o jsonpath='{.items[0].status.allocatable.cpu}'
check "a pod that no type can hold" apply '{apiVersion: v1, kind: Pod, metadata: {name: giant}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "500"}}}]}}'
check "is told so" eventually 20 says 'no instance type that it may go to has as much cpu' kubectl get events --field-selector reason=NoNodePool
check "explain says it, too" says 'No NodePool gives it a node: pool "general": no instance type' "$berth" explain pod giant
kubectl delete pod giant --now >/dev/null
check "nothing would be bought now, by what the cluster says" says 'nothing to buy' "$berth" pools plan
check "what would be bought for ten more" says 'x r6a' "$berth" what-if --scale default/cache=8 --instance-types "$examples/instance-types.yaml"
check "a claim's spec does not change" says "a claim's spec does not change" sh -c "kubectl patch \$(kubectl get nodeclaims -o name | head -n 1) --type merge -p '{\"spec\":{\"expireAfter\":\"1h\"}}'"

# ---- load goes
kubectl patch nodepool general --type merge -p '{"spec":{"disruption":{"consolidateAfter":"2s","budgets":[{"nodes":"100%"}]}}}' >/dev/null
kubectl scale deploy web --replicas=2 >/dev/null
kubectl scale deploy cache --replicas=0 >/dev/null
one_left() { [ "$(kubectl get nodes --no-headers 2>/dev/null | wc -l)" = "$1" ]; }
check "nodes without need go" eventually 90 one_left 1
check "with their claims" eventually 20 says 't3.medium True' claims
check "the pods run" eventually 20 running web 2
check "it was said what that saves" says 'an hour less' kubectl get events -A --field-selector reason=Disrupted
check "and why the last one stays" eventually 30 says 'its pods have no cheaper place' kubectl get events -A --field-selector reason=Unconsolidatable
explained() { "$berth" explain node "$(kubectl get nodes -o jsonpath='{.items[0].metadata.name}')"; }
check "explain node tells its price" says '0.0416 USD an hour' explained
# Whose pods moved here lately is not asked before consolidateAfter is over; the event above may be another node's.
check "and why it stays" eventually 20 says 'It stays: its pods have no cheaper place' explained
check "beforehand the same" eventually 20 says 'nothing to do' "$berth" pools consolidate --instance-types "$examples/instance-types.yaml"

# ---- machines fail
kubectl patch simulatednodeclass default --type merge -p '{"spec":{"repairPolicies":[{"conditionType":"Ready","conditionStatus":"Unknown","tolerationDuration":"2s"}]}}' >/dev/null
old=$(kubectl get nodes -o jsonpath='{.items[0].metadata.name}')
kubectl annotate node "$old" sim.berth.dev/interruption=40s >/dev/null
check "an interruption is told" eventually 10 says 'InstanceTerminating' kubectl get nodeclaim "$old" -o jsonpath='{.status.conditions[?(@.type=="Interrupted")].reason}'
check "the node is replaced" eventually 60 sh -c "! kubectl get node $old && [ \"\$(kubectl get deploy web -o jsonpath='{.status.readyReplicas}')\" = 2 ]"
check "before its machine is gone" refused says InstanceTerminated kubectl get events -A
check "a policy that is none" says 'Unsupported value' kubectl patch simulatednodeclass default --type merge -p '{"spec":{"repairPolicies":[{"conditionType":"Ready","conditionStatus":"Dead","tolerationDuration":"2s"}]}}'

# ---- drift, deletion, the end
before=$(kubectl get nodes -o name)
kubectl patch nodepool general --type merge -p '{"spec":{"template":{"metadata":{"labels":{"team":"nobody"}}}}}' >/dev/null
replaced() { [ "$(kubectl get nodes -l team=nobody --no-headers 2>/dev/null | wc -l)" = 1 ] && refused kubectl get "$before"; }
check "a changed template replaces the node" eventually 90 replaced
check "the pods run there" eventually 20 running web 2
node=$(kubectl get nodes -o jsonpath='{.items[0].metadata.name}')
kubectl delete node "$node" --wait=false >/dev/null
check "a node deleted by hand is drained and replaced" eventually 60 sh -c "! kubectl get node $node && [ \"\$(kubectl get deploy web -o jsonpath='{.status.readyReplicas}')\" = 2 ]"
kubectl delete deploy web cache >/dev/null
kubectl delete nodepool general --wait=false >/dev/null
check "a deleted pool takes its claims and nodes along" eventually 60 one_left 0
check "nothing is left" eventually 30 says 'No resources found' kubectl get nodeclaims
finish
