#!/usr/bin/env python3
"""One user lets the cluster itself do the work: small objects that become many, large ones that come and go, questions that are kept. `berth up` has a
memory limit; another user goes on. Shows in figures what the process holds, how many of the other's writes were taken, and what is left in the end."""
import asyncio, os, sys, time
from lib import *

SECONDS = float(os.environ.get("MEMORY_SECONDS", "20"))
LIMIT = 1024  # MiB
PODS, APPS = "/api/v1/namespaces/default/pods", "/apis/apps/v1/namespaces/default/"
SELECTOR = {"matchLabels": {"app": "w"}}


def template(size=0):
    return {"metadata": {"labels": {"app": "w"}, "annotations": {"big": "x" * size}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}}


def workload(kind, replicas, size=0, **spec):
    return {"kind": kind, "apiVersion": "apps/v1", "metadata": {"name": "w"}, "spec": {"replicas": replicas, "selector": SELECTOR, "template": template(size), **spec}}


async def make(port, kind, body):
    mallory = Client(port, "t-mallory")
    status, answer = await mallory.ask("POST", APPS + kind, body)
    assert status == 201, answer
    await asyncio.sleep(SECONDS)
    status, answer = await mallory.ask("PATCH", f"{APPS}{kind}/w", {"spec": {"replicas": 0}}, content_type="application/merge-patch+json")
    assert status == 200, answer
    await asyncio.sleep(2)
    await mallory.ask("DELETE", f"{APPS}{kind}/w")
    mallory.close()


async def parallel_set(port):
    await make(port, "statefulsets", workload("StatefulSet", 2147483647, podManagementPolicy="Parallel", serviceName="w"))


async def million(port):
    await make(port, "deployments", workload("Deployment", 1_000_000))


async def large_template(port):
    await make(port, "deployments", workload("Deployment", 1_000_000, 200_000))


async def terms(port):
    """Pods of 1.4 MB each, with 3,000 terms of affinity of their own, created and deleted again."""
    mallory = Client(port, "t-mallory")
    for number in range(48):
        label = f"{number:03}" + "y" * 40
        hated = [{"topologyKey": f"example.com/{label}-{i}", "namespaces": ["default", "other"],
                  "labelSelector": {"matchExpressions": [{"key": f"k{i}-{label}", "operator": "In", "values": [f"{v}-{i}-{label}" for v in range(4)]}]}}
                 for i in range(3000)]
        body = {"metadata": {"name": f"p{number}", "labels": {"app": label}}, "spec": {"containers": [{"name": "c", "image": "a:1"}], "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": hated}}}}
        status, answer = await mallory.ask("POST", PODS, body)
        if status not in (201, 429):
            raise SystemExit(f"{status} {answer[:300]}")
        await asyncio.sleep(0.2)
        await mallory.ask("DELETE", f"{PODS}/p{number}?gracePeriodSeconds=0")
    mallory.close()


async def selectors(port):
    """Idle watches with the longest selectors that there can be."""
    text = ",".join(f"!k{i}" for i in range(9_000))[:58_000].rsplit(",", 1)[0]
    clients = [Client(port, "t-mallory") for _ in range(200)]
    for client in clients:
        await client.send("GET", f"{PODS}?watch=1&labelSelector={text}")
        await client.streams[0].readuntil(b"\r\n\r\n")
    await asyncio.sleep(3)
    for client in clients:
        client.close()


async def run(server, way):
    told, peak, over = {}, [0], [False]

    async def other():
        jane, number = Client(server.port, "t-jane"), 0
        while not over[0]:
            number += 1
            status, _ = await jane.ask("PUT" if number > 1 else "POST", "/api/v1/namespaces/default/configmaps" + ("/jane" if number > 1 else ""),
                                       {"metadata": {"name": "jane"}, "data": {"n": str(number)}})
            told[status] = told.get(status, 0) + 1
            await asyncio.sleep(0.1)
        jane.close()

    async def memory():
        while not over[0]:
            peak[0] = max(peak[0], server.memory())
            await asyncio.sleep(0.1)

    async def attack():
        await way(server.port)
        over[0] = True

    await asyncio.gather(other(), memory(), attack())
    return told, peak[0]


async def settle(server, most):
    """What it holds when the attack is over: at once, or when it has come to rest."""
    for _ in range(60):
        if server.memory() <= most:
            break
        await asyncio.sleep(1)
    return server.memory()


async def prepare(port):
    admin = Client(port, "t-admin")
    for path, body in GRANT:
        await admin.ask("POST", path, body)
    admin.close()


def main():
    failed = False
    print(f"{'MiB of ' + str(LIMIT):24}{'before':>8}{'peak':>8}{'after':>8}  answers to the other user")
    for way in (parallel_set, million, large_template, terms, selectors):
        if os.environ.get("MEMORY_ONLY", way.__name__) != way.__name__:
            continue
        with Server(berth_of_arguments(), "--memory-limit", f"{LIMIT}Mi", "--nodes", "3", command="up") as server:
            asyncio.run(prepare(server.port))
            before = server.memory()
            told, peak = asyncio.run(run(server, way))
            after = asyncio.run(settle(server, LIMIT * 3 // 4))
            served = sum(count for status, count in told.items() if 200 <= status < 300)
            bad = peak > LIMIT or after > LIMIT * 3 // 4 or served < 0.9 * sum(told.values())
            failed |= bad
            print(f"{'FAIL ' if bad else ''}{way.__name__.replace('_', ' '):<{19 if bad else 24}}{before:8}{peak:8}{after:8}  {dict(sorted(told.items()))}", flush=True)
    return 1 if failed else 0


sys.exit(main())
