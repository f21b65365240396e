#!/usr/bin/env python3
"""One request of a user with ordinary rights, as unpleasant as a body allows: what it costs the server in processor time and memory, and what
others notice of it. A limit that is passed fails. With a word as second argument: those that have it in their name."""
import asyncio, sys
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
    await admin.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await admin.ask("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * 60}})
    await admin.ask("POST", MAPS, {"metadata": {"name": "long"}, "x": [0] * 300_000})
    print(f"{'processor s':>11} {'memory MiB':>10} {'health s':>8} status")
    for name, request, options in attacks():
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
    sys.exit(1 if asyncio.run(asyncio.wait_for(run(one), 240)) else 0)
