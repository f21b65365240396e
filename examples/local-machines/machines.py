#!/usr/bin/env python3
"""Machines of a MachineSet as real node agents of this host: one network namespace, one `berth node` with a containerd of its own each.

  sudo ./machines.py network                    the bridge 10.89.0.1/24 that they and the API server meet on
  sudo ./machines.py run BERTH DIR [IMAGE.tar]  follows Machines whose spec.providerSpec.value.kind is LocalMachine ($KUBECONFIG)
  sudo ./machines.py clean                      the bridge goes

A Machine becomes a namespace berth-NAME, an agent in it (its log and data: DIR/NAME) and a Node; a Machine that is deleted is taken down in the
opposite order, and only then goes. Images that no registry has are put into every new node from IMAGE.tar.
"""
import json
import os
import signal
import subprocess
import sys
import time

BRIDGE, PREFIX = "berth-lm", "10.89.0."
FINALIZER = "local.machine.berth.dev"
running = {}  # "namespace/name": its agent
stopping = False


def run(*command, check=True, quiet=False):
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    if not check and done.returncode != 0 and not quiet:
        print(f"{' '.join(command)}: {done.stderr.strip()}", flush=True)
    return done.stdout


def kubectl(*arguments, check=True, quiet=False):
    return run("kubectl", *arguments, check=check, quiet=quiet)


def make_network():
    run("ip", "link", "add", BRIDGE, "type", "bridge", check=False, quiet=True)
    run("ip", "address", "replace", f"{PREFIX}1/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    print(f"{BRIDGE} is {PREFIX}1/24; start the control plane on it: berth up --listen {PREFIX}1:6443 --real-node off")


def free_address():
    """The host part of an address that no namespace has."""
    taken = {1}
    for line in run("ip", "netns", "list").split("\n"):
        if line.startswith("berth-"):
            shown = run("ip", "-n", line.split()[0], "-4", "-o", "address", "show", "dev", "eth0", check=False, quiet=True)
            taken.update(int(word.split("/")[0].rsplit(".", 1)[1]) for word in shown.split() if word.startswith(PREFIX))
    return next(number for number in range(2, 255) if number not in taken)


class Agent:
    def __init__(self, machine, berth, directory, image):
        meta = machine["metadata"]
        self.name, self.key = meta["name"], f"{meta['namespace']}/{meta['name']}"
        self.space, self.directory, self.berth, self.image = f"berth-{self.name}", os.path.join(directory, self.name), berth, image
        self.address, self.process = None, None
        self.labels = machine["spec"].get("metadata", {}).get("labels", {})
        self.taints = [f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in machine["spec"].get("taints", [])]

    def start(self):
        number = free_address()
        self.address = f"{PREFIX}{number}"
        link = f"blm{number}"
        run("ip", "netns", "add", self.space)
        run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        run("ip", "link", "set", link, "master", BRIDGE, "up")
        for command in (["link", "set", "lo", "up"], ["address", "add", f"{self.address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                        ["route", "add", "default", "via", f"{PREFIX}1"]):
            run("ip", "-n", self.space, *command)
        os.makedirs(self.directory, exist_ok=True)
        labels = ",".join(f"{key}={value}" for key, value in self.labels.items())
        # Only the network is the machine's own: with `ip netns exec` the cgroups would be out of sight.
        command = ["nsenter", f"--net=/run/netns/{self.space}", self.berth, "node", "--own-runtime", "--node-name", self.name, "--root-dir",
                   self.directory, "--address", self.address, "--node-cgroup", f"/berth-machines/{self.name}", "--kubelet-arg", "fail-swap-on=false"]
        command += ["--node-labels", labels] if labels else []
        for taint in self.taints:
            command += ["--register-with-taints", taint]
        self.process = subprocess.Popen(command, stdout=open(os.path.join(self.directory, "agent.log"), "a"), stderr=subprocess.STDOUT,
                                        start_new_session=True)
        print(f"{self.name}: agent {self.process.pid} at {self.address}", flush=True)

    def put_image(self):
        """Into a containerd that is up; true when there is nothing left to do."""
        if self.image is None:
            return True
        socket = os.path.join(self.directory, "runtime", "containerd.sock")
        if not os.path.exists(socket):
            return False
        done = subprocess.run(["ctr", "-a", socket, "-n", "k8s.io", "images", "import", "--base-name", "berth.local/" + image_name(self.image),
                               self.image], capture_output=True)
        if done.returncode == 0:
            self.image = None
        return done.returncode == 0

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if os.path.isdir(self.directory):
            run("nsenter", f"--net=/run/netns/{self.space}", self.berth, "node", "reset", "--root-dir", self.directory, check=False)
        run("ip", "netns", "delete", self.space, check=False, quiet=True)
        print(f"{self.name}: gone", flush=True)


def image_name(path):
    return os.path.basename(path).removesuffix(".tar")


def patch(machine, body, status=False):
    meta = machine["metadata"]
    kubectl("-n", meta["namespace"], "patch", "machines.machine.openshift.io", meta["name"], "--type", "merge", "-p", json.dumps(body),
            *(["--subresource", "status"] if status else []), check=False)


def finalizers_without(machine):
    return [one for one in machine["metadata"].get("finalizers", []) if one != FINALIZER]


def tell(machine, agent):
    """The Node says whose it is, the Machine which Node it became."""
    node = kubectl("get", "node", agent.name, "-o", "json", check=False, quiet=True)
    phase, status = "Provisioning", {}
    if node:
        node = json.loads(node)
        if "machine.openshift.io/machine" not in node["metadata"].get("annotations", {}):
            kubectl("annotate", "node", agent.name, f"machine.openshift.io/machine={agent.key}", check=False)
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions", []))
        phase = "Running" if ready else "Provisioned"
        status["nodeRef"] = {"kind": "Node", "name": agent.name, "uid": node["metadata"]["uid"]}
    if machine.get("status", {}).get("phase") != phase:
        patch(machine, {"status": {**status, "phase": phase}}, status=True)


def look(berth, directory, image):
    machines = json.loads(kubectl("get", "machines.machine.openshift.io", "-A", "-o", "json"))["items"]
    local = [one for one in machines if one["spec"].get("providerSpec", {}).get("value", {}).get("kind") == "LocalMachine"]
    for machine in local:
        meta = machine["metadata"]
        key = f"{meta['namespace']}/{meta['name']}"
        agent = running.get(key)
        if "deletionTimestamp" in meta:
            if agent is not None or FINALIZER in meta.get("finalizers", []):
                (agent or Agent(machine, berth, directory, None)).stop()
                running.pop(key, None)
                kubectl("delete", "node", meta["name"], "--ignore-not-found", "--wait=false", check=False)
                patch(machine, {"metadata": {"finalizers": finalizers_without(machine)}})
            continue
        if FINALIZER not in meta.get("finalizers", []):
            patch(machine, {"metadata": {"finalizers": finalizers_without(machine) + [FINALIZER]}})
        if agent is None or agent.process.poll() is not None:
            if agent is not None:
                print(f"{agent.name}: its agent ended, see {agent.directory}/agent.log; it is started again", flush=True)
            run("ip", "netns", "delete", f"berth-{meta['name']}", check=False, quiet=True)
            agent = running[key] = Agent(machine, berth, directory, image)
            agent.start()
        agent.put_image()
        tell(machine, agent)


def stop(*_):
    global stopping
    stopping = True


def follow(berth, directory, image=None):
    os.makedirs(directory, exist_ok=True)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    last = ""
    while not stopping:
        try:
            look(os.path.abspath(berth), os.path.abspath(directory), image and os.path.abspath(image))
            last = ""
        except (RuntimeError, json.JSONDecodeError) as problem:  # The API server may be away for a while.
            if str(problem) != last:
                print(problem, flush=True)
            last = str(problem)
        time.sleep(1)
    for agent in running.values():
        agent.stop()


def main():
    if len(sys.argv) == 2 and sys.argv[1] == "network":
        make_network()
    elif len(sys.argv) == 2 and sys.argv[1] == "clean":
        run("ip", "link", "delete", BRIDGE, check=False)
    elif len(sys.argv) in (4, 5) and sys.argv[1] == "run":
        follow(*sys.argv[2:])
    else:
        sys.exit(__doc__)


main()
