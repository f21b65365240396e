#!/usr/bin/python3
"""Between the cluster and a CSI driver's controller: what external-provisioner, external-attacher and external-resizer do for drivers of
others, in one loop and by kubectl, so that each step can be read.

    sidecar.py --socket DIR/csi.sock [--name dirs.example.com]

    claim with the class of the driver ---CreateVolume--> PersistentVolume            (its claim gone: DeleteVolume)
    VolumeAttachment ---ControllerPublishVolume--> status.attached                    (deleted: ControllerUnpublishVolume)
    claim that wants more than it has ---ControllerExpandVolume--> PersistentVolume's capacity, the node does the rest"""
import argparse, json, os, signal, subprocess, sys, time

import grpc

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from wire import Fields, message

SINGLE_NODE_WRITER, SINGLE_NODE_SINGLE_WRITER = 1, 6
PROVISIONER, SELECTED_NODE = "volume.kubernetes.io/storage-provisioner", "volume.kubernetes.io/selected-node"
VOLUME_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def size(text):
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(float(text[:-len(unit)]) * factor)
    return int(text or 0)


def kubectl(*words, document=None):
    given = None if document is None else json.dumps(document)
    done = subprocess.run(("kubectl",) + words, input=given, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"kubectl {' '.join(words[:3])}: {done.stderr.strip()}")
    return done.stdout


def everything(kind):
    return json.loads(kubectl("get", kind, "-A", "-o", "json"))["items"]


def patch(kind, thing, change, *more):
    place = ("-n", thing["metadata"]["namespace"]) if "namespace" in thing["metadata"] else ()
    kubectl("patch", kind, thing["metadata"]["name"], *place, "--type=merge", "-p", json.dumps(change), *more)


def finalizers(thing, add=None, without=None):
    now = [one for one in thing["metadata"].get("finalizers", []) if one != without]
    return {"metadata": {"finalizers": now + ([add] if add and add not in now else [])}}


class Sidecar:
    def __init__(self, socket, name):
        self.channel, self.name = grpc.insecure_channel(f"unix://{socket}"), name

    def call(self, method, **values):
        call = self.channel.unary_unary(f"/csi.v1.Controller/{method}")
        return Fields(call(message(**values), timeout=60, wait_for_ready=True))

    def capability(self, spec):
        mode = SINGLE_NODE_SINGLE_WRITER if spec["accessModes"] == ["ReadWriteOncePod"] else SINGLE_NODE_WRITER
        kind = {"f1": b""} if spec.get("volumeMode") == "Block" else {"f2": message(f1="ext4")}
        return message(**kind, f3=message(f1=mode))

    # ---- external-provisioner

    def provision(self, claim, classes):
        meta, spec = claim["metadata"], claim["spec"]
        if spec.get("volumeName") or meta.get("annotations", {}).get(PROVISIONER) != self.name or "deletionTimestamp" in meta:
            return
        its_class = classes[spec["storageClassName"]]
        name = f"pvc-{meta['uid']}"
        made = self.call("CreateVolume", f1=name, f2=message(f1=size(spec["resources"]["requests"]["storage"])),
                         f3=[self.capability(spec)], f4=its_class.get("parameters", {})).one(1)
        terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]} for key, value in one.map(1).items()]}
                 for one in made.all(5)]
        volume = {
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name, "finalizers": [VOLUME_FINALIZER], "annotations": {"pv.kubernetes.io/provisioned-by": self.name}},
            "spec": {
                "capacity": {"storage": str(made.int(1))}, "accessModes": spec["accessModes"], "volumeMode": spec.get("volumeMode", "Filesystem"),
                "persistentVolumeReclaimPolicy": its_class.get("reclaimPolicy", "Delete"), "storageClassName": spec["storageClassName"],
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta["namespace"], "name": meta["name"],
                             "uid": meta["uid"]},
                "csi": {"driver": self.name, "volumeHandle": made.text(2), "volumeAttributes": made.map(3)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            },
        }
        if spec.get("volumeMode") != "Block":
            volume["spec"]["csi"]["fsType"] = "ext4"
        kubectl("create", "-f", "-", document=volume)

    def delete(self, volume):
        if volume["spec"].get("csi", {}).get("driver") != self.name or volume.get("status", {}).get("phase") != "Released":
            return
        if volume["spec"]["persistentVolumeReclaimPolicy"] != "Delete" or f"external-attacher/{self.name}" in volume["metadata"].get("finalizers", []):
            return
        self.call("DeleteVolume", f1=volume["spec"]["csi"]["volumeHandle"])
        if "deletionTimestamp" not in volume["metadata"]:
            kubectl("delete", "pv", volume["metadata"]["name"], "--wait=false")
        patch("pv", volume, finalizers(volume, without=VOLUME_FINALIZER))

    # ---- external-attacher

    def attach(self, attachment, volumes, nodes):
        spec, finalizer = attachment["spec"], f"external-attacher/{self.name}"
        volume = volumes.get(spec["source"].get("persistentVolumeName"))
        if spec["attacher"] != self.name or volume is None:
            return
        handle, node = volume["spec"]["csi"]["volumeHandle"], nodes.get(spec["nodeName"], spec["nodeName"])
        if "deletionTimestamp" in attachment["metadata"]:
            self.call("ControllerUnpublishVolume", f1=handle, f2=node)
            patch("volumeattachment", attachment, finalizers(attachment, without=finalizer))
        elif not attachment.get("status", {}).get("attached"):
            patch("volumeattachment", attachment, finalizers(attachment, add=finalizer))
            try:
                told = self.call("ControllerPublishVolume", f1=handle, f2=node, f3=self.capability(volume["spec"])).map(1)
                status = {"attached": True, "attachmentMetadata": told, "attachError": None}
            except grpc.RpcError as wrong:
                status = {"attached": False, "attachError": {"message": wrong.details(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}}
            patch("volumeattachment", attachment, {"status": status}, "--subresource=status")

    # ---- external-resizer

    def resize(self, claim, volumes):
        volume = volumes.get(claim["spec"].get("volumeName"))
        if volume is None or volume["spec"].get("csi", {}).get("driver") != self.name or claim.get("status", {}).get("phase") != "Bound":
            return
        wanted = size(claim["spec"]["resources"]["requests"]["storage"])
        if wanted <= size(volume["spec"]["capacity"]["storage"]):
            return
        grown = self.call("ControllerExpandVolume", f1=volume["spec"]["csi"]["volumeHandle"], f2=message(f1=wanted))
        patch("pv", volume, {"spec": {"capacity": {"storage": str(grown.int(1))}}})
        waiting = {"type": "FileSystemResizePending", "status": "True", "message": "Waiting for user to (re-)start a pod to finish file system "
                   "resize of volume on node.", "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        status = {"conditions": [waiting], "allocatedResourceStatuses": {"storage": "NodeResizePending"}}
        patch("pvc", claim, {"status": status}, "--subresource=status")

    def look(self):
        claims, volumes = everything("pvc"), {one["metadata"]["name"]: one for one in everything("pv")}
        classes = {one["metadata"]["name"]: one for one in everything("storageclass")}
        nodes = {one["metadata"]["name"]: driver["nodeID"] for one in everything("csinode") for driver in one["spec"].get("drivers") or []
                 if driver["name"] == self.name}
        steps = [lambda one=one: self.attach(one, volumes, nodes) for one in everything("volumeattachment")]
        for claim in claims:
            steps += [lambda one=claim: self.provision(one, classes), lambda one=claim: self.resize(one, volumes)]
        steps += [lambda one=one: self.delete(one) for one in volumes.values()]
        for step in steps:
            try:
                step()
            except (grpc.RpcError, RuntimeError, KeyError) as wrong:
                print(wrong.details() if isinstance(wrong, grpc.RpcError) else wrong, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--name", default="dirs.example.com")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sidecar = Sidecar(given.socket, given.name)
    while True:
        try:
            sidecar.look()
        except RuntimeError as wrong:
            print(wrong, file=sys.stderr, flush=True)
        time.sleep(1)


main()
