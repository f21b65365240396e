#!/usr/bin/env bash
# Swap: who is refused for it, who gets how much of it, what is told of it. Needs what cgroups.sh needs, and BERTH_SWAP_DEVICE, a device for swap,
# or swap that is on.
. "$(dirname "$0")/lib.sh"
swap_is_on() { [ "$(wc -l </proc/swaps)" -gt 1 ]; }
if ! swap_is_on; then
  [ -b "${BERTH_SWAP_DEVICE:-}" ] && swapon "$BERTH_SWAP_DEVICE" || { echo "skipped: no swap, and BERTH_SWAP_DEVICE is none"; echo "0 passed, 0 failed"; exit 0; }
  trap 'end_real_node; swapoff "$BERTH_SWAP_DEVICE"' EXIT
fi
kib() { awk -v key="$1:" '$1 == key {print $2}' /proc/meminfo; }
up() { start_real_node --device-plugins "" --plugins-registry "" --kubelet-arg fail-swap-on=false "$@"; }

"$berth" up --data-dir "$work/data" --listen 127.0.0.1:0 --real-node on --nodes 0 --real-node-name real --kubelet-arg fail-swap-on=true >"$work/refused" 2>&1 & refused=$!
check "swap is refused" eventually 20 grep -q "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false" "$work/refused"
kill $refused 2>/dev/null; wait $refused 2>/dev/null

# ---- allowed, but for nobody's containers
begin_real_node
check "the node tells how much there is" [ "$(kubectl get node real -o jsonpath='{.status.nodeInfo.swap.capacity}')" = $(($(kib SwapTotal) * 1024)) ]
check "a Burstable pod" pod burstable "$forever" 'resources: {requests: {memory: 256Mi}, limits: {memory: 512Mi}}'
check "runs" runs burstable 40
check "without swap" has "$(container_group burstable)" memory.swap.max 0
kubectl delete pod burstable --wait=false >/dev/null
check "it goes" eventually 30 gone
stop_up TERM

# ---- by the kubelet's share
cat >"$work/node.yaml" <<'Y'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
memorySwap: {swapBehavior: LimitedSwap}
Y
up --node-config "$work/node.yaml"
check "with LimitedSwap the node is Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
check "a Burstable pod" pod burstable "$forever" 'resources: {requests: {memory: 256Mi}, limits: {memory: 512Mi}}'
check "a BestEffort one" pod besteffort "$forever"
check "a Guaranteed one" pod guaranteed "$forever" 'resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {cpu: 50m, memory: 64Mi}}'
check "one of class Burstable whose memory is all asked for" pod all "$forever" 'resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 64Mi}}'
check "a critical one" pod critical "$forever" 'resources: {requests: {memory: 64Mi}}' 'priorityClassName: system-node-critical'
for one in burstable besteffort guaranteed all critical; do check "$one runs" runs $one 40; done
share() { awk -v request="$1" -v memory="$(kib MemTotal)" -v swap="$(kib SwapTotal)" 'BEGIN { printf "%d", int(request / (memory * 1024) * swap * 1024 / 4096) * 4096 }'; }
check "Burstable gets its share" has "$(container_group burstable)" memory.swap.max "$(share $((256 << 20)))"
for one in besteffort guaranteed all critical; do check "$one gets none" has "$(container_group $one)" memory.swap.max 0; done

# ---- used, and told
check "a pod that has more than its memory" pod swapper 'x=$(dd if=/dev/zero bs=1M count=40 2>/dev/null | tr "\\0" a); echo filled; '"$forever" 'resources: {requests: {memory: 63Mi}, limits: {memory: 64Mi}}'
check "lives by its swap" eventually 120 says filled kubectl logs swapper
swapper=$(container_group swapper)
check "which the kernel counts" test "$(cat "$swapper/memory.swap.current")" -gt 0
check "it was not killed" is swapper 'containerStatuses[0].restartCount' 0
summary() {
  local all; all=$(node_says stats/summary) || return 1
  near "$(of "$all" "[c for p in j['pods'] if p['podRef']['name'] == 'swapper' for c in p['containers']][0]['swap']['swapUsageBytes']")" "$(cat "$swapper/memory.swap.current")" 10 &&
    near "$(of "$all" "j['node']['swap']['swapUsageBytes']")" $((($(kib SwapTotal) - $(kib SwapFree)) * 1024)) 10
}
check "the summary has it" eventually 10 summary
metric() { node_says metrics/resource | awk -v family="$1" -v pod="${2:+pod=\"$2\"}" 'index($0, family) == 1 && index($0, pod) {print $2; exit}'; }
check "metrics: of the container" near "$(metric container_swap_usage_bytes swapper)" "$(cat "$swapper/memory.swap.current")" 10
check "its limit" near "$(metric container_swap_limit_bytes swapper)" "$(cat "$swapper/memory.swap.max")" 1
check "of the pod" near "$(metric pod_swap_usage_bytes swapper)" "$(cat "$(pod_group swapper)/memory.swap.current")" 10
check "of the node" near "$(metric node_swap_usage_bytes)" $((($(kib SwapTotal) - $(kib SwapFree)) * 1024)) 10
kubectl patch pod swapper --subresource resize -p '{"spec":{"containers":[{"name":"c","resources":{"requests":{"memory":"60Mi"}}}]}}' >/dev/null
check "its memory request cannot change in place" eventually 20 says Infeasible condition swapper PodResizePending reason
check "for the swap" says "In-place resize of containers with swap is not supported." condition swapper PodResizePending message
kubectl patch pod burstable --subresource resize -p '{"spec":{"containers":[{"name":"c","resources":{"limits":{"memory":"600Mi"}}}]}}' >/dev/null
check "a limit can" eventually 20 has "$(container_group burstable)" memory.max $((600 << 20))
check "and the share stays" has "$(container_group burstable)" memory.swap.max "$(share $((256 << 20)))"
stop_up TERM
up --node-config "$work/node.yaml"
check "after a restart, too" eventually 20 is burstable phase Running
check "with its share" has "$(container_group burstable)" memory.swap.max "$(share $((256 << 20)))"
kubectl delete pod --all --wait=false >/dev/null
check "all go" eventually 40 gone
[ "$failed" -eq 0 ] || tail -15 "$work/up.log"
finish
