#!/usr/bin/env bash
# ValidatingAdmissionPolicies about placement (SPEC A7) through kubectl: the example's rules, their words, parameters, warnings.
. "$(dirname "$0")/lib.sh"
k() { kubectl "$@"; }
pod() { # pod NAME [SPEC-FIELDS]
  printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","namespace":"strict"},"spec":{%s"containers":[{"name":"c","image":"pause"}]}}' "$1" "${2:-}"
}
create() { printf '%s' "$1" | kubectl create -f -; }

start_up --nodes 2
check "policies and bindings are resources" says "validatingadmissionpolicybindings" kubectl api-resources
check "the example is accepted" k apply -f "$root/examples/admission-policy/placement-rules.yaml"
kubectl create namespace strict >/dev/null
kubectl label namespace strict placement=strict >/dev/null
check "a pod that says nothing is refused" says "ValidatingAdmissionPolicy 'pods-say-where' with binding 'pods-say-where' denied request: spec.nodeSelector.disktype must be ssd or hdd" create "$(pod silent)"
check "... and was not created" refused kubectl get pod silent -n strict
check "one that says it is admitted" create "$(pod says '"nodeSelector":{"disktype":"ssd"},')"
check "one that tolerates everything is refused" says "pod all tolerates every taint" create "$(pod all '"nodeSelector":{"disktype":"ssd"},"tolerations":[{"operator":"Exists"}],')"
check "elsewhere nobody asks" k create deployment free --image=pause --replicas=9
kubectl -n strict create configmap replica-limit --from-literal=maxReplicas=3 >/dev/null
check "too many replicas are refused" says "at most 3 replicas in namespace strict" kubectl -n strict create deployment big --image=pause --replicas=4
check "few enough are not" k -n strict create deployment small --image=pause --replicas=3
check "scaling up is an update" says "at most 3 replicas" kubectl -n strict patch deployment small -p '{"spec":{"replicas":5}}'
check "a typo in an expression is told with its place" says "undeclared reference to 'objekt'" kubectl create -f - <<Y
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: typo}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "objekt.spec.nodeName == ''"}]
Y
check "the binding goes, and so does the rule" k delete validatingadmissionpolicybinding pods-say-where
check "... a silent pod is admitted" create "$(pod silent)"
finish
