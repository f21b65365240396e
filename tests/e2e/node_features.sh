#!/usr/bin/env bash
# What a pod may ask of a real node, one check a feature: static pods, pulls, hooks, volumes, names, security, streaming. Needs root and containerd.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
missing=$(node_missing)
if [ -n "$missing" ]; then echo "skipped: the real node agent needs $missing"; echo "0 passed, 0 failed"; exit 0; fi
registry_pid=
trap '[ -n "$registry_pid" ] && kill $registry_pid 2>/dev/null; stop_runtime; rm -rf /var/lib/berth/volumes/pvc-e2e-$$; cleanup' EXIT
subnet=10.98.$((RANDOM % 250))
start_runtime 256 $subnet.0/24 || { echo "skipped: no containerd of our own can be started here"; tail -3 "$work/containerd.log"; echo "0 passed, 0 failed"; exit 0; }
tests=$(dirname "$(realpath "$0")")
python3 "$tests/registry.py" "$work/registry" busybox="$work/images/busybox" & registry_pid=$!
start_up --nodes 0
mkdir -p "$work/manifests"
agent_flags=(--kubelet-arg "pod-manifest-path=$work/manifests" --kubelet-arg container-log-max-size=20k --kubelet-arg container-log-max-files=3 --kubelet-arg cluster-dns=10.96.0.10)
start_node "${agent_flags[@]}"
status() { kubectl get pod "$1" -o jsonpath="{.status.$2}"; }
status_is() { [ "$(status "$1" "$2")" = "$3" ]; }
event_says() { kubectl get events --field-selector "involvedObject.name=$1" -o jsonpath='{range .items[*]}{.type} {.reason} {.message}{"\n"}{end}' | grep -F -- "$2"; }
inside() { local pod=$1; shift; timeout 20 kubectl exec "$pod" -- "$@"; }
apply() { kubectl apply -f - ; }
loop='trap "exit 0" TERM; while :; do sleep 0.1; done'
check "the node becomes Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
check "the node says what it runs" sh -c "kubectl get node real -o jsonpath='{.status.nodeInfo.containerRuntimeVersion} {.status.nodeInfo.osImage}' | grep -q '^containerd://.* .'"
check "its conditions are events" eventually 10 sh -c "kubectl get events --field-selector involvedObject.kind=Node | grep -q 'Node real status is now: NodeReady'"
check "its lease names it as owner" sh -c "kubectl -n kube-node-lease get lease real -o jsonpath='{.metadata.ownerReferences[0].kind}' | grep -q Node"
check "its images are listed" eventually 70 sh -c "kubectl get node real -o jsonpath='{.status.images[*].names[*]}' | grep -q busybox"

# ---- static pods
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: fixed}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers: [{name: c, image: "berth.local/busybox:1", command: [sh, -c, %s]}]\n' "'$loop'" >"$work/manifests/fixed.yaml"
check "a static pod runs and has its mirror" eventually 20 status_is fixed-real phase Running
check "the mirror says what it is" says "kubernetes.io/config.mirror" kubectl get pod fixed-real -o yaml
first=$(kubectl get pod fixed-real -o jsonpath='{.metadata.uid}')
kubectl delete pod fixed-real --wait=false >/dev/null 2>&1
check "a deleted mirror comes back, and its containers never stopped" eventually 20 sh -c "[ \"\$(kubectl get pod fixed-real -o jsonpath='{.metadata.uid}')\" != '$first' ] && [ \"\$(kubectl get pod fixed-real -o jsonpath='{.status.phase}{.status.containerStatuses[0].restartCount}')\" = Running0 ]"

# ---- pulls
for _ in $(seq 50); do [ -s "$work/registry" ] && break; sleep 0.1; done
registry=127.0.0.1:$(cat "$work/registry")
kubectl create secret docker-registry pull --docker-server="$registry" --docker-username=berth --docker-password=secret >/dev/null
for name in public private refused missing; do
  image=$registry/busybox:1; extra=
  [ $name = private ] && image=$registry/private/busybox:1 extra='imagePullSecrets: [{name: pull}],'
  [ $name = refused ] && image=$registry/private/busybox:2
  [ $name = missing ] && image=$registry/busybox:none
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: pull-%s}\nspec: {nodeName: real, terminationGracePeriodSeconds: 1, %s containers: [{name: c, image: "%s", imagePullPolicy: Always, command: [sh, -c, %s]}]}\n' $name "$extra" "$image" "'$loop'" | apply >/dev/null
done
check "an image is pulled" eventually 20 status_is pull-public phase Running
check "the pull is an event" event_says pull-public "Successfully pulled image \"$registry/busybox:1\" in"
check "a pull secret opens a private repository" eventually 20 status_is pull-private phase Running
check "without it the pull fails" eventually 20 event_says pull-refused "Error: ErrImagePull"
check "a missing image backs off" eventually 20 status_is pull-missing 'containerStatuses[0].state.waiting.reason' ImagePullBackOff
check "and says so as an event" event_says pull-missing "Normal BackOff Back-off pulling image \"$registry/busybox:none\""
check "logs say what is awaited" says "trying and failing to pull image" kubectl logs pull-missing
kubectl run never --image=berth.local/nowhere:1 --image-pull-policy=Never --overrides='{"spec":{"nodeName":"real"}}' >/dev/null
check "policy Never is kept" eventually 10 status_is never 'containerStatuses[0].state.waiting.reason' ErrImageNeverPull
kubectl delete pod pull-public pull-private pull-refused pull-missing never --wait=false >/dev/null

# ---- one pod with much of what a spec can say
kubectl create configmap settings --from-literal=color=green >/dev/null
kubectl create secret generic key --from-literal=word=hidden >/dev/null
kubectl create service clusterip backend --tcp=8080:80 >/dev/null
apply >/dev/null <<X
apiVersion: v1
kind: Pod
metadata: {name: rich, labels: {app: rich}, annotations: {note: first}}
spec:
  nodeName: real
  hostname: own
  subdomain: sub
  hostAliases: [{ip: 10.1.2.3, hostnames: [alias.example]}]
  dnsConfig: {options: [{name: timeout, value: "3"}]}
  shareProcessNamespace: true
  terminationGracePeriodSeconds: 3
  securityContext: {runAsUser: 1000, runAsGroup: 3000, fsGroup: 2000, supplementalGroups: [4000]}
  initContainers:
  - {name: one, image: "berth.local/busybox:1", command: [sh, -c, "echo one >>/shared/order"], volumeMounts: [{name: shared, mountPath: /shared}]}
  - name: side
    image: berth.local/busybox:1
    restartPolicy: Always
    command: [sh, -c, 'echo side >>/shared/order; sleep 1; touch /shared/up; $loop']
    startupProbe: {exec: {command: [cat, /shared/up]}, periodSeconds: 1}
    volumeMounts: [{name: shared, mountPath: /shared}]
  - {name: two, image: "berth.local/busybox:1", command: [sh, -c, "test -e /shared/up && echo two >>/shared/order"], volumeMounts: [{name: shared, mountPath: /shared}]}
  containers:
  - name: main
    image: berth.local/busybox:1
    command: [sh, -c, 'echo main >>/shared/order; echo out; echo err >&2; $loop']
    env:
    - {name: WORD, valueFrom: {secretKeyRef: {name: key, key: word}}}
    - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
    - {name: URL, value: "http://\$(BACKEND_SERVICE_HOST):\$(BACKEND_SERVICE_PORT)"}
    resources: {requests: {cpu: 10m, memory: 20Mi}, limits: {memory: 40Mi}}
    securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}
    lifecycle:
      postStart: {exec: {command: [sh, -c, "echo started >/shared/hook"]}}
      preStop: {httpGet: {port: 9999, path: /bye, host: 127.0.0.1}}
    volumeMounts:
    - {name: shared, mountPath: /shared}
    - {name: settings, mountPath: /settings}
    - {name: settings, mountPath: /one-file, subPath: color}
    - {name: secret, mountPath: /secret}
    - {name: shared, mountPath: /sub, subPath: a/b}
    - {name: all, mountPath: /all}
    - {name: claim, mountPath: /claim}
  volumes:
  - {name: shared, emptyDir: {}}
  - {name: settings, configMap: {name: settings}}
  - {name: secret, secret: {secretName: key, defaultMode: 0400}}
  - name: all
    projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 600, audience: here}}, {downwardAPI: {items: [{path: note, fieldRef: {fieldPath: "metadata.annotations['note']"}}]}}]}
  - {name: claim, persistentVolumeClaim: {claimName: data}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pvc-e2e-$$}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, storageClassName: "", claimRef: {namespace: default, name: data}, hostPath: {path: /var/lib/berth/volumes/pvc-e2e-$$, type: DirectoryOrCreate}}
X
check "a pod waits for a claim that is not there" eventually 10 event_says rich 'persistentvolumeclaims "data" not found'
printf 'apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: pvc-e2e-%s, resources: {requests: {storage: 1Gi}}}\n' $$ | apply >/dev/null
check "and runs when it is" eventually 40 status_is rich phase Running
check "init containers and sidecars came in order" sh -c "[ \"\$(timeout 20 kubectl exec rich -c main -- cat /shared/order | tr '\n' ' ')\" = 'one side two main ' ]"
check "postStart ran" says started inside rich cat /shared/hook
check "a secret becomes a variable" says hidden inside rich env
check "a limit becomes a variable" says LIMIT=40 inside rich env
check "services become variables" says "URL=http://$(kubectl get service backend -o jsonpath='{.spec.clusterIP}'):8080" inside rich env
check "hostname" says own inside rich hostname
check "hosts file" says "own.sub.default.svc.cluster.local" inside rich cat /etc/hosts
check "host aliases" says "alias.example" inside rich cat /etc/hosts
check "name servers" says "10.96.0.10" inside rich cat /etc/resolv.conf
check "search domains and options" says "default.svc.cluster.local" inside rich cat /etc/resolv.conf
check "users and groups" says "uid=1000 gid=3000 groups=2000,3000,4000" inside rich id
check "a read-only root" refused inside rich touch /file
check "an emptyDir belongs to fsGroup" says 2000 inside rich stat -c %g /shared
check "capabilities" says "0000000000000400" inside rich grep CapBnd /proc/self/status
check "secrets never touch the disk" says tmpfs inside rich grep /secret /proc/mounts
check "secrets keep their mode, and fsGroup reads" says 440 inside rich stat -L -c %a /secret/word
check "subPath of a file" says green inside rich cat /one-file
check "subPath of a directory" sh -c "timeout 20 kubectl exec rich -c main -- sh -c 'echo x >/sub/y; cat /shared/a/b/y' | grep -q x"
check "a token for its audience" says . inside rich cat /all/token
check "a claim is the volume behind it" sh -c "timeout 20 kubectl exec rich -c main -- sh -c 'echo kept >/tmp/x 2>/dev/null; ls -d /claim' && [ -d /var/lib/berth/volumes/pvc-e2e-$$ ]"
check "the process namespace is shared" says sleep inside rich ps
kubectl create configmap settings --from-literal=color=blue --dry-run=client -o yaml | kubectl replace -f - >/dev/null
kubectl annotate pod rich note=second --overwrite >/dev/null
check "changed annotations and ConfigMaps reach the volumes" eventually 20 sh -c "timeout 20 kubectl exec rich -c main -- sh -c 'cat /settings/color /all/note' | grep -q bluesecond"
check "logs of one stream with timestamps" sh -c "kubectl logs rich -c main --timestamps | grep -qE '^20[0-9-]+T[0-9:.]+(Z|[+-].*) out'"
check "logs since a time to come" [ -z "$(kubectl logs rich -c main --since-time=2999-01-01T00:00:00Z)" ]
check "an ephemeral container looks in" sh -c "timeout 30 kubectl debug rich --image=berth.local/busybox:1 --target=main -c look --profile=general -- sh -c 'ps; echo looked' && timeout 20 sh -c 'until kubectl logs rich -c look | grep -q looked; do sleep 0.2; done'"
check "its status is reported" says look kubectl get pod rich -o jsonpath='{.status.ephemeralContainerStatuses[*].name}'
kubectl delete pod rich --wait=false >/dev/null
check "a failing preStop hook is an event" eventually 15 event_says rich "Warning FailedPreStopHook PreStopHook failed"

# ---- ends, restarts, probes
apply >/dev/null <<X
apiVersion: v1
kind: Pod
metadata: {name: last-words}
spec: {nodeName: real, restartPolicy: Never, containers: [{name: c, image: "berth.local/busybox:1", command: [sh, -c, "echo because >/dev/termination-log; exit 4"]}, {name: d, image: "berth.local/busybox:1", terminationMessagePolicy: FallbackToLogsOnError, command: [sh, -c, "echo from the log; exit 5"]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: again}
spec: {nodeName: real, terminationGracePeriodSeconds: 1, containers: [{name: c, image: "berth.local/busybox:1", command: [sh, -c, 'echo attempt; exit 1']}]}
---
apiVersion: v1
kind: Pod
metadata: {name: late}
spec: {nodeName: real, activeDeadlineSeconds: 2, terminationGracePeriodSeconds: 1, containers: [{name: c, image: "berth.local/busybox:1", command: [sh, -c, '$loop']}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: real
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: berth.local/busybox:1
    command: [sh, -c, 'mkdir /tmp/www; echo hello >/tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www']
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {httpGet: {port: http, path: /index.html}, periodSeconds: 1}
    livenessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: sick}
spec: {nodeName: real, terminationGracePeriodSeconds: 1, containers: [{name: c, image: "berth.local/busybox:1", command: [sh, -c, '$loop'], readinessProbe: {httpGet: {port: 81}, periodSeconds: 1}, livenessProbe: {grpc: {port: 82}, periodSeconds: 1, failureThreshold: 2}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: chatty}
spec: {nodeName: real, terminationGracePeriodSeconds: 1, containers: [{name: c, image: "berth.local/busybox:1", stdin: true, command: [sh, -c, 'for i in \$(seq 2000); do echo "line \$i of a log that grows and grows"; done; while read line; do echo "heard \$line"; done']}]}
---
apiVersion: v1
kind: Pod
metadata: {name: too-big}
spec: {nodeName: real, containers: [{name: c, image: "berth.local/busybox:1", resources: {requests: {cpu: "1000"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: elsewhere}
spec: {nodeName: real, nodeSelector: {disk: fast}, containers: [{name: c, image: "berth.local/busybox:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: rootless}
spec: {nodeName: real, securityContext: {runAsNonRoot: true}, containers: [{name: c, image: "berth.local/busybox:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: on-host}
spec: {nodeName: real, hostNetwork: true, terminationGracePeriodSeconds: 1, containers: [{name: c, image: "berth.local/busybox:1", command: [sh, -c, '$loop']}]}
X
check "termination messages" eventually 20 sh -c "[ \"\$(kubectl get pod last-words -o jsonpath='{.status.containerStatuses[*].state.terminated.message}' | tr '\n' ' ')\" = 'because  from the log ' ]"
check "a crash loop backs off" eventually 20 status_is again 'containerStatuses[0].state.waiting.reason' CrashLoopBackOff
check "as an event" event_says again "Back-off restarting failed container c in pod again_default"
check "logs of the run before" says attempt kubectl logs again --previous
check "a deadline ends a pod" eventually 15 status_is late reason DeadlineExceeded
check "a probe by HTTP on a named port" eventually 20 kubectl wait --for=condition=Ready pod/web --timeout=1s
check "failing probes are told" eventually 15 event_says sick 'Readiness probe failed: Get "http://'
check "a gRPC probe restarts" eventually 20 event_says sick "Container c failed liveness probe, will be restarted"
check "no room is OutOfcpu" eventually 10 status_is too-big reason OutOfcpu
check "in the kubelet's words" says "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000000, used:" status too-big message
check "a node that does not match" eventually 10 status_is elsewhere message "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
check "runAsNonRoot is kept" eventually 10 status_is rootless 'containerStatuses[0].state.waiting.reason' CreateContainerConfigError
check "the machine's network" eventually 20 sh -c "[ \"\$(kubectl get pod on-host -o jsonpath='{.status.podIP}')\" = \"\$(kubectl get pod on-host -o jsonpath='{.status.hostIP}')\" ]"

# ---- resources that change
apply >/dev/null <<EOF
apiVersion: v1
kind: Pod
metadata: {name: grow}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "berth.local/busybox:1", command: [sleep, "600"], resources: {requests: {cpu: 10m}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: neighbour}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "berth.local/busybox:1", command: [sleep, "600"], resources: {requests: {cpu: 100m}}}]
EOF
check "the pod to be resized runs" eventually 20 status_is grow phase Running
check "and one beside it" eventually 20 status_is neighbour phase Running
resize() { kubectl patch pod grow --subresource resize -p "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"$1\"}}}]}}" 2>&1; }
check "a resize beyond the node is refused" says "node didn't have enough allocatable resources: cpu" resize 5000
resize "$(kubectl get nodes -o jsonpath='{.items[0].status.allocatable.cpu}')" >/dev/null
check "a resize beyond what is free waits" eventually 20 status_is grow 'conditions[?(@.type=="PodResizePending")].reason' Deferred
check "and is an event" eventually 10 event_says grow "Warning ResizeDeferred Pod resize OutOfcpu: "
resize 20m >/dev/null
check "one that fits is done" eventually 30 status_is grow 'containerStatuses[0].resources.requests.cpu' 20m
check "and leaves no condition behind" eventually 20 sh -c "! kubectl get pod grow -o yaml | grep -q PodResize"

# ---- streaming
kubectl port-forward pod/web 0:8080 >"$work/forward" 2>&1 & forward=$!
check "port-forward" eventually 10 sh -c "curl -s --max-time 2 http://127.0.0.1:\$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p' '$work/forward')/ | grep -q hello"
kill $forward
check "attach" sh -c "(sleep 1; echo you; sleep 2) | timeout 20 kubectl attach -i chatty 2>&1 | grep -q 'heard you'"
echo content >"$work/file"
check "cp to a pod" timeout 20 kubectl cp "$work/file" web:/tmp/copied
check "cp from a pod" sh -c "timeout 20 kubectl cp web:/tmp/copied '$work/back' && grep -q content '$work/back'"
check "follow ends with its container" sh -c "(sleep 1; kubectl delete pod web --wait=false >/dev/null) & timeout 30 kubectl logs -f web; [ \$? -ne 124 ]"
check "logs are rotated" eventually 25 sh -c "ls $work/disk/node/logs/default_chatty_*/c/ | grep -q '0.log.2'"
check "top node" eventually 40 says real kubectl top node
check "top pod" eventually 40 says chatty kubectl top pod
check "the endpoints ask for certificates" [ "$(curl -sk -o /dev/null -w '%{http_code}' "https://$(kubectl get node real -o jsonpath='{.status.addresses[0].address}:{.status.daemonEndpoints.kubeletEndpoint.Port}')/pods")" = 401 ]
kubectl create serviceaccount reader >/dev/null
endpoint=https://$(kubectl get node real -o jsonpath='{.status.addresses[0].address}:{.status.daemonEndpoints.kubeletEndpoint.Port}')
token=$(kubectl create token reader)
check "and for permission" [ "$(curl -sk -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "$endpoint/metrics/resource")" = 403 ]
kubectl create clusterrole metrics --verb=get --resource=nodes/metrics >/dev/null; kubectl create clusterrolebinding metrics --clusterrole=metrics --serviceaccount=default:reader >/dev/null
token=$(kubectl create token reader)
check "which a role gives" eventually 35 sh -c "curl -sk -H 'Authorization: Bearer $token' $endpoint/metrics/resource | grep -q node_cpu_usage_seconds_total"
check "kubelet metrics by the node proxy" says kubelet_running_pods kubectl get --raw /api/v1/nodes/real/proxy/metrics
check "health is nobody else's business" [ "$(curl -sk -o /dev/null -w '%{http_code}' "$endpoint/healthz")$(curl -sk -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $(kubectl create token default)" "$endpoint/healthz")" = 401403 ]
check "and told by the node proxy" says ok kubectl get --raw /api/v1/nodes/real/proxy/healthz
for family in kubelet_runtime_operations_total kubelet_started_containers_total kubelet_pod_start_duration_seconds_bucket terminated_containers_total; do
  check "metrics have $family" says "$family" kubectl get --raw /api/v1/nodes/real/proxy/metrics
done
check "the configuration in force" says '"containerLogMaxFiles":3' kubectl get --raw /api/v1/nodes/real/proxy/configz
check "the summary has the system's own programs" sh -c "kubectl get --raw /api/v1/nodes/real/proxy/stats/summary | grep -q '\"name\":\"runtime\".*rssBytes'"
check "logs of the machine by the node proxy" says '<a href=' kubectl get --raw /api/v1/nodes/real/proxy/logs/
check "pods by the node proxy" says '"PodList"' kubectl get --raw /api/v1/nodes/real/proxy/pods

# ---- port-forward by WebSocket, whose ports are in the request
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: echo}\nspec: {nodeName: real, terminationGracePeriodSeconds: 1, containers: [{name: c, image: "berth.local/busybox:1", command: [sh, -c, %s]}]}\n' \
  "'while :; do nc -l -p 7 -e cat; done'" | apply >/dev/null
kubectl proxy --port=0 >"$work/proxy.log" 2>&1 & kubectl_proxy=$!
check "a pod that echoes runs" eventually 20 status_is echo phase Running
check "port-forward by WebSocket" eventually 10 says forwarded timeout 20 python3 "$tests/port_forward.py" "$(sed -n 's/^Starting to serve on //p' "$work/proxy.log")" "/api/v1/namespaces/default/pods/echo/portforward?ports=7" forwarded
kill $kubectl_proxy 2>/dev/null

# ---- limits of the pod as a whole, and a sidecar that wants all started anew
memory_limit() { kubectl exec whole -c "$1" -- sh -c 'cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null'; }
apply >/dev/null <<X
apiVersion: v1
kind: Pod
metadata: {name: whole}
spec:
  nodeName: real
  terminationGracePeriodSeconds: 1
  resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 500m, memory: 64Mi}}
  containers:
  - {name: own, image: "berth.local/busybox:1", command: [sh, -c, '$loop'], resources: {limits: {memory: 16Mi}}}
  - {name: none, image: "berth.local/busybox:1", command: [sh, -c, '$loop']}
---
apiVersion: v1
kind: Pod
metadata: {name: anew}
spec:
  nodeName: real
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  volumes: [{name: v, emptyDir: {}}]
  initContainers:
  - name: side
    image: berth.local/busybox:1
    restartPolicy: Always
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]
    command: [sh, -c, 'echo x >>/v/rounds; [ \$(wc -l </v/rounds) -gt 2 ] || { sleep 2; exit 42; }; while :; do sleep 0.2; done']
    volumeMounts: [{name: v, mountPath: /v}]
  containers: [{name: c, image: "berth.local/busybox:1", command: [sh, -c, 'while :; do sleep 0.2; done']}]
X
check "a pod with limits of its own runs" eventually 20 status_is whole phase Running
check "a container without one has the pod's" [ "$(memory_limit none)" = $((64 << 20)) ]
check "another keeps its own" [ "$(memory_limit own)" = $((16 << 20)) ]
check "a sidecar restarts all twice" eventually 40 status_is anew 'containerStatuses[0].restartCount' 2
check "and the pod runs on" eventually 10 status_is anew phase Running

# ---- the runtime goes away and comes back
started=$(status chatty 'containerStatuses[0].containerID')
kill "$runtime_pid"; wait "$runtime_pid" 2>/dev/null
check "a runtime that is down makes the node NotReady" eventually 15 sh -c "[ \"\$(kubectl get node real -o jsonpath='{.status.conditions[?(@.type==\"Ready\")].status}')\" = False ]"
containerd -c "$work/containerd.toml" >>"$work/containerd.log" 2>&1 & runtime_pid=$!
check "and Ready again" eventually 20 sh -c "[ \"\$(kubectl get node real -o jsonpath='{.status.conditions[?(@.type==\"Ready\")].status}')\" = True ]"
check "with its containers running on" [ "$started" = "$(status chatty 'containerStatuses[0].containerID')" ]

rm "$work/manifests/fixed.yaml"
kubectl delete pod --all --wait=false >/dev/null
gone() { [ -z "$(kubectl get pods -o name)" ]; }
check "all go, the static pod with its manifest" eventually 40 gone
check "no directory is left" eventually 5 sh -c "! ls $work/disk/node/pods $work/disk/node/logs | grep -qE '[0-9a-f]{8}'"
check "no mount is left" sh -c "! grep -q $work/disk/node/pods /proc/mounts"
[ "$failed" -eq 0 ] || tail -20 "$work/node.log"
finish
