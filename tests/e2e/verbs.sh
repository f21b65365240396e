#!/usr/bin/env bash
# The verbs of the documents (SPEC A8): their commands with `berth` for `oc`, kubectl's words in the answers, help at every level.
. "$(dirname "$0")/lib.sh"
start_up --nodes 3
b() { "$berth" "$@"; }
node=node-1

# Labels and selectors.
check "label a node" says "node/$node labeled" b label node $node zone=us
check "a label that is there is kept" says "'zone' already has a value (us), and --overwrite is false" b label node $node zone=emea
check "overwrite" b label node $node zone=emea --overwrite
check "the label attracts" says "$node" b get nodes -l zone=emea
check "remove a label" says "node/$node unlabeled" b label node $node zone-
check "nothing has it now" says "No resources found" b get nodes -l zone=emea

# Taints.
check "taint" says "node/$node tainted" b adm taint nodes $node disktype=ssd:NoSchedule
check "a second effect of the same key" b adm taint nodes $node disktype=ssd:PreferNoSchedule
check "describe shows the first taint on the Taints line" grep -qi "Taints: *disktype=ssd:NoSchedule" <(b describe node $node)
check "and the second below" grep -q "^ *disktype=ssd:PreferNoSchedule" <(b describe node $node)
check "remove one effect" says "node/$node untainted" b adm taint nodes $node disktype:NoSchedule-
check "remove the key" b adm taint nodes $node disktype-
check "no taint is left" grep -q "Taints: *<none>" <(b describe node $node)
check "a taint that is not there" says 'taint "disktype" not found' b adm taint nodes $node disktype-
check "a malformed taint" refused b adm taint nodes $node disktype=ssd:Sometimes
check "an unknown node" says 'Error from server (NotFound): nodes "nope" not found' b adm taint nodes nope a=b:NoSchedule

# Pods of files.
cat >"$work/hello-pod.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: hello-pod, labels: {app: hello}}
spec:
  nodeSelector: {kubernetes.io/hostname: node-2}
  tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 6000}]
  containers: [{name: hello, image: hello, resources: {requests: {cpu: 250m}}}]
Y
check "create" says "pod/hello-pod created" b create -f "$work/hello-pod.yaml"
check "create again" says 'Error from server (AlreadyExists): pods "hello-pod" already exists' b create -f "$work/hello-pod.yaml"
check "it runs where it should" eventually 20 grep -qE "Running.*node-2" <(b get pod hello-pod -o wide)
check "describe pod shows its tolerations" grep -q "node.kubernetes.io/unreachable:NoExecute op=Exists for 6000s" <(b describe pod hello-pod)
check "and who scheduled it" grep -qE "Normal +Scheduled .*default-scheduler +Successfully assigned default/hello-pod to node-2" <(b describe pod hello-pod)
check "the node counts it" grep -qE "default +hello-pod +250m \([0-9]+%\)" <(b describe node node-2)
check "json is sorted and without managed fields" sh -c "'$berth' get pod hello-pod -o json | python3 -c 'import json,sys; d=json.load(sys.stdin); assert list(d)==sorted(d) and \"managedFields\" not in d[\"metadata\"]'"
check "delete" says 'pod "hello-pod" deleted' b delete -f "$work/hello-pod.yaml"
check "delete what is not there" says 'pods "nope" not found' b delete pod nope
check "delete needs a name" says "no name or label selector" b delete pod
check "priority classes as the documents show them" says system-node-critical b get priorityclasses

# Bad files: nothing half done, the file named.
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: half}\nspec: {containers: [{name: c, image: i}]}\n---\nkind: Nothing\n' >"$work/half.yaml"
check "a bad object names its file" says "$work/half.yaml: apiVersion not set" b create -f "$work/half.yaml"
check "and nothing of the file was created" refused b get pod half
check "a missing file" says "nope.yaml" b create -f nope.yaml
check "an unknown type" says "the server doesn't have a resource type \"gizmos\"" b get gizmos

# Nodes and projects.
check "cordon" says "node/node-3 cordoned" b adm cordon node-3
check "cordoned" says SchedulingDisabled b get node node-3
check "drain" says "node/node-3 drained" b adm drain node-3 --ignore-daemonsets
check "uncordon" says "node/node-3 uncordoned" b adm uncordon node-3
check "new project with a node selector" says "Created project" b adm new-project east --node-selector=region=east
check "the annotation is there" says "region=east" b get namespace east -o yaml

# Help and completion.
for verb in up server scheduler controllers node nodes create apply get describe delete label annotate explain place parity "adm taint" "adm drain" "adm cordon" "adm new-project"; do
  # shellcheck disable=SC2086
  check "berth $verb --help" says "Usage" b $verb --help
done
check "berth --help" says "explain" b --help
check "an unknown command names the near one" says "explain" b explian
check "bash completion is bash" bash -n <(b completion bash)
check "zsh completion" says bashcompinit b completion zsh
finish
