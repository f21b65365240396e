"""A shell in which a page's commands are typed one after the other, in a home of its own; and how what they print is held against a page."""
import os
import re
import subprocess
import threading
import time

HOME_ON_PAGES = "/home/you"
MASKS = [
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\btoken=\w+"), "token=TOKEN"),
    (re.compile(r"\b(\d+\.){3}\d+(:\d+)?\b"), "ADDRESS"),
    (re.compile(r"\b(\d+(\.\d+)?(ns|µs|us|ms|s|m|h|d))+\b"), "AGE"),
    (re.compile(r"\brevision \d+"), "revision N"),
    (re.compile(r"-[bcdf-hj-np-tv-z2456789]{6,10}-[bcdf-hj-np-tv-z2456789]{5}\b"), "-HASH"),
    (re.compile(r"[ \t]+"), " "),
]
# What only reads may be typed again until it shows what is still on its way.
READS = re.compile(r"^(kubectl( -n \S+)? (get|describe|top|berth)|berth (get|describe|explain|what-if|capacity|pack|check|place))\b")


def masked(text, home):
    text = text.replace(home, "~").replace(HOME_ON_PAGES, "~").replace("~/", "HOME/")
    for pattern, name in MASKS:
        text = pattern.sub(name, text)
    return text.strip()


def pattern_of(wanted, home):
    """A page's lines as a regular expression: … alone is any lines, … inside a line any text."""
    parts = []
    for line in wanted:
        if line.strip() in ("…", "..."):
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(re.escape(masked(line, home)).replace("…", ".*") + r"\n")
    return re.compile("".join(parts))


def shows(wanted, printed, home, whole):
    """Whether what was printed is what the page shows; without `whole` more may follow."""
    lines = [masked(line, home) for line in printed.rstrip("\n").split("\n")]
    wanted = list(wanted)
    while wanted and not wanted[-1].strip():
        wanted.pop()
    text = "\n".join(lines) + "\n"
    pattern = pattern_of(wanted, home)
    return bool(pattern.fullmatch(text) if whole else pattern.match(text) or pattern.search(text))


class Session:
    def __init__(self, folder, environment):
        self.folder, self.home, self.count = folder, environment["HOME"], 0
        os.makedirs(os.path.join(folder, ".steps"), exist_ok=True)
        self.shell = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, env=environment, stdin=subprocess.PIPE, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def _file(self, ending):
        return os.path.join(self.folder, ".steps", str(self.count) + ending)

    def run(self, command, seconds):
        """(exit code, what was printed); code None: it did not end in time."""
        self.count += 1
        script, printed = self._file(".sh"), self._file(".out")
        with open(script, "w", encoding="utf-8") as file:
            file.write(command + "\n")
        self.shell.stdin.write(f". {script} >{printed} 2>&1 </dev/null; echo \"$?\"\n")
        self.shell.stdin.flush()
        answer = []
        reader = threading.Thread(target=lambda: answer.append(self.shell.stdout.readline()), daemon=True)
        reader.start()
        reader.join(seconds)
        with open(printed, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if not answer or not answer[0].strip():
            return None, text
        return int(answer[0]), text

    def start(self, command):
        """Starts what goes on by itself; returns the function that tells what it has printed so far."""
        self.count += 1
        script, printed = self._file(".sh"), self._file(".out")
        with open(script, "w", encoding="utf-8") as file:
            file.write("exec " + command + "\n")
        self.shell.stdin.write(f"setsid bash {script} >{printed} 2>&1 </dev/null & echo 0\n")
        self.shell.stdin.flush()
        self.shell.stdout.readline()

        def so_far():
            try:
                with open(printed, encoding="utf-8", errors="replace") as file:
                    return file.read()
            except FileNotFoundError:
                return ""
        return so_far

    def wait(self, so_far, wanted, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if so_far() and shows(wanted, so_far(), self.home, whole=False):
                return True
            time.sleep(0.1)
        return False
