#!/usr/bin/env python3
"""One request of a user with ordinary rights, as unpleasant as a body allows: what it costs the server in processor time and memory, and what
others notice of it. A limit that is passed fails. With a word as second argument: those that have it in their name."""
import asyncio, itertools, sys
from lib import *

CPU_SECONDS, MEMORY_MIB, HEALTH_SECONDS = 6.0, 700, 1.0
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MAPS = "/api/v1/namespaces/default/configmaps"


def descending(bytes_wanted):
    count = bytes_wanted // 14
    return {f"k{count - i:07}": 1 for i in range(count)}


def attacks():
    spec = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    yield "review, 480 KB of unknown keys, descending", ("POST", REVIEWS, {**descending(480_000), **spec}), {}
    yield "review, 2.9 MB of unknown keys, descending", ("POST", REVIEWS, {**descending(2_900_000), **spec}), {}
    text = "".join(f"k{200_000 - i:07}: v\n" for i in range(200_000)).encode()
    yield "review in YAML, 2.4 MB", ("POST", REVIEWS, text), {"content_type": "application/yaml"}
    aliases = b"a: &a [" + b"x, " * 1000 + b"x]\nb:\n" + b"- *a\n" * 100_000
    yield "YAML of aliases", ("POST", REVIEWS, aliases), {"content_type": "application/yaml"}
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/k{i}"} for i in range(40)]
    yield "JSON patch that doubles 40 times", ("PATCH", MAPS + "/a", doubling), {"content_type": "application/json-patch+json"}
    inserts = [{"op": "add", "path": "/x/0", "value": 0} for _ in range(10_000)]
    yield "JSON patch, 10,000 insertions at the front", ("PATCH", MAPS + "/long", inserts), {"content_type": "application/json-patch+json"}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}],
           "volumes": [{"name": f"v{i}", "emptyDir": {}} for i in range(50_000)]}}
    yield "pod with 50,000 volumes", ("POST", "/api/v1/namespaces/default/pods", pod), {}
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": f"n{i}", "uid": f"u{i}"} for i in range(30_000)]
    yield "30,000 owners merged strategically", ("PATCH", MAPS + "/a", {"metadata": {"ownerReferences": owners}}), \
        {"content_type": "application/strategic-merge-patch+json"}
    long_name = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}, "spec": {"containers": [
        {"name": "x" * 1_000_000, "image": "i", "env": [{"name": f"e{i}", "unknown": 1} for i in range(30_000)]}]}}
    yield "apply with a long name above 30,000 variables", ("PATCH", "/api/v1/namespaces/default/pods/q?fieldManager=m", long_name), \
        {"content_type": "application/apply-patch+yaml"}
    repeated = b'{"metadata":{"name":"d"},"' + b"x" * 1_000_000 + b'":{' + b",".join(b'"a%d":1,"a%d":2' % (i, i) for i in range(70_000)) + b"}}"
    yield "duplicate keys below a name of a megabyte", ("POST", MAPS + "?fieldValidation=Strict", repeated), {}
    yield from text_attacks()
    yield from list_attacks()
    yield from custom_attacks()


def multiplying_definition():
    """A kind whose every `{}` means 300 bytes of defaults, and whose lists want words and members."""
    item = {"type": "object", "properties": {"a": {"type": "string", "default": "x" * 300}}}
    words = {"type": "string", "enum": [f"word-{i:05}" for i in range(1000)]}
    strict = {"type": "object", "required": [f"name-{i:05}" for i in range(1000)]}
    lists = {name: {"type": "array", "items": of} for name, of in (("defaulted", item), ("words", words), ("strict", strict))}
    return {"metadata": {"name": "boxes.attack.example.com"}, "spec": {
        "group": "attack.example.com", "scope": "Namespaced", "names": {"plural": "boxes", "singular": "box", "kind": "Box"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": lists}}}]}}


RBAC = "/apis/rbac.authorization.k8s.io/v1/"
BOX_RIGHTS = [
    (RBAC + "clusterroles", {"metadata": {"name": "boxes"}, "rules": [{"apiGroups": ["attack.example.com"], "resources": ["*"], "verbs": ["*"]}]}),
    (RBAC + "clusterrolebindings", {"metadata": {"name": "boxes"}, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
                                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "boxes"}})]
BOXES = "/apis/attack.example.com/v1/namespaces/default/boxes"


def custom_attacks():
    def box(name, **lists):
        return {"apiVersion": "attack.example.com/v1", "kind": "Box", "metadata": {"name": name}, **lists}
    yield "box of 700,000 {} that have defaults", ("POST", BOXES, box("a", defaulted=[{}] * 700_000)), {}
    yield "box of 500,000 wrong words", ("POST", BOXES, box("b", words=["x"] * 500_000)), {}
    yield "box of 700,000 {} that lack 1,000 members", ("POST", BOXES, box("c", strict=[{}] * 700_000)), {}


NOTHING = [{}] * 700_000  # What 2.1 MB of a body hold at most, and defaults make many times of.


def pod_of(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "l"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def field(number, content):
    length, head = len(content), bytearray([number << 3 | 2])
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes(head) + bytes([length]) + content


def list_attacks():
    core, networks = "/api/v1/namespaces/default/", "/apis/networking.k8s.io/v1/namespaces/default/"
    meta = {"metadata": {"name": "l"}}
    for what, spec in (("containers", {"containers": NOTHING}), ("volumes", {"volumes": NOTHING}), ("tolerations", {"tolerations": NOTHING}),
                       ("variables", {"containers": [{"name": "c", "image": "i", "env": NOTHING}]}),
                       ("scattered lists", {"containers": [{"name": f"c{i}", "image": "i", "env": [{}] * 500, "ports": [{}] * 500} for i in range(700)]})):
        yield f"pod of 700,000 {{}} as {what}", ("POST", core + "pods", pod_of(**spec)), {}
    for what in ("containers", "volumes"):
        yield f"pod of 65,000 {{}} as {what}, which are not too many", ("POST", core + "pods", pod_of(**{what: NOTHING[:65_000]})), {}
    yield "service of 65,000 ports, which are not too many", ("POST", core + "services", {**meta, "spec": {"ports": NOTHING[:65_000]}}), {}
    yield "service of 700,000 ports", ("POST", core + "services", {**meta, "spec": {"ports": NOTHING}}), {}
    yield "endpoints of 700,000 subsets", ("POST", core + "endpoints", {**meta, "subsets": NOTHING}), {}
    yield "config map of 700,000 owners", ("POST", core + "configmaps", {"metadata": {"name": "l", "ownerReferences": NOTHING}}), {}
    yield "config map of 700,000 managed fields", ("POST", core + "configmaps", {"metadata": {"name": "l", "managedFields": NOTHING}}), {}
    yield "network policy of 700,000 peers", ("POST", networks + "networkpolicies",
                                              {**meta, "spec": {"podSelector": {}, "ingress": NOTHING}}), {}
    yield "role of 700,000 rules", ("POST", RBAC + "namespaces/default/roles", {**meta, "rules": NOTHING}), {}
    yield "deployment of 700,000 containers", ("POST", "/apis/apps/v1/namespaces/default/deployments", {**meta, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": NOTHING}}}}), {}
    yield "review of 700,000 expressions", ("POST", REVIEWS, {"spec": {"resourceAttributes": {
        "verb": "list", "resource": "pods", "labelSelector": {"requirements": NOTHING}}}}), {}
    yaml = b"apiVersion: v1\nkind: Pod\nmetadata: {name: l}\nspec: {containers: [" + b",".join([b"{}"] * 700_000) + b"]}\n"
    yield "pod of 700,000 containers in YAML", ("POST", core + "pods", yaml), {"content_type": "application/yaml"}
    message = field(1, field(1, b"l")) + field(2, field(2, b"") * 1_400_000)
    envelope = b"k8s\0" + field(1, field(1, b"v1") + field(2, b"Pod")) + field(2, message)
    yield "pod of 1,400,000 containers in protobuf", ("POST", core + "pods", envelope), {"content_type": "application/vnd.kubernetes.protobuf"}
    applied = {"content_type": "application/apply-patch+yaml"}
    for what in ("containers", "tolerations"):
        yield f"apply of 700,000 {what}", ("PATCH", core + "pods/l?fieldManager=m", pod_of(**{what: NOTHING})), applied
    yield "apply of 200,000 items with keys", ("PATCH", networks + "ingresses/l?fieldManager=m", {
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", **meta, "spec": {"tls": NOTHING}}), applied
    yield "700,000 owners merged strategically", ("PATCH", MAPS + "/a", {"metadata": {"ownerReferences": NOTHING}}), \
        {"content_type": "application/strategic-merge-patch+json"}
    yield "700,000 owners merged", ("PATCH", MAPS + "/a", {"metadata": {"ownerReferences": NOTHING}}), {"content_type": "application/merge-patch+json"}
    yield "700,000 owners in a JSON patch", ("PATCH", MAPS + "/a", [{"op": "add", "path": "/metadata/ownerReferences", "value": NOTHING}]), \
        {"content_type": "application/json-patch+json"}
    yield "pod of 700,000 empty arguments", ("POST", core + "pods", pod_of(containers=[{"name": "c", "image": "i", "args": [""] * 700_000}])), {}
    yield "config map of 600,000 empty finalizers", ("POST", core + "configmaps", {"metadata": {"name": "l", "finalizers": [""] * 600_000}}), {}
    yield "config map of 200,000 labels", ("POST", core + "configmaps", {"metadata": {"name": "l", "labels": {f"{i}": "" for i in range(200_000)}}}), {}
    yield "eviction of 700,000 conditions", ("POST", core + "pods/x/eviction", {"metadata": {"name": "x"}, "deleteOptions": {"dryRun": [""] * 700_000}}), {}


def text_attacks():
    for suffix in ("", "n", "Ki"):
        pod = {"metadata": {"name": "t"}, "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"limits": {f"example.com/r{i}": "0." + "7" * 90_000 + suffix for i in range(30)}}}]}}
        yield f"30 quantities of 90 KB{suffix and ' in ' + suffix}", ("POST", "/api/v1/namespaces/default/pods", pod), {}
    names = {"metadata": {"name": "t"}, "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [
        {"name": f"v{i}", "iscsi": {"targetPortal": "p", "lun": 0, "iqn": "iqn.2020-01." + "a" * 4000 + ":" + "b" * 50}} for i in range(700)]}}
    yield "700 iSCSI names of 4 KB", ("POST", "/api/v1/namespaces/default/pods", names), {}


def rights():
    """Of a namespace's admin: what rules, bindings and questions about them cost."""
    roles, bindings = (f"/apis/rbac.authorization.k8s.io/v1/namespaces/default/{plural}" for plural in ("roles", "rolebindings"))
    for count in (50, 100):
        lists = {field: [f"{word}{i}" for i in range(count)] for field, word in
                 (("verbs", "v"), ("apiGroups", "g"), ("resources", "r"), ("resourceNames", "n"))}
        yield f"role of {count} verbs, groups, resources and names", ("POST", roles, {"metadata": {"name": "wide"}, "rules": [lists]}), {}
    held = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": [f"n{i}"]} for i in range(25_000)]
    yield "role of 25,000 rules that are held", ("POST", roles, {"metadata": {"name": "many"}, "rules": held}), {}
    named = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "many"},
             "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}] * 30_000}
    yield "binding of 30,000 times the same user", ("POST", bindings, {"metadata": {"name": "same"}, **named}), {}
    yield "the same once more", ("PUT", bindings + "/same", {"metadata": {"name": "same", "labels": {"a": "b"}}, **named}), {}
    review = {"spec": {"user": "x", "groups": [f"g{i}" for i in range(200_000)],
                       "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}}
    yield "review of a user in 200,000 groups", \
        ("POST", "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews", review), {}
    yield "the rules of who has 25,000", ("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}), {}


async def watch_health(port, slowest, stop):
    while not stop.is_set():
        client = Client(port, None)  # A new connection each time: accepting and TLS are part of it.
        start = time.monotonic()
        await client.ask("GET", "/readyz")
        slowest[0] = max(slowest[0], time.monotonic() - start)
        client.close()
        await asyncio.sleep(0.05)


async def run(server):
    failed = 0
    admin = Client(server.port, "t-admin")
    for path, body in GRANT:
        await admin.ask("POST", path, body)
    await admin.ask("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
                    {"metadata": {"name": "admins"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
                     "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]})
    await admin.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await admin.ask("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * 60}})
    await admin.ask("POST", MAPS, {"metadata": {"name": "long"}, "x": [0] * 300_000})
    await admin.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", multiplying_definition())
    for path, body in BOX_RIGHTS:
        await admin.ask("POST", path, body)
    while (await admin.ask("GET", BOXES))[0] != 200:
        await asyncio.sleep(0.05)
    print(f"{'processor s':>11} {'memory MiB':>10} {'health s':>8} status")
    for name, request, options in itertools.chain(attacks(), rights()):
        if len(sys.argv) > 2 and sys.argv[2] not in name:
            continue
        slowest, stop = [0.0], asyncio.Event()
        health = asyncio.create_task(watch_health(server.port, slowest, stop))
        before_cpu, before_memory, peak = server.cpu(), server.memory(), 0
        mallory = Client(server.port, "t-mallory")
        answer = asyncio.create_task(mallory.ask(*request, **options))
        while not answer.done():
            peak = max(peak, server.memory())
            await asyncio.sleep(0.02)
        status = answer.result()[0]
        mallory.close()
        stop.set()
        await health
        cpu, memory = server.cpu() - before_cpu, max(peak, server.memory()) - before_memory
        bad = cpu > CPU_SECONDS or memory > MEMORY_MIB or slowest[0] > HEALTH_SECONDS or status == 0
        failed += bad
        print(f"{cpu:11.2f} {memory:10} {slowest[0]:8.3f} {status:6} {'FAIL ' if bad else ''}{name}", flush=True)
    return failed


with Server(berth_of_arguments()) as one:
    sys.exit(1 if asyncio.run(asyncio.wait_for(run(one), 400)) else 0)
