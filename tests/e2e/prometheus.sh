#!/usr/bin/env bash
# The descheduler's usage from a real Prometheus: plain queries, deviations from the average, pressure (PSI) by rate().
. "$(dirname "$0")/lib.sh"
command -v prometheus >/dev/null || { echo "skipped: there is no prometheus here (apt-get install prometheus, 19 MB)"; echo "0 passed, 0 failed"; exit 0; }
pids=()
end_all() { for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; done; cleanup; }
trap end_all EXIT
start_up --nodes 3 --zones 1 --real-node off
cd "$work" || exit 1

# What node exporters would say: node-1 works hard and waits for its processors nine tenths of the time, the others hardly.
cat >exporter.py <<'P'
import http.server, time
BUSY = {"node-1": 0.9, "node-2": 0.1, "node-3": 0.2}
class Exporter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        now = time.time()
        text = "".join(f'node_usage{{instance="{n}"}} {u}\nnode_pressure_cpu_waiting_seconds_total{{instance="{n}"}} {now * u}\n' for n, u in BUSY.items())
        self.send_response(200); self.send_header("Content-Type", "text/plain"); self.end_headers(); self.wfile.write(text.encode())
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Exporter)
print(server.server_address[1], flush=True)
server.serve_forever()
P
python3 exporter.py >exporter.port & pids+=($!)
check "the exporter listens" eventually 10 test -s exporter.port
cat >prometheus.yml <<Y
global: {scrape_interval: 1s}
scrape_configs:
  - {job_name: nodes, honor_labels: true, static_configs: [{targets: ["127.0.0.1:$(cat exporter.port)"]}]}
Y
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file=prometheus.yml --storage.tsdb.path="$work/tsdb" --web.listen-address="127.0.0.1:$port" >prometheus.log 2>&1 & pids+=($!)
asked() { [ "$(curl -sG "http://127.0.0.1:$port/api/v1/query" --data-urlencode "query=$1" | grep -o '"instance"' | wc -l)" -eq 3 ]; }
check "Prometheus knows three nodes" eventually 30 asked node_usage
check "and their pressure" eventually 30 asked 'rate(node_pressure_cpu_waiting_seconds_total[10s])'

kubectl create -f - >/dev/null <<Y
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-1]}]}}]}}
      containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]
Y
check "the pods run" eventually 20 sh -c '[ "$(kubectl get rs web -o jsonpath="{.status.readyReplicas}")" = 4 ]'
policy() { # policy QUERY ARGUMENTS
  cat >policy.yaml <<Y
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders: [{source: Prometheus, prometheus: {url: "http://127.0.0.1:$port"}}]
profiles:
  - name: p
    pluginConfig:
      - name: LowNodeUtilization
        args: {metricsUtilization: {source: Prometheus, prometheus: {query: "$1"}}, $2}
    plugins: {balance: {enabled: [LowNodeUtilization]}}
Y
}
plan() { "$berth" descheduler --policy-config-file policy.yaml --placement-check off --dry-run; }
on_first() { plan | grep "node-1" >/dev/null; }
policy node_usage "thresholds: {MetricResource: 30}, targetThresholds: {MetricResource: 60}"
check "a pod of the busy node would go" says "node-1" plan
check "one pod of a node goes in a cycle" sh -c "[ \"\$('$berth' descheduler --policy-config-file policy.yaml --placement-check off --dry-run -o json | grep -c '\"web-')\" = 1 ]"
policy node_usage "thresholds: {MetricResource: 5}, targetThresholds: {MetricResource: 60}"
check "nobody is idle enough: nothing goes" refused on_first
# The average is 40: 20 below and above it are 20 and 60.
policy node_usage "useDeviationThresholds: true, thresholds: {MetricResource: 15}, targetThresholds: {MetricResource: 20}"
check "deviations from the average" says "node-1" plan
policy node_usage "useDeviationThresholds: true, thresholds: {MetricResource: 15}, targetThresholds: {MetricResource: 60}"
check "none deviates by so much" refused on_first
policy 'rate(node_pressure_cpu_waiting_seconds_total[10s])' "thresholds: {MetricResource: 30}, targetThresholds: {MetricResource: 60}"
# The rate is whole when ten seconds have been seen.
check "pressure is a query like any other" eventually 30 says "node-1" plan
policy 'node_usage{' "thresholds: {MetricResource: 30}, targetThresholds: {MetricResource: 60}"
check "a query that is none is told in Prometheus' words" says "parse error" plan
policy 'no_such_series' "thresholds: {MetricResource: 30}, targetThresholds: {MetricResource: 60}"
check "no answer is told, and moves nobody" says "unable to find metric entry for node-1" plan
finish
