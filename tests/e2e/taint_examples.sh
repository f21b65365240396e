#!/usr/bin/env bash
# Every taint example of the documents (SPEC D1-D6), done as they tell it, through kubectl: the three-taint example, Equal and Exists,
# tolerationSeconds, nodes in trouble, dedicated nodes and special hardware with the webhook of examples/pod-rules.
. "$(dirname "$0")/lib.sh"
t=$root/examples/taints w=$root/examples/pod-rules
webhook_pid=
stop_webhook() { [ -z "$webhook_pid" ] || { kill "$webhook_pid" && wait "$webhook_pid"; } 2>/dev/null; webhook_pid=; }
trap 'stop_webhook; cleanup' EXIT
phase() { kubectl get pod "$1" -o jsonpath='{.status.phase}'; }
node_of() { kubectl get pod "$1" -o jsonpath='{.spec.nodeName}'; }
is_on() { [ "$(node_of "$1")" = "$2" ] && [ "$(phase "$1")" = Running ] || { kubectl get pod "$1" -o wide; return 1; }; }
is_off() { [ -n "$(node_of "$1")" ] && [ "$(node_of "$1")" != "$2" ] || { kubectl get pod "$1" -o wide; return 1; }; }
is_pending() { [ -z "$(node_of "$1")" ] && kubectl get events --field-selector "involvedObject.name=$1,reason=FailedScheduling" -o name | grep . >/dev/null; }
is_gone() { ! kubectl get pod "$1" >/dev/null 2>&1; }
untaint() { kubectl taint nodes --all "$@" >/dev/null 2>&1; }
on_node1() { kubectl create --dry-run=client -o json -f "$1" | sed 's/"spec": {/"spec": {"nodeSelector": {"kubernetes.io\/hostname": "node-1"},/' | kubectl create -f -; }
clear_pods() { kubectl delete pods --all --wait=true >/dev/null 2>&1; }

start_up --nodes 3 --controller-arg node-monitor-grace-period=5s
eventually 20 kubectl wait --for=condition=Ready node --all --timeout=1s
kubectl run plain --image=pause --overrides='{"spec":{"nodeSelector":{"kubernetes.io/hostname":"node-1"}}}' >/dev/null
check "a pod without tolerations runs" eventually 20 is_on plain node-1

# The three taints, one after the other.
on_node1 "$t/pod-three-taints.yaml" >/dev/null
check "the tolerant pod runs before the taints come" eventually 20 is_on tolerates-two-of-three node-1
check "first taint" says "node/node-1 tainted" kubectl taint nodes node-1 key1=value1:NoSchedule
check "NoSchedule: the running pod stays" is_on plain node-1
check "second taint" kubectl taint nodes node-1 key1=value1:NoExecute
check "NoExecute: the pod without toleration is removed" eventually 20 is_gone plain
check "... and an event says so" says "Marking for deletion Pod default/plain" kubectl get events
check "third taint" kubectl taint nodes node-1 key2=value2:NoSchedule
check "the pod that tolerates two of three goes on running" is_on tolerates-two-of-three node-1
kubectl delete pod tolerates-two-of-three --wait=true >/dev/null
on_node1 "$t/pod-three-taints.yaml" >/dev/null
check "... but it is not placed there anew" eventually 20 is_pending tolerates-two-of-three
check "... for the third taint" says "untolerated taint" kubectl describe pod tolerates-two-of-three
check "the taint goes" kubectl taint nodes node-1 key2:NoSchedule-
check "... and the pod comes" eventually 30 is_on tolerates-two-of-three node-1
clear_pods; untaint key1-

# Equal and Exists; an hour's toleration.
kubectl taint nodes node-1 key1=value1:NoExecute >/dev/null
for form in equal exists; do
  name=$(sed -n 's/^  name: //p' "$t/pod-$form.yaml" | head -n 1)
  on_node1 "$t/pod-$form.yaml" >/dev/null
  check "Operator $form: placed on the tainted node" eventually 20 is_on "$name" node-1
done
clear_pods; untaint key1-
sed 's/tolerationSeconds: 3600/tolerationSeconds: 3/' "$t/pod-equal.yaml" >"$work/three-seconds.yaml"
name=$(sed -n 's/^  name: //p' "$t/pod-equal.yaml" | head -n 1)
on_node1 "$work/three-seconds.yaml" >/dev/null; eventually 20 is_on "$name" node-1
kubectl taint nodes node-1 key1=value1:NoExecute >/dev/null
check "tolerationSeconds: it still runs" is_on "$name" node-1
check "... and goes when they are over" eventually 20 is_gone "$name"
untaint key1-; sed -i 's/tolerationSeconds: 3/tolerationSeconds: 5/' "$work/three-seconds.yaml"
on_node1 "$work/three-seconds.yaml" >/dev/null; eventually 20 is_on "$name" node-1
kubectl taint nodes node-1 key1=value1:NoExecute >/dev/null
kubectl taint nodes node-1 key1:NoExecute- >/dev/null
check "the taint went first: the eviction is cancelled" eventually 20 says "Cancelling deletion of Pod default/$name" kubectl get events
check "... and the pod stays" is_on "$name" node-1
clear_pods

# Nodes of the documents.
for file in node-spec-no-execute node-master; do
  name=$(sed -n 's/^  name: //p' "$t/$file.yaml")
  check "$file.yaml" kubectl create -f "$t/$file.yaml"
  check "... describe shows the taint" says "$(sed -n 's/.*key: //p' "$t/$file.yaml")" kubectl describe node "$name"
  kubectl delete node "$name" >/dev/null
done

# Conditions: a lost node.
kubectl run defaults --image=pause >/dev/null
check "default tolerations, as the documents show them" says "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" kubectl describe pod defaults
for file in pod-unreachable pod-not-ready; do
  name=$(sed -n 's/^  name: //p' "$t/$file.yaml" | head -n 1)
  kubectl create -f "$t/$file.yaml" >/dev/null
  check "$file.yaml keeps its own seconds" says "for 6000s" kubectl describe pod "$name"
done
eventually 20 kubectl wait --for=condition=Ready pod --all --timeout=1s
kubectl run hasty --image=pause --overrides='{"spec":{"nodeSelector":{"kubernetes.io/hostname":"node-2"},"tolerations":[{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":1}]}}' >/dev/null
kubectl run patient --image=pause --overrides='{"spec":{"nodeSelector":{"kubernetes.io/hostname":"node-2"}}}' >/dev/null
check "two pods on the node that will be lost" eventually 20 is_on patient node-2
eventually 20 is_on hasty node-2
kubectl annotate node node-2 sim.berth.dev/dead=true >/dev/null
check "a node that is lost: unreachable, with NoExecute" eventually 30 says "node.kubernetes.io/unreachable:NoExecute" kubectl describe node node-2
check "... and NoSchedule" says "node.kubernetes.io/unreachable:NoSchedule" kubectl describe node node-2
marked() { [ -n "$(kubectl get pod "$1" -o jsonpath='{.metadata.deletionTimestamp}')" ]; }
check "the pod with one second is evicted" eventually 20 marked hasty
not_ready() { [ "$(kubectl get pod patient -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" = False ]; }
check "the other stays, not Ready" eventually 20 not_ready
kubectl annotate node node-2 sim.berth.dev/dead- >/dev/null
no_taints() { kubectl describe node node-2 | grep '^Taints: *<none>' >/dev/null; }
check "the node comes back: the taints go" eventually 30 no_taints
check "... and the pod is Ready again" eventually 30 kubectl wait --for=condition=Ready pod/patient --timeout=1s
clear_pods

# DaemonSet pods carry their tolerations.
kubectl create -f - >/dev/null <<'Y'
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: pause}]}
Y
check "a DaemonSet runs everywhere" eventually 30 kubectl rollout status daemonset/agent --timeout=1s
for taint in not-ready unreachable; do
  check "... and stays through $taint for ever" says "node.kubernetes.io/$taint:NoExecute op=Exists" kubectl describe pod -l app=agent
  check "... without seconds" refused grep -q "node.kubernetes.io/$taint:NoExecute op=Exists for" "$work/says"
done
for taint in memory-pressure disk-pressure unschedulable; do check "... $taint" says "node.kubernetes.io/$taint:NoSchedule op=Exists" kubectl describe pod -l app=agent; done
kubectl delete daemonset agent >/dev/null; clear_pods

# Dedicated nodes and special hardware, with the example's webhook, by the commands of its README.
kubectl create -f "$t/pod-dedicated.yaml" >/dev/null
check "the dedicated pod waits for a node with the label" eventually 20 is_pending dedicated-group
kubectl taint nodes node-1 dedicated=groupName:NoSchedule >/dev/null
kubectl label nodes node-1 dedicated=groupName >/dev/null
kubectl taint nodes node-2 disktype=ssd:NoSchedule >/dev/null
kubectl label nodes node-2 disktype=ssd >/dev/null
check "the dedicated pod goes to the dedicated node" eventually 20 is_on dedicated-group node-1
kubectl create -f "$t/pod-special-hardware.yaml" >/dev/null
check "the pod for special hardware goes to it" eventually 20 is_on needs-ssd node-2
clear_pods
kubectl create -f "$w/pod-needs-ssd.yaml" >/dev/null
check "without the webhook, the annotation alone does nothing" eventually 20 is_on needs-ssd node-3
clear_pods
"$berth" webhook --rules "$w/rules.yaml" --kubeconfig "$KUBECONFIG" >"$work/webhook.log" 2>&1 &
webhook_pid=$!
check "the webhook registers itself" eventually 20 grep -q "registered at https://" "$work/webhook.log"
kubectl create -f "$w/pod-needs-ssd.yaml" >/dev/null
check "with it, the pod goes to the special hardware" eventually 20 is_on needs-ssd node-2
kubectl create --as alice --as-group groupName --as-group system:masters -f "$w/pod-of-the-group.yaml" >/dev/null
check "a member of the group gets the dedicated node" eventually 20 is_on of-the-group node-1
kubectl run stranger --image=pause >/dev/null
check "a stranger gets neither" eventually 20 is_on stranger node-3
kubectl create namespace group-name >/dev/null
kubectl -n group-name create deployment web --image=pause --replicas=3 >/dev/null
check "the group's Deployment runs" eventually 30 kubectl -n group-name rollout status deployment/web --timeout=1s
check "... on the dedicated node only" [ "$(kubectl -n group-name get pods -o jsonpath='{.items[*].spec.nodeName}')" = "node-1 node-1 node-1" ]
stop_webhook
check "a stopped webhook leaves no registration behind" refused kubectl get mutatingwebhookconfiguration pod-rules.berth.dev
check "... and pods are created as ever" kubectl run afterwards --image=pause
check "bad rules are refused, the rule named" says 'rules[0].match.colour: unknown field "colour"' "$berth" webhook --rules <(printf 'rules: [{name: ssd, match: {colour: [red]}, nodeLabels: {a: b}}]') --kubeconfig "$KUBECONFIG"
finish
