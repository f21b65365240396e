#!/usr/bin/env bash
# deploy/: scheduler, descheduler, autoscaler and dashboard within a cluster, with no more rights than they use.
. "$(dirname "$0")/lib.sh"
start_up --nodes 3 --zones 3
admin=$KUBECONFIG
check "the manifests are taken whole, under the restricted pod security standard" kubectl apply -k "$root/deploy"
check "each part can be had alone" sh -c "for part in scheduler descheduler autoscaler dashboard; do kubectl kustomize '$root/deploy/'\$part >/dev/null || exit 1; done"
for part in scheduler descheduler autoscaler dashboard; do
  check "$part runs" kubectl -n berth-system rollout status deployment/berth-$part --timeout=60s
done
check "two replicas stand on two nodes" sh -c "kubectl -n berth-system get pods -l app.kubernetes.io/name=berth-scheduler -o jsonpath='{.items[*].spec.nodeName}' | tr ' ' '\n' | sort -u | wc -l | grep -qx 2"

# Each as its service account, with the file and the flags of the manifests: nothing that it asks for is forbidden.
server=$(kubectl config view --raw -o jsonpath='{.clusters[0].cluster.server}')
kubectl config view --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d >"$work/ca.crt"
as_account() { # as_account PART FLAGS...: runs for some seconds, its log in $work/PART.log
  local part=$1; shift
  KUBECONFIG=$work/$part.kubeconfig
  kubectl config set-cluster c --server "$server" --certificate-authority "$work/ca.crt" --embed-certs >/dev/null
  kubectl config set-credentials u --token "$(KUBECONFIG=$admin kubectl -n berth-system create token berth-$part)" >/dev/null
  kubectl config set-context c --cluster c --user u >/dev/null; kubectl config use-context c >/dev/null
  "$berth" "$part" --kubeconfig "$KUBECONFIG" "$@" >"$work/$part.log" 2>&1 &
  pids+=($!)
  KUBECONFIG=$admin
}
pids=()
stop_parts() { for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; done; pids=(); }
trap 'stop_parts; cleanup' EXIT
kubectl -n berth-system get configmap berth-scheduler -o jsonpath='{.data.scheduler\.yaml}' >"$work/scheduler.yaml"
kubectl -n berth-system get configmap berth-descheduler -o jsonpath='{.data.policy\.yaml}' >"$work/policy.yaml"
as_account scheduler --config "$work/scheduler.yaml" --secure-port 0
as_account descheduler --policy-config-file "$work/policy.yaml" --descheduling-interval 1s --leader-elect --leader-elect-resource-name=berth-descheduler --leader-elect-resource-namespace=berth-system --secure-port 0
as_account autoscaler --autoscaler-namespace=berth-system --scan-interval 1s --secure-port 0
as_account dashboard --port 0
kubectl apply -f "$root/examples/autoscaler/cluster-autoscaler.yaml" -f "$root/examples/autoscaler/machine-sets.yaml" >/dev/null
kubectl run other --image=pause --overrides='{"spec":{"schedulerName":"berth"}}' >/dev/null
check "a pod of schedulerName berth is placed by it" eventually 30 kubectl wait --for=condition=PodScheduled pod/other --timeout=1s
check "... as its event says" eventually 10 sh -c "kubectl get events --field-selector involvedObject.name=other,reason=Scheduled -o jsonpath='{.items[*].source.component}{.items[*].reportingComponent}' | grep -q berth"
check "the autoscaler writes its status" eventually 30 kubectl -n berth-system get configmap cluster-autoscaler-status
check "leaders hold Leases of their own" eventually 30 sh -c "kubectl -n berth-system get lease berth-scheduler berth-descheduler cluster-autoscaler"
stop_parts; [ -z "${KEEP:-}" ] || cp "$work"/*.log /tmp/ops-try/
for part in scheduler descheduler autoscaler dashboard; do check "$part asked for nothing forbidden" refused grep -iE 'forbidden|cannot (get|list|watch|create|update|patch)|wanted:' "$work/$part.log"; done
finish
