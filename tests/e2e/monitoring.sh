#!/usr/bin/env bash
# examples/monitoring with a real Prometheus: everything is scraped with the account's rights, every rule and every plot of the dashboard can be asked.
. "$(dirname "$0")/lib.sh"
command -v prometheus >/dev/null || { echo "skipped: needs Debian's prometheus"; echo "0 passed, 0 failed"; exit 0; }
prometheus_pid=
trap '[ -z "$prometheus_pid" ] || kill "$prometheus_pid" 2>/dev/null; cleanup' EXIT
start_up --nodes 3
cp "$root"/examples/monitoring/* "$work/"
kubectl apply -f "$work/account.yaml" >/dev/null
kubectl -n kube-system create token prometheus --duration 1h >"$work/token"
server=$(kubectl config view -o jsonpath='{.clusters[0].cluster.server}')
port_of() { sed -n "s|.* $1: /metrics.* on https://127.0.0.1:\([0-9]*\)\$|\1|p" "$work/up.log"; }
sed -i "s/127.0.0.1:6443/${server#https://}/; s/127.0.0.1:10259/127.0.0.1:$(port_of scheduler)/; s/127.0.0.1:10257/127.0.0.1:$(port_of controllers)/; s/127.0.0.1:8085/127.0.0.1:$(port_of autoscaler)/; s/scrape_interval: 15s/scrape_interval: 1s/" "$work/prometheus.yaml"
check "the rules are well" promtool check rules "$work/rules.yaml"
check "the configuration is well" promtool check config "$work/prometheus.yaml"
free=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
(cd "$work" && exec prometheus --config.file prometheus.yaml --storage.tsdb.path "$work/tsdb" --web.listen-address "127.0.0.1:$free" >"$work/prometheus.log" 2>&1) &
prometheus_pid=$!
kubectl create deployment web --image=nginx --replicas=20 >/dev/null
kubectl rollout status deployment/web --timeout=60s >/dev/null
ask() { curl -sfG "http://127.0.0.1:$free/api/v1/query" --data-urlencode "query=$1"; }
has() { ask "$1" | python3 -c 'import json,sys; sys.exit(not json.load(sys.stdin)["data"]["result"])'; }
for job in apiserver scheduler controllers autoscaler; do check "$job is scraped" eventually 30 has "up{job=\"$job\"} == 1"; done
check "pods placed are counted" eventually 30 has 'sum(scheduler_schedule_attempts_total{result="scheduled"}) >= 20'
check "every process tells its memory" eventually 30 has 'count(process_resident_memory_bytes) >= 4'
check "every rule is evaluated" sh -c "curl -sf http://127.0.0.1:$free/api/v1/rules | python3 -c '
import json,sys
rules=[r for g in json.load(sys.stdin)[\"data\"][\"groups\"] for r in g[\"rules\"]]
assert len(rules) >= 10 and all(r[\"health\"] != \"err\" for r in rules), rules'"
# A plot without data is a name that is wrong, but for what did not happen here.
check "every plot of the dashboard has data, or waits for what did not happen" python3 - "$work/grafana-dashboard.json" "http://127.0.0.1:$free" <<'PY'
import json, sys, time, urllib.parse, urllib.request
quiet = ("descheduler_", "cluster_autoscaler_", "preemption", "[45]..", "rejected")
def result(expr):
    with urllib.request.urlopen(sys.argv[2] + "/api/v1/query?" + urllib.parse.urlencode({"query": expr})) as answer:
        return json.load(answer)["data"]["result"]
exprs = [t["expr"] for p in json.load(open(sys.argv[1]))["panels"] for t in p.get("targets", [])]
end = time.time() + 30
while True:
    empty = [e for e in exprs if not result(e) and not any(q in e for q in quiet)]
    if not empty or time.time() > end: break
    time.sleep(1)
print("\n".join(empty)); sys.exit(bool(empty))
PY
finish
