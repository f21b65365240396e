#!/usr/bin/env bash
# Gangs by kubectl: the API, what a new user does wrong, and the gates.
. "$(dirname "$0")/lib.sh"
start_up --nodes 2 --real-node off
apply() { printf '# YAML\n%s\n' "$1" | kubectl apply -f -; }  # What begins with a brace kubectl takes for JSON.
group() { # group NAME SPEC: a PodGroup as kubectl is given it
  apply "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: $1}, spec: $2}"
}

# ---- the API
check "both kinds are known" says 'podgroups' kubectl api-resources --api-group=scheduling.k8s.io
check "a Workload is created" apply '{apiVersion: scheduling.k8s.io/v1alpha2, kind: Workload, metadata: {name: w}, spec: {podGroupTemplates: [{name: t, schedulingPolicy: {gang: {minCount: 2}}}]}}'
check "a PodGroup of its template is created" group g '{podGroupTemplateRef: {workload: {workloadName: w, podGroupTemplateName: t}}, schedulingPolicy: {gang: {minCount: 2}}}'
check "get shows it" says 'CREATED AT' kubectl get podgroups
check "describe shows its count" says 'Min Count' kubectl describe podgroup g
check "explain tells of the count" says 'At least 1' kubectl explain podgroup.spec.schedulingPolicy.gang.minCount
check "it may be applied a second time" says 'unchanged' group g '{podGroupTemplateRef: {workload: {workloadName: w, podGroupTemplateName: t}}, schedulingPolicy: {gang: {minCount: 2}}}'
check "its labels may change" kubectl label podgroup g a=b
check "its spec may not" says 'field is immutable' kubectl patch podgroup g --type merge -p '{"spec":{"disruptionMode":"PodGroup"}}'

# ---- mistakes
check "no count" says 'minCount: Required value' group bad '{schedulingPolicy: {gang: {}}}'
check "no policy" says 'must specify one of: `basic`, `gang`' group bad '{}'
check "a word in wrong letters" says 'unknown field "spec.schedulingPolicy.gang.mincount"' group bad '{schedulingPolicy: {gang: {mincount: 2}}}'
check "no such Workload" says 'Workload "nope" not found' group bad '{podGroupTemplateRef: {workload: {workloadName: nope, podGroupTemplateName: t}}, schedulingPolicy: {basic: {}}}'
check "no such template" says 'PodGroupTemplate "nope" not found in Workload "w"' group bad '{podGroupTemplateRef: {workload: {workloadName: w, podGroupTemplateName: nope}}, schedulingPolicy: {basic: {}}}'
check "no such class" says 'no PriorityClass with name nope was found' group bad '{schedulingPolicy: {basic: {}}, priorityClassName: nope}'
check "a number instead of a class" says 'must not be provided in pod group spec' group bad '{schedulingPolicy: {basic: {}}, priority: 7}'

# ---- a group that is deleted while a pod belongs to it
check "a pod of the group" apply '{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {schedulingGroup: {podGroupName: g}, terminationGracePeriodSeconds: 0, containers: [{name: c, image: i}]}}'
check "the pod stays in its group" says 'Forbidden' kubectl patch pod p --type merge -p '{"spec":{"schedulingGroup":{"podGroupName":"h"}}}'
check "the group is told to go" kubectl delete podgroup g --wait=false
check "it stays while the pod is there" kubectl get podgroup g
check "the pod goes" kubectl delete pod p --now
check "so does the group" eventually 20 refused kubectl get podgroup g

# ---- together or not at all
member() { # member NAME GROUP CPU
  apply "{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {schedulingGroup: {podGroupName: $2}, terminationGracePeriodSeconds: 0, containers: [{name: c, image: i, resources: {requests: {cpu: $3}}}]}}"
}
placed() { # placed COUNT GROUP: so many of its pods have a node
  [ "$(kubectl get pods -o json | jq_count "$2")" = "$1" ]
}
jq_count() { python3 -c 'import json, sys; print(sum(1 for pod in json.load(sys.stdin)["items"] if pod["spec"].get("schedulingGroup", {}).get("podGroupName") == sys.argv[1] and pod["spec"].get("nodeName")))' "$1"; }
condition() { kubectl get podgroup "$1" -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{end}'; }

check "a gang of three" group three '{schedulingPolicy: {gang: {minCount: 3}}}'
{ member three-a three 10m; member three-b three 10m; } >/dev/null
check "a pod without a group is placed meanwhile" sh -c 'kubectl run alone --image=i && kubectl wait pod/alone --for=condition=PodScheduled --timeout=20s'
check "two of three have no node" placed 0 three
check "the third comes" member three-c three 10m
check "and all three are placed" eventually 20 placed 3 three
check "the group says so" eventually 10 says 'PodGroupScheduled=True' condition three
check "a fourth joins them" member three-d three 10m
check "and is placed, too" eventually 20 placed 4 three

whole=$(kubectl get nodes -o jsonpath='{.items[0].status.allocatable.cpu}')
check "a gang that is too large for two nodes" group large '{schedulingPolicy: {gang: {minCount: 3}}}'
for one in a b c; do member large-$one large $((whole * 6 / 10)) >/dev/null; done
check "the group says why it waits" eventually 20 says 'PodGroupScheduled=False Unschedulable' condition large
check "none of it has a node, though two would fit" placed 0 large
check "kubectl says of whom it waits" says 'FailedScheduling' kubectl describe pod large-a
check "explain says that the pod is one of a group" says 'It is one of the PodGroup large' "$berth" explain pod large-a
kubectl get node -o json | python3 -c 'import json, sys; node = json.load(sys.stdin)["items"][0]; name = "node-extra"; meta = node["metadata"]; print(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {**meta["labels"], "kubernetes.io/hostname": name}, "annotations": meta.get("annotations", {})}, "status": {key: node["status"][key] for key in ("allocatable", "capacity", "conditions")}}))' >"$work/node.json"
kubectl create -f "$work/node.json" >/dev/null
check "then all of it is placed" eventually 30 placed 3 large

# ---- as Kubernetes 1.36 has it
stop_up
start_up --nodes 2 --real-node off --feature-gates=GenericWorkload=false
check "with the gate off nothing of it is served" says 'no matches for kind' group unserved '{schedulingPolicy: {basic: {}}}'
check "and a pod's group is taken" member q three 10m
check "and dropped" says '{}' sh -c 'kubectl get pod q -o json | python3 -c "import json, sys; print(json.load(sys.stdin)[\"spec\"].get(\"schedulingGroup\", {}))"'
finish
