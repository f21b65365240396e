#!/usr/bin/python3
"""A DRA driver to learn from: gives a node so many lamps, without generated code (package python3-grpcio; kubectl in PATH).

    driver.py --node NAME --count 3 [--kubeconfig FILE] [--kubelet /var/lib/kubelet] [--cdi /var/run/cdi] [--state FILE]

It publishes a ResourceSlice, registers at the node (plugins_registry), and prepares claims: each device of a claim becomes a CDI device,
the file /dev/null under a name of its own, and a variable that says which it is. FILE has lines `lamp-1 broken`, `lamp-2 slow 10` (seconds
to prepare it) or `lamp-0 refuses`, and is looked at with each call and once a second."""
import argparse, json, os, signal, subprocess, sys, time
from concurrent import futures

import grpc

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from wire import Fields, message

DRIVER = "lamp.example.com"
SERVICES = ["v1.DRAPlugin", "v1alpha1.DRAResourceHealth"]


class Lamps:
    def __init__(self, given):
        self.given = given
        self.names = [f"lamp-{i}" for i in range(given.count)]

    def state(self):
        """What is wrong, by lamp."""
        try:
            lines = [line.split() for line in open(self.given.state)]
        except (OSError, TypeError):
            lines = []
        return {line[0]: line[1:] for line in lines if len(line) > 1}

    def kubectl(self, *words, document=None):
        config = ["--kubeconfig", self.given.kubeconfig] if self.given.kubeconfig else []
        done = subprocess.run(["kubectl", *config, *words], input=document and json.dumps(document), capture_output=True, text=True, timeout=20)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def publish(self):
        """The slice, unless it is there: a node takes it away when the driver was gone for long, and when it starts itself."""
        name = f"{self.given.node}-{DRIVER}"
        if self.kubectl("get", "resourceslices", "-o", "name", "--field-selector", f"spec.nodeName={self.given.node},spec.driver={DRIVER}"):
            return
        uid = self.kubectl("get", "node", self.given.node, "-o", "jsonpath={.metadata.uid}")
        devices = [{"name": one, "attributes": {"watts": {"int": 5 + i}}} for i, one in enumerate(self.names)]
        self.kubectl("create", "-f", "-", document={
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": self.given.node, "uid": uid}]},
            "spec": {"driver": DRIVER, "nodeName": self.given.node, "devices": devices,
                     "pool": {"name": self.given.node, "generation": 1, "resourceSliceCount": 1}}})
        print(f"published {name}", flush=True)

    def spec_file(self, uid):
        return f"{self.given.cdi}/{DRIVER}-{uid}.json"

    def prepare(self, namespace, uid, name):
        """The devices of a claim: (request, pool, device, CDI device) of each."""
        claim = json.loads(self.kubectl("get", "resourceclaim", name, "-n", namespace, "-o", "json"))
        if claim["metadata"]["uid"] != uid:
            raise RuntimeError("the claim is another one of that name")
        out, specified = [], []
        for result in claim["status"]["allocation"]["devices"]["results"]:
            if result["driver"] != DRIVER:
                continue
            lamp = result["device"]
            wrong = self.state().get(lamp, [])
            if wrong[:1] == ["refuses"]:
                raise RuntimeError(f"{lamp} does not light up")
            if wrong[:1] == ["slow"]:
                time.sleep(float(wrong[1]))
            specified.append({"name": f"{uid}-{lamp}", "containerEdits": {
                "env": [f"{lamp.upper().replace('-', '_')}=on"], "deviceNodes": [{"path": f"/dev/{lamp}", "hostPath": "/dev/null", "permissions": "rw"}]}})
            out.append((result["request"].split("/")[0], result["pool"], lamp, f"{DRIVER}/lamp={uid}-{lamp}"))
        os.makedirs(self.given.cdi, exist_ok=True)
        with open(self.spec_file(uid) + ".new", "w") as file:
            json.dump({"cdiVersion": "0.5.0", "kind": f"{DRIVER}/lamp", "devices": specified}, file)
        os.rename(self.spec_file(uid) + ".new", self.spec_file(uid))
        print(f"prepared {namespace}/{name}", flush=True)
        return out

    def unprepare(self, namespace, uid, name):
        if os.path.exists(self.spec_file(uid)):
            os.remove(self.spec_file(uid))
        print(f"unprepared {namespace}/{name}", flush=True)
        return []


class Service(grpc.GenericRpcHandler):
    """k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin and v1alpha1.DRAResourceHealth."""

    def __init__(self, lamps):
        self.lamps = lamps

    def service(self, call):
        path, method = call.method.rsplit("/", 1)
        if path == "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin" and method in ("NodePrepareResources", "NodeUnprepareResources"):
            return grpc.unary_unary_rpc_method_handler(lambda request, _: self.each_claim(request, method == "NodePrepareResources"))
        if method == "NodeWatchResources":
            return grpc.unary_stream_rpc_method_handler(self.watch)
        return None

    def each_claim(self, request, prepares):
        answers = []
        for claim in Fields(request).all(1):
            namespace, uid, name = (claim.text(i) for i in (1, 2, 3))
            try:
                devices = (self.lamps.prepare if prepares else self.lamps.unprepare)(namespace, uid, name)
                answer = message(f1=[message(f1=request, f2=pool, f3=device, f4=cdi) for request, pool, device, cdi in devices])
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as wrong:
                answer = message(f2=str(wrong)) if prepares else message(f1=str(wrong))
            answers.append(message(f1=uid, f2=answer))
        return message(f1=answers)

    def watch(self, _, context):
        told = 0
        state = None
        while context.is_active():
            now = self.lamps.state()
            if now != state or time.monotonic() - told > 10:
                broken = {name for name, what in now.items() if what[0] == "broken"}
                yield message(f1=[message(f1=message(f1=self.lamps.given.node, f2=one), f2=2 if one in broken else 1,
                                          f5="the bulb is gone" if one in broken else "") for one in self.lamps.names])
                state, told = now, time.monotonic()
            time.sleep(1)


class Registration(grpc.GenericRpcHandler):
    """pluginregistration.Registration: who this is, and whether the node took it."""

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def service(self, call):
        if call.method == "/pluginregistration.Registration/GetInfo":
            info = message(f1="DRAPlugin", f2=DRIVER, f3=self.endpoint, f4=SERVICES)
            return grpc.unary_unary_rpc_method_handler(lambda *_: info)
        if call.method == "/pluginregistration.Registration/NotifyRegistrationStatus":
            return grpc.unary_unary_rpc_method_handler(self.told)
        return None

    def told(self, request, _):
        error = Fields(request).text(2)
        print(f"not registered: {error}" if error else f"registered {DRIVER}", flush=True)
        return b""


def serve(handler, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        os.remove(path)
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix://{path}")
    server.start()
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--node", required=True)
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--kubeconfig")
    parser.add_argument("--kubelet", default="/var/lib/kubelet", help="the folder with plugins and plugins_registry")
    parser.add_argument("--cdi", default="/var/run/cdi")
    parser.add_argument("--state")
    given = parser.parse_args()
    lamps = Lamps(given)
    endpoint, registration = f"{given.kubelet}/plugins/{DRIVER}/dra.sock", f"{given.kubelet}/plugins_registry/{DRIVER}-reg.sock"
    servers = [serve(Service(lamps), endpoint), serve(Registration(endpoint), registration)]

    def end(*_):
        for path in (registration, endpoint):
            os.remove(path)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    while servers:
        try:
            lamps.publish()
        except (RuntimeError, subprocess.TimeoutExpired) as wrong:
            print(f"not published: {wrong}", file=sys.stderr, flush=True)
        time.sleep(2)


main()
