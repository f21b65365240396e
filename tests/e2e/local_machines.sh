#!/usr/bin/env bash
# Machines that are node agents of this host (examples/local-machines): a pod that waits brings one, its container runs there, and without it
# agent, containers and namespace go again. Needs root and containerd.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
missing=$(node_missing)
for tool in ip nsenter python3; do command -v $tool >/dev/null || missing=$tool; done
if [ -n "$missing" ]; then echo "skipped: real machines need $missing"; echo "0 passed, 0 failed"; exit 0; fi
ip link add berth-probe type bridge 2>/dev/null || { echo "skipped: no network devices can be made here"; echo "0 passed, 0 failed"; exit 0; }
ip link delete berth-probe
example=$root/examples/local-machines
follower=
end_all() {
  [ -z "$follower" ] || { kill "$follower" 2>/dev/null; wait "$follower" 2>/dev/null; }
  stop_up
  "$example/machines.py" clean >/dev/null 2>&1
  cleanup
}
trap end_all EXIT
check "the bridge that machines meet on" says "10.89.0.1/24" "$example/machines.py" network
listen=10.89.0.1:0 start_up --real-node off --nodes 1 --scan-interval 500ms --node-pools
mkdir -p "$work/images"
socket=none # the machines have sockets of their own
ctr() { :; }
make_image busybox --config.cmd sh
unset -f ctr
"$example/machines.py" run "$berth" "$work/m" "$work/images/busybox.tar" >"$work/follower.log" 2>&1 & follower=$!
kubectl apply -f "$root/examples/autoscaler/quick.yaml" -f "$example/machine-set.yaml" >/dev/null
machines() { [ "$(kubectl get machines -n openshift-machine-api --no-headers 2>/dev/null | grep -c "$1")" -eq "$2" ]; }
check "nobody needs one: there is none" machines . 0
kubectl create -f - >/dev/null <<Y
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {pool: local}
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "berth.local/busybox:1", command: [sh, -c, "echo hello from \$(hostname); while :; do sleep 1; done"], resources: {requests: {cpu: 100m}}}]
Y
check "a pod that waits brings a machine" eventually 30 machines . 1
check "which runs" eventually 60 machines Running 1
name=$(kubectl get machines -n openshift-machine-api -o jsonpath='{.items[0].metadata.name}')
check "as a node with a containerd of its own" says "containerd://" kubectl get node "$name" -o jsonpath='{.status.nodeInfo.containerRuntimeVersion}'
check "in a network of its own" says "berth-$name" ip netns list
ready() { [ "$(kubectl get rs web -o jsonpath='{.status.readyReplicas}')" = 1 ]; }
check "the pod is a container there" eventually 60 ready
check "that says so" eventually 20 says "hello from web-" kubectl logs rs/web
kubectl delete rs web --wait=false >/dev/null
check "without the pod the machine goes" eventually 90 machines . 0
check "with its node" eventually 10 sh -c "! kubectl get node '$name' >/dev/null 2>&1"
check "its network" sh -c "! ip netns list | grep -q 'berth-$name'"
check "and its files" [ ! -e "$work/m/$name" ]

# ---- the same for a NodePool: claims are real nodes of this host
kubectl apply -f "$example/node-pool.yaml" >/dev/null
check "a pool of such machines is ready" eventually 20 says True kubectl get nodepool local -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'
kubectl create -f - >/dev/null <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: pooled}
spec:
  replicas: 1
  selector: {matchLabels: {app: pooled}}
  template:
    metadata: {labels: {app: pooled}}
    spec:
      nodeSelector: {pool: real}
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "berth.local/busybox:1", command: [sh, -c, "echo hello from \$(hostname); while :; do sleep 1; done"], resources: {requests: {cpu: 100m}}}]
Y
check "a claim comes" eventually 30 says pooled kubectl get nodeclaims -o jsonpath='{.items[*].metadata.labels.node\.kubernetes\.io/instance-type}'
claim() { kubectl get nodeclaims -o jsonpath="{.items[0]$1}"; }
check "it is initialized" eventually 60 says True claim '.status.conditions[?(@.type=="Initialized")].status'
name=$(claim .status.nodeName)
check "its node is a real one" says "containerd://" kubectl get node "$name" -o jsonpath='{.status.nodeInfo.containerRuntimeVersion}'
check "of the pool" says real kubectl get node "$name" -o jsonpath='{.metadata.labels.pool}'
pooled() { [ "$(kubectl get deploy pooled -o jsonpath='{.status.readyReplicas}')" = 1 ]; }
check "the pod is a container there" eventually 60 pooled
check "that says so, too" eventually 20 says "hello from pooled-" kubectl logs deploy/pooled
kubectl delete nodeclaim "$(claim .metadata.name)" --wait=false >/dev/null
check "a deleted claim is drained and its machine goes" eventually 90 sh -c "! kubectl get node '$name' >/dev/null 2>&1 && ! ip netns list | grep -q 'berth-$name'"
check "its pod has another real node" eventually 90 pooled
kubectl delete deploy pooled >/dev/null
check "without pods all of them go" eventually 120 machines . 0
check "with their claims" eventually 20 says 'No resources found' kubectl get nodeclaims
kill "$follower"; wait "$follower" 2>/dev/null; follower=
finish
