#!/usr/bin/env bash
# 2.9 "Including pod priority in pod scheduling decisions", typed as it stands.
. "$(dirname "$0")/lib.sh"
p=$examples/priority
start_up --nodes 1 --prefix node
ready
sized() { # sized NAME CPU CLASS [GRACE]
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  priorityClassName: "%s"\n  terminationGracePeriodSeconds: %s\n  containers: [{name: c, image: nginx, resources: {requests: {cpu: "%s"}}}]\n' "$1" "$3" "${4:-0}" "$2" | oc create -f -
}

section 2.9.1.1
doc "GLOBALDEFAULT" sh -c "oc get priorityclasses | tr -d -"
doc "system-cluster-critical" oc get priorityclasses
doc "2000001000" oc get priorityclasses
oc create priorityclass cluster-logging --value=1000000 >/dev/null
holds "the document's table" sh -c "oc get priorityclasses | grep -qE '^cluster-logging +1000000 +false'"
doc "maximum allowed value of a user defined priority" oc create priorityclass above --value=1000000001
doc "priorityclass.scheduling.k8s.io/most created" oc create priorityclass most --value=1000000000

section 2.9.1.2
doc "no PriorityClass with name high-priority was found" oc create -f "$p/pod-nginx.yaml"

section 2.9.3
doc "priorityclass.scheduling.k8s.io/high-priority created" oc create -f "$p/priority-class-high.yaml"
doc "pod/nginx created" oc create -f "$p/pod-nginx.yaml"
holds "the class's value is the pod's priority" is pod nginx spec.priority 1000000
soon_holds "it runs" running nginx
doc "PreemptLowerPriority" oc get priorityclass high-priority -o yaml
doc "Only one default can exist" sh -c "oc create priorityclass one --value=1 --global-default && oc create priorityclass two --value=2 --global-default"
doc "pod/classless created" make '{apiVersion: v1, kind: Pod, metadata: {name: classless}, spec: {containers: [{name: c, image: nginx}]}}'
holds "the default class counts for pods made after it" is pod classless spec.priority 1
oc delete priorityclass one >/dev/null
holds "and does not change those that are there" is pod classless spec.priority 1
clear_pods

section 2.9.1
doc "pod/huge created" sized huge 1000 high-priority
soon_holds "a pod that fits nowhere waits" pends huge
doc "pod/small created" sized small 1 ""
soon_holds "and does not hold up lower ones" running small
clear_pods

section 2.9.2
sized low 30 "" 1 >/dev/null; soon_holds "the node is full" running low
sized vip 20 high-priority >/dev/null
nominated() { [ -n "$(field pod vip status.nominatedNodeName)$(field pod vip spec.nodeName)" ]; }
soon_holds "the pod is nominated to the node" nominated
soon_holds "the lower one goes" gone low
soon_holds "the higher one runs" running vip
clear_pods
sized a 10 "" >/dev/null; sized b 20 "" >/dev/null; eventually 20 running a; eventually 20 running b
sized vip 9 high-priority >/dev/null
soon_holds "a portion of the lower ones is removed" running vip
holds "not all" test "$(oc get pods -o name | grep -c -e /a -e /b)" = 1
clear_pods

section 2.9.2.1
oc create -f "$p/priority-class-never.yaml" >/dev/null
sized low 30 "" >/dev/null; eventually 20 running low
sized waits 20 high-priority-nonpreempting >/dev/null
soon "preemptionPolicy=Never" oc describe pod waits
holds "it evicts nobody" running low
oc delete pod low --now >/dev/null
soon_holds "it comes when there is room" running waits
clear_pods

section "2.9.2, nominatedNodeName beside nodeName"
stop_up; start_up --nodes 1 --prefix node --compatibility documents; ready
sized low 30 "" >/dev/null; eventually 20 running low
sized vip 20 high-priority >/dev/null
soon_holds "the higher one runs" running vip
holds "and keeps the node's name" is pod vip status.nominatedNodeName node1
clear_pods
stop_up; start_up --nodes 1 --prefix node --compatibility today; ready

section "2.9.2.2, budgets"
for name in kept other; do
  oc create -f - >/dev/null <<Y
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: $name}
spec:
  replicas: 1
  selector: {matchLabels: {app: $name}}
  template:
    metadata: {labels: {app: $name}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: nginx, resources: {requests: {cpu: "14"}}}]}
Y
done
oc create pdb kept --selector=app=kept --min-available=1 >/dev/null
both() { [ "$(oc get pods -o wide --no-headers | grep -c Running)" = 2 ]; }
soon_holds "two pods, one with a budget" both
soon "1" oc get pdb kept
kept=$(oc get pods -l app=kept -o name)
sized vip 10 high-priority >/dev/null
soon_holds "the pod is placed" running vip
holds "the one with the budget stayed" oc get "$kept"
oc delete pod vip --now >/dev/null
sized vip 30 high-priority >/dev/null
soon_holds "where no other is found the budget is ignored" running vip
oc delete rs kept other >/dev/null; oc delete pdb kept >/dev/null; clear_pods

section "2.9.2.2, affinity"
make >/dev/null '{apiVersion: v1, kind: Pod, metadata: {name: friend, labels: {app: friend}}, spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: "30"}}}]}}'
eventually 20 running friend
oc create -f - >/dev/null <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: clings}
spec:
  priorityClassName: high-priority
  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: friend}}}]}}
  containers: [{name: c, image: nginx, resources: {requests: {cpu: "20"}}}]
Y
soon_holds "a pod does not preempt what it has affinity to" pends clings
holds "the other runs on" running friend
clear_pods

section 2.9.2.3
sized slow 30 "" 2 >/dev/null; eventually 20 running slow
oc annotate pod slow sim.berth.dev/stop-after=1s >/dev/null
sized vip 20 high-priority >/dev/null
soon_holds "the graceful period is waited for" running vip
finish
