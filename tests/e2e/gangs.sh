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

# ---- where a gang would go, asked beforehand
placed_as() { says "$1" "$berth" place --pods "$2"; }
check "place decides a gang's pods together" placed_as 'default/training: 3 of 3 pods placed, together' "$root/examples/gangs/gang.yaml"
check "and those of a Job that becomes a gang" placed_as 'default/Job training: 3 of 3 pods placed, together' "$root/examples/gangs/job.yaml"
sed 's/cpu: "1"/cpu: "900"/' "$root/examples/gangs/gang.yaml" >"$work/huge.yaml"
check "all of it or none" placed_as '0 of 3 pods placed' "$work/huge.yaml"
check "with what stops it" placed_as 'none of 3 pods placed: default/training' "$work/huge.yaml"
sed 's/minCount: 3/minCount: 5/' "$root/examples/gangs/gang.yaml" >"$work/few.yaml"
check "a gang with too few pods" placed_as 'it has 3 of the 5 pods that it needs (minCount)' "$work/few.yaml"

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
check "explain says how far the gang is" says 'large fits nowhere: of the 3 pods that it needs 2 find a place' "$berth" explain podgroup large
check "which pod stops it" says 'stops it: 0/2 nodes are available: 2 Insufficient cpu.' "$berth" explain podgroup/large
check "and what would do" says '1 more node like node-1, without pods' "$berth" explain podgroup large
check "in JSON, too" sh -c "'$berth' explain podgroup large -o json 2>/dev/null | python3 -c 'import json, sys; e = json.load(sys.stdin); assert e[\"verdict\"] == \"Pending\" and e[\"domains\"][0][\"placeable\"] == 2, e'"
check "of a placed one it says so" says 'all 4 pods of default/three have a node' "$berth" explain podgroup three
check "of one that is not there as well" says 'podgroups.scheduling.k8s.io "nope" not found' "$berth" explain podgroup nope
check "of a pod it says both" says 'PodGroup default/large fits nowhere' "$berth" explain pod large-a
check "explain says that the pod is one of a group" says 'It is one of the PodGroup large' "$berth" explain pod large-a
kubectl get node -o json | python3 -c 'import json, sys; node = json.load(sys.stdin)["items"][0]; name = "node-extra"; meta = node["metadata"]; print(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {**meta["labels"], "kubernetes.io/hostname": name}, "annotations": meta.get("annotations", {})}, "status": {key: node["status"][key] for key in ("allocatable", "capacity", "conditions")}}))' >"$work/node.json"
kubectl create -f "$work/node.json" >/dev/null
check "then all of it is placed" eventually 30 placed 3 large

# ---- a Job that is a gang by itself
kubectl delete podgroup large --wait=false >/dev/null
kubectl delete pods --all --now >/dev/null
kubectl delete node node-extra >/dev/null
job() { # job NAME CPU: three pods that are of use together
  cat <<YAML
apiVersion: batch/v1
kind: Job
metadata: {name: $1}
spec:
  completionMode: Indexed
  completions: 3
  parallelism: 3
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: i, resources: {requests: {cpu: $2}}}]
YAML
}
job_placed() { # job_placed COUNT JOB: so many of its pods have a node
  [ "$(kubectl get pods -l "batch.kubernetes.io/job-name=$2" -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c .)" = "$1" ]
}
create_job() { job "$1" "$2" | kubectl create -f -; }
check "a Job of three large pods is created" create_job train $((whole * 6 / 10))
group_of_job() { kubectl get podgroups -o jsonpath='{.items[?(@.metadata.ownerReferences[0].name=="train")].metadata.name}'; }
check "it has a Workload" eventually 20 says 'train-' kubectl get workloads
check "and a PodGroup" eventually 20 says '-train-pgt-0-' group_of_job
check "describe of the Job tells of it" eventually 10 says 'WorkloadCreated' kubectl describe job train
check "its pods name the group" eventually 20 says "$(group_of_job)" kubectl get pods -o yaml
check "the group waits for all of them" eventually 20 says 'PodGroupScheduled=False Unschedulable' condition "$(group_of_job)"
check "none has a node, though two would fit" job_placed 0 train
check "how many there are may not change" says 'cannot change parallelism for a Job referencing gang-scheduled PodGroup' kubectl patch job train --type merge -p '{"spec":{"parallelism":2,"completions":2}}'
kubectl create -f "$work/node.json" >/dev/null
check "with one node more all have one" eventually 30 job_placed 3 train
check "the Job is deleted" kubectl delete job train
check "so are Workload and PodGroup" eventually 30 sh -c '[ -z "$(kubectl get workloads,podgroups -o name | grep train)" ]'
own_group() { { job own 10m; echo '      schedulingGroup: {podGroupName: three}'; } | kubectl create -f -; }
check "a Job whose template names a group keeps that" own_group
check "and is placed with it" eventually 20 job_placed 3 own
check "it has no Workload" sh -c '[ -z "$(kubectl get workloads -o name | grep own)" ]'

# ---- mistakes that only the scheduler sees, and room for a gang that waits
stop_up
start_up --nodes 2 --real-node off --gang-reservation-after 3s
kubectl delete jobs --all >/dev/null
kubectl delete pods --all --now >/dev/null
annotated() { # annotated NAME SPEC KEYS: a PodGroup that prefers domains of these keys
  apply "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: $1, annotations: {scheduling.berth.dev/preferred-topology: '$3'}}, spec: $2}"
}
check "a preferred topology with a slip" annotated slip '{schedulingPolicy: {gang: {minCount: 1}}}' 'rack,,zone'
check "its pod" member slip-a slip 10m
check "the group says what is wrong" eventually 20 says 'preferred-topology]: "rack,,zone": a key is empty' condition slip
check "so does an event" eventually 10 says 'InvalidTopology' kubectl describe podgroup slip
check "mended, it is placed" annotated slip '{schedulingPolicy: {gang: {minCount: 1}}}' 'topology.kubernetes.io/zone'
check "at once" eventually 20 placed 1 slip
check "a topology that no node has" group nowhere '{schedulingPolicy: {gang: {minCount: 1}}, schedulingConstraints: {topology: [{key: rack}]}}'
check "with a pod" member nowhere-a nowhere 10m
check "the group names the key" eventually 20 says 'no node has the label "rack"' condition nowhere
check "a gang of five" group few '{schedulingPolicy: {gang: {minCount: 5}}}'
check "of which one pod comes" member few-a few 10m
count=$(kubectl get nodes -o name | wc -l)
fill() { apply "{apiVersion: v1, kind: Pod, metadata: {name: fill-$1}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: i, resources: {requests: {cpu: $((whole * 6 / 10))}}}]}}"; }
for one in $(seq "$count"); do fill "$one" >/dev/null; done
check "every node is more than half full" eventually 20 sh -c "[ \$(kubectl get pods -o jsonpath='{range .items[*]}{.spec.nodeName}{\"\\n\"}{end}' | grep -c .) -ge $count ]"
check "a gang that needs all nodes" group patient "{schedulingPolicy: {gang: {minCount: $count}}}"
for one in $(seq "$count"); do member "patient-$one" patient $((whole * 9 / 10)) >/dev/null; done
check "has room kept after a while" eventually 30 says 'room is kept for it on' condition patient
check "an event says from whom" says 'RoomKept' kubectl describe podgroup patient
check "a small pod that comes later" apply "{apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: $((whole * 3 / 10))}}}]}}"
check "is told for whom it waits" eventually 20 says 'It would fit, but room is kept for pod group default/patient until' kubectl describe pod late
for one in $(seq "$count"); do kubectl delete pod "fill-$one" --now >/dev/null; done
check "the gang has its places once the others are gone" eventually 30 placed "$count" patient
check "before the small pod" says 'Pending' kubectl get pod late
check "and the gang of five counts its pods" eventually 40 says '1 of the 5 pods that the gang needs (minCount) are there' condition few
kubectl delete podgroups --all --wait=false >/dev/null
kubectl delete pods --all --now >/dev/null

# ---- as Kubernetes 1.36 has it
stop_up
start_up --nodes 2 --real-node off --feature-gates=GenericWorkload=false
check "with the gate off nothing of it is served" says 'no matches for kind' group unserved '{schedulingPolicy: {basic: {}}}'
check "and a pod's group is taken" member q three 10m
check "and dropped" says '{}' sh -c 'kubectl get pod q -o json | python3 -c "import json, sys; print(json.load(sys.stdin)[\"spec\"].get(\"schedulingGroup\", {}))"'
finish
