#!/usr/bin/env bash
# A containerd of berth's own: it goes with its agent, however that ends and however busy the machine is; one that was left is replaced; a node
# without containers leaves nothing, and `berth node reset` takes the rest away. Needs root and containerd.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
missing=$(node_missing)
if [ -n "$missing" ]; then echo "skipped: a containerd of our own needs $missing"; echo "0 passed, 0 failed"; exit 0; fi
runtime=$work/data/node/runtime socket=$runtime/containerd.sock busy=()
calm() { for pid in "${busy[@]}"; do kill "$pid"; done 2>/dev/null; busy=(); }
clean() { calm; stop_up KILL; sleep 1; "$berth" node reset --data-dir "$work/data" >/dev/null 2>&1; cleanup; }
trap clean EXIT
pod_groups() { find /sys/fs/cgroup -type d -path '*kubepods*pod*' 2>/dev/null | sort; }
groups_before=$(pod_groups)
# The shell of this script has no $work in its command line; pgrep leaves itself out.
containerds() { pgrep -f "^[^ ]*containerd -c $runtime/containerd.toml"; }
no_containerd() { [ -z "$(containerds)" ]; }
shims() { pgrep -fc "containerd-shim.*$socket"; }
start_real() { start_up --real-node on --real-node-name real --kubelet-arg eviction-hard=memory.available\<10Mi "$@"; }
bridge() { sed -n 's/.*"bridge":"\([a-z0-9]*\)".*/\1/p' "$runtime/cni/10-berth.conflist"; }

start_real
check "its containerd runs" containerds
first=$(containerds)
link=$(bridge)
stop_up TERM
check "and stops with it" no_containerd
check "a node without pods leaves no bridge" [ ! -e "/sys/class/net/$link" ]

start_real
stop_up KILL
check "an agent that is killed takes its containerd along" eventually 20 no_containerd

# One that somebody else left.
setsid containerd -c "$runtime/containerd.toml" >/dev/null 2>&1 &
left=$!
check "a containerd that was left" eventually 20 ctr -a "$socket" version
start_real
check "is replaced by the next agent's" sh -c "! kill -0 $left 2>/dev/null"
check "which runs" containerds
check "a second agent on the same directory is refused" says "works in" timeout 20 "$berth" node --root-dir "$work/data/node" --own-runtime --kubeconfig "$KUBECONFIG" --port 0
check "and so is a reset under a running agent" says "works in" "$berth" node reset --data-dir "$work/data"
mkdir -p "$work/images"
make_image busybox --config.cmd sh
kubectl run stays --image=berth.local/busybox:1 -- sh -c 'trap "exit 0" TERM; while :; do sleep 0.1; done' >/dev/null
check "a pod runs" eventually 30 sh -c "[ \"\$(kubectl get pod stays -o jsonpath='{.status.phase}')\" = Running ]"

# Killed, and asked to stop, at any moment of its start, while everything else wants the processor.
for _ in $(seq "${BERTH_BUSY:-8}"); do sh -c 'while :; do :; done' & busy+=($!); done
stop_up KILL
for pause in 0.2 0.6 1.2 2.5; do
  "$berth" up --data-dir "$work/data" --listen 127.0.0.1:0 --real-node on --real-node-name real >>"$work/busy.log" 2>&1 & up_pid=$!
  sleep $pause
  stop_up KILL
  check "killed after $pause s on a busy machine" eventually 30 no_containerd
done
for pause in 0.5 2; do
  "$berth" up --data-dir "$work/data" --listen 127.0.0.1:0 --real-node on --real-node-name real >>"$work/busy.log" 2>&1 & up_pid=$!
  sleep $pause
  stop_up TERM
  check "stopped after $pause s on a busy machine" no_containerd
done
calm
check "the container runs on through all of it" [ "$(shims)" -ge 1 ]
check "its bridge stays with it" [ -e "/sys/class/net/$link" ]

check "reset ends the node" "$berth" node reset --data-dir "$work/data"
check "no container is left" [ "$(shims)" = 0 ]
check "no containerd" no_containerd
check "no bridge" [ ! -e "/sys/class/net/$link" ]
check "no mount" [ "$(grep -c " $work/" /proc/mounts)" = 0 ]
check "no directory" [ ! -e "$work/data/node" ]
check "no cgroup of its pods" [ -z "$(comm -13 <(echo "$groups_before") <(pod_groups))" ]
check "a second reset says that nothing is here" says "no node was here" "$berth" node reset --data-dir "$work/data"
start_real
check "and the machine can be a node again" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
finish
