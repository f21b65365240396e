#!/usr/bin/env bash
# FlowSchemas and PriorityLevelConfigurations through kubectl: what is there, what comes back, what takes effect, what is refused.
. "$(dirname "$0")/lib.sh"
start_up --nodes 0 --real-node off
level=prioritylevelconfigurations schema=flowschemas
uid() { kubectl get "$1" "$2" -o jsonpath='{.metadata.uid}' 2>/dev/null; }
missing() { kubectl get $schema "$1" -o jsonpath='{.status.conditions[?(@.type=="Dangling")].status}'; }
# The level that a request as USER is answered from.
level_of() { kubectl get pods --as "$1" --as-group system:serviceaccounts --as-group system:authenticated -v=8 2>&1 | sed -nE 's/.*X-Kubernetes-Pf-Prioritylevel-Uid: *([-0-9a-f]+).*/\1/Ip' | head -1; }

for name in exempt catch-all system node-high leader-election workload-high workload-low global-default; do
  check "level $name is there" says "$name" kubectl get $level "$name"
done
check "columns of schemas" sh -c "kubectl get $schema | head -1 | grep -qE 'PRIORITYLEVEL +MATCHINGPRECEDENCE +DISTINGUISHERMETHOD +AGE +MISSINGPL'"
check "columns of levels" says 'QUEUELENGTHLIMIT' kubectl get $level
check "a schema's row" sh -c "kubectl get $schema system-nodes | grep -qE '^system-nodes +system +500 +ByUser +[^ ]+ +False'"
check "describe tells the condition" says 'Dangling' kubectl describe flowschema probes
check "explain knows the fields" says 'borrowingLimitPercent' kubectl explain prioritylevelconfiguration.spec.limited
check "discovery has the kinds" says 'flowcontrol.apiserver.k8s.io/v1' kubectl api-resources --api-group=flowcontrol.apiserver.k8s.io

before=$(uid $level catch-all)
check "a mandatory level can be deleted" kubectl delete $level catch-all
comes_back() { local now; now=$(uid $level catch-all); [ -n "$now" ] && [ "$now" != "$before" ]; }
check "and comes back" eventually 20 comes_back
check "its spec cannot be changed" says "spec of 'catch-all' must equal the fixed value" kubectl patch flowschema catch-all --type merge -p '{"spec":{"matchingPrecedence":9}}'
shares() { [ "$(kubectl get $level workload-low -o jsonpath='{.spec.limited.nominalConcurrencyShares}')" = "$1" ]; }
check "a suggested level is changed" kubectl patch $level workload-low --type merge -p '{"spec":{"limited":{"nominalConcurrencyShares":50}}}'
check "and set back" eventually 20 shares 100
kubectl annotate --overwrite $level workload-low apf.kubernetes.io/autoupdate-spec=false >/dev/null
check "with the annotation it is changed" kubectl patch $level workload-low --type merge -p '{"spec":{"limited":{"nominalConcurrencyShares":50}}}'

check "the example is applied" kubectl apply -f "$root/examples/flow-control.yaml"
is_missing() { [ "$(missing noisy)" = "$1" ]; }
check "its level is there" eventually 20 is_missing False
crawler=system:serviceaccount:default:crawler
goes_to() { [ "$(level_of $crawler)" = "$(uid $level "$1")" ]; }
kubectl create clusterrolebinding crawler --clusterrole view --serviceaccount default:crawler >/dev/null
check "the account's requests go to it" eventually 20 goes_to noisy
check "the level is deleted" kubectl delete $level noisy
check "the schema says so" eventually 20 is_missing True
check "its requests go where they went before" eventually 20 goes_to workload-low
check "what was changed stayed" shares 50
check "metrics" says 'apiserver_flowcontrol_dispatched_requests_total{flow_schema="noisy",priority_level="noisy"}' kubectl get --raw /metrics
check "the dump of levels" says 'workload-low,' kubectl get --raw /debug/api_priority_and_fairness/dump_priority_levels
check "the dump of requests" says 'PriorityLevelName, FlowSchemaName,' kubectl get --raw '/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1'
check "a precedence beyond the range is refused" says 'must not be greater than 10000' sh -c "sed 's/matchingPrecedence: 1000/matchingPrecedence: 10001/' $root/examples/flow-control.yaml | kubectl apply -f -"
check "a user without rights does not see them" says 'forbidden' kubectl get $schema --as jane
finish
