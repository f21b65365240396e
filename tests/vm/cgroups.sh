#!/usr/bin/env bash
# Control groups of version 2 as the kernel has them: what classes, pods and containers get, what a resize changes, who is killed and who is not,
# what is told of it, what a restart keeps and what the end leaves. Needs root, containerd and a machine with cgroup version 2 alone.
. "$(dirname "$0")/lib.sh"
up() { start_real_node --device-plugins "" --plugins-registry "" --kubelet-arg fail-swap-on=false --kubelet-arg pod-max-pids=200 "$@"; }
begin_real_node
kubepods=$groups/kubepods
check "nobody complains about version 1" refused event real CgroupV1
check "memory is watched by pressure" grep -q 'memory is watched by pressure triggers' "$work/up.log"
check "controllers are handed down" sh -c "for one in cpuset cpu memory pids; do grep -qw \$one $kubepods/cgroup.subtree_control || { cat $kubepods/cgroup.subtree_control; exit 1; }; done"
check "pods get what is allocatable, and the threshold" has $kubepods memory.max $(($(awk '/MemTotal/ {print $2}' /proc/meminfo) * 1024))
check "BestEffort has the least weight" has $kubepods/besteffort cpu.weight 1

# ---- what pods get
check "a Guaranteed pod" pod guaranteed "$forever" 'resources: {requests: {cpu: 500m, memory: 64Mi}, limits: {cpu: 500m, memory: 64Mi}}'
check "a Burstable one" pod burstable "$forever" 'resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {memory: 200Mi}}'
check "a BestEffort one" pod besteffort "$forever"
check "one with limits of its own" pod whole "$forever" 'resources: {}' 'resources: {requests: {cpu: 200m, memory: 40Mi}, limits: {cpu: 400m, memory: 80Mi}}'
for one in guaranteed burstable besteffort whole; do check "$one runs" runs $one 40; done
one=$(pod_group guaranteed)
check "Guaranteed stands right below" [ "${one%/*}" = $kubepods ]
for file in "cpu.max 50000 100000" "cpu.weight 20" "memory.max 67108864" "pids.max 200"; do check "its pod has $file" has "$one" ${file%% *} "${file#* }"; done
one=$(container_group guaranteed)
for file in "cpu.max 50000 100000" "cpu.weight 20" "memory.max 67108864" "memory.oom.group 1" "memory.swap.max 0"; do check "its container has $file" has "$one" ${file%% *} "${file#* }"; done
one=$(pod_group burstable)
check "Burstable stands in its class" [ "${one%/*}" = $kubepods/burstable ]
for file in "cpu.max max 100000" "cpu.weight 4" "memory.max 209715200"; do check "its pod has $file" has "$one" ${file%% *} "${file#* }"; done
check "the class has the weight of all its pods" eventually 60 has $kubepods/burstable cpu.weight 12
one=$(pod_group besteffort)
check "BestEffort stands in its class" [ "${one%/*}" = $kubepods/besteffort ]
for file in "cpu.max max 100000" "cpu.weight 1" "memory.max max"; do check "its pod has $file" has "$one" ${file%% *} "${file#* }"; done
for one in "$(pod_group whole)" "$(container_group whole)"; do
  for file in "cpu.max 40000 100000" "memory.max 83886080"; do check "of the pod's own resources $file" has "$one" ${file%% *} "${file#* }"; done
done
check "a container sees its own limits" says "67108864" kubectl exec guaranteed -- cat /sys/fs/cgroup/memory.max

# ---- resize
resize() { kubectl patch pod "$1" --subresource resize -p "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":$2}]}}"; }
first=$(field guaranteed 'containerStatuses[0].containerID')
check "more is asked for" resize guaranteed '{"requests":{"cpu":"800m","memory":"96Mi"},"limits":{"cpu":"800m","memory":"96Mi"}}'
check "and there: cpu" eventually 20 has "$(container_group guaranteed)" cpu.max "80000 100000"
check "memory" has "$(container_group guaranteed)" memory.max 100663296
check "of the pod, too" eventually 20 has "$(pod_group guaranteed)" memory.max 100663296
check "and told" eventually 20 is guaranteed 'containerStatuses[0].resources.limits.memory' 96Mi
check "less is asked for" resize guaranteed '{"requests":{"cpu":"300m","memory":"48Mi"},"limits":{"cpu":"300m","memory":"48Mi"}}'
check "and there: cpu" eventually 20 has "$(container_group guaranteed)" cpu.max "30000 100000"
check "memory" eventually 20 has "$(container_group guaranteed)" memory.max 50331648
check "of the pod, too" eventually 20 has "$(pod_group guaranteed)" memory.max 50331648
check "without a restart" is guaranteed 'containerStatuses[0].containerID' "$first"
check "no swap through all of it" has "$(container_group guaranteed)" memory.swap.max 0
check "a pod with 100 MiB in use" pod user 'x=$(dd if=/dev/zero bs=1M count=50 2>/dev/null | tr "\\0" a); echo filled; '"$forever" 'resources: {requests: {memory: 10Mi}, limits: {memory: 300Mi}}'
check "that has filled it" eventually 40 says filled kubectl logs user
check "is to have 20" resize user '{"requests":{"memory":"10Mi"},"limits":{"memory":"20Mi"}}'
check "which is an error" eventually 20 says Error condition user PodResizeInProgress reason
check "in the kubelet's words" says "cannot decrease memory limits: [attempting to set pod memory limit (20971520) below current usage (" condition user PodResizeInProgress message
check "and an event" event user "Warning ResizeError Pod resize error: "
check "nobody is killed for it" is user 'containerStatuses[0].restartCount' 0
check "what is in force stays" has "$(container_group user)" memory.max 314572800
check "one that it can have" resize user '{"requests":{"memory":"10Mi"},"limits":{"memory":"250Mi"}}'
check "comes" eventually 40 has "$(pod_group user)" memory.max 262144000
without_condition() { [ -z "$(condition user PodResizeInProgress reason)" ]; }
check "and the condition goes" eventually 20 without_condition
kubectl delete pod user --wait=false >/dev/null

# ---- the OOM killer takes a container as a whole
check "a container that outgrows its limit by a child" pod greedy 'sleep 1; (x=$(dd if=/dev/zero bs=1M count=60 2>/dev/null | tr "\\0" a); echo "$x" | wc -c); echo survived; sleep 100' 'resources: {limits: {memory: 30Mi}}'
check "is OOMKilled" eventually 40 is greedy 'containerStatuses[0].lastState.terminated.reason' OOMKilled
check "by exit code" is greedy 'containerStatuses[0].lastState.terminated.exitCode' 137
check "with all that was in it" refused says survived kubectl logs greedy --previous
check "that is no SystemOOM" sh -c "! kubectl get events --field-selector reason=SystemOOM -o name | grep -q ."
kubectl delete pod greedy --wait=false >/dev/null

# ---- what is told, and what the files say
check "a pod that waits for its processor" pod busy 'while :; do :; done' 'resources: {requests: {cpu: 50m, memory: 20Mi}, limits: {cpu: 100m, memory: 40Mi}}'
check "runs" runs busy 40
busy=$(container_group busy)
waited() { [ "$(sed -n 's/^some .*total=//p' "$busy/cpu.pressure")" -gt 1000000 ]; }
check "and waits" eventually 20 waited
figures() {
  local all; all=$(node_says stats/summary) || return 1
  local own="[c for p in j['pods'] if p['podRef']['name'] == 'busy' for c in p['containers']][0]"
  near "$(of "$all" "$own['memory']['workingSetBytes']")" $(($(cat "$busy/memory.current") - $(awk '/^inactive_file/ {print $2}' "$busy/memory.stat"))) 30 &&
    near "$(of "$all" "$own['cpu']['usageCoreNanoSeconds'] // 1000")" "$(awk '/^usage_usec/ {print $2}' "$busy/cpu.stat")" 30 &&
    near "$(of "$all" "$own['cpu']['psi']['some']['total']")" "$(sed -n 's/^some .*total=//p' "$busy/cpu.pressure")" 40 &&
    [ "$(of "$all" "all(r in x and 'psi' in x[r] for x in [j['node'], j['pods'][0], j['node']['systemContainers'][0]] for r in ['cpu', 'memory', 'io'])")" = True ] &&
    near "$(of "$all" "j['node']['memory']['usageBytes']")" $(($(awk '/MemTotal/ {t = $2} /MemFree/ {f = $2} END {print t - f}' /proc/meminfo) * 1024)) 10
}
check "the summary has the kernel's figures, and who waits" eventually 10 figures
metric() { node_says "$1" | awk -v family="$2" -v pod="pod=\"$3\"" -v more="${4:-}" 'index($0, family "{") == 1 && index($0, pod) && index($0, more) {print $2; exit}'; }
check "metrics: processor time" near "$(metric metrics/resource container_cpu_usage_seconds_total busy)" "$(awk '/^usage_usec/ {print $2 / 1e6}' "$busy/cpu.stat")" 30
check "metrics: working set" [ "$(metric metrics/resource container_memory_working_set_bytes busy | cut -d. -f1)" != "" ]
check "cadvisor: waiting" near "$(metric metrics/cadvisor container_pressure_cpu_waiting_seconds_total busy 'container="c"')" "$(sed -n 's/^some .*total=//p' "$busy/cpu.pressure" | awk '{print $1 / 1e6}')" 40
check "cadvisor: throttled" near "$(metric metrics/cadvisor container_cpu_cfs_throttled_periods_total busy 'container="c"')" "$(awk '/^nr_throttled/ {print $2}' "$busy/cpu.stat")" 40
check "cadvisor: the limit" [ "$(metric metrics/cadvisor container_spec_memory_limit_bytes busy 'container="c"' | awk '{print $1 / 1048576}')" = 40 ]
check "cadvisor: the machine's memory" near "$(metric metrics/cadvisor container_memory_usage_bytes "" 'id="/"')" $(($(awk '/MemTotal/ {t = $2} /MemFree/ {f = $2} END {print t - f}' /proc/meminfo) * 1024)) 10
check "kubectl top" eventually 40 says busy kubectl top pod
kubectl delete pod busy --wait=false >/dev/null

# ---- exec, logs, probes, user namespaces, the end
check "a pod with probes" pod probed 'echo begun; touch /tmp/up; '"$forever" 'readinessProbe: {exec: {command: [cat, /tmp/up]}, periodSeconds: 1, timeoutSeconds: 10}'
check "is ready" eventually 40 kubectl wait --for=condition=Ready pod/probed --timeout=1s
check "logs" says begun kubectl logs probed
check "exec" says hello kubectl exec probed -- echo hello
check "and in the container's own group" sh -c "kubectl exec probed -- cat /proc/self/cgroup | grep -q '^0::/'"
check "a pod with users of its own" pod users "$forever" "" 'hostUsers: false'
check "waits, and says why" eventually 20 event users "spec.hostUsers is false, and this node's agent makes no user namespaces"
kubectl delete pod users --wait=false >/dev/null

containers() { kubectl get pods -o jsonpath='{range .items[*]}{.metadata.name} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}{"\n"}{end}' | sort; }
check "all others are gone" eventually 60 sh -c "[ \"\$(kubectl get pods -o name | wc -l)\" = 5 ]"
before=$(containers)
same_containers() { [ "$before" = "$(containers)" ] || { echo "$before"; containers; return 1; }; }
stop_up TERM
up
check "after a restart of the agent the node is Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
check "with the same containers" eventually 20 same_containers
check "exec goes on" says again kubectl exec guaranteed -- echo again
check "limits too" has "$(pod_group guaranteed)" memory.max 50331648
kubectl delete pod --all --wait=false >/dev/null
check "every pod can be deleted" eventually 40 gone
check "and its groups with it" eventually 20 sh -c "! find $kubepods -type d -name 'pod*' | grep -q ."
stop_up TERM
check "a node without pods leaves no group behind" [ ! -e $kubepods ]

# ---- the machine itself runs short: the pod goes before the kernel has to kill
# As the kubelet has it: what there is, less what programs use and page cache that was used lately.
available=$(awk '/^MemTotal/ {total = $2 * 1024} /^anon |^file / {used += $2} /^inactive_file / {used -= $2} END {print int((total - used) / 1048576)}' /proc/meminfo /sys/fs/cgroup/memory.stat)
start_up --real-node on --nodes 0 --real-node-name real --device-plugins "" --plugins-registry "" --kubelet-arg fail-swap-on=false --kubelet-arg "eviction-hard=memory.available<$((available - 300))Mi"
check "a node with a high threshold" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
check "a neighbour" pod neighbour "$forever" 'resources: {requests: {cpu: 10m, memory: 20Mi}, limits: {cpu: 10m, memory: 20Mi}}'
check "runs" runs neighbour 40
check "a pod that fills the machine" pod filler 'dd if=/dev/zero of=/m/f bs=1M count=600 2>/dev/null; '"$forever" 'volumeMounts: [{name: m, mountPath: /m}]' 'volumes: [{name: m, emptyDir: {medium: Memory}}]'
check "is evicted" eventually 60 is filler reason Evicted
check "and says why" says "The node was low on resource: memory. Threshold quantity:" field filler message
check "MemoryPressure is told" eventually 10 sh -c "kubectl get node real -o jsonpath='{.status.conditions[?(@.type==\"MemoryPressure\")].status}' | grep -q True"
check "the neighbour lives" is neighbour 'containerStatuses[0].restartCount' 0
check "the kernel killed nobody" sh -c "! kubectl get events --field-selector reason=SystemOOM -o name | grep -q ."
kubectl delete pod --all --wait=false >/dev/null
check "all go" eventually 40 gone
[ "$failed" -eq 0 ] || tail -15 "$work/up.log"
finish
