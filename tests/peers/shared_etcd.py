#!/usr/bin/env python3
"""A real kube-apiserver and `berth server` on one etcd, a real kube-controller-manager and kube-scheduler at one of them and then at the other,
and each of the two API servers stopped for good in turn. Run by hand; nothing in `make test` needs it.

    tests/peers/shared_etcd.py BERTH KUBERNETES_BIN [--keep]

KUBERNETES_BIN is the folder of kube-apiserver, kube-controller-manager and kube-scheduler (1.36); etcd and kubectl are in the PATH. After each change
pods, ReplicaSets and ControllerRevisions are the ones from before (nothing was rolled), what the workloads want is there, and for a minute
nobody writes but heartbeats: a write of one key that comes again and again is told. Ends with "N passed, N failed"."""
import argparse, base64, collections, json, os, shutil, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "chaos"))
from cluster import free_ports  # noqa: E402

RANGE = "10.0.0.0/16"
ISSUER = "https://kubernetes.default.svc.cluster.local"
KEPT = "pods replicasets controllerrevisions deployments statefulsets daemonsets jobs cronjobs services endpointslices configmaps secrets serviceaccounts poddisruptionbudgets horizontalpodautoscalers".split()
HEARTBEATS = ("/leases/", "/masterleases/", "/events/", "/minions/", "/berth.dev/", "/peerserverleases/")
WORKLOADS = """
{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":6,"selector":{"matchLabels":{"app":"web"}},
  "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"nginx:1","resources":{"requests":{"cpu":"0.1","memory":"1024Ki"}}}]}}}}
{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db"},"spec":{"replicas":3,"serviceName":"db","selector":{"matchLabels":{"app":"db"}},
  "template":{"metadata":{"labels":{"app":"db"}},"spec":{"containers":[{"name":"c","image":"db:1","args":["a && b < c"]}]}}}}
{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent"},"spec":{"selector":{"matchLabels":{"app":"agent"}},
  "template":{"metadata":{"labels":{"app":"agent"}},"spec":{"tolerations":[],"containers":[{"name":"c","image":"agent:1"}]}}}}
{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"once"},"spec":{"completions":3,"parallelism":2,
  "template":{"metadata":{"annotations":{"sim.berth.dev/run-for":"1s"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"job:1"}]}}}}
{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"nightly"},"spec":{"schedule":"0 3 1 1 *","jobTemplate":{"spec":{
  "template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"job:1"}]}}}}}}
{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"type":"NodePort","selector":{"app":"web"},"ports":[{"port":80}]}}
{"apiVersion":"v1","kind":"Service","metadata":{"name":"db"},"spec":{"clusterIP":"None","selector":{"app":"db"},"ports":[{"port":5432}]}}
{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"web"},"spec":{"minAvailable":"50%","selector":{"matchLabels":{"app":"web"}}}}
{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"web"},"spec":{"minReplicas":6,"maxReplicas":9,
  "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]}}
{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"all"},"spec":{"hard":{"pods":"100"}}}
"""


class Cluster:
    def __init__(self, berth, kubernetes, work):
        self.berth, self.kubernetes, self.work, self.running, self.results = berth, kubernetes, work, {}, [0, 0]
        self.etcd_port, peer, self.kube_port, self.berth_port = free_ports(4)
        self.etcd_url = f"http://127.0.0.1:{self.etcd_port}"
        self.start("etcd", "etcd", "--data-dir", self.path("etcd.data"), "--listen-client-urls", self.etcd_url, "--advertise-client-urls", self.etcd_url,
                   "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                   "--initial-cluster", f"default=http://127.0.0.1:{peer}", "--unsafe-no-fsync")
        self.wait(lambda: self.etcdctl("endpoint", "health").returncode == 0, "etcd")
        with open(self.path("tokens.csv"), "w") as out:
            out.write('admin-token,admin,admin,"system:masters"\nkcm-token,system:kube-controller-manager,kcm\nscheduler-token,system:kube-scheduler,scheduler\n')

    def path(self, name):
        return os.path.join(self.work, name)

    def start(self, name, *command):
        log = open(self.path(name + ".log"), "a")
        self.running[name] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def stop(self, name, how=signal.SIGTERM):
        process = self.running.pop(name)
        process.send_signal(how)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self):
        for name in reversed(list(self.running)):
            self.stop(name, signal.SIGTERM if name == "etcd" else signal.SIGKILL)

    @staticmethod
    def wait(ready, what, seconds=400):
        end = time.time() + seconds
        while not ready():
            if time.time() > end:
                raise RuntimeError(f"no sign of {what}")
            time.sleep(0.5)

    def etcdctl(self, *words, **more):
        return subprocess.run(["etcdctl", "--endpoints", self.etcd_url, *words], capture_output=True, text=True, env=dict(os.environ, ETCDCTL_API="3"), **more)

    def kubeconfig(self, where, who):
        """A kubeconfig of `who` for the API server `where`."""
        file = self.path(f"{where}-{who}.kubeconfig")
        port = self.kube_port if where == "kube" else self.berth_port
        with open(file, "w") as out:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}}],
                       "users": [{"name": "u", "user": {"token": who + "-token"}}]}, out)
        return file

    def kubectl(self, where, *words, text=None):
        return subprocess.run(["kubectl", "--kubeconfig", self.kubeconfig(where, "admin"), "--cache-dir", self.path("cache"), *words], input=text, capture_output=True, text=True)

    def start_berth(self):
        self.start("berth", self.berth, "server", "--data-dir", self.path("berth"), "--listen", f"127.0.0.1:{self.berth_port}", "--advertise-address", "127.0.0.2",
                   "--etcd-servers", self.etcd_url, "--token-auth-file", self.path("tokens.csv"), "--service-cluster-ip-range", RANGE)
        self.wait(lambda: self.kubectl("berth", "get", "--raw", "/readyz").returncode == 0, "berth server")

    def start_kube(self):
        key = self.path("berth/pki/service-account.key")
        public = self.path("service-account.pub")
        with open(public, "w") as out:
            subprocess.run(["openssl", "pkey", "-in", key, "-pubout"], stdout=out, check=True)
        self.start("kube", os.path.join(self.kubernetes, "kube-apiserver"), f"--etcd-servers={self.etcd_url}", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
                   f"--secure-port={self.kube_port}", f"--service-cluster-ip-range={RANGE}", f"--token-auth-file={self.path('tokens.csv')}", "--authorization-mode=Node,RBAC",
                   f"--cert-dir={self.path('kube')}", f"--service-account-issuer={ISSUER}", f"--service-account-key-file={public}", f"--service-account-signing-key-file={key}")
        self.wait(lambda: self.kubectl("kube", "get", "--raw", "/readyz").returncode == 0, "kube-apiserver")

    def start_components(self, where):
        """Controllers, scheduler and nodes, all at one API server."""
        for name, token, more in (("kube-controller-manager", "kcm", [f"--service-account-private-key-file={self.path('berth/pki/service-account.key')}", "--use-service-account-credentials",
                                                                      f"--root-ca-file={self.path('berth/pki/ca.crt')}"]), ("kube-scheduler", "scheduler", [])):
            port, = free_ports(1)
            self.start(name, os.path.join(self.kubernetes, name), f"--kubeconfig={self.kubeconfig(where, token)}", "--bind-address=127.0.0.1", f"--secure-port={port}",
                       f"--cert-dir={self.path(name)}", "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s", *more)
        self.start("nodes", self.berth, "nodes", "--kubeconfig", self.kubeconfig(where, "admin"), "--nodes", "4")

    def stop_components(self):
        for name in ("nodes", "kube-scheduler", "kube-controller-manager"):
            self.stop(name)

    def objects(self, where):
        """uid, generation and what matters of the status, by kind and name."""
        listed = self.kubectl(where, "get", ",".join(KEPT), "-A", "-o", "json")
        if listed.returncode:
            raise RuntimeError(listed.stderr)
        return {f"{o['kind']} {o['metadata'].get('namespace')}/{o['metadata']['name']}": (o["metadata"]["uid"], o["metadata"].get("generation"), o.get("spec", {}).get("nodeName"))
                for o in json.loads(listed.stdout)["items"]}

    def settled(self, where):
        def number(kind, name, *path):
            out = self.kubectl(where, "get", kind, name, "-o", "jsonpath={" + "".join("." + p for p in path) + "}").stdout
            return int(out or 0)
        wanted = number("deployment", "web", "spec", "replicas")
        return (number("deployment", "web", "status", "readyReplicas") == wanted and number("statefulset", "db", "status", "readyReplicas") == 3
                and number("daemonset", "agent", "status", "numberReady") == 4 and number("job", "once", "status", "succeeded") == 3)

    def writes(self, seconds):
        """How often each key but heartbeats was written within that time."""
        revision = json.loads(self.etcdctl("get", "/", "-w", "json").stdout)["header"]["revision"]
        time.sleep(seconds)
        with open(self.path("watched"), "wb") as out:
            watched = subprocess.Popen(["etcdctl", "--endpoints", self.etcd_url, "watch", "--prefix", "/registry/", "--rev", str(revision + 1), "-w", "json"], stdout=out,
                                       env=dict(os.environ, ETCDCTL_API="3"))
            time.sleep(5)
            watched.kill()
            watched.wait()
        counts = collections.Counter()
        with open(self.path("watched"), "rb") as lines:
            whole = [line for line in lines if line.endswith(b"\n")]
        for line in whole:
            for event in json.loads(line).get("Events") or []:
                key = base64.b64decode(event["kv"]["key"]).decode(errors="replace")
                if not any(one in key for one in HEARTBEATS):
                    counts[key] += 1
        return counts

    def check(self, what, good, why=""):
        self.results[0 if good else 1] += 1
        print(("ok   " if good else "FAIL ") + what + (f": {why}" if why and not good else ""), flush=True)

    def compare(self, what, before, where, may_change=()):
        after = self.objects(where)
        odd = {name: (before.get(name), after.get(name)) for name in before.keys() | after.keys()
               if before.get(name) != after.get(name) and not any(name.startswith(one) for one in may_change)}
        self.check(f"{what}: nothing was made, rolled or taken away", not odd, json.dumps(odd)[:1500])
        counts = self.writes(60)
        again = {key: count for key, count in counts.items() if count > 3}
        self.check(f"{what}: nobody writes again and again ({sum(counts.values())} writes in a minute)", not again, json.dumps(again)[:1500])
        return after


def run(cluster):
    cluster.start_berth()
    cluster.start_kube()
    cluster.start_components("berth")
    made = cluster.kubectl("berth", "create", "-f", "-", text=WORKLOADS)
    cluster.check("workloads are made at berth", made.returncode == 0, made.stderr)
    cluster.wait(lambda: cluster.settled("kube"), "the workloads at kube-apiserver")
    time.sleep(20)
    state = cluster.objects("berth")
    same = cluster.objects("kube")
    cluster.check("both API servers show the same", state == same, json.dumps([k for k in state.keys() | same.keys() if state.get(k) != same.get(k)])[:1000])
    state = cluster.compare("controllers at berth", state, "kube")
    cluster.stop_components()
    cluster.start_components("kube")
    cluster.wait(lambda: cluster.settled("kube"), "the workloads under the controllers at kube-apiserver")
    time.sleep(20)
    state = cluster.compare("controllers at kube-apiserver", state, "berth")
    cluster.stop("berth")
    time.sleep(20)
    state = cluster.compare("berth stopped for good", state, "kube", ("EndpointSlice default/kubernetes",))
    scaled = cluster.kubectl("kube", "patch", "hpa", "web", "-p", '{"spec":{"minReplicas":8}}')
    cluster.check("an autoscaler's bound is changed at kube-apiserver", scaled.returncode == 0, scaled.stderr)
    cluster.kubectl("kube", "scale", "deployment", "web", "--replicas=8")
    cluster.wait(lambda: cluster.settled("kube") and sum(name.startswith("Pod default/web-") for name in cluster.objects("kube")) == 8, "eight replicas")
    cluster.start_berth()
    cluster.stop_components()
    state = cluster.objects("kube")
    cluster.start_components("berth")
    cluster.wait(lambda: cluster.settled("berth"), "the workloads under the controllers at berth again")
    cluster.stop("kube")
    time.sleep(30)
    state = cluster.compare("kube-apiserver stopped for good", state, "berth", ("EndpointSlice default/kubernetes",))
    rolled = cluster.kubectl("berth", "set", "image", "deployment/web", "c=nginx:2")
    cluster.check("a rollout is begun at berth", rolled.returncode == 0, rolled.stderr)
    ended = cluster.kubectl("berth", "rollout", "status", "deployment/web", "--timeout=180s")
    cluster.check("... and ends", ended.returncode == 0, ended.stdout + ended.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("berth")
    parser.add_argument("kubernetes")
    parser.add_argument("--keep", action="store_true", help="leave the logs")
    given = parser.parse_args()
    work = tempfile.mkdtemp(prefix="berth-shared.")
    cluster = Cluster(os.path.realpath(given.berth), os.path.realpath(given.kubernetes), work)
    try:
        run(cluster)
    except RuntimeError as error:
        cluster.check("the run", False, str(error))
    finally:
        cluster.close()
    if given.keep or cluster.results[1]:
        print(f"logs: {work}")
    else:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{cluster.results[0]} passed, {cluster.results[1]} failed")
    return 1 if cluster.results[1] else 0


sys.exit(main())
