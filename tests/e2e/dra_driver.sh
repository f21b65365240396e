#!/usr/bin/env bash
# A DRA driver on a real node (examples/dra-driver): it registers and publishes, pods have the devices of their claims, two share one, one that
# is refused, slow, broken, a driver that goes for good, a node that starts again, and what monitoring agents are told. Needs root, containerd,
# kubectl and python3-grpcio.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
real_node_or_skip "a DRA driver" python3-grpcio kubectl
example=$root/examples/dra-driver
clean() {
  [ -z "${driver_pid:-}" ] || kill "$driver_pid" 2>/dev/null
  rm -f /var/run/cdi/lamp.example.com-*
  end_real_node
}
trap clean EXIT
up() {
  start_real_node --device-plugins "" --plugins-registry "$work/kubelet/plugins_registry" --pod-resources "$work/kubelet/pod-resources"
}
start_driver() {
  /usr/bin/python3 "$example/driver.py" --node real --count 3 --kubeconfig "$KUBECONFIG" --kubelet "$work/kubelet" --state "$work/state" \
    >>"$work/driver.log" 2>&1 &
  driver_pid=$!
}
stop_driver() { kill "-${1:-TERM}" "$driver_pid"; wait "$driver_pid" 2>/dev/null; driver_pid=; }
slices() { kubectl get resourceslices -o jsonpath='{.items[*].spec.driver}'; }
counted() { [ "$(grep -c "^$1" "$work/driver.log")" = "$2" ]; }  # counted LINE TIMES
no_slices() { [ -z "$(slices)" ]; }
lamps_of() { kubectl logs "$1"; }
health() { kubectl get pod "$1" -o jsonpath='{.status.containerStatuses[0].allocatedResourcesStatus[0].name} {.status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health} {.status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].message}'; }
pod_with_lamp() { sed '/^metadata: {name: one}/,$!d' "$example/pods.yaml" | sed '/^---/,$d' | sed "1i apiVersion: v1\nkind: Pod" | sed "s/name: one/name: $1/" | kubectl apply -f - >/dev/null; }
begin_real_node
check "the example is accepted" kubectl apply -f "$example/pods.yaml"
check "without a driver nothing is placed" eventually 20 says "cannot allocate all claims" kubectl get pod one -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}'
start_driver
check "the driver registers" eventually 20 grep -q "registered lamp.example.com" "$work/driver.log"
check "its lamps are published" eventually 20 says lamp.example.com slices
check "the pods run" eventually 60 kubectl wait --for=condition=Ready pod/one pod/first pod/second --timeout=1s
check "a container has its lamp as a file" eventually 10 says lamp- lamps_of one
check "and as a variable" says "=on" lamps_of one
check "a pod that shares one has it" eventually 10 says lamp- lamps_of first
check "two pods see the one they share" test "$(lamps_of first)" = "$(lamps_of second)"
check "which was prepared once" counted "prepared default/shared" 1
check "the status tells that it is healthy" eventually 20 says "claim:lamp Healthy" health one

list() { /usr/bin/python3 - "$work/kubelet/pod-resources/kubelet.sock" <<'P'
import grpc, sys
with grpc.insecure_channel("unix://" + sys.argv[1]) as channel:
    sys.stdout.buffer.write(channel.unary_unary("/v1.PodResourcesLister/List")(b"", timeout=5))
P
}
check "monitoring agents are told who has what" eventually 10 says "lamp.example.com/lamp=" list

id=$(kubectl get pod one -o jsonpath='{.status.containerStatuses[0].containerID}')
stop_up TERM
up
check "after a restart of the node the driver registers anew" eventually 30 counted "registered lamp.example.com" 2
check "and publishes what the node took away" eventually 30 says lamp.example.com slices
check "the pod goes on" [ "$(kubectl get pod one -o jsonpath='{.status.containerStatuses[0].containerID}')" = "$id" ]
kubectl delete pod first --wait=true >/dev/null
check "a shared lamp is not taken back with the first pod" counted "unprepared default/shared" 0
kubectl delete pod second --wait=true >/dev/null
check "but with the last" counted "unprepared default/shared" 1
check "its file is gone" refused ls /var/run/cdi/lamp.example.com-"$(kubectl get resourceclaim shared -o jsonpath='{.metadata.uid}')".json

printf 'lamp-0 broken\nlamp-1 broken\nlamp-2 broken\n' >"$work/state"
check "a broken lamp is told of in the status" eventually 30 says "claim:lamp Unhealthy the bulb is gone" health one
printf 'lamp-0 refuses\nlamp-1 refuses\nlamp-2 refuses\n' >"$work/state"
pod_with_lamp dark
check "what the driver refuses is told" eventually 40 says "does not light up" kubectl get events --field-selector involvedObject.name=dark,reason=FailedPrepareDynamicResources
rm "$work/state"
check "and tried again" eventually 40 kubectl wait --for=condition=Ready pod/dark --timeout=1s
printf 'lamp-0 slow 40\nlamp-1 slow 40\nlamp-2 slow 40\n' >"$work/state"
pod_with_lamp late
eventually 20 kubectl get pod late -o jsonpath='{.spec.nodeName}' >/dev/null
sleep 3
check "a pod that is deleted does not wait for a slow driver's preparing" kubectl delete pod late --wait=true --timeout=30s
rm "$work/state"

stop_driver KILL
kubectl delete pod dark --wait=false >/dev/null
check "a pod whose driver is gone stays until it is back" eventually 30 says FailedUnprepareDynamicResources kubectl get events --field-selector involvedObject.name=dark,reason=FailedUnprepareDynamicResources
check "its slices go after half a minute" eventually 60 no_slices
start_driver
check "and come with the driver" eventually 60 says lamp.example.com slices
check "the pod goes then" eventually 60 refused kubectl get pod dark
finish
