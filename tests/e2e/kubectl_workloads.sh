#!/usr/bin/env bash
# Workloads driven by kubectl (the installed one, and Debian's 1.20 where it is): drain, rollout, scale, autoscale, expose, set image.
. "$(dirname "$0")/lib.sh"
start_up --nodes 4 --controller-arg horizontal-pod-autoscaler-sync-period=2s --controller-arg horizontal-pod-autoscaler-downscale-stabilization=4s

session() { # session KUBECTL NAMESPACE
  local k=$1 ns=$2
  n() { "$k" -n "$ns" "$@"; }
  field() { n get "$1" -o jsonpath="$2"; }
  is() { local got; got=$(field "$2" "$3") && [ "$got" = "$1" ] || { echo "got $got, wanted $1"; return 1; }; }
  check "$ns namespace" "$k" create namespace "$ns"
  check "$ns account" eventually 20 n get sa default

  # A rollout's life.
  check "$ns create" n create deployment web --image=web:1
  check "$ns scale" n scale deployment web --replicas=3
  check "$ns scale with a wrong guess is refused" refused n scale deployment web --current-replicas=7 --replicas=9
  check "$ns status" n rollout status deployment web --timeout=60s
  check "$ns set image" n set image deployment/web web=web:2
  check "$ns status after" n rollout status deployment web --timeout=60s
  check "$ns history has both" says "2 " n rollout history deployment web
  check "$ns history of one" says "web:1" n rollout history deployment web --revision=1
  check "$ns undo" n rollout undo deployment web
  check "$ns status of undo" n rollout status deployment web --timeout=60s
  check "$ns the old image is back" is web:1 deployment/web '{.spec.template.spec.containers[0].image}'
  check "$ns undo to a revision" n rollout undo deployment web --to-revision=2
  check "$ns the revision's image" eventually 20 is web:2 deployment/web '{.spec.template.spec.containers[0].image}'
  check "$ns no such revision" refused n rollout undo deployment web --to-revision=77
  check "$ns pause" n rollout pause deployment web
  check "$ns paused twice" refused n rollout pause deployment web
  check "$ns image while paused" n set image deployment/web web=web:3
  check "$ns resume" n rollout resume deployment web
  check "$ns status of resume" n rollout status deployment web --timeout=60s
  check "$ns restart" n rollout restart deployment web
  check "$ns status of restart" n rollout status deployment web --timeout=60s
  check "$ns restartedAt" says restartedAt n get deployment web -o yaml
  n apply -f - >/dev/null <<Y
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: "db:1"}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: "agent:1"}]}}
Y
  for what in statefulset/db daemonset/agent; do
    check "$ns $what status" n rollout status "$what" --timeout=60s
    check "$ns $what set image" n set image "$what" c=next:2
    check "$ns $what status after" n rollout status "$what" --timeout=60s
    check "$ns $what history" says "2 " n rollout history "$what"
    check "$ns $what undo" n rollout undo "$what"
    check "$ns $what status of undo" n rollout status "$what" --timeout=60s
    check "$ns $what restart" n rollout restart "$what"
    check "$ns $what status of restart" n rollout status "$what" --timeout=60s
  done

  # Services.
  check "$ns expose" n expose deployment web --port=80 --target-port=8080
  check "$ns endpoints" eventually 20 is 8080 endpoints/web '{.subsets[0].ports[0].port}'
  check "$ns expose without an address" n expose deployment web --name=bare-web --port=80 --cluster-ip=None
  check "$ns headless endpoints" eventually 20 says service.kubernetes.io/headless n get endpoints bare-web -o yaml

  # Load moves the replicas up, and down again.
  n apply -f - >/dev/null <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: load}
spec:
  replicas: 1
  selector: {matchLabels: {app: load}}
  template:
    metadata: {labels: {app: load}, annotations: {sim.berth.dev/cpu: 300m}}
    spec: {containers: [{name: c, image: "load:1", resources: {requests: {cpu: 100m}}}]}
Y
  check "$ns load is up" n rollout status deployment load --timeout=60s
  check "$ns autoscale" n autoscale deployment load --min=1 --max=4 --cpu-percent=100
  check "$ns grows to the most" eventually 90 is 4 deployment/load '{.spec.replicas}'
  check "$ns its table" says "Deployment/load" n get hpa load
  check "$ns its columns" says "MINPODS" n get hpa load
  check "$ns its event" says "SuccessfulRescale" n get events --field-selector involvedObject.name=load
  check "$ns the load falls" n patch deployment load -p '{"spec":{"template":{"metadata":{"annotations":{"sim.berth.dev/cpu":"10m"}}}}}'
  check "$ns shrinks to the least" eventually 120 is 1 deployment/load '{.spec.replicas}'
  n delete hpa/load deployment/load >/dev/null 2>&1

  # Drain.
  local node pod
  n scale deployment web --replicas=4 >/dev/null; n rollout status deployment web --timeout=60s >/dev/null
  node=$(field pods '{.items[?(@.metadata.labels.app=="web")].spec.nodeName}' | cut -d' ' -f1)
  n run bare --image=bare:1 --restart=Never --overrides="{\"spec\":{\"nodeName\":\"$node\"}}" >/dev/null 2>&1
  check "$ns bare pod" eventually 20 is Running pod/bare '{.status.phase}'
  check "$ns drain refuses DaemonSet pods" refused "$k" drain "$node" --timeout=5s
  check "$ns drain refuses unmanaged pods" says "bare" "$k" drain "$node" --ignore-daemonsets --timeout=5s
  # kubectl 1.20 asks each pod of the list for its kind, which no API server writes there: its dry run fails on Kubernetes too.
  [ "$k" = "$old" ] || check "$ns a dry run" "$k" drain "$node" --ignore-daemonsets --force --delete-emptydir-data --dry-run=server
  check "$ns takes nothing" is Running pod/bare '{.status.phase}'
  "$k" uncordon "$node" >/dev/null 2>&1
  n create pdb web --selector=app=web --min-available=4 >/dev/null
  check "$ns the budget is counted" eventually 20 is 4 pdb/web '{.status.currentHealthy}'
  check "$ns a budget without room stops the drain" says "violate the pod's disruption budget" "$k" drain "$node" --ignore-daemonsets --force --delete-emptydir-data --timeout=8s
  n delete pdb web >/dev/null; n create pdb web --selector=app=web --max-unavailable=1 >/dev/null
  check "$ns the new budget is counted" eventually 20 is 1 pdb/web '{.status.disruptionsAllowed}'
  check "$ns with room it finishes" "$k" drain "$node" --ignore-daemonsets --force --delete-emptydir-data --timeout=90s
  check "$ns the node is cordoned" says "SchedulingDisabled" "$k" get node "$node"
  gone() { [ -z "$(n get pods --field-selector "spec.nodeName=$node" -l "$1" -o name)" ]; }
  check "$ns its web pods are gone" gone app=web
  check "$ns the bare pod is gone" refused n get pod bare
  check "$ns the daemon stayed" refused gone app=agent
  check "$ns the others came back elsewhere" eventually 60 is 4 deployment/web '{.status.availableReplicas}'
  n apply -f - >/dev/null <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: scratch}
spec:
  replicas: 1
  selector: {matchLabels: {app: scratch}}
  template: {metadata: {labels: {app: scratch}}, spec: {containers: [{name: c, image: "s:1"}], volumes: [{name: v, emptyDir: {}}]}}
Y
  n rollout status deployment scratch --timeout=60s >/dev/null
  pod=$(field pods '{.items[?(@.metadata.labels.app=="scratch")].spec.nodeName}')
  check "$ns drain keeps local storage" refused "$k" drain "$pod" --ignore-daemonsets --timeout=5s
  check "$ns a selector takes only its pods" "$k" drain "$pod" --ignore-daemonsets --pod-selector=app=web --timeout=90s
  check "$ns scratch is where it was" is "$pod" pods '{.items[?(@.metadata.labels.app=="scratch")].spec.nodeName}'
  check "$ns with leave it goes" "$k" drain "$pod" --ignore-daemonsets --delete-emptydir-data --timeout=90s
  check "$ns uncordon" "$k" uncordon "$node" "$pod"
  check "$ns delete" "$k" delete namespace "$ns" --timeout=60s
}

old=${BERTH_KUBECTL_120:-$root/build/kubectl-1.20/usr/bin/kubectl}
session kubectl workloads-new
if [ -x "$old" ]; then session "$old" workloads-old; else echo "SKIP kubectl 1.20 is not here (tests/e2e/kubectl_verbs.sh fetches it)"; fi
finish
