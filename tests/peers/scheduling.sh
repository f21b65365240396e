#!/usr/bin/env bash
# Schedulers and API servers crossed: real and berth's, on one scripted scenario (scheduling_scenario.py). By hand; not part of `make test`.
#
#   PEERS=DIR tests/peers/scheduling.sh [real-real real-berth real-berth-today berth-real berth-berth berth-today berth-berth-today]
#
# A name is API-SERVER then SCHEDULER. PEERS/bin holds kube-apiserver, kube-scheduler and kube-controller-manager of Kubernetes 1.20; etcd is in
# PATH. Each run starts from nothing on free ports; its log and result are in $OUT (default: a new folder under /tmp, which is printed).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
berth=${BERTH:-$here/../../build/release/bin/berth}
bin=${PEERS:-$HOME/.cache/peers}/bin
out=${OUT:-$(mktemp -d /tmp/berth-peers.XXXXXX)}
pids=()
start() { local name=$1; shift; "$@" >"$out/$name.log" 2>&1 </dev/null & pids+=($!); }
# Everything is thrown away: a server that waits for another one is not waited for.
stop_all() {
  local pid
  for pid in "${pids[@]:-}"; do [ -n "$pid" ] && kill "$pid" 2>/dev/null || true; done
  sleep 1
  for pid in "${pids[@]:-}"; do [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null || true; done
  pids=()
}
trap stop_all EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
ready() { for _ in $(seq 600); do kubectl --kubeconfig "$1" get --raw /readyz >/dev/null 2>&1 && return; sleep 0.1; done; echo "no answer from the API server" >&2; exit 1; }

real_api() {
  local dir=$1 etcd peer api
  etcd=$(free_port) peer=$(free_port) api=$(free_port)
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout "$dir/api.key" -out "$dir/api.crt" -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>/dev/null
  openssl genrsa -out "$dir/sa.key" 2048 2>/dev/null
  openssl rsa -in "$dir/sa.key" -pubout -out "$dir/sa.pub" 2>/dev/null
  echo 'admin-token,admin,admin,"system:masters"' >"$dir/tokens.csv"
  start etcd etcd --data-dir "$dir/etcd" --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
    --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" --initial-cluster "default=http://127.0.0.1:$peer" --unsafe-no-fsync
  start apiserver "$bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd" --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$api" \
    --endpoint-reconciler-type=none --service-cluster-ip-range=10.0.0.0/16 --token-auth-file="$dir/tokens.csv" --authorization-mode=AlwaysAllow \
    --tls-cert-file="$dir/api.crt" --tls-private-key-file="$dir/api.key" --cert-dir="$dir" --service-account-issuer="https://127.0.0.1:$api" \
    --service-account-key-file="$dir/sa.pub" --service-account-signing-key-file="$dir/sa.key" --disable-admission-plugins=ServiceAccount,TaintNodesByCondition
  cat >"$dir/kubeconfig" <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:$api", certificate-authority: $dir/api.crt}}]
users: [{name: u, user: {token: admin-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
Y
  kubeconfig=$dir/kubeconfig
}

berth_api() {
  start apiserver "$berth" server --data-dir "$1/data" --listen 127.0.0.1:0
  for _ in $(seq 100); do kubeconfig=$(sed -n 's/.*KUBECONFIG=//p' "$out/apiserver.log" | head -1); [ -n "$kubeconfig" ] && return; sleep 0.1; done
  echo "berth server did not start: $out/apiserver.log" >&2
  exit 1
}

run() {
  local name=$1 api=${1%%-*} scheduler=${1#*-} dir json= compatibility=1.20 lease=
  dir=$(mktemp -d "$out/$name.XXXXXX")
  "${api}_api" "$dir"
  ready "$kubeconfig"
  [ "$api" = berth ] && json=--kube-api-content-type=application/json
  # Only what the scenario needs of a controller manager: volumes are bound, budgets counted, namespaces have nothing to do with it.
  start controllers "$bin/kube-controller-manager" --kubeconfig="$kubeconfig" --leader-elect=false --bind-address=127.0.0.1 --port=0 --secure-port="$(free_port)" \
    --cert-dir="$dir/kcm" --controllers=persistentvolume-binder,disruption $json
  case $scheduler in
    real) start scheduler "$bin/kube-scheduler" --kubeconfig="$kubeconfig" --bind-address=127.0.0.1 --port=0 --secure-port="$(free_port)" --cert-dir="$dir/ks" $json
      lease=_ ;;
    berth) start scheduler "$berth" scheduler --kubeconfig "$kubeconfig" --secure-port "$(free_port)" --compatibility 1.20; lease=_ ;;
    today) start scheduler "${KUBE_SCHEDULER_TODAY:?a kube-scheduler of today, that takes --kubeconfig}" --kubeconfig="$kubeconfig"; compatibility=1.36 lease= ;;
    berth-today) start scheduler "$berth" scheduler --kubeconfig "$kubeconfig" --secure-port "$(free_port)"; compatibility=1.36 lease=_ ;;
  esac
  echo "== $name"
  python3 "$here/scheduling_scenario.py" --kubeconfig "$kubeconfig" --berth "$berth" --compatibility "$compatibility" ${lease:+--lease "$lease"} --out "$out/$name.jsonl" | tee "$out/$name.txt" || true
  for log in apiserver scheduler controllers; do mv "$out/$log.log" "$out/$name.$log.log"; done
  stop_all
}

for name in ${*:-real-real real-berth real-berth-today berth-real berth-berth}; do run "$name"; done
for name in real-berth berth-real berth-berth; do
  [ -f "$out/real-real.jsonl" ] && [ -f "$out/$name.jsonl" ] || continue
  printf 'real-real against %s: ' "$name"
  python3 "$here/scheduling_scenario.py" --compare "$out/real-real.jsonl" "$out/$name.jsonl" || true
done
if [ -f "$out/berth-today.jsonl" ] && [ -f "$out/berth-berth-today.jsonl" ]; then
  printf 'berth-today against berth-berth-today: '
  python3 "$here/scheduling_scenario.py" --compare "$out/berth-today.jsonl" "$out/berth-berth-today.jsonl" || true
fi
echo "results: $out"
