#!/usr/bin/env bash
# Durable creations on an etcd of MEMBERS members with fsync and as many API servers, a client each: kube-apiserver and `berth server` in turn, each
# on a fresh etcd, in the same minutes; processor time of the servers and of etcd. PUTS names a program that puts bare values into the same etcd
# (called with --endpoints, --total and --clients): how fast etcd itself is, with nobody before it. TMPDIR says on which disk etcd stands.
#   KUBERNETES_BIN=FOLDER_OF_KUBE_APISERVER [MEMBERS=1] [SCALE=0.1] [ROUNDS=2] [PUTS=] bench/etcd_beside_kubernetes.sh [BIN_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath "${1:-build/release/bin}") scale=${SCALE:-0.1} members=${MEMBERS:-1}
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
  local i urls=() peers=() all=; rm -rf "$work"/etcd*; etcd_url=
  for i in $(seq "$members"); do urls[i]=http://127.0.0.1:$(free); peers[i]=http://127.0.0.1:$(free); all+=,m$i=${peers[i]}; etcd_url+=,${urls[i]}; done
  etcd_url=${etcd_url#,}
  for i in $(seq "$members"); do
    etcd --name "m$i" --data-dir "$work/etcd$i" --listen-client-urls "${urls[i]}" --advertise-client-urls "${urls[i]}" --listen-peer-urls "${peers[i]}" \
      --initial-advertise-peer-urls "${peers[i]}" --initial-cluster "${all#,}" --pre-vote >"$work/etcd$i.log" 2>&1 & pids+=($!)
  done
  for i in $(seq "$members"); do soon curl -sf "${urls[i]}/health"; done
}
# Each server has the next member first, as where they stand on one machine with it.
members_for() { tr , '\n' <<<"$etcd_url" | awk -v first="$1" '{all[NR] = $0} END {for (i = 0; i < NR; ++i) printf "%s%s", i ? "," : "", all[(first - 1 + i) % NR + 1]}'; }
start_kubernetes() { # start_kubernetes NUMBER
  local port; port=$(free); mkdir -p "$work/k"
  [ -e "$work/k/sa.key" ] || { openssl genrsa -out "$work/k/sa.key" 2048 2>/dev/null; openssl rsa -in "$work/k/sa.key" -pubout -out "$work/k/sa.pub" 2>/dev/null; }
  echo 'bench-admin,admin,admin,"system:masters"' >"$work/k/tokens.csv"
  "$KUBERNETES_BIN/kube-apiserver" --etcd-servers="$(members_for "$1")" --bind-address=127.0.0.1 --advertise-address="127.0.0.$1" --secure-port="$port" \
    --endpoint-reconciler-type=none --service-cluster-ip-range=10.0.0.0/16 --token-auth-file="$work/k/tokens.csv" --authorization-mode=RBAC \
    --cert-dir="$work/k/$1" --service-account-issuer="https://kubernetes.default.svc" --service-account-key-file="$work/k/sa.pub" \
    --service-account-signing-key-file="$work/k/sa.key" --max-requests-inflight=4000 --max-mutating-requests-inflight=2000 >"$work/kube$1.log" 2>&1 & pids+=($!)
  soon curl -skf -H 'Authorization: Bearer bench-admin' "https://127.0.0.1:$port/readyz"
  cat >"$work/kubeconfig$1" <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:$port", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: bench-admin}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
Y
}
start_berth() { # start_berth NUMBER
  local port; port=$(free); rm -rf "$work/b$1"
  [ "$1" = 1 ] || { mkdir "$work/b$1"; cp -r "$work/b1/pki" "$work/b$1/pki"; rm -f "$work/b$1"/pki/server.*; }
  "$bin/berth" server --data-dir "$work/b$1" --etcd-servers "$(members_for "$1")" --listen "127.0.0.1:$port" --advertise-address "127.0.0.$1" >"$work/berth$1.log" 2>&1 & pids+=($!)
  soon grep -q '^export KUBECONFIG=' "$work/berth$1.log"
  cp "$work/b$1/admin.kubeconfig" "$work/kubeconfig$1"
}
measure() { # measure WHO
  local i clients=() etcds=("${pids[@]:0:members}") servers=("${pids[@]:members}") etcd_before server_before
  etcd_before=$(seconds_of "${etcds[@]}"); server_before=$(seconds_of "${servers[@]}")
  for i in $(seq "$members"); do "$bin/berth-bench" ApiCreate --json --scale "$scale" --kubeconfig "$work/kubeconfig$i" >"$work/result$i" & clients+=($!); done
  for i in "${clients[@]}"; do wait "$i"; done
  cat "$work"/result* | sed "s/^/$1: /"
  echo "$1: creations/s together: $(cat "$work"/result* | sed -nE 's/.*"pods_per_s":([0-9.]+).*/\1/p' | awk '{s += $1} END {print s}'); processor seconds of the servers: $(awk "BEGIN {print $(seconds_of "${servers[@]}") - $server_before}"), of etcd: $(awk "BEGIN {print $(seconds_of "${etcds[@]}") - $etcd_before}")"
}
measure_puts() {
  local before; before=$(seconds_of "${pids[@]}")
  echo "etcd alone: $("$PUTS" --endpoints "$etcd_url" --total "$(awk "BEGIN {print int($scale * 100000 * $members)}")" --clients "$members"); processor seconds of etcd: $(awk "BEGIN {print $(seconds_of "${pids[@]}") - $before}")"
}
for _ in $(seq "${ROUNDS:-2}"); do
  [ -z "${PUTS:-}" ] || { start_etcd; measure_puts; end_all; }
  for who in kubernetes berth; do
    start_etcd
    for number in $(seq "$members"); do "start_$who" "$number"; done
    measure "$who"; end_all
  done
done
