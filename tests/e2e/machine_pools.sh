#!/usr/bin/env bash
# NodePools that buy machines: of MachineSets in `berth up`, and of the reference provider of examples/external-provider.
. "$(dirname "$0")/lib.sh"
provider=$(dirname "$berth")/berth-example-provider
pids=()
end_all() { for pid in "${pids[@]}"; do kill -CONT "$pid" 2>/dev/null; kill "$pid" 2>/dev/null; done; cleanup; }
trap end_all EXIT
start_up --nodes 0 --real-node off --node-pools --scan-interval 500ms
check "the class is there" eventually 20 says 'machinenodeclasses' kubectl api-resources --api-group=berth.dev
check "a typo in it is refused" says 'unknown field "spec.registrationTimout"' sh -c "printf '# YAML\n{apiVersion: berth.dev/v1alpha1, kind: MachineNodeClass, metadata: {name: bad}, spec: {registrationTimout: 1m}}\n' | kubectl apply -f -"
printf '# YAML\n%s\n' '{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: early}, spec: {template: {spec: {nodeClassRef: {group: berth.dev, kind: MachineNodeClass, name: machines}, requirements: []}}}}' | kubectl apply -f - >/dev/null
ready() { kubectl get nodepool "$1" -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.message}{"\n"}{end}'; }
check "a class that is not there" eventually 10 says 'Ready=False there is no MachineNodeClass named "machines"' ready early
printf '# YAML\n%s\n' '{apiVersion: berth.dev/v1alpha1, kind: MachineNodeClass, metadata: {name: machines}}' | kubectl apply -f - >/dev/null
check "one without a set" eventually 10 says 'no group of machines has the label berth.dev/machine-node-class=machines in its template' ready early
kubectl delete nodepool early >/dev/null
# A ClusterAutoscaler that would scale all sets: it leaves those of pools alone.
kubectl apply -f "$root/examples/autoscaler/quick.yaml" -f "$root/examples/node-pools/machines.yaml" >/dev/null
check "the pool is ready" eventually 20 says 'Ready=True' ready machines
load() { # load REPLICAS CPU
  kubectl apply -f - >/dev/null <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: load}
spec:
  replicas: $1
  selector: {matchLabels: {app: load}}
  template:
    metadata: {labels: {app: load}}
    spec: {terminationGracePeriodSeconds: 1, nodeSelector: {team: everybody}, containers: [{name: c, image: i, resources: {requests: {cpu: "$2"}}}]}
Y
}
replicas() { [ "$(kubectl -n openshift-machine-api get machineset "$1" -o jsonpath='{.spec.replicas}')" = "$2" ]; }
running() { [ "$(kubectl get deploy load -o jsonpath='{.status.readyReplicas}')" = "$1" ]; }
sed 's/registrationTimeout/registrationTimeot/' "$root/examples/node-pools/machines.yaml" >"$work/typo.yaml"
check "a typo in a class of a cluster's file is told" says 'did you mean "registrationTimeout"?' "$berth" pools plan --cluster "$work/typo.yaml" -f "$root/examples/node-pools/web.yaml"
load 2 1500m
check "what would be bought" eventually 5 says '2 x small' "$berth" pools plan
check "two pods: two machines of the small set" eventually 30 replicas small 2
check "whose pods run" eventually 20 running 2
check "none of the large one" replicas large 0
check "claims know their machines" says 'machine:///openshift-machine-api/small-' kubectl get nodeclaims -o jsonpath='{.items[*].status.providerID}'
check "nodes are the pool's" says 'everybody' kubectl get nodes -L team
check "and say their price" says '0.0900 USD' kubectl get nodes -o jsonpath='{.items[*].metadata.annotations.berth\.dev/price-per-hour}'
sleep 3 # Several passes of the autoscaler.
check "the autoscaler lets them be" replicas small 2
load 8 1500m
check "more than the small set may have: a large machine" eventually 40 replicas large 1
check "all pods run" eventually 30 running 8
load 1 1500m
check "load goes: the cheapest machine stays" eventually 90 sh -c '[ "$(kubectl get nodes --no-headers | wc -l)" = 1 ]'
check "of the small set" eventually 10 replicas small 1
check "the large one is given back" eventually 10 replicas large 0
check "one machine is left" eventually 10 sh -c '[ "$(kubectl -n openshift-machine-api get machines --no-headers | wc -l)" = 1 ]'
machine=$(kubectl -n openshift-machine-api get machines -o jsonpath='{.items[0].metadata.name}')
kubectl -n openshift-machine-api delete machine "$machine" --wait=false >/dev/null
check "a machine deleted by hand is replaced by its claim's successor" eventually 60 sh -c "! kubectl -n openshift-machine-api get machine $machine && [ \"\$(kubectl get deploy load -o jsonpath='{.status.readyReplicas}')\" = 1 ]"
kubectl delete deploy load >/dev/null
kubectl delete nodepool machines --wait=false >/dev/null
check "a deleted pool gives its machines back" eventually 60 sh -c '[ "$(kubectl get nodes --no-headers 2>/dev/null | wc -l)" = 0 ]'
check "no claim is left" eventually 20 says 'No resources found' kubectl get nodeclaims
check "no machine is" eventually 20 says 'No resources found' kubectl -n openshift-machine-api get machines

if [ ! -x "$provider" ]; then echo "skipped: $provider is not built"; finish; fi
stop_up; rm -rf "$work/data"
start_up --nodes 0 --real-node off
cd "$work" || exit 1
mkfifo hold; exec 9<>hold
printf '%s\n' 'groups:' '  - {id: rack, min: 0, max: 3, cpu: "4", memory: 16Gi, zone: zone-a, price: 0.19, labels: {berth.dev/machine-node-class: rack}}' \
  '  - {id: other, min: 0, max: 3, cpu: "4", memory: 16Gi, zone: zone-a, price: 0.01}' >groups.yaml
"$provider" 127.0.0.1:0 groups.yaml "$KUBECONFIG" <&9 >provider.log 2>&1 &
provider_pid=$!; pids+=("$provider_pid")
check "the provider listens" eventually 10 grep -q "listening on port" provider.log
printf '%s\n' "address: 127.0.0.1:$(sed -n 's/^listening on port \([0-9]*\);.*/\1/p' provider.log)" "grpc_timeout: 1s" >cloud.yaml
"$berth" autoscaler --cloud-config cloud.yaml --node-pools --no-leader-elect --secure-port 0 >autoscaler.log 2>&1 &
pids+=("$!")
check "NodePools are served" eventually 20 says 'nodeclaims' kubectl api-resources --api-group=karpenter.sh
sed -n '/^apiVersion: berth.dev/,$p' "$root/examples/node-pools/machines.yaml" | sed 's/: machines/: rack/' | kubectl apply -f - >/dev/null
check "a pool of the provider's machines is ready" eventually 30 says 'Ready=True' ready rack
load 2 3
check "its machines come" eventually 40 grep -q 'rack-2 is switched on' provider.log
check "and run the pods" eventually 30 running 2
check "at the provider's price" says '0.1900 USD' kubectl get nodes -o jsonpath='{.items[*].metadata.annotations.berth\.dev/price-per-hour}'
check "a group without the label is not bought from" refused grep -q 'other-1' provider.log
kill -STOP "$provider_pid"
kubectl scale deploy load --replicas=0 >/dev/null
sleep 4
check "while the provider is silent no node goes" sh -c '[ "$(kubectl get nodes --no-headers | wc -l)" = 2 ]'
check "which is said" eventually 10 grep -qi 'Deadline Exceeded' autoscaler.log
kill -CONT "$provider_pid"
check "it is back: they go" eventually 60 grep -q 'rack-2 is switched off' provider.log
check "with their nodes and claims" eventually 30 says 'No resources found' kubectl get nodeclaims,nodes
finish
