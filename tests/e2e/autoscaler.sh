#!/usr/bin/env bash
# Nodes come and go with the load, through kubectl: the documents' objects, machines, a HorizontalPodAutoscaler, blockers, events.
. "$(dirname "$0")/lib.sh"
examples=$root/examples/autoscaler
start_up --nodes 1 --scan-interval 500ms --controller-arg horizontal-pod-autoscaler-sync-period=1s \
  --controller-arg horizontal-pod-autoscaler-downscale-stabilization=3s --controller-arg horizontal-pod-autoscaler-cpu-initialization-period=1s \
  --controller-arg horizontal-pod-autoscaler-initial-readiness-delay=1s
m() { kubectl -n openshift-machine-api "$@"; }

# The documents' object is taken verbatim; nonsense is refused.
check "the document's ClusterAutoscaler" says "clusterautoscaler.autoscaling.openshift.io/default created" kubectl create -f "$examples/cluster-autoscaler.yaml"
check "its fields come back" says "10m 24 nvidia.com/gpu" kubectl get clusterautoscaler default -o jsonpath='{.spec.scaleDown.delayAfterAdd} {.spec.resourceLimits.maxNodesTotal} {.spec.resourceLimits.gpus[0].type}'
check "another name" says 'must be named "default"' sh -c "sed 's/name: \"default\"/name: other/' '$examples/cluster-autoscaler.yaml' | kubectl create -f -"
check "a delay that is none" says "spec.scaleDown.unneededTime" kubectl patch clusterautoscaler default --type merge -p '{"spec":{"scaleDown":{"unneededTime":"soon"}}}'
check "a negative limit" says "should be greater than or equal to 0" kubectl patch clusterautoscaler default --type merge -p '{"spec":{"resourceLimits":{"maxNodesTotal":-1}}}'
check "with short pauses" kubectl apply -f "$examples/quick.yaml"
check "sets and their bounds" kubectl apply -f "$examples/machine-sets.yaml"
bounds() { [ "$(m get machineset burst-us-east-1a -o jsonpath='{.metadata.annotations.machine\.openshift\.io/cluster-api-autoscaler-node-group-max-size} {.metadata.annotations.machine\.openshift\.io/vCPU}')" = "6 2" ]; }
check "the bounds reach the set, with its machines' size" eventually 10 bounds
check "a bound below one" says "should be greater than or equal to 1" m patch machineautoscaler burst-us-east-1a --type merge -p '{"spec":{"maxReplicas":0}}'
check "the status" eventually 10 says "MachineSet/openshift-machine-api/burst-us-east-1a" kubectl -n kube-system get cm cluster-autoscaler-status -o jsonpath='{.data.status}'

# A set by hand.
m scale machineset burst-us-east-1a --replicas=2 >/dev/null
running() { [ "$(m get machines -o jsonpath='{.items[*].status.phase}' | tr ' ' '\n' | grep -c Running)" -eq "$1" ]; }
nodes() { [ "$(kubectl get nodes -l pool=burst --no-headers 2>/dev/null | grep -c ' Ready')" -eq "$1" ]; }
check "machines become nodes" eventually 20 nodes 2
tells() { kubectl get nodes -l pool=burst -o jsonpath='{range .items[*]}{.metadata.annotations.machine\.openshift\.io/machine} {.spec.providerID} {.status.capacity.cpu}{"\n"}{end}' | grep '^openshift-machine-api/burst-.* simulated:///.* 2$'; }
check "a node tells its machine" eventually 10 tells
check "which says that it runs" eventually 5 sh -c "kubectl get machines -n openshift-machine-api -o jsonpath='{.items[*].status.phase}' | grep -q Running"
check "nobody needs them: they go" eventually 20 nodes 0
check "their machines too" eventually 5 running 0

# Room asked for in advance: all of it comes at once, for those that it was asked for.
request() { kubectl get provreq batch -o jsonpath="{.status.conditions[?(@.type==\"$1\")].reason}"; }
kubectl apply -f "$examples/provisioning-request.yaml" >/dev/null
check "a request is accepted" eventually 15 says "Accepted" request Accepted
check "and provisioned" eventually 15 says "CapacityIsProvisioned" request Provisioned
check "five pods of a core, two a node: three nodes" eventually 20 nodes 3
check "its pods run there" eventually 20 sh -c '[ "$(kubectl get job batch -o jsonpath="{.status.ready}")" = 5 ]'
check "and added no node themselves" says "because it's consuming ProvisioningRequest default/batch" kubectl get events --field-selector reason=NotTriggerScaleUp
check "a request does not change" says "Value is immutable" kubectl patch provreq batch --type merge -p '{"spec":{"provisioningClassName":"check-capacity.autoscaling.x-k8s.io"}}'
check "one that asks for nothing" says "should have at least 1 items" sh -c "sed -n '/^kind: ProvisioningRequest/,/^---/p' '$examples/provisioning-request.yaml' | sed '/^---/d; s/podSets:/podSets: []/; /podTemplateRef/d; /count:/d; 1i apiVersion: autoscaling.x-k8s.io/v1' | kubectl create --validate=false -f -"
check "explained" says "podTemplateRef" kubectl explain provreq.spec.podSets
kubectl delete -f "$examples/provisioning-request.yaml" --wait=false >/dev/null
check "without it its nodes go" eventually 20 nodes 0

# Load brings replicas, replicas bring nodes; without load both go.
kubectl apply -f "$examples/load.yaml" >/dev/null
check "the first pod brings a node" eventually 15 nodes 1
check "it says so" eventually 5 says "pod triggered scale-up: [{MachineSet/openshift-machine-api/burst-us-east-1a 0->1 (max: 6)}]" kubectl get events --field-selector reason=TriggeredScaleUp
check "its load brings more pods and nodes" eventually 25 nodes 3
check "all of them run" eventually 10 sh -c '[ "$(kubectl get deploy load -o jsonpath="{.status.readyReplicas}")" = 6 ]'
kubectl create -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: giant}
spec: {nodeSelector: {pool: burst}, containers: [{name: c, image: i, resources: {requests: {cpu: "64"}}}]}
Y
check "a pod that no group can take" eventually 10 says "pod didn't trigger scale-up: 1 Insufficient cpu" kubectl get events --field-selector reason=NotTriggerScaleUp
check "the load ends, the nodes go" eventually 45 nodes 1
check "with their machines" eventually 5 running 1
check "events of the removal" says "ScaleDown" kubectl get events -A
check "the pod that is left runs" eventually 10 sh -c '[ "$(kubectl get deploy load -o jsonpath="{.status.readyReplicas}")" = 1 ]'
kubectl delete clusterautoscaler default >/dev/null
kubectl delete -f "$examples/machine-sets.yaml" --wait=false >/dev/null 2>&1
check "a deleted set takes its machines along" eventually 20 nodes 0

# Offline.
cat >"$work/dump.yaml" <<Y
kind: MachineSet
apiVersion: machine.openshift.io/v1beta1
metadata: {name: a, namespace: m, annotations: {machine.openshift.io/cluster-api-autoscaler-node-group-max-size: "9", machine.openshift.io/vCPU: "8", machine.openshift.io/memoryMb: "32768"}}
spec: {replicas: 0}
---
{kind: Pod, apiVersion: v1, metadata: {name: p, namespace: default}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "7"}}}]}}
Y
check "a dry run" says "grow    MachineSet/m/a from 0 to 1 (at most 9)" "$berth" autoscaler --cluster "$work/dump.yaml" "$examples/cluster-autoscaler.yaml"
check "a dry run without rules" says "the cluster has no ClusterAutoscaler" "$berth" autoscaler --cluster "$work/dump.yaml"
finish
