#!/usr/bin/env bash
# berth's scheduler beside the real Kubernetes (docs/attach.md): a real kube-apiserver and kube-controller-manager, hollow nodes, pods of mixed
# kinds placed by kube-scheduler and by `berth scheduler` in turn; then both at once by schedulerName; then one in the other's place, and back.
# For people who have the binaries: KUBERNETES_BIN is the folder of kube-apiserver, kube-controller-manager and kube-scheduler (1.36); etcd is in
# the PATH. Not part of `make test`.   KUBERNETES_BIN=~/k8s NODES=1000 PODS=5000 tests/e2e/attach.sh [berth]
set -euo pipefail
cd "$(dirname "$0")/../.."
berth=${1:-build/release/bin/berth} nodes=${NODES:-100} pods=${PODS:-600}
[ -x "${KUBERNETES_BIN:-}/kube-apiserver" ] || { echo "skipped: KUBERNETES_BIN has no kube-apiserver"; exit 0; }
work=$(mktemp -d /tmp/berth-attach.XXXXXX)
declare -A pid
end() { [ -z "${pid[$1]:-}" ] || { kill -"${2:-TERM}" "${pid[$1]}" 2>/dev/null || true; wait "${pid[$1]}" 2>/dev/null || true; unset "pid[$1]"; }; }
finish() { for name in nodes berth kube kcm apiserver etcd; do end $name KILL; done; rm -rf "$work"; }
trap finish EXIT
trap 'exit 1' INT TERM
start() { local name=$1; shift; "$@" >"$work/$name.log" 2>&1 </dev/null & pid[$name]=$!; }
fail() { echo "FAILED: $*" >&2; tail -n 5 "$work"/*.log >&2; exit 1; }
soon() { # soon SECONDS WHAT COMMAND...: until the command holds
  local end=$((SECONDS + $1)) what=$2; shift 2
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || fail "not within the time: $what"; sleep 0.2; done
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
cpu() { awk '{sub(/.*\) /, ""); split($0, f, " "); printf "%.2f\n", (f[12] + f[13]) / 100}' "/proc/$1/stat"; }
# How many pods a namespace has, and whether one without a node is left: a page of one object, since whole lists would cost the API server more than the schedulers do.
pods_of() { kubectl get --raw "/api/v1/namespaces/$1/pods?limit=1" | python3 -c 'import json, sys; l = json.load(sys.stdin); print(len(l["items"]) + l["metadata"].get("remainingItemCount", 0))'; }
has_pods() { [ "$(pods_of "$1")" -ge "$2" ]; }
is_empty() { [ "$(pods_of "$1")" -eq 0 ]; }
all_placed() { kubectl get --raw "/api/v1${1:+/namespaces/$1}/pods?limit=1&fieldSelector=spec.nodeName%3D" | python3 -c 'import json, sys; sys.exit(bool(json.load(sys.stdin)["items"]))'; }
are_ready() { sleep 2; [ "$(kubectl get nodes --no-headers | grep -c ' Ready ')" -ge "$1" ]; }
peak() { awk '/VmHWM/ {printf "%d\n", $2 / 1024}' "/proc/$1/status"; }

# --- the real control plane ---
client=$(free_port) peer=$(free_port) port=$(free_port)
openssl genrsa -out "$work/sa.key" 2048 2>/dev/null
openssl rsa -in "$work/sa.key" -pubout -out "$work/sa.pub" 2>/dev/null
printf '%s\n' 't-admin,admin,1,"system:masters"' 't-kcm,system:kube-controller-manager,2' 't-scheduler,system:kube-scheduler,3' >"$work/tokens"
for user in admin kcm scheduler; do
  cat >"$work/$user.kubeconfig" <<Y
apiVersion: v1
kind: Config
clusters: [{name: real, cluster: {server: "https://127.0.0.1:$port", insecure-skip-tls-verify: true}}]
users: [{name: $user, user: {token: t-$user}}]
contexts: [{name: real, context: {cluster: real, user: $user}}]
current-context: real
Y
done
export KUBECONFIG=$work/admin.kubeconfig
start etcd etcd --data-dir "$work/etcd" --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
  --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
  --initial-cluster "default=http://127.0.0.1:$peer" --unsafe-no-fsync --quota-backend-bytes 8000000000
start apiserver "$KUBERNETES_BIN/kube-apiserver" --etcd-servers="http://127.0.0.1:$client" --bind-address=127.0.0.1 --secure-port="$port" \
  --cert-dir="$work/certs" --token-auth-file="$work/tokens" --authorization-mode=RBAC --service-cluster-ip-range=10.96.0.0/16 \
  --service-account-issuer="https://127.0.0.1:$port" --service-account-key-file="$work/sa.pub" --service-account-signing-key-file="$work/sa.key" \
  --endpoint-reconciler-type=none --max-requests-inflight=3000 --max-mutating-requests-inflight=1000
soon 120 "kube-apiserver is ready" kubectl get --raw /readyz
start kcm "$KUBERNETES_BIN/kube-controller-manager" --kubeconfig="$work/kcm.kubeconfig" --leader-elect=false --secure-port=0 \
  --use-service-account-credentials=false --service-account-private-key-file="$work/sa.key" --kube-api-qps=1000 --kube-api-burst=1000 \
  --concurrent-replicaset-syncs=10 --authentication-kubeconfig= --authorization-kubeconfig=
kubectl create clusterrolebinding kcm --clusterrole=cluster-admin --user=system:kube-controller-manager >/dev/null
start nodes "$berth" nodes --nodes "$nodes" --zones 3 --lease-period 40s
soon 300 "the hollow nodes are ready" are_ready "$nodes"
echo "kube-apiserver $(kubectl version -o json | python3 -c 'import json,sys; print(json.load(sys.stdin)["serverVersion"]["gitVersion"])'), $nodes hollow nodes"
kubectl create priorityclass high --value=1000 >/dev/null

# --- the schedulers ---
start_kube() {
  start kube "$KUBERNETES_BIN/kube-scheduler" --kubeconfig="$work/scheduler.kubeconfig" --leader-elect="${1:-false}" --secure-port=0 \
    --kube-api-qps=5000 --kube-api-burst=5000 --authentication-kubeconfig= --authorization-kubeconfig= ${2:-}
}
start_berth() { start berth "$berth" scheduler --kubeconfig "$work/scheduler.kubeconfig" --secure-port 0 --leader-elect="${1:-false}" ${2:-}; }

# workload NAMESPACE PODS [SCHEDULER]: six kinds of pods in equal parts; waits until all are created.
workload() {
  kubectl create namespace "$1" >/dev/null
  python3 - "$1" "$2" "${3:-}" <<'P' | kubectl apply -f - >/dev/null
import json, sys
namespace, pods, scheduler = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def selector(name): return {"matchLabels": {"app": name}}
def soft(name): return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
    {"weight": 10, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector(name)}}]}}
kinds = {
    "plain": {},
    "spread": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                                              "labelSelector": selector("spread")}]},
    "apart": {"affinity": soft("apart")},
    "high": {"priorityClassName": "high"},
    "tolerant": {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"kubernetes.io/os": "linux"}},
    "stateful": {},
}
share = pods // len(kinds)
for i, (name, spec) in enumerate(kinds.items()):
    spec = {**spec, "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": f"{50 + 25 * i}m", "memory": "64Mi"}}}]}
    if scheduler: spec["schedulerName"] = scheduler
    stateful = name == "stateful"
    doc = {"apiVersion": "apps/v1", "kind": "StatefulSet" if stateful else "Deployment", "metadata": {"name": name, "namespace": namespace},
           "spec": {"replicas": share, "selector": selector(name), "template": {"metadata": {"labels": {"app": name}}, "spec": spec}}}
    if stateful: doc["spec"].update(serviceName="none", podManagementPolicy="Parallel")
    print("---\n" + json.dumps(doc))
P
  soon 900 "the controllers have created all pods" has_pods "$1" $(($2 / 6 * 6))
}

printf '%-16s %6s %6s %9s %9s %12s %10s\n' scheduler nodes pods seconds pods/s "cpu seconds" "peak MiB"
for who in ${ORDER:-kube berth}; do
  workload "round-$who" "$pods"
  total=$((pods / 6 * 6)) begin=$(date +%s.%N)
  start_$who
  until all_placed "round-$who"; do
    kill -0 "${pid[$who]}" 2>/dev/null || fail "the scheduler ended"
    [ $SECONDS -lt 3000 ] || fail "not all pods were placed"
    sleep 0.5
  done
  seconds=$(python3 -c "import time; print(f'{time.time() - $begin:.1f}')")
  printf '%-16s %6d %6d %9s %9s %12s %10s\n' "$who" "$nodes" "$total" "$seconds" "$(python3 -c "print(round($total / $seconds))")" "$(cpu "${pid[$who]}")" "$(peak "${pid[$who]}")"
  end $who
  kubectl delete namespace "round-$who" --wait=false >/dev/null
  soon 1200 "the pods of the round are gone" is_empty "round-$who"
done

# --- beside each other, by schedulerName ---
start_kube
start_berth false "--scheduler-name berth"
workload beside 60
workload beside-berth 60 berth
soon 120 "both have placed their own" all_placed ""
by() { kubectl get events -n "$1" --field-selector reason=Scheduled -o jsonpath='{range .items[*]}{.reportingComponent}{"\n"}{end}' | sort -u; }
soon 30 "kube-scheduler has told of its pods" test "$(by beside)" = default-scheduler
soon 30 "berth has told of its pods" test "$(by beside-berth)" = berth
end berth; end kube
echo "beside each other: each has placed its own pods"

# --- in the other's place, and back ---
handover() { # handover FROM TO: TO stands by while FROM leads, and places pods when FROM is gone
  end "$1"
  local begin=$SECONDS
  workload "after-$1" 12
  soon 40 "$2 has taken over from $1" all_placed "after-$1"
  echo "$2 has taken over from $1 within $((SECONDS - begin)) s; the lease is held by $(kubectl get lease -n kube-system kube-scheduler -o jsonpath='{.spec.holderIdentity}')"
}
start_kube true; soon 60 "kube-scheduler leads" sh -c "kubectl get lease -n kube-system kube-scheduler -o jsonpath={.spec.holderIdentity} | grep -q ."
start_berth true; sleep 3
handover kube berth
start_kube true; sleep 3
handover berth kube
all_placed "" || fail "pods were left behind"
echo ok
