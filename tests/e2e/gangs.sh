#!/usr/bin/env bash
# Gangs by kubectl: the API, what a new user does wrong, and the gates.
. "$(dirname "$0")/lib.sh"
start_up --nodes 2 --real-node off
apply() { kubectl apply -f - <<<"$1"; }
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

# ---- as Kubernetes 1.36 has it
stop_up
start_up --nodes 2 --real-node off --feature-gates=GenericWorkload=false
check "with the gate off nothing of it is served" says 'no matches for kind' group off '{schedulingPolicy: {basic: {}}}'
check "and a pod's group is dropped" sh -c 'kubectl run q --image=i --overrides='\''{"spec":{"schedulingGroup":{"podGroupName":"g"}}}'\'' && [ -z "$(kubectl get pod q -o jsonpath="{.spec.schedulingGroup}")" ]'
finish
