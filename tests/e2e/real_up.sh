#!/usr/bin/env bash
# `berth up` with a real node of its own: plain pods become containers, simulated nodes beside it take only pods that tolerate them, and a restart
# leaves containers alone. Needs root and containerd.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
missing=$(node_missing)
if [ -n "$missing" ]; then echo "skipped: a real node needs $missing"; echo "0 passed, 0 failed"; exit 0; fi
socket=$work/data/node/runtime/containerd.sock
clean() {
  stop_up
  containerd -c "$work/data/node/runtime/containerd.toml" >/dev/null 2>&1 & runtime_pid=$!
  for _ in $(seq 50); do ctr -a "$socket" version >/dev/null 2>&1 && break; sleep 0.1; done
  bridge=$(sed -n 's/.*"bridge":"\([a-z0-9]*\)".*/\1/p' "$work/data/node/runtime/cni/10-berth.conflist" 2>/dev/null)
  stop_runtime
  cleanup
}
trap clean EXIT
start_up --real-node on --nodes 2 --real-node-name real --kubelet-arg eviction-hard=memory.available\<10Mi
mkdir -p "$work/images"
make_image busybox --config.cmd sh
check "it says that the node is real" grep -q "^berth is up: real node real (containers by" "$work/up.log"
check "the node becomes Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
check "simulated nodes are tainted" says "sim.berth.dev/simulated" kubectl get node node-1 -o jsonpath='{.spec.taints[*].key}'
kubectl run plain --image=berth.local/busybox:1 -- sh -c 'echo real; trap "exit 0" TERM; while :; do sleep 0.1; done' >/dev/null
kubectl run pretended --image=nowhere/nothing --overrides='{"spec":{"nodeSelector":{"kubernetes.io/hostname":"node-1"},"tolerations":[{"key":"sim.berth.dev/simulated","operator":"Exists"}]}}' >/dev/null
check "a plain pod is a container" eventually 20 says real kubectl logs plain
check "on the real node" [ "$(kubectl get pod plain -o jsonpath='{.spec.nodeName}')" = real ]
check "a pod that tolerates it is simulated" eventually 10 kubectl wait --for=condition=Ready pod/pretended --timeout=1s
id=$(kubectl get pod plain -o jsonpath='{.status.containerStatuses[0].containerID}')
stop_up TERM
start_up --real-node on --real-node-name real --kubelet-arg eviction-hard=memory.available\<10Mi
check "after a restart the node is Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
check "with the same container" eventually 10 sh -c "[ \"\$(kubectl get pod plain -o jsonpath='{.status.phase} {.status.containerStatuses[0].containerID}')\" = 'Running $id' ]"
check "exec goes on" says again timeout 20 kubectl exec plain -- echo again
kubectl delete pod plain --grace-period=1 --wait=false >/dev/null
check "a deleted pod goes" eventually 20 sh -c "! kubectl get pod plain >/dev/null 2>&1"
stop_up TERM
start_up --real-node off
check "without the real node the taints are gone" eventually 5 [ -z "$(kubectl get node node-1 -o jsonpath='{.spec.taints[*].key}')" ]
check "on a machine without what it needs the reason is said" says "no real node: " sh -c "PATH=/bin timeout 3 '$berth' up --data-dir '$work/other' --listen 127.0.0.1:0 --runtime-endpoint '$work/none.sock'"
finish
