#!/usr/bin/env bash
# Admission by configuration (SPEC E1-E5): the documents' master-config.yaml sections, a restart between each, through kubectl.
. "$(dirname "$0")/lib.sh"
k() { kubectl "$@"; }
dev() { kubectl --as dev --as-group developers "$@"; }
a=$root/examples/admission
pod() { # pod NAME [SPEC-FIELDS]
  printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s"},"spec":{%s"containers":[{"name":"c","image":"pause"}]}}' "$1" "${2:-}"
}
create() { printf '%s' "$2" | kubectl --as "$1" --as-group developers create -f -; }
node_of() { kubectl get pod "$1" -o jsonpath='{.spec.nodeName}' "${@:2}"; }
again() { stop_up; rm -f "$work/data/up.json"; start_up --nodes 4 --zones 2 "$@"; }  # Only with these flags.
selector_is() { [ "$(kubectl get pod "$1" -n "$2" -o jsonpath='{.spec.nodeSelector}')" = "$3" ] || { kubectl get pod "$1" -n "$2" -o jsonpath='{.spec.nodeSelector}'; return 1; }; }

# Without any configuration a developer may choose nodes.
start_up --nodes 4 --zones 2
eventually 20 kubectl wait --for=condition=Ready node --all --timeout=1s
kubectl create role developer --verb='*' --resource=pods,pods/status,deployments.apps,events >/dev/null
kubectl create rolebinding developers --role=developer --group=developers >/dev/null
kubectl create clusterrole binder --verb=create --resource=pods/binding >/dev/null
check "the developer may not bind" refused kubectl auth can-i create pods --subresource=binding --as dev --as-group developers -q
check "nodeName is free to use" create dev "$(pod by-name '"nodeName":"node-1",')"
check "default tolerations are there" says "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" kubectl describe pod by-name
check "an unreachable node, too" says "node.kubernetes.io/unreachable:NoExecute op=Exists for 300s" kubectl describe pod by-name
k delete pod by-name --wait=true >/dev/null

# The documents' example for nodeName.
again --master-config "$a/master-config-node-name.yaml"
check "nodeName is refused to who cannot bind" says "node selection by nodeName is prohibited by policy for your role" create dev "$(pod by-name '"nodeName":"node-1",')"
check "... nothing was created" refused kubectl get pod by-name
check "the administrator may" k create -f - <<<"$(pod by-name '"nodeName":"node-1",')"
check "a pod without may be created" create dev "$(pod free)"

# The region story: five data centers, two super-regions; region is blacklisted, superregion is the project's.
again --master-config "$a/master-config-regions.yaml"
i=0; for region in us-east us-west apac-east apac-west; do i=$((i + 1)); kubectl label node node-$i region=$region superregion=${region%-*} --overwrite >/dev/null; done
check "a project of the U.S." says "us-project" "$berth" adm new-project us-project --node-selector=superregion=us
check "... carries the selector" [ "$(kubectl get ns us-project -o jsonpath='{.metadata.annotations.openshift\.io/node-selector}')" = superregion=us ]
kubectl -n us-project create rolebinding developers --clusterrole=edit --group=developers >/dev/null
in_project() { printf '%s' "$1" | dev -n us-project create -f -; }
check "the developer's choice of a region is refused" says "node selection by label(s) [region] is prohibited by policy for your role" in_project "$(pod picky '"nodeSelector":{"region":"us-east"},')"
check "in a Deployment's template as well" says "node selection by label(s) [region] is prohibited" in_project '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"picky"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"nodeSelector":{"region":"us-east"},"containers":[{"name":"c","image":"pause"}]}}}}'
check "hostname is refused too" says "label(s) [kubernetes.io/hostname]" in_project "$(pod picky '"nodeSelector":{"kubernetes.io/hostname":"node-1"},')"
check "without a selector it is accepted" in_project "$(pod relaxed)"
check "... and got the project's" selector_is relaxed us-project '{"superregion":"us"}'
in_us() { case $(node_of relaxed -n us-project) in node-1 | node-2) ;; *) return 1 ;; esac; }
check "... and runs in the U.S." eventually 20 in_us
check "a selector against the project's is refused" says "pod node label selector conflicts with its project node label selector" in_project "$(pod abroad '"nodeSelector":{"superregion":"apac"},')"
kubectl -n us-project create rolebinding may-bind --clusterrole=binder --user=dev >/dev/null
check "who is given pods/binding may choose the region" in_project "$(pod chosen '"nodeSelector":{"region":"us-west"},')"
there() { [ "$(node_of chosen -n us-project)" = node-2 ]; }
check "... and gets it" eventually 20 there

# PodNodeSelector, in both forms of configuration.
for flags in "--master-config $a/master-config-pod-node-selector.yaml" "--admission-control-config-file $a/admission-configuration.yaml --enable-admission-plugins PodNodeSelector"; do
  # shellcheck disable=SC2086
  again $flags
  kubectl apply -f "$a/namespace-ns1.yaml" >/dev/null 2>&1
  check "the documents' pod in ns1" k create -n ns1 -f "$a/hello-pod.yaml"
  check "... has its own labels and the project's" selector_is hello-pod ns1 '{"env":"test","infra":"fedora","os":"fedora"}'
  check "a conflict with the project is refused" says "pod node label selector conflicts with its namespace node label selector" k create -n ns1 -f - <<<"$(pod other '"nodeSelector":{"env":"production"},')"
  check "a label outside the whitelist is refused" says "pod node label selector labels conflict with its namespace whitelist" k create -n ns1 -f - <<<"$(pod other '"nodeSelector":{"disk":"ssd"},')"
  k create ns plain >/dev/null 2>&1
  check "a project without selectors has the cluster's default" k create -n plain -f - <<<"$(pod defaulted)"
  check "... k3=v3" selector_is defaulted plain '{"k3":"v3"}'
  k delete ns ns1 plain --wait=true >/dev/null
done

# DefaultTolerationSeconds off, controllerArguments, a retired gate.
again --master-config "$a/master-config-no-default-tolerations.yaml"
check "the retired gate is said to be one" grep -q "TaintBasedEvictions" "$work/up.log"
check "no project selector, no default selector any more" k create -f - <<<"$(pod bare)"
check "... and no default tolerations" [ -z "$(kubectl get pod bare -o jsonpath='{.spec.tolerations}')" ]
check "... nor a selector" [ -z "$(kubectl get pod bare -o jsonpath='{.spec.nodeSelector}')" ]
placed() { [ -n "$(node_of bare)" ]; }
check "the pod is placed" eventually 20 placed
lost=$(node_of bare)
kubectl annotate node "$lost" sim.berth.dev/dead=true >/dev/null
unknown() { [ "$(kubectl get node "$lost" -o jsonpath='{.status.conditions[?(@.type=="Ready")].reason}')" = NodeStatusUnknown ]; }
check "controllerArguments: the grace period is 5 s" eventually 20 unknown
# On a loaded machine others miss their 5 s as well, and then nobody is tainted for a while.
check "... the unreachable taint follows" eventually 90 says "node.kubernetes.io/unreachable:NoExecute" kubectl describe node "$lost"
marked() { [ -n "$(kubectl get pod bare -o jsonpath='{.metadata.deletionTimestamp}')" ]; }
check "... and without default tolerations the pod goes at once" eventually 20 marked

# A plugin that is not there is said, and nothing else happens; wrong configurations end the start with the reason, and change nothing.
stop_up
echo 'admissionConfig: {pluginConfig: {BuildDefaults: {configuration: {kind: BuildDefaultsConfig, apiVersion: v1}}}}' >"$work/builds.yaml"
start_up --nodes 4 --zones 2 --master-config "$work/builds.yaml"
check "a plugin that is not there is named" grep -q "pluginConfig.BuildDefaults: there is no admission plugin \"BuildDefaults\" here" "$work/up.log"
stop_up
wrong() { # wrong TEXT YAML
  printf '%s' "$2" >"$work/wrong.yaml"
  timeout 20 "$berth" up --data-dir "$work/data" --listen 127.0.0.1:0 --nodes 1 --master-config "$work/wrong.yaml" >"$work/wrong.log" 2>&1 && return 1
  grep -qF -- "$1" "$work/wrong.log" || { cat "$work/wrong.log"; return 1; }
}
check "an unknown feature gate is named" wrong "NoSuchGate" 'kubernetesMasterConfig: {controllerArguments: {feature-gates: ["NoSuchGate=true"]}}'
check "an unknown controller argument is named" wrong "no-such-flag" 'kubernetesMasterConfig: {controllerArguments: {no-such-flag: ["1"]}}'
finish
