"""Real processes for the fault runs: etcd members, each in a network of its own (as root) and behind a link that can be slowed, cut or made to lose
answers, and API servers of berth, each with a wall clock of its own."""
import asyncio, base64, json, mmap, multiprocessing, os, re, shutil, signal, socket, ssl, struct, subprocess, sys, time

PATIENCE = 300  # Seconds for something to start, on a machine that has other things to do.


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Networks:
    """A network namespace a member, joined by cables (veth) to that of this process, which is none of the machine's (needs root)."""

    @staticmethod
    def enter():
        """Begins this program anew in a namespace of its own, if that can be."""
        if os.environ.get("CHAOS_NETWORK"):
            return
        probe = "ip link set lo up && ip link add p0 type veth peer name p1 && ip netns add chaos-$$ && ip netns del chaos-$$"
        can = os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip")
        if can and subprocess.run(["unshare", "--net", "sh", "-c", probe], capture_output=True).returncode == 0:
            os.environ["CHAOS_NETWORK"] = "own"
            os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
        os.environ["CHAOS_NETWORK"] = "none"

    def __init__(self, count):
        self.names = []
        self.is_own = os.environ.get("CHAOS_NETWORK") == "own"
        if not self.is_own:
            return
        self.ip("link", "set", "lo", "up")
        with open("/proc/sys/net/ipv4/ip_forward", "w") as out:
            out.write("1")
        for i in range(count):
            name = f"chaos-{os.getpid()}-{i}"
            self.ip("netns", "add", name)
            self.names.append(name)
            self.ip("link", "add", f"cable{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            self.ip("addr", "add", f"10.9.{i}.1/24", "dev", f"cable{i}")
            self.ip("link", "set", f"cable{i}", "up")
            self.ip("-n", name, "addr", "add", f"10.9.{i}.2/24", "dev", "eth0")
            self.ip("-n", name, "link", "set", "lo", "up")
            self.plug(i)

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def address(self, i):
        return f"10.9.{i}.2" if self.is_own else "127.0.0.1"

    def command(self, i):
        return ["ip", "netns", "exec", self.names[i]] if self.is_own else []

    def unplug(self, i):
        self.ip("-n", self.names[i], "link", "set", "eth0", "down")

    def plug(self, i):
        self.ip("-n", self.names[i], "link", "set", "eth0", "up")
        self.ip("-n", self.names[i], "route", "replace", "default", "via", f"10.9.{i}.1")

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Metronome:
    """Beats while the machine lets it: a process that wants the processor for 1 ms in 20, as who waits for answers does. What it is behind its time
    is time in which nobody of this run could have gone on either, however quick."""

    PAUSE, WORK = 0.019, 0.001

    def __init__(self):
        self.behind = multiprocessing.Value("d", 0.0, lock=False)
        self.process = multiprocessing.get_context("fork").Process(target=self.beat, daemon=True)
        self.process.start()

    def beat(self):
        last = time.monotonic()
        while True:
            time.sleep(self.PAUSE)
            done = time.thread_time() + self.WORK
            while time.thread_time() < done:
                pass
            now = time.monotonic()
            self.behind.value += max(0.0, now - last - 1.5 * (self.PAUSE + self.WORK))
            last = now

    def stood_still(self):
        """Seconds so far."""
        return self.behind.value

    def close(self):
        self.process.kill()
        self.process.join()


class Clock:
    """What one process takes for the time of day (clock.c); needs a C compiler."""

    library = None

    @classmethod
    def build(cls, work):
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clock.c")
        if compiler and subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", f"{work}/clock.so", source], capture_output=True).returncode == 0:
            cls.library = f"{work}/clock.so"

    def __init__(self, path):
        with open(path, "wb") as out:
            out.write(struct.pack("q", 0))
        with open(path, "r+b") as file:
            self.at = mmap.mmap(file.fileno(), 8)
        self.path = path

    def env(self):
        return dict(os.environ, CHAOS_CLOCK=self.path, LD_PRELOAD=self.library) if self.library else None

    def jump(self, seconds):
        self.at[:8] = struct.pack("q", seconds)


class Link:
    """A TCP relay to one etcd member: `delay` seconds each way, cut, or `deaf`: requests arrive, answers go nowhere. A process of its own, so that
    it is as fast as a network is, whatever else this program does."""

    DELAY, CUT, DEAF, RESETS = range(4)

    def __init__(self, host, target):
        self.host, self.target, self.open = host, target, set()
        self.state = multiprocessing.Array("d", 4, lock=False)
        port = multiprocessing.Value("i", 0, lock=False)
        self.process = multiprocessing.get_context("fork").Process(target=self.relay, args=(port,), daemon=True)
        self.process.start()
        Cluster.wait(lambda: port.value != 0, PATIENCE, "a link")
        self.port = port.value

    delay = property(lambda self: self.state[self.DELAY], lambda self, seconds: self.state.__setitem__(self.DELAY, seconds))
    is_cut = property(lambda self: self.state[self.CUT] != 0, lambda self, yes: self.state.__setitem__(self.CUT, yes))
    is_deaf = property(lambda self: self.state[self.DEAF] != 0, lambda self, yes: self.state.__setitem__(self.DEAF, yes))

    def reset(self):
        self.state[self.RESETS] += 1

    def close(self):
        self.process.kill()
        self.process.join()

    def relay(self, port):
        async def run():
            server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
            port.value = server.sockets[0].getsockname()[1]
            done = self.state[self.RESETS]
            while True:
                await asyncio.sleep(0.02)
                if self.state[self.RESETS] != done:
                    done = self.state[self.RESETS]
                    for writer in list(self.open):
                        writer.transport.abort()

        asyncio.run(run())

    async def serve(self, reader, writer):
        try:
            if self.is_cut:
                return
            other_reader, other_writer = await asyncio.open_connection(self.host, self.target)
        except OSError:
            return
        finally:
            if self.is_cut:
                writer.transport.abort()
        self.open |= {writer, other_writer}
        await asyncio.gather(self.pump(reader, other_writer), self.pump(other_reader, writer, True))
        self.open -= {writer, other_writer}

    async def pump(self, reader, writer, is_answer=False):
        is_lost = False  # TCP tells nothing behind what it did not tell.
        try:
            while data := await reader.read(65536):
                if self.delay:
                    await asyncio.sleep(self.delay)
                while self.is_cut:  # Nothing is said to either side, as when a cable is out.
                    await asyncio.sleep(0.05)
                is_lost = is_lost or is_answer and self.is_deaf
                if is_lost:
                    continue
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

    def last_words(self):
        with open(self.log, "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 1000))
            return (log.read().decode(errors="replace").splitlines() or [""])[-1]

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
    def __init__(self, berth, work, members=3, servers=3, more=(), is_durable=False):
        self.is_durable = is_durable  # Members wait for their disks.
        self.berth, self.work, self.members, self.servers, self.clocks, self.disk = berth, work, [], [], [], None
        self.networks, self.more, self.metronome = None, list(more), Metronome()
        try:
            self.begin(members, servers)
        except BaseException:
            self.close()
            raise

    def begin(self, members, servers):
        berth, work = self.berth, self.work
        ports = free_ports(2 * members + servers)
        self.client_ports, peer_ports, self.server_ports = ports[:members], ports[members : 2 * members], ports[2 * members :]
        self.disk = Disk.make(f"{work}/m0", 900)  # etcd takes 64 MB for each of its first log files, and grows.
        Clock.build(work)
        self.networks = Networks(members)
        self.hosts = [self.networks.address(i) for i in range(members)]
        initial = ",".join(f"m{i}=http://{self.hosts[i]}:{port}" for i, port in enumerate(peer_ports))
        for i in range(members):
            client, peer = f"http://{self.hosts[i]}:{self.client_ports[i]}", f"http://{self.hosts[i]}:{peer_ports[i]}"
            command = self.networks.command(i) + ["etcd", "--name", f"m{i}", "--data-dir", f"{work}/m{i}", "--listen-client-urls", client, "--advertise-client-urls", client]
            command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", initial, "--pre-vote"]
            command += [] if self.is_durable else ["--unsafe-no-fsync"]
            self.members.append(Process(f"etcd m{i}", command, f"{work}/m{i}.log"))
        for member in self.members:
            member.start()
        self.wait(lambda: self.etcdctl("endpoint", "health").returncode == 0, PATIENCE, "etcd")
        self.links = [Link(host, port) for host, port in zip(self.hosts, self.client_ports)]
        urls = ",".join(f"http://127.0.0.1:{link.port}" for link in self.links)
        for i in range(servers):
            command = [berth, "server", "--data-dir", f"{work}/s{i}", "--listen", f"127.0.0.1:{self.server_ports[i]}", "--etcd-servers", urls]
            command += ["--advertise-address", f"127.0.0.{i + 1}", "--memory-limit", "4Gi", *self.more]
            self.clocks.append(Clock(f"{work}/s{i}.clock"))
            self.servers.append(Process(f"server {i}", command, f"{work}/s{i}.log", self.clocks[i].env()))
        self.servers[0].start()
        self.wait(lambda: self.ready(0, True), PATIENCE, "the first server")
        for i in range(1, servers):
            os.makedirs(f"{work}/s{i}", exist_ok=True)
            shutil.copytree(f"{work}/s0/pki", f"{work}/s{i}/pki")
            for name in ("server.crt", "server.key"):
                if os.path.exists(f"{work}/s{i}/pki/{name}"):
                    os.remove(f"{work}/s{i}/pki/{name}")
            self.servers[i].start()
            self.wait(lambda: self.ready(i), PATIENCE, f"server {i}")

    def raise_quota_alarm(self):
        """By the interface that a member raises it by itself with."""
        self.alarm("ACTIVATE")

    def clear_quota_alarm(self):
        self.alarm("DEACTIVATE")
        for server in self.servers:
            self.was_refused(server)

    @staticmethod
    def was_refused(server):
        """A server that came up during the alarm refuses to start, says so, and is started again, as by systemd."""
        if server.process.poll() is None or "NOSPACE" not in server.last_words():
            return False
        server.start()
        return True

    def alarm(self, action):
        import urllib.request

        member = json.loads(self.etcdctl("member", "list", "-w", "json").stdout)["members"][0]["ID"]
        for host, port in zip(self.hosts, self.client_ports):
            body = json.dumps({"action": action, "memberID": str(member), "alarm": "NOSPACE"}).encode()
            try:
                urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/v3/maintenance/alarm", body), timeout=5).read()
                return
            except OSError:
                pass

    def etcdctl(self, *words):
        endpoints = ",".join(f"{host}:{port}" for host, port in zip(self.hosts, self.client_ports))
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
        if self.was_refused(self.servers[i]):
            return False
        if self.servers[i].process.poll() is not None:
            raise RuntimeError(f"server {i} ended by itself with {self.servers[i].process.returncode}")
        if first and not os.path.exists(f"{self.work}/s0/admin.kubeconfig"):
            return False
        try:
            return self.request(i, "GET", "/readyz", timeout=2)[0] == 200
        except OSError:
            return False

    def request(self, i, method, path, body=None, timeout=20, kind=None):
        import http.client

        connection = http.client.HTTPSConnection("127.0.0.1", self.server_ports[i], context=self.tls(), timeout=timeout)
        try:
            headers = {"Content-Type": kind or "application/json"} if body is not None else {}
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
        self.metronome.close()
        for process in self.servers + self.members:
            process.kill()
        for link in getattr(self, "links", ()):
            link.close()
        if self.networks is not None:
            self.networks.close()
        if self.disk is not None:
            self.disk.close()
