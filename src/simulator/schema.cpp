// The scenario files' JSON schema: for editors' completion. What a scenario means, and all that can be wrong with one, is scenario*.cpp's.
#include "simulator/scenario.h"

namespace berth::simulator {

// Longer than a screen: a document.
std::string_view scenario_schema() {
  return R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "berth simulate: a scenario",
  "type": "object",
  "required": ["duration"],
  "additionalProperties": false,
  "definitions": {
    "span": {"anyOf": [{"type": "string", "pattern": "^([0-9.]+(ns|us|ms|s|m|h))+$|^[0-9.]+[dw]$|^0$"}, {"const": 0}], "description": "A time with its unit: 30s, 10m, 6h, 7d"},
    "spans": {"anyOf": [{"$ref": "#/definitions/span"}, {"type": "array", "items": {"$ref": "#/definitions/span"}}]},
    "rate": {"type": "string", "pattern": "^[0-9.]+/[a-z0-9]+$", "description": "So many in a time: 120/h, 2/m, 3/day"},
    "share": {"type": "string", "pattern": "^[0-9.]+%$"},
    "count": {"type": "integer", "minimum": 0},
    "quantity": {"type": ["string", "number"], "description": "As Kubernetes writes it: 2, 500m, 4Gi"},
    "amounts": {"type": "object", "additionalProperties": {"$ref": "#/definitions/quantity"}},
    "texts": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    "day": {"type": "object", "description": "Times of the day (9h, 09:30) and values, straight lines between"},
    "lengths": {"anyOf": [{"$ref": "#/definitions/span"}, {"type": "object", "additionalProperties": false, "properties": {
      "mean": {"$ref": "#/definitions/span", "description": "Exponential"}, "min": {"$ref": "#/definitions/span"}, "max": {"$ref": "#/definitions/span", "description": "With min: uniform"},
      "median": {"$ref": "#/definitions/span"}, "p95": {"$ref": "#/definitions/span", "description": "With median: log-normal"}}}]},
    "objects": {"description": "A file beside the scenario, an object, or a list of these", "anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "items": {"type": ["string", "object"]}}]},
    "choice": {"description": "Nodes: a number (at random), a name, names, or a map", "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}, {"type": "array", "items": {"type": "string"}},
      {"type": "object", "additionalProperties": false, "properties": {"count": {"$ref": "#/definitions/count"}, "names": {"type": "array", "items": {"type": "string"}}, "zone": {"type": "string"}, "selector": {"type": "string"}}}]},
    "component": {"enum": ["server", "scheduler", "controllers", "nodes", "autoscaler", "pools", "descheduler"]},
    "arrivals": {"type": "object", "additionalProperties": false, "properties": {
      "at": {"$ref": "#/definitions/spans", "description": "At these times"}, "every": {"$ref": "#/definitions/span", "description": "One after the other at a constant pace"},
      "rate": {"$ref": "#/definitions/rate", "description": "At random (Poisson), so many on average"}, "daily": {"$ref": "#/definitions/day", "description": "At random, at a rate that follows the day"},
      "from": {"$ref": "#/definitions/span"}, "until": {"$ref": "#/definitions/span"}, "max": {"$ref": "#/definitions/count", "description": "No more than so many"}}},
    "pod": {"type": "object", "additionalProperties": false, "properties": {
      "cpu": {"$ref": "#/definitions/quantity"}, "memory": {"$ref": "#/definitions/quantity"}, "requests": {"$ref": "#/definitions/amounts"}, "limits": {"$ref": "#/definitions/amounts"},
      "usage": {"type": "object", "additionalProperties": false, "description": "What it uses over its age: 0s=100Mi,5m=2Gi", "properties": {"cpu": {"type": ["string", "number"]}, "memory": {"type": "string"}, "disk": {"type": "string"}, "inodes": {"type": ["string", "number"]}, "pids": {"type": ["string", "number"]}}},
      "labels": {"$ref": "#/definitions/texts"}, "annotations": {"$ref": "#/definitions/texts"}, "priorityClassName": {"type": "string"}, "schedulerName": {"type": "string"},
      "nodeSelector": {"$ref": "#/definitions/texts"}, "tolerations": {"type": "array"}, "spec": {"type": "object", "description": "Any fields of a PodSpec"},
      "startDelay": {"$ref": "#/definitions/span"}, "readyAfter": {"$ref": "#/definitions/span"}, "exitCode": {"type": "integer"}}},
    "nodeSet": {"type": "object", "additionalProperties": false, "properties": {
      "name": {"type": "string"}, "count": {"$ref": "#/definitions/count"}, "zones": {"type": ["string", "array"]}, "region": {"type": "string"}, "capacity": {"$ref": "#/definitions/amounts"},
      "cpu": {"$ref": "#/definitions/quantity"}, "memory": {"$ref": "#/definitions/quantity"}, "pods": {"$ref": "#/definitions/quantity"}, "labels": {"$ref": "#/definitions/texts"},
      "annotations": {"$ref": "#/definitions/texts"}, "taints": {"type": "array"}, "instanceType": {"type": "string"}, "price": {"$ref": "#/definitions/rate"}, "devices": {"type": "string"}}}
  },
  "properties": {
    "title": {"type": "string"},
    "duration": {"$ref": "#/definitions/span"},
    "seed": {"$ref": "#/definitions/count"},
    "start": {"type": "string", "description": "RFC 3339; 2026-01-01T00:00:00Z otherwise"},
    "from": {"$ref": "#/definitions/objects", "description": "A dump of a real cluster: kubectl get … -o yaml"},
    "replay": {"description": "A recording (berth record)", "anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": false, "properties": {"file": {"type": "string"}, "as": {"enum": ["pods", "workloads"]}}}]},
    "nodes": {"type": "array", "items": {"$ref": "#/definitions/nodeSet"}},
    "groups": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
      "name": {"type": "string"}, "min": {"$ref": "#/definitions/count"}, "max": {"$ref": "#/definitions/count"}, "size": {"$ref": "#/definitions/count"}, "zone": {"type": "string"}, "region": {"type": "string"},
      "capacity": {"$ref": "#/definitions/amounts"}, "cpu": {"$ref": "#/definitions/quantity"}, "memory": {"$ref": "#/definitions/quantity"}, "pods": {"$ref": "#/definitions/quantity"},
      "labels": {"$ref": "#/definitions/texts"}, "annotations": {"$ref": "#/definitions/texts"}, "taints": {"type": "array"}, "instanceType": {"type": "string"}, "price": {"$ref": "#/definitions/rate"}, "bootDelay": {"$ref": "#/definitions/span"}}}},
    "workloads": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
      "name": {"type": "string"}, "namespace": {"type": "string"}, "pod": {"$ref": "#/definitions/pod"},
      "deployment": {"type": "object", "additionalProperties": false, "properties": {"replicas": {"$ref": "#/definitions/count"}, "spec": {"type": "object"}}},
      "job": {"type": "object", "additionalProperties": false, "properties": {"completions": {"$ref": "#/definitions/count"}, "parallelism": {"$ref": "#/definitions/count"}, "backoffLimit": {"$ref": "#/definitions/count"}, "spec": {"type": "object"}}},
      "manifests": {"$ref": "#/definitions/objects"},
      "trace": {"type": "object", "additionalProperties": false, "required": ["file"], "properties": {"file": {"type": "string"}, "columns": {"$ref": "#/definitions/texts"}, "timeUnit": {"enum": ["us", "ms", "s", "m", "h"]}, "units": {"$ref": "#/definitions/texts"}, "keepTimes": {"type": "boolean"}, "speed": {"type": "number"}}},
      "arrivals": {"$ref": "#/definitions/arrivals"}, "runFor": {"$ref": "#/definitions/lengths"}, "keepFinished": {"$ref": "#/definitions/span"},
      "budget": {"type": "object", "additionalProperties": false, "properties": {"minAvailable": {"type": ["integer", "string"]}, "maxUnavailable": {"type": ["integer", "string"]}}},
      "hpa": {"type": "object", "additionalProperties": false, "properties": {"min": {"$ref": "#/definitions/count"}, "max": {"$ref": "#/definitions/count"}, "cpu": {"$ref": "#/definitions/share"}, "behavior": {"type": "object"}}},
      "gang": {"type": "object", "additionalProperties": false, "description": "Pods that are of use together alone", "properties": {
        "size": {"$ref": "#/definitions/count"}, "minCount": {"$ref": "#/definitions/count"}, "topology": {"type": "string"}, "disruptionMode": {"enum": ["Pod", "PodGroup"]}, "queue": {"type": "string"}, "patience": {"$ref": "#/definitions/span"}}},
      "load": {"$ref": "#/definitions/day"}}}},
    "faults": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {
      "at": {"$ref": "#/definitions/spans"}, "rate": {"$ref": "#/definitions/rate"}, "from": {"$ref": "#/definitions/span"}, "until": {"$ref": "#/definitions/span"}, "for": {"$ref": "#/definitions/lengths"},
      "lose": {"$ref": "#/definitions/choice"}, "delete": {"$ref": "#/definitions/choice"}, "cordon": {"$ref": "#/definitions/choice"},
      "interrupt": {"$ref": "#/definitions/choice"},
      "taint": {"type": "object", "additionalProperties": false, "properties": {"nodes": {"$ref": "#/definitions/choice"}, "key": {"type": "string"}, "value": {"type": "string"}, "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]}}},
      "slowApi": {"$ref": "#/definitions/span"}, "failingApi": {"$ref": "#/definitions/share"}, "restart": {"$ref": "#/definitions/component"}, "cut": {"$ref": "#/definitions/component"},
      "clock": {"type": "object", "additionalProperties": false, "properties": {"component": {"enum": ["controllers"]}, "by": {"type": "string"}}}}}},
    "changes": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["at"], "properties": {
      "at": {"$ref": "#/definitions/spans"}, "apply": {"$ref": "#/definitions/objects"},
      "delete": {"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "namespace": {"type": "string"}, "name": {"type": "string"}}},
      "patch": {"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "namespace": {"type": "string"}, "name": {"type": "string"}, "merge": {"type": "object"}}},
      "scale": {"type": "object", "properties": {"deployment": {"type": "string"}, "statefulSet": {"type": "string"}, "namespace": {"type": "string"}, "replicas": {"$ref": "#/definitions/count"}}},
      "scheduler": {"type": ["string", "object"]}, "descheduler": {"type": ["string", "object", "boolean"]}, "addNodes": {"$ref": "#/definitions/nodeSet"},
      "removeNodes": {"$ref": "#/definitions/choice"}, "drain": {"$ref": "#/definitions/choice"}, "uncordon": {"$ref": "#/definitions/choice"}}}},
    "scheduler": {"type": ["string", "object"], "description": "A KubeSchedulerConfiguration or Policy, or its file"},
    "controllers": {"type": "object", "additionalProperties": false, "properties": {"flags": {"type": "array", "items": {"type": "string"}, "description": "kube-controller-manager's"}}},
    "autoscaler": {"anyOf": [{"type": "boolean"}, {"type": "object", "additionalProperties": false, "properties": {"scanInterval": {"$ref": "#/definitions/span"}, "spec": {"type": "object", "description": "A ClusterAutoscaler's"}}}]},
    "descheduler": {"type": "object", "additionalProperties": false, "properties": {"policy": {"type": ["string", "object"]}, "every": {"$ref": "#/definitions/span"}}},
    "kubelet": {"type": "object", "description": "Fields of a KubeletConfiguration, for every node"},
    "behaviour": {"type": "array", "description": "Rules for pods' behaviour (docs/simulated-nodes.md)"},
    "prices": {"type": "object", "additionalProperties": {"$ref": "#/definitions/rate"}, "description": "By instance type"},
    "nodePools": {"$ref": "#/definitions/objects", "description": "NodePools (karpenter.sh/v1) and SimulatedNodeClasses (docs/node-pools.md)"},
    "instanceTypes": {"type": ["string", "object"], "description": "An InstanceTypeCatalogue, or its file: what pools buy"},
    "currency": {"type": "string", "description": "In which prices are, such as EUR"},
    "record": {"type": "object", "additionalProperties": false, "properties": {"every": {"$ref": "#/definitions/span"}, "events": {"type": "boolean"}}},
    "assert": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": false, "properties": {
      "name": {"type": "string"}, "that": {"type": "string"}, "always": {"type": "string"}, "at": {"type": "string"}, "after": {"$ref": "#/definitions/span"}}}]}},
    "compare": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["name"], "properties": {"name": {"type": "string"}, "set": {"type": "object", "description": "Fields of the scenario, said anew"}}}},
    "seeds": {"type": "integer", "minimum": 1},
    "gangs": {"enum": ["berth", "kubernetes", "none"], "description": "How gangs are scheduled: as here, as kube-scheduler 1.36 does, not at all"}
  }
}
)json";
}

}  // namespace berth::simulator
