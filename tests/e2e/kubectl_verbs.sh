#!/usr/bin/env bash
# Every verb of SPEC A1 with stock kubectl (the one installed, and Debian's 1.20 where it can be unpacked), against one `berth up`.
. "$(dirname "$0")/lib.sh"
start_up --nodes 4

session() { # session KUBECTL NAMESPACE
  local k="$1 -n $2" bare=$1 ns=$2
  check "$ns: version" $bare version
  check "$ns: create namespace" $bare create namespace "$ns"
  cat >"$work/web.yaml" <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: web, image: "nginx:1", resources: {requests: {cpu: 10m, memory: 16Mi}}}
Y
  check "$ns: apply creates" says "deployment.apps/web created" $k apply -f "$work/web.yaml"
  check "$ns: apply again is unchanged" says "deployment.apps/web unchanged" $k apply -f "$work/web.yaml"
  check "$ns: rollout status" $k rollout status deployment/web --timeout=60s
  check "$ns: get" says "2/2" $k get deployments
  check "$ns: get -o wide shows the node" says "node" $k get pods -o wide
  check "$ns: get -o yaml" says "kind: Deployment" $k get deployment web -o yaml
  check "$ns: get -o jsonpath" says "web" $k get deployment web -o jsonpath='{.metadata.name}'
  check "$ns: get -o name -l" says "pod/web-" $k get pods -l app=web -o name
  check "$ns: get --field-selector" says "web-" $k get pods --field-selector status.phase=Running
  check "$ns: get in chunks" says "web-" $k get pods --chunk-size=1
  check "$ns: describe pod shows events" says "Scheduled" $k describe pods -l app=web
  check "$ns: describe node" says "Allocatable" $bare describe nodes
  check "$ns: explain" says "replicas" $bare explain deployment.spec
  check "$ns: api-resources" says "deploy" $bare api-resources
  # The small shell of simulated pods is reached as newer kubectls ask; older ones are told so.
  check "$ns: exec on a simulated node" says "$([ "$ns" = verbs-old ] && echo "is reached over WebSockets" || echo etc)" $k exec deployment/web -- ls
  check "$ns: label" says "labeled" $k label deployment web tier=front
  check "$ns: annotate" says "annotated" $k annotate deployment web note=hello
  check "$ns: patch (strategic)" says "patched" $k patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"1"}]}]}}}}'
  check "$ns: patch (merge)" says "patched" $k patch deployment web --type merge -p '{"metadata":{"annotations":{"note":null}}}'
  check "$ns: patch (json)" says "patched" $k patch deployment web --type json -p '[{"op":"replace","path":"/spec/replicas","value":3}]'
  check "$ns: scale" says "scaled" $k scale deployment web --replicas=1
  check "$ns: set image and rollout" says "image updated" $k set image deployment/web web=nginx:2
  check "$ns: rollout status after it" $k rollout status deployment/web --timeout=60s
  check "$ns: rollout history" says "REVISION" $k rollout history deployment/web
  check "$ns: rollout undo" says "rolled back" $k rollout undo deployment/web
  check "$ns: rollout restart" says "restarted" $k rollout restart deployment/web
  check "$ns: rollout pause and resume" sh -c "$k rollout pause deployment/web && $k rollout resume deployment/web"
  check "$ns: autoscale" says "autoscaled" $k autoscale deployment web --min=1 --max=3 --cpu-percent=80
  check "$ns: run" $k run one --image=busybox --restart=Never
  check "$ns: it runs" eventually 30 sh -c "$k get pod one -o jsonpath='{.status.phase}' | grep -q Running"
  check "$ns: logs answers" $k logs one
  check "$ns: create configmap" $k create configmap settings --from-literal=a=1
  $k get configmap settings -o yaml 2>/dev/null | sed 's/a: "1"/a: "2"/' >"$work/replace.yaml"
  check "$ns: replace" says "replaced" $k replace -f "$work/replace.yaml"
  printf '#!/bin/sh\nsed -i "s/a: .2./a: \\"3\\"/" "$1"\n' >"$work/editor"; chmod +x "$work/editor"
  check "$ns: edit" env KUBE_EDITOR="$work/editor" $k edit configmap settings
  check "$ns: the edit is there" says "3" $k get configmap settings -o jsonpath='{.data.a}'
  check "$ns: create secret and serviceaccount" sh -c "$k create secret generic s --from-literal=k=v && $k create serviceaccount robot"
  check "$ns: apply --server-side" says "serverside-applied" $k apply --server-side --force-conflicts -f "$work/web.yaml"
  check "$ns: auth can-i" says "yes" $k auth can-i create pods
  check "$ns: events" says "Scheduled" $k get events
  local node; node=$($bare get nodes -o jsonpath='{.items[0].metadata.name}')
  check "$ns: taint" says "tainted" $bare taint nodes "$node" e2e=true:NoSchedule
  check "$ns: untaint" says "untainted" $bare taint nodes "$node" e2e:NoSchedule-
  check "$ns: cordon" says "cordoned" $bare cordon "$node"
  check "$ns: uncordon" says "uncordoned" $bare uncordon "$node"
  check "$ns: drain" $bare drain "$node" --ignore-daemonsets --force --timeout=60s
  $bare uncordon "$node" >/dev/null
  check "$ns: wait" $k wait --for=condition=Available deployment/web --timeout=60s
  check "$ns: get --watch" says "web" timeout 5 $k get deployments --watch --request-timeout=3s
  check "$ns: dry run stores nothing" sh -c "$k create configmap ghost --dry-run=server && ! $k get configmap ghost"
  check "$ns: an unknown field is refused by name" says 'unknown field' sh -c "printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nspecc: 1\n' | $bare -n $ns create --validate=true -f - || true"
  check "$ns: delete with grace" says "deleted" sh -c "$k run two --image=busybox --restart=Never && $k delete pod two --grace-period=1"
  check "$ns: delete --cascade" says "deleted" $k delete -f "$work/web.yaml"
  check "$ns: pods go with their owner" eventually 30 sh -c "[ -z \"\$($k get pods -l app=web -o name)\" ]"
  check "$ns: delete namespace" $bare delete namespace "$ns" --timeout=60s
}

session kubectl verbs-new
old=${BERTH_KUBECTL_120:-}
if [ -z "$old" ]; then
  mkdir -p "$root/build/kubectl-1.20" && cd "$root/build/kubectl-1.20" || exit 1
  [ -x usr/bin/kubectl ] || { apt-get download -q kubernetes-client >/dev/null 2>&1 && dpkg-deb -x kubernetes-client_*.deb . 2>/dev/null; }
  cd "$work" || exit 1
  old=$root/build/kubectl-1.20/usr/bin/kubectl
fi
if [ -x "$old" ]; then session "$old" verbs-old; else echo "SKIP kubectl 1.20 (package kubernetes-client cannot be downloaded)"; fi
finish
