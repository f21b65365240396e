#!/usr/bin/python3
"""A device plugin to learn from: gives a node so many devices of a resource, without generated code (package python3-grpcio).

    plugin.py example.com/lamp 3 [--directory /var/lib/kubelet/device-plugins] [--state FILE]

Each device is the file /dev/null under a name of its own, and a variable that says which it is. FILE names devices that are broken, one a
line, and is looked at once a second. The plugin registers anew whenever the node's socket is another: the node was started again."""
import argparse, os, signal, sys, time
from concurrent import futures

import grpc

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from wire import Fields, message


class Plugin(grpc.GenericRpcHandler):
    def __init__(self, resource, count, state):
        self.resource, self.ids, self.state = resource, [f"{resource.split('/')[1]}-{i}" for i in range(count)], state

    def broken(self):
        try:
            return set(open(self.state).read().split())
        except (OSError, TypeError):
            return set()

    def service(self, call):
        method = call.method.rsplit("/", 1)[1]
        if method == "ListAndWatch":
            return grpc.unary_stream_rpc_method_handler(self.list)
        answers = {"GetDevicePluginOptions": lambda _, context: b"", "Allocate": self.allocate, "PreStartContainer": lambda _, context: b""}
        return grpc.unary_unary_rpc_method_handler(answers[method]) if method in answers else None

    def list(self, _, context):
        told = None
        while context.is_active():
            broken = self.broken()
            now = message(f1=[message(f1=one, f2="Unhealthy" if one in broken else "Healthy") for one in self.ids])
            if now != told:
                yield now
            told = now
            time.sleep(1)

    def allocate(self, request, context):
        name = self.resource.split("/")[1].upper()
        return message(f1=[message(f1={f"{name}_DEVICES": ",".join(container.texts(1))},
                                   f3=[message(f1=f"/dev/{one}", f2="/dev/null", f3="rw") for one in container.texts(1)])
                           for container in Fields(request).all(1)])


def register(directory, endpoint, resource):
    with grpc.insecure_channel(f"unix://{directory}/kubelet.sock") as channel:
        call = channel.unary_unary("/v1beta1.Registration/Register")
        call(message(f1="v1beta1", f2=endpoint, f3=resource), timeout=10, wait_for_ready=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("resource")
    parser.add_argument("count", type=int)
    parser.add_argument("--directory", default="/var/lib/kubelet/device-plugins")
    parser.add_argument("--state")
    given = parser.parse_args()
    endpoint = given.resource.replace("/", "_") + ".sock"
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((Plugin(given.resource, given.count, given.state),))
    if os.path.exists(f"{given.directory}/{endpoint}"):
        os.remove(f"{given.directory}/{endpoint}")
    server.add_insecure_port(f"unix://{given.directory}/{endpoint}")
    server.start()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    known = None
    while True:
        try:
            info = os.stat(f"{given.directory}/kubelet.sock")
            socket = info.st_ino, info.st_ctime_ns  # Another socket may have the number of the one before.
            if socket != known:
                register(given.directory, endpoint, given.resource)
                print(f"registered {given.resource}", flush=True)
                known = socket
        except (OSError, grpc.RpcError) as wrong:
            print(f"not registered: {wrong}", file=sys.stderr, flush=True)
        time.sleep(1)


main()
