#!/usr/bin/env python3
"""One scripted scenario for whichever scheduler works on the cluster of a kubeconfig: nodes and pods of many kinds, one after the other.

Each pod is created when the one before has its answer, so that every decision is about a known state. Before each, the state is dumped, and
`berth explain` says offline which nodes are best; the scheduler's choice must be among them, and a pending pod's message must be the same.
The script plays the kubelets (pods run, deleted pods go). Needs kubectl (for `kubectl proxy`), and a controller manager that binds volumes.

    scheduling_scenario.py --kubeconfig F --berth build/release/bin/berth --compatibility 1.20 --out run.jsonl
    scheduling_scenario.py --compare a.jsonl b.jsonl     # two runs: placements, ties apart, and messages
"""
import argparse, json, re, subprocess, sys, tempfile, threading, time, urllib.error, urllib.request

parser = argparse.ArgumentParser()
parser.add_argument("--kubeconfig")
parser.add_argument("--berth", default="build/release/bin/berth")
parser.add_argument("--compatibility", default="1.20", choices=["1.20", "1.36"])
parser.add_argument("--lease", help="the holder of kube-system/kube-scheduler must match this expression")
parser.add_argument("--out")
parser.add_argument("--compare", nargs=2)
args = parser.parse_args()


def compare(a, b):
    first, second = ([json.loads(line) for line in open(name)] for name in (a, b))
    same = ties = 0
    other = []
    for x, y in zip(first, second):
        if x["node"] == y["node"] and x["message"] == y["message"] and x["victims"] == y["victims"]:
            same += 1
        elif x["node"] and y["node"] and len(x["best"]) > 1 and y["node"] in x["best"]:
            ties += 1
        else:
            other.append((x, y))
    print(f"{same} the same, {ties} among equals, {len(other)} different, of {max(len(first), len(second))}")
    for x, y in other:
        print("  ", {k: x[k] for k in ("pod", "node", "best", "victims", "message")}, "\n   ", {k: y[k] for k in ("node", "best", "victims", "message")})
    return 0 if not other and len(first) == len(second) else 1


if args.compare:
    sys.exit(compare(*args.compare))

proxy = subprocess.Popen(["kubectl", "--kubeconfig", args.kubeconfig, "proxy", "--port=0"], stdout=subprocess.PIPE, text=True)
port = re.search(r":(\d+)\s*$", proxy.stdout.readline()).group(1)


def call(method, path, body=None, content_type="application/json"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", None if body is None else json.dumps(body).encode(), {"Content-Type": content_type}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return {"error": error.code, "message": error.read().decode()[:400]}


def create(path, body):
    made = call("POST", path, body)
    if "error" in made:
        sys.exit(f"{path}: {made}")
    return made


MERGE = "application/merge-patch+json"
PODS = "/api/v1/namespaces/default/pods"


def kubelets(stop):
    while not stop.is_set():
        for pod in call("GET", PODS).get("items", []):
            name, meta = pod["metadata"]["name"], pod["metadata"]
            if not pod["spec"].get("nodeName"):
                continue
            if "deletionTimestamp" in meta:
                call("DELETE", f"{PODS}/{name}", {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
            elif pod["status"].get("phase") == "Pending":
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running", "startTime": now}}, MERGE)
        stop.wait(0.2)


def node(name, zone, cpu, memory, labels=None, taints=None, images=None):
    create("/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, **(labels or {})}},
                             "spec": {"taints": taints} if taints else {}})
    room = {"cpu": cpu, "memory": memory, "pods": "20", "ephemeral-storage": "100Gi"}
    call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"capacity": room, "allocatable": room, "images": images or [],
                                                              "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}, MERGE)
    # Where admission gave it the not-ready taint, no node life cycle controller is here to take it away.
    call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": taints}}, MERGE)


def pod(name, cpu="100m", memory="128Mi", labels=None, **spec):
    container = {"name": "c", "image": spec.pop("image", "registry/app:1"), "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    if "host_port" in spec:
        container["ports"] = [{"containerPort": 80, "hostPort": spec.pop("host_port")}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec}}


def terms(key, operator, values=None):
    return [{"matchExpressions": [{"key": key, "operator": operator, **({"values": values} if values else {})}]}]


def node_affinity(required=None, preferred=None):
    out = {}
    if required:
        out["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": required}
    if preferred:
        out["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return {"nodeAffinity": out}


def pod_affinity(kind, app, key, weight=None):
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    if weight:
        return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(app, key, when, skew=1):
    return [{"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": {"app": app}}}]


ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
GPU = [{"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}]


def scenario():
    """The pods, in order. A string is an action on the cluster in between."""
    for i, cpu in enumerate(["500m", "250m", "1", "700m", "300m"]):
        yield pod(f"plain-{i}", cpu, f"{256 * (i + 1)}Mi")
    yield pod("selector", nodeSelector={"disk": "ssd"})
    yield pod("selector-nowhere", nodeSelector={"disk": "tape"})
    yield pod("affinity-in", affinity=node_affinity(terms(ZONE, "In", ["zone-b", "zone-c"])))
    yield pod("affinity-notin", affinity=node_affinity(terms(ZONE, "NotIn", ["zone-a"])))
    yield pod("affinity-gt", affinity=node_affinity(terms("generation", "Gt", ["3"])))
    yield pod("affinity-lt-nowhere", affinity=node_affinity(terms("generation", "Lt", ["1"])))
    yield pod("affinity-exists", affinity=node_affinity(terms("disk", "Exists")))
    yield pod("affinity-preferred", affinity=node_affinity(None, [{"weight": 80, "preference": terms(ZONE, "In", ["zone-a"])[0]}, {"weight": 5, "preference": terms("disk", "DoesNotExist")[0]}]))
    yield pod("tolerant", tolerations=GPU, nodeSelector={"accelerator": "gpu"})
    yield pod("intolerant", nodeSelector={"accelerator": "gpu"})
    yield pod("web-0", labels={"app": "web"}, cpu="200m")
    for i in range(3):
        yield pod(f"near-web-{i}", labels={"app": "cache"}, affinity=pod_affinity("podAffinity", "web", ZONE), cpu=f"{150 + 10 * i}m")
    yield pod("near-nobody", affinity=pod_affinity("podAffinity", "absent", ZONE))
    yield pod("near-own", labels={"app": "own"}, affinity=pod_affinity("podAffinity", "own", HOST))
    yield pod("near-own-2", labels={"app": "own"}, affinity=pod_affinity("podAffinity", "own", HOST))
    for i in range(6):
        yield pod(f"alone-{i}", labels={"app": "alone"}, affinity=pod_affinity("podAntiAffinity", "alone", HOST), cpu=f"{110 + 7 * i}m")
    yield pod("prefers-web", affinity=pod_affinity("podAffinity", "web", HOST, 50))
    yield pod("shuns-web", affinity=pod_affinity("podAntiAffinity", "web", ZONE, 70))
    for i in range(5):
        yield pod(f"spread-{i}", labels={"app": "spread"}, cpu=f"{120 + 10 * i}m", topologySpreadConstraints=spread("spread", ZONE, "DoNotSchedule"))
    for i in range(4):
        yield pod(f"soft-{i}", labels={"app": "soft"}, cpu=f"{130 + 10 * i}m", topologySpreadConstraints=spread("soft", HOST, "ScheduleAnyway"))
    yield pod("skewed", labels={"app": "spread"}, nodeSelector={ZONE: "zone-a", "disk": "none"}, topologySpreadConstraints=spread("spread", ZONE, "DoNotSchedule"))
    for i in range(3):
        yield pod(f"port-{i}", host_port=8080, nodeSelector={ZONE: "zone-b"})
    yield pod("image", image="registry/huge:1", cpu="50m")
    yield pod("huge", cpu="64")
    yield pod("much-memory", memory="500Gi")
    yield "service"
    for i in range(3):
        yield pod(f"served-{i}", labels={"app": "served"}, cpu=f"{90 + 10 * i}m")
    yield "volumes"
    for i in range(2):
        yield pod(f"local-{i}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": f"claim-{i}"}}])
    yield pod("local-none-left", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "claim-2"}}])
    yield pod("no-claim", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}])
    yield "cordon"
    yield pod("uncordoned-only", nodeSelector={"disk": "ssd"})
    yield "uncordon"
    # Now the cluster is filled with low pods, so that the rest must preempt.
    for i in range(14):
        yield pod(f"fill-{i}", cpu=["3", "2500m", "2"][i % 3], memory="512Mi", labels={"app": "fill", "tier": ["gold", "lead"][i % 2]}, priorityClassName="low")
    yield pod("never", cpu="5", priorityClassName="high-never")
    yield pod("vip-0", cpu="3", priorityClassName="high")
    yield "budget"
    yield pod("vip-1", cpu="3500m", priorityClassName="high")
    yield pod("vip-2", cpu="2", priorityClassName="high", affinity=node_affinity(terms(ZONE, "In", ["zone-c"])))
    yield pod("vip-nowhere", cpu="40", priorityClassName="high")


def act(what):
    if what == "service":
        create("/api/v1/namespaces/default/services", {"metadata": {"name": "served"}, "spec": {"selector": {"app": "served"}, "ports": [{"port": 80}]}})
    if what == "volumes":
        create("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})
        for i, host in enumerate(["n2", "n4"]):
            create("/api/v1/persistentvolumes", {"metadata": {"name": f"pv-{i}"}, "spec": {
                "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "local": {"path": f"/mnt/{i}"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms(HOST, "In", [host])}}}})
        for i in range(3):
            create("/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": f"claim-{i}"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "resources": {"requests": {"storage": "5Gi"}}}})
        time.sleep(2)
    if what in ("cordon", "uncordon"):
        call("PATCH", "/api/v1/nodes/n5", {"spec": {"unschedulable": what == "cordon" or None}}, MERGE)
        time.sleep(1)
    if what == "budget":
        version = "v1" if "error" not in call("GET", "/apis/policy/v1") else "v1beta1"
        create(f"/apis/policy/{version}/namespaces/default/poddisruptionbudgets", {"metadata": {"name": "gold"}, "spec": {"minAvailable": "100%", "selector": {"matchLabels": {"tier": "gold"}}}})
        time.sleep(2)


KINDS = [("", "v1", "nodes", "Node"), ("", "v1", "namespaces", "Namespace"), ("", "v1", "services", "Service"), ("", "v1", "persistentvolumes", "PersistentVolume"),
         ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"), ("storage.k8s.io", "v1", "storageclasses", "StorageClass"),
         ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"), ("policy", "v1beta1", "poddisruptionbudgets", "PodDisruptionBudget"),
         ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass"), ("", "v1", "pods", "Pod")]


def dump():
    items = []
    for group, version, resource, kind in KINDS:
        api = f"{group}/{version}" if group else version
        found = call("GET", (f"/apis/{api}" if group else f"/api/{api}") + f"/{resource}").get("items", [])
        items += [{**one, "kind": kind, "apiVersion": api} for one in found]
    return {"kind": "List", "apiVersion": "v1", "items": items}


def explain(state, document):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as cluster, tempfile.NamedTemporaryFile("w", suffix=".json") as one:
        json.dump(state, cluster)
        json.dump(document, one)
        cluster.flush(), one.flush()
        out = subprocess.run([args.berth, "explain", "--cluster", cluster.name, "--pod", one.name, "-o", "json", "--compatibility", args.compatibility], capture_output=True, text=True)
        if out.returncode != 0:
            sys.exit(out.stderr)
        return json.loads(out.stdout)


def settle(name):
    """The pod when it has its node, or its first PodScheduled condition and, after a preemption, its node."""
    for _ in range(300):
        seen = call("GET", f"{PODS}/{name}")
        if seen.get("spec", {}).get("nodeName"):
            return seen
        why = [c for c in seen.get("status", {}).get("conditions", []) if c["type"] == "PodScheduled"]
        if why and not seen["status"].get("nominatedNodeName"):
            time.sleep(0.7)
            return call("GET", f"{PODS}/{name}")
        time.sleep(0.1)
    return seen


def events(name, reason):
    found = call("GET", f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}").get("items", [])
    return [one for one in found if one["reason"] == reason]


failures = []


def check(what, holds, detail=""):
    if not holds:
        failures.append(what)
        print(f"FAIL {what} {detail}", flush=True)


def run():
    for i, (zone, cpu, memory, labels, taints) in enumerate([
            ("zone-a", "4", "9Gi", {"disk": "none", "generation": "1"}, None), ("zone-a", "6", "14Gi", {"generation": "2"}, None),
            ("zone-b", "8", "17Gi", {"generation": "3"}, [{"key": "old", "value": "yes", "effect": "PreferNoSchedule"}]), ("zone-b", "10", "23Gi", {"generation": "4"}, None),
            ("zone-c", "12", "31Gi", {"disk": "ssd", "generation": "5"}, None),
            ("zone-c", "16", "37Gi", {"accelerator": "gpu"}, [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}])]):
        node(f"n{i + 1}", zone, cpu, memory, labels, taints, [{"names": ["registry/huge:1"], "sizeBytes": 900_000_000}] if i == 1 else None)
    for name, value, policy in [("low", 10, None), ("high", 1000, None), ("high-never", 1000, "Never")]:
        create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value, **({"preemptionPolicy": policy} if policy else {})})
    rows = []
    for step in scenario():
        if isinstance(step, str):
            act(step)
            continue
        name = step["metadata"]["name"]
        state = dump()
        before = {one["metadata"]["name"] for one in state["items"] if one["kind"] == "Pod"}
        wanted = explain(state, {**step, "metadata": {**step["metadata"], "namespace": "default"}})
        create(PODS, step)
        seen = settle(name)
        placed = seen["spec"].get("nodeName", "")
        condition = next((c for c in seen["status"].get("conditions", []) if c["type"] == "PodScheduled"), {})
        message = "" if placed else condition.get("message", "")
        gone = sorted(before - {one["metadata"]["name"] for one in call("GET", PODS)["items"]})
        plan = wanted.get("eviction") or {}
        victims = sorted(v.split(" ")[0].split("/")[1] for v in plan.get("victims", [])) if plan.get("allowed") else []
        rows.append({"pod": name, "node": placed, "best": wanted["bestNodes"] or ([plan["node"]] if victims else []), "message": message, "victims": gone})
        print(f"{name:20} {placed or '-':4} best {','.join(rows[-1]['best']) or '-':10} {('victims ' + ','.join(gone)) if gone else ''}{message}", flush=True)
        check(f"{name}: victims", gone == victims, f"{gone} instead of {victims}")
        if placed:
            check(f"{name}: node", placed in rows[-1]["best"], f"{placed} not in {rows[-1]['best']}")
            check(f"{name}: condition", condition.get("status") == "True", condition)
            said = events(name, "Scheduled")
            check(f"{name}: event", any(e["message"] == f"Successfully assigned default/{name} to {placed}" for e in said), said)
        else:
            check(f"{name}: pending", not wanted["bestNodes"], wanted["bestNodes"])
            check(f"{name}: message", message == wanted.get("message"), f"\n  {message}\n  {wanted.get('message')}")
            check(f"{name}: condition", condition.get("status") == "False" and condition.get("reason") == "Unschedulable", condition)
            said = events(name, "FailedScheduling")
            check(f"{name}: event", any(e["message"] == message for e in said), [e["message"] for e in said])
        for victim in gone:
            said = events(victim, "Preempted")
            check(f"{victim}: Preempted event", len(said) == 1 and said[0]["message"].startswith("Preempted by "), said)
    # A pod of another scheduler is nobody's; a pending pod gets its node when room comes.
    create(PODS, pod("others", schedulerName="another-scheduler"))
    call("DELETE", f"{PODS}/port-0")
    for _ in range(200):
        freed = call("GET", f"{PODS}/port-2")
        if freed["spec"].get("nodeName"):
            break
        time.sleep(0.1)
    check("port-2: placed after port-0 went", freed["spec"].get("nodeName"), freed["status"])
    check("others: left alone", not call("GET", f"{PODS}/others")["spec"].get("nodeName"))
    if args.lease:
        holder = call("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler").get("spec", {}).get("holderIdentity", "")
        check("leader election lease", re.search(args.lease, holder), holder)
    if args.out:
        with open(args.out, "w") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)
    print(f"{len(rows)} pods, {sum(1 for r in rows if r['node'])} placed, {sum(len(r['victims']) for r in rows)} victims; {len(failures)} checks failed")


stop = threading.Event()
player = threading.Thread(target=kubelets, args=(stop,))
player.start()
try:
    run()
finally:
    stop.set()
    player.join()
    proxy.kill()
sys.exit(1 if failures else 0)
