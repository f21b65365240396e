#!/usr/bin/env python3
"""check.py BERTH [PAGE.md...]: types what the pages show, in their order, and holds what comes against them. `make docs`, `make readme`.

Each page gets a home, a folder with what a fresh clone has, and processes and a network of its own (unshare: loopback alone, every port free,
nothing left running), and a cluster of `berth up --nodes 9` with KUBECONFIG set, unless a comment of the page says otherwise:

    <!-- check: no cluster -->                 the page starts its own
    <!-- check: up --nodes 3 FLAGS -->         the cluster has these flags
    <!-- check: run COMMAND -->                typed here, and not shown
    <!-- check: until COMMAND -->              typed again until it succeeds

What stands behind the backticks of a fence says what is done with it:

    console      "$ " begins a command; the lines below it are what it prints (… is any text, alone any lines; ages, addresses, generated names and
                 the home do not count). With `fails` the commands end with another code than 0.
    sh           every command ends with 0
    background   (beside either) the commands go on; those of console until they have printed what is shown
    yaml         a Kubernetes object is applied (dry run, by the server), a configuration is what --validate takes; `scenario`, `question` are
                 simulate's and what-if's; `part` says that it is not a whole
    json         is JSON; `part` as above
    notest: WHY  nobody can run it here; that its words are berth's is looked at all the same

Commands and flags of berth are looked up in --help wherever they stand between backticks."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import words  # noqa: E402
import yaml_fences  # noqa: E402
from page import Fence, Page  # noqa: E402
from session import READS, Session, shows  # noqa: E402

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PATIENCE = 60
LONG = 300


class Check:
    def __init__(self, berth, path):
        self.berth, self.page = berth, Page(path)
        self.name = os.path.relpath(path, ROOT)
        self.passed = self.failed = 0
        self.folder = tempfile.mkdtemp(prefix="berth-docs.")
        self.session = None

    def ok(self):
        self.passed += 1

    def bad(self, line, what, printed=""):
        self.failed += 1
        print(f"FAIL {self.name}:{line}: {what}")
        for text in printed.rstrip("\n").split("\n")[:30] if printed else []:
            print("     " + text)
        sys.stdout.flush()

    def run(self):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        try:
            self.prepare()
            for item in self.page.items:
                if isinstance(item, Fence):
                    self.fence(item)
                else:
                    self.comment(*item)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.passed, self.failed

    def prepare(self):
        home, clone, programs = (os.path.join(self.folder, name) for name in ("home", "clone", "bin"))
        for folder in (home, clone, programs):
            os.mkdir(folder)
        names = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True).stdout
        have = b"\0".join(name for name in names.split(b"\0") if name and os.path.exists(os.path.join(ROOT.encode(), name)))
        packed = subprocess.Popen(["tar", "--null", "-T", "-", "-cf", "-"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        unpacked = subprocess.Popen(["tar", "-xf", "-"], cwd=clone, stdin=packed.stdout)
        packed.stdin.write(have)
        packed.stdin.close()
        unpacked.wait()
        # As `make build` leaves it.
        built = os.path.join(clone, "build/release")
        os.makedirs(built)
        os.symlink(os.path.dirname(self.berth), os.path.join(built, "bin"))
        os.symlink(self.berth, os.path.join(programs, "berth"))
        environment = {"HOME": home, "PATH": programs + ":" + os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "USER": os.environ.get("USER", "you"),
                       "KUBECACHEDIR": os.path.join(self.folder, "cache")}
        self.session = Session(clone, environment)
        said = [text for _, text in (item for item in self.page.items if not isinstance(item, Fence)) if text.startswith(("up ", "no cluster"))]
        if said and said[0] == "no cluster":
            return
        flags = said[0].removeprefix("up ") if said else "--nodes 9"
        so_far = self.session.start(f"berth up {flags}")
        if not self.session.wait(so_far, ["export KUBECONFIG=…"], PATIENCE):
            self.bad(1, f"berth up {flags} does not start", so_far())
            return
        self.session.run("export KUBECONFIG=$HOME/.berth/admin.kubeconfig", 5)
        self.session.run("kubectl wait --for=condition=Ready node --all --timeout=60s", 60)

    def comment(self, line, text):
        verb, _, command = text.partition(" ")
        if verb == "run":
            code, printed = self.session.run(command, LONG)
            self.ok() if code == 0 else self.bad(line, f"ends with {code}: {command}", printed)
        elif verb == "until":
            end = time.monotonic() + PATIENCE
            code, printed = self.session.run(command, PATIENCE)
            while code != 0 and time.monotonic() < end:
                time.sleep(0.2)
                code, printed = self.session.run(command, PATIENCE)
            self.ok() if code == 0 else self.bad(line, f"never: {command}", printed)
        elif verb not in ("up", "no"):
            self.bad(line, f"no word to the checker: {text}")

    def fence(self, fence):
        if fence.language in ("sh", "console"):
            for line, command, wanted in fence.steps():
                if fence.notest is None:
                    self.step(fence, line, command, wanted)
        elif "part" in fence.marks:
            yaml_fences.parse_part(self, fence)
        elif fence.language == "json":
            try:
                json.loads("\n".join(fence.lines))
                self.ok()
            except json.JSONDecodeError as error:
                self.bad(fence.line, f"no JSON: {error}")
        elif fence.language == "yaml":
            yaml_fences.check(self, fence)

    def step(self, fence, line, command, wanted):
        if "background" in fence.marks:
            so_far = self.session.start(command)
            if wanted and not self.session.wait(so_far, wanted, PATIENCE):
                return self.bad(line, f"not as shown: {command}", so_far())
            return self.ok()
        end = time.monotonic() + PATIENCE
        while True:
            code, printed = self.session.run(command, LONG)
            right = code is not None and (code != 0) == ("fails" in fence.marks)
            alike = not wanted or shows(wanted, printed, self.session.home, whole=True)
            if right and alike:
                return self.ok()
            if not READS.match(command) or time.monotonic() > end:
                what = "not as shown" if right else f"ends with {code}" if code is not None else "does not end"
                return self.bad(line, f"{what}: {command}", printed)
            time.sleep(0.3)


def alone(berth, path):
    """The same for one page, in namespaces of its own: (passed, failed)."""
    command = ["unshare"] + ([] if os.geteuid() == 0 else ["--map-root-user"]) + ["--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
    done = subprocess.run(command + [sys.executable, os.path.abspath(__file__), "--inside", berth, path], stdout=subprocess.PIPE, text=True)
    lines = done.stdout.rstrip("\n").split("\n")
    counts = re.fullmatch(r"(\d+) passed, (\d+) failed", lines[-1])
    print("\n".join(lines[:-1] if counts else lines), end="\n" if len(lines) > 1 or not counts else "")
    return (int(counts.group(1)), int(counts.group(2))) if counts else (0, 1)


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--inside":
        passed, failed = Check(arguments[1], arguments[2]).run()
        print(f"{passed} passed, {failed} failed")
        return 0
    berth = os.path.realpath(arguments[0])
    pages = [os.path.abspath(path) for path in arguments[1:]]
    passed = failed = 0
    for path in pages:
        began = time.monotonic()
        ok, bad = alone(berth, path)
        wrong = words.wrong_words(berth, Page(path))
        for line, what in wrong:
            print(f"FAIL {os.path.relpath(path, ROOT)}:{line}: {what}")
        passed, failed = passed + ok + 1, failed + bad + len(wrong)
        print(f"{os.path.relpath(path, ROOT):32} {ok:4} passed {bad + len(wrong):4} failed {time.monotonic() - began:5.0f}s", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
