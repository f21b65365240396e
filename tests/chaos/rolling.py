#!/usr/bin/env python3
"""rolling.py BERTH [NEW]: three API servers on one etcd are stopped in order and started again one after the other (as NEW, when given: an upgrade),
and then once more (as BERTH: back again), under clients that write and read through them. No request may fail beyond what clients do by themselves: a connection that was refused,
or that ended before anything of the request was taken, is made anew at another server. Ends with "N passed, N failed"."""
import http.client, json, os, random, shutil, ssl, subprocess, sys, tempfile, threading, time
from cluster import Cluster

MAPS = "/api/v1/namespaces/default/configmaps"


class Balancer:
    """Knows who is ready, as a load balancer does: asks every 100 ms."""

    def __init__(self, cluster):
        self.cluster, self.ready, self.stopping = cluster, set(range(len(cluster.servers))), False
        self.threads = [threading.Thread(target=self.probe, args=(i,), daemon=True) for i in range(len(cluster.servers))]
        for thread in self.threads:
            thread.start()

    def probe(self, i):
        while not self.stopping:
            try:
                answer = self.cluster.request(i, "GET", "/readyz", timeout=5)[0] == 200
            except (OSError, ValueError):
                answer = False
            (self.ready.add if answer else self.ready.discard)(i)
            time.sleep(0.1)


class Client:
    """One connection that is kept, to one server at a time; ended by the server between two requests, it goes to another."""

    def __init__(self, balancer, number):
        self.balancer, self.order, self.number = balancer, random.Random(number), number
        self.connection, self.done, self.moved, self.failures, self.stopping = None, 0, 0, [], False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def connect(self):
        cluster = self.balancer.cluster
        while True:
            candidates = sorted(self.balancer.ready) or range(len(cluster.servers))
            server = self.order.choice(list(candidates))
            connection = http.client.HTTPSConnection("127.0.0.1", cluster.server_ports[server], context=cluster.tls(), timeout=30)
            try:
                connection.connect()
                self.server = server
                return connection
            except OSError:
                self.moved += 1
                time.sleep(0.05)

    def ask(self, method, path, body=None):
        for attempt in range(5):
            if self.connection is None:
                self.connection = self.connect()
            fresh = getattr(self.connection, "asked", 0) == 0
            self.connection.asked = 1
            try:
                self.connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
                answer = self.connection.getresponse()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                # Ended while nothing was under way on it: what Go's and everybody's HTTP clients repeat on a new connection.
                self.close()
                if fresh:
                    raise
                self.moved += 1
                continue
            except OSError:
                self.close()
                raise
            text = answer.read()
            if answer.will_close:
                self.close()
            return answer.status, text
        raise OSError("five connections in a row were ended")

    def close(self):
        self.connection.close()
        self.connection = None

    def run(self):
        serial = 0
        while not self.stopping:
            serial += 1
            name = f"r{self.number}-{serial}"
            try:
                status, text = self.ask("POST", MAPS, {"metadata": {"name": name}, "data": {"by": name}})
                # Repeated after the first was taken: there once, which is what counts.
                if status not in (201, 409):
                    self.failures.append(f"POST {name} at server {self.server}: {status} {text[:200]}")
                status, text = self.ask("GET", f"{MAPS}/{name}")
                if status != 200:
                    self.failures.append(f"GET {name} at server {self.server}: {status} {text[:200]}")
                self.done += 2
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(f"{name} at server {self.server}: {type(error).__name__} {error}")
            time.sleep(0.02)  # A client's pace.


def main():
    berth, new = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2] if len(sys.argv) > 2 else sys.argv[1])
    if not shutil.which("etcd") or not shutil.which("etcdctl"):
        print("etcd is not installed: apt install etcd-server etcd-client\n0 passed, 0 failed")
        return 0
    work = tempfile.mkdtemp(prefix="berth-rolling.")
    os.environ["CHAOS_NETWORK"] = "none"
    cluster, failures = None, []
    try:
        # Older builds do not wait for the load balancer, and serve no longer than it takes to end what is under way.
        patience = "--shutdown-delay-duration"
        waits = all(patience in subprocess.run([build, "server", "--help"], capture_output=True, text=True).stdout for build in (berth, new))
        cluster = Cluster(berth, work, members=1, more=[patience, "1s"] if waits else [])
        balancer = Balancer(cluster)
        clients = [Client(balancer, i) for i in range(4)]
        for build in (new, berth):
            for i, server in enumerate(cluster.servers):
                server.stop(60)
                server.command[0] = build
                server.start()
                cluster.wait(lambda: cluster.ready(i), 120, f"server {i}")
                cluster.wait(lambda: i in balancer.ready, 20, f"the balancer's knowledge of server {i}")
        for client in clients:
            client.stopping = True
        for client in clients:
            client.thread.join()
        balancer.stopping = True
        failures = [failure for client in clients for failure in client.failures]
        status, listed = cluster.request(0, "GET", MAPS)
        written = sum(item["metadata"]["name"].startswith("r") and "by" in item.get("data", {}) for item in listed["items"])
        print(f"6 stops and starts under {sum(c.done for c in clients)} requests: {len(failures)} failed, {sum(c.moved for c in clients)} went on at "
              f"another server; {written} objects")
        if written * 2 < sum(c.done for c in clients):
            failures.append(f"{written} objects are there")
    except RuntimeError as error:
        failures.append(str(error))
    finally:
        if cluster is not None:
            cluster.close()
    for failure in failures[:20]:
        print("FAIL", failure)
    if not failures:
        shutil.rmtree(work, ignore_errors=True)
    else:
        print(f"logs: {work}")
    print(f"{1 if not failures else 0} passed, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
