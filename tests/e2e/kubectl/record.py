#!/usr/bin/env python3
"""Runs the groups of lines.py with a kubectl against a cluster; writes down what was printed, or compares it with what was written down.

    record.py record KUBECTL KUBECONFIG ANSWERS.jsonl.gz [GROUP,...]
    record.py replay KUBECTL KUBECONFIG ANSWERS.jsonl.gz [GROUP,...]

Without groups all are recorded, and those are replayed that were. One line an answer: [group, line, exit code, stdout, stderr]. Masked are ages, times, uids, addresses, revisions, ports, node names and the
random ends of names; columns are as wide as what is masked makes them, so runs of spaces count as two. The groups run beside each other.
"""
import difflib, gzip, json, os, re, shutil, subprocess, sys, tempfile, threading

sys.path.insert(0, os.path.dirname(__file__))
import lines

MASKS = [(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"), (r"https://127\.0\.0\.1:\d+", "URL"), (r"127\.0\.0\.1:\d+", "URL"),
         (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"), (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"), (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "IP"),
         (r"(?<![a-z])node-[123](?![0-9a-z])", "NODE"), (r"(resourceVersion\"?: ?\"?)\d+", r"\1N"), (r"(uid\"?: ?\"?)[0-9a-f]{8}\S*", r"\1UID"),
         (r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9])", "-xxxxx"), (r"([nN]odePort(\"?: ?|:.*?)\"?)3\d{4}", r"\1NODEPORT"), (r":3[0-2]\d{3}/", ":NODEPORT/"),
         (r"(?<![a-z0-9.])(<invalid>|\d+(s|m\d+s|m|h\d+m|h|d))( ago|(?=\s|$|\)| \(x))", "AGE"), (r"AGE ago", "AGE"), (r"\(x\d+ over AGE\)", "(xN)"), (r"/tmp/\S+", "TMP"), (r"(Time|Elapsed|took):? ?\d+\S*s", r"\1 SPAN"), (r"[IEWF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", ""),
         (r"(?<![a-zA-Z0-9])[bcdfghjklmnpqrstvwxz2456789]{7,10}(?![a-zA-Z0-9])", "HASH"), (r"(Resource Version: +)\d+", r"\1N"), (r"\.go:\d+\]", ".go]"), (r"-{3,}", "--"), (r"={3,}", "=="), (r"[ \t]{2,}", "  "), (r"[ \t]+\n", "\n")]
MASKS = [(re.compile(p, re.M), w) for p, w in MASKS]


def mask(text):
    for pattern, word in MASKS * 2:  # What stood between two of a kind is between words then.
        text = pattern.sub(word, text)
    return text.strip()


def run(kubectl, kubeconfig, name, answer):
    with tempfile.TemporaryDirectory(prefix="lines.") as work:
        for file, text in lines.FILES.items():
            with open(f"{work}/{file}", "w") as out:
                out.write(text)
        os.mkdir(f"{work}/.bin")
        os.symlink(os.path.realpath(kubectl), f"{work}/.bin/kubectl")
        shutil.copy(kubeconfig, f"{work}/.config")
        env = {"PATH": f"{work}/.bin:{os.environ['PATH']}", "KUBECONFIG": f"{work}/.config", "HOME": work, "LC_ALL": "C", "TZ": "UTC", "TMPDIR": "/tmp"}

        def sh(line):
            done = subprocess.run(["bash", "-c", line], cwd=work, env=env, capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL)
            return done.returncode, mask(done.stdout), mask(done.stderr)
        sh(f"kubectl config set-context --current --namespace={name}; kubectl create namespace {name}; kubectl wait --for=create sa/default cm/kube-root-ca.crt --timeout=30s")
        for number, line in enumerate(lines.GROUPS[name]):
            if line.startswith("~"):
                sh(line[1:])
            else:
                answer(name, line, *sh(line))
        sh(f"kubectl delete namespace {name} --wait=false")


def main():
    mode, kubectl, kubeconfig, file = sys.argv[1:5]
    known, lock, answers, bad = {}, threading.Lock(), {}, []
    if mode == "replay":
        for line in gzip.open(file, "rt"):
            g, l, *rest = json.loads(line)
            known.setdefault((g, l), []).append(rest)

    def answer(name, line, *said):
        with lock:
            if mode == "replay" and not known.get((name, line)):
                return  # A line that only leads to others.
            answers.setdefault(name, []).append([name, line, *said])
            if mode == "replay":
                wanted = known[name, line].pop(0)
                if wanted != list(said):
                    bad.append(line)
                    print(f"FAIL {name}: {line}")
                    for what, a, b in zip(("code", "stdout", "stderr"), wanted, said):
                        if a != b:
                            print("\n".join(f"     {d}" for d in list(difflib.unified_diff(str(a).splitlines(), str(b).splitlines(), "wanted " + what, "got", lineterm="", n=0))[:12]))
    names = sys.argv[5].split(",") if len(sys.argv) > 5 else sorted({key[0] for key in known}) or list(lines.GROUPS)
    waiting = list(names)

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                name = waiting.pop(0)
            run(kubectl, kubeconfig, name, answer)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    count = sum(len(a) for a in answers.values())
    if mode == "record":
        with gzip.GzipFile(file, "wb", mtime=0) as out:
            for name in names:
                for one in answers.get(name, []):
                    out.write((json.dumps(one, separators=(",", ":")) + "\n").encode())
    missing = [] if mode == "record" else [key for key, left in known.items() if left and key[0] in names]
    for key in missing:
        print(f"FAIL {key[0]}: {key[1]}: never asked")
    bad += missing
    count += len(missing)
    print(f"{count - len(bad)} passed, {len(bad)} failed")
    return 1 if bad or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
