#!/usr/bin/env python3
"""One user does his worst for a while, in six ways; an administrator, a scheduler, a node and health checks go on at their own pace. Shows in
figures how much of their rate is left, how long health takes, what the server holds, and how many requests were told to come back later."""
import asyncio, multiprocessing, os, sys
from lib import *

SECONDS = float(os.environ.get("OVERLOAD_SECONDS", "10"))
CONNECTIONS = int(os.environ.get("OVERLOAD_CONNECTIONS", "10000"))
MAPS = "/api/v1/namespaces/default/configmaps"
PACE = {"admin": 20, "node": 50, "scheduler": 30}  # Requests a second.


async def pace(port, token, request, rate, end, out):
    client, step = Client(port, token), 1 / rate
    due = time.monotonic()
    while time.monotonic() < end:
        start = time.monotonic()
        status, _ = await client.ask(*request())
        out.append((time.monotonic() - start, status))
        due += step
        # Who is late does not catch up: a kubelet's next lease comes when it comes.
        due = max(due, time.monotonic() - step)
        await asyncio.sleep(max(0, due - time.monotonic()))
    client.close()


async def health(port, end, out):
    while time.monotonic() < end:
        client, start = Client(port, None), time.monotonic()
        status, _ = await client.ask("GET", "/readyz")
        client.close()
        out.append((time.monotonic() - start, status))
        await asyncio.sleep(0.1)


def lease(number):
    return {"metadata": {"name": "n1", "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": "n1", "leaseDurationSeconds": 40, "renewTime": f"2026-01-01T00:00:{number % 60:02}.000000Z"}}


async def measure(server, seconds):
    end = time.monotonic() + seconds
    out = {name: [] for name in (*PACE, "health")}
    numbers = iter(range(1 << 30))
    requests = {
        "admin": ("t-admin", lambda: ("GET", "/api/v1/namespaces/kube-system")),
        "node": ("t-node", lambda: ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1", lease(next(numbers)),
                                    "application/merge-patch+json")),
        "scheduler": ("t-scheduler", lambda: ("POST", "/api/v1/namespaces/default/events",
                                              {"metadata": {"generateName": "e"}, "involvedObject": {"namespace": "default"}, "reason": "x"})),
    }
    peak = [0]

    async def memory():
        while time.monotonic() < end:
            peak[0] = max(peak[0], server.memory())
            await asyncio.sleep(0.1)

    await asyncio.gather(*(pace(server.port, *requests[name], PACE[name], end, out[name]) for name in PACE), health(server.port, end, out["health"]),
                         memory())
    return {name: (sum(1 for _, status in out[name] if 200 <= status < 300) / seconds, max((took for took, _ in out[name]), default=99)) for name in out}, peak[0]


# --- one user's ways; each runs in a process of its own and ends after `seconds`

async def repeat(port, request, options, end, told):
    client = Client(port, "t-mallory")
    while time.monotonic() < end:
        status, _ = await client.ask(*request, **options)
        told[status] = told.get(status, 0) + 1
        if status == 0:
            await asyncio.sleep(0.05)
    client.close()


async def many_connections(port, end, told):
    async def one():
        await asyncio.sleep(0)
        await repeat(port, ("GET", MAPS + "/a"), {}, end, told)

    tasks = []
    for _ in range(CONNECTIONS):
        tasks.append(asyncio.create_task(one()))
        if len(tasks) % 100 == 0:
            await asyncio.sleep(0.02)
        if time.monotonic() > end:
            break
    await asyncio.gather(*tasks)


async def lists(port, end, told):
    await asyncio.gather(*(repeat(port, ("GET", MAPS), {"accept": "application/yaml"}, end, told) for _ in range(64)))


async def writes(port, end, told):
    body = json.dumps({"metadata": {"name": "big"}, "data": {f"k{i:07}": "v" * 8 for i in range(100_000)}}).encode()
    await asyncio.gather(*(repeat(port, ("POST", MAPS, body), {}, end, told) for _ in range(64)))


async def watches(port, end, told):
    async def unread():
        client = Client(port, "t-mallory")
        await client.send("GET", MAPS + "?watch=1")
        client.streams[0]._transport.pause_reading()
        return client

    opened = await asyncio.gather(*(unread() for _ in range(200)))
    writer = Client(port, "t-mallory")
    number = 0
    while time.monotonic() < end:
        number += 1
        status, _ = await writer.ask("PATCH", MAPS + "/a", {"data": {"x": str(number) * 10_000}}, content_type="application/merge-patch+json")
        told[status] = told.get(status, 0) + 1
    for client in opened:
        client.close()


async def handshakes(port, end, told):
    async def one():
        while time.monotonic() < end:
            client = Client(port, "t-mallory")
            try:
                await client.open()
                told[200] = told.get(200, 0) + 1
            except (OSError, ssl.SSLError):
                told[0] = told.get(0, 0) + 1
            client.close()

    await asyncio.gather(*(one() for _ in range(64)))


OWN = "/apis/flowcontrol.apiserver.k8s.io/v1/"


async def own_level(port, end, told):
    """An administrator gave him the worst level that there can be: all shares, and as many queues as are allowed."""
    admin = Client(port, "t-admin")
    await admin.ask("POST", OWN + "prioritylevelconfigurations", {"metadata": {"name": "own"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 2**31 - 1, "lendablePercent": 0, "limitResponse": {"type": "Queue", "queuing": {
            "queues": 10_000_000, "handSize": 2, "queueLengthLimit": 2**31 - 1}}}}})
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    await admin.ask("POST", OWN + "flowschemas", {"metadata": {"name": "own"}, "spec": {"matchingPrecedence": 2, "priorityLevelConfiguration": {"name": "own"},
        "rules": [{"subjects": [{"kind": "User", "user": {"name": "mallory"}}], "resourceRules": [everything]}]}})
    await lists(port, end, told)
    await admin.ask("DELETE", OWN + "flowschemas/own")
    await admin.ask("DELETE", OWN + "prioritylevelconfigurations/own")
    admin.close()


def attack(way, port, seconds, told):
    os.nice(10)  # The attackers' own work is not to be what the others wait for.
    raise_file_limit()
    counts = {}
    try:
        asyncio.run(asyncio.wait_for(way(port, time.monotonic() + seconds, counts), seconds + 15))
    except (asyncio.TimeoutError, OSError):
        pass
    told.put(counts)


async def prepare(server):
    admin = Client(server.port, "t-admin")
    for path, body in GRANT:
        await admin.ask("POST", path, body)
    await admin.ask("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
    await admin.ask("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease(0))
    for i in range(2000):
        await admin.ask("POST", MAPS, {"metadata": {"name": "a" if i == 0 else f"m{i}"}, "data": {"k": "x" * 200}})
    admin.close()


def main():
    failed = False
    with Server(berth_of_arguments(), *os.environ.get("OVERLOAD_FLAGS", "").split()) as server:
        asyncio.run(prepare(server))
        alone, _ = asyncio.run(measure(server, SECONDS))
        print("of their rate alone:" + " " * 18 + "  ".join(f"{name:>9}" for name in PACE) + "    health s  memory MiB  answers to the user")
        for way in (many_connections, lists, writes, watches, handshakes, own_level):
            if os.environ.get("OVERLOAD_ONLY", way.__name__) != way.__name__:
                continue
            told = multiprocessing.Queue()
            process = multiprocessing.Process(target=attack, args=(way, server.port, SECONDS + 4, told))
            process.start()
            time.sleep(3)
            under, memory = asyncio.run(measure(server, SECONDS))
            counts = told.get(timeout=60)
            process.join(30)
            shares = {name: under[name][0] / max(alone[name][0], 0.1) for name in PACE}
            bad = min(shares.values()) < 0.5 or under["health"][1] > 1
            failed |= bad
            print(f"{'FAIL ' if bad else ''}{way.__name__.replace('_', ' '):<{33 if bad else 38}}" + "  ".join(f"{shares[name]:8.0%} " for name in PACE) +
                  f"  {under['health'][1]:8.2f}  {memory:10}  {dict(sorted(counts.items()))}", flush=True)
    return 1 if failed else 0


sys.exit(main())
