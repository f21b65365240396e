#!/usr/bin/env bash
# Simulated nodes as the documents' examples meet them: zones under old names, reservations, whose word counts, berth's own roles as pods, and a restart
# that finds everything as it was.
. "$(dirname "$0")/lib.sh"
command -v kubectl >/dev/null || { echo "skipped: no kubectl"; echo "0 passed, 0 failed"; exit 0; }
field() { kubectl get "$@" 2>/dev/null; }
is() { [ "$(field "$1" "$2" -o jsonpath="$3")" = "$4" ]; }
count_is() { [ "$(kubectl get nodes -o name | wc -l)" = "$1" ]; }
cat >"$work/scenario.yaml" <<'X'
kubelet:
  systemReserved: {memory: 2Gi}
  evictionHard: {memory.available: 500Mi}
X

# The nodes asked for are there again without asking.
start_up --nodes 3 --zones 2 --prefix box-
check "three nodes" eventually 20 count_is 3
check "of the name asked for" kubectl get node box-3
stop_up TERM
start_up
check "a start without flags says that it goes on" grep -q '^as at the last start: .*--nodes 3' "$work/up.log"
check "still three nodes" eventually 20 sh -c "kubectl get node box-3 && [ \"\$(kubectl get nodes -o name | wc -l)\" = 3 ]"
stop_up TERM
start_up --nodes 4 --compatibility documents --scenario "$work/scenario.yaml"
check "a flag wins, and the change is said" grep -q '^--nodes 4 (3 at the last start)' "$work/up.log"
check "a fourth node" eventually 20 kubectl get node box-4
check "in the zones of the first start" eventually 10 is node box-4 '{.metadata.labels.topology\.kubernetes\.io/zone}' zone-b
check "a broken memory of the last start is refused with its file" sh -c "mkdir -p '$work/broken' && echo x >'$work/broken/up.json' && ! timeout 10 '$berth' up --data-dir '$work/broken' --listen 127.0.0.1:0 2>'$work/err'; grep -q up.json '$work/err'"

# Reservations, by the documents' arithmetic and by today's.
kubectl create -f - >/dev/null <<'X'
apiVersion: v1
kind: Node
metadata: {name: ten, annotations: {sim.berth.dev/fleet: default, sim.berth.dev/capacity: "cpu=4,memory=10Gi"}, labels: {topology.kubernetes.io/zone: zone-x}}
X
check "10 Gi with 2 Gi reserved are 8 Gi" eventually 10 is node ten '{.status.allocatable.memory}' 8Gi
check "a node that others made has its zone under the old name too" eventually 10 is node ten '{.metadata.labels.failure-domain\.beta\.kubernetes\.io/zone}' zone-x
kubectl label node ten topology.kubernetes.io/zone=zone-y --overwrite >/dev/null
check "which follows the present one" eventually 10 is node ten '{.metadata.labels.failure-domain\.beta\.kubernetes\.io/zone}' zone-y
# 21.2.7: the class counts before all, also before priority and use; today it does not.
kubectl create priorityclass urgent --value=1000 >/dev/null
pressure() { # pressure SUFFIX: a small BestEffort pod of high priority, and a Burstable one far over its request
  kubectl create -f - <<X
apiVersion: v1
kind: Pod
metadata: {name: small-$1, annotations: {sim.berth.dev/memory: 1Gi}}
spec: {nodeName: ten, priorityClassName: urgent, containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: hog-$1, annotations: {sim.berth.dev/memory: 9Gi}}
spec: {nodeName: ten, containers: [{name: c, image: nginx, resources: {requests: {memory: 1Gi}}}]}
X
}
check "memory runs short" pressure documents
check "the documents' order takes the BestEffort pod" eventually 40 is pod small-documents '{.status.reason}' Evicted
check "and leaves the Burstable one" is pod hog-documents '{.status.phase}' Running
kubectl delete pod small-documents hog-documents --grace-period=0 --force >/dev/null 2>&1
stop_up TERM
start_up --compatibility today
check "today 500 Mi go for the threshold besides" eventually 20 is node ten '{.status.allocatable.memory}' 7692Mi

check "memory runs short again" pressure today
check "today's order takes the pod of lower priority" eventually 40 is pod hog-today '{.status.reason}' Evicted
check "with amounts that can be read" says "available: 0. Container c was using 9Gi, request is 1Gi" kubectl get pod hog-today -o jsonpath='{.status.message}'
check "and leaves the BestEffort one" is pod small-today '{.status.phase}' Running
kubectl delete pod small-today hog-today --grace-period=0 --force >/dev/null 2>&1
kubectl delete node ten >/dev/null
# 16.9.2, verbatim.
cat >"$work/team4.yaml" <<'X'
apiVersion: v1
kind: Pod
metadata:
  name: security-s1
  labels:
    security: S1
spec:
  containers:
  - name: security-s1
    image: docker.io/ocpqe/hello-pod
X
cat >"$work/affinity.yaml" <<'X'
apiVersion: v1
kind: Pod
metadata:
  name: with-pod-affinity
spec:
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - labelSelector:
          matchExpressions:
          - key: security
            operator: In
            values:
            - S1
        topologyKey: failure-domain.beta.kubernetes.io/zone
  containers:
  - name: with-pod-affinity
    image: docker.io/ocpqe/hello-pod
X
check "the documents' first pod" kubectl create -f "$work/team4.yaml"
check "runs" eventually 10 is pod security-s1 '{.status.phase}' Running
check "the pod with affinity to it" kubectl create -f "$work/affinity.yaml"
check "runs" eventually 10 is pod with-pod-affinity '{.status.phase}' Running
zone_of() { kubectl get node "$(kubectl get pod "$1" -o jsonpath='{.spec.nodeName}')" -o jsonpath='{.metadata.labels.failure-domain\.beta\.kubernetes\.io/zone}'; }
check "in the same zone" [ "$(zone_of security-s1)" = "$(zone_of with-pod-affinity)" ]
sed 's/with-pod-affinity/nowhere/; s/failure-domain.beta.kubernetes.io.zone/example.com\/rack/' "$work/affinity.yaml" | kubectl create -f - >/dev/null
check "a key that no node has is an event of its own" eventually 10 says "No node has the label example.com/rack" kubectl get events --field-selector reason=TopologyKeyNotFound
check "with the keys that are there" says "topology.kubernetes.io/zone" kubectl get events --field-selector reason=TopologyKeyNotFound
check "FailedScheduling keeps its words" says "didn't match pod affinity rules" kubectl get events --field-selector reason=FailedScheduling,involvedObject.name=nowhere
check "explain says it too" says "No node has the label example.com/rack" "$berth" explain pod nowhere

# 16.3: the role, the account, the policy and the Job of the document.
check "the documents' role" kubectl apply -f "$root/examples/descheduler/cluster-role-documents.yaml"
kubectl -n kube-system create sa descheduler-sa >/dev/null
kubectl create clusterrolebinding descheduler-e2e --clusterrole=descheduler-cluster-role --serviceaccount=kube-system:descheduler-sa >/dev/null
cat >"$work/policy.yaml" <<'X'
apiVersion: "descheduler/v1alpha1"
kind: "DeschedulerPolicy"
strategies:
  "RemoveDuplicates":
     enabled: true
X
kubectl create configmap descheduler-policy-configmap -n kube-system --from-file="$work/policy.yaml" >/dev/null
cat >"$work/job.yaml" <<'X'
apiVersion: batch/v1
kind: Job
metadata:
  name: descheduler-job
  namespace: kube-system
spec:
  parallelism: 1
  completions: 1
  template:
    metadata:
      name: descheduler-pod
      annotations:
        scheduler.alpha.kubernetes.io/critical-pod: "true"
    spec:
        containers:
        - name: descheduler
          image: registry.access.redhat.com/openshift3/ose-descheduler
          volumeMounts:
          - mountPath: /policy-dir
            name: policy-volume
          command:
          - "/bin/sh"
          - "-ec"
          - |
            /bin/descheduler --policy-config-file /policy-dir/policy.yaml
        restartPolicy: "Never"
        serviceAccountName: descheduler-sa
        volumes:
        - name: policy-volume
          configMap:
            name: descheduler-policy-configmap
X
for node in box-2 box-3 box-4; do kubectl cordon $node >/dev/null; done
kubectl create deployment twins --image=nginx --replicas=0 >/dev/null
kubectl set resources deployment twins --requests=cpu=8 >/dev/null
kubectl scale deployment twins --replicas=2 >/dev/null
twins_on() { kubectl get pods -l app=twins --field-selector status.phase=Running -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort | uniq | wc -l; }
check "two twins on one node" eventually 10 sh -c "[ \"\$(kubectl get pods -l app=twins --field-selector status.phase=Running,spec.nodeName=box-1 -o name | wc -l)\" = 2 ]"
for node in box-2 box-3 box-4; do kubectl uncordon $node >/dev/null; done
check "the documents' Job" kubectl create -f "$work/job.yaml"
check "completes" eventually 30 is '-n=kube-system' job/descheduler-job '{.status.succeeded}' 1
parted() { [ "$(twins_on)" = 2 ]; }
check "and parted the twins" eventually 10 parted
check "its log tells what it did" eventually 5 says twins kubectl -n kube-system logs job/descheduler-job
job() { # job NAME ARGS-AS-JSON: another Job of the same account
  kubectl create -f - <<X
apiVersion: batch/v1
kind: Job
metadata: {name: $1, namespace: kube-system}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: ${account:-descheduler-sa}
      containers: [{name: d, image: berth, args: $2, volumeMounts: [{name: p, mountPath: /policy-dir}]}]
      volumes: [{name: p, configMap: {name: descheduler-policy-configmap}}]
X
}
check "a Job that asks for a file of this machine" job thief '[descheduler, --policy-config-file, /etc/passwd]'
check "fails" eventually 20 is '-n=kube-system' job/thief '{.status.failed}' 1
check "and says why" eventually 5 says "no volume of the container is mounted there" kubectl -n kube-system logs job/thief
check "one that asks for another's credentials" job impostor '[descheduler, --policy-config-file, /policy-dir/policy.yaml, --kubeconfig, /policy-dir/policy.yaml]'
check "fails as well" eventually 5 says "not a flag that a pod" kubectl -n kube-system logs job/impostor
account=default
check "an account without rights" job powerless '[descheduler, --policy-config-file, /policy-dir/policy.yaml]'
check "is refused by the API server" eventually 20 is '-n=kube-system' job/powerless '{.status.failed}' 1
check "in its log" eventually 5 says forbidden kubectl -n kube-system logs job/powerless
kubectl -n kube-system create deployment standing --image=berth >/dev/null
kubectl -n kube-system patch deployment standing --type=json -p '[{"op":"add","path":"/spec/template/spec/containers/0/args","value":["scheduler","--scheduler-name","second","--no-leader-elect"]},{"op":"add","path":"/spec/template/spec/serviceAccountName","value":"second"}]' >/dev/null
kubectl -n kube-system create sa second >/dev/null
kubectl create clusterrolebinding second --clusterrole=cluster-admin --serviceaccount=kube-system:second >/dev/null
kubectl run by-second --image=nginx --overrides='{"spec":{"schedulerName":"second"}}' >/dev/null
check "a scheduler as a pod places pods" eventually 30 is pod by-second '{.status.phase}' Running
schedulers() { pgrep -fc -- '--scheduler-name second --no-leader-elect .*'"$work" ; }
check "by a process of its own" [ "$(schedulers)" = 1 ]
kubectl -n kube-system delete deployment standing --wait=false >/dev/null
no_schedulers() { [ "$(schedulers)" = 0 ]; }
check "which ends with its pod" eventually 20 no_schedulers

# Two fleets never give the same address twice.
"$berth" nodes --fleet other --prefix other- --nodes 5 >/dev/null 2>&1 & fleet=$!
check "a second fleet" eventually 20 kubectl get node other-5
check "has ranges of its own" sh -c "[ \"\$(kubectl get nodes -o jsonpath='{range .items[*]}{.spec.podCIDR}{\"\n\"}{end}' | sort | uniq -d | wc -l)\" = 0 ]"
kill $fleet; wait $fleet 2>/dev/null
check "the documents' namespace is there" kubectl get ns openshift-machine-api
stop_up TERM
check "nothing runs on" [ -z "$(pgrep -f -- "$work/data")" ]
finish
