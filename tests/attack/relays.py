#!/usr/bin/env python3
"""A user with exec and logs on his pods, and a node that does its worst: sessions ended in every way, logs that nobody reads, an agent that says it
is the server, or answers without end. Shows the server's threads, descriptors and memory before and after; what stays behind fails."""
import asyncio, glob, os, sys
from lib import *

SESSIONS = int(os.environ.get("RELAY_SESSIONS", "300"))
PODS = "/api/v1/namespaces/default/pods"
UPGRADE = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"


class Agent:
    """What a kubelet's port answers, by path. Sends as long as somebody takes it."""

    def __init__(self, data):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(f"{data}/pki/server.crt", f"{data}/pki/server.key")
        self.open, self.sent, self.requests = 0, 0, 0

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.context)
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        self.open += 1
        try:
            await self.answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, OSError):
            pass
        finally:
            self.open -= 1
            writer.transport.abort()

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.requests += 1
        path = head.split(" ", 2)[1]
        if "/refused/" in path:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno")
            await writer.drain()
        elif "/silent/" in path:
            await reader.read(1)
        elif path.startswith("/exec/"):
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
                if b"bye" in data:
                    return
        elif "/endless" in path:
            writer.write(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4000000000\r\n\r\n")
            await self.flood(writer, b"x" * 65536)
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            await self.flood(writer, b"10000\r\n" + b"l" * 65536 + b"\r\n")

    async def flood(self, writer, piece):
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            self.sent += len(piece)
            await asyncio.sleep(0)  # A drain that need not wait does not let the others run.


def held(server):
    base = f"/proc/{server.process.pid}"
    return len(glob.glob(base + "/task/*")), len(glob.glob(base + "/fd/*")), server.memory()


async def settle(server, agent, before, seconds=20):
    """Until threads and descriptors are what they were."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        now = held(server)
        if agent.open == 0 and now[0] <= before[0] and now[1] <= before[1]:
            break
        await asyncio.sleep(0.1)
    return held(server)


async def session(server, path, upgrade=True):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=CONTEXT)
    writer.write(f"GET {PODS}/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t-mallory\r\n{UPGRADE if upgrade else ''}\r\n".encode())
    return reader, writer


async def echo(server, ending):
    reader, writer = await session(server, "p/exec?command=x")
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    writer.write(b"bye" if ending == "the node closes" else b"ping")
    await reader.read(4)
    if ending == "the node closes":
        await reader.read()
    elif ending == "the user ends his side":
        try:
            writer.write_eof()
        except NotImplementedError:
            writer.close()
    elif ending == "the user closes":
        writer.close()
        return
    writer.transport.abort()


async def refused(server):
    reader, writer = await session(server, "refused/exec?command=x")
    assert b" 404 " in await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()


async def dropped(server, path, upgrade):
    reader, writer = await session(server, path, upgrade)
    await asyncio.sleep(0.5)
    writer.transport.abort()


async def unread(server, seconds):
    reader, writer = await session(server, "p/log?follow=true", False)
    reader._transport.pause_reading()
    await asyncio.sleep(seconds)
    writer.transport.abort()


async def node(admin, name, port, address="127.0.0.1"):
    await admin.ask("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    status = {"status": {"addresses": [{"type": "InternalIP", "address": address}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}
    await admin.ask("PATCH", f"/api/v1/nodes/{name}/status", status, content_type="application/merge-patch+json")


async def run(server):
    failed = 0
    agent = Agent(os.path.join(server.directory.name, "data"))
    await agent.start()
    admin = Client(server.port, "t-admin")
    for path, body in GRANT:
        await admin.ask("POST", path, body)
    await admin.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await node(admin, "n1", agent.port)
    for name in ("p", "refused", "silent", "endless"):
        pod = {"metadata": {"name": name}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}
        status, body = await admin.ask("POST", PODS, pod)
        assert status == 201, body
    await echo(server, "the user closes")
    print(f"{'threads':>15} {'descriptors':>15} {'memory MiB':>15}")

    async def check(name, tasks, memory=60):
        nonlocal failed
        before = await settle(server, agent, held(server), 3)
        peak, under_way = before[2], asyncio.gather(*tasks)
        while not under_way.done():
            peak = max(peak, server.memory())
            await asyncio.sleep(0.05)
        under_way.result()
        after = await settle(server, agent, before)
        bad = after[0] > before[0] or after[1] > before[1] or agent.open > 0 or peak - before[2] > memory
        failed += bad
        print(f"{before[0]:6} -> {after[0]:5} {before[1]:6} -> {after[1]:5} {before[2]:6} -> {after[2]:5} (peak {peak}) {'FAIL ' if bad else ''}{name}", flush=True)

    for ending in ("the user closes", "the user ends his side", "the user resets", "the node closes"):
        await check(f"{SESSIONS} sessions, {ending}", [echo(server, ending) for _ in range(SESSIONS)], 150)
    await check(f"{SESSIONS} refused upgrades", [refused(server) for _ in range(SESSIONS)], 150)
    await check(f"{SESSIONS} upgrades that the node never answers", [dropped(server, "silent/exec?command=x", True) for _ in range(SESSIONS)], 150)
    await check("20 upgrades answered without end", [dropped(server, "endless/exec?command=x", True) for _ in range(20)])
    await check("40 logs that nobody reads, 4 s", [unread(server, 4) for _ in range(40)], 100)
    for address in ("127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "127.9.9.9", "localhost"):
        await node(admin, "liar", server.port, address)
        status, body = await admin.ask("GET", "/api/v1/nodes/liar/proxy/api/v1/secrets")
        bad = status != 503 or b"the API server itself" not in body
        failed += bad
        print(f"{'FAIL ' if bad else ''}a node that says it is at the server's own {address}: {status} {json.loads(body).get('message', '') if body else ''}", flush=True)
    return failed


with Server(berth_of_arguments()) as one:
    sys.exit(1 if asyncio.run(asyncio.wait_for(run(one), 240)) else 0)
