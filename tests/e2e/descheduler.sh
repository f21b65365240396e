#!/usr/bin/env bash
# The descheduler on a running cluster: the documents' examples and RBAC steps, no pod comes back where it was, a dry run changes nothing.
. "$(dirname "$0")/lib.sh"
examples=$root/examples/descheduler
start_up --nodes 5 --zones 1 --real-node off
desched() { "$berth" descheduler --policy-config-file "$@"; }
places() { kubectl get pods -l "app=$1" --field-selector status.phase=Running -o jsonpath='{range .items[*]}{.metadata.name}={.spec.nodeName}{"\n"}{end}' | sort; }
nodes_of() { places "$1" | sed 's/.*=//' | sort; }
count_on() { nodes_of "$1" | grep -c "^$2\$"; }
only() { for i in 1 2 3 4 5; do [ "node-$i" = "$1" ] || kubectl cordon "node-$i"; done >/dev/null; }
all_nodes() { for i in 1 2 3 4 5; do kubectl uncordon "node-$i"; done >/dev/null; }
deploy() { # deploy NAME REPLICAS CPU [SPEC]
  printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec:\n  replicas: %s\n  selector: {matchLabels: {app: %s}}\n  template:\n    metadata: {labels: {app: %s}}\n    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: nginx, resources: {requests: {cpu: "%s"}}}]%s}\n' "$1" "$2" "$1" "$1" "$3" "${4:+, $4}" | kubectl apply -f -
}
running() { [ "$(places "$1" | wc -l)" = "$2" ]; }
gone() { kubectl delete deployment "$@" --now >/dev/null; for one in "$@"; do eventually 20 running "$one" 0; done; }
spread() { [ "$(nodes_of "$1" | uniq | wc -l)" = "$2" ]; }

# A node fails, its pods move, it returns: copies stand on one node.
only node-1
check "a deployment on one node" deploy web 3 100m
check "it runs" eventually 30 running web 3
all_nodes
before=$(places web)
check "a dry run names pod, places and strategy" says 'RemoveDuplicates   3 of ReplicaSet' desched "$examples/policy-remove-duplicates.yaml" --dry-run
check "it counts" says '2 pods would be evicted; nothing was changed' desched "$examples/policy-remove-duplicates.yaml" --dry-run
check "with --v 4 every pod has its reason" says 'default/bare node-1 pod does not have any ownerRefs' sh -c "kubectl run bare --image=pause --overrides='{\"spec\":{\"nodeName\":\"node-1\"}}' >/dev/null; '$berth' descheduler --policy-config-file '$examples/policy-remove-duplicates.yaml' --dry-run --v 4 | sed -E 's/ +/ /g'; kubectl delete pod bare --now >/dev/null"
check "it tells by whose configuration" says 'note: by the configuration of default-scheduler: ConfigMap kube-system/berth-scheduler-default-scheduler' desched "$examples/policy-remove-duplicates.yaml" --dry-run
check "a dry run changes nothing" [ "$before" = "$(places web)" ]
kubectl get nodes,pods,services,namespaces -A -o yaml >"$work/dump.yaml"
kubectl get replicasets -A -o yaml >"$work/sets.yaml"
check "the same plan comes of a dump" says '2 pods would be evicted' desched "$examples/policy-remove-duplicates.yaml" --cluster "$work/dump.yaml" --cluster "$work/sets.yaml"
desched "$examples/policy-remove-duplicates.yaml" --dry-run -o json >"$work/plan.json"
check "and as JSON" python3 -c 'import json, sys; p = json.load(open(sys.argv[1])); assert p["dryRun"] and len(p["evictions"]) == 2 and all(e["destination"] != e["node"] for e in p["evictions"])' "$work/plan.json"
check "duplicates are evicted" says '2 pods evicted' desched "$examples/policy-remove-duplicates.yaml"
check "the copies stand apart" eventually 20 spread web 3
check "all of them" eventually 20 running web 3
check "the event tells who did it" eventually 10 sh -c "[ \"\$(kubectl get events --field-selector reason=RemoveDuplicates | grep -c 'pod eviction from node-1 node by sigs.k8s.io/descheduler')\" = 2 ]"
check "nothing is left to do" says '0 pods evicted' desched "$examples/policy-remove-duplicates.yaml"
check "the documents' sample has nothing to do either" says '0 pods evicted' desched "$examples/policy.yaml"
gone web

# One node carries everything: it is evened out by the documents' thresholds, four empty nodes being more than numberOfNodes.
only node-2
deploy load 10 2500m >/dev/null
check "a node is full" eventually 30 running load 10
all_nodes
check "the overloaded node gives up pods" says '4 pods evicted' desched "$examples/policy-low-node-utilization.yaml"
check "they run elsewhere" eventually 20 sh -c "[ \"\$(kubectl get pods -l app=load --field-selector spec.nodeName=node-2,status.phase=Running -o name | wc -l)\" = 6 ]"
check "all of them" eventually 20 running load 10
check "none is above the target" says '0 pods evicted' desched "$examples/policy-low-node-utilization.yaml"
kubectl cordon node-5 >/dev/null
check "numberOfNodes holds it back" says '0 pods would be evicted' desched "$examples/policy-low-node-utilization.yaml" --dry-run
kubectl uncordon node-5 >/dev/null
gone load

# podB and podC cannot stand podA on their node, as soon as it carries the label: podA goes.
only node-3
anti='affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {security: s1}}}]}}'
printf 'apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: pod-a}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: pod-a}}\n  template:\n    metadata: {labels: {app: pod-a}}\n    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: nginx}]}\n' | kubectl apply -f - >/dev/null
deploy pod-b 1 100m "$anti" >/dev/null; deploy pod-c 1 100m "$anti" >/dev/null
check "three pods on one node" eventually 30 sh -c "[ \"\$(kubectl get pods --field-selector spec.nodeName=node-3,status.phase=Running -o name | wc -l)\" = 3 ]"
all_nodes
check "no rule is broken yet" says '0 pods evicted' desched "$examples/policy-anti-affinity.yaml"
kubectl patch replicaset pod-a --type merge -p '{"spec":{"template":{"metadata":{"labels":{"security":"s1"}}}}}' >/dev/null
kubectl label pod -l app=pod-a security=s1 >/dev/null
check "the pod that the others exclude goes" says '2 pods have anti-affinity to it' desched "$examples/policy-anti-affinity.yaml"
check "it runs on another node" eventually 20 sh -c "kubectl get pods -l app=pod-a --field-selector status.phase=Running -o jsonpath='{.items[*].spec.nodeName}' | grep -q 'node-[1245]'"
check "the others stayed" [ "$(nodes_of pod-b)$(nodes_of pod-c)" = node-3node-3 ]
kubectl delete replicaset pod-a --now >/dev/null
gone pod-b pod-c

# A node loses the label that a pod requires, another has it.
kubectl label node node-1 disktype=ssd >/dev/null
deploy ssd 1 100m 'affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disktype, operator: In, values: [ssd]}]}]}}}' >/dev/null
check "a pod on the node with the label" eventually 30 sh -c "kubectl get pods -l app=ssd -o jsonpath='{.items[*].spec.nodeName}' | grep -q node-1"
eventually 20 running ssd 1
kubectl label node node-1 disktype- >/dev/null
check "it stays while no node has the label" says '0 pods evicted' desched "$examples/policy-node-affinity.yaml"
kubectl label node node-4 disktype=ssd >/dev/null
cat >"$work/budget.yaml" <<'Y'
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: ssd}
spec: {minAvailable: 1, selector: {matchLabels: {app: ssd}}}
Y
kubectl apply -f "$work/budget.yaml" >/dev/null
eventually 10 sh -c "kubectl get pdb ssd -o jsonpath='{.status.currentHealthy}' | grep -q 1"
check "its disruption budget holds it" says 'disruption budget' desched "$examples/policy-node-affinity.yaml"
check "in a plan too" says '0 pods would be evicted' desched "$examples/policy-node-affinity.yaml" --dry-run
kubectl delete pdb ssd >/dev/null

# The documents' RBAC steps; with their role alone it works.
check "oc create sa" "$berth" create sa descheduler-sa -n kube-system
check "the documents' role" kubectl apply -f "$examples/cluster-role-documents.yaml"
check "the documents' binding" "$berth" create clusterrolebinding descheduler-cluster-role-binding --clusterrole=descheduler-cluster-role --serviceaccount=kube-system:descheduler-sa
check "the policy as a ConfigMap" "$berth" create configmap descheduler-policy-configmap -n kube-system --from-file="$examples/policy.yaml"
token=$(kubectl create token descheduler-sa -n kube-system)
sa_config=$work/sa.kubeconfig
cp "$KUBECONFIG" "$sa_config"
kubectl --kubeconfig "$sa_config" config set-credentials sa --token="$token" >/dev/null
kubectl --kubeconfig "$sa_config" config set-context --current --user=sa >/dev/null
check "the service account evicts" says '1 pod evicted' desched "$examples/policy-node-affinity.yaml" --kubeconfig "$sa_config"
check "the pod is where the label is" eventually 20 sh -c "kubectl get pods -l app=ssd --field-selector status.phase=Running -o jsonpath='{.items[*].spec.nodeName}' | grep -q node-4"
check "today's role replaces it" kubectl apply -f "$examples/rbac.yaml"
check "job, cron job and deployment are taken" kubectl apply --dry-run=server -f "$examples/job.yaml" -f "$examples/cronjob.yaml" -f "$examples/deployment.yaml"

# As a controller with leader election, two of them.
pids=()
for i in 1 2; do
  "$berth" descheduler --policy-config-file "$examples/policy-v1alpha2.yaml" --descheduling-interval 1s --leader-elect --kubeconfig "$sa_config" --leader-elect-lease-duration 4s --leader-elect-renew-deadline 3s --leader-elect-retry-period 1s --bind-address 127.0.0.1 >"$work/controller-$i.log" 2>&1 &
  pids+=($!)
done
check "one leads" eventually 15 sh -c "cat $work/controller-*.log | grep -q 'cycle done'"
check "the lease names it" sh -c "kubectl get lease descheduler -n kube-system -o jsonpath='{.spec.holderIdentity}' | grep -q ."
check "the other does nothing" [ "$(grep -l 'cycle done' "$work"/controller-*.log | wc -l)" = 1 ]
cat >"$work/bad.yaml" <<'Y'
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaint]}}
Y
check "a wrong policy is told with its line" says 'bad.yaml:5: profiles[0].plugins.deschedule.enabled' desched "$work/bad.yaml"
check "leader election wants an interval" says 'leaderElection must be used with deschedulingInterval' desched "$examples/policy.yaml" --leader-elect
kill "${pids[@]}" 2>/dev/null; wait "${pids[@]}" 2>/dev/null

# Within berth up.
stop_up
start_up --nodes 5 --zones 1 --real-node off --descheduler-policy "$examples/policy-remove-duplicates.yaml" --descheduling-interval 1s
only node-1
deploy again 3 100m >/dev/null
check "a deployment on one node again" eventually 30 running again 3
all_nodes
check "berth up spreads it by itself" eventually 20 spread again 3
finish
