#!/usr/bin/env bash
# CustomResourceDefinitions with stock kubectl, against one `berth up`: a kind with every feature from its birth to its end, its mistakes in
# Kubernetes' words, and over a restart.
. "$(dirname "$0")/lib.sh"
start_up --nodes 0
example=$root/examples/custom-resources

check "apply a definition" says "crontabs.stable.example.com created" kubectl apply -f "$example/crontabs.yaml"
check "it is established" kubectl wait --for=condition=Established crd/crontabs.stable.example.com --timeout=20s
check "names accepted" says "no conflicts found" kubectl get crd crontabs.stable.example.com -o yaml
check "discovered" says "crontabs" kubectl api-resources --api-group=stable.example.com
check "an object" says "crontab.stable.example.com/nightly created" kubectl apply -f "$example/my-crontab.yaml"
check "applied again" says "unchanged" kubectl apply -f "$example/my-crontab.yaml"
check "columns" says "0 3 * * *" kubectl get ct
check "defaults" says "red" kubectl get ct nightly -o jsonpath='{.spec.color}'
check "unknown fields that are preserved" says "[1,2]" kubectl get ct nightly -o jsonpath='{.spec.free.anything}'
check "category" says "nightly" kubectl get all
check "explain" says "The wish." kubectl explain crontabs.spec
check "selectable field" says "nightly" kubectl get ct --field-selector spec.color=red -o name
check "another value selects nothing" says "No resources found" kubectl get ct --field-selector spec.color=blue
check "scale" kubectl scale ct/nightly --replicas=3
check "scaled" says 3 kubectl get ct nightly -o jsonpath='{.spec.replicas}'
check "status by its own door" kubectl patch ct nightly --subresource=status --type=merge -p '{"status":{"phase":"Running","replicas":2}}'
check "status is there" says "Running" kubectl get ct nightly -o jsonpath='{.status.phase}'
check "no status by the front door" kubectl patch ct nightly --type=merge -p '{"status":{"phase":"Broken"}}'
check "status stays" says "Running" kubectl get ct nightly -o jsonpath='{.status.phase}'
check "strategic patches are refused" says "unknown format" kubectl patch ct nightly --type=strategic -p '{"spec":{"replicas":1}}'
check "a pattern in Kubernetes' words" says "spec.cronSpec in body should match" kubectl patch ct nightly --type=merge -p '{"spec":{"cronSpec":"never"}}'
check "a wrong type" says 'spec.replicas in body must be of type integer: "string"' kubectl patch ct nightly --type=merge -p '{"spec":{"replicas":"many"}}'
check "an enum" says 'supported values: "red", "green", "blue"' kubectl patch ct nightly --type=merge -p '{"spec":{"color":"pink"}}'
check "a maximum" says "spec.replicas in body should be less than or equal to 10" kubectl patch ct nightly --type=merge -p '{"spec":{"replicas":11}}'
check "a rule" says "replicas must not be above maxReplicas" kubectl patch ct nightly --type=merge -p '{"spec":{"replicas":9}}'
check "a transition rule" says "color cannot change" kubectl patch ct nightly --type=merge -p '{"spec":{"color":"blue"}}'
check "a list by keys" says "Duplicate value" kubectl patch ct nightly --type=merge -p '{"spec":{"steps":[{"name":"a"},{"name":"a"}]}}'
check "strict validation" says 'unknown field "spec.typo"' kubectl patch ct nightly --type=merge -p '{"spec":{"typo":1}}' --warnings-as-errors
check "server-side apply" kubectl apply --server-side --force-conflicts -f "$example/my-crontab.yaml"

cat >"$work/bad.yaml" <<'Y'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bads.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: bads, kind: Bad}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {properties: {a: {type: string, pattern: "["}}}, other: {type: object, $ref: "#/x"}}}}
Y
check "a schema that is not structural" says "must not be empty for specified object fields" kubectl apply -f "$work/bad.yaml"
sed 's/versions:/versions: []/; /name: v1/,$d' "$work/bad.yaml" >"$work/none.yaml"
check "no versions" says "must have exactly one version marked as storage version" kubectl apply -f "$work/none.yaml"
sed 's/crontabs/kronos/; s/kind: CronTab/kind: CronTab/; s/plural: crontabs/plural: kronos/; s/singular: crontab/singular: krono/' "$example/crontabs.yaml" >"$work/twin.yaml"
check "names that are taken" kubectl apply -f "$work/twin.yaml"
check "are told of" eventually 10 says "is already in use" kubectl get crd kronos.stable.example.com -o yaml

kubectl create configmap owner >/dev/null
owner=$(kubectl get configmap owner -o jsonpath='{.metadata.uid}')
crontab() { # METADATA: a crontab with these fields beside the others
  printf '{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":%s,"spec":{"cronSpec":"0 3 * * *"}}' "$1"
}
crontab '{"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"'"$owner"'"}]}' | kubectl apply -f - >/dev/null
check "an owned object" says "owned" kubectl get ct owned -o jsonpath='{.metadata.ownerReferences[0].kind} {.metadata.name}'
kubectl delete configmap owner >/dev/null
check "goes with its owner" eventually 20 says "not found" kubectl get ct owned
kubectl create quota few --hard=count/crontabs.stable.example.com=1 >/dev/null
check "quotas count them" eventually 20 says "1" kubectl get quota few -o jsonpath='{.status.used.count/crontabs\.stable\.example\.com}'
crontab '{"name":"more"}' >"$work/more.json"
check "and stop at their limit" says "exceeded quota" kubectl create -f "$work/more.json"
kubectl delete quota few >/dev/null

kubectl create namespace held >/dev/null
crontab '{"name":"held","namespace":"held","finalizers":["example.com/hold"]}' | kubectl apply -f - >/dev/null
kubectl delete namespace held --wait=false >/dev/null
check "a finalizer holds the namespace" eventually 20 says "example.com/hold in 1 resource instances" kubectl get namespace held -o jsonpath='{.status.conditions[*].message}'
kubectl -n held patch ct held --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]' >/dev/null
check "until it falls" eventually 30 says "not found" kubectl get namespace held

kubectl create namespace gone >/dev/null
kubectl -n gone apply -f "$example/my-crontab.yaml" >/dev/null
kubectl delete namespace gone --timeout=30s >/dev/null
check "objects go with their namespace" eventually 10 says "No resources found" kubectl -n gone get ct

stop_up
start_up --nodes 0
check "after a restart" says "nightly" kubectl get ct
check "deletion" kubectl delete crd crontabs.stable.example.com --timeout=30s
check "takes the objects along" says "could not find the requested resource" kubectl get ct
finish
