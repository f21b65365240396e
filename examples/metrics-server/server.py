#!/usr/bin/env python3
"""An API server to be aggregated, small enough to be read: metrics of resources, pods, objects and what is outside, from a file.

It believes only the front proxy: whoever shows a certificate of --requestheader-ca with the name front-proxy-client says in X-Remote-User for
whom he asks. Everybody else is 401. Only the standard library, and kubectl to find pods by their labels.

values.json:
  {"nodes": {"node-1": {"cpu": "250m", "memory": "64Mi"}},        metrics.k8s.io
   "pods": {"hits": "1500m"},                                      custom.metrics.k8s.io: the same for every pod
   "objects": {"ingresses.networking.k8s.io/door/requests": "45"}, custom.metrics.k8s.io
   "external": {"queue": "40"}}                                    external.metrics.k8s.io
"""
import argparse
import datetime
import json
import ssl
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

GROUPS = {"metrics.k8s.io": "v1beta1", "custom.metrics.k8s.io": "v1beta2", "external.metrics.k8s.io": "v1beta1"}


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def resource(name, kind, namespaced, verbs=("get", "list")):
    return {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": list(verbs)}


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, document):
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, code, reason, message):
        self.answer(code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code})

    def values(self):
        with open(self.server.values, encoding="utf-8") as file:
            return json.load(file)

    def user(self):
        """Who is asked for; None: this is not the front proxy."""
        certificate = self.connection.getpeercert() or {}
        names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
        return self.headers.get("X-Remote-User") if "front-proxy-client" in names else None

    def do_GET(self):
        url = urlsplit(self.path)
        user = self.user()
        if user is None:
            return self.refuse(401, "Unauthorized", "only the front proxy is believed")
        print(f"{user} {self.headers.get_all('X-Remote-Group')} {self.path}", flush=True)
        parts = [part for part in url.path.split("/") if part]
        if parts[:1] == ["openapi"] or parts[:1] != ["apis"] or len(parts) < 3 or GROUPS.get(parts[1]) != parts[2]:
            return self.refuse(404, "NotFound", "the server could not find the requested resource")
        serve = {"metrics.k8s.io": self.resources, "custom.metrics.k8s.io": self.custom, "external.metrics.k8s.io": self.external}[parts[1]]
        return serve(parts[3:], parse_qs(url.query), f"{parts[1]}/{parts[2]}")

    def kinds(self, group_version, resources):
        self.answer(200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})

    def resources(self, rest, _query, group_version):
        if not rest:
            return self.kinds(group_version, [resource("nodes", "NodeMetrics", False), resource("pods", "PodMetrics", True)])
        nodes = self.values().get("nodes", {})
        items = [{"metadata": {"name": name, "creationTimestamp": now()}, "timestamp": now(), "window": "10s", "usage": use} for name, use in nodes.items()]
        if rest == ["nodes"]:
            return self.answer(200, {"kind": "NodeMetricsList", "apiVersion": group_version, "metadata": {}, "items": items})
        if rest[0] == "nodes" and rest[1:] and rest[1] in nodes:
            found = next(item for item in items if item["metadata"]["name"] == rest[1])
            return self.answer(200, {"kind": "NodeMetrics", "apiVersion": group_version, **found})
        if rest[-1] == "pods":
            return self.answer(200, {"kind": "PodMetricsList", "apiVersion": group_version, "metadata": {}, "items": []})
        return self.refuse(404, "NotFound", f"the server could not find {'/'.join(rest)}")

    def custom(self, rest, query, group_version):
        values = self.values()
        if not rest:
            names = [f"pods/{name}" for name in values.get("pods", {})]
            names += ["/".join((key.split("/")[0], key.split("/")[2])) for key in values.get("objects", {})]
            return self.kinds(group_version, [resource(name, "MetricValueList", True, ["get"]) for name in names])
        if rest[0] != "namespaces" or len(rest) != 5:
            return self.refuse(404, "NotFound", "the server could not find the requested resource")
        namespace, kind, name, metric = rest[1:]

        def item(of_kind, of_name, value):
            return {"describedObject": {"kind": of_kind, "namespace": namespace, "name": of_name, "apiVersion": "/v1"},
                    "metric": {"name": metric, "selector": None}, "timestamp": now(), "value": value}

        if kind == "pods" and name == "*" and metric in values.get("pods", {}):
            selector = query.get("labelSelector", [""])[0]
            found = json.loads(subprocess.run(["kubectl", "get", "pods", "-n", namespace, "-l", selector, "-o", "json"], check=True, capture_output=True).stdout)
            items = [item("Pod", pod["metadata"]["name"], values["pods"][metric]) for pod in found["items"]]
        elif f"{kind}/{name}/{metric}" in values.get("objects", {}):
            items = [item(kind, name, values["objects"][f"{kind}/{name}/{metric}"])]
        else:
            return self.refuse(404, "NotFound", f"the server could not find the metric {metric} for {kind} {name}")
        return self.answer(200, {"kind": "MetricValueList", "apiVersion": group_version, "metadata": {}, "items": items})

    def external(self, rest, _query, group_version):
        known = self.values().get("external", {})
        if not rest:
            return self.kinds(group_version, [resource(name, "ExternalMetricValueList", True, ["get"]) for name in known])
        if rest[0] != "namespaces" or len(rest) != 3 or rest[2] not in known:
            return self.refuse(404, "NotFound", f"the server could not find the metric {rest[-1]}")
        items = [{"metricName": rest[2], "metricLabels": {}, "timestamp": now(), "value": known[rest[2]]}]
        return self.answer(200, {"kind": "ExternalMetricValueList", "apiVersion": group_version, "metadata": {}, "items": items})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cert", required=True, help="the certificate to show, for SERVICE.NAMESPACE.svc")
    parser.add_argument("--key", required=True)
    parser.add_argument("--requestheader-ca", required=True, help="requestheader-client-ca-file of ConfigMap kube-system/extension-apiserver-authentication")
    parser.add_argument("--values", required=True, help="read at every question")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one, printed first")
    options = parser.parse_args()
    server = ThreadingHTTPServer((options.address, options.port), Api)
    server.daemon_threads = True
    server.values = options.values
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(options.cert, options.key)
    tls.load_verify_locations(options.requestheader_ca)
    tls.verify_mode = ssl.CERT_OPTIONAL
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_address[1], flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
