#!/usr/bin/env bash
# What-if against what really happens: a drain, a scale, a lost node and a new Deployment are asked about, then done on the same cluster in berth up.
. "$(dirname "$0")/lib.sh"
start_up --nodes 4 --zones 2 --controller-arg node-monitor-grace-period=5s
eventually 20 kubectl wait --for=condition=Ready node --all --timeout=1s
kubectl create namespace shop >/dev/null
cpus=$(kubectl get node node-1 -o jsonpath='{.status.allocatable.cpu}')
half=$((cpus / 2))

deployment() { # deployment NAME REPLICAS CPU
  cat <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1, namespace: shop}
spec:
  replicas: $2
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      terminationGracePeriodSeconds: 0
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      containers: [{name: main, image: pause, resources: {requests: {cpu: "$3"}}}]
YAML
}
asks() { "$berth" what-if "$@" -o json 2>"$work/what-if.err" || { cat "$work/what-if.err"; return 1; }; }
number() { sed -nE "s/^ *\"$1\": ([0-9]+),?$/\1/p" "$2" | head -n 1; } # number FIELD FILE: of the summary
running() { kubectl -n shop get pods -o jsonpath='{range .items[?(@.status.phase=="Running")]}{.metadata.deletionTimestamp}{"x"}{.spec.nodeName}{"\n"}{end}' | grep -c '^xnode' || true; }
pending() { kubectl -n shop get pods -o jsonpath='{range .items[?(@.status.phase=="Pending")]}{.metadata.name}{"\n"}{end}' | grep -c . || true; }
counts() { [ "$(running)" = "$1" ] && [ "$(pending)" = "$2" ]; } # counts RUNNING PENDING

# Six halves of four nodes: two halves are free.
deployment web 6 "$half" | kubectl apply -f - >/dev/null
check "the workload runs" eventually 30 counts 6 0
on() { kubectl -n shop get pods -o jsonpath="{range .items[?(@.spec.nodeName==\"$1\")]}x{end}" | wc -c; }

# A scale, asked, then done.
asks --scale shop/web=9 >"$work/scale.json"
check "nine halves: two are placed, one waits" [ "$(number placed "$work/scale.json") $(number pending "$work/scale.json")" = "2 1" ]
kubectl -n shop scale deployment web --replicas=9 >/dev/null
check "... and so it is" eventually 30 counts 8 1
asks --scale shop/web=6 >"$work/down.json"
check "back to six: three go, the waiting one first" [ "$(number deleted "$work/down.json") $(number moves "$work/down.json")" = "3 0" ]
kubectl -n shop scale deployment web --replicas=6 >/dev/null
check "... and so it is" eventually 30 counts 6 0

# A drain that a budget refuses, and one that goes.
kubectl -n shop create poddisruptionbudget web --selector=app=web --min-available=6 >/dev/null
budget_is() { [ "$(kubectl -n shop get pdb web -o jsonpath='{.status.disruptionsAllowed}/{.status.currentHealthy}')" = "$1" ]; }
check "the budget is counted" eventually 20 budget_is 0/6
fullest=$(for n in 1 2 3 4; do echo "$(on node-$n) node-$n"; done | sort -rn | sed -n '1s/.* //p')
there=$(on "$fullest")
asks --drain "$fullest" >"$work/refused.json"
check "the budget refuses every eviction" [ "$(number blocked "$work/refused.json") $(number moves "$work/refused.json")" = "$there 0" ]
check "... with a code for pipelines" refused "$berth" what-if --drain "$fullest" --fail-on budget
check "... and so it does" refused "$berth" adm drain "$fullest" --timeout=2s
check "nobody moved" counts 6 0
kubectl uncordon "$fullest" >/dev/null
kubectl -n shop delete pdb web >/dev/null
asks --drain "$fullest" >"$work/drain.json"
moves=$(number moves "$work/drain.json") waits=$(number pending "$work/drain.json")
check "without it all of them go" [ "$moves $waits" = "$there 0" ]
check "an answer that was just given holds" says "still holds" "$berth" what-if --check "$work/drain.json"
check "the drain is done" "$berth" adm drain "$fullest" --timeout=60s
check "... and so it is" eventually 30 counts 6 0
"$berth" what-if --check "$work/drain.json" >"$work/outrun.txt" 2>&1; code=$?
check "... and the answer is outrun, with a code for pipelines" [ "$code" = 3 ]
check "... by what has changed" grep -q "node $fullest is cordoned" "$work/outrun.txt"
kubectl uncordon "$fullest" >/dev/null

# A lost node.
kubectl -n shop scale deployment web --replicas=8 >/dev/null
check "all four nodes are full" eventually 30 counts 8 0
asks --fail node-2 >"$work/lost.json"
check "what was on the lost node waits" [ "$(number moves "$work/lost.json") $(number pending "$work/lost.json")" = "0 2" ]
asks --each node >"$work/each.json"
check "every single loss leaves something pending" [ "$(number eachPending "$work/each.json")" = 4 ]
check "... which --fail-on tells" refused "$berth" what-if --each node --fail-on pending
kubectl annotate node node-2 sim.berth.dev/dead=true >/dev/null
check "... and so it is" eventually 60 counts 6 2

# More, from the dump of the same cluster.
kubectl annotate node node-2 sim.berth.dev/dead- >/dev/null
check "the node is back" eventually 60 counts 8 0
kubectl get nodes,pods,deployments,replicasets,poddisruptionbudgets,priorityclasses,daemonsets -A -o yaml >"$work/dump.yaml"
deployment late 1 "$half" >"$work/late.yaml"
check "a live cluster and its dump answer alike" [ "$("$berth" what-if -f "$work/late.yaml" -o json 2>/dev/null | grep -c '"pending": 1')" = "$("$berth" what-if --cluster "$work/dump.yaml" -f "$work/late.yaml" -o json 2>/dev/null | grep -c '"pending": 1')" ]
check "nothing more fits" says "can schedule 0 instance(s)" "$berth" capacity --pod "$work/late.yaml"
check "a dump that is cut off is refused" says "cut off" "$berth" what-if --cluster <(sed '/^kind: List/,$d' "$work/dump.yaml") --each node
check "a typing error is told" says 'did you mean "node-' "$berth" what-if --drain nod-2

# A plan for fewer nodes, carried out step by step: every eviction is possible in its turn, nobody is left without a place, no budget breaks.
kubectl -n shop scale deployment web --replicas=2 >/dev/null
deployment tiny 5 "$((half / 4))" | kubectl apply -f - >/dev/null
kubectl -n shop create poddisruptionbudget web --selector=app=web --min-available=1 >/dev/null
kubectl -n shop create poddisruptionbudget tiny --selector=app=tiny --max-unavailable=1 >/dev/null
check "two halves and five eighths run" eventually 30 counts 7 0
"$berth" pack -o json >"$work/plan.json" 2>"$work/pack.err"
steps() { python3 -c 'import json, sys
for one in json.load(open(sys.argv[1]))["pack"]["steps"]:
    if one["step"] == "drain":
        for pod in one["evictions"]: print("evict", *pod.split("/"))
    print(one["step"], one["node"])' "$work/plan.json"; }
evict() { printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"}}' "$2" "$1" | kubectl create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f - >>"$work/evictions.log" 2>&1; }
is_empty() { [ "$(on "$1")" = 0 ]; }
carry_out() {
  steps >"$work/steps"
  while read -r step what name; do
    case $step in
      cordon) kubectl cordon "$what" ;;
      evict) eventually 60 evict "$what" "$name" ;; # Until a budget that was just spent is there again.
      drain) eventually 60 is_empty "$what" && eventually 60 counts 7 0 ;;
      remove) kubectl delete node "$what" ;;
    esac >>"$work/carried" 2>&1 </dev/null || { echo "not possible: $step $what $name"; cat "$work/steps" "$work/carried" "$work/evictions.log"; return 1; }
  done <"$work/steps"
}
needed=$(number nodesNeeded "$work/plan.json")
check "the plan empties nodes, with evictions" sh -c "grep -q '\"drain\"' '$work/plan.json' && [ $needed -lt 4 ]"
check "each of its steps is possible in that order" carry_out
check "everybody has a place" counts 7 0
check "on as many nodes as were said" [ "$(kubectl get nodes -o name | wc -l)" = "$needed" ]
ln -s "$berth" "$work/kubectl-berth"
check "kubectl has it as a plugin" env PATH="$work:$PATH" kubectl berth what-if --each zone
finish
