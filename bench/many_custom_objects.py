#!/usr/bin/env python3
"""What a custom kind with very many objects costs the server: creation as they grow, memory, lists in pages, deletion while they are watched.

    nice bench/many_custom_objects.py BERTH [COUNT]

Starts `berth up` without nodes, creates COUNT (200000) objects of some 100 bytes in ten parts, lists them all in pages of 500, watches them all
and deletes their definition. Prints processor time and memory of the server a step, and a line for bench/history.jsonl.
"""
import base64, datetime, http.client, json, os, re, ssl, subprocess, sys, tempfile, threading, time

CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.bench.example.com"},
       "spec": {"group": "bench.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "owner": {"type": "string"}}}}}}}]}}
THINGS = "/apis/bench.example.com/v1/namespaces/default/things"


class Server:
    def __init__(self, berth, work):
        self.work = work
        log = open(f"{work}/log", "w")
        self.process = subprocess.Popen([berth, "up", "--data-dir", f"{work}/data", "--listen", "127.0.0.1:0", "--nodes", "0"], stdout=log, stderr=log, env={**os.environ, "HOME": work})
        while "export KUBECONFIG=" not in open(f"{work}/log").read():
            time.sleep(0.2)
        config = open(f"{work}/data/admin.kubeconfig").read()
        for field in ("client-certificate-data", "client-key-data"):
            with open(f"{work}/{field}", "wb") as out:
                out.write(base64.b64decode(re.search(rf"{field}: *\"?([A-Za-z0-9+/=]+)", config).group(1)))
        self.address = re.search(r"https://([0-9.]+):(\d+)", config).groups()

    def connect(self):
        context = ssl._create_unverified_context()
        context.load_cert_chain(f"{self.work}/client-certificate-data", f"{self.work}/client-key-data")
        return http.client.HTTPSConnection(self.address[0], int(self.address[1]), context=context)

    def cpu(self):
        parts = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self):
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{self.process.pid}/status").read()).group(1)) // 1024


def ask(connection, method, path, body=None):
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def create(server, names):
    def some(part):
        connection = server.connect()
        for i in part:
            body = f'{{"apiVersion":"bench.example.com/v1","kind":"Thing","metadata":{{"name":"thing-{i}"}},"spec":{{"size":{i},"owner":"somebody"}}}}'
            status, text = ask(connection, "POST", THINGS, body)
            assert status == 201, text
    threads = [threading.Thread(target=some, args=(names[k::4],)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]


def pages(server):
    connection, seen, token = server.connect(), 0, ""
    while True:
        status, text = ask(connection, "GET", f"{THINGS}?limit=500&continue={token}")
        assert status == 200, text
        page = json.loads(text)
        seen += len(page["items"])
        token = page["metadata"].get("continue", "")
        if not token:
            return seen


def watch(server, revision, counts):
    connection = server.connect()
    connection.request("GET", f"{THINGS}?watch=1&resourceVersion={revision}")
    answer = connection.getresponse()
    for line in iter(answer.readline, b""):
        counts[line[9:16].decode()] = counts.get(line[9:16].decode(), 0) + 1


def main():
    berth, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200000
    with tempfile.TemporaryDirectory() as work:
        server = Server(berth, work)
        try:
            admin = server.connect()  # One that lies idle is closed: each step has its own.
            assert ask(admin, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json.dumps(CRD))[0] == 201
            while ask(admin, "GET", THINGS)[0] != 200:
                time.sleep(0.1)
            empty, costs, part = server.memory_mb(), [], count // 10
            for k in range(10):
                before = server.cpu()
                create(server, range(k * part, (k + 1) * part))
                costs.append(round((server.cpu() - before) / part * 1e6))
                print(f"{(k + 1) * part} objects: {costs[-1]} us a creation, {server.memory_mb()} MB", flush=True)
            full = server.memory_mb()
            before = server.cpu()
            assert pages(server) == part * 10
            listed = server.cpu() - before
            admin = server.connect()
            revision = json.loads(ask(admin, "GET", THINGS + "?limit=1")[1])["metadata"]["resourceVersion"]
            counts = {}
            watcher = threading.Thread(target=watch, args=(server, revision, counts))
            watcher.start()
            before, began = server.cpu(), time.time()
            assert ask(admin, "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.bench.example.com")[0] == 200
            while ask(admin, "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.bench.example.com")[0] != 404:
                time.sleep(0.5)
            watcher.join()
            print(json.dumps({"date": str(datetime.date.today()), "name": "CustomObjects/Many", "what": "processor time and memory of berth up with custom objects of 100 bytes",
                              "objects": part * 10, "create_us_first": costs[0], "create_us_last": costs[-1], "bytes_an_object": (full - empty) * 1048576 // (part * 10),
                              "page_of_500_us": round(listed / (part * 10 / 500) * 1e6), "delete_us": round((server.cpu() - before) / (part * 10) * 1e6), "delete_s": round(time.time() - began),
                              "deletions_watched": counts.get("DELETED", 0), "load": round(os.getloadavg()[0])}, separators=(",", ":")), flush=True)
        finally:
            server.process.terminate()
            server.process.wait()


main()
