#!/usr/bin/env bash
# Durable creations by one client on one etcd member: kube-apiserver and `berth server` in turn, each on a fresh etcd with fsync, in the same minutes.
# Processor time is of servers and etcd together.
#   KUBERNETES_BIN=FOLDER_OF_KUBE_APISERVER [SCALE=0.1] [ROUNDS=2] bench/etcd_beside_kubernetes.sh [BIN_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath "${1:-build/release/bin}") scale=${SCALE:-0.1}
[ -x "${KUBERNETES_BIN:-}/kube-apiserver" ] || { echo "KUBERNETES_BIN has no kube-apiserver"; exit 2; }
work=$(mktemp -d "${TMPDIR:-/tmp}/berth-beside.XXXXXX") pids=()
end_all() { # The last one first: a server whose etcd is gone takes long to end.
  for ((i = ${#pids[@]} - 1; i >= 0; --i)); do kill -KILL "${pids[i]}" 2>/dev/null && wait "${pids[i]}" 2>/dev/null || true; done; pids=()
}
trap 'end_all; rm -rf "$work"' EXIT
free() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
soon() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.2; done; echo "not within a minute: $*" >&2; tail -n 5 "$work"/*.log >&2; exit 1; }
seconds_of() { # processor seconds of the processes so far
  local total=0 pid; for pid in "$@"; do total=$((total + $(awk '{print $14 + $15}' "/proc/$pid/stat"))); done; awk "BEGIN {print $total / $(getconf CLK_TCK)}"; }
start_etcd() {
  etcd_url=http://127.0.0.1:$(free); local peer; peer=http://127.0.0.1:$(free)
  rm -rf "$work/etcd"
  etcd --data-dir "$work/etcd" --listen-client-urls "$etcd_url" --advertise-client-urls "$etcd_url" --listen-peer-urls "$peer" \
    --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" >"$work/etcd.log" 2>&1 & pids+=($!)
  soon curl -sf "$etcd_url/health"
}
start_kubernetes() {
  local port; port=$(free); mkdir -p "$work/k"
  openssl genrsa -out "$work/k/sa.key" 2048 2>/dev/null; openssl rsa -in "$work/k/sa.key" -pubout -out "$work/k/sa.pub" 2>/dev/null
  echo 'bench-admin,admin,admin,"system:masters"' >"$work/k/tokens.csv"
  "$KUBERNETES_BIN/kube-apiserver" --etcd-servers="$etcd_url" --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$port" \
    --endpoint-reconciler-type=none --service-cluster-ip-range=10.0.0.0/16 --token-auth-file="$work/k/tokens.csv" --authorization-mode=RBAC \
    --cert-dir="$work/k" --service-account-issuer="https://127.0.0.1:$port" --service-account-key-file="$work/k/sa.pub" \
    --service-account-signing-key-file="$work/k/sa.key" --max-requests-inflight=4000 --max-mutating-requests-inflight=2000 >"$work/kube.log" 2>&1 & pids+=($!)
  soon curl -skf -H 'Authorization: Bearer bench-admin' "https://127.0.0.1:$port/readyz"
  cat >"$work/kubeconfig" <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:$port", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: bench-admin}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
Y
}
start_berth() {
  local port; port=$(free); rm -rf "$work/b"
  "$bin/berth" server --data-dir "$work/b" --etcd-servers "$etcd_url" --listen "127.0.0.1:$port" >"$work/berth.log" 2>&1 & pids+=($!)
  soon grep -q '^export KUBECONFIG=' "$work/berth.log"
  cp "$(sed -n 's/^export KUBECONFIG=//p' "$work/berth.log" | tail -n 1)" "$work/kubeconfig"
}
measure() { # measure WHO
  local before after result
  before=$(seconds_of "${pids[@]}")
  result=$("$bin/berth-bench" ApiCreate --json --scale "$scale" --kubeconfig "$work/kubeconfig")
  after=$(seconds_of "${pids[@]}")
  echo "$1: $result; processor seconds of server and etcd: $(awk "BEGIN {print $after - $before}")"
}
for _ in $(seq "${ROUNDS:-2}"); do
  for who in kubernetes berth; do start_etcd; "start_$who"; measure "$who"; end_all; done
done
