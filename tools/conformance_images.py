#!/usr/bin/env python3
"""Packs the suite's images as one archive: layers that several images share are in it once. Called by conformance-images."""
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

sources, out = sys.argv[1:3]
REGISTRY = "registry.k8s.io/"
SUITE = REGISTRY + "e2e-test-images/"
layers = {}


def add(tar, name, data=None, path=None, mode=0o755, link=None):
    info = tarfile.TarInfo(name)
    info.mode = mode
    if link is not None:
        info.type, info.linkname = tarfile.SYMTYPE, link
        return tar.addfile(info)
    if data is None and path is None:
        info.type = tarfile.DIRTYPE
        return tar.addfile(info)
    if path is not None:
        with open(path, "rb") as file:
            data = file.read()
    info.size = len(data)
    return tar.addfile(info, io.BytesIO(data))


def layer(label, fill):
    """A layer by its label; returns (diff id, file)."""
    path = os.path.join(out, f"layer-{label}.tar")
    with tarfile.open(path, "w") as tar:
        fill(tar)
    return finished(path)


def finished(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest(), path


def applets():
    """The names that lead to the program; its own is one of them since 1.38."""
    listed = subprocess.run([os.path.join(out, "bin/busybox"), "--list"], capture_output=True, text=True, check=True).stdout.split()
    return [name for name in listed if name != "busybox"]


PASSWD = b"root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n"
GROUP = b"root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n"


def busybox(tar):
    for folder in ("bin", "etc", "root", "tmp", "home", "var", "usr", "usr/bin", "usr/sbin", "var/run"):
        add(tar, folder, mode=0o1777 if folder == "tmp" else 0o755)
    with open(os.path.join(out, "bin/busybox"), "rb") as file:
        shell = file.read()
    # 1.38's shell says "line 0: " in front of its complaints where the suite's does not, and a spec compares the whole line.
    add(tar, "bin/busybox", data=shell.replace(b"\0line %d: \0", b"\0\0ine %d: \0"))
    for name in applets():
        add(tar, "bin/" + name, link="busybox")
    add(tar, "etc/passwd", PASSWD, mode=0o644)
    add(tar, "etc/group", GROUP, mode=0o644)


def debian():
    path = os.path.join(out, "layer-debian.tar")
    if not os.path.exists(path):
        subprocess.run(["tar", "-C", os.path.join(out, "root"), "--one-file-system", "--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/*",
                        "--exclude=./usr/share/doc/*", "--exclude=./usr/share/locale/*", "--exclude=./dev/*", "-cf", path, "."], check=True)
    return finished(path)


def agnhost(tar):
    add(tar, "agnhost", path=os.path.join(out, "bin/agnhost"))
    add(tar, "agnhost-2", link="agnhost")
    add(tar, "coredns", path=os.path.join(out, "bin/coredns"))
    add(tar, "uploads")
    for name in ("localhost.crt", "localhost.key"):
        add(tar, name, path=os.path.join(sources, "agnhost/porter", name), mode=0o644)
    # What the image's own base offers beside Debian's tools. (/bin is a link to /usr/bin there: a folder of that name would hide it.)
    add(tar, "usr/bin/busybox", path=os.path.join(out, "bin/busybox"))
    for name in applets():
        if not any(os.path.lexists(os.path.join(out, "root", folder, name)) for folder in ("bin", "sbin", "usr/bin", "usr/sbin")):
            add(tar, "usr/bin/" + name, link="busybox")
    with open(os.path.join(out, "root/etc/passwd"), "rb") as file:
        add(tar, "etc/passwd", file.read() + b"user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n", mode=0o644)
    with open(os.path.join(out, "root/etc/group"), "rb") as file:
        add(tar, "etc/group", file.read() + b"user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n", mode=0o644)


def nginx(tar):
    add(tar, "usr/share/nginx/html/index.html", b"<html><body><h1>It works!</h1><h1>Welcome to nginx!</h1></body></html>\n", mode=0o644)
    add(tar, "etc/nginx/nginx.conf", b"""worker_processes 1;
pid /tmp/nginx.pid;
error_log /dev/stderr;
events { worker_connections 256; }
http { access_log /dev/stdout; server { listen 80; root /usr/share/nginx/html; index index.html; } }
""", mode=0o644)


def html(name):
    def fill(tar):
        folder = os.path.join(sources, name, "html")
        for file in os.listdir(folder):
            add(tar, file, path=os.path.join(folder, file), mode=0o644)
    return fill


def kitten(tar):
    """Seen as a volume, the image's system is looked at: what the suite's own images stand on."""
    html("kitten")(tar)
    add(tar, "etc/os-release", b'NAME="Alpine Linux"\nID=alpine\nPRETTY_NAME="Alpine Linux (a stand-in made of Debian packages)"\n', mode=0o644)


def single(path, mode=0o755):
    return lambda tar: add(tar, path.split("/bin/")[-1] if path.startswith(out) else path, path=path, mode=mode)


def nnp(tar):
    add(tar, "usr/local/bin/nnp", path=os.path.join(out, "bin/nnp"), mode=0o6755)


base = debian()
small = layer("busybox", busybox)
host = layer("agnhost", agnhost)
web = layer("nginx", nginx)
TOOLS = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
AGNHOST = {"Entrypoint": ["/agnhost"], "Cmd": ["pause"]}
NGINX = {"Cmd": ["nginx", "-g", "daemon off;"]}
IMAGES = {
    SUITE + "agnhost:2.63.0": ([base, host], AGNHOST),
    SUITE + "agnhost:2.55": ([base, host, layer("previous", lambda tar: add(tar, "previous", b"2.55\n"))], AGNHOST),
    SUITE + "busybox:1.37.0-1": ([small], {"Cmd": ["sh"]}),
    SUITE + "nonroot:1.5": ([small, layer("nonroot", lambda tar: add(tar, "nonroot", b""))], {"Cmd": ["sh"], "User": "1234"}),
    SUITE + "nonewprivs:1.4": ([small, layer("nnp", nnp)], {"Cmd": ["nnp"]}),
    SUITE + "nginx:1.15-4": ([base, web], NGINX),
    SUITE + "nginx:1.27-0": ([base, web, layer("newer", lambda tar: add(tar, "newer", b"1.27\n"))], NGINX),
    SUITE + "glibc-dns-testing:2.0.0": ([base, layer("glibc", lambda tar: add(tar, "glibc", b""))], {"Cmd": ["bash"]}),
    SUITE + "nautilus:1.8": ([base, host, layer("nautilus", html("nautilus"))], {"Entrypoint": ["/agnhost"], "Cmd": ["test-webserver"]}),
    SUITE + "kitten:1.8": ([base, host, layer("kitten", kitten)], {"Entrypoint": ["/agnhost"], "Cmd": ["test-webserver"]}),
    SUITE + "sample-apiserver:1.29.2": ([small, layer("sample", single(os.path.join(out, "bin/sample-apiserver")))], {"Entrypoint": ["/sample-apiserver"]}),
    REGISTRY + "etcd:3.6.8-0": ([base, layer("etcd", lambda tar: add(tar, "usr/local/bin/etcd", path=os.path.join(out, "bin/etcd")))], {"Cmd": ["etcd"]}),
    REGISTRY + "pause:3.10.2": ([small, layer("pause", lambda tar: add(tar, "pause", b"#!/bin/sh\ntrap 'exit 0' TERM INT\nwhile :; do sleep 100000 & wait $!; done\n"))],
                                {"Entrypoint": ["/pause"]}),
}

manifest = []
with tarfile.open(os.path.join(out, "images.tar"), "w") as archive:
    for digest, path in {digest: path for stack, _ in IMAGES.values() for digest, path in stack}.items():
        archive.add(path, digest + ".tar")
    for name, (stack, config) in IMAGES.items():
        text = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": [TOOLS], **config},
                           "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest for digest, _ in stack]},
                           "history": [{"created_by": "conformance-images " + name}] * len(stack)}).encode()
        file = hashlib.sha256(text).hexdigest() + ".json"
        add(archive, file, text, mode=0o644)
        manifest.append({"Config": file, "RepoTags": [name], "Layers": [digest + ".tar" for digest, _ in stack]})
    add(archive, "manifest.json", json.dumps(manifest).encode(), mode=0o644)
print(f"{len(IMAGES)} images in {os.path.join(out, 'images.tar')}")
