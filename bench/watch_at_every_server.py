#!/usr/bin/env python3
"""[WRITES=1000] [A_SECOND=100] watch_at_every_server.py BERTH: three etcd members with fsync and three API servers; objects are created at each in turn,
and a watch at every server says when it heard of them. Prints the milliseconds from a write's acknowledgement, and from its sending, to the event."""
import http.client, json, os, shutil, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "chaos"))
from cluster import Cluster  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"


class Listener:
    def __init__(self, cluster, server, revision):
        self.heard = {}
        self.connection = http.client.HTTPSConnection("127.0.0.1", cluster.server_ports[server], context=cluster.tls(), timeout=60)
        self.connection.request("GET", f"{MAPS}?watch=1&resourceVersion={revision}")
        self.answer = self.connection.getresponse()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while line := self.answer.readline():
            now = time.monotonic()
            self.heard.setdefault(json.loads(line)["object"]["metadata"]["name"], now)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main():
    berth, writes, pace = os.path.realpath(sys.argv[1]), int(os.environ.get("WRITES", "1000")), float(os.environ.get("A_SECOND", "100"))
    os.environ["CHAOS_NETWORK"] = "none"
    work, cluster = tempfile.mkdtemp(prefix="berth-latency."), None
    try:
        cluster = Cluster(berth, work, is_durable=True)
        revision = cluster.request(0, "GET", MAPS)[1]["metadata"]["resourceVersion"]
        listeners = [Listener(cluster, i, revision) for i in range(len(cluster.servers))]
        connections = [http.client.HTTPSConnection("127.0.0.1", port, context=cluster.tls(), timeout=60) for port in cluster.server_ports]
        sent, acknowledged, began = {}, {}, time.monotonic()
        for number in range(writes):
            time.sleep(max(0.0, began + number / pace - time.monotonic()))
            name, connection = f"w{number}", connections[number % len(connections)]
            sent[name] = time.monotonic()
            connection.request("POST", MAPS, json.dumps({"metadata": {"name": name}, "data": {"a": "b"}}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            acknowledged[name] = time.monotonic()
            assert answer.status == 201, answer.status
        seconds = time.monotonic() - began
        end = time.monotonic() + 30
        while any(len(listener.heard) < writes for listener in listeners) and time.monotonic() < end:
            time.sleep(0.05)
        after = [max(0.0, (listener.heard[name] - at) * 1000) for listener in listeners for name, at in acknowledged.items()]
        whole = [(listener.heard[name] - at) * 1000 for listener in listeners for name, at in sent.items()]
        writing = [(acknowledged[name] - at) * 1000 for name, at in sent.items()]
        shown = lambda values: {"p50": round(percentile(values, 0.5), 1), "p99": round(percentile(values, 0.99), 1)}
        print(json.dumps({"name": "WatchAtEveryServer", "members": 3, "servers": 3, "writes": writes, "a_second": round(writes / seconds),
                          "after_acknowledgement_ms": shown(after), "after_sending_ms": shown(whole), "write_ms": shown(writing),
                          "load": round(os.getloadavg()[0], 1)}))
    finally:
        if cluster is not None:
            cluster.close()
        shutil.rmtree(work, ignore_errors=True)


main()
