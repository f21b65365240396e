#!/usr/bin/env bash
# Snapshots that no cluster should have: the offline commands place or refuse with a reason, warn of what is no use, and never crash.
. "$(dirname "$0")/lib.sh"

python3 - "$work" <<'P'
import json, sys
work = sys.argv[1]
def node(name, allocatable=None, labels={}, taints=[]):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {"taints": taints},
            "status": {"allocatable": allocatable or {"cpu": "4", "memory": "8Gi", "pods": "10"}}}
def pod(name, where=None, requests=None, **spec):
    out = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
           "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests or {}}}], **spec}}
    if where: out["spec"]["nodeName"] = where
    return out
def write(name, *items): json.dump(items[0] if len(items) == 1 else {"kind": "List", "items": list(items)}, open(f"{work}/{name}.json", "w"))
write("new", pod("new", None, {"cpu": "1"}))
write("negative-pod", pod("new", None, {"cpu": "-1", "memory": "-5Gi"}))
write("huge-pod", pod("new", None, {"cpu": "99999999999999999999E9"}, priority=2147483647))
write("shapeless-pod", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": "default"}, "spec": {"containers": "none",
      "affinity": [1], "tolerations": {}, "topologySpreadConstraints": "x", "volumes": [{"persistentVolumeClaim": {}}, 7]}})
write("dangling", node("good"), pod("lost", "nowhere", {"cpu": "4"}))
write("duplicates", node("good"), node("full"), pod("twice", "good", {"cpu": "4"}), pod("twice", "full", {"cpu": "4"}))
write("overcommitted", node("over"), pod("glutton", "over", {"cpu": "400", "memory": "9999Ti"}), pod("second", "over", {"cpu": "9223372036854775807"}))
write("nothing", node("zero", {"cpu": "0", "memory": "0", "pods": "0"}), node("empty", {"pods": "1"}))
write("negative", node("negative", {"cpu": "-4", "memory": "-8Gi", "pods": "-1"}))
write("makes-room", node("small", {"cpu": "500m", "memory": "1Gi", "pods": "10"}), pod("giver", "small", {"cpu": "-4"}))
write("absurd", node("absurd", {"cpu": "99999999999999999999999E30", "memory": "1e400", "pods": "9223372036854775808"}))
write("garbage", node("garbage", {"cpu": "four", "memory": "", "pods": None}), {"kind": "Node"}, {"kind": "Node", "metadata": None, "spec": [], "status": "x"},
      {"kind": "Pod", "metadata": {"name": 7}}, {"metadata": {"name": "x"}}, [], None, "text", 5)
write("labels", node("labelled", labels={f"k{i}": f"v{i}" for i in range(10000)}))
write("taints", node("tainted", taints=[{"key": f"t{i}", "effect": "NoSchedule"} for i in range(10000)]))
write("terms", node("good"), pod("bad", "good", None, topologySpreadConstraints=[{"maxSkew": -3, "topologyKey": "", "whenUnsatisfiable": "Nope"}],
      affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "", "labelSelector": {"matchExpressions": [{"key": "", "operator": "What"}]}}]}}),
      {"kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Bad"}]}}, "status": {"disruptionsAllowed": -5}},
      {"kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {"capacity": {"storage": "lots"}, "claimRef": 3}})
P

explains() { "$berth" explain --compatibility "$3" --cluster "$work/$1.json" --pod "$work/$2.json"; }
ends() { "$@" >"$work/ends" 2>&1; local code=$?; [ $code -le 1 ] || { echo "ended with $code"; cat "$work/ends"; return 1; }; }
for era in 1.36 1.20; do
  for cluster in dangling duplicates overcommitted nothing negative makes-room absurd garbage labels taints terms; do
    for pod in new negative-pod huge-pod shapeless-pod; do
      check "$era: explain $pod on $cluster" ends explains $cluster $pod $era
      check "$era: place $pod on $cluster" ends "$berth" place --compatibility $era --cluster "$work/$cluster.json" --pods "$work/$pod.json" --pending --copies 3
    done
  done
  check "$era: a pod of an unknown node takes no room" says "fits on 1 of 1 nodes; the best is good" explains dangling new $era
  check "$era: and is warned of" says "Pod default/lost: its node nowhere is not there" explains dangling new $era
  check "$era: of duplicates the last counts" says "fits on 1 of 2 nodes; the best is good" explains duplicates new $era
  check "$era: and they are warned of" says "all but the last Pod default/twice" explains duplicates new $era
  check "$era: an overcommitted node takes no more" says "Insufficient cpu" explains overcommitted new $era
  check "$era: a node with nothing takes nothing" says "fits on none of 2 nodes" explains nothing new $era
  check "$era: negative capacity takes nothing" says "Too many pods" explains negative new $era
  check "$era: a negative request makes no room" says "Insufficient cpu" explains makes-room new $era
  check "$era: capacity without measure takes a pod" says "fits on 1 of 1 nodes" explains absurd new $era
  check "$era: quantities that are none are nothing" says "Insufficient cpu" explains garbage new $era
  check "$era: nameless documents are warned of" says "a Node without a name" explains garbage new $era
  check "$era: ten thousand labels" says "the best is labelled" explains labels new $era
  check "$era: ten thousand taints" says "TaintToleration" explains taints new $era
  check "$era: a pod too large for any node" says "Insufficient cpu" explains dangling huge-pod $era
done
finish
