#!/usr/bin/env bash
# A device plugin on a real node (examples/device-plugin): its devices are the node's, pods hold them, one that breaks, a plugin that goes and a node
# that starts again. Needs root, containerd and python3-grpcio.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
real_node_or_skip "a device plugin" python3-grpcio
plugins=$work/plugins
clean() {
  [ -z "$plugin_pid" ] || kill "$plugin_pid" 2>/dev/null
  end_real_node
}
trap clean EXIT
up() { start_real_node --device-plugins "$plugins"; }
start_plugin() {
  /usr/bin/python3 "$(dirname "$0")/../../examples/device-plugin/plugin.py" example.com/lamp 2 --directory "$plugins" --state "$work/broken" >"$work/plugin.log" 2>&1 &
  plugin_pid=$!
}
lamps() { kubectl get node real -o jsonpath="{.status.$1.example\.com/lamp}"; }
pod() {
  kubectl apply -f - >/dev/null <<YAML
# YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: ${3:-Always}
  containers:
  - {name: c, image: "berth.local/busybox:1", command: [sh, -c, 'echo "\$LAMP_DEVICES"; ls /dev/lamp-*; trap "exit 0" TERM; while :; do sleep 0.1; done'], resources: {limits: {example.com/lamp: "$2"}}}
YAML
}
begin_real_node
start_plugin
check "its devices are the node's" eventually 20 says 2 lamps allocatable
pod one 1
check "a pod holds one, as file and variable" eventually 30 says /dev/lamp-0 kubectl logs one
check "and is told which" says "lamp-0" kubectl logs one
pod both 2
check "two more are not there" eventually 20 says "1 Insufficient example.com/lamp" kubectl get pod both -o jsonpath='{.status.conditions[0].message}'
kubectl delete pod one --wait=true >/dev/null
check "when the first is gone the other holds both" eventually 30 says /dev/lamp-1 kubectl logs both
id=$(kubectl get pod both -o jsonpath='{.status.containerStatuses[0].containerID}')
stop_up TERM
up
check "after a restart the plugin registers anew" eventually 30 says 2 lamps allocatable
check "the pod goes on" [ "$(kubectl get pod both -o jsonpath='{.status.containerStatuses[0].containerID}')" = "$id" ]
pod third 1
sleep 2
check "its devices are still its own" says Insufficient kubectl get pod third -o jsonpath='{.status.conditions[0].message}'
kubectl delete pod both --wait=true >/dev/null
check "and are given on" eventually 30 says lamp- kubectl logs third
echo lamp-1 >"$work/broken"
check "a broken one is not allocatable" eventually 20 says 1 lamps allocatable
check "but there" says 2 lamps capacity
kill "$plugin_pid"; plugin_pid=
check "a plugin that goes leaves nothing to be had" eventually 20 says 0 lamps allocatable
check "what a pod holds goes on" [ "$(kubectl get pod third -o jsonpath='{.status.phase}')" = Running ]
finish
