#!/usr/bin/env bash
# The shop from nothing: a control plane with this machine as its node, the shop, its page, who may ask the database. Needs root; leaves
# nothing running.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
berth=$(realpath "${1:-$here/../../build/release/bin/berth}")
lacking=
[ "$(id -u)" = 0 ] || lacking=root
for tool in containerd ctr runc umoci busybox nft kubectl; do command -v "$tool" >/dev/null || lacking="$lacking $tool"; done
[ -x /usr/lib/cni/bridge ] || lacking="$lacking containernetworking-plugins"
[ -x /usr/sbin/pdns_recursor ] || lacking="$lacking pdns-recursor"
[ -z "$lacking" ] || { echo "the shop needs: $lacking"; exit 77; }
. "$here/image.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/berth-shop.XXXXXX")
export HOME=$work KUBECACHEDIR=$work/cache
pid=
finish() {
  kubectl delete namespace corner-shop --wait --timeout=20s >/dev/null 2>&1
  [ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
  "$berth" node reset --data-dir "$work/data" >/dev/null 2>&1
  rm -rf "$work"
}
trap finish EXIT
run() { printf '\033[2m$ %s\033[0m\n' "$*"; "$@"; }
"$berth" up --real-node on --data-dir "$work/data" --listen 127.0.0.1:0 >"$work/up.log" 2>&1 &
pid=$!
for _ in $(seq 300); do grep -q '^export KUBECONFIG=' "$work/up.log" && break; kill -0 "$pid" 2>/dev/null || { cat "$work/up.log"; exit 1; }; sleep 0.1; done
KUBECONFIG=$(sed -n 's/^export KUBECONFIG=//p' "$work/up.log"); export KUBECONFIG
shop_image "$work" "$work/data/node/runtime/containerd.sock" || { echo "the image could not be made"; exit 1; }
run kubectl apply -f "$here/shop.yaml" || exit 1
run kubectl -n corner-shop rollout status statefulset/database --timeout=120s || exit 1
run kubectl -n corner-shop rollout status deployment/web --timeout=120s || exit 1
run kubectl -n corner-shop get pods,services,networkpolicies
node=$(kubectl get nodes -o jsonpath='{.items[0].status.addresses[?(@.type=="InternalIP")].address}')
page() { curl -s --max-time 5 "http://$node:30080/cgi-bin/index.cgi"; }
for _ in $(seq 40); do page | grep -q 'far: [0-9]' && break; sleep 0.25; done
run curl -s --max-time 5 "http://$node:30080/cgi-bin/index.cgi"
page | grep -q 'far: [0-9]' || { echo "the web tier does not find its database"; exit 1; }
echo "A stranger asks the database:"
kubectl -n corner-shop run stranger --image=docker.io/library/busybox:1.37 --restart=Never --command -- sleep 60 >/dev/null
kubectl -n corner-shop wait --for=condition=Ready pod/stranger --timeout=30s >/dev/null || exit 1
if run kubectl -n corner-shop exec stranger -- wget -q -T 2 -O - http://database/cgi-bin/orders; then echo "it was let in"; exit 1; fi
echo "... and is not let in, as the NetworkPolicy says."
