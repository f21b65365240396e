#!/usr/bin/env bash
# NUMA nodes as docs/scheduling.md shows them: the kind comes while the scheduler runs, nodes tell, and everybody says the same of a pod.
. "$(dirname "$0")/lib.sh"
command -v kubectl >/dev/null || { echo "skipped: no kubectl"; echo "0 passed, 0 failed"; exit 0; }
numa=$root/examples/numa
is() { [ "$(kubectl get "$1" "$2" -o jsonpath="$3" 2>/dev/null)" = "$4" ]; }
tells() { kubectl get noderesourcetopology numa-1 -o yaml | grep -c 'berth.dev/holds\.' | grep -qx "$1"; }

start_up --nodes 1 --config "$numa/scheduler.yaml"
check "the kind" kubectl apply -f "$numa/crd.yaml"
check "two machines" kubectl apply -f "$numa/nodes.yaml"
check "with room for pods beside what the annotation says" eventually 10 is node numa-1 '{.status.allocatable.pods}' 110
check "they tell of their NUMA nodes" eventually 10 kubectl get noderesourcetopology numa-1 numa-2
check "three pods" kubectl apply -f "$numa/pods.yaml"
check "two have a NUMA node each" eventually 60 sh -c "[ \"\$(kubectl get pods twelve-1 twelve-2 -o jsonpath='{.items[*].status.phase}')\" = 'Running Running' ]"
check "which the node tells" eventually 10 tells 2
kubectl delete pod six --wait=false >/dev/null 2>&1
sed -n '/name: six/,$p' "$numa/pods.yaml" | sed 's/^metadata.*/metadata: {name: late}/; 1i apiVersion: v1\nkind: Pod' >"$work/late.yaml"
waits() { kubectl get events --field-selector involvedObject.name=late -o jsonpath='{.items[*].message}' | grep '1 cannot align pod' >/dev/null; }
asked_again() { kubectl delete pod late --ignore-not-found --grace-period=0 --force; kubectl apply -f "$work/late.yaml"; eventually 3 waits; }
check "once the scheduler knows the kind, a pod for which neither has enough waits, and the event says why" eventually 60 asked_again
check "explain says the same" says "a NUMA node with 6 exclusive CPUs free" "$berth" explain pod late
check "without the plugin it says what the node would" says "numa-1 would refuse it" "$berth" explain pod late --compatibility today --config /dev/stdin <<'C'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
C
kubectl delete pod twelve-1 --grace-period=0 --force >/dev/null 2>&1
check "it runs when another goes" eventually 60 is pod late '{.status.phase}' Running
stop_up TERM
finish
