#!/usr/bin/env bash
# A cluster survives Ctrl-C and kill -9, and refuses a second start on the same data.
. "$(dirname "$0")/lib.sh"
start_up --nodes 3
check "apply" kubectl create deployment web --image=nginx --replicas=3
check "it runs" kubectl rollout status deployment/web --timeout=60s
before=$(kubectl get pods -o jsonpath='{range .items[*]}{.metadata.name}={.spec.nodeName};{end}')
revision=$(kubectl get --raw /api/v1/namespaces/default | sed -E 's/.*"resourceVersion":"([0-9]+)".*/\1/')
check "a second start on the same data is refused" refused timeout 20 "$berth" up --data-dir "$work/data" --listen 127.0.0.1:0
check "the refusal names the data directory" says "$work/data" timeout 20 "$berth" up --data-dir "$work/data" --listen 127.0.0.1:0
stop_up INT
start_up --nodes 3
check "the pods are where they were" [ "$before" = "$(kubectl get pods -o jsonpath='{range .items[*]}{.metadata.name}={.spec.nodeName};{end}')" ]
kubectl create configmap kept --from-literal=a=1 >/dev/null
stop_up KILL
start_up --nodes 3
check "an acknowledged write survives kill -9" says 1 kubectl get configmap kept -o jsonpath='{.data.a}'
kubectl scale deployment web --replicas=4 >/dev/null
check "scheduler and controllers go on, too" kubectl rollout status deployment/web --timeout=20s
after=$(kubectl get --raw /api/v1/namespaces/default/configmaps/kept | sed -E 's/.*"resourceVersion":"([0-9]+)".*/\1/')
check "revisions never go back" [ "$after" -gt "$revision" ]
check "private keys are 0600" sh -c "[ -z \"\$(find $work/data -name '*.key' -not -perm 600)\" ]"
check "anonymous requests get health only" sh -c "server=\$(kubectl config view -o jsonpath='{.clusters[0].cluster.server}'); curl -skf \$server/healthz && ! curl -skf \$server/api/v1/pods"
finish
