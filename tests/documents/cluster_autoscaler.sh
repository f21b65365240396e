#!/usr/bin/env bash
# 4.7 "About the cluster autoscaler". The rules are asked of dumps (`berth autoscaler --cluster`), the resource of a running cluster.
. "$(dirname "$0")/lib.sh"
a=$examples/autoscaler
start_up --nodes 1 --prefix node --scan-interval 500ms
ready

# A group of machines of CORES, bounded by MAX, as a dump has it.
group() { # group NAME CORES MAX
  cat <<Y
---
apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata:
  name: $1
  namespace: openshift-machine-api
  uid: $1
  annotations: {machine.openshift.io/vCPU: "$2", machine.openshift.io/memoryMb: "32768", machine.openshift.io/cluster-api-autoscaler-node-group-min-size: "0", machine.openshift.io/cluster-api-autoscaler-node-group-max-size: "$3"}
spec:
  replicas: ${4:-0}
  selector: {matchLabels: {set: $1}}
  template:
    metadata: {labels: {set: $1}}
    spec: {metadata: {labels: {pool: $1}}, providerSpec: {value: {instanceType: any}}}
status: {replicas: ${4:-0}}
---
apiVersion: autoscaling.openshift.io/v1beta1
kind: MachineAutoscaler
metadata: {name: $1, namespace: openshift-machine-api}
spec: {minReplicas: 0, maxReplicas: $3, scaleTargetRef: {apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: $1}}
Y
}
options() { # options FIELDS
  printf -- '---\napiVersion: autoscaling.openshift.io/v1\nkind: ClusterAutoscaler\nmetadata: {name: default}\nspec: {%s}\n' "$1"
}
node() { # node NAME CORES [MACHINESET] [ANNOTATIONS]
  printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, uid: %s, labels: {kubernetes.io/hostname: %s%s}, annotations: {%s%s}}\nspec: {providerID: "x:///%s"}\nstatus: {capacity: {cpu: "%s", memory: 32Gi, pods: "110"}, allocatable: {cpu: "%s", memory: 32Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}\n' \
    "$1" "$1" "$1" "${3:+, pool: $3}" "${3:+machine.openshift.io/machine: openshift-machine-api/$1}" "${4:+, $4}" "$1" "$2" "$2"
  [ -z "${3:-}" ] || printf -- '---\napiVersion: machine.openshift.io/v1beta1\nkind: Machine\nmetadata: {name: %s, namespace: openshift-machine-api, uid: m-%s, labels: {set: %s}, ownerReferences: [{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: %s, uid: %s, controller: true}]}\nspec: {providerID: "x:///%s"}\nstatus: {phase: Running, nodeRef: {kind: Node, name: %s}}\n' "$1" "$1" "$3" "$3" "$3" "$1" "$1"
}
pod() { # pod NAME CPU NODE [METADATA] [SPEC]
  printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default, uid: p-%s%s}\nspec: {%s%scontainers: [{name: c, image: i, resources: {requests: {cpu: "%s"}}}]}\nstatus: {phase: %s}\n' \
    "$1" "$1" "${4:+, $4}" "${3:+nodeName: $3, }" "${5:+$5, }" "$2" "$([ -n "$3" ] && echo Running || echo Pending)"
}
replica_set() { printf -- '---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web, namespace: default, uid: web}\nspec: {selector: {matchLabels: {app: web}}}\n---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web, namespace: kube-system, uid: web-system}\nspec: {selector: {matchLabels: {app: web}}}\n'; }
owned='ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}]'
plan() { berth_autoscaler --cluster "$work/dump.yaml"; }
berth_autoscaler() { "$berth" autoscaler "$@" 2>&1; }
dump() { { replica_set; cat; } >"$work/dump.yaml"; }

section "4.7, a cap of 64 cores"
{ options 'resourceLimits: {cores: {min: 0, max: 64}}'; group burst 8 20; node master 30; for i in $(seq 12); do pod "want-$i" 7 "" "$owned"; done; pod full 30 master "$owned"; } | dump
doc "burst from 0 to 4" plan
section "4.7, maxNodesTotal counts every node"
{ options 'resourceLimits: {maxNodesTotal: 3}'; group burst 8 20; node master 30; for i in $(seq 12); do pod "want-$i" 7 "" "$owned"; done; pod full 30 master "$owned"; } | dump
doc "burst from 0 to 2" plan
section "4.7, every 10 seconds"
doc "10s" oc up --help
doc "default 10s" oc autoscaler --help

section "4.7, nodes that are not needed"
base() { options 'scaleDown: {enabled: true}'; group burst 8 20 2; node master 30; node m1 8 burst "$1"; node m2 8 burst; pod b 7 m2 "$owned"; }
{ base ""; pod web 3 m1 "$owned"; } | dump
doc "remove  m1" plan
{ base ""; pod web 5 m1 "$owned"; } | dump
doc "stays   m1" plan
holds "requests of half the node and more keep it" never_says "remove  m1" plan
{ base 'cluster-autoscaler.kubernetes.io/scale-down-disabled: "true"'; pod web 3 m1 "$owned"; } | dump
doc "stays   m1: ScaleDownDisabledAnnotation" plan
section "4.7, pods that keep a node"
stays() { # stays WHAT LINES...: with these objects more m1 stays
  local what=$1; shift
  { base ""; "$@"; } | dump
  check "$at: $what" sh -c "'$berth' autoscaler --cluster '$work/dump.yaml' 2>&1 | grep '^stays   m1'"
}
budget() { pod web 1 m1 "$owned, labels: {app: web}"; printf -- '---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: default}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\nstatus: {disruptionsAllowed: 0}\n'; }
stays "a restrictive PodDisruptionBudget" budget
system() { pod dns 1 m1 "$owned" | sed 's/namespace: default/namespace: kube-system/'; }
stays "a kube-system pod without a budget" system
bare() { pod bare 1 m1; }
stays "a pod without a controller" bare
local_storage() { pod web 1 m1 "$owned" 'volumes: [{name: v, emptyDir: {}}]'; }
stays "a pod with local storage" local_storage
picky() { pod web 1 m1 "$owned" 'nodeSelector: {kubernetes.io/hostname: m1}'; }
stays "a pod that cannot move" picky
kept() { pod web 1 m1 "$owned, annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\"}"; }
stays "safe-to-evict: false" kept
{ base ""; pod bare 1 m1 'annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: "true"}'; } | dump
doc "remove  m1" plan

section "4.7, priorities"
{ options 'podPriorityThreshold: -10'; group burst 8 20; node master 1; pod full 1 master "$owned"; pod low 4 "" "$owned" 'priority: -11'; } | dump
doc "nothing to do" plan
{ options 'podPriorityThreshold: -10'; group burst 8 20; node master 1; pod full 1 master "$owned"; pod edge 4 "" "$owned" 'priority: -10'; } | dump
doc "nothing to do" berth_autoscaler --cluster "$work/dump.yaml" --compatibility documents # It must exceed the threshold (4.7.1, 1).
doc "burst from 0 to 1" plan # Today's.
{ options 'podPriorityThreshold: -10, scaleDown: {enabled: true}'; group burst 8 20 1; node master 30; node m1 8 burst; pod low 7 m1 "$owned" 'priority: -11'; } | dump
doc "remove  m1" plan

section 4.7.1
doc "clusterautoscaler.autoscaling.openshift.io/default created" oc create -f "$a/cluster-autoscaler.yaml"
for one in podPriorityThreshold:-10 resourceLimits.maxNodesTotal:24 resourceLimits.cores.min:8 resourceLimits.cores.max:128 resourceLimits.memory.min:4 resourceLimits.memory.max:256 \
  scaleDown.enabled:true scaleDown.delayAfterAdd:10m scaleDown.delayAfterDelete:5m scaleDown.delayAfterFailure:30s scaleDown.unneededTime:5m; do
  holds "${one%%:*}" is clusterautoscaler default "spec.${one%%:*}" "${one#*:}"
done
doc "amd.com/gpu" oc get clusterautoscaler default -o yaml
oc create -f "$a/machine-sets.yaml" >/dev/null 2>&1
doc "burst-us-east-1a" oc get machinesets -n openshift-machine-api

section "4.7, more replicas, more nodes"
oc delete clusterautoscaler default >/dev/null; oc create -f "$a/quick.yaml" >/dev/null
oc create -f - >/dev/null <<'Y'
apiVersion: apps/v1
kind: Deployment
metadata: {name: load}
spec:
  replicas: 2
  selector: {matchLabels: {app: load}}
  template:
    metadata: {labels: {app: load}}
    spec: {terminationGracePeriodSeconds: 0, nodeSelector: {pool: burst}, containers: [{name: c, image: i, resources: {requests: {cpu: 1500m}}}]}
Y
nodes() { [ "$(oc get nodes -l pool=burst --no-headers 2>/dev/null | grep -c ' Ready')" -eq "$1" ]; }
soon_holds "pods without room bring nodes" nodes 2
oc delete deployment load >/dev/null
soon_holds "without need they go" nodes 0
finish
