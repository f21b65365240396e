#!/usr/bin/env python3
"""A read-only image registry over OCI layouts, with basic authentication below /v2/private/.

usage: registry.py PORT_FILE NAME=LAYOUT_DIRECTORY...   (user "berth", password "secret")
"""
import base64
import http.server
import json
import os
import sys

layouts = dict(argument.split("=", 1) for argument in sys.argv[2:])
WANTED = "Basic " + base64.b64encode(b"berth:secret").decode()


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        parts = self.path.split("?")[0].strip("/").split("/")  # v2 NAME... manifests|blobs REFERENCE
        if parts == ["v2"]:
            return self.answer(200, b"{}")
        name, what, reference = "/".join(parts[1:-2]), parts[-2], parts[-1]
        if name.startswith("private/") and self.headers.get("Authorization") != WANTED:
            return self.answer(401, b"{}", WWW_Authenticate='Basic realm="berth"')
        layout = layouts.get(name.removeprefix("private/"))
        if layout is None:
            return self.answer(404, b'{"errors":[{"code":"NAME_UNKNOWN"}]}')
        kind = "application/octet-stream"
        if what == "manifests" and not reference.startswith("sha256:"):
            with open(os.path.join(layout, "index.json"), encoding="utf-8") as index:
                found = [m for m in json.load(index)["manifests"] if m.get("annotations", {}).get("org.opencontainers.image.ref.name") == reference]
            if not found:
                return self.answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')
            reference = found[0]["digest"]
        if what == "manifests":
            kind = "application/vnd.oci.image.manifest.v1+json"
        path = os.path.join(layout, "blobs", *reference.split(":"))
        if not os.path.exists(path):
            return self.answer(404, b'{"errors":[{"code":"BLOB_UNKNOWN"}]}')
        with open(path, "rb") as blob:
            return self.answer(200, blob.read(), kind, Docker_Content_Digest=reference)

    do_HEAD = do_GET


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
with open(sys.argv[1] + ".new", "w", encoding="utf-8") as out:
    out.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
