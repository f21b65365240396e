#!/usr/bin/env bash
# explain, place and the rest decide by the configuration of the scheduler that runs, and say when the scheduler has said otherwise (SPEC I3).
. "$(dirname "$0")/lib.sh"
cat >"$work/policy.yaml" <<'Y'
kind: Policy
apiVersion: v1
predicates:
- {name: GeneralPredicates}
- {name: RequireRegion, argument: {labelsPresence: {labels: [region], presence: true}}}
priorities: []
Y
start_up --nodes 2 --policy-config-file "$work/policy.yaml"
eventually 20 kubectl wait --for=condition=Ready node --all --timeout=1s
kubectl run web --image=pause >/dev/null
refused_it() { kubectl get pod web -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason}' | grep Unschedulable >/dev/null; }
check "the scheduler refuses the pod by its policy" eventually 20 refused_it
check "so does explain, without being told of the policy" says "fits on none of 2 nodes" "$berth" explain pod web
check "it names the label that the policy wants" says "would need the label region (no node has it)" "$berth" explain pod web
check "and whose configuration that is" says "By the configuration of default-scheduler: ConfigMap kube-system/berth-scheduler-default-scheduler" "$berth" explain pod web
check "in JSON, too" sh -c "'$berth' explain pod web -o json 2>/dev/null | grep -q '\"configuration\": *\"ConfigMap kube-system/berth-scheduler-default-scheduler\"'"
kubectl run web --image=pause --dry-run=client -o yaml >"$work/web.yaml"
check "place as well" says "0 of 1 pods placed" "$berth" place --pods "$work/web.yaml"
printf 'kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1\n' >"$work/other.yaml"
check "another configuration may be asked for" says "fits on 2 of 2 nodes" "$berth" explain pod web --config "$work/other.yaml"
check "the verdict that contradicts the scheduler's says so" says "The scheduler says otherwise: PodScheduled is False (Unschedulable)" "$berth" explain pod web --config "$work/other.yaml"
check "a dump may hold the configuration" sh -c "kubectl get nodes,pods -A -o yaml >'$work/a.yaml'; kubectl get cm -n kube-system -l scheduling.berth.dev/configuration -o yaml >'$work/b.yaml'; '$berth' explain --cluster '$work/a.yaml' --cluster '$work/b.yaml' pod web 2>&1 | grep -q 'fits on none of 2 nodes'"
check "without it the defaults are said" says "the defaults, for no scheduler has published its own" "$berth" explain --cluster "$work/a.yaml" pod web
stop_up
start_up --nodes 2 --policy-config-file ""
is_on() { [ -n "$(kubectl get pod web -o jsonpath='{.spec.nodeName}')" ]; }
check "without the policy it is placed" eventually 30 is_on
check "and explain follows" says "default/web runs on node-" "$berth" explain pod web
kubectl taint nodes --all gpu=a100:NoSchedule >/dev/null
kubectl run late --image=pause >/dev/null
check "a change of the node is proposed" says "kubectl taint node node-1 gpu=a100:NoSchedule-" "$berth" explain pod late
check "a pinned pod's nearest node is its own" sh -c "kubectl run pinned --image=pause --overrides='{\"spec\":{\"nodeSelector\":{\"kubernetes.io/hostname\":\"node-2\"}}}' >/dev/null; '$berth' explain pod pinned | grep -q 'Nearest node: node-2'"
# The scheduler of the server's process is asked where one may ask it; who may not reads the cluster, and is told the same.
kubectl create serviceaccount reader >/dev/null
kubectl create clusterrole reader --verb=get,list --resource='*.*' >/dev/null
kubectl create clusterrolebinding reader --clusterrole=reader --serviceaccount=default:reader >/dev/null
kubectl config view --raw -o yaml >"$work/reader.kubeconfig"
kubectl --kubeconfig "$work/reader.kubeconfig" config set-credentials reader --token "$(kubectl create token reader)" >/dev/null
kubectl --kubeconfig "$work/reader.kubeconfig" config set-context --current --user=reader >/dev/null
alike() { # alike WORDS...: by the running scheduler and by reading
  "$berth" explain "$@" >"$work/asked" 2>&1 && KUBECONFIG=$work/reader.kubeconfig "$berth" explain "$@" >"$work/read" 2>&1 && diff "$work/asked" "$work/read"
}
check "who may not ask the scheduler reads the cluster, and is told the same" alike pod web
check "of a pod that waits" alike pod late
check "in JSON" alike pod late -o json
kubectl get pod late -o json | sed '1s/{/{"pod": {/; $s/}/}}/' >"$work/question.json"
check "the scheduler is asked by POST" says "fits on none of 2 nodes" kubectl create --raw /debug/placement/explain -f "$work/question.json"
check "which not everybody may" says "Forbidden" kubectl --kubeconfig "$work/reader.kubeconfig" create --raw /debug/placement/explain -f "$work/question.json"
kubectl create priorityclass urgent --value=1000 >/dev/null
cat >"$work/urgent.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  priorityClassName: urgent
  tolerations: [{operator: Exists}]
  containers: [{name: c, image: pause, resources: {requests: {cpu: "31900m"}}}]
Y
kubectl run small --image=pause --overrides='{"spec":{"tolerations":[{"operator":"Exists"}],"nodeName":"node-1","containers":[{"name":"small","image":"pause","resources":{"requests":{"cpu":"1"}}}]}}' >/dev/null
kubectl run other --image=pause --overrides='{"spec":{"tolerations":[{"operator":"Exists"}],"nodeName":"node-2","containers":[{"name":"other","image":"pause","resources":{"requests":{"cpu":"1"}}}]}}' >/dev/null
runs() { [ "$(kubectl get pods small other -o jsonpath='{.items[*].status.phase}')" = "Running Running" ]; }
eventually 20 runs
check "a manifest has the priority of its class, either way" alike --pod "$work/urgent.yaml"
check "with whom it would evict" grep -q "priority 0" "$work/asked"
{
  printf 'apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: crew}\nspec: {schedulingPolicy: {gang: {minCount: 2}}}\n'
  for i in 0 1; do
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: crew-%s}\nspec:\n  schedulingGroup: {podGroupName: crew}\n  tolerations: [{operator: Exists}]\n  containers: [{name: c, image: pause, resources: {requests: {cpu: "40"}}}]\n' "$i"
  done
} >"$work/crew.yaml"
kubectl apply -f "$work/crew.yaml" >/dev/null
waits_for_room() { kubectl get pod crew-1 -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason}' | grep Unschedulable >/dev/null; }
eventually 20 waits_for_room
check "of a group" alike podgroup crew
check "which waits" grep -q "crew" "$work/asked"
check "in JSON" alike podgroup/crew -o json
check "of one of its pods" alike pod crew-0
check "with the group's own" grep -q "one of the PodGroup crew\|PodGroup default/crew\|default/crew" "$work/asked"
check "a group that is not there" says 'podgroups.scheduling.k8s.io "nosuch" not found' "$berth" explain podgroup nosuch
finish
