"""Two schedulers and two controller managers over the servers of a fault run: who leads is read from their own words, what happened to the Leases
from a watch. Never may a Lease change hands before it ran out or was given back, and work goes on when a leader dies."""
import datetime, http.client, json, re, signal, subprocess, threading, time, typing
from cluster import Clock, Process

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
PODS = "/api/v1/namespaces/default/pods"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
KINDS = {"scheduler": "kube-scheduler", "controllers": "kube-controller-manager"}


class Resumption(typing.NamedTuple):
    role: str
    taken: float  # Seconds from a leader's end until another had the Lease …
    worked: float  # … and until it had done something.
    still: float  # Seconds of these in which the machine gave nobody here a processor.


class Components:
    def __init__(self, cluster, note):
        self.cluster, self.note, self.stopping, self.serial = cluster, note, False, 0
        self.resumed = []  # Of each leader's end: Resumption.
        self.handovers, self.leases, self.clocks, self.jumped = 0, {}, [], 0.0
        self.processes = {role: [] for role in KINDS}
        for role in KINDS:
            for i in range(2):
                command = [cluster.berth, role, "--kubeconfig", f"{cluster.work}/s{i + 1}/admin.kubeconfig", "--secure-port", "0"]
                clock = Clock(f"{cluster.work}/{role}{i}.clock")
                process = Process(f"{role} {i}", command, f"{cluster.work}/{role}{i}.log", clock.env())
                self.clocks.append(clock)
                process.start()
                self.processes[role].append(process)
        status, made = cluster.request(0, "POST", "/api/v1/nodes", self.node())
        assert status == 201, made
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        for role in KINDS:
            cluster.wait(lambda: self.leader(role) is not None, 60, f"a leading {role}")

    @staticmethod
    def node():
        room = {"cpu": "10000", "memory": "100Ti", "pods": "100000"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": None, "lastTransitionTime": None}
        return {"metadata": {"name": "n1"}, "status": {"capacity": room, "allocatable": room, "conditions": [ready]}}

    def leader(self, role):
        """The one of the processes that said last that it leads, and lives."""
        lease = self.leases.get(KINDS[role])
        for process in self.processes[role]:
            words = open(process.log, errors="replace").read()
            led = re.findall(r"(\S+) leads kube-system/" + KINDS[role], words)
            if led and lease and lease["spec"].get("holderIdentity") == led[-1]:
                return process
        return None

    def await_renewal(self, role):
        """The faults before this one are over for who leads: it renews its Lease. Two faults at once are not what the time is measured of."""
        name = KINDS[role]

        def revision():
            self.supervise(role)
            return self.leases[name]["metadata"]["resourceVersion"] if name in self.leases else None

        for _ in range(2):  # The first may have been on its way already.
            before = revision()
            try:
                self.cluster.wait(lambda: revision() != before, 60, f"a renewal by the {role}")
            except RuntimeError as error:
                return self.note(str(error))

    def kill_leader(self, role):
        self.await_renewal(role)
        process = self.leader(role)
        if process is None:
            return
        process.kill()
        self.expect_work(role, process)
        process.start()

    def freeze_leader(self, role):
        self.await_renewal(role)
        process = self.leader(role)
        if process is None:
            return
        process.signal(signal.SIGSTOP)
        self.expect_work(role)
        process.signal(signal.SIGCONT)

    def jump_clocks(self, seconds):
        for clock in self.clocks:
            clock.jump(seconds)
        self.jumped = time.monotonic()

    def supervise(self, role, but=None):
        """Who lost the leadership ends, as Kubernetes' components do, and is started again, as by systemd."""
        for process in self.processes[role]:
            if process is not but and process.process.poll() is not None:
                process.start()

    def expect_work(self, role, killed=None):
        """How long it takes until a new pod has a node, or a new ReplicaSet its pod."""
        self.serial += 1
        name, began = f"work-{self.serial}", time.monotonic()
        spec = {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"operator": "Exists"}], "automountServiceAccountToken": False}
        if role == "scheduler":
            self.insist("POST", PODS, {"metadata": {"name": name}, "spec": spec})
            done = lambda: self.get(f"{PODS}/{name}").get("spec", {}).get("nodeName")
        else:
            template = {"metadata": {"labels": {"of": name}}, "spec": spec}
            self.insist("POST", SETS, {"metadata": {"name": name}, "spec": {"replicas": 1, "selector": {"matchLabels": {"of": name}}, "template": template}})
            done = lambda: self.get(f"{PODS}?labelSelector=of%3D{name}").get("items")
        stood, taken, holder = self.cluster.metronome.stood_still(), None, lambda: self.leases.get(KINDS[role], {}).get("spec", {}).get("holderIdentity")
        was = holder()
        while not done():
            taken = taken or (time.monotonic() - began if holder() != was else None)
            if time.monotonic() - began > 60 + self.cluster.metronome.stood_still() - stood:
                return self.note(f"no {role} worked for 60 s after its leader's end")
            self.supervise(role, killed)
            time.sleep(0.2)  # A client's pace.
        worked = time.monotonic() - began
        self.resumed.append(Resumption(role, taken or worked, worked, self.cluster.metronome.stood_still() - stood))

    def insist(self, method, path, body):
        for attempt in range(40):
            for server in range(len(self.cluster.servers)):
                try:
                    if self.cluster.request(server, method, path, body, timeout=5)[0] in (200, 201, 409):
                        return
                except OSError:
                    pass
            time.sleep(0.5)
        self.note(f"{method} {path} was not answered by any server")

    def get(self, path):
        for server in range(len(self.cluster.servers)):
            try:
                status, answer = self.cluster.request(server, "GET", path, timeout=5)
                if status == 200:
                    return answer
            except (OSError, ValueError):
                pass
        return {}

    def watch(self):
        """What becomes of the Leases, from whichever server answers."""
        server = 0
        while not self.stopping:
            server = (server + 1) % len(self.cluster.servers)
            connection = http.client.HTTPSConnection("127.0.0.1", self.cluster.server_ports[server], context=self.cluster.tls(), timeout=10)
            try:
                # From the beginning each time: what was missed is seen as one change, which may skip a renewal and never makes one up.
                connection.request("GET", f"{LEASES}?watch=1&timeoutSeconds=60")
                answer = connection.getresponse()
                while answer.status == 200 and not self.stopping and (line := answer.readline()):
                    self.hear(json.loads(line))
            except (OSError, ValueError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(0.1)

    def hear(self, event):
        lease = event.get("object", {})
        name = lease.get("metadata", {}).get("name")
        if name not in KINDS.values():
            return
        before, self.leases[name] = self.leases.get(name), lease
        if before is None or int(lease["metadata"]["resourceVersion"]) <= int(before["metadata"]["resourceVersion"]):
            return
        was, now = before["spec"].get("holderIdentity"), lease["spec"].get("holderIdentity")
        if not was or not now or was == now:
            return
        self.handovers += 1
        if time.monotonic() - self.jumped < 40:
            return  # What they wrote is of different times.
        ran_out = self.time(before["spec"]["renewTime"]) + datetime.timedelta(seconds=before["spec"]["leaseDurationSeconds"])
        if self.time(lease["spec"]["acquireTime"]) < ran_out - datetime.timedelta(seconds=0.5):
            self.note(f"{now} took {name} at {lease['spec']['acquireTime']} from {was}, who had renewed it at {before['spec']['renewTime']}")

    @staticmethod
    def time(text):
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))

    def finish(self):
        for role in KINDS:
            self.expect_work(role)
            if len(self.resumed) > 1:
                self.resumed.pop()
        self.stopping = True

    def close(self):
        for processes in self.processes.values():
            for process in processes:
                process.kill()
