#!/usr/bin/env bash
# Pods come and go, and nothing of them stays: cgroups, mounts, network namespaces, processes, directories. BERTH_LEAK_PODS says how many (default 20;
# the promise is measured with 1000). BERTH_IDLE_PODS=110 also measures what an agent with so many resting pods uses. Needs root and containerd.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
missing=$(node_missing)
if [ -n "$missing" ]; then echo "skipped: the real node agent needs $missing"; echo "0 passed, 0 failed"; exit 0; fi
trap 'stop_runtime; cleanup' EXIT
pods=${BERTH_LEAK_PODS:-20} batch=${BERTH_LEAK_BATCH:-10} idle=${BERTH_IDLE_PODS:-0}
start_runtime 1024 10.97.$((RANDOM % 250)).0/24 || { echo "skipped: no containerd of our own can be started here"; echo "0 passed, 0 failed"; exit 0; }
start_up --nodes 0
start_node --kubelet-arg 'eviction-hard=memory.available<10Mi' --kubelet-arg max-pods=250
check "the node becomes Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
group=/sys/fs/cgroup/memory/berth-e2e-$$; [ -d "$group" ] || group=/sys/fs/cgroup/berth-e2e-$$
cgroups() { find /sys/fs/cgroup -type d -path "*berth-e2e-$$*" | wc -l; }
mounts() { grep -c " $work/" /proc/mounts; }
namespaces() { ls "$work/state/io.containerd.grpc.v1.cri/netns" "$work/state/netns" /var/run/netns 2>/dev/null | grep -c '^cni-'; }
processes() { pgrep -fc "containerd-shim.*$socket"; }
directories() { find "$work/disk/node/pods" "$work/disk/node/logs" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l; }
links() { ip -o link | grep -c "master brt$$"; }
threads() { ls "/proc/$node_pid/task" | wc -l; }
pods_yaml() { # pods_yaml FROM TO
  for i in $(seq "$1" "$2"); do
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec:\n  nodeName: real\n  terminationGracePeriodSeconds: 1\n' "$i"
    printf '  volumes: [{name: m, emptyDir: {medium: Memory}}, {name: d, emptyDir: {}}]\n  containers: [{name: c, image: "berth.local/busybox:1", command: [sleep, "1000000"], volumeMounts: [{name: m, mountPath: /m}, {name: d, mountPath: /d, subPath: a}]}]\n'
  done
}
running() { [ "$(kubectl get pods --field-selector status.phase=Running -o name | wc -l)" -ge "$1" ]; }
gone() { [ -z "$(kubectl get pods -o name)" ]; }
# The first pod makes what stays: the bridge, the groups above.
pods_yaml 0 0 | kubectl apply -f - >/dev/null; eventually 20 running 1; kubectl delete pod p0 --wait=false >/dev/null; eventually 20 gone; sleep 2
before="$(cgroups) $(mounts) $(namespaces) $(processes) $(directories) $(links)" threads_before=$(threads)
began=$SECONDS lost=0
for from in $(seq 1 "$batch" "$pods"); do
  to=$((from + batch - 1)); [ $to -gt "$pods" ] && to=$pods
  pods_yaml "$from" "$to" | kubectl apply -f - >/dev/null
  eventually 120 running $((to - from + 1)) || lost=$((lost + 1))
  kubectl delete pod --all --wait=false --grace-period=1 >/dev/null
  eventually 120 gone || lost=$((lost + 1))
done
check "every batch of $pods pods came up and went" [ $lost = 0 ]
same() { [ "$before" = "$(cgroups) $(mounts) $(namespaces) $(processes) $(directories) $(links)" ]; }
check "no cgroup, mount, network namespace, process, directory or link is left of $pods pods" eventually 10 same
same || echo "     before: $before, after: $(cgroups) $(mounts) $(namespaces) $(processes) $(directories) $(links)"
few_threads() { [ "$(threads)" -le $((threads_before + 5)) ]; }
check "nor a thread of the agent" eventually 10 few_threads
echo "$pods pods came and went in $((SECONDS - began)) s"
if [ "$idle" -gt 0 ]; then
  pods_yaml 1 "$idle" | kubectl apply -f - >/dev/null
  check "$idle pods run" eventually 300 running "$idle"
  sleep 20
  ticks() { awk '{print $14 + $15}' "/proc/$node_pid/stat"; }
  at=$(ticks); sleep 60; used=$(($(ticks) - at))
  rss=$(awk '/^VmRSS/ {print int($2 / 1024)}' "/proc/$node_pid/status")
  awk -v t="$used" -v h="$(getconf CLK_TCK)" -v r="$rss" -v n="$idle" 'BEGIN {printf "%d idle pods: the agent uses %.2f%% of a core and %d MiB\n", n, 100 * t / h / 60, r}'
  check "the agent uses at most 2% of a core" [ $((used * 100)) -le $((2 * 60 * $(getconf CLK_TCK))) ]
  check "and at most 80 MB" [ "$rss" -le 76 ]
  kubectl delete pod --all --wait=false --grace-period=1 >/dev/null
  eventually 120 gone
fi
finish
