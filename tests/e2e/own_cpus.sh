#!/usr/bin/env bash
# Processors and memory of their own on a real node (cpuManagerPolicy: static, memoryManagerPolicy: Static, topologyManagerPolicy): who has which,
# who is moved, what a restart keeps. Needs root, containerd and two processors.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
real_node_or_skip "a processor of one's own" "a second processor" kubectl
trap end_real_node EXIT
up() {
  start_real_node --device-plugins "" --plugins-registry "" --pod-resources "$work/pod-resources" --kubelet-arg cpu-manager-policy=static --kubelet-arg reserved-cpus=0 --kubelet-arg memory-manager-policy=Static --kubelet-arg system-reserved=memory=90Mi --kubelet-arg 'reserved-memory=0:memory=100Mi' --kubelet-arg topology-manager-policy=single-numa-node "$@"
}
pod() { # pod NAME CPU [LIMITS]
  kubectl apply -f - >/dev/null <<YAML
# YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: "berth.local/busybox:1"
    command: [sh, -c, 'trap "exit 0" TERM; while :; do sleep 0.1; done']
    resources: {requests: {cpu: "$2", memory: 32Mi}${3:+, limits: {cpu: "$2", memory: 32Mi\}}}
YAML
}
runs_on() { kubectl exec "$1" -- grep Cpus_allowed_list /proc/1/status; }
begin_real_node
pod any 0  # What is reserved is not there to be asked for.
check "a pod runs on all processors" eventually 30 says "0-$(($(nproc) - 1))" runs_on any
pod own 1 guaranteed
check "one that is Guaranteed has a processor to itself" eventually 30 says "	1" runs_on own
has_memory_of() { kubectl exec "$1" -- grep Mems_allowed_list /proc/1/status; }
check "its memory comes from one NUMA node" says "	0" has_memory_of own
check "who has it is written down" grep -q '"numaAffinity":\[0\],"type":"memory","size":33554432' "$(find "$work" -name memory_manager_state | head -n 1)"
on_others() { local where; where=$(runs_on any) && ! grep -qE '	(0-[1-9]|1)' <<<"$where"; }
check "the other is moved from it" eventually 20 on_others
stop_up TERM
up
check "a restart keeps it" eventually 30 says "	1" runs_on own
check "and the others away from it" on_others
kubectl delete pod own --wait=true >/dev/null
check "when it is gone all are shared" eventually 20 says "0-$(($(nproc) - 1))" runs_on any
stop_up TERM
wrong() { # wrong TEXT ARGUMENT: a node with this argument says that text
  "$berth" up --data-dir "$work/wrong-data" --listen 127.0.0.1:0 --real-node on --nodes 0 --real-node-name real --kubelet-arg "$2" >"$work/wrong" 2>&1 &
  local pid=$! result
  eventually 20 grep -qF "$1" "$work/wrong"; result=$?
  kill $pid 2>/dev/null; wait $pid 2>/dev/null
  return $result
}
check "an unknown policy is said" wrong 'unknown policy: "dynamic"' cpu-manager-policy=dynamic
check "one of alignment, too" wrong 'must be one of: ["none"' topology-manager-policy=sometimes
check "and memory that is reserved for nothing" wrong 'reservedMemory has no effect' reserved-memory=0:memory=7Mi
finish
