#!/usr/bin/env bash
# Queues by kubectl: quotas, cohorts, preemption, pods, and what a new user does wrong.
. "$(dirname "$0")/lib.sh"
start_up --nodes 4 --real-node off --queues
apply() { printf '# YAML\n%s\n' "$1" | kubectl apply -f -; }  # What begins with a brace kubectl takes for JSON.
queue() { # queue NAME COHORT CPU [SPEC]: a ClusterQueue and a LocalQueue of its name
  apply "{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: $1}, spec: {cohort: $2, namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: $3}]}]}]${4:+, $4}}}" &&
    apply "{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {name: $1, namespace: default}, spec: {clusterQueue: $1}}"
}
job() { # job NAME QUEUE CPU PODS [LABELS]
  apply "{apiVersion: batch/v1, kind: Job, metadata: {name: $1, labels: {kueue.x-k8s.io/queue-name: $2${5:+, $5}}}, spec: {parallelism: $4, completions: $4, template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: c, image: i, resources: {requests: {cpu: $3}}}]}}}}"
}
wl() { kubectl get workloads.kueue.x-k8s.io -l "kueue.x-k8s.io/job-uid=$(kubectl get job "$1" -o jsonpath='{.metadata.uid}')" -o jsonpath="$2"; }
why() { wl "$1" '{range .items[0].status.conditions[*]}{.type}={.status} {.reason}: {.message}; {end}'; }
runs() { [ "$(kubectl get job "$1" -o jsonpath='{.spec.suspend}')" = false ]; }
waits() { [ "$(kubectl get job "$1" -o jsonpath='{.spec.suspend}')" = true ]; }

# ---- the kinds
check "the kinds come" eventually 20 says 'workloadpriorityclasses' kubectl api-resources --api-group=kueue.x-k8s.io
check "explain knows them" says 'borrowingLimit' kubectl explain clusterqueue.spec.resourceGroups.flavors.resources
check "a flavor" apply '{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: default}}'
check "a queue" queue a all 3
check "and one that shares with it" queue b all 3 'preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}'
check "it may admit" eventually 10 says 'Can admit new workloads' kubectl get cq a -o jsonpath='{.status.conditions[0].message}'
check "get shows columns" says 'PENDING WORKLOADS' kubectl get cq
check "and those of LocalQueues" says 'CLUSTERQUEUE' kubectl get lq

# ---- a Job waits for its quota
check "a Job of two pods" job one a 1 2
check "runs" eventually 10 runs one
check "its Workload is admitted" eventually 10 says 'Admitted=True Admitted: The workload is admitted' why one
check "both pods come" eventually 20 says '2' kubectl get job one -o jsonpath='{.status.active}'
sleep 1.1  # Conditions tell the time in seconds: of two that got their quota in one second either may go first.
check "a Job that borrows" job two a 1 3
check "runs, too" eventually 10 runs two
check "a Job for which there is no room" job three a 2 1
check "is suspended" waits three
check "and says what is missing, and how much" eventually 10 says "QuotaReserved=False Pending: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed" why three
check "describe shows it" says 'insufficient unused quota' kubectl describe workloads.kueue.x-k8s.io
check "no pod of it was ever made" refused says 'three' kubectl get pods
check "the queue counts it" eventually 10 says '1 2' kubectl get lq a -o jsonpath='{.status.pendingWorkloads} {.status.admittedWorkloads}'
check "usage is shown" says '"borrowed":"2"' kubectl get cq a -o jsonpath='{.status.flavorsUsage}'

# ---- who is owed quota takes it back
check "a Job of the other team" job owed b 3 1
check "runs" eventually 20 runs owed
check "somebody was preempted for it" says 'Preempted to accommodate a workload' kubectl get events
check "and waits" eventually 10 waits two
check "with a condition" says 'Preempted=True InCohortReclamation' why two
check "its pods are gone" eventually 20 refused says 'two-' kubectl get pods

# ---- usage comes back
check "the Job is deleted" kubectl delete job owed
check "and the other runs again" eventually 20 runs two
check "a user suspends it" kubectl patch job two --type merge -p '{"spec":{"suspend":true}}'
check "its quota comes back" eventually 20 runs three
check "its Workload says so" says 'The workload is deactivated' why two
check "the user resumes it" kubectl patch job two --type merge -p '{"spec":{"suspend":false}}'
check "it waits for its turn" eventually 10 waits two
check "a quota is raised" queue a all 8
check "and it runs" eventually 20 runs two
kubectl delete jobs --all >/dev/null
check "all is given back" eventually 20 says '"total":"0"' kubectl get cq a -o jsonpath='{.status.flavorsUsage}'

# ---- pods
pod() { # pod NAME CPU [GROUP [COUNT]]
  local group='' count=''
  [ -z "${3:-}" ] || group=", kueue.x-k8s.io/pod-group-name: $3"
  [ -z "${4:-}" ] || count="kueue.x-k8s.io/pod-group-total-count: \"$4\""
  apply "{apiVersion: v1, kind: Pod, metadata: {name: $1, labels: {kueue.x-k8s.io/queue-name: a$group}, annotations: {$count}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: i, resources: {requests: {cpu: $2}}}]}}"
}
placed() { [ -n "$(kubectl get pod "$1" -o jsonpath='{.spec.nodeName}')" ]; }
check "a pod" pod alone 1
check "starts" eventually 20 placed alone
check "the first of a group" pod g1 1 group 2
check "is told that others are missing" eventually 10 says 'group has fewer runnable pods than expected' kubectl get events
check "and is gated" refused placed g1
check "the second" pod g2 1 group 2
check "both start" eventually 20 sh -c 'test -n "$(kubectl get pod g1 -o jsonpath="{.spec.nodeName}")" && test -n "$(kubectl get pod g2 -o jsonpath="{.spec.nodeName}")"'
check "a group without a count is refused" says 'should be set' pod bad 1 group
check "a count of none, too" says 'group total count should be greater than zero' pod bad 1 group 0
check "a gang of the scheduler's" apply '{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: pg}, spec: {schedulingPolicy: {gang: {minCount: 2}}}}'
member() { apply "{apiVersion: v1, kind: Pod, metadata: {name: $1, labels: {kueue.x-k8s.io/queue-name: a}}, spec: {schedulingGroup: {podGroupName: pg}, terminationGracePeriodSeconds: 0, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}"; }
check "its first member" member m1
check "is gated" refused placed m1
check "its second" member m2
check "and both start" eventually 20 placed m1
kubectl delete pods --all --now >/dev/null

# ---- mistakes
check "a queue that is not there" job lost nowhere 1 1
check "is told" eventually 10 says "Inadmissible: LocalQueue nowhere doesn't exist" why lost
check "a class that is not there" job classless a 1 1 'kueue.x-k8s.io/priority-class: nope'
check "is told, too" eventually 10 says '"nope" not found' kubectl get events
check "a flavor that is not there" apply '{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: c}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: nope, resources: [{name: cpu, nominalQuota: 1}]}]}]}}'
check "makes the queue inactive" eventually 10 says 'references missing ResourceFlavor(s): nope' kubectl get cq c -o jsonpath='{.status.conditions[0].message}'
check "cohorts in a circle" apply '{apiVersion: v1, kind: List, items: [{apiVersion: kueue.x-k8s.io/v1beta1, kind: Cohort, metadata: {name: left}, spec: {parentName: right}}, {apiVersion: kueue.x-k8s.io/v1beta1, kind: Cohort, metadata: {name: right}, spec: {parentName: left}}]}'
check "and a queue below" queue d left 1
check "it says so" eventually 10 says 'CohortHasCycle' kubectl get cq d -o jsonpath='{.status.conditions[0].reason}'
check "nobody else waits for it" job fine a 1 1
check "as can be seen" eventually 10 runs fine
check "a resource too few" says 'same number of resources' apply '{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: bad}, spec: {resourceGroups: [{coveredResources: [cpu, memory], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 1}]}]}]}}'
check "a limit without a cohort" says 'borrowingLimit must be nil when cohort is empty' apply '{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: bad}, spec: {resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 1, borrowingLimit: 1}]}]}]}}'
check "less than nothing" says 'nominalQuota' apply '{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: bad}, spec: {resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: -1}]}]}]}}'
check "another queue for a Job that runs" says 'field is immutable while the Job is not suspended' kubectl label job fine --overwrite kueue.x-k8s.io/queue-name=b
check "another ClusterQueue for a LocalQueue" says 'field is immutable' kubectl patch lq a --type merge -p '{"spec":{"clusterQueue":"b"}}'
check "a used flavor stays" sh -c 'kubectl delete rf default --wait=false && kubectl get rf default'
check "a queue is drained" kubectl patch cq a --type merge -p '{"spec":{"stopPolicy":"HoldAndDrain"}}'
check "who ran there waits" eventually 20 waits fine
check "and it says so" says 'Stopped' kubectl get cq a -o jsonpath='{.status.conditions[0].reason}'

# ---- a restart in the middle
check "the queue opens" kubectl patch cq a --type merge -p '{"spec":{"stopPolicy":"None"}}'
check "and they run" eventually 20 runs fine
stop_up
start_up --real-node off
check "a restart remembers the flag, and who runs" eventually 20 says 'Admitted=True' why fine
check "new ones come in" job after a 1 1
check "and run" eventually 20 runs after
check "the definitions can be printed" says 'kind: MutatingAdmissionPolicy' "$berth" queues --definitions
check "bad flags are told" says 'not a duration' "$berth" queues --pods-ready-timeout soon --validate
finish
