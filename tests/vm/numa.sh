#!/usr/bin/env bash
# Processors and memory of two NUMA nodes: whole ones from one node, refusals, what schedulers are told, what a restart keeps and an end gives
# back. Needs what cgroups.sh needs, and a machine with two NUMA nodes of two processors each.
. "$(dirname "$0")/lib.sh"
[ "$(cat /sys/devices/system/node/online 2>/dev/null)" = 0-1 ] && [ "$(cat /sys/devices/system/node/node1/cpulist)" = 2-3 ] ||
  { echo "skipped: no two NUMA nodes with two processors each"; echo "0 passed, 0 failed"; exit 0; }
cat >"$work/node.yaml" <<'Y'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
cpuManagerPolicy: static
reservedSystemCPUs: "0"
memoryManagerPolicy: Static
systemReserved: {memory: 190Mi}
evictionHard: {memory.available: 10Mi}
reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}, {numaNode: 1, limits: {memory: 100Mi}}]
topologyManagerPolicy: single-numa-node
Y
up() { start_up --real-node on --nodes 0 --real-node-name real --device-plugins "" --plugins-registry "" --pod-resources "$work/pod-resources" --node-config "$work/node.yaml" "$@"; }
own() { pod "$1" "$forever" "resources: {requests: {cpu: \"$2\", memory: $3}, limits: {cpu: \"$2\", memory: $3}}"; }
sees() { kubectl exec "$1" -- grep "$2" /proc/self/status; }
begin_real_node
check "a pod without processors of its own" pod any "$forever"
check "runs" runs any 40
check "on all of them" eventually 20 has "$(container_group any)" cpuset.cpus.effective 0-3
check "two whole processors" own two 2 64Mi
check "run" runs two 40
check "on the NUMA node that has two" has "$(container_group two)" cpuset.cpus 2-3
check "with its memory" has "$(container_group two)" cpuset.mems 1
check "as the container sees it" says "	2-3" sees two Cpus_allowed_list
check "memory, too" says "	1" sees two Mems_allowed_list
check "without a quota there" has "$(container_group two)" cpu.max "max 100000"
check "nor above" has "$(pod_group two)" cpu.max "max 100000"
check "the other is moved away" eventually 20 has "$(container_group any)" cpuset.cpus.effective 0-1
kubectl delete pod two --wait=true >/dev/null
check "and comes back" eventually 20 has "$(container_group any)" cpuset.cpus.effective 0-3

# ---- two processors are free, but not near each other
check "one processor" own first 1 64Mi
check "runs" runs first 40
check "on the first NUMA node" has "$(container_group first)" cpuset.cpus 1
check "with its memory" has "$(container_group first)" cpuset.mems 0
check "another" own second 1 64Mi
check "runs" runs second 40
check "on the other" has "$(container_group second)" cpuset.cpus 2
kubectl delete pod first --wait=true >/dev/null
check "two from both" own apart 2 64Mi
check "are refused" eventually 30 is apart reason TopologyAffinityError
check "in the kubelet's words" says "Resources cannot be allocated with Topology locality" field apart message
check "more memory than a NUMA node has" own large 1 1100Mi
check "is refused" eventually 30 is large reason TopologyAffinityError
check "a pod that is not Guaranteed may have what it wants" pod spread "$forever" 'resources: {requests: {cpu: 100m, memory: 32Mi}}'
check "and runs" runs spread 40

# ---- a restart keeps who has what
stop_up TERM
up
check "after a restart the node is Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
check "second keeps its processor" has "$(container_group second)" cpuset.cpus 2
check "and the others stay away" eventually 20 has "$(container_group any)" cpuset.cpus.effective 0-1,3
check "a pod that comes gets another" own third 1 64Mi
check "runs" runs third 40
check "on the first NUMA node" has "$(container_group third)" cpuset.cpus 1

# ---- a scheduler that knows
kubectl delete pod apart large third --wait=true >/dev/null
check "the kind" kubectl apply -f "$root/examples/numa/crd.yaml"
stop_up TERM
up --config "$root/examples/numa/scheduler.yaml"
check "the node tells of its NUMA nodes" eventually 40 sh -c "kubectl get noderesourcetopology real -o jsonpath='{.zones[*].name}' | grep -q 'node-0 node-1'"
free() { kubectl get noderesourcetopology real -o jsonpath="{.zones[?(@.name==\"node-$1\")].resources[?(@.name==\"cpu\")].available}"; }
free_are() { local now; now="$(free 0) $(free 1)"; [ "$now" = "$1" ] || { echo "$now"; return 1; }; }
check "of what is free there" eventually 20 free_are "1 1"
check "two from both" own apart 2 64Mi
check "wait" eventually 30 event apart "1 cannot align pod"
check "and are not refused" is apart phase Pending
kubectl delete pod second --wait=true >/dev/null
check "until a NUMA node has both" runs apart 60
check "which they get" has "$(container_group apart)" cpuset.cpus 2-3
kubectl delete pod --all --wait=false >/dev/null
check "all go" eventually 40 gone
[ "$failed" -eq 0 ] || tail -15 "$work/up.log"
finish
