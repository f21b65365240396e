#!/usr/bin/env bash
# The documents' taint examples, as files of examples/taints and through kubectl: each does what its text says. Dedicated nodes and special
# hardware also by the mutating webhook of examples/webhook.
. "$(dirname "$0")/lib.sh"
examples=$root/examples/taints
webhook=$(dirname "$berth")/steering-webhook webhook_pid=
cleanup() { [ -n "$webhook_pid" ] && kill "$webhook_pid" 2>/dev/null; stop_up KILL; rm -rf "$work"; }
start_up --nodes 3 --real-node off
k() { kubectl "$@"; }
k wait --for=condition=Ready node --all --timeout=30s >/dev/null
on() { [ "$(k get pod "$1" -o jsonpath='{.spec.nodeName}')" = "$2" ]; }
off() { local node; node=$(k get pod "$1" -o jsonpath='{.spec.nodeName}'); [ -n "$node" ] && [ "$node" != "$2" ]; }
waits() { k get events --field-selector "reason=FailedScheduling,involvedObject.name=$1" -o jsonpath='{.items[*].message}' | grep -qF -- "$2"; }
gone() { ! k get pod "$1" >/dev/null 2>&1; }
only() { for node in node-1 node-2 node-3; do [ "$node" = "$1" ] || k cordon "$node" >/dev/null; done; }
everywhere() { k uncordon node-1 node-2 node-3 >/dev/null; }
again() { k delete pod --all --grace-period=0 --force >/dev/null 2>&1; }

# A toleration with Equal, and one with Exists, let a pod onto a tainted node; a pod without stays off.
k taint node node-1 key1=value1:NoExecute >/dev/null
only node-1
k create -f "$examples/pod-equal.yaml" -f "$examples/pod-exists.yaml" >/dev/null
k run plain --image=i >/dev/null
check "Equal tolerates its value" eventually 20 on tolerates-equal node-1
check "Exists tolerates any value" eventually 20 on tolerates-exists node-1
check "no toleration: it waits, and the event names the taint" eventually 20 waits plain "1 node(s) had untolerated taint(s)"
everywhere
check "and goes elsewhere when there is another node" eventually 20 off plain node-1
again; k taint node node-1 key1- >/dev/null

# The three-taint example.
k taint node node-1 key1=value1:NoSchedule key2=value2:NoSchedule >/dev/null
k taint node node-1 key1=value1:NoExecute >/dev/null
only node-1
k create -f "$examples/pod-three-taints.yaml" >/dev/null
check "the third taint keeps it off" eventually 20 waits tolerates-two-of-three "untolerated taint"
k taint node node-1 key2- >/dev/null
check "without it the pod is placed" eventually 20 on tolerates-two-of-three node-1
k taint node node-1 key2=value2:NoSchedule >/dev/null
check "a running pod stays: the third taint is no NoExecute" on tolerates-two-of-three node-1
everywhere; again; k taint node node-1 key1- key2- >/dev/null

# NoExecute evicts what does not tolerate it, with the event and the condition; the others stay.
only node-1
k run evicted --image=i >/dev/null
k create -f "$examples/pod-equal.yaml" >/dev/null
check "both run on the node" eventually 20 eval 'on evicted node-1 && on tolerates-equal node-1'
k taint node node-1 key1=value1:NoExecute >/dev/null
check "the pod without toleration goes" eventually 20 gone evicted
check "the event says who did it" eventually 10 says "TaintManagerEviction" k get events --field-selector involvedObject.name=evicted
check "the pod with a toleration stays" on tolerates-equal node-1
everywhere; again; k taint node node-1 key1- >/dev/null

# Taints in a node's own specification.
k create -f "$examples/node-spec-no-execute.yaml" >/dev/null
check "a taint of the specification" says "NoExecute" k get node -o jsonpath='{.items[*].spec.taints[*].effect}'
k delete -f "$examples/node-spec-no-execute.yaml" >/dev/null
k create -f "$examples/node-master.yaml" >/dev/null
check "a control plane node's own taint" says "node-role.kubernetes.io/master" k get -f "$examples/node-master.yaml" -o jsonpath='{.spec.taints[*].key}'
k delete -f "$examples/node-master.yaml" >/dev/null

# How long to stay on a node in trouble.
k create -f "$examples/pod-unreachable.yaml" -f "$examples/pod-not-ready.yaml" >/dev/null
check "6000 seconds instead of 300 for unreachable" says "6000" k get pod tolerates-unreachable -o jsonpath='{.spec.tolerations[?(@.key=="node.kubernetes.io/unreachable")].tolerationSeconds}'
check "the other default is added" says "300" k get pod tolerates-unreachable -o jsonpath='{.spec.tolerations[?(@.key=="node.kubernetes.io/not-ready")].tolerationSeconds}'
again

# Dedicated nodes and special hardware by hand.
k taint node node-1 dedicated=groupName:NoSchedule >/dev/null; k label node node-1 dedicated=groupName >/dev/null
k taint node node-2 disktype=ssd:NoSchedule >/dev/null; k taint node node-2 disktype=ssd:PreferNoSchedule >/dev/null; k label node node-2 disktype=ssd >/dev/null
k create -f "$examples/pod-dedicated.yaml" -f "$examples/pod-special-hardware.yaml" >/dev/null
k run anybody --image=i >/dev/null
check "the group's pod is on the group's node" eventually 20 on dedicated-group node-1
check "the pod that needs it is on the special node" eventually 20 on needs-ssd node-2
check "everybody else is on neither" eventually 20 on anybody node-3
again

# The same by the webhook: users and pods ask for nothing but what they are.
"$webhook" --configuration "$work/hook.yaml" --group research=groupName --hardware disktype=ssd >"$work/webhook.log" 2>&1 &
webhook_pid=$!
check "the webhook listens" eventually 10 grep -q "listening on https://" "$work/webhook.log"
check "its configuration applies" k apply -f "$work/hook.yaml"
k create clusterrolebinding research --clusterrole=edit --group=research >/dev/null
pod() { printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {%s containers: [{name: c, image: i}]}\n' "$1" "${2-}"; }
pod of-the-group >"$work/p.yaml"; check "a user of the group makes a pod" k create -f "$work/p.yaml" --as ann --as-group research --as-group system:authenticated
pod fast "nodeSelector: {disktype: ssd},"  >"$work/p.yaml"; check "a pod that asks for the hardware" k create -f "$work/p.yaml"
pod other >"$work/p.yaml"; check "a pod of somebody else" k create -f "$work/p.yaml"
check "the group's pod was bound to the group's node" eventually 20 on of-the-group node-1
check "the pod that asks for the hardware got there" eventually 20 on fast node-2
check "the other kept off both" eventually 20 on other node-3
check "the webhook changed nothing of it" refused grep -q dedicated <(k get pod other -o yaml)
kill "$webhook_pid"; wait "$webhook_pid" 2>/dev/null; webhook_pid=
pod late >"$work/p.yaml"
check "without its webhook nothing is let in (failurePolicy: Fail)" says 'failed calling webhook "steering.examples.berth.dev"' k create -f "$work/p.yaml"
finish
