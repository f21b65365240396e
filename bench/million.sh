#!/usr/bin/env bash
# A million pods: berth up with NODES simulated nodes, all with a heartbeat, DEPLOYMENTS of REPLICAS each, as a time line until all are ready, then what standing still
# costs and what users do meanwhile takes. Prints a line for bench/history.jsonl.
#
#   bench/million.sh build/release/bin/berth [NODES 100000] [DEPLOYMENTS 1000] [REPLICAS 1000] [SECONDS of rest 300]
#
# Goes on only below LIMIT_MB (20000) of resident memory. WORK names a directory that is kept.
set -euo pipefail
berth=$(realpath "${1:?usage: bench/million.sh path/of/berth [NODES] [DEPLOYMENTS] [REPLICAS] [SECONDS]}")
nodes=${2:-100000} deployments=${3:-1000} replicas=${4:-1000} rest=${5:-300} limit=${LIMIT_MB:-20000}
pods=$((deployments * replicas))
if [ -n "${WORK:-}" ]; then work=$WORK; mkdir -p "$work"; else work=$(mktemp -d "${TMPDIR:-/tmp}/berth-million.XXXXXX"); trap 'rm -rf "$work"' EXIT; fi
now() { date +%s.%N; }
minus() { awk "BEGIN {printf \"%.1f\", $1 - $2}"; }
cpu() { awk -v hz="$(getconf CLK_TCK)" '{print ($14 + $15) / hz}' "/proc/$pid/stat"; }
rss() { awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$pid/status"; }
say() { echo "$*" >&2; }

start_up() {
  "$berth" up --nodes "$nodes" --zones 10 --data-dir "$work/data" --listen 127.0.0.1:0 >"$work/up.log" 2>&1 & pid=$!
  until grep -q '^export KUBECONFIG=' "$work/up.log"; do kill -0 "$pid"; sleep 0.1; done
  KUBECONFIG=$(sed -n 's/^export KUBECONFIG=//p' "$work/up.log"); export KUBECONFIG KUBECACHEDIR=$work/cache
}
stop_up() { kill "${1:--TERM}" "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; }
timed() { # timed NAME COMMAND...: a user's command, its seconds
  local name=$1 begin; shift; begin=$(now)
  "$@" >"$work/out" 2>&1 || { say "  $name failed: $(tail -1 "$work/out")"; echo null; return; }
  local took; took=$(minus "$(now)" "$begin"); say "  $name: $took s, $(wc -l <"$work/out") lines"; echo "$took"
}

start_up
trap 'stop_up; [ -n "${WORK:-}" ] || rm -rf "$work"' EXIT
begin=$(now)
until [ "$(kubectl get --raw '/api/v1/nodes?limit=1' | grep -o '"remainingItemCount":[0-9]*' | cut -d: -f2)" = "$((nodes - 1))" ]; do sleep 1; done
until [ "$(kubectl get --raw '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?limit=1' | grep -o '"remainingItemCount":[0-9]*' | cut -d: -f2)" = "$((nodes - 1))" ]; do sleep 1; done
nodes_cpu=$(cpu) nodes_mb=$(rss); say "$nodes nodes: $(minus "$(now)" "$begin") s, $nodes_cpu s of processor time, $nodes_mb MB"

kubectl create namespace million >/dev/null
for i in $(seq "$deployments"); do
  printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d%s, namespace: million}\nspec:\n  replicas: %s\n  selector: {matchLabels: {app: d%s}}\n  template:\n    metadata: {labels: {app: d%s}}\n    spec: {containers: [{name: c, image: "nginx:1.27", ports: [{containerPort: 80}], resources: {requests: {cpu: 100m, memory: 200Mi}}}]}\n---\n' "$i" "$replicas" "$i" "$i"
done >"$work/deployments.yaml"
begin=$(now) used=$(cpu)
kubectl apply -f "$work/deployments.yaml" >"$work/apply.log" 2>&1 &
printf 'seconds\tcreated\tready\tMB\tcpu\n' >"$work/line.tsv"
ready=0
until [ "$ready" -ge "$pods" ]; do
  sleep 15
  kill -0 "$pid"
  created=$(kubectl get --raw '/api/v1/namespaces/million/pods?limit=1' | grep -o '"remainingItemCount":[0-9]*' | cut -d: -f2 || echo 0)
  ready=$(kubectl get deployments -n million -o jsonpath='{range .items[*]}{.status.readyReplicas}{"\n"}{end}' | awk '{n += $1} END {print n + 0}')
  memory=$(rss)
  printf '%s\t%s\t%s\t%s\t%s\n' "$(minus "$(now)" "$begin")" "$((${created:--1} + 1))" "$ready" "$memory" "$(minus "$(cpu)" "$used")" | tee -a "$work/line.tsv" >&2
  [ "$memory" -lt "$limit" ] || { say "more than $limit MB"; exit 1; }
done
run=$(minus "$(now)" "$begin") run_cpu=$(minus "$(cpu)" "$used") run_mb=$(rss)

say "at rest for $rest s"
sleep "$rest"
used=$(cpu); sleep 60
steady=$(awk "BEGIN {printf \"%.1f\", ($(cpu) - $used) / 0.6}") rest_mb=$(rss)
say "standing: $steady% of one core, $rest_mb MB"
list=$(timed "kubectl get pods of one Deployment" kubectl get pods -n million -l app=d1)
explain=$(timed "berth explain" "$berth" explain pod "$(kubectl get pods -n million -l app=d1 -o name | head -1 | cut -d/ -f2)" -n million)
whatif=$(timed "berth what-if --each zone" "$berth" what-if --each zone)
dashboard=$(timed "the dashboard's page" curl -sf "$(sed -n 's/^dashboard: //p' "$work/up.log")")
rolling=$(timed "a rolling update of ten Deployments" sh -c "for i in 1 2 3 4 5 6 7 8 9 10; do kubectl set env -n million deployment/d\$i A=b; done; for i in 1 2 3 4 5 6 7 8 9 10; do kubectl rollout status -n million deployment/d\$i --timeout=600s; done")
say "kill -9, and again"
stop_up -9
begin=$(now); start_up; restart=$(minus "$(now)" "$begin"); say "ready again after $restart s, $(rss) MB"
printf '{"date":"%s","commit":"%s","name":"Million/%sNodes/%sPods","nodes_mb":%s,"nodes_cpu_s":%s,"seconds":%s,"cpu_s":%s,"running_mb":%s,"rest_mb":%s,"steady_percent_of_core":%s,"get_pods_s":%s,"explain_s":%s,"what_if_zones_s":%s,"dashboard_s":%s,"rolling_10000_s":%s,"restart_s":%s,"load":%s}\n' \
  "$(date +%F)" "$(git rev-parse --short HEAD)" "$nodes" "$pods" "$nodes_mb" "$nodes_cpu" "$run" "$run_cpu" "$run_mb" "$rest_mb" "$steady" "$list" "$explain" "$whatif" "$dashboard" "$rolling" "$restart" "$(cut -d' ' -f1 /proc/loadavg)"
