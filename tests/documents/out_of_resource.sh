#!/usr/bin/env bash
# Chapter 21 "Handling out of resource errors", on simulated nodes: the decisions are those of the real node's core. What a real node does with
# disks, memory cgroups and the kernel's OOM killer is in tests/e2e/eviction.sh.
. "$(dirname "$0")/lib.sh"
n=$examples/node
settings() { # settings LINES...: a node-config.yaml with these kubeletArguments
  { echo "kubeletArguments:"; printf '%s\n' "$@"; } >"$work/node-config.yaml"
}
argument() { printf '  %s:\n    - "%s"\n' "$1" "$2"; }
validate() { "$berth" node --validate --config "${1:-$work/node-config.yaml}"; }

cat >"$work/scenario.yaml" <<'Y'
kubelet:
  evictionHard: {memory.available: 10Gi}
  evictionPressureTransitionPeriod: 1s
Y
start_up --nodes 2 --prefix node --scenario "$work/scenario.yaml"
ready
raw() { kubectl get --raw "/api/v1/nodes/$1/proxy/stats/summary"; }

section "21.2.1, signals"
doc "availableBytes" raw node1
for part in memory fs inodesFree; do doc "\"$part\"" raw node1; done # The image file system is a real node's: tests/e2e/node_agent.sh

section "21.2.2, forms of a threshold"
for text in 'memory.available<1Gi' 'memory.available<10%' 'nodefs.available<10%' 'nodefs.inodesFree<5%' 'imagefs.available<15%' 'imagefs.inodesFree<5%'; do
  settings "$(argument eviction-hard "$text")"
  holds "$text is valid" validate
done
settings "$(argument eviction-hard 'memory.available>1Gi')"; holds "another operator is not" refused validate
settings "$(argument eviction-hard 'memory.availible<1Gi')"; holds "another signal is not" refused validate
settings "$(argument eviction-hard 'memory.available<lots')"; holds "a quantity that is none is not" refused validate

section 21.2.2.1
settings "$(argument eviction-soft 'memory.available<1.5Gi')"
doc "grace period must be specified" validate
holds "without a grace period the node errors on startup" refused validate
settings "$(argument eviction-soft 'memory.available<1.5Gi')" "$(argument eviction-soft-grace-period 'memory.available=1m30s')" "$(argument eviction-max-pod-grace-period 30)"
holds "with one it does not" validate
section 21.2.2.2
settings "$(argument eviction-hard 'memory.available<1Gi')"
holds "eviction-hard" validate
section 21.2.3
settings "$(argument eviction-pressure-transition-period 5m)"
holds "eviction-pressure-transition-period" validate
section 21.2.9
holds "the document's node-config.yaml" validate "$n/node-config.yaml"
holds "the same with a soft threshold" validate "$n/node-config-soft.yaml"

section "21.2.5 and 21.2.6"
grow() { # grow NAME MEMORY [SPEC]
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, annotations: {sim.berth.dev/memory: "%s"}}\nspec: {nodeName: node1, terminationGracePeriodSeconds: 0, containers: [{name: c, image: i%s}]}\n' "$1" "$2" "${3:+, $3}" | oc create -f -
}
evicted() { is pod "$1" status.reason Evicted; }
guaranteed='resources: {requests: {cpu: "1", memory: 4Gi}, limits: {cpu: "1", memory: 4Gi}}'
grow steady 4Gi "$guaranteed" >/dev/null
grow quiet 1Gi 'resources: {requests: {memory: 2Gi}}' >/dev/null
grow greedy 250Gi >/dev/null
condition() { oc describe node node1 | grep -qE "^  MemoryPressure +$1"; }
soon_holds "the node reports MemoryPressure" condition True
section 21.2.7
soon_holds "the BestEffort pod that uses most is failed" evicted greedy
holds "its phase is Failed" is pod greedy status.phase Failed
doc "The node was low on resource: memory" oc describe pod greedy
holds "a Guaranteed pod is not evicted for another's use" running steady
holds "nor one within its request" running quiet
section 21.2.8
taint() { oc describe node node1 | grep -q "node.kubernetes.io/memory-pressure:NoSchedule"; }
grow filler 250Gi >/dev/null
soon_holds "pressure keeps new pods away: the taint" taint
doc "created" make '{apiVersion: v1, kind: Pod, metadata: {name: besteffort}, spec: {nodeSelector: {kubernetes.io/hostname: node1}, containers: [{name: c, image: i}]}}'
holds "BestEffort pods do not tolerate it" refused sh -c "oc describe pod besteffort | grep memory-pressure"
doc "created" make '{apiVersion: v1, kind: Pod, metadata: {name: burstable}, spec: {nodeSelector: {kubernetes.io/hostname: node1}, containers: [{name: c, image: i, resources: {requests: {memory: 1Mi}}}]}}'
doc "node.kubernetes.io/memory-pressure:NoSchedule" oc describe pod burstable
clear_pods
section 21.2.3
soon_holds "the condition clears after the transition period" condition False

section "21.2.9, the scenario"
stop_up
cat >"$work/ten.yaml" <<'Y'
kubelet:
  evictionHard: {memory.available: 500Mi}
  systemReserved: {memory: 1.5Gi}
Y
ten_gi() { # ten_gi WORD: a node of 10Gi, by the word for what differs between the document and today's Kubernetes (docs/differences.md)
  start_up --nodes 2 --prefix node --scenario "$work/ten.yaml" --compatibility "$1"
  oc delete node ten --ignore-not-found >/dev/null 2>&1
  make >/dev/null '{apiVersion: v1, kind: Node, metadata: {name: ten, annotations: {sim.berth.dev/fleet: default, "sim.berth.dev/capacity": "cpu=4,memory=10Gi"}}}'
}
allocatable() { [ "$(oc get node ten -o json | python3 -c '
import json, sys
text = json.load(sys.stdin)["status"]["allocatable"]["memory"]
units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
print(int(float(text[:-2]) * units[text[-2:]]) >> 20 if text[-2:] in units else int(text) >> 20)')" = "$1" ]; }
ten_gi documents
soon_holds "allocatable = capacity - system-reserved" allocatable 8704
stop_up; ten_gi today
soon_holds "today the threshold is taken away besides" allocatable 8204
section "21.4.1"
oc create -f - >/dev/null <<'Y'
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: hog}
spec:
  selector: {matchLabels: {app: hog}}
  template:
    metadata: {labels: {app: hog}, annotations: {sim.berth.dev/memory: "0s=1Gi,2s=255Gi"}}
    spec: {nodeSelector: {kubernetes.io/hostname: node2}, terminationGracePeriodSeconds: 0, containers: [{name: c, image: i}]}
Y
again() { [ "$(oc get events --no-headers 2>/dev/null | grep -c 'Evicted')" -ge 1 ] && [ "$(oc get pods -l app=hog --no-headers | grep -vc Evicted)" -ge 1 ]; }
soon_holds "an evicted DaemonSet pod is made again on the same node" again
finish
