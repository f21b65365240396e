#!/usr/bin/env bash
# What constraints cost the whole system, from outside: berth up with NODES simulated nodes; a Deployment of PODS replicas that are plain, then one with
# zone spread, zone affinity, hostname anti-affinity, each until all are available; then it goes. Processor time of the one process, as a ratio to the
# plain one's. Prints a line for bench/history.jsonl.
#
#   bench/scale_constraints.sh build/release/bin/berth [NODES] [PODS]
set -euo pipefail
berth=$(realpath "${1:?usage: bench/scale_constraints.sh path/of/berth [NODES] [PODS]}")
nodes=${2:-5000} pods=${3:-4000}
work=$(mktemp -d "${TMPDIR:-/tmp}/berth-scale.XXXXXX")
trap 'kill $pid 2>/dev/null; wait $pid 2>/dev/null; rm -rf "$work"' EXIT
"$berth" up --nodes "$nodes" --zones 5 --data-dir "$work/data" --listen 127.0.0.1:0 >"$work/up.log" 2>&1 & pid=$!
until grep -q '^export KUBECONFIG=' "$work/up.log"; do kill -0 $pid; sleep 0.1; done
KUBECONFIG=$(sed -n 's/^export KUBECONFIG=//p' "$work/up.log"); export KUBECONFIG KUBECACHEDIR=$work/cache
cpu() { awk -v hz="$(getconf CLK_TCK)" '{print ($14 + $15) / hz}' /proc/$pid/stat; }
minus() { awk "BEGIN {printf \"%.1f\", $1 - $2}"; }
say() { echo "$*" >&2; }

until [ "$(kubectl get nodes --no-headers 2>/dev/null | grep -c ' Ready')" -ge "$nodes" ]; do sleep 0.5; done
sleep 20; used=$(cpu); sleep 20
# Heartbeats go on meanwhile: they are counted out.
standing=$(awk "BEGIN {print ($(cpu) - $used) / 20}"); say "$nodes nodes Ready; standing they take $standing s of processor time a second"

measure() { # NAME, lines of the pod's spec
  local start used status
  start=$(date +%s.%N) used=$(cpu)
  kubectl create -f - >/dev/null <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  replicas: $pods
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      containers: [{name: c, image: nginx, resources: {requests: {cpu: 100m, memory: 200Mi}}}]
$2
Y
  until status=$(kubectl get deployment "$1" -o jsonpath='{.status.replicas} {.status.availableReplicas}'); [ "${status#* }" = "$pods" ]; do sleep 1; done
  seconds=$(minus "$(date +%s.%N)" "$start")
  taken=$(awk "BEGIN {printf \"%.1f\", $(cpu) - $used - $standing * $seconds}")
  say "$1: $pods pods available after $seconds s, $taken s of processor time"
  kubectl delete deployment "$1" --wait=true >/dev/null
  until [ -z "$(kubectl get pods -l app="$1" --no-headers 2>/dev/null | head -1)" ]; do sleep 1; done
  sleep 5
}

measure plain ""
plain=$taken
measure spread "      topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: spread}}}]"
spread=$taken
measure affinity "      affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: affinity}}}]}}"
affinity=$taken
measure anti "      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: anti}}}]}}"
anti=$taken
measure plain2 ""
ratio() { awk "BEGIN {printf \"%.2f\", $1 / (($plain + $taken) / 2)}"; }
printf '{"date":"%s","commit":"%s","name":"ScaleConstraints/%sNodes/%sPods","plain_cpu_seconds":%s,"plain_again_cpu_seconds":%s,"spread_ratio":%s,"affinity_ratio":%s,"anti_affinity_ratio":%s,"standing_cpu_per_s":%s,"load":%s}\n' \
  "$(date +%F)" "$(git rev-parse --short HEAD)" "$nodes" "$pods" "$plain" "$taken" "$(ratio "$spread")" "$(ratio "$affinity")" "$(ratio "$anti")" "$standing" "$(cut -d' ' -f1 /proc/loadavg)"
