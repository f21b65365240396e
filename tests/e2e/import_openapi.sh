#!/usr/bin/env bash
# What the server publishes of its kinds is what the tables say: tools/import-openapi reads the one and compares it with the other, and finds what was changed.
. "$(dirname "$0")/lib.sh"
start_up --nodes 0
import=$root/tools/import-openapi
kubectl get --raw /openapi/v2 >"$work/openapi.json"
check "the published document and the tables agree" says "0 differences" "$import" "$work/openapi.json" --compare
check "a group's table is printed" says "  leaseTransitions int32 #5" "$import" "$work/openapi.json" coordination.v1
sed 's/"leaseTransitions"/"leaseChanges"/' "$work/openapi.json" >"$work/changed.json"
check "a new field is told" says "coordination.v1.LeaseSpec.leaseChanges int32: lacking" "$import" "$work/changed.json" --compare coordination.v1
check "and that a person has to look up its number" says "the number of coordination.v1.LeaseSpec.leaseChanges" "$import" "$work/changed.json" coordination.v1
check "an unknown group is told, with those there are" says "no type of nothing.v1 in the document; it has admissionregistration.v1" "$import" "$work/openapi.json" nothing.v1
echo '{}' >"$work/empty.json"
check "what is no OpenAPI document is told" says "not an OpenAPI document of Kubernetes" "$import" "$work/empty.json" --compare
finish
