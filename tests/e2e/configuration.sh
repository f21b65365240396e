#!/usr/bin/env bash
# Every file that configures berth, with a slip in it: --validate and the start say file, line and what is meant, and nothing is touched
# (SPEC E1, B2, F3, G1, H1). Then what the documents' settings do: schedulerArgs, second schedulers, rights that are missing.
. "$(dirname "$0")/lib.sh"

start_up --nodes 2
F=$work/f.yaml
file() { printf '%b' "$1" >"$F"; }
# slip DESCRIPTION TEXT YAML COMMAND...: --validate fails and says TEXT.
slip() {
  local what=$1 text=$2; file "$3"; shift 3
  check "$what" says "$text" "$berth" "$@" --validate
  check "... exit code 1" refused "$berth" "$@" --validate
}
# good DESCRIPTION YAML COMMAND...: --validate passes.
good() { local what=$1; file "$2"; shift 2; check "$what" "$berth" "$@" --validate; }

# master-config.yaml and AdmissionConfiguration
N=$work/never
slip "master-config: admissionconfig" "f.yaml:2: admissionconfig: unknown field \"admissionconfig\"; did you mean \"admissionConfig\"?" \
  'kind: MasterConfig\nadmissionconfig: {}\n' server --data-dir "$N" --master-config "$F"
slip "master-config: wrong kind" "f.yaml:1: kind: must be MasterConfig" 'kind: MasterConf\n' up --data-dir "$N" --master-config "$F"
slip "master-config: a misspelt blacklist" "did you mean \"nodeSelectorLabelBlacklist\"?" \
  'admissionConfig: {pluginConfig: {PodNodeConstraints: {configuration: {nodeSelectorLabelBlackList: [a]}}}}\n' server --data-dir "$N" --master-config "$F"
slip "master-config: plugins" "f.yaml:2: admissionConfig.plugins: unknown field" 'admissionConfig:\n  plugins: {}\n' server --data-dir "$N" --master-config "$F"
slip "master-config: a key twice" "f.yaml:2: kind: stands here a second time" 'kind: MasterConfig\nkind: MasterConfig\n' server --data-dir "$N" --master-config "$F"
good "master-config: OpenShift's other sections" 'kind: MasterConfig\napiVersion: v1\noauthConfig: {}\netcdClientInfo: {}\n' server --data-dir "$N" --master-config "$F"
check "... are told once" says "known, and without effect here: oauthConfig (line 3), etcdClientInfo (line 4)" "$berth" server --data-dir "$N" --master-config "$F" --validate
slip "AdmissionConfiguration: plugin" "did you mean \"plugins\"?" 'apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugin: []\n' \
  server --data-dir "$N" --admission-control-config-file "$F"
check "all findings at once, flags too" says "--event-ttl" "$berth" server --data-dir "$N" --admission-control-config-file "$F" --event-ttl soon --validate
check "... the file's as well" says "did you mean \"plugins\"?" "$berth" server --data-dir "$N" --admission-control-config-file "$F" --event-ttl soon --validate
check "--validate touches nothing" [ ! -e "$N" ]

# The scheduler
slip "Policy: a name twice" "f.yaml:4: predicates[1].name: Duplicate value" 'kind: Policy\npredicates:\n- {name: NoDiskConflict}\n- {name: NoDiskConflict}\n' scheduler --policy-config-file "$F"
slip "KubeSchedulerConfiguration: a plugin's name" "did you mean \"NodeResourcesFit\"?" \
  'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: NodeResourceFit}]}]\n' scheduler --config "$F"
slip "schedulerArgs: a slip" "f.yaml:3: kubernetesMasterConfig.schedulerArgs.disablePremption: unknown flag of the scheduler" \
  'kubernetesMasterConfig:\n  schedulerArgs:\n    disablePremption: ["true"]\n' scheduler --master-config "$F"
good "schedulerArgs: the document's words" 'kubernetesMasterConfig:\n  schedulerArgs:\n    disablePreemption=false\n' scheduler --master-config "$F"
slip "controllerArguments: a slip" "did you mean \"node-monitor-grace-period\"?" 'kubernetesMasterConfig:\n  controllerArguments:\n    node-monitor-grace-perod: [5s]\n' \
  controllers --master-config "$F"
check "a controller's name" says "did you mean \"replicaset-controller\"?" "$berth" controllers --controller-arg 'controllers=*,-replicasets-controller' --validate

# The descheduler, the autoscaler
P='apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nstrategies:\n'
slip "descheduler: half a type" "did you mean \"requiredDuringSchedulingIgnoredDuringExecution\"?" \
  "$P"'  RemovePodsViolatingNodeAffinity: {enabled: true, params: {nodeAffinityType: [requiredDuringScheduling]}}\n' descheduler --policy-config-file "$F"
good "descheduler: callouts as printed" "$P"'  "RemoveDuplicates":\n     enabled: false 1\n' descheduler --policy-config-file "$F"
slip "autoscaler: a GPU that is not allowed" "f.yaml:2: spec.resourceLimits.gpus[0].type: \"nvidia.com/gpus\" is not allowed" \
  'kind: ClusterAutoscaler\nspec: {resourceLimits: {gpus: [{type: nvidia.com/gpus, min: 0, max: 1}]}}\n' autoscaler --options "$F"
gpu() { printf 'apiVersion: autoscaling.openshift.io/v1\nkind: ClusterAutoscaler\nmetadata: {name: default}\nspec: {resourceLimits: {gpus: [{type: nvidia.com/gpus, min: 0, max: 1}]}}\n' | kubectl apply -f -; }
check "... nor in the API" says "must be nvidia.com/gpu or amd.com/gpu" gpu

# Nodes, simulated and real; the webhook's rules
slip "scenario: evictionhard" "f.yaml:2: kubelet.evictionhard: unknown field \"evictionhard\"; did you mean \"evictionHard\"?" 'kubelet:\n  evictionhard: {}\n' nodes --scenario "$F"
slip "devices: a key twice" "is there twice" '' nodes --devices "gpu.example.com=2,model=a,model=b"
slip "KubeletConfiguration" "did you mean \"evictionHard\"?" 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHrad: {}\n' node --config "$F"
slip "node-config.yaml" "did you mean \"eviction-hard\"?" 'kubeletArguments: {eviction-hrad: ["memory.available<1Gi"]}\n' up --data-dir "$N" --node-config "$F"
slip "pod rules" "f.yaml:4: rules[0].nodeLabel: unknown field \"nodeLabel\"; did you mean \"nodeLabels\"?" \
  'rules:\n- name: a\n  match: {groups: [g]}\n  nodeLabel: {a: b}\n  tolerations: [{operator: Exists}]\n' webhook --rules "$F"
slip "kubeconfig: no such context" "does not exist" 'rules: [{match: {groups: [g]}, nodeLabels: {a: b}}]\n' webhook --rules "$F" --context nowhere

# Every role has it, and what is well passes.
for role in server scheduler controllers autoscaler node nodes up; do
  check "berth $role --validate" "$berth" $role --validate
done

# A second and a third scheduler beside the first: each its own Lease, each places its pods.
for name in a b; do
  "$berth" scheduler --scheduler-name $name --secure-port 0 >"$work/$name.log" 2>&1 &
  pids="${pids:-} $!"
done
pod() { printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s"},"spec":{"schedulerName":"%s","containers":[{"name":"c","image":"pause"}]}}' "$1" "$2" | kubectl create -f -; }
for name in a b; do pod "of-$name" $name >/dev/null; done
placed() { [ -n "$(kubectl get pod "$1" -o jsonpath='{.spec.nodeName}')" ]; }
for name in a b; do
  check "scheduler $name places its pod" eventually 20 placed of-$name
  check "... by a Lease of its own" kubectl -n kube-system get lease $name
done
"$berth" scheduler --scheduler-name a --secure-port 0 >"$work/a2.log" 2>&1 &
pids="$pids $!"
check "one more of a name waits, and says for whom" eventually 20 grep -q "waiting for leader .* on Lease kube-system/a" "$work/a2.log"

# The document's rights alone (16.4.2): what may not be listed is named, and pods are placed all the same.
kubectl -n kube-system create serviceaccount custom-scheduler >/dev/null
kubectl create clusterrolebinding custom-scheduler --clusterrole=system:kube-scheduler --serviceaccount=kube-system:custom-scheduler >/dev/null
token=$(kubectl -n kube-system create token custom-scheduler)
kubectl config view --raw >"$work/custom.kubeconfig"
KUBECONFIG=$work/custom.kubeconfig kubectl config set-credentials custom --token="$token" >/dev/null
KUBECONFIG=$work/custom.kubeconfig kubectl config set-context --current --user=custom >/dev/null
"$berth" scheduler --kubeconfig "$work/custom.kubeconfig" --scheduler-name custom-scheduler --secure-port 0 >"$work/custom.log" 2>&1 &
pids="$pids $!"
pod custom-scheduler-example custom-scheduler >/dev/null
check "a scheduler with the document's rights places its pods" eventually 30 placed custom-scheduler-example
check "... without a Lease that it may not have" grep -q "leading without the Lease kube-system/custom-scheduler" "$work/custom.log"
check "... and says which right is missing" grep -q "going on without storageclasses: .*cannot list resource \"storageclasses\"" "$work/custom.log"

# A pod that nobody takes says so.
pod plain default-scheduler >/dev/null
eventually 20 placed plain
pod lost default-schedular >/dev/null
check "a pod of a scheduler that nobody is" eventually 90 says "schedulers known here by the pods they took: a, b, custom-scheduler, default-scheduler; did you mean \"default-scheduler\"?" kubectl describe pod lost
# shellcheck disable=SC2086
kill $pids; wait $pids 2>/dev/null
finish
