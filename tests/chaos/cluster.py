"""Real processes for the fault runs: etcd members, each behind a link that can be slowed or cut, and API servers of berth."""
import asyncio, base64, json, os, re, shutil, signal, socket, ssl, subprocess, threading, time


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Link:
    """A TCP relay to one etcd member: `delay` seconds each way, or cut."""

    def __init__(self, target):
        self.target, self.delay, self.is_cut, self.open = target, 0.0, False, set()
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()

        def run():
            asyncio.set_event_loop(self.loop)
            self.server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0))
            self.port = self.server.sockets[0].getsockname()[1]
            ready.set()
            self.loop.run_forever()

        threading.Thread(target=run, daemon=True).start()
        ready.wait()

    async def serve(self, reader, writer):
        try:
            if self.is_cut:
                return
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return
        finally:
            if self.is_cut:
                writer.transport.abort()
        self.open |= {writer, other_writer}
        await asyncio.gather(self.pump(reader, other_writer), self.pump(other_reader, writer))
        self.open -= {writer, other_writer}

    async def pump(self, reader, writer):
        try:
            while data := await reader.read(65536):
                if self.delay:
                    await asyncio.sleep(self.delay)
                while self.is_cut:  # Nothing is said to either side, as when a cable is out.
                    await asyncio.sleep(0.05)
                writer.write(data)
                await writer.drain()
        except (OSError, ConnectionError):
            pass
        finally:
            writer.transport.abort()


class Disk:
    """A small file system of its own for one member (needs root); None where that cannot be."""

    @staticmethod
    def make(path, megabytes):
        os.makedirs(path)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "chaos", path], capture_output=True)
        return Disk(path) if done.returncode == 0 else None

    def __init__(self, path):
        self.path = path

    def fill(self):
        with open(f"{self.path}/filler", "wb") as out:
            try:
                while True:
                    out.write(b"x" * 65536)
                    out.flush()
            except OSError:
                pass  # Full.

    def empty(self):
        if os.path.exists(f"{self.path}/filler"):
            os.remove(f"{self.path}/filler")

    def close(self):
        subprocess.run(["umount", self.path], capture_output=True)


class Process:
    def __init__(self, name, command, log, env=None):
        self.name, self.command, self.log, self.env, self.process = name, command, log, env, None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.env)

    def signal(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        if self.process:
            self.process.wait()

    def stop(self, patience=20):
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()


class Cluster:
    def __init__(self, berth, work, members=3, servers=3):
        self.berth, self.work = berth, work
        ports = free_ports(2 * members + servers)
        self.client_ports, peer_ports, self.server_ports = ports[:members], ports[members : 2 * members], ports[2 * members :]
        initial = ",".join(f"m{i}=http://127.0.0.1:{port}" for i, port in enumerate(peer_ports))
        self.members = []
        self.disk = Disk.make(f"{work}/m0", 900)  # etcd takes 64 MB for each of its first log files, and grows.
        for i in range(members):
            client, peer = f"http://127.0.0.1:{self.client_ports[i]}", f"http://127.0.0.1:{peer_ports[i]}"
            command = ["etcd", "--name", f"m{i}", "--data-dir", f"{work}/m{i}", "--listen-client-urls", client, "--advertise-client-urls", client]
            command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", initial, "--unsafe-no-fsync"]
            self.members.append(Process(f"etcd m{i}", command, f"{work}/m{i}.log"))
        for member in self.members:
            member.start()
        self.wait(lambda: self.etcdctl("endpoint", "health").returncode == 0, 60, "etcd")
        self.links = [Link(port) for port in self.client_ports]
        urls = ",".join(f"http://127.0.0.1:{link.port}" for link in self.links)
        self.servers = []
        for i in range(servers):
            command = [berth, "server", "--data-dir", f"{work}/s{i}", "--listen", f"127.0.0.1:{self.server_ports[i]}", "--etcd-servers", urls]
            command += ["--advertise-address", f"127.0.0.{i + 1}", "--memory-limit", "4Gi"]
            self.servers.append(Process(f"server {i}", command, f"{work}/s{i}.log"))
        self.servers[0].start()
        self.wait(lambda: self.ready(0, True), 120, "the first server")
        for i in range(1, servers):
            os.makedirs(f"{work}/s{i}", exist_ok=True)
            shutil.copytree(f"{work}/s0/pki", f"{work}/s{i}/pki")
            for name in ("server.crt", "server.key"):
                if os.path.exists(f"{work}/s{i}/pki/{name}"):
                    os.remove(f"{work}/s{i}/pki/{name}")
            self.servers[i].start()
            self.wait(lambda: self.ready(i), 120, f"server {i}")

    def raise_quota_alarm(self):
        """By the interface that a member raises it by itself with."""
        self.alarm("ACTIVATE")

    def clear_quota_alarm(self):
        self.alarm("DEACTIVATE")

    def alarm(self, action):
        import urllib.request

        member = json.loads(self.etcdctl("member", "list", "-w", "json").stdout)["members"][0]["ID"]
        for port in self.client_ports:
            body = json.dumps({"action": action, "memberID": str(member), "alarm": "NOSPACE"}).encode()
            try:
                urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/v3/maintenance/alarm", body), timeout=5).read()
                return
            except OSError:
                pass

    def etcdctl(self, *words):
        endpoints = ",".join(f"127.0.0.1:{port}" for port in self.client_ports)
        env = dict(os.environ, ETCDCTL_API="3")
        return subprocess.run(["etcdctl", "--command-timeout", "5s", "--endpoints", endpoints, *words], capture_output=True, text=True, env=env)

    def tls(self):
        if not hasattr(self, "context"):
            text = open(f"{self.work}/s0/admin.kubeconfig").read()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            pem = f"{self.work}/admin.pem"
            with open(pem, "wb") as out:
                for field in ("client-certificate-data", "client-key-data"):
                    out.write(base64.b64decode(re.search(field + r": *\"?([A-Za-z0-9+/=]+)", text).group(1)) + b"\n")
            context.load_cert_chain(pem)
            self.context = context
        return self.context

    def ready(self, i, first=False):
        if first and not os.path.exists(f"{self.work}/s0/admin.kubeconfig"):
            return False
        try:
            return self.request(i, "GET", "/readyz", timeout=2)[0] == 200
        except OSError:
            return False

    def request(self, i, method, path, body=None, timeout=20):
        import http.client

        connection = http.client.HTTPSConnection("127.0.0.1", self.server_ports[i], context=self.tls(), timeout=timeout)
        try:
            headers = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null") if path.startswith("/api") else answer.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    @staticmethod
    def wait(condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} is not there after {seconds} s")
            time.sleep(0.1)

    def close(self):
        for process in self.servers + self.members:
            process.kill()
        if self.disk is not None:
            self.disk.close()
