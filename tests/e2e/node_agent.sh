#!/usr/bin/env bash
# The real node agent: pods as real containers, logs, exec, probes, restarts, eviction under memory and disk pressure. Needs root and containerd.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
missing=$(node_missing)
if [ -n "$missing" ]; then echo "skipped: the real node agent needs $missing"; echo "0 passed, 0 failed"; exit 0; fi
trap 'stop_runtime; cleanup' EXIT
start_runtime 512 10.99.$((RANDOM % 250)).0/24 || { echo "skipped: no containerd of our own can be started here"; tail -3 "$work/containerd.log"; echo "0 passed, 0 failed"; exit 0; }
start_up --nodes 1
group=/sys/fs/cgroup/memory/berth-e2e-$$ limit=memory.limit_in_bytes
[ -e /sys/fs/cgroup/cgroup.controllers ] && group=/sys/fs/cgroup/berth-e2e-$$ limit=memory.max
mkdir -p "$group" && echo $((400 << 20)) >"$group/$limit"
start_node --kubelet-arg 'eviction-hard=memory.available<150Mi,nodefs.available<100Mi' --kubelet-arg eviction-pressure-transition-period=8s --kubelet-arg enforce-node-allocatable=
phase() { kubectl get pod "$1" -o jsonpath='{.status.phase}'; }
phase_is() { [ "$(phase "$1")" = "$2" ]; }
ready_is() { [ "$(kubectl get pod "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" = "$2" ]; }
condition_is() { [ "$(kubectl get node real -o jsonpath="{.status.conditions[?(@.type==\"$1\")].status}")" = "$2" ]; }
pod() { # pod NAME COMMAND EXTRA-YAML-OF-CONTAINER EXTRA-YAML-OF-POD
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  nodeName: real\n  terminationGracePeriodSeconds: 2\n%s\n  containers:\n  - name: c\n    image: berth.local/busybox:1\n    command: [sh, -c, %s]\n%s\n' "$1" "${4:-}" "'$2'" "${3:-}" | kubectl apply -f -
}
check "the node becomes Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
check "a wrong threshold is refused at start" says "unsupported eviction signal memory.free" timeout 20 "$berth" node --node-name x --root-dir "$work/x" --runtime-endpoint "$socket" --kubelet-arg 'eviction-hard=memory.free<1Gi'
check "a soft threshold without grace period is refused" says "grace period must be specified for the soft eviction threshold memory.available" timeout 20 "$berth" node --node-name x --root-dir "$work/x" --runtime-endpoint "$socket" --kubelet-arg 'eviction-soft=memory.available<1Gi'

kubectl create configmap settings --from-literal=color=green >/dev/null
check "create a pod" pod talker 'echo hello from $POD $COLOR $(cat /etc/settings/color); trap "exit 0" TERM; while :; do sleep 0.2; done' \
  '    env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color}}}]
    volumeMounts: [{name: settings, mountPath: /etc/settings}]' '  volumes: [{name: settings, configMap: {name: settings}}]'
check "it runs" eventually 20 phase_is talker Running
check "it has an address" sh -c "kubectl get pod talker -o jsonpath='{.status.podIP}' | grep -q '^10.99'"
check "logs, environment and volumes" eventually 10 says "hello from talker green green" kubectl logs talker
check "logs with a tail" says "hello" kubectl logs talker --tail=1
check "exec" says inside timeout 20 kubectl exec talker -- sh -c 'echo inside'
check "exec passes the exit code on" sh -c 'timeout 20 kubectl exec talker -- sh -c "exit 7"; [ $? -eq 7 ]'
check "exec passes standard input on" sh -c 'echo through | timeout 20 kubectl exec -i talker -- cat | grep -q through'
check "the node proxy serves the summary" says '"nodeName":"real"' kubectl get --raw /api/v1/nodes/real/proxy/stats/summary
check "the node proxy serves metrics" says node_memory_working_set_bytes kubectl get --raw /api/v1/nodes/real/proxy/metrics/resource
check "with figures of containers" says 'container_cpu_usage_seconds_total{container=' kubectl get --raw /api/v1/nodes/real/proxy/metrics/resource
check "dashboards see pods' networks" sh -c "kubectl get --raw /api/v1/nodes/real/proxy/metrics/cadvisor | grep -q 'container_network_receive_bytes_total{container=\"\",id=\"/.*interface=\"eth0\",.*pod=\"talker\"'"
started=$(kubectl get pod talker -o jsonpath='{.status.containerStatuses[0].containerID}')
stop_node
start_node --kubelet-arg 'eviction-hard=memory.available<150Mi,nodefs.available<100Mi' --kubelet-arg eviction-pressure-transition-period=8s --kubelet-arg enforce-node-allocatable=
sleep 3
check "a restart of the agent leaves running containers alone" [ "$started" = "$(kubectl get pod talker -o jsonpath='{.status.containerStatuses[0].containerID}')" ]
check "logs after the restart" eventually 10 says hello kubectl logs talker

check "a pod that fails" pod failing 'exit 3' '' '  restartPolicy: Never'
check "is Failed with its exit code" eventually 20 sh -c "[ \"\$(kubectl get pod failing -o jsonpath='{.status.phase} {.status.containerStatuses[0].state.terminated.exitCode}')\" = 'Failed 3' ]"
check "a pod that crashes" pod crashing 'exit 1'
check "is restarted, then backs off" eventually 30 says CrashLoopBackOff kubectl get pod crashing --no-headers
check "a pod with probes" pod probed 'touch /tmp/alive; sleep 2; touch /tmp/ready; while :; do sleep 0.2; done' \
  '    readinessProbe: {exec: {command: [cat, /tmp/ready]}, periodSeconds: 1}
    livenessProbe: {exec: {command: [cat, /tmp/alive]}, periodSeconds: 1, failureThreshold: 1}'
check "is not ready at first" eventually 10 sh -c "kubectl get pod probed --no-headers | grep -q '0/1 *Running'"
check "and ready later" eventually 15 ready_is probed True
kubectl exec probed -- rm /tmp/alive >/dev/null 2>&1
check "a failing liveness probe restarts it" eventually 20 sh -c "[ \"\$(kubectl get pod probed -o jsonpath='{.status.containerStatuses[0].restartCount}')\" -ge 1 ]"
kubectl delete pod failing crashing probed --wait=false >/dev/null

guaranteed='    resources: {requests: {cpu: 50m, memory: 30Mi}, limits: {cpu: 50m, memory: 30Mi}}'
check "a Guaranteed neighbour" pod neighbour 'while :; do sleep 0.2; done' "$guaranteed"
check "runs" eventually 20 phase_is neighbour Running
check "a pod that eats memory" pod hog 'sleep 1; for i in $(seq 40); do dd if=/dev/zero of=/m/$i bs=1M count=10 2>/dev/null; sleep 0.05; done; sleep 100' \
  '    volumeMounts: [{name: m, mountPath: /m}]' '  volumes: [{name: m, emptyDir: {medium: Memory}}]'
check "is evicted" eventually 30 sh -c "kubectl get pod hog -o jsonpath='{.status.phase} {.status.reason} {.status.message}' | grep -q 'Failed Evicted The node was low on resource: memory'"
check "with a DisruptionTarget condition" says TerminationByKubelet kubectl get pod hog -o yaml
check "the node reported MemoryPressure" eventually 5 condition_is MemoryPressure True
check "and is tainted" eventually 10 says node.kubernetes.io/memory-pressure kubectl get node real -o yaml
check "its Guaranteed neighbour lives" [ "$(kubectl get pod neighbour -o jsonpath='{.status.phase}{.status.containerStatuses[0].restartCount}')" = Running0 ]
check "the condition goes after the transition period" eventually 30 condition_is MemoryPressure False
check "and the taint with it" eventually 15 sh -c "! kubectl get node real -o yaml | grep -q memory-pressure"

check "a pod that fills the disk" pod filler 'dd if=/dev/zero of=/tmp/fill bs=1M count=480 2>/dev/null; while :; do sleep 0.2; done'
check "is evicted" eventually 60 sh -c "kubectl get pod filler -o jsonpath='{.status.reason} {.status.message}' | grep -q 'Evicted The node was low on resource: ephemeral-storage'"
check "its neighbour lives" phase_is neighbour Running
kubectl delete pod filler hog neighbour talker --wait=false >/dev/null
gone() { [ -z "$(kubectl get pods -o name)" ]; }
check "every pod can be deleted" eventually 40 gone
check "nothing is left in the runtime" eventually 10 sh -c "[ -z \"\$(ctr -a $socket -n k8s.io containers ls -q)\" ]"
check "no cgroup is left" sh -c "! find $group/kubepods -type d -name 'pod*' | grep -q ."
check "no directory is left" sh -c "! ls $work/disk/node/pods $work/disk/node/logs | grep -qE '[0-9a-f]{8}-'"
[ "$failed" -eq 0 ] || tail -20 "$work/node.log"
finish
