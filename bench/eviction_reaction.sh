#!/usr/bin/env bash
# bench/eviction_reaction.sh BERTH [RUNS]: how long a real node (400 MiB, threshold 150 MiB) takes from less memory than the threshold to the kill
# signal in the pod that eats it. Prints a line per run, then one for bench/history.jsonl. Needs root, containerd and cgroup version 1.
. "$(dirname "$0")/../tests/e2e/lib.sh"
. "$root/tests/e2e/runtime.sh"
runs=${2:-50}
missing=$(node_missing)
group=/sys/fs/cgroup/memory/berth-e2e-$$
[ -n "$missing" ] || [ -d /sys/fs/cgroup/memory ] || missing="cgroup version 1"
[ -z "$missing" ] || { echo "needs $missing"; exit 1; }
trap 'stop_runtime; cleanup' EXIT
start_runtime 512 10.97.$((RANDOM % 250)).0/24 || { tail -3 "$work/containerd.log"; exit 1; }
start_up --nodes 1
mkdir -p "$group" "$work/out" && echo $((400 << 20)) >"$group/memory.limit_in_bytes"
start_node --kubelet-arg 'eviction-hard=memory.available<150Mi' --kubelet-arg eviction-pressure-transition-period=1s --kubelet-arg enforce-node-allocatable=none
eventually 30 kubectl wait --for=condition=Ready node/real --timeout=1s || { tail "$work/node.log"; exit 1; }
pod() { # pod NAME COMMAND RESOURCES
  kubectl apply -f - >/dev/null <<X
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  nodeName: real
  terminationGracePeriodSeconds: 2
  volumes: [{name: m, emptyDir: {medium: Memory}}, {name: out, hostPath: {path: $work/out}}]
  containers:
  - name: c
    image: berth.local/busybox:1
    command: [sh, -c, '$2']
    volumeMounts: [{name: m, mountPath: /m}, {name: out, mountPath: /out}]
    resources: {$3}
X
}
pod neighbour 'trap "exit 0" TERM; while :; do sleep 0.2; done' 'requests: {cpu: 50m, memory: 20Mi}, limits: {cpu: 50m, memory: 20Mi}'
eventually 30 kubectl wait --for=condition=Ready pod/neighbour --timeout=1s
dmesg_before=$(dmesg 2>/dev/null | grep -c "berth-e2e-$$.*task=")
crossing() { # prints the uptime at which less than the threshold was left
  local usage key value up _
  while :; do
    read -r usage <"$group/memory.usage_in_bytes"
    while read -r key value; do [ "$key" = total_inactive_file ] && break; done <"$group/memory.stat"
    read -r up _ </proc/uptime
    [ $((usage - value)) -gt $((250 << 20)) ] && { echo "$up"; return; }
  done
}
all=()
for run in $(seq "$runs"); do
  rm -f "$work/out/killed"
  crossing >"$work/crossed" & watcher=$!
  pod "hog-$run" 'trap "cat /proc/uptime >/out/killed; exit 0" TERM; for i in $(seq 60); do dd if=/dev/zero of=/m/$i bs=1M count=5 2>/dev/null; done; while :; do sleep 0.05; done' ''
  for _ in $(seq 300); do [ -s "$work/out/killed" ] && break; sleep 0.1; done
  { kill $watcher; wait $watcher; } 2>/dev/null
  from=$(cat "$work/crossed") to=$(cut -d' ' -f1 "$work/out/killed" 2>/dev/null)
  ms=$(awk -v a="$from" -v b="${to:-0}" 'BEGIN {printf "%d", (b - a) * 1000}')
  echo "run $run: $ms ms"
  all+=("$ms")
  kubectl delete pod "hog-$run" --wait=true --timeout=20s >/dev/null 2>&1
  for _ in $(seq 100); do read -r usage <"$group/memory.usage_in_bytes"; [ "$usage" -lt $((150 << 20)) ] && break; sleep 0.1; done
done
killed=$(($(dmesg 2>/dev/null | grep -c "berth-e2e-$$.*task=") - dmesg_before))
restarts=$(kubectl get pod neighbour -o jsonpath='{.status.containerStatuses[0].restartCount}')
sorted=$(printf '%s\n' "${all[@]}" | sort -n)
at() { echo "$sorted" | sed -n "$((($runs - 1) * $1 / 100 + 1))p"; }
printf '{"date":"%s","commit":"%s","name":"EvictionReaction","runs":%d,"p50_ms":%d,"p90_ms":%d,"max_ms":%d,"kernel_oom_kills":%d,"neighbour_restarts":%d,"load":"%s"}\n' \
  "$(date +%F)" "$(git -C "$root" rev-parse --short HEAD)" "$runs" "$(at 50)" "$(at 90)" "$(at 100)" "$killed" "$restarts" "$(cut -d' ' -f1 /proc/loadavg)"
