#!/usr/bin/env python3
"""Hours of churn on one `berth up`: workloads grow and shrink with the time of day, roll, end, lose pods and nodes; watches come and go; names are
never used twice. A line a period says what the process holds and how long requests take; in the end, of what came after the first ninety minutes
(events live for sixty), the last third is held against the first: memory, descriptors, threads and the log's size must not have grown by more than
a tenth.

usage: soak.py path/of/berth [--hours 8] [--period 3600] [--day 3600] [--nodes 50] [--json FILE]   (hours may be a fraction)"""
import argparse, asyncio, json, math, os, random, statistics, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "attack"))
from lib import Client, Server, raise_file_limit

APPS, CORE, BATCH = "/apis/apps/v1/namespaces/default/deployments", "/api/v1/namespaces/default/", "/apis/batch/v1/namespaces/default/jobs"
MERGE = "application/merge-patch+json"
DEPLOYMENTS = 12
MAY_GROW = 1.10
WARM_SECONDS = 5400  # Events live for an hour, and their room is given back some time after.
MOST_REFUSED = 0.001


def pod_template(label, restart="Always"):
    return {"metadata": {"labels": {"app": label}}, "spec": {"restartPolicy": restart, "containers": [
        {"name": "c", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}}}]}}


class Churn:
    """What users do all day. Every name is new, but those of the workloads that stay."""

    def __init__(self, port, day, began):
        self.port, self.day, self.began, self.number = port, day, began, 0
        self.random = random.Random(1)
        self.refused = self.asked = 0
        self.latencies = {"create": [], "list": [], "patch": []}
        self.client = Client(port, "t-admin")

    async def ask(self, kind, method, path, body=b"", content_type="application/json", missing_is_fine=False):
        start = time.monotonic()
        status, answer = await self.client.ask(method, path, body, content_type=content_type)
        if kind in self.latencies:
            self.latencies[kind].append(time.monotonic() - start)
        self.asked += 1
        if not (200 <= status < 300 or missing_is_fine and status == 404):
            self.refused += 1
            print(f"refused: {method} {path}: {status} {answer[:200]!r}", file=sys.stderr)
        return answer

    def high_tide(self):
        """0 at night, 1 at noon."""
        return (1 - math.cos(2 * math.pi * (time.monotonic() - self.began) / self.day)) / 2

    async def begin(self):
        for i in range(DEPLOYMENTS):
            label = {"app": f"d{i}"}
            await self.ask("create", "POST", APPS, {"metadata": {"name": f"d{i}"}, "spec": {"replicas": 2, "selector": {"matchLabels": label}, "template": pod_template(f"d{i}")}})

    async def scale(self):
        replicas = 2 + round(self.high_tide() * self.random.randint(5, 40))
        await self.ask("patch", "PATCH", f"{APPS}/d{self.random.randrange(DEPLOYMENTS)}", {"spec": {"replicas": replicas}}, MERGE)

    async def roll(self):
        body = {"spec": {"template": {"metadata": {"annotations": {"rolled": str(self.number)}}}}}
        await self.ask("patch", "PATCH", f"{APPS}/d{self.random.randrange(DEPLOYMENTS)}", body, MERGE)

    async def config(self):
        name = f"config-{self.number}"
        await self.ask("create", "POST", CORE + "configmaps", {"metadata": {"name": name}, "data": {"k": "v" * self.random.randint(1, 20000)}})
        await self.ask("delete", "DELETE", CORE + f"configmaps/{name}")

    async def job(self):
        name = f"job-{self.number}"
        spec = {"template": pod_template(name, "Never"), "ttlSecondsAfterFinished": 5, "activeDeadlineSeconds": 20}
        await self.ask("create", "POST", BATCH, {"metadata": {"name": name}, "spec": spec})

    async def lose_pods(self):
        pods = json.loads(await self.ask("list", "GET", CORE + "pods?limit=50"))["items"]
        for pod in self.random.sample(pods, min(3, len(pods))):
            await self.ask("delete", "DELETE", CORE + "pods/" + pod["metadata"]["name"], missing_is_fine=True)

    async def lose_a_node(self):
        nodes = json.loads(await self.ask("list", "GET", "/api/v1/nodes"))["items"]
        node = self.random.choice(nodes)
        await self.ask("patch", "PATCH", "/api/v1/nodes/" + node["metadata"]["name"], {"spec": {"unschedulable": not node["spec"].get("unschedulable", False)}}, MERGE)

    async def namespace(self):
        name = f"ns-{self.number}"
        await self.ask("create", "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        await self.ask("create", "POST", f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "c"}})
        await self.ask("delete", "DELETE", f"/api/v1/namespaces/{name}")

    async def look(self):
        """A watch with a selector of its own, for a moment."""
        watcher = Client(self.port, "t-admin")
        await watcher.ask("GET", f"{CORE}pods?watch=true&timeoutSeconds=1&labelSelector=app%3Dw{self.number}")
        watcher.close()

    async def run(self, until):
        doings = [self.scale] * 4 + [self.roll, self.config, self.config, self.job, self.lose_pods, self.lose_a_node, self.namespace, self.look]
        while time.monotonic() < until:
            self.number += 1
            await self.random.choice(doings)()
            await asyncio.sleep(0.2 + 0.8 * (1 - self.high_tide()))


def held(server):
    """What the process holds now."""
    pid, data = server.process.pid, os.path.join(server.directory.name, "data")
    log = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(data) for name in names if os.path.exists(os.path.join(folder, name)))
    return {"MiB": server.memory(), "descriptors": len(os.listdir(f"/proc/{pid}/fd")), "threads": len(os.listdir(f"/proc/{pid}/task")), "log MiB": log / 2**20}


def line_of(hours, samples, churn, cpu, seconds):
    row = {"hour": round(hours, 2)} | {key: round(statistics.median(one[key] for one in samples), 1) for key in samples[0]}
    for kind, values in churn.latencies.items():
        values = sorted(values) or [0]
        row[f"{kind} ms p50"], row[f"{kind} ms p99"] = (round(1000 * values[int(len(values) * share)], 1) for share in (0.5, 0.99))
        churn.latencies[kind] = []
    return row | {"processors": round(cpu / seconds, 2), "requests": churn.asked, "refused": churn.refused}


def what_grew(samples):
    """Of what is held: the last third's median beside the first's; None: there are too few to tell."""
    third = len(samples) // 3
    if third < 3:
        return None
    out = []
    for key in samples[0]:
        before, after = (statistics.median(one[key] for one in part) for part in (samples[:third], samples[-third:]))
        if after > before * MAY_GROW + 1:
            out.append(f"{key}: {before:.1f} → {after:.1f}")
    return out


async def soak(server, flags):
    began = time.monotonic()
    until = began + flags.hours * 3600
    churn = Churn(server.port, flags.day, began)
    await churn.begin()
    running = asyncio.create_task(churn.run(until))
    everything, period, cpu, since = [], [], server.cpu(), began
    print_head = True
    while not running.done():
        await asyncio.sleep(min(10, flags.period / 4))
        if server.process.poll() is not None:
            raise SystemExit(f"the server ended with {server.process.returncode}: {open(server.log.name).read()[-2000:]}")
        period.append(held(server))
        now = time.monotonic()
        if now - began > WARM_SECONDS:
            everything.append(period[-1])
        if now - since < flags.period and not running.done():
            continue
        row = line_of((now - began) / 3600, period, churn, server.cpu() - cpu, now - since)
        if print_head:
            print("| " + " | ".join(row) + " |\n" + "|" + "---:|" * len(row))
        print("| " + " | ".join(str(value) for value in row.values()) + " |", flush=True)
        if flags.json:
            with open(flags.json, "a") as out:
                out.write(json.dumps(row) + "\n")
        print_head, period, cpu, since = False, [], server.cpu(), now
    await running
    return everything, churn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("berth")
    for name, default in (("hours", 8.0), ("period", 3600.0), ("day", 3600.0), ("nodes", 50)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--json")
    flags = parser.parse_args()
    raise_file_limit()
    with Server(os.path.abspath(flags.berth), "--nodes", str(flags.nodes), command="up") as server:
        samples, churn = asyncio.run(soak(server, flags))
    grew = what_grew(samples)
    if grew is None:
        print("too short to tell what grows: the first ninety minutes do not count")
    wrong = (grew or []) + ([f"{churn.refused} of {churn.asked} requests were refused"] if churn.refused > churn.asked * MOST_REFUSED else [])
    for one in wrong:
        print("FAIL " + one)
    print(f"{0 if wrong else 1} passed, {1 if wrong else 0} failed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
