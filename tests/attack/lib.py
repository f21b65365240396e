"""What the attack scripts share: a server of their own on a free loopback port, identities, requests, figures. Everything ends by itself."""
import asyncio, json, os, resource, ssl, subprocess, sys, tempfile, time

IDENTITIES = {  # token: user, groups
    "t-admin": ("root", "system:masters"),
    "t-scheduler": ("system:kube-scheduler", ""),
    "t-node": ("system:node:n1", "system:nodes"),
    "t-mallory": ("mallory", ""),
    "t-jane": ("jane", ""),
}


class Server:
    """`berth server` (or `berth up`) in a directory of its own; use with `with`."""

    def __init__(self, berth, *flags, command="server"):
        self.berth, self.flags, self.command = berth, flags, command

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="berth-attack.")
        tokens = os.path.join(self.directory.name, "tokens")
        with open(os.open(tokens, os.O_CREAT | os.O_WRONLY, 0o600), "w") as out:
            for token, (user, groups) in IDENTITIES.items():
                out.write(f'{token},{user},{user},"{groups}"\n')
        data = os.path.join(self.directory.name, "data")
        self.log = open(os.path.join(self.directory.name, "log"), "w+")
        self.process = subprocess.Popen([self.berth, self.command, "--data-dir", data, "--listen", "127.0.0.1:0", "--token-auth-file", tokens, *self.flags],
                                        stdout=self.log, stderr=self.log)
        config = os.path.join(data, "admin.kubeconfig")
        for _ in range(600):
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended: {open(self.log.name).read()}")
            if os.path.exists(config) and "server:" in open(config).read():
                break
            time.sleep(0.1)
        url = next(line.split("server:")[1].strip() for line in open(config) if "server:" in line)
        self.port = int(url.rsplit(":", 1)[1])
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.directory.cleanup()

    def memory(self):
        """Resident MiB."""
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
        return 0

    def cpu(self):
        """Processor seconds so far."""
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


CONTEXT = tls()


class Client:
    """One connection that is kept; requests one after the other."""

    def __init__(self, port, token):
        self.port, self.token, self.streams = port, token, None

    async def open(self):
        self.streams = await asyncio.open_connection("127.0.0.1", self.port, ssl=CONTEXT)

    async def send(self, method, path, body=b"", content_type="application/json", accept="application/json"):
        if self.streams is None:
            await self.open()
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nContent-Length: {len(body)}\r\n"
        if self.token:
            head += f"Authorization: Bearer {self.token}\r\n"
        if body:
            head += f"Content-Type: {content_type}\r\n"
        self.streams[1].write(head.encode() + b"\r\n" + body)
        await self.streams[1].drain()

    async def answer(self):
        """Status and body."""
        reader = self.streams[0]
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        status, fields = int(head.split(" ", 2)[1]), head.lower()
        if "content-length:" in fields:
            body = await reader.readexactly(int(fields.split("content-length:")[1].split("\r\n")[0]))
        elif "transfer-encoding: chunked" in fields:
            body = b""
            while True:
                size = int((await reader.readuntil(b"\r\n")).strip(), 16)
                body += await reader.readexactly(size)
                await reader.readexactly(2)
                if size == 0:
                    break
        else:
            body = b""
        if "connection: close" in fields:
            self.close()
        return status, body

    async def ask(self, *args, **options):
        try:
            await self.send(*args, **options)
            return await self.answer()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            self.close()
            return 0, b""

    def close(self):
        if self.streams is not None:
            self.streams[1].transport.abort()
        self.streams = None


def raise_file_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def berth_of_arguments():
    if len(sys.argv) < 2:
        raise SystemExit(f"usage: {sys.argv[0]} path/of/berth")
    raise_file_limit()
    return os.path.abspath(sys.argv[1])


GRANT = [
    ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
     {"metadata": {"name": f"attack-{user}"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
      "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})
    for user, role in (("mallory", "edit"), ("jane", "edit"))]
