#!/usr/bin/env python3
"""Services that take a connection and never answer (webhooks of admission, conversion and access, an issuer of tokens, an aggregated server, a kubelet),
and one user who sends them all he can: what another user and the health checks notice meanwhile. Who waits longer than five seconds (a queue keeps one for fifteen), or is refused, fails."""
import asyncio, base64, os, sys
from lib import *

REQUESTS, SECONDS, LONGEST = int(os.environ.get("WAITING_REQUESTS", "300")), float(os.environ.get("WAITING_SECONDS", "4")), 5.0
RBAC = {"apiGroup": "rbac.authorization.k8s.io"}


class Hole:
    """Takes connections and requests. `answers`: what it says by path; of everything else, nothing."""

    def __init__(self, context=None, answers=None):
        self.context, self.answers, self.writers, self.most = context, answers or {}, set(), 0

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.context)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def serve(self, reader, writer):
        self.writers.add(writer)
        self.most = max(self.most, len(self.writers))
        try:
            while line := await reader.readline():
                parts = line.split(b" ")
                body = self.answers.get(parts[1].decode()) if len(parts) == 3 else None
                if body is None:
                    continue
                while (await reader.readline()).strip():
                    pass
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        except (ConnectionError, ssl.SSLError, OSError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            self.writers.discard(writer)
            writer.transport.abort()

    def begin(self):
        """Who waits here since an earlier trial is let go: the next one's questions come on connections of their own, and are counted."""
        for writer in list(self.writers):
            writer.transport.abort()
        self.writers.clear()
        self.most = 0


def tls_of(server):
    pki = os.path.join(server.directory.name, "data", "pki")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{pki}/server.crt", f"{pki}/server.key")
    return context, base64.b64encode(open(f"{pki}/ca.crt", "rb").read()).decode()


class Others:
    """A user who reads and writes what has nothing to do with any of it, and who asks for health, each on new connections."""

    def __init__(self, port):
        self.port, self.slowest, self.refused, self.stop, self.number = port, {"jane": 0.0, "health": 0.0}, [], False, 0

    async def ask(self, who, *args):
        client = Client(self.port, "t-jane" if who == "jane" else None)
        start = time.monotonic()
        status, body = await client.ask(*args)
        self.slowest[who] = max(self.slowest[who], time.monotonic() - start)
        if status not in (200, 201):
            self.refused.append((status, body[:200]))
        client.close()

    async def go_on(self):
        while not self.stop:
            self.number += 1
            await self.ask("health", "GET", "/livez")
            await self.ask("jane", "GET", "/api/v1/namespaces/default/pods")
            await self.ask("jane", "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "j"}})
            await asyncio.sleep(0.03)


async def trial(server, name, hole, token, *request, **options):
    clients = [Client(server.port, token(i) if callable(token) else token) for i in range(REQUESTS)]
    for start in range(0, REQUESTS, 20):  # What handshakes cost is another script's subject.
        await asyncio.gather(*(client.open() for client in clients[start:start + 20]))
    others = Others(server.port)
    going_on = asyncio.create_task(others.go_on())
    hole.begin()
    await asyncio.sleep(0.5)
    hole.most = 0
    waiting = [asyncio.create_task(client.ask(*request, **options)) for client in clients]
    await asyncio.sleep(SECONDS)
    told = {}
    for task in waiting:
        if task.done():
            told[task.result()[0]] = told.get(task.result()[0], 0) + 1
    others.stop = True
    await asyncio.wait_for(going_on, 60)
    for task in waiting:
        task.cancel()
    for client in clients:
        client.close()
    bad = others.refused or max(others.slowest.values()) > LONGEST or hole.most == 0
    print(f"{others.slowest['jane']:8.3f} {others.slowest['health']:8.3f} {len(others.refused):7} {hole.most:6} {server.memory():10} "
          f"{'FAIL ' if bad else ''}{name} (answered meanwhile: {told or 'nobody'}){f' {others.refused[0]}' if others.refused else ''}", flush=True)
    return bool(bad)


async def grant(admin):
    for path, body in GRANT:
        await admin.ask("POST", path, body)
    for name in ("default", "slow"):
        await admin.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        await admin.ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})


async def make(admin, path, body):
    status, answer = await admin.ask("POST", path, body)
    assert status == 201, answer


async def admission(server, admin, context, ca):
    failed, hole = 0, await Hole(context).start()
    for kind in ("Mutating", "Validating"):
        path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
        await make(admin, path, {"metadata": {"name": "slow"}, "webhooks": [{
            "name": "slow.example.com", "clientConfig": {"url": f"https://127.0.0.1:{hole.port}/", "caBundle": ca}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 30, "failurePolicy": "Ignore",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "slow"}},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps", "pods/exec"]}]}]})
        failed += await trial(server, f"{kind.lower()} webhook", hole, "t-mallory", "POST", "/api/v1/namespaces/slow/configmaps",
                              {"metadata": {"generateName": "m"}})
        await admin.ask("DELETE", path + "/slow")
    return failed


def definition(port, ca):
    version = {"served": True, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    return {"metadata": {"name": "slows.attack.example.com"}, "spec": {
        "group": "attack.example.com", "scope": "Namespaced", "names": {"plural": "slows", "singular": "slow", "kind": "Slow"},
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
            "url": f"https://127.0.0.1:{port}/", "caBundle": ca}}},
        "versions": [{"name": "v1", "storage": True, **version}, {"name": "v2", "storage": False, **version}]}}


async def conversion(server, admin, context, ca):
    hole = await Hole(context).start()
    await make(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(hole.port, ca))
    await make(admin, "/apis/rbac.authorization.k8s.io/v1/clusterroles",
               {"metadata": {"name": "slows"}, "rules": [{"apiGroups": ["attack.example.com", "slow.example.com"], "resources": ["*"], "verbs": ["*"]}]})
    await make(admin, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
               {"metadata": {"name": "slows"}, "subjects": [{**RBAC, "kind": "User", "name": "mallory"}], "roleRef": {**RBAC, "kind": "ClusterRole", "name": "slows"}})
    objects = "/apis/attack.example.com/{}/namespaces/slow/slows"
    body = {"apiVersion": "attack.example.com/v1", "kind": "Slow", "metadata": {"name": "a"}}
    while (await admin.ask("POST", objects.format("v1"), body))[0] not in (201, 409):
        await asyncio.sleep(0.05)
    return await trial(server, "conversion webhook", hole, "t-mallory", "GET", objects.format("v2"))


async def aggregated(server, admin, context, ca):
    discovery = json.dumps({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "slow.example.com/v1", "resources": []}).encode()
    hole = await Hole(context, {"/apis/slow.example.com/v1": discovery}).start()
    await make(admin, "/api/v1/namespaces/default/services", {"metadata": {"name": "slow"}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    await make(admin, services, {"metadata": {"name": "v1.slow.example.com"}, "spec": {
        "group": "slow.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, "insecureSkipTLSVerify": True,
        "service": {"namespace": "default", "name": "slow", "port": hole.port}}})
    while b'"status":"True"' not in (await admin.ask("GET", services + "/v1.slow.example.com"))[1]:
        await asyncio.sleep(0.1)
    failed = await trial(server, "aggregated server", hole, "t-mallory", "GET", "/apis/slow.example.com/v1/namespaces/slow/things")
    return failed + await trial(server, "aggregated server, discovery of all", hole, "t-mallory", "GET", "/apis")


async def kubelet(server, admin, context, ca):
    hole = await Hole(context).start()
    await make(admin, "/api/v1/nodes", {"metadata": {"name": "n1"}})
    status = {"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": hole.port}}}}
    await admin.ask("PATCH", "/api/v1/nodes/n1/status", status, content_type="application/merge-patch+json")
    await make(admin, "/api/v1/namespaces/slow/pods", {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
    return await trial(server, "kubelet", hole, "t-mallory", "GET", "/api/v1/namespaces/slow/pods/p/log")


async def objects(server):
    failed, admin = 0, Client(server.port, "t-admin")
    await grant(admin)
    context, ca = tls_of(server)
    for way in (admission, conversion, aggregated, kubelet):
        failed += await way(server, admin, context, ca)
    return failed


def token_of(issuer):
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    now = int(time.time())
    return lambda i: ".".join([part({"alg": "RS256", "kid": f"k{i}"}), part({"iss": issuer, "aud": "a", "sub": f"u{i}", "exp": now + 600}), "c2ln"])


def service_config(directory, name, port):
    path = os.path.join(directory, name)
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as out:
        out.write(json.dumps({"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}/"}}],
                              "users": [{"name": "u", "user": {}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                              "current-context": "x"}))
    return path


async def access(berth):
    """Who somebody is, and whether he may."""
    failed = 0
    issuer, names, rights = await Hole().start(), await Hole().start(), await Hole().start()
    with tempfile.TemporaryDirectory() as directory:
        flags = ["--oidc-issuer-url", f"https://127.0.0.1:{issuer.port}", "--oidc-client-id", "a",
                 "--authentication-token-webhook-config-file", service_config(directory, "names", names.port),
                 "--authorization-mode", "Node,RBAC,Webhook", "--authorization-webhook-config-file", service_config(directory, "rights", rights.port)]
        server = Server(berth, *flags)
        with await asyncio.get_running_loop().run_in_executor(None, server.__enter__):
            admin = Client(server.port, "t-admin")
            await grant(admin)
            pods, reviews = "/api/v1/namespaces/default/pods", "/apis/authentication.k8s.io/v1/tokenreviews"
            failed += await trial(server, "issuer of tokens", issuer, token_of(f"https://127.0.0.1:{issuer.port}"), "GET", pods)
            failed += await trial(server, "webhook for tokens", names, lambda i: f"unknown-{i}", "GET", pods)
            failed += await trial(server, "webhook for access", rights, "t-mallory", "GET", "/api/v1/nodes")
            await make(admin, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                "metadata": {"name": "reviewers"}, "subjects": [{**RBAC, "kind": "User", "name": "mallory"}],
                "roleRef": {**RBAC, "kind": "ClusterRole", "name": "system:auth-delegator"}})
            failed += await trial(server, "review of a token", names, "t-mallory", "POST", reviews, {"spec": {"token": "nobody's"}})
            failed += await trial(server, "review of access", rights, "t-mallory", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                                  {"spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "nodes"}}})
    return failed


async def everything(berth):
    with await asyncio.get_running_loop().run_in_executor(None, Server(berth).__enter__) as server:
        return await objects(server) + await access(berth)


print(f"{'jane s':>8} {'health s':>8} {'refused':>7} {'asked':>6} {'memory MiB':>10} of {REQUESTS} requests that wait for a service that never answers")
sys.exit(1 if asyncio.run(asyncio.wait_for(everything(berth_of_arguments()), 300)) else 0)
