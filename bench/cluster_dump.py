#!/usr/bin/env python3
"""Writes the dump of a made-up cluster as its users have them, for `berth what-if --cluster`: bench/cluster_dump.py OUT [--format json|yaml|must-gather]

Workloads differ in requests, images, anti-affinity, spread, node selectors, claims and budgets; every node has images of its own. The same arguments
give the same bytes. The layout of text is that of `kubectl get … -A -o yaml`, of must-gather's folders, or JSON without blanks."""
import argparse
import hashlib
import io
import json
import os
import random
import re


def parse():
    args = argparse.ArgumentParser()
    args.add_argument("out")
    args.add_argument("--format", choices=["json", "yaml", "must-gather"], default="json")
    args.add_argument("--nodes", type=int, default=5000)
    args.add_argument("--pods", type=int, default=150000)
    args.add_argument("--workloads", type=int, default=2700)
    args.add_argument("--images", type=int, default=20, help="a node")
    args.add_argument("--seed", type=int, default=1)
    return args.parse_args()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def uid(text):
    d = digest("uid" + text)
    return f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:32]}"


class Cluster:
    ZONES = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]

    def __init__(self, args):
        self.args = args
        self.random = random.Random(args.seed)
        self.revision = 100000

    def meta(self, kind, name, namespace=None, labels=None, owner=None, annotations=None):
        self.revision += 7
        out = {"creationTimestamp": "2026-05-%02dT%02d:%02d:00Z" % (1 + self.revision % 28, self.revision % 24, self.revision % 60), "name": name}
        if namespace:
            out["namespace"] = namespace
        if labels:
            out["labels"] = labels
        if annotations:
            out["annotations"] = annotations
        if owner:
            out["ownerReferences"] = [dict(owner, blockOwnerDeletion=True, controller=True)]
        out["resourceVersion"] = str(self.revision)
        out["uid"] = uid(f"{kind}/{namespace}/{name}")
        return out

    def node_name(self, i):
        return f"ip-10-{i // 250 % 250}-{i % 250}-{i // 62500 + 7}.eu-central-1.compute.internal"

    def zone_of(self, i):
        return self.ZONES[i % 3]

    def node(self, i):
        name = self.node_name(i)
        big = i % 5 == 0
        kind = "m5.8xlarge" if big else "m5.4xlarge"
        cpu, memory = ("31850m", "124971Mi") if big else ("15890m", "61255Mi")
        images = []
        for k in range(self.args.images):
            workload = (i * 7919 + k * 104729) % self.args.workloads
            image = f"registry.example.com/team-{workload % 40}/service-{workload}"
            tag = f"v1.{workload % 30}.{(i + k) % 40}"
            images.append({"names": [f"{image}@sha256:{digest(image + tag)}", f"{image}:{tag}"], "sizeBytes": 40000000 + workload * 150001 % 900000000})
        conditions = []
        for kind_of, status, reason in [("MemoryPressure", "False", "KubeletHasSufficientMemory"), ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                                        ("PIDPressure", "False", "KubeletHasSufficientPID"), ("Ready", "True", "KubeletReady")]:
            conditions.append({"lastHeartbeatTime": "2026-06-01T10:00:00Z", "lastTransitionTime": "2026-05-20T08:00:00Z", "message": "kubelet has said so", "reason": reason,
                               "status": status, "type": kind_of})
        amounts = {"cpu": cpu, "ephemeral-storage": "95551679124", "hugepages-1Gi": "0", "memory": memory, "pods": "234" if big else "110"}
        labels = {"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name,
                  "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": kind, "pool": "special" if i % 20 == 3 else "general",
                  "topology.ebs.csi.aws.com/zone": self.zone_of(i), "topology.kubernetes.io/region": "eu-central-1", "topology.kubernetes.io/zone": self.zone_of(i)}
        return {"apiVersion": "v1", "kind": "Node", "metadata": self.meta("Node", name, labels=labels),
                "spec": {"podCIDR": f"10.{i % 200}.{i // 200}.0/24", "providerID": f"aws:///{self.zone_of(i)}/i-{digest(name)[:17]}"},
                "status": {"addresses": [{"address": f"10.0.{i // 250}.{i % 250}", "type": "InternalIP"}, {"address": name, "type": "Hostname"}], "allocatable": amounts,
                           "capacity": dict(amounts, cpu="32" if big else "16"), "conditions": conditions, "images": images,
                           "nodeInfo": {"architecture": "amd64", "bootID": uid(name + "boot"), "containerRuntimeVersion": "containerd://2.1.4", "kernelVersion": "6.12.30",
                                        "kubeletVersion": "v1.36.1", "machineID": digest(name)[:32], "operatingSystem": "linux", "osImage": "Debian GNU/Linux 13"}}}

    def csi_node(self, i):
        name = self.node_name(i)
        return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
                "metadata": self.meta("CSINode", name), "spec": {"drivers": [{"allocatable": {"count": 25}, "name": "ebs.csi.aws.com", "nodeID": f"i-{digest(name)[:17]}",
                                                                              "topologyKeys": ["topology.ebs.csi.aws.com/zone"]}]}}

    def sizes(self):
        """How many pods each workload has: a few are large, most are small."""
        weights = [1 / (rank + 4) ** 0.75 for rank in range(self.args.workloads)]
        whole = sum(weights)
        sizes = [max(1, int(self.args.pods * weight / whole)) for weight in weights]
        for at in range(self.args.pods - sum(sizes)):
            sizes[at % len(sizes)] += 1
        order = list(range(len(sizes)))
        self.random.shuffle(order)
        return [min(sizes[at], self.args.nodes) for at in order]

    def pod_spec(self, app, stateful):
        draw = random.Random(app * 31 + self.args.seed)
        label = {"app.kubernetes.io/name": f"service-{app}"}
        containers = [{"env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                               {"name": "JAVA_OPTS", "value": "-Xmx512m -Dsetting=\"a: b\""}, {"name": "LEVEL", "value": "info"}],
                       "image": f"registry.example.com/team-{app % 40}/service-{app}:v1.{app % 30}.{app % 40}", "imagePullPolicy": "IfNotPresent",
                       "livenessProbe": {"failureThreshold": 3, "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
                       "name": "main", "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                       "resources": {"limits": {"memory": f"{128 + draw.randrange(14) * 64}Mi"},
                                     "requests": {"cpu": f"{25 + draw.randrange(12) * 25}m", "memory": f"{128 + draw.randrange(14) * 64}Mi"}},
                       "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}]
        if app % 4 == 0:
            containers.append({"image": "registry.example.com/mesh/proxy:v2.7.1", "imagePullPolicy": "IfNotPresent", "name": "proxy",
                               "resources": {"requests": {"cpu": "10m", "memory": "40Mi"}}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"})
        tolerations = [{"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300} for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")]
        spec = {"containers": containers, "dnsPolicy": "ClusterFirst", "enableServiceLinks": True, "preemptionPolicy": "PreemptLowerPriority", "priority": 0, "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {"fsGroup": 1000}, "serviceAccount": "default", "serviceAccountName": "default",
                "terminationGracePeriodSeconds": 30, "tolerations": tolerations}
        term = {"labelSelector": {"matchLabels": label}, "topologyKey": "kubernetes.io/hostname"}
        if app % 5 in (0, 1):
            spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": term, "weight": 100}]}}
        elif app % 5 == 2 and not stateful:
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if app % 6 == 0:
            spec["topologySpreadConstraints"] = [{"labelSelector": {"matchLabels": label}, "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}]
        elif app % 6 == 3 and not stateful:
            spec["topologySpreadConstraints"] = [{"labelSelector": {"matchLabels": label}, "maxSkew": 3, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}]
        if app % 25 == 7:
            spec["nodeSelector"] = {"pool": "general"}
        return label, spec

    def objects(self):
        for i in range(self.args.nodes):
            yield self.node(i)
        for i in range(self.args.nodes):
            yield self.csi_node(i)
        yield {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": self.meta("StorageClass", "gp3"), "provisioner": "ebs.csi.aws.com", "reclaimPolicy": "Delete",
               "volumeBindingMode": "WaitForFirstConsumer"}
        offset = 0
        for app, size in enumerate(self.sizes()):
            yield from self.workload(app, size, offset)
            offset += size * 3 + 1

    def workload(self, app, size, offset):
        stateful = app % 9 == 4 and size <= 300
        namespace = f"team-{app % 40}"
        name = f"service-{app}"
        label, spec = self.pod_spec(app, stateful)
        hashed = digest(name)[:10]
        labels = dict(label) if stateful else dict(label, **{"pod-template-hash": hashed})
        controller = f"{name}" if stateful else f"{name}-{hashed}"
        kind = "StatefulSet" if stateful else "ReplicaSet"
        template = {"metadata": {"labels": labels}, "spec": spec}
        status = {"availableReplicas": size, "observedGeneration": 1, "readyReplicas": size, "replicas": size}
        if stateful:
            claims = [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                       "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}, "storageClassName": "gp3"}}]
            yield {"apiVersion": "apps/v1", "kind": kind, "metadata": self.meta(kind, name, namespace, label),
                   "spec": {"podManagementPolicy": "OrderedReady", "replicas": size, "selector": {"matchLabels": label}, "serviceName": name, "template": template, "volumeClaimTemplates": claims},
                   "status": status}
        else:
            yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": self.meta("Deployment", name, namespace, label, annotations={"deployment.kubernetes.io/revision": "1"}),
                   "spec": {"replicas": size, "selector": {"matchLabels": label}, "template": {"metadata": {"labels": label}, "spec": spec}}, "status": status}
            owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid(f"Deployment/{namespace}/{name}")}
            yield {"apiVersion": "apps/v1", "kind": kind, "metadata": self.meta(kind, controller, namespace, labels, owner, {"deployment.kubernetes.io/revision": "1"}),
                   "spec": {"replicas": size, "selector": {"matchLabels": labels}, "template": template}, "status": status}
        if app % 2 == 0:
            yield {"apiVersion": "v1", "kind": "Service", "metadata": self.meta("Service", name, namespace, label),
                   "spec": {"clusterIP": f"172.20.{app // 250}.{app % 250}", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}], "selector": label, "type": "ClusterIP"}}
        if app % 3 != 2 and size > 1:
            yield {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": self.meta("PodDisruptionBudget", name, namespace),
                   "spec": {"maxUnavailable": 1, "selector": {"matchLabels": label}},
                   "status": {"currentHealthy": size, "desiredHealthy": size - 1, "disruptionsAllowed": 1, "expectedPods": size, "observedGeneration": 1}}
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": controller, "uid": uid(f"{kind}/{namespace}/{controller}")}
        stride = max(1, self.args.nodes // size)
        for k in range(size):
            at = (offset + k * stride) % self.args.nodes
            if app % 25 == 7 and at % 20 == 3:
                at = (at + 1) % self.args.nodes
            yield from self.pod(app, k, at, stateful, namespace, controller, labels, spec, owner)

    def pod(self, app, k, at, stateful, namespace, controller, labels, spec, owner):
        name = f"{controller}-{k}" if stateful else f"{controller}-{digest(controller + str(k))[:5]}{k % 10}"
        labels = dict(labels, **({"apps.kubernetes.io/pod-index": str(k), "statefulset.kubernetes.io/pod-name": name} if stateful else {}))
        token = f"kube-api-access-{digest(name)[:5]}"
        volumes = [{"name": token, "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                                                                                 {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}}]}}]
        if stateful:
            volumes.insert(0, {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}})
            yield from self.claim(name, namespace, at)
        mount = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token, "readOnly": True}
        full = dict(spec, nodeName=self.node_name(at), volumes=volumes, containers=[dict(one, volumeMounts=[mount]) for one in spec["containers"]])
        since = "2026-05-%02dT%02d:10:00Z" % (1 + (app + k) % 28, k % 24)
        statuses = [{"containerID": f"containerd://{digest(name + one['name'])}", "image": one["image"], "imageID": f"{one['image'].split(':')[0]}@sha256:{digest(one['image'])}", "lastState": {},
                     "name": one["name"], "ready": True, "restartCount": k % 3, "started": True, "state": {"running": {"startedAt": since}}} for one in spec["containers"]]
        yield {"apiVersion": "v1", "kind": "Pod",
               "metadata": self.meta("Pod", name, namespace, labels, owner, {"checksum/config": digest(name), "note": "written by \"hand\": do not edit"}), "spec": full,
               "status": {"conditions": [{"lastProbeTime": None, "lastTransitionTime": since, "status": "True", "type": kind} for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")],
                          "containerStatuses": statuses, "hostIP": f"10.0.{at // 250}.{at % 250}", "phase": "Running", "podIP": f"10.{at % 200}.{at // 200}.{k % 250}",
                          "podIPs": [{"ip": f"10.{at % 200}.{at // 200}.{k % 250}"}], "qosClass": "Burstable", "startTime": since}}

    def claim(self, pod, namespace, at):
        name = f"data-{pod}"
        volume = "pvc-" + uid(f"PersistentVolumeClaim/{namespace}/{name}")
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
               "metadata": self.meta("PersistentVolumeClaim", name, namespace, annotations={"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/selected-node": self.node_name(at)}),
               "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}, "storageClassName": "gp3", "volumeMode": "Filesystem", "volumeName": volume},
               "status": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "20Gi"}, "phase": "Bound"}}
        zone = {"matchExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [self.zone_of(at)]}]}
        yield {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": self.meta("PersistentVolume", volume),
               "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "20Gi"},
                        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name, "namespace": namespace, "uid": uid(f"PersistentVolumeClaim/{namespace}/{name}")},
                        "csi": {"driver": "ebs.csi.aws.com", "fsType": "ext4", "volumeHandle": f"vol-{digest(volume)[:17]}"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [zone]}},
                        "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "gp3", "volumeMode": "Filesystem"}, "status": {"phase": "Bound"}}


PLAIN = re.compile(r"[A-Za-z/_.][A-Za-z0-9/_.+=%()-]*(?:[ :@][A-Za-z0-9/_.+=%()-]+)*$")
WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"}


def scalar(value):
    """As kubectl (Go's yaml.v2) writes it, near enough for every value here."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if PLAIN.match(value) and value.lower() not in WORDS and ": " not in value and not re.match(r"\.?[0-9]", value):
        return value
    if re.match(r"(?:pvc|i|vol|ip|v)-|[0-9a-f]{8}-|[0-9]+[a-zA-Z]+$", value) and not re.fullmatch(r"[0-9]+e[0-9]+", value):
        return value
    return json.dumps(value, ensure_ascii=False)


def write_yaml(value, indent, out):
    pad = " " * indent
    for key in sorted(value):
        item = value[key]
        if isinstance(item, dict) and item:
            out.write(f"{pad}{key}:\n")
            write_yaml(item, indent + 2, out)
        elif isinstance(item, list) and item:
            out.write(f"{pad}{key}:\n")
            write_items(item, indent, out)
        else:
            out.write(f"{pad}{key}: {'{}' if item == {} else '[]' if item == [] else scalar(item)}\n")


def write_items(items, indent, out):
    pad = " " * indent
    for one in items:
        if isinstance(one, dict):
            inner = io.StringIO()
            write_yaml(one, indent + 2, inner)
            out.write(pad + "- " + inner.getvalue()[indent + 2:])
        else:
            out.write(f"{pad}- {scalar(one)}\n")


def write_list(path, objects, style):
    with open(path, "w", encoding="utf-8") as out:
        if style == "json":
            out.write('{\n    "apiVersion": "v1",\n    "items": [\n')
            for number, one in enumerate(objects):
                out.write((",\n" if number else "") + json.dumps(one))
            out.write('\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')
            return
        out.write("apiVersion: v1\nitems:\n")
        for one in objects:
            write_items([one], 0, out)
        out.write('kind: List\nmetadata:\n  resourceVersion: ""\n')


def write_must_gather(root, objects):
    plurals = {"Deployment": ("apps", "deployments"), "ReplicaSet": ("apps", "replicasets"), "StatefulSet": ("apps", "statefulsets"), "Service": ("core", "services"), "Pod": ("core", "pods"),
               "PersistentVolumeClaim": ("core", "persistentvolumeclaims"), "PodDisruptionBudget": ("policy", "poddisruptionbudgets")}
    whole = {"Node": "core/nodes", "CSINode": "storage.k8s.io/csinodes", "StorageClass": "storage.k8s.io/storageclasses", "PersistentVolume": "core/persistentvolumes"}
    lists = {}
    for one in objects:
        kind, meta = one["kind"], one["metadata"]
        if kind in whole:
            folder = f"{root}/cluster-scoped-resources/{whole[kind]}"
            os.makedirs(folder, exist_ok=True)
            with open(f"{folder}/{meta['name']}.yaml", "w", encoding="utf-8") as out:
                out.write("---\n")
                write_yaml(one, 0, out)
            continue
        group, plural = plurals[kind]
        path = f"{root}/namespaces/{meta['namespace']}/{group}/{plural}.yaml"
        if path not in lists:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            lists[path] = (open(path, "w", encoding="utf-8"), one)
            lists[path][0].write(f"---\napiVersion: {one['apiVersion']}\nitems:\n")
        write_items([one], 0, lists[path][0])
    for out, one in lists.values():
        out.write(f"kind: {one['kind']}List\nmetadata:\n  resourceVersion: \"1\"\n")
        out.close()


def main():
    args = parse()
    objects = Cluster(args).objects()
    if args.format == "must-gather":
        write_must_gather(args.out, objects)
    else:
        write_list(args.out, objects, args.format)


if __name__ == "__main__":
    main()
