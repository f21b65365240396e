#!/usr/bin/env bash
# "Understanding taints and tolerations" (nodes, scheduling), typed as it stands.
. "$(dirname "$0")/lib.sh"
t=$examples/taints
start_up --nodes 3 --prefix node --controller-arg node-monitor-grace-period=4s
ready

section "Example taint in a node specification"
doc "created" oc create -f "$t/node-spec-no-execute.yaml"
name=$(sed -n 's/^  name: //p' "$t/node-spec-no-execute.yaml" | head -n 1)
doc "key1=value1:NoExecute" oc describe node "$name"
oc delete node "$name" >/dev/null

section "Example toleration in a Pod spec"
doc "created" oc create -f "$t/pod-equal.yaml"
equal=$(sed -n 's/^  name: //p' "$t/pod-equal.yaml" | head -n 1)
doc "key1=value1:NoExecute for 3600s" oc describe pod "$equal"
clear_pods

section "Table 1, key"
long=$(printf 'k%.0s' $(seq 64))
doc "node/node1 tainted" oc adm taint nodes node1 "a.b-c.d/key_1.x-y=v:PreferNoSchedule"
doc "must be no more than 63" oc adm taint nodes node1 "$long=v:NoSchedule"
doc "Invalid value" oc adm taint nodes node1 "_key=v:NoSchedule"
section "Table 1, value"
doc "must be no more than 63" oc adm taint nodes node1 "key=$long:NoSchedule"
oc adm taint nodes node1 a.b-c.d/key_1.x-y- >/dev/null

section "Table 1, effect NoSchedule"
oc create deployment stays --image=pause >/dev/null
oc create -f - >/dev/null <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: here}
spec: {nodeSelector: {kubernetes.io/hostname: node1}, containers: [{name: c, image: pause}]}
Y
soon_holds "a pod runs on node1" running here
doc "node/node1 tainted" oc adm taint nodes node1 key1=value1:NoSchedule
holds "existing pods on the node remain" on here node1
sed 's/name: here/name: late/' >"$work/late.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: here}
spec: {nodeSelector: {kubernetes.io/hostname: node1}, containers: [{name: c, image: pause}]}
Y
doc "pod/late created" oc create -f "$work/late.yaml"
soon_holds "new pods that do not match the taint are not scheduled onto it" pends late
section "Table 1, effect PreferNoSchedule"
doc "node/node1 modified" oc adm taint nodes node1 key1=value1:PreferNoSchedule key1:NoSchedule-
soon_holds "new pods might be scheduled onto it" on late node1
doc "pod/elsewhere created" make '{apiVersion: v1, kind: Pod, metadata: {name: elsewhere}, spec: {containers: [{name: c, image: pause}]}}'
soon_holds "but the scheduler tries not to" off elsewhere node1
section "Table 1, effect NoExecute"
doc "node/node1 tainted" oc adm taint nodes node1 key1=value1:NoExecute
soon_holds "existing pods without a matching toleration are removed" gone here
oc adm taint nodes node1 key1- >/dev/null; clear_pods; oc delete deployment stays >/dev/null

section "control plane node"
doc "created" oc create -f "$t/node-master.yaml"
name=$(sed -n 's/^  name: //p' "$t/node-master.yaml" | head -n 1)
doc "node-role.kubernetes.io/master:NoSchedule" oc describe node "$name"
oc delete node "$name" >/dev/null

section "A toleration matches a taint"
oc adm taint nodes node1 key1=value1:NoExecute >/dev/null
for form in equal exists; do
  pod=$(sed -n 's/^  name: //p' "$t/pod-$form.yaml" | head -n 1)
  doc "pod/$pod created" pinned node1 "$t/pod-$form.yaml"
  soon_holds "operator $form matches" on "$pod" node1
done
clear_pods; oc adm taint nodes node1 key1- >/dev/null

section "taints that are built in: unschedulable"
doc "node/node1 cordoned" oc adm cordon node1
soon "node.kubernetes.io/unschedulable:NoSchedule" oc describe node node1
doc "node/node1 uncordoned" oc adm uncordon node1
section "taints that are built in: memory-pressure, disk-pressure, pid-pressure, network-unavailable"
for condition in MemoryPressure:memory-pressure DiskPressure:disk-pressure PIDPressure:pid-pressure NetworkUnavailable:network-unavailable; do
  kubectl create -f - >/dev/null <<Y
apiVersion: v1
kind: Node
metadata: {name: sick}
status:
  conditions: [{type: Ready, status: "True", lastHeartbeatTime: "$(date -u +%FT%TZ)"}, {type: ${condition%:*}, status: "True"}]
Y
  soon "node.kubernetes.io/${condition#*:}:NoSchedule" oc describe node sick
  oc delete node sick >/dev/null
done

section "toleration seconds to delay pod evictions"
oc create -f "$t/pod-equal.yaml" --dry-run=client -o yaml | sed 's/tolerationSeconds: 3600/tolerationSeconds: 1/' >"$work/second.yaml"
pinned node2 "$work/second.yaml" >/dev/null
soon_holds "the pod runs" running "$equal"
doc "node/node2 tainted" oc adm taint nodes node2 key1=value1:NoExecute
soon_holds "it is evicted when the time is over" gone "$equal"
oc adm taint nodes node2 key1- >/dev/null
sed -i 's/tolerationSeconds: 1$/tolerationSeconds: 60/' "$work/second.yaml"
pinned node2 "$work/second.yaml" >/dev/null; eventually 20 running "$equal"
oc adm taint nodes node2 key1=value1:NoExecute >/dev/null
doc "node/node2 untainted" oc adm taint nodes node2 key1=value1:NoExecute-
soon "Cancelling deletion" oc describe pod "$equal"
holds "the taint went first: the pod is not evicted" running "$equal"
clear_pods

section "multiple taints"
pinned node1 "$t/pod-three-taints.yaml" >/dev/null
three=$(sed -n 's/^  name: //p' "$t/pod-three-taints.yaml" | head -n 1)
soon_holds "the pod runs before the taints come" running "$three"
doc "node/node1 tainted" oc adm taint nodes node1 key1=value1:NoSchedule
doc "node/node1 tainted" oc adm taint nodes node1 key1=value1:NoExecute
doc "node/node1 tainted" oc adm taint nodes node1 key2=value2:NoSchedule
holds "NoExecute comes first, as kubectl has it" sh -c "oc describe node node1 | grep -q '^Taints: *key1=value1:NoExecute'"
holds "it continues running: the third taint is the only one that it does not tolerate" running "$three"
oc delete pod "$three" --now >/dev/null; pinned node1 "$t/pod-three-taints.yaml" >/dev/null
soon_holds "anew it cannot be scheduled onto the node" pends "$three"
doc "a toleration for key2=value2:NoSchedule" oc explain pod "$three"
clear_pods; oc adm taint nodes node1 key1- key2- >/dev/null

section "taint nodes by condition: tolerations of daemons"
oc create -f - >/dev/null <<'Y'
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: pause}]}
Y
soon "agent-" oc get pods -o name
for taint in memory-pressure disk-pressure unschedulable; do doc "node.kubernetes.io/$taint:NoSchedule" oc describe pods -l app=agent; done
section "taint nodes by condition: pods with a QoS class"
doc "pod/burstable created" make '{apiVersion: v1, kind: Pod, metadata: {name: burstable}, spec: {containers: [{name: c, image: pause, resources: {requests: {cpu: 10m}}}]}}'
doc "node.kubernetes.io/memory-pressure:NoSchedule" oc describe pod burstable

section "evicting pods by condition (taint-based evictions)"
doc "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" oc describe pod burstable
doc "node.kubernetes.io/unreachable:NoExecute op=Exists for 300s" oc describe pod burstable
for pod in unreachable not-ready; do
  doc "created" oc create -f "$t/pod-$pod.yaml"
  doc "for 6000s" oc describe pod "$(sed -n 's/^  name: //p' "$t/pod-$pod.yaml" | head -n 1)"
done
oc annotate node node3 sim.berth.dev/dead=true >/dev/null
soon "node.kubernetes.io/unreachable:NoExecute" oc describe node node3
oc annotate node node3 sim.berth.dev/dead- >/dev/null
no_taints() { oc describe node node3 | grep -q '^Taints: *<none>'; }
soon_holds "the condition clears, the taint goes" no_taints
finish
