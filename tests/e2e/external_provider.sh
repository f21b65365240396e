#!/usr/bin/env bash
# The reference provider of examples/external-provider over TLS: nodes come and go by its hands; strangers are refused, and a provider that
# stands still loses no node.
. "$(dirname "$0")/lib.sh"
provider=$(dirname "$berth")/berth-example-provider
[ -x "$provider" ] || { echo "skipped: $provider is not built (cmake --build build/release --target berth-example-provider)"; echo "0 passed, 0 failed"; exit 0; }
pids=()
end_all() { for pid in "${pids[@]}"; do kill -CONT "$pid" 2>/dev/null; kill "$pid" 2>/dev/null; done; cleanup; }
trap end_all EXIT
start_up --nodes 1

cd "$work" || exit 1
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt 2>/dev/null
certify() { # certify NAME EXTENSIONS
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile <(echo "$2") -out "$1.crt" 2>/dev/null
}
certify server subjectAltName=IP:127.0.0.1
certify client extendedKeyUsage=clientAuth
mkfifo hold; exec 9<>hold
"$provider" 127.0.0.1:0 "$root/examples/external-provider/groups.yaml" "$KUBECONFIG" server.crt server.key ca.crt <&9 >provider.log 2>&1 &
provider_pid=$!; pids+=("$provider_pid")
check "the provider listens" eventually 10 grep -q "listening on port" provider.log
port=$(sed -n 's/^listening on port \([0-9]*\);.*/\1/p' provider.log)
cat >rules.yaml <<Y
apiVersion: autoscaling.openshift.io/v1
kind: ClusterAutoscaler
metadata: {name: default}
spec: {logVerbosity: 4, scaleDown: {enabled: true, delayAfterAdd: 0s, delayAfterDelete: 0s, delayAfterFailure: 0s, unneededTime: 1s}}
Y
echo "{address: '127.0.0.1:$port', cert: $work/client.crt, key: $work/client.key, cacert: $work/ca.crt, grpc_timeout: 1s}" >with.yaml
echo "{address: '127.0.0.1:$port', cacert: $work/ca.crt, grpc_timeout: 1s}" >without.yaml
autoscale() { # autoscale CLOUD_CONFIG LOG: in the background
  "$berth" autoscaler --cloud-config "$1" --options rules.yaml --scan-interval 500ms --no-leader-elect --secure-port 0 >"$2" 2>&1 &
  autoscaler_pid=$!; pids+=("$autoscaler_pid")
}
events() { kubectl -n kube-system get events --field-selector "reason=$1" -o jsonpath='{.items[*].message}'; }
nodes() { [ "$(kubectl get nodes -l example/group="$1" --no-headers 2>/dev/null | grep -c " Ready")" -eq "$2" ]; }

# Without a certificate nothing is known, and nothing is done.
kubectl create -f - >/dev/null <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: load}
spec:
  replicas: 3
  selector: {matchLabels: {app: load}}
  template:
    metadata: {labels: {app: load}}
    spec: {nodeSelector: {example/group: small}, containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]}
Y
autoscale without.yaml refused.log
check "a stranger is told why" eventually 20 says "provider: Refresh:" events CloudProviderProblem
check "and grows nothing" nodes small 0
kill "$autoscaler_pid"; wait "$autoscaler_pid" 2>/dev/null

autoscale with.yaml autoscaler.log
check "three pods of three cores, nodes of four: three nodes" eventually 30 nodes small 3
check "the provider switched them on" grep -q "small-3 is switched on" provider.log
check "the pods run" eventually 20 sh -c '[ "$(kubectl get deploy load -o jsonpath="{.status.readyReplicas}")" = 3 ]'
check "logVerbosity 4 says what was weighed" grep -q "option: small with 3 more nodes for 3 pods" autoscaler.log

# A provider that stands still: told, and no node goes, whatever nobody needs.
kill -STOP "$provider_pid"
kubectl scale deploy load --replicas=0 >/dev/null
check "silence is told" eventually 20 says "Deadline Exceeded" events CloudProviderProblem
check "in the status as well" eventually 10 says "Deadline Exceeded" kubectl -n kube-system get cm cluster-autoscaler-status -o jsonpath='{.data.status}'
check "no node goes meanwhile" nodes small 3
kill -CONT "$provider_pid"
check "it is back: they go" eventually 40 nodes small 0
check "switched off one by one" grep -q "small-1 is switched off" provider.log
finish
