#!/usr/bin/env bash
# berth's own verbs (SPEC A8): the commands of the documents, with `berth` for `oc`, against one `berth up`; help at every level; completion.
. "$(dirname "$0")/lib.sh"
start_up --nodes 0 --real-node off
b=$berth

cat <<'Y' >"$work/nodes.yaml"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: node1, labels: {kubernetes.io/hostname: node1}}, status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: node2, labels: {kubernetes.io/hostname: node2}}, status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}}
Y
check "create -f a List" says "node/node2 created" "$b" create -f "$work/nodes.yaml"
check "create again says what is there" says 'nodes "node1" already exists' "$b" create -f "$work/nodes.yaml"
check "create again fails" refused "$b" create -f "$work/nodes.yaml"
# A node that nobody reports for is tainted by the node life cycle: these commands only look at the objects.

# Taints.
check "adm taint nodes" says "node/node1 tainted" "$b" adm taint nodes node1 key1=value1:NoSchedule
check "the same key with another effect" says "node/node1 tainted" "$b" adm taint nodes node1 key1=value1:NoExecute
check "a second key" says "node/node1 tainted" "$b" adm taint nodes node1 key2=value2:NoSchedule
check "describe node | grep -i taint" says "key1=value1:NoExecute" "$b" describe node node1
check "describe node has its taints as kubectl does" grep -qE "^Taints: +key1=value1:No" <("$b" describe node node1)
check "a taint that is there is refused" says "already has key1 taint(s) with same effect(s) and --overwrite is false" "$b" adm taint nodes node1 key1=other:NoSchedule
check "--overwrite" says "node/node1 modified" "$b" adm taint nodes node1 key1=other:NoSchedule --overwrite
check "it was replaced" says "key1=other:NoSchedule" "$b" describe node node1
check "removing one effect" says "node/node1 untainted" "$b" adm taint nodes node1 key1:NoExecute-
check "removing a key" says "node/node1 untainted" "$b" adm taint nodes node1 key1-
check "removing what is not there" says 'taint "key1" not found' "$b" adm taint nodes node1 key1-
check "a wrong effect is refused" says "invalid taint spec" "$b" adm taint nodes node1 a=b:Never
check "dedicated=groupName" says "node/node2 tainted" "$b" adm taint nodes node2 dedicated=groupName:NoSchedule
check "disktype=ssd" says "node/node2 tainted" "$b" adm taint nodes node2 disktype=ssd:PreferNoSchedule
check "--all" says "node/node2 tainted" "$b" adm taint nodes --all every=one:PreferNoSchedule
check "an unknown node" says 'nodes "node9" not found' "$b" adm taint nodes node9 a=b:NoSchedule
check "adding and removing one taint at once" says "can not both modify and remove the following taint(s) in the same command: a" "$b" adm taint nodes node1 a=b:NoSchedule a-
check "a duplicate" says "duplicated taints with the same key and effect: a:NoSchedule" "$b" adm taint nodes node1 a=b:NoSchedule a=c:NoSchedule
check "--dry-run=client" says "node/node1 tainted (dry run)" "$b" adm taint nodes node1 dry=run:NoSchedule --dry-run=client
check "--dry-run=server" says "node/node1 tainted (server dry run)" "$b" adm taint nodes node1 dry=run:NoSchedule --dry-run=server
check "nothing was changed" refused says "dry=run" "$b" describe node node1
check "-o yaml" says "key: shown" "$b" adm taint nodes node1 shown=x:NoSchedule -o yaml
check "-l" says "node/node1 untainted" "$b" adm taint nodes -l kubernetes.io/hostname=node1 shown-
check "-l that matches nothing" says "no node has the labels a=nothing" "$b" adm taint nodes -l a=nothing x=y:NoSchedule
check "two ways of choosing" says "use one of the three" "$b" adm taint nodes node1 --all x=y:NoSchedule
# Somebody else writes the nodes all the time: every change gets through.
(for i in $(seq 60); do "$b" annotate node node1 busy=$i --overwrite; done >/dev/null 2>&1) & busy=$!
check "conflicts are tried again" sh -c "for i in 1 2 3 4 5 6; do '$b' adm taint nodes --all race\$i=x:PreferNoSchedule || exit 1; done"
wait $busy

# Labels.
check "label node" says "node/node1 labeled" "$b" label node node1 e2e-az-name=e2e-az1
check "label node again" says "--overwrite is false" "$b" label node node1 e2e-az-name=e2e-az3
check "label node --overwrite" says "node/node1 labeled" "$b" label node node1 e2e-az-name=e2e-az3 --overwrite
check "get -l" says "node/node1" "$b" get nodes -l e2e-az-name=e2e-az3 -o name
check "label --dry-run=client" says "node/node1 labeled (dry run)" "$b" label node node1 dry=run --dry-run=client
check "label --dry-run=server -o yaml" says "dry: run" "$b" label node node1 dry=run --dry-run=server -o yaml
check "neither set it" says "no" sh -c "'$b' get nodes -l dry=run -o name | grep -q . || echo no"
check "remove a label" says "node/node1 unlabeled" "$b" label node node1 e2e-az-name-
check "annotate" says "node/node1 annotated" "$b" annotate node node1 note=hello

# Pods.
cat >"$work/pod-s1.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: pod-s1, labels: {security: S1}}
spec:
  nodeSelector: {nowhere: "true"}
  tolerations:
  - {key: key2, operator: Equal, value: value2, effect: NoExecute, tolerationSeconds: 3600}
  containers: [{name: security-s1, image: "docker.io/ocpqe/hello-pod"}]
Y
check "create -f pod-s1.yaml" says "pod/pod-s1 created" "$b" create -f "$work/pod-s1.yaml"
check "get pod -o wide" says "pod-s1" "$b" get pod -o wide
check "get pod NAME" says "Pending" "$b" get pod pod-s1
check "describe pod | grep -i toleration" says "key2=value2:NoExecute for 3600s" "$b" describe pod pod-s1
check "describe pod shows why it waits" eventually 20 says "FailedScheduling" "$b" describe pod pod-s1
check "get of several types names each" says "pod/pod-s1" "$b" get pods,nodes
check "get all" says "pod/pod-s1" "$b" get all
check "get -o yaml is an object" says "kind: Pod" "$b" get pod pod-s1 -o yaml
check "get -o json without managed fields" refused says managedFields "$b" get pod pod-s1 -o json
check "get priorityclasses" says "system-node-critical" "$b" get priorityclasses
check "get of an unknown type" says "have a resource type \"podz\"" "$b" get podz
check "get of a missing pod" says 'pods "none" not found' "$b" get pod none
check "apply twice" "$b" apply -f "$work/pod-s1.yaml" --force-conflicts
check "delete" says 'pod "pod-s1" deleted' "$b" delete pod pod-s1
check "it is gone when delete returns" says "not found" "$b" get pod pod-s1
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/hold]}\n' | "$b" create -f - >/dev/null
check "delete waits for finalizers" says "timed out waiting for the condition on configmaps/held" "$b" delete configmap held --timeout=1s
check "--wait=false does not" says 'configmap "held" deleted' "$b" delete configmap held --wait=false
kubectl patch configmap held --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null
check "delete again" says "not found" "$b" delete pod pod-s1
check "delete --ignore-not-found" "$b" delete pod pod-s1 --ignore-not-found
check "create -f missing file" says "missing.yaml: cannot be read" "$b" create -f "$work/missing.yaml"
printf 'kind: Pod\napiVersion: v1\nmetadata: {name: ok}\n---\nkind: Widget\napiVersion: v1\nmetadata: {name: x}\n' >"$work/mixed.yaml"
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: misspelt}\nspec:\n  nodeSelectr: {a: b}\n  containers: [{name: c, image: i}]\n' >"$work/misspelt.yaml"
check "a misspelt field is refused" refused "$b" create -f "$work/misspelt.yaml"
check "in kubectl's words" says 'strict decoding error: unknown field "spec.nodeSelectr"' "$b" create -f "$work/misspelt.yaml"
check "with its line and what was meant" says 'misspelt.yaml:5: unknown field "spec.nodeSelectr"; did you mean "nodeSelector"?' "$b" create -f "$work/misspelt.yaml"
check "by apply, too" says 'misspelt.yaml:5: unknown field' "$b" apply -f "$work/misspelt.yaml"
check "nothing was created" refused "$b" get pod misspelt
check "--validate=warn says so and goes on" says 'Warning: unknown field "spec.nodeSelectr"' "$b" create -f "$work/misspelt.yaml" --validate=warn
check "--dry-run=client sends nothing" says "created (dry run)" "$b" create -f "$work/pod-s1.yaml" --dry-run=client
check "an unknown kind refuses the whole file" refused "$b" create -f "$work/mixed.yaml"
check "nothing of it was created" says 'pods "ok" not found' "$b" get pod ok
check "standard input" says "configmap/in created" sh -c "printf 'kind: ConfigMap\napiVersion: v1\nmetadata: {name: in}\n' | '$b' create -f -"

# What was created is applied later by the same person: no conflict with himself, and what the file drops, goes.
cat >"$work/mine.yaml" <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: mine}
data: {kept: "1", dropped: "2"}
Y
check "create" "$b" create -f "$work/mine.yaml"
"$b" label configmap mine by=hand >/dev/null
sed -i 's/kept: "1", dropped: "2"/kept: "3"/' "$work/mine.yaml"
check "create, then apply" says "configmap/mine serverside-applied" "$b" apply -f "$work/mine.yaml"
check "takes the change" says 'kept: "3"' "$b" get configmap mine -o yaml
check "and drops what the file no longer says" refused says dropped "$b" get configmap mine -o yaml
check "not what others set" says "by: hand" "$b" get configmap mine -o yaml
check "apply again" "$b" apply -f "$work/mine.yaml"
kubectl patch configmap mine --type merge -p '{"data":{"kept":"4"}}' --field-manager=somebody >/dev/null
check "another's field is a conflict" says 'conflict with "somebody"' "$b" apply -f "$work/mine.yaml"
check "a dry run takes nothing over" sh -c "'$b' create configmap still --from-literal=a=b && printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: still}\ndata: {a: b}\n' | '$b' apply --dry-run=server -f - && kubectl get configmap still --show-managed-fields -o yaml | grep -q 'manager: berth-create'"

# What people get wrong.
check "a kind in small letters" says 'did you mean "Pod"?' sh -c "printf 'kind: pod\napiVersion: v1\nmetadata: {name: ok}\n' | '$b' create -f -"
check "a kind of another group" says 'did you mean "Deployment" in version "apps/v1"?' sh -c "printf 'kind: Deployment\napiVersion: v1\nmetadata: {name: ok}\n' | '$b' create -f -"
check "create pod" says "kubectl run web --image=i" "$b" create pod web --image=i
check "a missing object says where it was looked for" says 'configmaps "mine" not found in namespace "kube-system"; there is one with -n default' "$b" get configmap mine -n kube-system
for verb in describe delete; do check "$verb says so as well" says "there is one with -n default" "$b" $verb configmap mine -n kube-system; done
check "one that is nowhere" says 'configmaps "nowhere" not found in namespace "default"' "$b" get configmap nowhere
check "a flag that kubectl has" says "kubectl get pods --watch" "$b" get pods --watch
check "check --data-dir" says "sound:" "$b" check --data-dir "$work/data"

# Objects by flags, as the descheduler's document makes them.
check "create sa" says "serviceaccount/descheduler-sa created" "$b" create sa descheduler-sa -n kube-system
check "create clusterrolebinding" says "clusterrolebinding.rbac.authorization.k8s.io/descheduler-cluster-role-binding created" \
  "$b" create clusterrolebinding descheduler-cluster-role-binding --clusterrole=descheduler-cluster-role --serviceaccount=kube-system:descheduler-sa
printf 'apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\n' >"$work/policy.yaml"
check "create configmap --from-file" says "configmap/descheduler-policy-configmap created" "$b" create configmap descheduler-policy-configmap -n kube-system --from-file="$work/policy.yaml"
check "the file is in it" says "DeschedulerPolicy" "$b" get configmap descheduler-policy-configmap -n kube-system -o yaml
check "create deployment" says "deployment.apps/web created" "$b" create deployment web --image=nginx:1 --replicas=2
check "it is as kubectl makes it" says "web   2" sh -c "kubectl get deployment web -o custom-columns=N:.metadata.name,R:.spec.replicas"
check "create job" says "job.batch/once created" "$b" create job once --image=pause -- sh -c "exit 0"
check "create role" says "role.rbac.authorization.k8s.io/reader created" "$b" create role reader --verb=get,list --resource=pods,deployments.apps
check "create secret generic" says "secret/hidden created" "$b" create secret generic hidden --from-literal=a=b
check "a type that only kubectl makes" says "kubectl create cronjob x --image=i" "$b" create cronjob x --image=i
check "a slip" says 'did you mean "deployment"' "$b" create deploymnet web --image=i
check "a file's name taken for a name" says "is taken as the name" "$b" create sa file.yaml
check "a malformed service account" says "serviceaccount must be <namespace>:<name>" "$b" create clusterrolebinding x --clusterrole=y --serviceaccount=z

# Projects.
check "adm new-project" says "Created project myproject" "$b" adm new-project myproject --node-selector='type=user-node,region=east'
check "its selector is an annotation" says "openshift.io/node-selector: type=user-node,region=east" "$b" get namespace myproject -o yaml
check "create -f --namespace" says "pod/pod-s1 created" sh -c "until '$b' get sa default -n myproject >/dev/null 2>&1; do sleep 0.1; done; sed /nodeSelector/d '$work/pod-s1.yaml' | '$b' create -f - --namespace=myproject"
check "the pod got the project's selector" says "region: east" "$b" get pod pod-s1 -n myproject -o yaml
check "the same project again" says 'already exists' "$b" adm new-project myproject

# For those who come with oc: a link is enough.
mkdir -p "$work/bin"; ln -sf "$b" "$work/bin/oc"; oc=$work/bin/oc
check "oc --help" says "Usage: oc [--log-level LEVEL]" "$oc" --help
check "oc whoami" says "kubernetes-admin" "$oc" whoami
check "oc whoami -c" says "$(kubectl config current-context)" "$oc" whoami -c
check "oc whoami -t without a token" says "no token is currently in use" "$oc" whoami -t
check "oc whoami --show-server" says "https://127.0.0.1" "$oc" whoami --show-server
check "oc new-project" says 'Now using project "team" on server "https://127.0.0.1' "$oc" new-project team --display-name="The team"
check "oc project" says 'Using project "team"' "$oc" project
check "kubectl is in it as well" says "team" kubectl config view --minify -o jsonpath='{.contexts[0].context.namespace}'
check "the requester administers it" says "kubernetes-admin" "$oc" get rolebinding admin -o yaml
check "oc projects" says "  * team" "$oc" projects
check "oc get projects" says "team" "$oc" get projects
check "oc project of another" says 'Now using project "default"' "$oc" project default
check "oc project of none" says 'A project named "nosuch" does not exist on' "$oc" project nosuch
check "oc project -q" says default "$oc" project -q
check "adm policy add-role-to-user" says 'clusterrole.rbac.authorization.k8s.io/view added: "alice"' "$oc" adm policy add-role-to-user view alice -n team
check "the right is there" says yes kubectl auth can-i list pods -n team --as alice
check "not elsewhere" says no kubectl auth can-i list pods -n default --as alice
check "a second user joins the binding" "$oc" adm policy add-role-to-user view bob -n team
check "one binding" says "view" "$oc" get rolebindings -n team -o name
check "both are in it" says "alice" "$oc" get rolebinding view -n team -o yaml
check "a service account" "$oc" adm policy add-role-to-user edit -z default -n team
check "as such" says yes kubectl auth can-i create pods -n team --as system:serviceaccount:team:default
check "adm policy add-cluster-role-to-group" says 'added: "qa"' "$oc" adm policy add-cluster-role-to-group view qa
check "the group's right" says yes kubectl auth can-i list pods -n default --as carol --as-group qa
check "remove-role-from-user" says 'removed: "alice"' "$oc" adm policy remove-role-from-user view alice -n team
check "the right is gone" says no kubectl auth can-i list pods -n team --as alice
check "bob's stays" says yes kubectl auth can-i list pods -n team --as bob
check "a role that there is not" says "Warning: role 'nosuch' not found" "$oc" adm policy add-role-to-user nosuch alice -n team
check "SCCs: what there is instead" says "pod-security.kubernetes.io/enforce" "$oc" adm policy add-scc-to-user anyuid -z default -n team
check "adm policy slip" says 'did you mean "add-role-to-user"' "$oc" adm policy add-roles-to-user view x
check "login as somebody" says 'Logged into "https://127.0.0.1' "$oc" login -u bob -p secret
check "whoami" says bob "$oc" whoami
check "with bob's rights" says 'Forbidden' "$oc" get nodes
check "kubectl is bob, too" says bob kubectl auth whoami
check "login back" says "using existing credentials" "$oc" login -u system:admin
check "whoami again" says kubernetes-admin "$oc" whoami
token=$(kubectl create token default -n team)
check "login --token" says 'as "system:serviceaccount:team:default" using the token provided' "$oc" login --token="$token"
check "whoami -t" says "$token" "$oc" whoami -t
"$oc" login -u system:admin >/dev/null
check "a wrong token" says "The token provided is invalid or expired." "$oc" login --token=nonsense
check "leaves the login as it was" says kubernetes-admin "$oc" whoami
check "manage-node --schedulable=false" says "node/node1 cordoned" "$oc" adm manage-node node1 --schedulable=false
check "manage-node --list-pods" says "Listing matched pods on node: node1" "$oc" adm manage-node node1 --list-pods
check "manage-node --evacuate" says "node/node1 evacuated" "$oc" adm manage-node node1 --evacuate --force
check "manage-node --schedulable=true" says "node/node1 uncordoned" "$oc" adm manage-node node1 --schedulable=true
check "evacuating a schedulable node" says "must be unschedulable in order to perform evacuation" "$oc" adm manage-node node1 --evacuate
check "kubectl's drain" says "--ignore-daemonsets" "$oc" drain --help
check "a verb of kubectl" says "kubectl scale deployment web --replicas=3" "$oc" scale deployment web --replicas=3
check "is exit code 2" test "$("$oc" scale x >/dev/null 2>&1; echo $?)" = 2
check "a word of oc" says "kubectl exec -it web-1 -- sh" "$oc" rsh web-1
check "a type of OpenShift" says "a Deployment does the same" "$oc" get dc
check "fields of a kind" says "kubectl explain pods.spec" "$oc" explain pods.spec
check "a slip" says 'unknown command "gett"; did you mean "get"?' "$b" gett pods
check "a slip of adm" says 'unknown command "tain" for "berth adm"; did you mean "taint"?' "$b" adm tain nodes node1 a=b:NoSchedule

# Cordon and drain.
check "adm cordon" says "node/node2 cordoned" "$b" adm cordon node2
check "adm cordon again" says "node/node2 already cordoned" "$b" adm cordon node2
check "the node says so" says "SchedulingDisabled" "$b" get nodes
check "adm uncordon" says "node/node2 uncordoned" "$b" adm uncordon node2
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: bare}\nspec:\n  terminationGracePeriodSeconds: 0\n  nodeName: node2\n  tolerations: [{operator: Exists}]\n  containers: [{name: c, image: x}]\n' >"$work/bare.yaml"
check "a pod on the node" "$b" create -f "$work/bare.yaml"
check "drain refuses a pod nobody would make again" says "cannot delete Pods that declare no controller (use --force to override)" "$b" adm drain node2
check "adm drain --force" says "node/node2 drained" "$b" adm drain node2 --force --ignore-daemonsets --delete-emptydir-data --grace-period=0 --timeout=60
check "the pod is gone" says 'pods "bare" not found' "$b" get pod bare

# Help everywhere, also for a command that needs more words; a wrong word is exit code 2 and says what there is.
check "berth --help" says "Work with objects" "$b" --help
for command in $("$b" --help | sed -nE 's/^  ([a-z-]+) .*/\1/p'); do check "berth $command --help" "$b" "$command" --help; done
for verb in taint cordon uncordon drain new-project manage-node policy; do check "berth adm $verb --help" says "Usage" "$b" adm "$verb" --help; done
for type in sa configmap clusterrolebinding rolebinding namespace deployment job priorityclass; do check "berth create $type --help" says "berth create $type" "$b" create "$type" --help; done
check "an unknown command" says 'unknown command "frobnicate"' "$b" frobnicate
check "an unknown command is exit code 2" test "$("$b" frobnicate >/dev/null 2>&1; echo $?)" = 2
check "an unknown flag is exit code 2" test "$("$b" get --frobnicate >/dev/null 2>&1; echo $?)" = 2

# Completion: what the shell would offer.
ln -sf "$b" "$work/bin/berth"
offers() { # offers SHELL-FUNCTION-FILE WORDS...: what bash completes the last word to
  PATH=$work/bin:$PATH bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _berth; printf "%s\n" "${COMPREPLY[@]}"' _ "$@"
}
"$b" completion bash >"$work/completion.bash"
check "completion of commands" says "scheduler" offers "$work/completion.bash" berth sched
check "completion of adm's verbs" says "uncordon" offers "$work/completion.bash" berth adm un
check "completion of flags" says "--namespace" offers "$work/completion.bash" berth get --name
check "completion of a nested verb's flags" says "--ignore-daemonsets" offers "$work/completion.bash" berth adm drain --ign
check "completion of names" says "node1" offers "$work/completion.bash" berth describe node no
check "... within a namespace" says "berth-scheduler-default-scheduler" offers "$work/completion.bash" berth get configmap -n kube-system berth-s
check "... as TYPE/NAME" says "configmap/mine" offers "$work/completion.bash" berth get configmap/mi
check "... of nodes for adm" says "node2" offers "$work/completion.bash" berth adm drain node
check "... of nodes for what-if" says "node1" offers "$work/completion.bash" berth what-if --drain node
check "... of pods that explain is asked about" refused says "pods" offers "$work/completion.bash" berth explain pod po
check "... of namespaces" says "kube-system" offers "$work/completion.bash" berth get pods -n kube-s
check "completion of types" says "configmaps" offers "$work/completion.bash" berth get conf
if command -v zsh >/dev/null; then check "zsh takes the completion" zsh -fc "autoload -U compinit && compinit -u -d $work/zdump && PATH=$work/bin:\$PATH && source <(berth completion zsh) && (( \$+functions[_berth] ))"; fi
check "completion of an unknown shell is refused" refused "$b" completion fish
check "json is sorted and without managed fields" sh -c "'$b' get node node1 -o json | python3 -c 'import json,sys; d=json.load(sys.stdin); assert list(d)==sorted(d) and \"managedFields\" not in d[\"metadata\"]'"
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: half}\nspec: {containers: [{name: c, image: i}]}\n---\nkind: Nothing\n' >"$work/half.yaml"
check "a bad object names its file" says "$work/half.yaml: apiVersion not set" "$b" create -f "$work/half.yaml"
check "and nothing of that file was created" refused "$b" get pod half
finish
