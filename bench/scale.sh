#!/usr/bin/env bash
# The whole system at scale, from outside: berth up with NODES simulated nodes, a Deployment of PODS replicas until all are available, what the
# standing cluster costs, and a zone of a fifth of the nodes lost: how fast it is evicted. Prints a line for bench/history.jsonl.
#
#   bench/scale.sh build/release/bin/berth [NODES] [PODS] [SECONDS of watching the lost zone; 0: leave that out]
set -euo pipefail
berth=$(realpath "${1:?usage: bench/scale.sh path/of/berth [NODES] [PODS] [SECONDS]}")
nodes=${2:-5000} pods=${3:-100000} watch=${4:-120}
work=$(mktemp -d "${TMPDIR:-/tmp}/berth-scale.XXXXXX")
trap 'kill $pid 2>/dev/null; wait $pid 2>/dev/null; rm -rf "$work"' EXIT
"$berth" up --nodes "$nodes" --zones 5 --data-dir "$work/data" --listen 127.0.0.1:0 >"$work/up.log" 2>&1 & pid=$!
until grep -q '^export KUBECONFIG=' "$work/up.log"; do kill -0 $pid; sleep 0.1; done
KUBECONFIG=$(sed -n 's/^export KUBECONFIG=//p' "$work/up.log"); export KUBECONFIG KUBECACHEDIR=$work/cache
now() { date +%s.%N; }
cpu() { awk -v hz="$(getconf CLK_TCK)" '{print ($14 + $15) / hz}' /proc/$pid/stat; }
minus() { awk "BEGIN {printf \"%.1f\", $1 - $2}"; }
say() { echo "$*" >&2; }

start=$(now)
until [ "$(kubectl get nodes --no-headers 2>/dev/null | grep -c ' Ready')" -ge "$nodes" ]; do sleep 0.5; done
nodes_seconds=$(minus "$(now)" "$start"); say "$nodes nodes Ready after $nodes_seconds s, $(cpu) s of processor time"

start=$(now) used=$(cpu)
kubectl create -f - >/dev/null <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: big}
spec:
  replicas: $pods
  selector: {matchLabels: {app: big}}
  template:
    metadata: {labels: {app: big}}
    spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 100m, memory: 200Mi}}}]}
Y
until status=$(kubectl get deployment big -o jsonpath='{.status.replicas} {.status.availableReplicas}'); [ "${status#* }" = "$pods" ]; do
  say "  $(minus "$(now)" "$start") s: created and available: $status, $(minus "$(cpu)" "$used") s of processor time"
  sleep 2
done
running=$(minus "$(now)" "$start") running_cpu=$(minus "$(cpu)" "$used"); say "$pods pods available after $running s, $running_cpu s of processor time"

sleep 15; used=$(cpu); sleep 60
steady=$(awk "BEGIN {printf \"%.1f\", ($(cpu) - $used) / 0.6}"); say "standing: $steady% of one core"
rss=$(awk '/VmRSS/ {print int($2 / 1024)}' /proc/$pid/status)

rate=null
if [ "$watch" -gt 0 ]; then
  zone=$(kubectl get nodes -o jsonpath='{.items[0].metadata.labels.topology\.kubernetes\.io/zone}')
  kubectl annotate nodes -l topology.kubernetes.io/zone="$zone" sim.berth.dev/dead=true >/dev/null
  say "zone $zone is lost"
  tainted() { kubectl get nodes -l topology.kubernetes.io/zone="$zone" -o jsonpath='{range .items[*]}{.spec.taints[?(@.effect=="NoExecute")].timeAdded}{"\n"}{end}' | grep . | sort || true; }
  # Until the last node is seen to be silent the zone counts as partly disrupted, with the secondary rate.
  until [ "$(kubectl get nodes -l topology.kubernetes.io/zone="$zone" --no-headers | grep -c NotReady)" -ge $((nodes / 5)) ]; do sleep 1; done
  since=$(date -u +%FT%TZ)
  sleep "$watch"
  rate=$(tainted | awk -v since="$since" '$0 < since {next} {gsub(/[-T:Z]/, " "); t = mktime($0); if (n++ == 0) first = t; last = t} END {if (n > 1) printf "%.4f", (n - 1) / (last - first); else print "null"}')
  say "evicted nodes a second: $rate ($(tainted | wc -l) of the zone)"
fi
load=$(cut -d' ' -f1 /proc/loadavg)
printf '{"date":"%s","commit":"%s","name":"Scale/%sNodes/%sPods","nodes_seconds":%s,"seconds":%s,"cpu_seconds":%s,"steady_percent_of_core":%s,"rss_mb":%s,"zone_evictions_per_s":%s,"load":%s}\n' \
  "$(date +%F)" "$(git rev-parse --short HEAD)" "$nodes" "$pods" "$nodes_seconds" "$running" "$running_cpu" "$steady" "$rss" "$rate" "$load"
