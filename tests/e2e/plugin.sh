#!/usr/bin/env bash
# examples/plugin is built out of the tree against an installation, and runs in scheduler, explain and place alike.
. "$(dirname "$0")/lib.sh"
build=$(dirname "$(dirname "$berth")")
example=$root/examples/plugin
check "what plugins need is installed" cmake --install "$build" --prefix "$work/prefix"
check "find_package(berth) finds it" cmake -S "$example" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix"
check "one file becomes a library" cmake --build "$work/build" --target gpu_share
so=$work/build/gpu_share.so

by_plugin() { "$berth" --plugin "$so" "$@" --cluster "$example/cluster.yaml" --config "$example/gpu-share.yaml"; }
check "place puts four GPUs where there are four" says "four   gpu-a" sh -c "'$berth' --plugin '$so' place --cluster '$example/cluster.yaml' --config '$example/gpu-share.yaml' --pods '$example/pods.yaml' | sed 's/default.//'"
check "and says of eight that there are not so many" says "Insufficient GPU" by_plugin place --pods "$example/pods.yaml"
sed -n '/name: four/,/^---/p' "$example/pods.yaml" | sed '$d' >/dev/null
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: big, annotations: {alibabacloud.com/gpu-count: "8"}}\nspec: {containers: [{name: c, image: i}]}\n' >"$work/big.yaml"
check "explain gives the plugin's reasons" says "node(s) had no GPU" by_plugin explain --pod "$work/big.yaml" -o wide
check "a pod's mistake is named" sh -c "sed 's/\"8\"/many/' '$work/big.yaml' >'$work/bad.yaml'; '$berth' --plugin '$so' explain --cluster '$example/cluster.yaml' --config '$example/gpu-share.yaml' --pod '$work/bad.yaml' 2>&1 | grep -q 'annotation alibabacloud.com/gpu-count: \"many\" is not a number'"

sed 's/policy: FGD/polcy: FGD/; s/popularity: 0.4/popularity: none/' "$example/gpu-share.yaml" >"$work/wrong.yaml"
wrong() { "$berth" --plugin "$so" place --cluster "$example/cluster.yaml" --config "$work/wrong.yaml" --pods "$example/pods.yaml"; }
check "an unknown argument has its file, line and field" says "wrong.yaml:13: profiles[0].pluginConfig[0].args.polcy: unknown field \"polcy\"; did you mean \"policy\"?" wrong
check "so has a value of the wrong kind" says "args.typicalPods[0].popularity: must be a number" wrong
check "without the library the plugin is not there, and berth says how it comes" says 'plugin "GpuShare" does not exist; a plugin of your own is loaded first: berth --plugin FILE.so' \
  "$berth" place --cluster "$example/cluster.yaml" --config "$example/gpu-share.yaml" --pods "$example/pods.yaml"

sed 's/BERTH-PLUGIN: berth 0/BERTH-PLUGIN: berth 9/' "$so" >"$work/other.so"
check "a library for another berth is refused, with what to do" says "was built for another berth" "$berth" --plugin "$work/other.so" version
check "a file that is no library, too" says "is not a library of berth plugins" "$berth" --plugin "$example/pods.yaml" version
check "one that is not there" says "No such file" "$berth" --plugin "$work/none.so" version
check "the option wants a file" says "--plugin: needs the file" "$berth" --plugin
check "and stands before the command" says "--plugin goes before the command: berth --plugin FILE.so version" "$berth" version --plugin "$so"
cp "$so" "$work/twice.so"
check "a name is given once" says 'there is a plugin "GpuShare" already' "$berth" --plugin "$so" --plugin "$work/twice.so" version
check "one file twice is one file" says "berth" "$berth" --plugin "$so" --plugin="$so" version

cat >"$work/shared.yaml" <<S
title: shared GPUs
duration: 10m
nodes:
- {name: gpu, count: 1, cpu: "32", memory: 256Gi, labels: {alibabacloud.com/gpu-card-model: V100}, capacity: {alibabacloud.com/gpu-count: "2"}}
scheduler: $example/gpu-share.yaml
workloads:
- {name: part, pod: {cpu: 1, memory: 1Gi, annotations: {alibabacloud.com/gpu-milli: "600"}}, arrivals: {at: [1m, 2m, 3m]}}
S
check "simulate gives two GPUs away and no more" says "3 pods came, 2 were placed" "$berth" --plugin "$so" simulate "$work/shared.yaml"
check "and says what the third waits for" says "Insufficient GPU" "$berth" --plugin "$so" simulate "$work/shared.yaml"
check "what-if places by it" says "Insufficient GPU" "$berth" --plugin "$so" what-if --cluster "$example/cluster.yaml" --config "$example/gpu-share.yaml" -f "$example/pods.yaml"
check "capacity counts by it" says "Insufficient GPU" by_plugin capacity --pod "$example/pods.yaml"

real=$berth
cat >"$work/with_plugin" <<W
#!/bin/sh
exec "$real" --plugin "$so" "\$@"
W
chmod +x "$work/with_plugin"
berth=$work/with_plugin
start_up --nodes 2 --config "$example/gpu-share.yaml"
berth=$real
eventually 20 kubectl wait --for=condition=Ready node --all --timeout=1s
kubectl apply -f "$example/pods.yaml" >/dev/null
index() { kubectl get pod "$1" -o jsonpath='{.spec.nodeName} {.metadata.annotations.alibabacloud\.com/gpu-index}'; }
refused_by_plugin() { kubectl get pod share -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}' | grep 'had no GPU' >/dev/null; }
check "the scheduler refuses what the plugin refuses" eventually 20 refused_by_plugin
kubectl get node node-1 -o json | sed 's/"name": "node-1"/"name": "gpu-1"/; s/"kubernetes.io\/hostname": "node-1"/"kubernetes.io\/hostname": "gpu-1", "alibabacloud.com\/gpu-card-model": "V100"/; s/"allocatable": {/"allocatable": {"alibabacloud.com\/gpu-count": "4",/; s/"uid": "[^"]*",//; s/"resourceVersion": "[^"]*",//' >"$work/node.json"
kubectl create -f "$work/node.json" >/dev/null
placed() { [ "$(index "$1")" = "$2" ]; }
check "a node with GPUs wakes the pod, and its GPU is written to it" eventually 30 placed share "gpu-1 0"
finish
