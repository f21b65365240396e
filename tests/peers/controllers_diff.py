#!/usr/bin/env python3
"""Brings the same workloads into two berth API servers, one driven by a real kube-controller-manager, one by `berth controllers`, and
compares what each made of them, phase by phase. Run by hand; nothing in `make test` needs it.

    tests/peers/controllers_diff.py BERTH KUBE_CONTROLLER_MANAGER [--keep] [--only PHASE]

Both have `berth server`, `berth scheduler` and simulated nodes. Names that controllers choose, times, uids and template hashes are put
aside; fields that the manager's version (1.20) does not know of yet are listed in NEWER. The events that only one side told are listed at
the end. Ends with "N phases, N differences"; exit 1 on one."""
import argparse, json, os, re, shutil, signal, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("pods deployments replicasets replicationcontrollers statefulsets daemonsets jobs cronjobs services endpoints endpointslices "
         "poddisruptionbudgets horizontalpodautoscalers resourcequotas persistentvolumeclaims controllerrevisions serviceaccounts").split()
NEWER = {  # kind -> paths that later versions of Kubernetes added
    "Job": ["status.ready", "status.terminating", "status.uncountedTerminatedPods", "spec.suspend", "spec.completionMode",
            "spec.podReplacementPolicy", "spec.manualSelector", "status.conditions.SuccessCriteriaMet", "status.conditions.FailureTarget"],
    "StatefulSet": ["status.availableReplicas", "spec.persistentVolumeClaimRetentionPolicy"],
    "CronJob": ["status.lastSuccessfulTime"],
    "ReplicaSet": ["status.terminatingReplicas"], "Deployment": ["status.terminatingReplicas"],
    "PodDisruptionBudget": ["status.conditions"],
    "HorizontalPodAutoscaler": [],
    "Pod": ["metadata.finalizers", "metadata.labels.apps.kubernetes.io/pod-index", "metadata.labels.batch.kubernetes.io/job-name",
            "metadata.labels.batch.kubernetes.io/controller-uid"],
}
DROP_META = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "generateName", "generation")


class Plane:
    def __init__(self, name, berth, root):
        self.name, self.berth, self.dir, self.children = name, berth, os.path.join(root, name), []
        os.makedirs(self.dir)
        self.kubeconfig = os.path.join(self.dir, "data", "admin.kubeconfig")
        self.start("server", [berth, "server", "--data-dir", os.path.join(self.dir, "data"), "--listen", "127.0.0.1:0", "--unsafe-no-sync"])
        self.wait(lambda: os.path.exists(self.kubeconfig) and self.kubectl("get", "--raw", "/readyz", check=False).returncode == 0, "the API server")

    def start(self, what, command):
        log = open(os.path.join(self.dir, what + ".log"), "w")
        env = dict(os.environ, KUBECONFIG=self.kubeconfig)
        self.children.append(subprocess.Popen(command, stdout=log, stderr=log, env=env, stdin=subprocess.DEVNULL))

    def kubectl(self, *args, text=None, check=True):
        done = subprocess.run(["kubectl", "--kubeconfig", self.kubeconfig, "--cache-dir", os.path.join(self.dir, "cache"), *args], input=text,
                              capture_output=True, text=True)
        if check and done.returncode:
            raise SystemExit(f"{self.name}: kubectl {' '.join(args)}: {done.stderr}")
        return done

    @staticmethod
    def wait(ready, what, seconds=120):
        end = time.time() + seconds
        while not ready():
            if time.time() > end:
                raise SystemExit(f"no sign of {what}")
            time.sleep(0.2)

    def stop(self):
        for child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
        for child in self.children:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()

    def snapshot(self, namespaces):
        objects = []
        for ns in namespaces:
            out = json.loads(self.kubectl("-n", ns, "get", ",".join(KINDS), "-o", "json").stdout)
            objects += out["items"]
        objects += json.loads(self.kubectl("get", "persistentvolumes,namespaces", "-o", "json").stdout)["items"]
        return normalise([o for o in objects if keep(o, namespaces)])


def words_of_events(plane, namespaces):
    """What controllers said: kind, type, reason, message with chosen names, hashes and numbers put aside. The scheduler's and the nodes' are not theirs."""
    said = set()
    for ns in namespaces:
        for e in json.loads(plane.kubectl("-n", ns, "get", "events", "-o", "json").stdout)["items"]:
            source = (e.get("source") or {}).get("component") or e.get("reportingComponent") or ""
            if source in ("default-scheduler", "kubelet", "berth-nodes", ""):
                continue
            message = re.sub(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b", "-HASH", e.get("message", ""))
            message = re.sub(r"-[a-z0-9]{5}\b", "-*", message)
            message = re.sub(r"\b[0-9a-f-]{36}\b", "UID", message)
            message = re.sub(r"\b\d+\b", "N", message)
            said.add(f"{e['involvedObject']['kind']} {source}: {e.get('type')} {e.get('reason')}: {message}")
    return said


def keep(o, namespaces):
    return o["kind"] != "Namespace" or o["metadata"]["name"] in namespaces


def drop(o, path):
    parts = path.split(".") if not path.startswith("metadata.labels.") else ["metadata", "labels", path[len("metadata.labels."):]]
    for i, part in enumerate(parts[:-1]):
        o = o.get(part) if isinstance(o, dict) else None
        if isinstance(o, list) and part == "conditions":
            o[:] = [c for c in o if c.get("type") != parts[i + 1]]
            return
        if not isinstance(o, dict):
            return
    o.pop(parts[-1], None)


def scrub(value, hashes):
    """Times, uids, addresses and chosen names out of any value."""
    if isinstance(value, dict):
        out = {}
        for k, v in value.items():
            if k in ("lastTransitionTime", "lastUpdateTime", "lastProbeTime", "startTime", "completionTime", "lastScaleTime", "lastScheduleTime", "time",
                     "uid", "resourceVersion", "hostIP", "podIP", "podIPs", "hostIPs", "clusterIP", "clusterIPs", "containerID", "imageID", "startedAt", "finishedAt",
                     "nodeName"):
                continue
            out[k] = scrub(v, hashes)
        return {k: v for k, v in out.items() if v not in ({}, [], None)}
    if isinstance(value, list):
        return [scrub(v, hashes) for v in value]
    if isinstance(value, str):
        for name, token in hashes:
            value = value.replace(name, token)
        return value
    return value


def normalise(objects):
    hashes = []
    for o in objects:
        labels = o["metadata"].get("labels") or {}
        if o["kind"] == "ReplicaSet" and "pod-template-hash" in labels:
            hashes.append((labels["pod-template-hash"], "HASH" + str(o["metadata"].get("annotations", {}).get("deployment.kubernetes.io/revision"))))
        if o["kind"] == "ControllerRevision":
            hashes.append((o["metadata"]["name"].rsplit("-", 1)[1], f"REV{o['revision']}"))
    hashes.sort(key=lambda h: -len(h[0]))
    out = []
    for o in objects:
        kind, meta, labels = o["kind"], o["metadata"], o["metadata"].get("labels") or {}
        if kind in ("ServiceAccount",) and meta["name"] != "default":
            continue
        if kind == "ServiceAccount":
            o.pop("secrets", None)  # Legacy tokens, until 1.23.
        for path in NEWER.get(kind, []):
            drop(o, path)
        owner = (meta.get("ownerReferences") or [{}])[0].get("kind")
        generated = "generateName" in meta and owner != "StatefulSet" or owner == "ReplicaSet" or labels.get("app") == "free"  # An adopted pod is as good as any other.
        if isinstance(o.get("status"), dict) and "observedGeneration" in o["status"]:  # How many steps a rollout took is a matter of timing.
            o["status"]["observedGeneration"] = "current" if o["status"]["observedGeneration"] == meta.get("generation") else "behind"
        for field in DROP_META:
            meta.pop(field, None)
        if generated:
            meta["name"] = "*"
        (meta.get("annotations") or {}).pop("kubectl.kubernetes.io/last-applied-configuration", None)
        for key in ("endpoints.kubernetes.io/last-change-trigger-time", "autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/current-metrics"):
            (meta.get("annotations") or {}).pop(key, None)
        for key in ("controller-uid", "batch.kubernetes.io/controller-uid"):
            for where in (labels, (o.get("spec", {}).get("selector") or {}).get("matchLabels") or {}, ((o.get("spec", {}).get("template") or {}).get("metadata") or {}).get("labels") or {}):
                if key in where:
                    where[key] = "UID"
        if kind == "Pod":  # What the node makes of it is the node's affair: phase and readiness are kept.
            spec = o["spec"]
            o["spec"] = {k: spec.get(k) for k in ("tolerations", "affinity", "hostname", "subdomain", "hostNetwork", "restartPolicy", "volumes")}
            o["spec"]["images"] = [c["image"] for c in spec["containers"]]
            ready = [c["status"] for c in o["status"].get("conditions", []) if c["type"] == "Ready"]
            o["status"] = {"phase": o["status"].get("phase"), "ready": ready}
            vols = o["spec"].get("volumes") or []
            o["spec"]["volumes"] = [v for v in vols if "projected" not in v and "secret" not in v]
            terms = json.dumps(o["spec"].get("affinity"))
            o["spec"]["affinity"] = terms
        if kind == "ControllerRevision":
            o["data"] = {"image": re.findall(r'"image": "([^"]*)"', json.dumps(o["data"]))}
        if kind == "Endpoints":
            labels.pop("endpoints.kubernetes.io/managed-by", None)  # Since 1.33.
            for subset in o.get("subsets", []):
                (subset.get("ports") or []).sort(key=lambda port: port.get("name", ""))
                for part in ("addresses", "notReadyAddresses"):
                    for address in subset.get(part, []):
                        if "targetRef" in address:
                            address["ip"] = "IP"
                            address["targetRef"].pop("resourceVersion", None)
                            if not re.search(r"-\d$", address["targetRef"]["name"]):
                                address["targetRef"]["name"] = "*"
                        address.pop("nodeName", None)
                    if part in subset:
                        subset[part].sort(key=json.dumps)
        if kind == "EndpointSlice":
            for endpoint in o.get("endpoints") or []:
                if "targetRef" in endpoint:
                    endpoint["addresses"] = ["IP"]
                    if not re.search(r"-\d$", endpoint["targetRef"]["name"]):
                        endpoint["targetRef"]["name"] = "*"
                for field in ("topology", "deprecatedTopology", "nodeName", "zone", "hints"):
                    endpoint.pop(field, None)
                if labels.get("endpointslice.kubernetes.io/managed-by", "").startswith("endpointslicemirroring"):
                    endpoint["conditions"] = {}  # 1.20 mirrors addresses that are not ready as ready.
                endpoint["conditions"] = {"ready": endpoint.get("conditions", {}).get("ready")}
                endpoint["targetRef"] = {k: v for k, v in endpoint.get("targetRef", {}).items() if k != "uid"}
            o["endpoints"] = sorted((scrub(e, hashes) for e in o.get("endpoints") or []), key=lambda e: json.dumps(e, sort_keys=True))
            meta["name"] = "*"
        for condition in (o.get("status") or {}).get("conditions") or []:
            # Random parts of messages: generated pod names.
            if kind == "Job" and condition["type"] == "Complete":
                condition.pop("reason", None), condition.update(message="")  # Since 1.31.
            condition["message"] = re.sub(r'("[a-z0-9-]+-)[a-z0-9]{5}"', r'\1*"', condition.get("message", ""))
        if isinstance(o.get("status"), dict) and isinstance(o["status"].get("conditions"), list):
            o["status"]["conditions"].sort(key=lambda c: c.get("type", ""))
        o.pop("apiVersion", None)
        out.append(scrub(o, hashes))
    return sorted(line for o in number(out) for line in o)


def number(objects):
    """Each object as lines "Kind/name path = value"; objects that share a name are told apart by their order of content."""
    groups = {}
    for o in objects:
        key = f"{o['kind']}/{o['metadata']['name']}"
        if o["metadata"]["name"] == "*":
            labels = o["metadata"].get("labels") or {}
            owners = o["metadata"].get("ownerReferences") or [{}]
            key += f" of {owners[0].get('name') or labels.get('kubernetes.io/service-name')} {labels.get('pod-template-hash', '')}"
        groups.setdefault(key, []).append(sorted(flat(o)))
    for key, group in sorted(groups.items()):
        for i, lines in enumerate(sorted(group)):
            yield [f"{key}{'#%d' % i if len(group) > 1 else ''} {line}" for line in lines]


def flat(value, path=""):
    if isinstance(value, dict):
        for k, v in value.items():
            yield from flat(v, f"{path}.{k}" if path else k)
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from flat(v, f"{path}[{i}]")
    else:
        yield f"{path} = {json.dumps(value)}"


def report(real, berth):
    """The facts that only one side has; an object that only one side has is one line."""
    subject = lambda line: re.match(r"(\S+(?: of \S+ \S*)?)", line).group(1)
    known = {side: {subject(line) for line in facts} for side, facts in (("real", real), ("berth", berth))}
    for side, facts, other, others in (("real ", real, "berth", berth), ("berth", berth, "real", real)):
        said, there = set(), set(others)
        for line in facts:
            if line in there:
                continue
            if subject(line) in known[other]:
                print("   ", side, line)
            elif subject(line) not in said:
                said.add(subject(line))
                print("   ", side, subject(line), "is there at all")


def settle(plane, namespaces, quiet=4.0, most=60.0):
    """The state once it has stood still for a while."""
    end, last, since = time.time() + most, None, time.time()
    while time.time() < end:
        now = plane.snapshot(namespaces)
        if now != last:
            last, since = now, time.time()
        elif time.time() - since > quiet:
            break
        time.sleep(0.5)
    return last


def each_image(version):
    def act(plane):
        for what in ("deployment/web", "deployment/again", "statefulset/db", "statefulset/parallel", "statefulset/ondelete", "daemonset/agent", "daemonset/some"):
            plane.kubectl("-n", "work", "set", "image", what, f"c={what.split('/')[1]}:{version}")
    return act


def commands(*lines):
    def act(plane):
        for line in lines:
            plane.kubectl(*line.split())
    return act


def doomed(plane):
    plane.kubectl("create", "namespace", "doomed")
    plane.kubectl("-n", "doomed", "create", "deployment", "d", "--image=x", "--replicas=2")
    plane.kubectl("-n", "doomed", "create", "configmap", "m", "--from-literal=a=b")
    time.sleep(2)
    plane.kubectl("delete", "namespace", "doomed", "--wait=true", "--timeout=60s")


def apply(plane):
    plane.kubectl("create", "namespace", "work")
    plane.wait(lambda: plane.kubectl("-n", "work", "get", "sa", "default", check=False).returncode == 0, "the default service account")
    plane.kubectl("-n", "work", "apply", "-f", os.path.join(HERE, "workloads.yaml"))


PHASES = [
    ("apply", apply, ["work"]),
    ("roll", each_image(2), ["work"]),
    ("scale", commands("-n work scale deployment/web --replicas=5", "-n work scale statefulset/db --replicas=1", "-n work scale rs/set --replicas=1",
                       "-n work scale statefulset/parallel --replicas=5"), ["work"]),
    ("undo", commands("-n work rollout undo deployment/web", "-n work rollout undo statefulset/db", "-n work rollout undo daemonset/agent"), ["work"]),
    ("paused", commands("-n work rollout pause deployment/web", "-n work set image deployment/web c=web:9", "-n work scale deployment/web --replicas=4"), ["work"]),
    ("resumed", commands("-n work rollout resume deployment/web"), ["work"]),
    ("history", lambda plane: [plane.kubectl("-n", "work", "set", "image", "deployment/web", f"c=web:{v}") and
                               plane.kubectl("-n", "work", "rollout", "status", "deployment/web", "--timeout=60s") for v in (20, 21, 22)], ["work"]),
    ("stuck anew", commands("-n work set image deployment/stuck c=stuck:2"), ["work"]),
    ("partition gone", commands("-n work patch statefulset/parallel -p {\"spec\":{\"updateStrategy\":{\"rollingUpdate\":{\"partition\":0}}}}",
                                "-n work delete pod ondelete-1"), ["work"]),
    ("cordon", commands("cordon node-1", "taint node node-2 k=v:NoSchedule"), ["work"]),
    ("labels", commands("-n work label pod -l app=set app=free --overwrite", "label node node-3 topology.kubernetes.io/zone=zone-a --overwrite"), ["work"]),
    ("endpoints", commands("-n work patch endpoints/outside --type=json -p [{\"op\":\"remove\",\"path\":\"/subsets/0/addresses/0\"}]",
                           "-n work patch service/web -p {\"spec\":{\"ports\":[{\"name\":\"http\",\"port\":80,\"targetPort\":8080}]}}"), ["work"]),
    ("jobs", commands("-n work patch job/running -p {\"spec\":{\"parallelism\":1}}", "-n work create job by-hand --from=cronjob/never"), ["work"]),
    ("claims", commands("-n work delete pvc data"), ["work"]),
    ("orphan", commands("-n work delete deployment/again --cascade=orphan", "-n work delete statefulset/ondelete --cascade=orphan"), ["work"]),
    ("foreground", commands("-n work delete rs/set --cascade=foreground", "-n work delete job/running"), ["work"]),
    ("namespace", doomed, ["work"]),
    ("all gone", commands("-n work delete deployments,rs,rc,statefulsets,daemonsets,jobs,cronjobs,svc,pdb,hpa,pvc --all"), ["work"]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("berth")
    parser.add_argument("kcm")
    parser.add_argument("--keep", action="store_true", help="leave logs and snapshots, say where")
    parser.add_argument("--until", help="stop after this phase")
    options = parser.parse_args()
    root = tempfile.mkdtemp(prefix="berth-peers.")
    planes, differences, phases = [], 0, 0
    try:
        key = os.path.join(root, "sa.key")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        for name in ("real", "berth"):
            planes.append(Plane(name, os.path.abspath(options.berth), root))
        real, ours = planes
        for plane in planes:
            plane.start("nodes", [plane.berth, "nodes", "--nodes", "6"])
            plane.start("scheduler", [plane.berth, "scheduler", "--secure-port", "0"])
        ours.start("controllers", [ours.berth, "controllers", "--secure-port", "0"])
        real.start("controllers", [options.kcm, "--kubeconfig", real.kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1", "--port=0", "--secure-port=0",
                                   "--cert-dir", root, "--service-account-private-key-file", key, "--kube-api-qps=1000", "--kube-api-burst=1000",
                                   "--kube-api-content-type=application/json", "--horizontal-pod-autoscaler-sync-period=5s"])
        for plane in planes:
            plane.wait(lambda: plane.kubectl("get", "nodes", "--no-headers", check=False).stdout.count(" Ready ") == 6, "nodes")
        words = [set(), set()]
        for name, act, namespaces in PHASES:
            for plane in planes:
                act(plane)
            states = [settle(plane, namespaces) for plane in planes]
            phases += 1
            for i, plane in enumerate(planes):
                words[i] |= words_of_events(plane, namespaces)
            if states[0] == states[1]:
                print(f"same       {name} ({len(states[0])} facts)", flush=True)
            else:
                differences += 1
                print(f"DIFFERENT  {name}")
                report(*states)
                sys.stdout.flush()
            if name == options.until:
                break
        # How many steps something took is a matter of timing, so these are told and not counted.
        for side, mine, others in (("real ", words[0], words[1]), ("berth", words[1], words[0])):
            for line in sorted(mine - others):
                print("event only from", side, line)
    finally:
        for plane in planes:
            plane.stop()
        if options.keep:
            print("kept", root)
        else:
            shutil.rmtree(root)
    print(f"{phases} phases, {differences} differences")
    sys.exit(1 if differences else 0)


main()
