#!/usr/bin/env bash
# The main job from end to end: a control plane with simulated nodes, the examples placed on them, and the picture of where
# everything went and why one pod is pending. Uses free ports and a directory of its own; leaves nothing running.
set -euo pipefail
berth=$(realpath "${1:-build/release/bin/berth}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/berth-demo.XXXXXX")
pid=
finish() { [ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; rm -rf "$work"; }
trap finish EXIT
title() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
run() { printf '\033[2m$ %s\033[0m\n' "$*"; "$@"; }
k() { run kubectl "$@"; }

title "berth up: API server, scheduler, controllers and 9 simulated nodes in 3 zones, in one process"
"$berth" up --nodes 9 --scan-interval 500ms --data-dir "$work/data" --listen 127.0.0.1:0 >"$work/up.log" 2>&1 &
pid=$!
for _ in $(seq 300); do
  grep -q '^export KUBECONFIG=' "$work/up.log" && break
  kill -0 "$pid" 2>/dev/null || { cat "$work/up.log"; exit 1; }
  sleep 0.1
done
grep '^export KUBECONFIG=' "$work/up.log"
KUBECONFIG=$(sed -n 's/^export KUBECONFIG=//p' "$work/up.log"); export KUBECONFIG KUBECACHEDIR=$work/cache
k wait --for=condition=Ready node --all --timeout=60s >/dev/null
k get nodes -L topology.kubernetes.io/zone

title "One node is set apart for training: a taint keeps others off, a label attracts"
first=$(kubectl get nodes -o jsonpath='{.items[0].metadata.name}')
k taint node "$first" dedicated=training:NoSchedule
k label node "$first" dedicated=training

title "The examples"
k apply -f "$here/demo/"
k -n shop rollout status deployment/web --timeout=60s
k -n shop rollout status deployment/cache --timeout=60s
k -n shop rollout status deployment/trainer --timeout=60s
for _ in $(seq 100); do [ -n "$(kubectl -n shop get events --field-selector reason=FailedScheduling -o name)" ] && break; sleep 0.1; done

title "Where everything went"
k -n shop get deployments,pdb
kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.metadata.labels.topology\.kubernetes\.io/zone}{"\n"}{end}' >"$work/zones"
kubectl -n shop get pods -o jsonpath='{range .items[*]}{.spec.nodeName}{" "}{.metadata.labels.app}{"\n"}{end}' >"$work/pods"
awk 'NR==FNR {if (NF == 2) {n[$1] = n[$1] " " $2} next} {printf "  %-12s %-8s %s\n", $2, $1, n[$1]}' "$work/pods" "$work/zones" | sort

title "Why one pod is pending"
k -n shop get pod giant
kubectl -n shop describe pod giant | sed -n '/^Events:/,$p'
if "$berth" explain --help >/dev/null 2>&1; then run "$berth" explain pod giant -n shop || true; fi

title "A taint with NoExecute empties a node; the pods go elsewhere"
victim=$(kubectl -n shop get pods -l app=web -o jsonpath='{.items[0].spec.nodeName}')
k taint node "$victim" maintenance=true:NoExecute
for _ in $(seq 100); do
  [ -z "$(kubectl -n shop get pods --field-selector spec.nodeName="$victim" -o name)" ] && kubectl -n shop rollout status deployment/web --timeout=1s >/dev/null 2>&1 && break
  sleep 0.1
done
kubectl -n shop get events --field-selector reason=TaintManagerEviction -o jsonpath='{range .items[*]}  {.message}{"\n"}{end}' | sort | head -n 3
k -n shop get deployment web
k taint node "$victim" maintenance:NoExecute-

title "Two gangs that do not fit together: one runs whole, the other waits whole, and no node waits for partners"
gang_phases() { # gang_phases JOB: # a worker that runs, + one that has ended, . one that waits
  kubectl -n shop get pods -l job="$1" -o jsonpath='{range .items[*]}{.status.phase}{"\n"}{end}' | sed 's/Running/#/; s/Succeeded/+/; s/Pending/./' | tr -d '\n'
}
gang_picture() { printf '  %2ds  alpha %-5s beta %s\n' "$((SECONDS - began))" "$(gang_phases alpha)" "$(gang_phases beta)"; }
for node in $(kubectl get nodes -l 'dedicated!=training' -o jsonpath='{.items[0:4].metadata.name}'); do kubectl label node "$node" gangs=here >/dev/null; done
began=$SECONDS last=
k apply -f "$here/demo-gangs.yaml"
for _ in $(seq 60); do
  now=$(gang_picture)
  [ "${now#*s}" = "${last#*s}" ] || echo "$now"
  last=$now
  case $now in
    *"alpha ###"*"beta .."*) if [ -z "${told:-}" ]; then
      for _ in $(seq 30); do [ -n "$(kubectl -n shop get podgroups -o jsonpath='{.items[*].status.conditions[?(@.status=="False")].message}')" ] && break; sleep 0.1; done
      kubectl -n shop get podgroups -o jsonpath='{range .items[*]}{"       "}{.metadata.name}: {.status.conditions[0].reason}{" "}{.status.conditions[0].message}{"\n"}{end}' | sed 's/-[a-z0-9]*-[a-z]*-pgt-0-[a-z0-9]*:/:/'
      kubectl -n shop get pods -l job=beta -o jsonpath='{range .items[*]}{"       "}{.metadata.name}: {.status.conditions[?(@.type=="PodScheduled")].message}{"\n"}{end}'; told=1
    fi ;;
    *"beta ++"*) break ;;
  esac
  sleep 0.3
done
kubectl -n shop get pods -l 'job in (alpha,beta)' -o custom-columns=POD:.metadata.name,GROUP:.spec.schedulingGroup.podGroupName,NODE:.spec.nodeName,STARTED:.status.startTime
kubectl -n shop delete -f "$here/demo-gangs.yaml" >/dev/null

title "An urgent pod on a full cluster: as few and as low pods as needed make room"
kubectl apply -f "$here/demo-preemption.yaml" >/dev/null
for _ in $(seq 100); do [ -n "$(kubectl -n shop get events --field-selector reason=FailedScheduling,involvedObject.kind=Pod -o name | grep filler)" ] && break; sleep 0.1; done
kubectl -n shop get pods -l app=filler --no-headers | awk '{n[$3]++} END {for (s in n) printf "  filler pods %s: %d\n", s, n[s]}' | sort
run kubectl -n shop run urgent --image=pause --overrides='{"spec":{"priorityClassName":"urgent","containers":[{"name":"urgent","image":"pause","resources":{"requests":{"cpu":"16"}}}]}}'
k -n shop wait --for=condition=Ready pod/urgent --timeout=20s
k -n shop get pod urgent -o wide
kubectl -n shop get events --field-selector reason=Preempted -o jsonpath='{range .items[*]}  {.involvedObject.name}: {.message}{"\n"}{end}'

title "Load comes, nodes come; load goes, nodes go"
nodes_of_pool() { kubectl get nodes -l pool=burst -o name | wc -l; }
picture() { # A row a moment: # a node of the pool with its pods, . a pod that waits.
  kubectl get pods -l app=burst -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' >"$work/burst"
  printf '  %2ds  %-42s %d nodes\n' "$((SECONDS - began))" \
    "$(kubectl get nodes -l pool=burst -o name | sed 's,node/,,' | while read -r n; do printf '[%s] ' "$(grep -cx "$n" "$work/burst" | sed 's/^0$/ /')"; done)$(printf '%*s' "$(grep -cx '' "$work/burst")" '' | tr ' ' .)" "$(nodes_of_pool)"
}
watch_until() { # watch_until TEXT COMMAND...: the picture whenever it has changed, until the command succeeds
  local what=$1 last= now; shift
  for _ in $(seq 60); do
    now=$(picture); [ "${now#*s}" = "${last#*s}" ] || echo "$now"
    last=$now
    if "$@"; then echo "       $what"; return; fi
    sleep 0.3
  done
  echo "       (still under way)"
}
all_run() { [ "$(kubectl get deployment burst -o jsonpath='{.status.readyReplicas}')" = 6 ]; }
pool_is_empty() { [ "$(nodes_of_pool)" = 0 ]; }
sed 's/delayAfterAdd: 2s, delayAfterDelete: 1s/delayAfterAdd: 1s, delayAfterDelete: 0s/; s/unneededTime: 3s/unneededTime: 1s/' "$here/autoscaler/quick.yaml" | kubectl apply -f - >/dev/null
k apply -f "$here/autoscaler/machine-sets.yaml"
kubectl wait --for=jsonpath='{.metadata.annotations.machine\.openshift\.io/cluster-api-autoscaler-node-group-max-size}'=6 machineset/burst-us-east-1a -n openshift-machine-api --timeout=20s >/dev/null
began=$SECONDS
run kubectl create -f - <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: burst}
spec:
  replicas: 6
  selector: {matchLabels: {app: burst}}
  template:
    metadata: {labels: {app: burst}}
    spec:
      nodeSelector: {pool: burst}
      terminationGracePeriodSeconds: 0
      containers: [{name: web, image: nginx, resources: {requests: {cpu: 900m, memory: 256Mi}}}]
YAML
watch_until "six pods of 900m run, two on a node of 2 CPUs" all_run
k scale deployment burst --replicas=0
watch_until "nobody needs the nodes, and they are gone" pool_is_empty
kubectl get events -A --field-selector reason=ScaledUpGroup -o jsonpath='{range .items[*]}  {.message}{"\n"}{end}' | head -n 2

title "Nodes without groups: the cheapest nodes for these pods, asked before anything is bought"
(unset KUBECONFIG; HOME=$work; run "$berth" pools plan --instance-types "$here/node-pools/instance-types.yaml" --node-pool "$here/node-pools/node-pool.yaml" -f "$here/node-pools/web.yaml")  # Of no cluster: for these pods alone.

title "Done: stopping the control plane"
kill "$pid"; wait "$pid" || true
pid=

title "A shop of real containers: web tier, database, a Service by name, a NetworkPolicy"
if "$here/shop/run.sh" "$berth"; then :; elif [ $? -eq 77 ]; then echo "(this machine cannot run it)"; else exit 1; fi
echo "nothing is left running"
