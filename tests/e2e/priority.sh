#!/usr/bin/env bash
# The documents' priority examples through kubectl: classes, admission, preemption with its nomination, events and conditions.
. "$(dirname "$0")/lib.sh"
examples=$root/examples/priority
start_up --nodes 1 --real-node off
pod() { # pod NAME CPU CLASS GRACE
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {app: %s}}\nspec:\n  priorityClassName: "%s"\n  terminationGracePeriodSeconds: %s\n  containers: [{name: c, image: nginx, resources: {requests: {cpu: "%s"}}}]\n' "$1" "$1" "$3" "$4" "$2" | kubectl create -f -
}
runs() { [ "$(kubectl get pod "$1" -o jsonpath='{.status.phase}')" = Running ]; }
field() { kubectl get pod "$1" -o jsonpath="$2"; }

check "a pod of an unknown class is rejected" says 'no PriorityClass with name high-priority was found' kubectl create -f "$examples/pod-nginx.yaml"
check "the class is created" kubectl create -f "$examples/priority-class-high.yaml"
check "the non-preempting class is created" kubectl create -f "$examples/priority-class-never.yaml"
check "get shows the documents' columns" says 'GLOBAL-DEFAULT' kubectl get priorityclasses
for line in 'high-priority *1000000 *false' 'system-cluster-critical *2000000000 *false' 'system-node-critical *2000001000 *false'; do
  check "get lists $line" sh -c "kubectl get priorityclasses | grep -q '^$line'"
done
check "values above 1000000000 are refused" says 'maximum allowed value of a user defined priority' sh -c "sed 's/1000000$/1000000001/; s/high-priority/too-high/' $examples/priority-class-high.yaml | kubectl create -f -"
check "the documents' pod is created" kubectl create -f "$examples/pod-nginx.yaml"
check "its priority is resolved" [ "$(field nginx '{.spec.priority}')" = 1000000 ]
check "it runs" eventually 30 runs nginx

check "a low pod fills the node" pod low 31 "" 5
check "it runs" eventually 30 runs low
check "a pod that never preempts waits" pod waits 30 high-priority-nonpreempting 1
check "it says why" eventually 20 says 'not eligible due to preemptionPolicy=Never' kubectl describe pod waits
check "the low pod still runs" runs low
check "explain shows what evicting would free" says 'preemptionPolicy forbids it' "$berth" explain pod waits
kubectl delete pod waits --now >/dev/null
uid_low=$(field low '{.metadata.uid}')
check "a high pod comes" pod vip 30 high-priority 1
check "it is nominated, or has its node already" eventually 20 sh -c '[ -n "$(kubectl get pod vip -o jsonpath="{.status.nominatedNodeName}{.spec.nodeName}")" ]'
check "it runs" eventually 60 runs vip
check "the victim is gone" eventually 20 refused kubectl get pod low
uid_vip=$(field vip '{.metadata.uid}')
check "the victim's event names the preemptor" sh -c "kubectl get events -o json | grep -q 'Preempted by pod $uid_vip on node node-1'"
check "the event is about the victim" sh -c "kubectl get events --field-selector reason=Preempted -o jsonpath='{.items[*].involvedObject.uid}' | grep -q '$uid_low'"
check "the preemptor's side tells too" says 'default/low' kubectl get events --field-selector reason=Preempting,involvedObject.name=vip
finish
