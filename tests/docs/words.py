"""Whether commands and flags of berth that a page names are there: what --help says is the truth."""
import functools
import re
import subprocess

COMMAND = re.compile(r"(?:^|[\s;|&(])(?:kubectl |build/release/bin/)?berth\s+([a-z][a-z-]*)((?:\s+[^;|&#\n]+)?)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
BEFORE = {"--plugin", "--log-level", "--log-format", "--help", "--version", "--config"}


@functools.lru_cache(maxsize=None)
def help_of(berth, *command):
    done = subprocess.run([berth, *command, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout if done.returncode == 0 else ""


@functools.lru_cache(maxsize=None)
def names(berth):
    return set(re.findall(r"^  ([a-z][a-z-]*) {2,}", help_of(berth), re.M))


@functools.lru_cache(maxsize=None)
def flags_of(berth, command, second):
    text = help_of(berth, command)
    if second and (below := help_of(berth, command, second)):
        text += below
    return set(FLAG.findall(text)) | BEFORE


def wrong_in(berth, text):
    for command, rest in COMMAND.findall(text.replace("\\\n", " ")):
        if command == "master-restart":  # The documents' word: answered with what to do instead.
            continue
        if command not in names(berth):
            yield f"there is no `berth {command}`"
            continue
        rest = re.split(r"\s--\s", rest)[0]
        # What stands behind another flag as its value (--kubelet-arg 'a=b', --controller-arg …) is somebody else's.
        second = re.match(r"\s+([a-z][a-z-]*)(?=\s|$)", rest)
        for flag in FLAG.findall(re.sub(r"'[^']*'|\"[^\"]*\"", "", rest)):
            if flag not in flags_of(berth, command, second.group(1) if second else ""):
                yield f"`berth {command}` has no {flag}"


def wrong_words(berth, page):
    """(line, what is wrong) of a page's commands, between backticks and in fences."""
    found = []
    for line, span in page.spans():
        found += [(line, what) for what in wrong_in(berth, span)]
    for fence in page.fences():
        if fence.language in ("sh", "console"):
            for line, command, _ in fence.steps():
                found += [(line, what) for what in wrong_in(berth, command.split(" #")[0])]
    return found
