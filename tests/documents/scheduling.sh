#!/usr/bin/env bash
# Chapter 16 "Scheduling", typed as it stands; the API server is restarted where the chapter restarts the master.
. "$(dirname "$0")/lib.sh"
s=$examples/scheduler d=$examples/descheduler m=$examples/admission f=$examples/affinity
again() { stop_up; rm -f "$work/data/up.json"; start_up --nodes 3 --prefix node --zones 3 "$@"; ready; }
test_same() { [ -n "$(field pod "$2" spec.nodeName)" ] && [ "$(field pod "$1" spec.nodeName)" = "$(field pod "$2" spec.nodeName)" ]; }
valid() { "$berth" scheduler --validate --policy-config-file "$1"; }
policy() { # policy PREDICATES-AND-PRIORITIES: a policy file with them
  printf '{"apiVersion": "v1", "kind": "Policy", %s}' "$1" >"$work/policy.json"
}
dump() { kubectl get nodes,pods,services,replicasets -A -o yaml >"$work/dump.yaml"; }
again

section "16.2.4, the default policy"
holds "scheduler.json" valid "$s/policy-default.json"
section 16.2.4.1
holds "the modified policy" valid "$s/policy-modified.yaml"
section 16.2.5.1
for name in NoVolumeZoneConflict MaxEBSVolumeCount MaxGCEPDVolumeCount MatchInterPodAffinity NoDiskConflict PodToleratesNodeTaints CheckVolumeBinding \
  CheckNodeCondition PodToleratesNodeNoExecuteTaints MaxAzureDiskVolumeCount; do
  policy "\"predicates\": [{\"name\" : \"$name\"}], \"priorities\": []"
  holds "$name" valid "$work/policy.json"
done
for name in CheckNodeLabelPresence checkServiceAffinity; do
  policy "\"predicates\": [{\"name\" : \"$name\"}], \"priorities\": []"
  holds "$name" valid "$work/policy.json"
  doc "names no label and lets every node pass" valid "$work/policy.json"
done
section 16.2.5.2
for name in PodFitsResources PodFitsHostPorts HostName MatchNodeSelector; do
  policy "\"predicates\": [{\"name\" : \"$name\"}], \"priorities\": []"
  holds "$name" valid "$work/policy.json"
done
section 16.2.5.3
policy '"predicates": [{"name":"ZoneAffinity","argument":{"serviceAffinity":{"labels":["rack"]}}}], "priorities": []'
holds "serviceAffinity" valid "$work/policy.json"
policy '"predicates": [{"name":"RackPreferred","argument":{"labelsPresence":{"labels":["rack","region"],"presence": true}}}], "priorities": []'
holds "labelsPresence" valid "$work/policy.json"
oc label node node1 rack=s1 region=r1 >/dev/null; oc label node node2 rack=s2 >/dev/null; dump
oc create deployment web --image=pause --dry-run=client -o yaml >"$work/web.yaml"
holds "presence true: all labels must be there" sh -c "'$berth' place --cluster '$work/dump.yaml' --policy-config-file '$work/policy.json' --pods '$work/web.yaml' --copies 3 2>/dev/null | grep -c ' node1$' | grep -qx 3"
policy '"predicates": [{"name":"x","argument":{"labelsPresence":{"labels":["rack","region"],"presence": false}}}], "priorities": []'
holds "presence false: none may be there" sh -c "'$berth' place --cluster '$work/dump.yaml' --policy-config-file '$work/policy.json' --pods '$work/web.yaml' --copies 3 2>/dev/null | grep -c ' node3$' | grep -qx 3"
section 16.2.6.1
for name in SelectorSpreadPriority InterPodAffinityPriority LeastRequestedPriority BalancedResourceAllocation NodeAffinityPriority TaintTolerationPriority \
  EqualPriority MostRequestedPriority ImageLocalityPriority ServiceSpreadingPriority; do
  policy "\"predicates\": [], \"priorities\": [{\"name\" : \"$name\", \"weight\" : 1}]"
  holds "$name" valid "$work/policy.json"
done
policy '"predicates": [], "priorities": [{"name" : "NodePreferAvoidPodsPriority", "weight" : 10000}]'
holds "NodePreferAvoidPodsPriority" valid "$work/policy.json"
for weight in 0 -1; do
  policy "\"predicates\": [], \"priorities\": [{\"name\" : \"EqualPriority\", \"weight\" : $weight}]"
  holds "a weight of $weight is refused" refused valid "$work/policy.json"
done
section 16.2.6.2
policy '"predicates": [], "priorities": [{"name":"RackSpread","weight" : 1,"argument":{"serviceAntiAffinity":{"label": "rack"}}}]'
holds "serviceAntiAffinity" valid "$work/policy.json"
policy '"predicates": [], "priorities": [{"name":"x","weight" : 1,"argument":{"labelPreference":{"label": "rack","presence": true}}}]'
holds "labelPreference" valid "$work/policy.json"
holds "nodes with the label are preferred" sh -c "'$berth' place --cluster '$work/dump.yaml' --policy-config-file '$work/policy.json' --pods '$work/web.yaml' 2>/dev/null | grep -E ' node[12]$'"
policy '"predicates": [], "priorities": [{"name":"x","weight" : 1,"argument":{"labelPreference":{"presence": true}}}]'
holds "without a label nodes that do not have one are preferred" sh -c "'$berth' place --cluster '$work/dump.yaml' --policy-config-file '$work/policy.json' --pods '$work/web.yaml' 2>/dev/null | grep -E ' node3$'"
section 16.2.8
for name in region-zone-rack-annotated region-zone-rack city-building-room require-region combined; do holds "$name" valid "$s/policy-$name.yaml"; done
holds "require-region: only nodes with the label region" sh -c "'$berth' place --cluster '$work/dump.yaml' --policy-config-file '$s/policy-require-region.yaml' --pods '$work/web.yaml' --copies 3 2>/dev/null | grep -c ' node1$' | grep -qx 3"

section "16.2.4.1, restarting the master"
for what in api controllers; do doc "same flags and --data-dir" oc master-restart $what; done
ln -s "$berth" "$work/bin/master-restart"
doc "systemctl restart berth-server" master-restart api

section "16.2.4.1, kubernetesMasterConfig.schedulerConfigFile"
printf 'kubernetesMasterConfig:\n  schedulerConfigFile: %s\n' "$s/policy-require-region.yaml" >"$work/master-config.yaml"
again --master-config "$work/master-config.yaml"
oc create -f "$work/web.yaml" >/dev/null
soon "1/1" oc get deployment web
holds "the master's policy is in force" sh -c "oc get pods -o wide | grep -q ' node1 '"
doc "berth-scheduler-default-scheduler" oc explain "$(oc get pods -o name | head -n 1)"
doc "RequireRegion" kubectl -n kube-system get configmap berth-scheduler-default-scheduler -o jsonpath='{.data.configuration\.yaml}'
oc delete deployment web >/dev/null
again

section 16.3.2
doc "clusterrole.rbac.authorization.k8s.io/descheduler-cluster-role" kubectl create -f "$d/cluster-role-documents.yaml"
doc "serviceaccount/descheduler-sa.yaml created" oc create sa descheduler-sa.yaml -n kube-system
doc "serviceaccount/descheduler-sa created" oc create sa descheduler-sa -n kube-system
doc "clusterrolebinding.rbac.authorization.k8s.io/descheduler-cluster-role-binding created" oc create clusterrolebinding descheduler-cluster-role-binding \
  --clusterrole=descheduler-cluster-role --serviceaccount=kube-system:descheduler-sa
section 16.3.3
for policy in policy policy-remove-duplicates policy-low-node-utilization policy-anti-affinity policy-node-affinity; do
  holds "$policy.yaml" "$berth" descheduler --validate --policy-config-file "$d/$policy.yaml"
done
doc "0 pods would be evicted" "$berth" descheduler --policy-config-file "$d/policy.yaml" --dry-run
section 16.3.4
doc "configmap/descheduler-policy-configmap created" oc create configmap descheduler-policy-configmap -n kube-system --from-file="$d/policy.yaml"
doc "LowNodeUtilization" oc get configmap descheduler-policy-configmap -n kube-system -o yaml
section "16.3.5 and 16.3.6"
doc "job.batch/descheduler-job created" oc create -f "$d/job.yaml"
soon "descheduler-job" oc get pods -n kube-system
job_done() { oc get job descheduler-job -n kube-system -o json | grep -q '"succeeded": 1'; }
soon_holds "the descheduler does its work and ends" job_done

section 16.4.2
sed 's/"<namespace>.*"/pause/' "$examples/custom-scheduler/custom-scheduler.yaml" >"$work/custom-scheduler.yaml"
doc "deployment.apps/custom-scheduler created" oc create -f "$work/custom-scheduler.yaml"
section 16.4.3
doc "pod/custom-scheduler-example created" oc create -f "$examples/custom-scheduler/custom-scheduler-example.yaml"
doc "Pending" oc get pod custom-scheduler-example
# The account's token stands for the pod's: it has the documented rights and no more.
kubectl config view --raw --minify -o json | python3 -c '
import json, sys
config = json.load(sys.stdin)
config["users"] = [{"name": "scheduler", "user": {"token": sys.argv[1]}}]
config["contexts"][0]["context"]["user"] = "scheduler"
print(json.dumps(config))' "$(kubectl -n kube-system create token custom-scheduler)" >"$work/scheduler.kubeconfig"
"$berth" scheduler --kubeconfig "$work/scheduler.kubeconfig" --scheduler-name custom-scheduler --no-leader-elect --secure-port 0 >"$work/scheduler.log" 2>&1 & second=$!
trap 'kill $second 2>/dev/null; cleanup' EXIT
soon_holds "the pod is scheduled and runs" running custom-scheduler-example
doc "Running" oc get pod custom-scheduler-example
doc "custom-scheduler" sh -c "oc describe pod custom-scheduler-example | grep -E 'Scheduled.*custom-scheduler'"
doc "Successfully assigned" oc describe pod custom-scheduler-example
kill $second; wait $second 2>/dev/null
# One of the default's own name waits for its Lease instead of placing the same pods.
"$berth" scheduler --secure-port 0 >"$work/scheduler.log" 2>&1 & second=$!
soon_holds "a second default scheduler waits" grep -q "waiting for leader .* on Lease kube-system/kube-scheduler" "$work/scheduler.log"
oc create deployment many --image=pause --replicas=40 >/dev/null
soon "40/40" oc get deployment many
holds "nobody places a pod twice" never_says "already assigned" oc get events
oc delete deployment many >/dev/null; kill $second; wait $second 2>/dev/null
clear_pods; oc delete -f "$work/custom-scheduler.yaml" >/dev/null

section 16.8.2
doc "pod/with-node-affinity created" oc create -f "$f/with-node-affinity-required.yaml"
soon_holds "no node has the label" pends with-node-affinity
oc label node node2 e2e-az-NorthSouth=e2e-az-South >/dev/null
soon_holds "one has" on with-node-affinity node2
oc delete pod with-node-affinity --now >/dev/null
oc label node node3 e2e-az-EastWest=e2e-az-East >/dev/null
doc "pod/with-node-affinity created" oc create -f "$f/with-node-affinity-preferred.yaml"
soon_holds "the preferred node" on with-node-affinity node3
section 16.8.2.1
doc "node/node1 labeled" oc label node node1 e2e-az-name=e2e-az1
doc "pod/e2e-az2 created" oc create -f "$f/e2e-az2.yaml"
soon_holds "it is on node1" on e2e-az2 node1
section 16.8.2.2
doc "--overwrite is false" oc label node node1 e2e-az-name=e2e-az3
doc "node/node1 labeled" oc label node node1 e2e-az-name=e2e-az3 --overwrite
doc "pod/e2e-az3 created" oc create -f "$f/e2e-az3.yaml"
soon_holds "it is on node1" on e2e-az3 node1
clear_pods
section 16.8.3.1
doc "node/node1 labeled" oc label node node1 zone=us
doc "pod/pod-s1 created" oc create -f "$f/pod-zone-us.yaml"
soon_holds "it is on node1" on pod-s1 node1
soon "Running" oc get pod -o wide
clear_pods
section 16.8.3.2
doc "node/node1 labeled" oc label node node1 zone=emea --overwrite
doc "pod/pod-s1 created" oc create -f "$f/pod-zone-us.yaml"
soon_holds "it cannot be scheduled" pends pod-s1
doc "didn't match Pod's node affinity/selector" oc describe pod pod-s1
doc "the label zone=us (has emea)" oc explain pod pod-s1
doc "kubectl label node node1 zone=us --overwrite" oc explain pod pod-s1
clear_pods

section "16.9.2 and 16.9.2.1"
doc "pod/security-s1 created" oc create -f "$f/security-s1.yaml"
soon_holds "it runs" running security-s1
doc "pod/with-pod-affinity created" oc create -f "$f/with-pod-affinity.yaml"
soon_holds "the other goes to its zone" test_same security-s1 with-pod-affinity
section "16.9.2 and 16.9.2.2"
doc "pod/security-s2 created" oc create -f "$f/security-s2.yaml"
soon_holds "it runs" running security-s2
doc "pod/with-pod-antiaffinity created" oc create -f "$f/with-pod-antiaffinity.yaml"
soon_holds "the other keeps away" off with-pod-antiaffinity "$(field pod security-s2 spec.nodeName)"
clear_pods
section 16.9.3.1
doc "pod/team4 created" oc create -f "$f/team4.yaml"
soon_holds "it runs" running team4
doc "pod/team4a created" oc create -f "$f/pod-team4a.yaml"
soon_holds "on the same node" on team4a "$(field pod team4 spec.nodeName)"
section 16.9.3.2
doc "pod/pod-s1 created" oc create -f "$f/pod-s1.yaml"
soon_holds "it runs" running pod-s1
doc "pod/pod-s2 created" oc create -f "$f/pod-s2-apart.yaml"
soon_holds "not on the same node" off pod-s2 "$(field pod pod-s1 spec.nodeName)"
oc delete pod pod-s2 --now >/dev/null
section 16.9.3.3
doc "pod/pod-s2 created" oc create -f "$f/pod-s2-together.yaml"
soon_holds "it remains pending" pends pod-s2
doc "Pending" oc get pod pod-s2
doc "a pod with security=s2" oc explain pod pod-s2
clear_pods

section 16.5.2
again --master-config "$m/master-config-node-name.yaml"
kubectl create role developer --verb='*' --resource=pods >/dev/null
kubectl create rolebinding developers --role=developer --user=dev >/dev/null
by_name='{apiVersion: v1, kind: Pod, metadata: {name: by-name}, spec: {nodeName: node1, containers: [{name: c, image: i}]}}'
doc "Logged into" oc login -u dev
doc "dev" oc whoami
doc "node selection by nodeName is prohibited by policy for your role" make "$by_name"
doc "Logged into" oc login -u system:admin
doc "pod/by-name created" make "$by_name"
clear_pods
section 16.5.3
again --master-config "$m/master-config-regions.yaml"
i=0; for region in us-east us-west apac-east; do i=$((i + 1)); oc label node node$i region=$region superregion=${region%-*} --overwrite >/dev/null; done
doc "Created project us" oc adm new-project us --node-selector=superregion=us
doc "added: \"dev\"" oc adm policy add-role-to-user edit dev -n us
oc login -u dev -n us >/dev/null
doc "node selection by label(s) [region] is prohibited by policy for your role" make '{apiVersion: v1, kind: Pod, metadata: {name: picky}, spec: {nodeSelector: {region: us-east}, containers: [{name: c, image: i}]}}'
soon "created" make '{apiVersion: v1, kind: Pod, metadata: {name: relaxed}, spec: {containers: [{name: c, image: i}]}}'
oc login -u system:admin >/dev/null
doc '"superregion": "us"' oc get pod relaxed -n us -o json
section 16.5.4
again --master-config "$m/master-config-pod-node-selector.yaml"
doc "namespace/ns1 created" oc create -f "$m/namespace-ns1.yaml"
soon "pod/hello-pod created" oc create -f "$m/hello-pod.yaml" --namespace=ns1
oc get pod hello-pod --namespace=ns1 -o json >"$work/hello.json"
for label in '"env": "test"' '"infra": "fedora"' '"os": "fedora"'; do holds "$label was merged" grep -qF "$label" "$work/hello.json"; done
again --admission-control-config-file "$m/admission-configuration.yaml" --enable-admission-plugins PodNodeSelector
oc delete pod hello-pod --namespace=ns1 --now >/dev/null
soon "pod/hello-pod created" oc create -f "$m/hello-pod.yaml" --namespace=ns1
oc delete namespace ns1 >/dev/null

section 16.6.5
again
doc "priorityclass.scheduling.k8s.io/high-priority created" oc create -f "$examples/priority/priority-class-high-v1beta1.yaml"
doc "pod/nginx created" oc create -f "$examples/priority/pod-nginx.yaml"
holds "its priority" is pod nginx spec.priority 1000000
clear_pods
section 16.6.6
printf 'kubernetesMasterConfig:\n  schedulerArgs:\n    disablePreemption:\n    - "true"\n' >"$work/master-config.yaml"
again --master-config "$work/master-config.yaml"
for i in 1 2 3; do
  make >/dev/null "{apiVersion: v1, kind: Pod, metadata: {name: low-$i}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: i, resources: {requests: {cpu: \"30\"}}}]}}"
done
soon_holds "the nodes are full" running low-3
make >/dev/null '{apiVersion: v1, kind: Pod, metadata: {name: vip}, spec: {priorityClassName: high-priority, containers: [{name: c, image: i, resources: {requests: {cpu: "20"}}}]}}'
soon_holds "a higher pod waits" pends vip
holds "nobody is preempted" test "$(oc get pods --no-headers | grep -c '^low-')" = 3
clear_pods

section 16.11.2.1
again
pinned node1 "$examples/taints/pod-three-taints.yaml" >/dev/null
three=$(sed -n 's/^  name: //p' "$examples/taints/pod-three-taints.yaml" | head -n 1)
soon_holds "the pod runs" running "$three"
doc "node/node1 tainted" oc adm taint nodes node1 key1=value1:NoSchedule
doc "node/node1 tainted" oc adm taint nodes node1 key1=value1:NoExecute
doc "node/node1 tainted" oc adm taint nodes node1 key2=value2:NoSchedule
holds "it continues running" running "$three"
clear_pods; oc adm taint nodes node1 key1- key2- >/dev/null
section "16.11.3 and 16.11.4"
doc "node/node1 tainted" oc adm taint nodes node1 key1=value1:NoExecute
for form in equal exists; do
  pinned node1 "$examples/taints/pod-$form.yaml" >/dev/null
  soon_holds "operator $form" on "$(sed -n 's/^  name: //p' "$examples/taints/pod-$form.yaml" | head -n 1)" node1
done
clear_pods; oc adm taint nodes node1 key1- >/dev/null
section 16.11.4.1.1
again --master-config "$examples/taints/master-config-default-toleration-seconds.yaml"
doc "pod/hello-pod created" oc create -f "$m/hello-pod.yaml"
doc "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" sh -c "oc describe pod hello-pod | grep -i -A1 toleration"
clear_pods
section 16.11.5
again --master-config "$examples/taints/master-config-taint-based-evictions.yaml" --controller-arg node-monitor-grace-period=4s
oc annotate node node3 sim.berth.dev/dead=true >/dev/null
soon "node.kubernetes.io/unreachable:NoExecute" sh -c "oc describe node node3 | grep -i -A2 taint"
oc annotate node node3 sim.berth.dev/dead- >/dev/null
section 16.11.6
make >/dev/null '{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}'
soon "agent-" oc get pods -o name
for taint in not-ready unreachable; do holds "$taint without seconds" sh -c "oc describe pods -l a=b | grep -qE 'node.kubernetes.io/$taint:NoExecute op=Exists\$'"; done
oc delete daemonset agent >/dev/null; clear_pods
section 16.11.7.1
doc "node/node1 tainted" oc adm taint nodes node1 dedicated=groupName:NoSchedule
section 16.11.7.2
doc "node/node1 labeled" oc label node node1 dedicated=groupName
doc "created" oc create -f "$examples/taints/pod-dedicated.yaml"
soon_holds "the dedicated pod is on the dedicated node" on dedicated-group node1
section 16.11.7.3
doc "node/node2 tainted" oc adm taint nodes node2 disktype=ssd:NoSchedule
doc "node/node3 tainted" oc adm taint nodes node3 disktype=ssd:PreferNoSchedule
oc label node node2 disktype=ssd >/dev/null
doc "created" oc create -f "$examples/taints/pod-special-hardware.yaml"
soon_holds "the pod for special hardware is on it" on needs-ssd node2
finish
