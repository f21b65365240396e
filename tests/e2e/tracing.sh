#!/usr/bin/env bash
# A pod's way from its creation until it runs is one trace, told by server, scheduler and nodes, and its id is the pod's uid (docs/tracing.md).
. "$(dirname "$0")/lib.sh"
python3 "$root/tests/e2e/otlp_collector.py" "$work/spans" >"$work/port" 2>"$work/collector.log" & collector=$!
cleanup() { stop_up KILL; kill "$collector" 2>/dev/null; wait "$collector" 2>/dev/null; rm -rf "$work"; }
eventually 10 test -s "$work/port"
printf 'apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\nendpoint: 127.0.0.1:%s\nsamplingRatePerMillion: 1000000\n' "$(cat "$work/port")" >"$work/tracing.yaml"
start_up --nodes 2 --real-node off --tracing-config-file "$work/tracing.yaml"
kubectl create deployment web --image=nginx >/dev/null
check "a pod runs" eventually 60 sh -c "kubectl get pods -l app=web -o jsonpath='{.items[*].status.phase}' | grep -qx Running"
uid=$(kubectl get pods -l app=web -o jsonpath='{.items[0].metadata.uid}') name=$(kubectl get pods -l app=web -o jsonpath='{.items[0].metadata.name}')
cat >"$work/way.py" <<'P'
import json, sys
spans = {}
for line in open(sys.argv[1]):
    span = json.loads(line)
    if span["trace"] == sys.argv[2].replace("-", ""):
        spans[span["span"]] = span
pod = "/api/v1/namespaces/default/pods/" + sys.argv[3]
wanted = {"Pod default/" + sys.argv[3], "Schedule pod", f"POST {pod}/binding", f"PATCH {pod}/status"}
missing = wanted - {span["name"] for span in spans.values()}
firsts = [span["name"] for span in spans.values() if not span["parent"]]
strays = [span["name"] for span in spans.values() if span["parent"] and span["parent"] not in spans]
errors = [span for span in spans.values() if span["error"] or span["start_ns"] > span["end_ns"]]
print("missing", missing, "first", firsts, "strays", strays, "errors", errors)
sys.exit(bool(missing or firsts != ["Pod default/" + sys.argv[3]] or strays or errors))
P
check "creation, scheduling, binding and status are one trace, below the creation" eventually 20 python3 "$work/way.py" "$work/spans" "$uid" "$name"

# A caller's own trace goes on, and the pod's names it.
url=$(kubectl config view --raw -o jsonpath='{.clusters[0].cluster.server}')
kubectl config view --raw -o jsonpath='{.users[0].user.client-certificate-data}' | base64 -d >"$work/admin.crt"
kubectl config view --raw -o jsonpath='{.users[0].user.client-key-data}' | base64 -d >"$work/admin.key"
caller=4bf92f3577b34da6a3ce929d0e0e4736
curl -sk --cert "$work/admin.crt" --key "$work/admin.key" -H "traceparent: 00-$caller-00f067aa0ba902b7-01" -H 'Content-Type: application/json' "$url/api/v1/namespaces/default/pods" \
  -d '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"asked"},"spec":{"containers":[{"name":"c","image":"nginx"}]}}' >/dev/null
check "a caller's trace has its request" eventually 20 grep -q "\"name\": \"POST /api/v1/namespaces/default/pods\", \"trace\": \"$caller\"" "$work/spans"
check "... and the pod's is linked to it" eventually 20 grep -q "\"name\": \"Pod default/asked\".*\"links\": \[\"$caller\"\]" "$work/spans"
check "each names who told it" sh -c "grep -q '\"service\": \"berth-server\"' '$work/spans'"
finish
