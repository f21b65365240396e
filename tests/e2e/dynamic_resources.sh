#!/usr/bin/env bash
# GPUs by dynamic resource allocation (examples/devices) through kubectl: classes, claims, templates; pods that share and compete.
. "$(dirname "$0")/lib.sh"
command -v kubectl >/dev/null || { echo "kubectl is not here: skipped"; finish; }
example=$root/examples/devices/gpus.yaml

start_up --nodes 2 --devices "gpu.example.com=2,model=h100,memory=80Gi"
slices() { [ "$(kubectl get resourceslices -o name | wc -l)" = 2 ]; }
check "every simulated node publishes its devices" eventually 20 slices
check "the slice says what the devices are" says '"value":"80Gi"' kubectl get resourceslice node-1-gpu.example.com -o jsonpath='{.spec.devices[1].capacity.memory}'
check "the table of slices" says "gpu.example.com   node-1" kubectl get resourceslices

check "the example is accepted" kubectl apply -f "$example"
running() { [ "$(kubectl get pods -l app=workers --field-selector status.phase=Running -o name | wc -l)" = "$1" ]; }
check "three workers get a GPU each" eventually 30 running 3
check "two pods share the fourth" kubectl wait --for=condition=Ready pod/first pod/second --timeout=30s
check "the shared claim names both" says "first second" kubectl get resourceclaim shared -o jsonpath='{.status.reservedFor[*].name}'
check "both run where the claim's device is" test "$(kubectl get pod first -o jsonpath='{.spec.nodeName}')" = "$(kubectl get pod second -o jsonpath='{.spec.nodeName}')"
check "no device is given out twice" test 4 = "$(kubectl get resourceclaims -o jsonpath='{range .items[*]}{range .status.allocation.devices.results[*]}{.pool}/{.device}{"\n"}{end}{end}' | sort -u | grep -c .)"
pending=$(kubectl get pods -l app=workers --field-selector status.phase=Pending -o jsonpath='{.items[0].metadata.name}')
check "the fourth worker says why it waits" eventually 20 says "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling." \
  kubectl get pod "$pending" -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}'
check "its claim is pending" says "pending" kubectl get resourceclaims
check "claims in use are allocated and reserved" says "allocated,reserved" kubectl get resourceclaim shared

check "a claim in use stays when it is deleted" kubectl delete resourceclaim shared --wait=false
check "it only waits for its users" says "deleted,allocated,reserved" kubectl get resourceclaim shared
check "the users go" kubectl delete pod first second --wait=true --timeout=30s
check "then the claim goes" eventually 20 refused kubectl get resourceclaim shared
check "and its GPU is the fourth worker's" eventually 30 running 4

check "a pod of a class that is not there says so" kubectl apply -f - <<'Y'
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: odd}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: none.example.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: odd}
spec: {resourceClaims: [{name: r, resourceClaimName: odd}], containers: [{name: c, image: i}]}
Y
check "the message names the class" eventually 20 says "request r: device class none.example.com does not exist" \
  kubectl get pod odd -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}'
check "two pods of a group are given one device to share" kubectl apply -f - <<'Y'
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: for-all}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: ring}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: for-all}]
---
apiVersion: v1
kind: Pod
metadata: {name: ring-0}
spec: {schedulingGroup: {podGroupName: ring}, terminationGracePeriodSeconds: 0, resourceClaims: [{name: gpu, resourceClaimTemplateName: for-all}], containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: ring-1}
spec: {schedulingGroup: {podGroupName: ring}, terminationGracePeriodSeconds: 0, resourceClaims: [{name: gpu, resourceClaimTemplateName: for-all}], containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]}
Y
ring=; ring_claim() { ring=$(kubectl get podgroup ring -o jsonpath='{.status.resourceClaimStatuses[0].resourceClaimName}'); [ -n "$ring" ]; }
check "the group's status names its claim" eventually 20 ring_claim
check "both pods' statuses name the same" eventually 20 sh -c "[ \"\$(kubectl get pod ring-0 ring-1 -o jsonpath='{.items[*].status.resourceClaimStatuses[0].resourceClaimName}')\" = '$ring $ring' ]"
check "while every device is taken neither has a node" sh -c '[ -z "$(kubectl get pod ring-0 ring-1 -o jsonpath="{.items[*].spec.nodeName}")" ]'
check "scaling down gives devices back" kubectl scale deployment workers --replicas=1
one_claim() { [ "$(kubectl get resourceclaims -o name | grep -c workers)" = 1 ]; }
check "claims of deleted pods go with them" eventually 30 one_claim
check "then both of the group run" kubectl wait --for=condition=Ready pod/ring-0 pod/ring-1 --timeout=30s
check "on one node" sh -c '[ "$(kubectl get pod ring-0 -o jsonpath="{.spec.nodeName}")" = "$(kubectl get pod ring-1 -o jsonpath="{.spec.nodeName}")" ]'
check "the claim is reserved for the group, once" says 'scheduling.k8s.io/podgroups/ring;' kubectl get resourceclaim "$ring" -o jsonpath='{range .status.reservedFor[*]}{.apiGroup}/{.resource}/{.name};{end}'
check "the pods go" kubectl delete pod ring-0 ring-1 --ignore-not-found
check "the group keeps its device" says 'allocated,reserved' kubectl get resourceclaim "$ring"
check "until it goes" kubectl delete podgroup ring
check "then the claim goes, too" eventually 30 refused kubectl get resourceclaim "$ring"
check "the class backs a resource" kubectl patch deviceclass gpu.example.com --type=merge -p '{"spec":{"extendedResourceName":"example.com/gpu"}}'
check "a pod asks for it by that name" kubectl apply -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: named}
spec: {containers: [{name: c, image: i, resources: {limits: {example.com/gpu: "2"}}}]}
Y
check "and runs" kubectl wait --for=condition=Ready pod/named --timeout=30s
claim=$(kubectl get pod named -o jsonpath='{.status.extendedResourceClaimStatus.resourceClaimName}')
check "its status says which request is whose" says "c example.com/gpu container-0-request-0" \
  kubectl get pod named -o jsonpath='{range .status.extendedResourceClaimStatus.requestMappings[0]}{.containerName} {.resourceName} {.requestName}{end}'
check "its claim has two devices" test 2 = "$(kubectl get resourceclaim "$claim" -o jsonpath='{.status.allocation.devices.results[*].device}' | wc -w)"
check "which are its pod's" says "allocated,reserved" kubectl get resourceclaim "$claim"
check "the pod goes" kubectl delete pod named --wait=true --timeout=30s
check "and its claim with it" eventually 20 refused kubectl get resourceclaim "$claim"

check "an expression that is none is refused" refused kubectl apply -f - <<'Y'
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: wrong}
spec: {selectors: [{cel: {expression: "device.foo"}}]}
Y
slow=$(kubectl apply -f - 2>&1 <<'Y'
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: slow}
spec: {selectors: [{cel: {expression: "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a != b || c != d))))"}}]}
Y
)
check "and one that could take too long" test "${slow##*: }" = "too complex, exceeds cost limit"
finish
