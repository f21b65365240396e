#!/usr/bin/python3
"""A CSI driver to learn from: volumes are directories of one machine, block volumes files behind loop devices (package python3-grpcio).

    driver.py --node NAME --data DIR [--name dirs.example.com] [--socket DIR/csi.sock]
              [--registry /var/lib/kubelet/plugins_registry] [--most 16] [--broken FILE]

Written from the Container Storage Interface's specification: identity, controller and node in one process. It shows itself to the node by a
socket in the registry. A volume's size is kept and told, not enforced. FILE names methods that fail, one a line ("NodePublishVolume"), or
take long ("slow NodeStageVolume"): a way to see what a cluster does about it."""
import argparse, json, os, shutil, signal, subprocess, sys, time
from concurrent import futures

import grpc

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from wire import Refused, Service, message

PLUGIN_CONTROLLER, PLUGIN_TOPOLOGY = 1, 2
CREATE_DELETE, PUBLISH_UNPUBLISH, EXPAND = 1, 2, 9
NODE_STAGE, NODE_STATS, NODE_EXPAND, NODE_SINGLE_WRITERS = 1, 2, 3, 5
BYTES, INODES = 1, 2
TOPOLOGY_KEY = "topology.dirs.example.com/node"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(grpc.StatusCode.INTERNAL, f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def is_mounted(path):
    path = os.path.realpath(path)
    with open("/proc/self/mountinfo") as mounts:
        return any(line.split()[4] == path for line in mounts)


def capabilities(types):
    return message(f1=[message(f1=message(f1=one)) for one in types])


class Driver:
    def __init__(self, given):
        self.given = given
        os.makedirs(f"{given.data}/volumes", exist_ok=True)

    # ---- what is kept

    def path(self, volume, file=""):
        if not volume or "/" in volume:
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f'"{volume}" is no id of a volume')
        return f"{self.given.data}/volumes/{volume}/{file}"

    def read(self, volume):
        try:
            return json.load(open(self.path(volume, "about.json")))
        except OSError:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"there is no volume {volume}")

    def write(self, volume, about):
        os.makedirs(self.path(volume, "files"), exist_ok=True)
        with open(self.path(volume, "about.new"), "w") as file:
            json.dump(about, file)
        os.rename(self.path(volume, "about.new"), self.path(volume, "about.json"))
        if about["block"]:
            with open(self.path(volume, "disk"), "ab") as disk:
                disk.truncate(max(about["bytes"], os.path.getsize(disk.name)))

    def obey(self, method):
        """What the file of broken methods says of this one."""
        try:
            lines = open(self.given.broken).read().splitlines()
        except (OSError, TypeError):
            return
        if f"slow {method}" in lines:
            time.sleep(3600)
        if method in lines:
            raise Refused(grpc.StatusCode.INTERNAL, f"{method} is broken")

    def say(self, method, volume):
        print(method, volume, flush=True)
        self.obey(method)

    # ---- identity

    def GetPluginInfo(self, _):
        return message(f1=self.given.name, f2="1")

    def GetPluginCapabilities(self, _):
        return message(f1=[message(f1=message(f1=one)) for one in (PLUGIN_CONTROLLER, PLUGIN_TOPOLOGY)] + [message(f2=message(f1=1))])

    def Probe(self, _):
        return message(f1=message(f1=True))

    # ---- controller

    def ControllerGetCapabilities(self, _):
        return capabilities([CREATE_DELETE, PUBLISH_UNPUBLISH, EXPAND])

    def CreateVolume(self, request):
        volume, wanted = request.text(1), max(request.one(2).int(1), 1 << 20)
        self.say("CreateVolume", volume)
        is_block = any(one.has(1) for one in request.all(3))
        try:
            about = self.read(volume)
        except Refused:
            about = {"bytes": wanted, "node_bytes": wanted, "block": is_block}
            self.write(volume, about)
        if about["bytes"] < wanted:
            raise Refused(grpc.StatusCode.ALREADY_EXISTS, f"volume {volume} is there and smaller")
        return message(f1=message(f1=about["bytes"], f2=volume, f5=[message(f1={TOPOLOGY_KEY: self.given.node})]))

    def DeleteVolume(self, request):
        self.say("DeleteVolume", request.text(1))
        shutil.rmtree(self.path(request.text(1)), ignore_errors=True)
        return b""

    def ControllerPublishVolume(self, request):
        volume = request.text(1)
        self.say("ControllerPublishVolume", volume)
        about = self.read(volume)
        if about["block"] and not about.get("device"):
            about["device"] = run("losetup", "--find", "--show", self.path(volume, "disk"))
            self.write(volume, about)
        return message(f1={"device": about.get("device", "")})

    def ControllerUnpublishVolume(self, request):
        volume = request.text(1)
        self.say("ControllerUnpublishVolume", volume)
        about = self.read(volume)
        if device := about.pop("device", None):
            run("losetup", "--detach", device)
            self.write(volume, about)
        return b""

    def ControllerExpandVolume(self, request):
        volume, wanted = request.text(1), request.one(2).int(1)
        self.say("ControllerExpandVolume", volume)
        about = self.read(volume)
        about["bytes"] = max(about["bytes"], wanted)
        self.write(volume, about)
        return message(f1=about["bytes"], f2=True)

    # ---- node

    def NodeGetInfo(self, _):
        return message(f1=self.given.node, f2=self.given.most, f3=message(f1={TOPOLOGY_KEY: self.given.node}))

    def NodeGetCapabilities(self, _):
        return capabilities([NODE_STAGE, NODE_STATS, NODE_EXPAND, NODE_SINGLE_WRITERS])

    def NodeStageVolume(self, request):
        volume, staging = request.text(1), request.text(3)
        self.say("NodeStageVolume", volume)
        if not self.read(volume)["block"] and not is_mounted(staging):
            run("mount", "--bind", self.path(volume, "files"), staging)
        return b""

    def NodeUnstageVolume(self, request):
        self.say("NodeUnstageVolume", request.text(1))
        if is_mounted(request.text(2)):
            run("umount", request.text(2))
        return b""

    def NodePublishVolume(self, request):
        volume, staging, target, context = request.text(1), request.text(3), request.text(4), request.map(8)
        self.say("NodePublishVolume", volume)
        if is_mounted(target):
            return b""
        source = staging
        if context.get("csi.storage.k8s.io/ephemeral") == "true":
            self.write(volume, {"bytes": 1 << 20, "node_bytes": 1 << 20, "block": False, "ephemeral": True})
            source = self.path(volume, "files")
        if request.one(5).has(1):
            source = self.read(volume)["device"]
            open(target, "a").close()
        else:
            os.makedirs(target, exist_ok=True)
        run("mount", "--bind", source, target)
        if request.int(6):
            run("mount", "-o", "remount,bind,ro", target)
        return b""

    def NodeUnpublishVolume(self, request):
        volume, target = request.text(1), request.text(2)
        self.say("NodeUnpublishVolume", volume)
        if is_mounted(target):
            run("umount", target)
        if os.path.isdir(target):
            os.rmdir(target)
        elif os.path.exists(target):
            os.remove(target)
        try:
            if self.read(volume).get("ephemeral"):
                shutil.rmtree(self.path(volume))
        except Refused:
            pass
        return b""

    def NodeGetVolumeStats(self, request):
        about, used, files = self.read(request.text(1)), 0, 0
        for folder, folders, names in os.walk(request.text(2)):
            files += len(names) + len(folders)
            used += sum(os.lstat(os.path.join(folder, name)).st_blocks * 512 for name in names)
        whole = about["node_bytes"]
        return message(f1=[message(f1=max(0, whole - used), f2=whole, f3=used, f4=BYTES), message(f3=files, f4=INODES)])

    def NodeExpandVolume(self, request):
        volume = request.text(1)
        self.say("NodeExpandVolume", volume)
        about = self.read(volume)
        about["node_bytes"] = about["bytes"]
        if device := about.get("device"):
            run("losetup", "--set-capacity", device)
        self.write(volume, about)
        return message(f1=about["bytes"])


class Registration:
    def __init__(self, given):
        self.given = given

    def GetInfo(self, _):
        return message(f1="CSIPlugin", f2=self.given.name, f3=self.given.socket, f4=["1.0.0"])

    def NotifyRegistrationStatus(self, request):
        print("registered" if request.int(1) else f"not registered: {request.text(2)}", flush=True)
        return b""


def serve(socket, target):
    if os.path.exists(socket):
        os.remove(socket)
    server = grpc.server(futures.ThreadPoolExecutor(16))
    server.add_generic_rpc_handlers((Service(target),))
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    return server


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", required=True, help="what the driver calls the machine: the node's name here")
    parser.add_argument("--data", required=True, help="where the volumes are")
    parser.add_argument("--name", default="dirs.example.com")
    parser.add_argument("--socket")
    parser.add_argument("--registry", default="/var/lib/kubelet/plugins_registry")
    parser.add_argument("--most", type=int, default=16, help="volumes that a node can have")
    parser.add_argument("--broken")
    given = parser.parse_args()
    given.data = os.path.abspath(given.data)
    given.socket = given.socket or f"{given.data}/csi.sock"
    os.makedirs(given.registry, exist_ok=True)
    registration = f"{given.registry}/{given.name}-reg.sock"
    driver = Driver(given)
    servers = [serve(given.socket, driver), serve(registration, Registration(given))]

    def end(*_):
        os.remove(registration)  # The node is told by that.
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    for server in servers:
        server.wait_for_termination()


main()
