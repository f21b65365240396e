#!/usr/bin/env python3
"""Tells a cluster the stories of stories.py and writes down what its controllers made of them.

    record.py URL TOKEN OUTPUT.jsonl.gz [PART-OF-A-NAME] [--jobs N]

One line a story: {"name", "steps"}. A step is a request with its code (and message, of a refusal), or a rest ("rest") with what stood in the
story's namespace when nothing changed any more ("seen"): objects by kind and masked name, events, each once. Masked are uids, times,
addresses, nodes and the random ends of names; left out are revisions and what kubelet and scheduler say.
"""
import collections, gzip, json, os, re, ssl, sys, threading, time, urllib.error, urllib.request

import stories

PATIENCE = float(os.environ.get("RECORD_PATIENCE", "1"))  # On a machine that has other things to do: more than 1.
CONTEXT = ssl._create_unverified_context()
SEEN = {"pods": "/api/v1", "services": "/api/v1", "endpoints": "/api/v1", "replicationcontrollers": "/api/v1", "persistentvolumeclaims": "/api/v1",
        "resourcequotas": "/api/v1", "serviceaccounts": "/api/v1", "configmaps": "/api/v1", "secrets": "/api/v1", "events": "/api/v1",
        "podtemplates": "/api/v1",
        "deployments": "/apis/apps/v1", "replicasets": "/apis/apps/v1", "statefulsets": "/apis/apps/v1", "daemonsets": "/apis/apps/v1",
        "controllerrevisions": "/apis/apps/v1", "jobs": "/apis/batch/v1", "cronjobs": "/apis/batch/v1",
        "endpointslices": "/apis/discovery.k8s.io/v1", "poddisruptionbudgets": "/apis/policy/v1",
        "horizontalpodautoscalers": "/apis/autoscaling/v2", "resourceclaims": "/apis/resource.k8s.io/v1",
        "roles": "/apis/rbac.authorization.k8s.io/v1", "leases": "/apis/coordination.k8s.io/v1"}
QUIET = {"leases"}
RANDOM = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9])")
MASKS = [(re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
         (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"), (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC( m=\S+)?"), "TIME"),
         (re.compile(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b"), "IP"), (re.compile(r"\bfd[0-9a-f]{2}:[0-9a-f:]+"), "IP6"),
         (re.compile(r"(?<![a-z])node-[123]\b"), "NODE"), (re.compile(r"-29\d{6}\b"), "-MINUTES"), (re.compile(r"\b\d+(\.\d+)?(ms|s) (ago|remaining)"), "SPAN"), (RANDOM, "-xxxxx"), (re.compile(r"(?<![a-zA-Z0-9])[bcdfghjklmnpqrstvwxz2456789]{7,10}(?![a-zA-Z0-9])"), "HASH"), (re.compile(r"\bzone-[abc]\b"), "ZONE")]


def mask(text):
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


def masked(value):
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [masked(one) for one in value]
    if isinstance(value, dict):
        return {mask(k): "N" if k in ("resourceVersion", "nodePort") else masked(v) for k, v in value.items()}
    return value


def managers(fields):
    return sorted({f'{f["manager"] if "kube" in f["manager"] else "other"} {f["operation"]} {f.get("subresource", "")}'.strip() for f in fields})


def shown(resource, item):
    """What is kept of an object."""
    item = json.loads(json.dumps(item))
    metadata = item["metadata"]
    for field in ("uid", "resourceVersion", "creationTimestamp", "selfLink", "namespace"):
        metadata.pop(field, None)
    fields = metadata.pop("managedFields", None)
    item.pop("apiVersion", None)
    item.pop("kind", None)
    if resource in ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs", "replicationcontrollers", "poddisruptionbudgets", "horizontalpodautoscalers"):
        metadata["managers"] = managers(fields or [])
    if resource == "pods":
        status = item["status"]
        spec = item["spec"]
        for name in ("tolerations", "nodeName", "enableServiceLinks", "dnsPolicy", "schedulerName", "securityContext", "preemptionPolicy", "priority", "serviceAccount", "serviceAccountName"):
            spec.pop(name, None)
        for c in spec.get("containers", []):
            c["volumeMounts"] = [m for m in c.get("volumeMounts", []) if "kube-api-access" not in m["name"]]
        spec["volumes"] = [v for v in spec.get("volumes", []) if "kube-api-access" not in v["name"]]
        item["status"] = {"phase": status.get("phase"), "reason": status.get("reason", ""), "targets": sorted(f'{c["type"]}={c["status"]} {c.get("reason", "")}' for c in status.get("conditions", []) if c["type"] in ("DisruptionTarget", "Ready", "FailureTarget"))}
    if resource == "endpointslices":
        metadata.pop("generation", None)  # Counts the steps between.
    if resource == "serviceaccounts":
        item.pop("secrets", None)
    if resource == "configmaps" and metadata["name"] == "kube-root-ca.crt":
        item.pop("data", None)
    if resource == "secrets":
        item["data"] = sorted((item.get("data") or {}).keys())
    if resource == "nodes":
        item["status"] = {"conditions": sorted(f'{c["type"]}={c["status"]} {c.get("reason", "")}' for c in item.get("status", {}).get("conditions", []))}
        for field in ("addresses", "podCIDR", "podCIDRs"):
            item.get("spec", {}).pop(field, None)
    if resource == "leases":
        item.pop("spec", None)
    return masked(item)


def event(item):
    about = item["involvedObject"]
    source = item.get("source", {}).get("component") or item.get("reportingComponent") or ""
    return [mask(f'{about["kind"]}/{about["name"]}'), item["type"], item["reason"], mask(item.get("message", "")).removeprefix("(combined from similar events): "), source]


class Api:
    def __init__(self, url, token):
        self.url, self.token = url, token

    def ask(self, method, path, body=None, kind="application/json"):
        request = urllib.request.Request(self.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {self.token}", "Accept": "application/json", "User-Agent": "recorder/1", "Content-Type": kind})
        try:
            with urllib.request.urlopen(request, context=CONTEXT, timeout=60) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text[:1] == b"{" else {"text": text.decode(errors="replace")}
        except urllib.error.HTTPError as e:
            text = e.read().decode()
            try:
                return e.code, json.loads(text)
            except ValueError:
                return e.code, {"message": text}


class Changes:
    """When something changed last in each namespace (and "" for cluster objects), by watches of everything that is shown."""

    def __init__(self, api):
        self.last = collections.defaultdict(float)
        more = {"persistentvolumes": "/api/v1", "nodes": "/api/v1", "namespaces": "/api/v1", "certificatesigningrequests": "/apis/certificates.k8s.io/v1"}
        for resource, root in {**SEEN, **more}.items():
            if resource not in QUIET:
                threading.Thread(target=self.watch, args=(api, resource, root), daemon=True).start()

    def watch(self, api, resource, root):
        while True:
            try:
                request = urllib.request.Request(f"{api.url}{root}/{resource}?watch=true&timeoutSeconds=3000", headers={"Authorization": f"Bearer {api.token}", "Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1" if resource not in ("events", "nodes") else "application/json"})
                with urllib.request.urlopen(request, context=CONTEXT) as stream:
                    for line in stream:
                        metadata = json.loads(line).get("object", {}).get("metadata", {})
                        if resource != "nodes":
                            self.last[metadata.get("namespace", "")] = time.time()
            except OSError:
                time.sleep(0.5)


def look(api, namespace, more):
    seen = collections.defaultdict(list)
    for resource, root in SEEN.items():
        code, body = api.ask("GET", f"{root}/namespaces/{namespace}/{resource}")
        for item in body.get("items", []):
            if item["metadata"]["name"].startswith("openshift-"):  # Not Kubernetes' own: the recorded binaries are a distribution's.
                continue
            if resource == "events":
                if event(item)[4] not in ("default-scheduler", "kubelet") and event(item) not in seen["events"]:
                    seen["events"].append(event(item))
            else:
                seen[resource].append(shown(resource, item))
    for path in more:
        code, body = api.ask("GET", path.replace("{ns}", namespace))
        resource = path.split("?")[0].rsplit("/", 2)[-2]
        seen[path].append(shown(resource, body) if code == 200 else code)
    for values in seen.values():
        values.sort(key=lambda v: json.dumps(v, sort_keys=True))
    return dict(seen)


def settle(api, changes, namespace, step):
    if "seconds" in step:
        return time.sleep(step["seconds"])
    began, quiet = time.time(), step.get("quiet", 2.5) * PATIENCE
    while time.time() - began < step.get("longest", 60):
        time.sleep(0.1)
        if time.time() - max(changes.last[namespace], began) > quiet:
            return


def tell(api, changes, story, out, lock):
    namespace = story["name"].replace("_", "-")
    kept = []
    if story.get("namespace", True):
        api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for _ in range(100):
            if api.ask("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default")[0] == 200 and api.ask("GET", f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt")[0] == 200:
                break
            time.sleep(0.1)
    for step in story["steps"]:
        if "rest" in step:
            settle(api, changes, namespace, step)
            kept.append({**step, "seen": look(api, namespace, step.get("show", []))})
            continue
        path = step["path"].replace("{ns}", namespace)
        body = json.loads(json.dumps(step["body"]).replace("{ns}", namespace)) if "body" in step else None
        if "each" in step:  # every object that a selector finds
            _, found = api.ask("GET", path)
            base, names = path.split("?")[0], [i["metadata"]["name"] for i in sorted(found["items"], key=lambda i: i["metadata"]["name"])]
            for name in names[step.get("from", 0):step.get("to")]:
                api.ask(step["each"], f'{base}/{name}{step.get("sub", "")}', body, step.get("type", "application/json"))
            kept.append(step)
            continue
        code, answer = api.ask(step["method"], path, body, step.get("type", "application/json"))
        kept.append({**step, "code": code, **({"message": mask(answer.get("message", ""))} if code >= 400 else {})})
    for path in story.get("after", []):
        api.ask("DELETE", path.replace("{ns}", namespace))
    if story.get("namespace", True):
        api.ask("DELETE", f"/api/v1/namespaces/{namespace}")
    with lock:
        out[story["name"]] = {"name": story["name"], "steps": kept}
        print(len(out), story["name"], flush=True)


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    jobs = int(next((a.split("=")[1] for a in sys.argv if a.startswith("--jobs=")), 6))
    url, token, output = arguments[:3]
    only = arguments[3].split(",") if len(arguments) > 3 else [""]
    api, out, lock = Api(url, token), {}, threading.Lock()
    changes = Changes(api)
    time.sleep(1)
    chosen = [s for s in stories.ALL if any(o in s["name"] for o in only)]
    waiting = [s for s in chosen if not s.get("alone")]
    waiting.sort(key=lambda s: -s.get("long", 0))

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                story = waiting.pop(0)
            try:
                tell(api, changes, story, out, lock)
            except Exception as e:  # one story that fails leaves the others alone
                print("failed:", story["name"], repr(e), flush=True)
    threads = [threading.Thread(target=work) for _ in range(jobs)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for story in chosen:
        if story.get("alone"):
            tell(api, changes, story, out, lock)
    with gzip.GzipFile(output, "wb", mtime=0) as file:
        for story in chosen:
            if story["name"] in out:
                file.write((json.dumps(out[story["name"]], separators=(",", ":"), sort_keys=True) + "\n").encode())


if __name__ == "__main__":
    main()
