#!/usr/bin/env bash
# An API server of its own process is served through berth's (examples/metrics-server): condition, discovery, top, autoscaling; admission of sessions.
. "$(dirname "$0")/lib.sh"
example=$root/examples/metrics-server
server_pid=
stop_server() { [ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null; server_pid=; }
trap 'stop_server; cleanup' EXIT
start_up --nodes 2 --dashboard-port 0 --controller-arg horizontal-pod-autoscaler-sync-period=1s

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -keyout "$work/tls.key" -out "$work/tls.crt" \
  -subj /CN=metrics -addext subjectAltName=DNS:metrics.kube-system.svc 2>/dev/null
kubectl get configmap -n kube-system extension-apiserver-authentication -o 'jsonpath={.data.requestheader-client-ca-file}' >"$work/proxy-ca.crt"
cp "$example/values.json" "$work/values.json"
python3 "$example/server.py" --cert "$work/tls.crt" --key "$work/tls.key" --requestheader-ca "$work/proxy-ca.crt" --values "$work/values.json" >"$work/server.log" 2>&1 &
server_pid=$!
eventually 20 grep -q '^[0-9]' "$work/server.log"
port=$(head -n 1 "$work/server.log")

check "top before anybody registers" says node-1 kubectl top nodes
check "registered" "$example/register.sh" "$port" "$work/tls.crt"
for name in v1beta1.metrics.k8s.io v1beta2.custom.metrics.k8s.io v1beta1.external.metrics.k8s.io; do
  check "$name is available" kubectl wait --for=condition=Available --timeout=30s "apiservice/$name"
done
check "the table says whose it is" says kube-system/metrics kubectl get apiservices
check "top asks the other server" eventually 20 says 250m kubectl top nodes
check "raw" says '"value": "40"' kubectl get --raw /apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue
check "the user arrives there" grep -q "kubernetes-admin.*berth:cluster-admins.*queue" "$work/server.log"
check "api-resources" says external.metrics.k8s.io/v1beta1 kubectl api-resources --cached=false
check "who comes without the front proxy is nobody" says 'only the front proxy' curl -sk "https://127.0.0.1:$port/apis/metrics.k8s.io/v1beta1/nodes" -H 'X-Remote-User: system:admin'

kubectl apply -f "$example/hpa.yaml" >/dev/null
check "four replicas by the queue of 40" eventually 60 says 4 kubectl get deployment shop -o 'jsonpath={.spec.replicas}'
check "metrics are told" eventually 30 says '"name":"queue"' kubectl get hpa shop -o 'jsonpath={.status.currentMetrics}'

stop_server
check "its end is seen" kubectl wait --for=condition=Available=False --timeout=40s apiservice/v1beta1.external.metrics.k8s.io
check "why" says FailedDiscoveryCheck kubectl get apiservice v1beta1.external.metrics.k8s.io
check "503" says 'the server is currently unable to handle the request' kubectl get --raw /apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue
check "others go on" kubectl get pods
kubectl delete apiservice v1beta1.metrics.k8s.io v1beta2.custom.metrics.k8s.io v1beta1.external.metrics.k8s.io >/dev/null
check "what was built in is back" eventually 20 says node-1 kubectl top nodes
check "its registration too" eventually 20 says Local kubectl get apiservice v1beta1.metrics.k8s.io
check "the others are gone" refused kubectl get --raw /apis/external.metrics.k8s.io/v1beta1

kubectl apply -f - >/dev/null 2>&1 <<'YAML'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-shell}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CONNECT], resources: [pods/exec, pods/attach]}]
  validations: [{expression: "!has(object.tty) || !object.tty", message: "no terminals here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-shell}
spec: {policyName: no-shell, validationActions: [Deny]}
YAML
pod=$(kubectl get pods -o name | head -n 1)
check "a terminal is refused" eventually 20 says 'no terminals here' script -qec "kubectl exec -it $pod -- sh" /dev/null
finish
