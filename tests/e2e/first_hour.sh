#!/usr/bin/env bash
# What a platform engineer tries in the first hour: starting it wrongly, and the commands of Kubernetes' task pages.
. "$(dirname "$0")/lib.sh"

# Starting wrongly: said in a line, with an exit code that is no crash.
ends() { # ends CODE TEXT COMMAND...
  local code=$1 text=$2; shift 2
  timeout 20 "$@" >"$work/ends" 2>&1; local got=$?
  [ $got -eq "$code" ] && grep -qF -- "$text" "$work/ends" || { cat "$work/ends"; echo "(exit $got, wanted $code and: $text)"; return 1; }
}
touch "$work/file"
check "a flag that there is not" ends 2 "--nope" "$berth" up --nope
check "a slip in a flag" ends 2 'unknown flag: --node; did you mean "--nodes"?' "$berth" up --node 3
check "a flag with one dash" ends 2 'did you mean "--nodes"?' "$berth" up -nodes 3
check "a value that is no number" ends 2 '--nodes: Value many not in range 0 to 1000000' "$berth" up --nodes many
check "a flag without its value" ends 2 "--nodes" "$berth" up --nodes
check "an argument too many" ends 2 'unexpected argument: "three"' "$berth" up three
check "a port alone" ends 1 "HOST:PORT is wanted; a port alone is written :6443" "$berth" up --validate --data-dir "$work/d1" --listen 6443
check "a command that there is not" ends 2 'unknown command "nosuch"' "$berth" nosuch
check "--version" ends 0 "Kubernetes API" "$berth" --version
check "help COMMAND" ends 0 "--data-dir" "$berth" help up
check "what get needs" ends 2 "TYPE is required" "$berth" get
check "a data directory that is a file" ends 1 "$work/file" "$berth" up --nodes 1 --data-dir "$work/file"
check "an address that is none" ends 1 "nonsense" "$berth" up --nodes 1 --data-dir "$work/d1" --listen nonsense
check "a configuration that is not there" ends 1 "/nope: cannot be read" "$berth" up --nodes 1 --data-dir "$work/d1" --listen 127.0.0.1:0 --config /nope
check "a kubeconfig that is not there" ends 1 "/nope" "$berth" get pods --kubeconfig /nope
for delay in 0.05 0.2 0.5; do
  "$berth" up --nodes 3 --data-dir "$work/d2" --listen 127.0.0.1:0 >"$work/early.log" 2>&1 & early=$!
  sleep $delay
  # A shell without job control starts its background with SIGINT ignored: what comes before the program asks for it is lost.
  while kill -INT $early 2>/dev/null; do for _ in $(seq 20); do kill -0 $early 2>/dev/null || break; sleep 0.1; done; done
  wait $early; code=$?
  check "Ctrl-C $delay s after the start" [ $code -eq 0 -o $code -eq 130 ]
done
mkdir -p "$work/bare"; (cd "$work/bare" && exec env -i "$berth" up --nodes 1 --listen 127.0.0.1:0 >"$work/bare.log" 2>&1) & bare=$!
check "without any environment" eventually 20 grep -q '^export KUBECONFIG=' "$work/bare.log"
kill $bare; wait $bare 2>/dev/null
# The next start knows the flags of this one, and says so.
mkdir -p "$work/etc" && printf 'kind: MasterConfig\napiVersion: v1\nprojectConfig: {defaultNodeSelector: "type=user"}\n' >"$work/etc/master.yaml"
(cd "$work/etc" && exec timeout 20 "$berth" up --nodes 2 --data-dir "$work/d4" --listen 127.0.0.1:0 --master-config master.yaml >"$work/d4.log" 2>&1) & first=$!
eventually 20 grep -q '^export KUBECONFIG=' "$work/d4.log"
check "berth is not in the path: the line to type" grep -qxF "export PATH=$(dirname "$berth"):\$PATH" "$work/d4.log"
kill $first; wait $first 2>/dev/null
PATH=$(dirname "$berth"):$PATH timeout 20 "$berth" up --data-dir "$work/d4" >"$work/d5.log" 2>&1 & first=$!
eventually 20 grep -q '^export KUBECONFIG=' "$work/d5.log"
check "the next start has the master config" grep -qF -- "--master-config $work/etc/master.yaml" "$work/d5.log"
check "and acts by it" eventually 20 sh -c "KUBECONFIG='$work/d4/admin.kubeconfig' kubectl create namespace user-pods && KUBECONFIG='$work/d4/admin.kubeconfig' kubectl -n user-pods run p --image=i --dry-run=server -o jsonpath='{.spec.nodeSelector}' | grep -q user"
check "one that is found by its name says no path" refused grep -q 'export PATH=' "$work/d5.log"
kill $first; wait $first 2>/dev/null
mv "$work/etc/master.yaml" "$work/etc/gone.yaml"
check "a file that is gone is told with where it is from" ends 1 "as at the last start: " "$berth" up --data-dir "$work/d4"
check "an empty value forgets it" ends 0 "valid" "$berth" up --data-dir "$work/d4" --master-config "" --validate
start_up --nodes 3
check "the same data twice" ends 1 "in use by another berth" "$berth" up --data-dir "$work/data" --nodes 1
port=$(sed -nE 's/.*API server on https:\/\/127.0.0.1:([0-9]+).*/\1/p' "$work/up.log" | head -1)
check "the same port twice" ends 1 "Address already in use" "$berth" up --data-dir "$work/d3" --nodes 1 --listen "127.0.0.1:$port"

k() { kubectl -n first "$@"; }
kubectl create namespace first >/dev/null
check "an account" eventually 20 k get sa default
field() { k get "$1" -o jsonpath="$2"; }
is() { local got; got=$(field "$2" "$3"); [ "$got" = "$1" ] || { echo "got $got, wanted $1"; return 1; }; }
tells() { # tells TEXT MANIFEST: creating it says the text
  printf '# No JSON: its keys are bare.\n%s\n' "$2" >"$work/manifest.yaml"; says "$1" k create -f "$work/manifest.yaml"
}

# Objects come back as Kubernetes writes them.
k apply -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: zeros, labels: {app: zeros}}
spec:
  hostNetwork: false
  nodeSelector: {}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: i, tty: false, args: [], env: [{name: A, value: ""}]}]
Y
check "zeros that say nothing are left out" sh -c "! kubectl -n first get pod zeros -o yaml | sed -n '/^spec/,\$p' | grep -E 'hostNetwork|nodeSelector|tty|args|value: \"\"'"
check "zeros that say something stay" is "false 0" pod/zeros '{.spec.automountServiceAccountToken} {.spec.terminationGracePeriodSeconds}'
check "it runs" k wait --for=condition=Ready pod/zeros --timeout=30s
check "replace wants --force" says "pod updates may not change fields" sh -c "kubectl -n first get pod zeros -o json | sed 's/\"dnsPolicy\": \"ClusterFirst\"/\"dnsPolicy\": \"Default\"/' | kubectl -n first replace -f -"
check "replace --force" says "pod/zeros replaced" sh -c "kubectl -n first get pod zeros -o json | sed 's/\"dnsPolicy\": \"ClusterFirst\"/\"dnsPolicy\": \"Default\"/' | kubectl -n first replace --force -f -"

# Workloads.
k create deployment web --image=web:1 --replicas=2 >/dev/null
check "status" k rollout status deployment/web --timeout=30s
check "get --subresource=scale" says "DESIRED   AVAILABLE" k get deployment web --subresource=scale
check "patch --subresource=scale" k patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":1}}'
check "the replicas" is 1 deployment/web '{.spec.replicas}'
check "set env" says "env updated" k set env deployment/web A=1 B=2
check "set env --list" says "A=1" k set env deployment/web --list
check "set resources" says "requirements updated" k set resources deployment/web --limits=cpu=200m,memory=64Mi --requests=cpu=10m
check "set serviceaccount" says "serviceaccount updated" k set serviceaccount deployment/web default
check "annotated cause in the history" sh -c "kubectl -n first annotate deployment/web kubernetes.io/change-cause=why >/dev/null; for _ in \$(seq 50); do kubectl -n first rollout history deployment/web | grep -q why && exit 0; sleep 0.1; done; exit 1"
check "history --revision" says "revision #1" k rollout history deployment/web --revision=1
check "an unknown revision" says "unable to find" k rollout undo deployment/web --to-revision=99
check "--cascade=orphan" k delete deployment web --cascade=orphan
check "leaves the ReplicaSets" says "web-" k get rs -o name
cat >"$work/prune.yaml" <<Y
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {set: mine}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, labels: {set: mine}}
Y
check "apply --prune" says "configmap/two created" k apply -f "$work/prune.yaml" --prune -l set=mine --prune-allowlist=core/v1/ConfigMap
sed -i '/^---/,$d' "$work/prune.yaml"
check "prunes" says "configmap/two pruned" k apply -f "$work/prune.yaml" --prune -l set=mine --prune-allowlist=core/v1/ConfigMap
(sleep 1; k create configmap late >/dev/null) &
check "wait --for=create" k wait --for=create configmap/late --timeout=20s
check "wait --for=jsonpath" k wait --for=jsonpath='{.metadata.name}'=late configmap/late --timeout=5s
mkdir -p "$work/kustom"; printf 'resources: [cm.yaml]\nnamePrefix: pre-\nconfigMapGenerator: [{name: made, literals: [a=b]}]\n' >"$work/kustom/kustomization.yaml"
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base}\n' >"$work/kustom/cm.yaml"
check "apply -k" says "configmap/pre-base created" k apply -k "$work/kustom"
check "delete -k" says 'configmap "pre-base" deleted' k delete -k "$work/kustom"
indexed() { echo "{apiVersion: batch/v1, kind: Job, metadata: {name: ix}, spec: {suspend: true, completionMode: Indexed, completions: 2, parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}"; }
check "a suspended job" tells "created" "$(indexed)"
check "its completions alone" says "can only be modified in tandem with spec.parallelism" k patch job ix -p '{"spec":{"completions":3}}'
check "its restart policy" says "field is immutable" k patch job ix -p '{"spec":{"template":{"spec":{"restartPolicy":"OnFailure"}}}}'
check "a time zone that is none" tells "invalid location name" "{apiVersion: batch/v1, kind: CronJob, metadata: {name: z}, spec: {schedule: '* * * * *', timeZone: ../x, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}"

check "a token says for whom it is" says "https://kubernetes.default.svc" sh -c "kubectl -n first create token default -o jsonpath='{.spec.audiences[0]}'"

# Guards.
check "a system class stays" says "this is a system priority class and cannot be deleted" kubectl delete priorityclass system-node-critical
check "a quota's scope" tells "unsupported scope applied to resource" "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {services: '1'}, scopes: [BestEffort]}}"
check "credentials without any" tells "data[username]: Required value" "{apiVersion: v1, kind: Secret, metadata: {name: s}, type: kubernetes.io/basic-auth}"
check "an address outside the range" tells "the provided network does not match the current range" "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: 1.2.3.4, ports: [{port: 80}]}}"
k create service clusterip fixed --tcp=80 >/dev/null
check "an address once given" says "may not change once set" k patch service fixed -p '{"spec":{"clusterIP":"10.96.9.9","clusterIPs":["10.96.9.9"]}}'
check "a role of paths" tells "namespaced rules cannot apply to non-resource URLs" "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: [{nonResourceURLs: [/x], verbs: [get]}]}"
check "auth reconcile" says "reconciled" sh -c "kubectl -n first create role r --verb=get --resource=pods --dry-run=client -o yaml | kubectl -n first auth reconcile -f -"

# Pod security by the namespace's labels.
kubectl create namespace strict >/dev/null
kubectl label namespace strict pod-security.kubernetes.io/enforce=baseline pod-security.kubernetes.io/warn=restricted >/dev/null
s() { kubectl -n strict "$@"; }
eventually 20 s get sa default
check "a privileged pod is refused" says 'violates PodSecurity "baseline:latest": privileged (container "x" must not set securityContext.privileged=true)' s run x --image=i --privileged
check "a plain one is warned about" says 'would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false' s run y --image=i
check "and runs" s wait --for=condition=Ready pod/y --timeout=30s
check "so is a deployment" says "runAsNonRoot != true" s create deployment d --image=i
check "a stricter level names the pods" says 'existing pods in namespace "strict" violate the new PodSecurity enforce level "restricted:latest"' kubectl label namespace strict pod-security.kubernetes.io/enforce=restricted --overwrite
check "a level that is none" says "must be one of privileged, baseline, restricted" kubectl label namespace strict pod-security.kubernetes.io/enforce=bogus --overwrite
check "delete a namespace" kubectl delete namespace first strict --timeout=60s
finish
