#!/usr/bin/env python3
"""Processor time of the server for the creation of custom objects beside ConfigMaps of the same size.

    bench/custom_objects.py BERTH [COUNT]

Starts `berth up` without nodes, creates COUNT (2000) of each, in turns of 200, and prints a line for bench/history.jsonl.
"""
import base64, datetime, http.client, json, os, re, ssl, subprocess, sys, tempfile, time

CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.bench.example.com"},
       "spec": {"group": "bench.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "data": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 1000}}}}}}]}}
DATA = {f"key-{i}": "v" * 90 for i in range(10)}


def main():
    berth, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    with tempfile.TemporaryDirectory() as work:
        log = open(f"{work}/log", "w")
        server = subprocess.Popen([berth, "up", "--data-dir", f"{work}/data", "--listen", "127.0.0.1:0", "--nodes", "0"], stdout=log, stderr=log, env={**os.environ, "HOME": work})
        try:
            while "export KUBECONFIG=" not in open(f"{work}/log").read():
                time.sleep(0.2)
            config = open(f"{work}/data/admin.kubeconfig").read()
            for field in ("client-certificate-data", "client-key-data"):
                with open(f"{work}/{field}", "wb") as out:
                    out.write(base64.b64decode(re.search(rf"{field}: *\"?([A-Za-z0-9+/=]+)", config).group(1)))
            host, port = re.search(r"https://([0-9.]+):(\d+)", config).groups()
            context = ssl._create_unverified_context()
            context.load_cert_chain(f"{work}/client-certificate-data", f"{work}/client-key-data")
            connection = http.client.HTTPSConnection(host, int(port), context=context)

            def ask(method, path, body=None):
                connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                return answer.status, answer.read()

            def cpu():
                parts = open(f"/proc/{server.pid}/stat").read().rsplit(")", 1)[1].split()
                return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

            assert ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)[0] == 201
            things = "/apis/bench.example.com/v1/namespaces/default/things"
            while ask("GET", things)[0] != 200:
                time.sleep(0.1)
            spent = {"configmaps": 0.0, "things": 0.0}
            made = 0
            while made < count:
                for kind, path, head in (("configmaps", "/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap"}), ("things", things, {"apiVersion": "bench.example.com/v1", "kind": "Thing"})):
                    before = cpu()
                    for i in range(200):
                        status, body = ask("POST", path, {**head, "metadata": {"name": f"o{made + i}"}, "data": DATA})
                        assert status == 201, body
                    spent[kind] += cpu() - before
                made += 200
            print(json.dumps({"date": str(datetime.date.today()), "name": "CustomObjects/Create", "what": "processor time of berth up a creation, custom object beside ConfigMap of 1 kB",
                              "objects": made, "configmap_us": round(spent["configmaps"] / made * 1e6), "custom_us": round(spent["things"] / made * 1e6),
                              "ratio": round(spent["things"] / spent["configmaps"], 2), "load": round(os.getloadavg()[0])}, separators=(",", ":")))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
