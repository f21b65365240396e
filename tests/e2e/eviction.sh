#!/usr/bin/env bash
# Out-of-resource handling of a real node on a small disk and in a memory cgroup: soft thresholds, transition period, taint and scheduler, images
# before pods, inodes, the kernel's OOM killer, the document's 10 Gi node. Needs root and containerd.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
missing=$(node_missing)
if [ -n "$missing" ]; then echo "skipped: out-of-resource handling on a real node needs $missing"; echo "0 passed, 0 failed"; exit 0; fi
trap 'stop_runtime; rmdir "$ten" 2>/dev/null; cleanup' EXIT
group=/sys/fs/cgroup/memory/berth-e2e-$$ ten=/sys/fs/cgroup/memory/berth-ten-$$ limit=memory.limit_in_bytes
[ -e /sys/fs/cgroup/cgroup.controllers ] && group=/sys/fs/cgroup/berth-e2e-$$ ten=/sys/fs/cgroup/berth-ten-$$ limit=memory.max
disk_options="-N 16384"
start_runtime 512 10.98.$((RANDOM % 250)).0/24 || { echo "skipped: no containerd of our own can be started here"; tail -3 "$work/containerd.log"; echo "0 passed, 0 failed"; exit 0; }
make_image spare --config.cmd sh
start_up --nodes 1
mkdir -p "$group" && echo $((400 << 20)) >"$group/$limit"
cat >"$work/node-config.yaml" <<'X'
kubeletArguments:
  eviction-hard:
    - "memory.available<100Mi"
    - "nodefs.available<60Mi"
    - "nodefs.inodesFree<4000"
  eviction-soft:
    - "memory.available<200Mi"
  eviction-soft-grace-period:
    - "memory.available=12s"
  eviction-max-pod-grace-period:
    - "2"
  eviction-pressure-transition-period:
    - "7s"
  enforce-node-allocatable:
    - "none"
X
start_node --config "$work/node-config.yaml"
field() { kubectl get "$1" "$2" -o jsonpath="$3"; }
is() { [ "$(field "$1" "$2" "$3")" = "$4" ]; }
evicted_for() { field pod "$1" '{.status.phase} {.status.reason} {.status.message}' | grep "Failed Evicted The node was low on resource: $2" >/dev/null; }
condition_is() { is node real "{.status.conditions[?(@.type==\"$1\")].status}" "$2"; }
has_event() { kubectl get events --field-selector "reason=$1" -o jsonpath='{range .items[*]}{.message}{"\n"}{end}' | grep "$2" >/dev/null; }
pod() { # pod NAME COMMAND EXTRA-YAML-OF-CONTAINER EXTRA-YAML-OF-POD
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  nodeName: real\n  terminationGracePeriodSeconds: 1\n%s\n  containers:\n  - name: c\n    image: berth.local/busybox:1\n    command: [sh, -c, %s]\n%s\n' "$1" "${4:-}" "'$2'" "${3:-}" | kubectl apply -f -
}
unbound() { # unbound NAME EXTRA-YAML-OF-CONTAINER: for the scheduler, on this node or nowhere
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  nodeSelector: {kubernetes.io/hostname: real}\n  terminationGracePeriodSeconds: 1\n  containers:\n  - name: c\n    image: berth.local/busybox:1\n    command: [sh, -c, "trap \\"exit 0\\" TERM; while :; do sleep 0.2; done"]\n%s\n' "$1" "${2:-}" | kubectl apply -f -
}
ram='    volumeMounts: [{name: m, mountPath: /m}]' ram_volume='  volumes: [{name: m, emptyDir: {medium: Memory}}]'
forever='trap "exit 0" TERM; while :; do sleep 0.2; done'
check "the node becomes Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
check "its memory is the cgroup's" is node real '{.status.capacity.memory}' 400Mi
check "the kernel tells of memory" grep -qE 'memory is watched by (cgroup thresholds|pressure triggers)' "$work/node.log"
check "a Guaranteed neighbour" pod neighbour "$forever" '    resources: {requests: {cpu: 50m, memory: 20Mi}, limits: {cpu: 50m, memory: 20Mi}}'
check "runs" eventually 20 is pod neighbour '{.status.phase}' Running

# Above and below the soft threshold, never for its twelve seconds: one stretch of pressure, nobody evicted.
kubectl get node real -w -o jsonpath='{.status.conditions[?(@.type=="MemoryPressure")].status}{"\n"}' >"$work/conditions" 2>/dev/null & watcher=$!
check "a pod whose memory comes and goes" pod swinging 'for i in 1 2 3; do dd if=/dev/zero of=/m/f bs=1M count=230 2>/dev/null; sleep 1; rm /m/f; sleep 3; done; '"$forever" "$ram" "$ram_volume"
check "brings MemoryPressure" eventually 20 condition_is MemoryPressure True
check "the node is tainted" eventually 10 says node.kubernetes.io/memory-pressure kubectl get node real -o jsonpath='{.spec.taints}'
check "a BestEffort pod for the scheduler" unbound besteffort
check "a Burstable one" unbound burstable '    resources: {requests: {memory: 10Mi}}'
check "the Burstable one is placed and runs" eventually 20 is pod burstable '{.status.phase}' Running
check "the BestEffort one is kept away" eventually 10 says 'untolerated taint' field pod besteffort '{.status.conditions[?(@.type=="PodScheduled")].message}'
check "the pressure ends" eventually 40 condition_is MemoryPressure False
check "the taint goes" eventually 10 sh -c "! kubectl get node real -o jsonpath='{.spec.taints}' | grep -q memory-pressure"
check "and the BestEffort pod comes" eventually 20 is pod besteffort '{.status.phase}' Running
check "nobody was evicted" is pod swinging '{.status.phase}' Running
kill $watcher; wait $watcher 2>/dev/null
check "the condition did not oscillate" sh -c "[ \"\$(uniq '$work/conditions' | tr -d '\n')\" = FalseTrueFalse ]"
kubectl delete pod swinging besteffort burstable --wait=false >/dev/null

# The same for good: the pod goes when the grace period is over, not before.
check "a pod over the soft threshold" pod steady 'dd if=/dev/zero of=/m/f bs=1M count=230 2>/dev/null; '"$forever" "$ram" "$ram_volume"
check "brings pressure at once" eventually 15 condition_is MemoryPressure True
since=$SECONDS
check "and is evicted" eventually 20 evicted_for steady memory
waited=$((SECONDS - since))
check "not before the grace period of 12 s ($waited s)" test $waited -ge 6
check "with the soft threshold in the message" says 'Threshold quantity: 200Mi' field pod steady '{.status.message}'
check "the pressure ends again" eventually 30 condition_is MemoryPressure False
kubectl delete pod steady --wait=false >/dev/null

# A container at its own limit is the kernel's affair: killed, said, restarted.
check "a container that outgrows its limit" pod greedy 'sleep 1; x=$(dd if=/dev/zero bs=1M count=60 2>/dev/null | tr "\\0" a); sleep 100' '    resources: {limits: {memory: 20Mi}}'
check "is OOMKilled" eventually 30 sh -c "kubectl get pod greedy -o yaml | grep -q 'reason: OOMKilled'"
check "and restarted" eventually 20 sh -c "[ \"\$(kubectl get pod greedy -o jsonpath='{.status.containerStatuses[0].restartCount}')\" -ge 1 ]"
check "that is no SystemOOM" sh -c "! kubectl get events --field-selector reason=SystemOOM -o name | grep -q ."
kubectl delete pod greedy --wait=false >/dev/null

# Disk and inodes: images first, then the pod.
check "an unused image is there" sh -c "ctr -a '$socket' -n k8s.io images ls -q | grep -q spare"
check "a pod that eats inodes" pod inodes 'mkdir /tmp/d; cd /tmp/d; seq 1 14000 | xargs touch; '"$forever"
check "is evicted" eventually 60 evicted_for inodes inodes
check "after the images were tried" sh -c "! ctr -a '$socket' -n k8s.io images ls -q | grep -q spare"
check "the attempt is an event" has_event EvictionThresholdMet 'Attempting to reclaim inodes'
check "the node reported DiskPressure" condition_is DiskPressure True
kubectl delete pod inodes --wait=false >/dev/null
check "DiskPressure ends" eventually 40 condition_is DiskPressure False
check "a pod that fills the disk" pod filler 'dd if=/dev/zero of=/tmp/fill bs=1M count=490 2>/dev/null; '"$forever"
check "is evicted as well" eventually 60 evicted_for filler ephemeral-storage
check "the neighbour lived through all of it" sh -c "[ \"\$(kubectl get pod neighbour -o jsonpath='{.status.phase}{.status.containerStatuses[0].restartCount}')\" = Running0 ]"
kubectl delete pod filler neighbour --wait=false >/dev/null
gone() { [ -z "$(kubectl get pods -o name)" ]; }
check "every pod can be deleted" eventually 40 gone
stop_node

# The document's node: 10 Gi, of which pods get 8.
mkdir -p "$ten" && echo $((10 << 30)) >"$ten/$limit"
"$berth" node --node-name ten --root-dir "$work/disk/ten" --runtime-endpoint "$socket" --runtime-root "$work/disk/containerd" --node-cgroup "/berth-ten-$$" --port 0 \
  --config "$root/examples/node/node-config-soft.yaml" --kubelet-arg fail-swap-on=false --kubelet-arg enforce-node-allocatable=none >>"$work/node.log" 2>&1 &
node_pid=$!
check "a 10 Gi node" eventually 20 is node ten '{.status.capacity.memory}' 10Gi
check "offers 8 Gi" is node ten '{.status.allocatable.memory}' 8Gi
stop_node
find "$ten" -depth -type d -exec rmdir {} \; 2>/dev/null
[ "$failed" -eq 0 ] || tail -30 "$work/node.log"
finish
