#!/usr/bin/python3
"""pairs.py BEFORE AFTER: every promise of bench/promises.txt by two builds in turn, and a table of ratios (bench/all.sh builds both).

BEFORE and AFTER are build directories with bin/berth-bench and bin/berth.
  --rounds N     pairs of a promise (3): the order within a pair turns each time
  --minutes N    no promise is begun after that (60); what was left out is said
  --only REGEX   some promises      --count   also instructions, where `perf stat` or valgrind can tell them
  --record       a line a promise into bench/history.jsonl

A ratio is after / before, of the middle pair; above one is worse (figures of which more is better are turned round). WORSE and better stand where
every pair says so by a tenth or more. Processor time is the benchmark's own; seconds and milliseconds are the wall's, and depend on who else runs.
Ends with 1 where something is WORSE or failed."""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
MORE_IS_BETTER = re.compile(r"_per_s$|_per_second$|_hit_rate$")
LESS_IS_BETTER = re.compile(r"(^|_)(seconds|s|ms|us|ns|mb|kb|bytes|percent|instructions)$|_per_pod$|_percent_of_core$")
# What says how much was done, or of what the machine was busy with.
TOO_SMALL = {"seconds": 0.05, "cpu_s": 0.05}
BY = 1.10


class Promise:
    def __init__(self, line):
        self.command, self.scale, self.count = None, "1", None
        if line.startswith("!"):
            self.command = line[1:].strip()
            self.name = self.command.replace("{bin}/", "")
            return
        words = line.split()
        self.name, self.scale = words[0], words[1]
        if len(words) == 4 and words[2] == "count":
            self.count = words[3]
        elif len(words) != 2:
            sys.exit(f'bench/promises.txt: "{line}": SCENARIO SCALE [count SCALE] is wanted')

    def words(self, build, scale=None):
        if self.command:
            return self.command.replace("{bin}", f"{build}/bin").split()
        return [f"{build}/bin/berth-bench", self.name, "--json", "--scale", scale or self.scale]


def run(words):
    """The figures of one run: of its last line of JSON, and its processor seconds. None and why where it failed."""
    before = os.times()
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    after = os.times()
    lines = [line for line in done.stdout.split("\n") if line.startswith("{")]
    if done.returncode or not lines:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing was said").split("\n")
        return None, f"ended with {done.returncode}: {said[-1][:200]}"
    figures = {key: value for key, value in json.loads(lines[-1]).items() if isinstance(value, (int, float)) and not isinstance(value, bool)}
    figures["cpu_s"] = after.children_user + after.children_system - before.children_user - before.children_system
    return figures, None


def counter():
    """How instructions are counted here: words before the command, and what finds the number in what was said on standard error."""
    if shutil.which("perf"):
        tried = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True)
        if re.search(r"^\d+,,instructions", tried.stderr, re.M):
            return ["perf", "stat", "-x,", "-e", "instructions:u"], re.compile(r"^(\d+),,instructions", re.M)
    if shutil.which("valgrind"):
        return ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"], re.compile(r"I\s+refs:\s+([\d,]+)")
    return None, None


def instructions(promise, build, words, found):
    done = subprocess.run(words + promise.words(build, promise.count), capture_output=True, text=True, cwd=ROOT)
    number = found.search(done.stderr)
    return int(number[1].replace(",", "")) if number and done.returncode == 0 else None


def ratio(key, before, after):
    """Above one: worse. None: this figure says nothing."""
    if before <= 0 or after <= 0 or (before < TOO_SMALL.get(key, 0) and after < TOO_SMALL.get(key, 0)):
        return None
    if MORE_IS_BETTER.search(key):
        return before / after
    return after / before if LESS_IS_BETTER.search(key) else None


def compare(pairs):
    """A row for each figure that both builds tell: key, middle before, middle after, middle ratio, verdict."""
    rows = []
    for key in pairs[0][0]:
        both = [(a[key], b[key]) for a, b in pairs if key in a and key in b]
        ratios = [r for r in (ratio(key, a, b) for a, b in both) if r is not None]
        if not ratios:
            continue
        verdict = "WORSE" if min(ratios) >= BY else "better" if max(ratios) <= 1 / BY else ""
        rows.append((key, statistics.median(a for a, _ in both), statistics.median(b for _, b in both), statistics.median(ratios), verdict))
    return rows


def shown(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_rows(name, rows):
    for key, before, after, by, verdict in rows:
        line = f"{name:<44.44} {key:<26} {shown(before):>16} {shown(after):>16} {by:>6.2f} {verdict}"
        red, green, end = ("\033[31m", "\033[32m", "\033[0m") if sys.stdout.isatty() else ("", "", "")
        print({"WORSE": red, "better": green}.get(verdict, "") + line.rstrip() + (end if verdict else ""), flush=True)
        name = ""


def commit_of(build):
    done = subprocess.run(["git", "-C", build, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def record(promise, rows, before, after, rounds):
    line = {"date": time.strftime("%Y-%m-%d"), "commit": commit_of(after), "name": promise.name + ("" if promise.scale == "1" else f" --scale {promise.scale}"),
            "pairs": rounds, "against": commit_of(before), "ratios": {row[0]: round(row[3], 3) for row in rows}, "after": {row[0]: row[2] for row in rows}}
    with open(f"{ROOT}/bench/history.jsonl", "a", encoding="utf-8") as history:
        history.write(json.dumps(line, separators=(",", ":")) + "\n")


def measure(promise, before, after, rounds, counting):
    pairs = []
    for turn in range(rounds):
        order = (before, after) if turn % 2 == 0 else (after, before)
        told = {}
        for build in order:
            told[build], why = run(promise.words(build))
            if told[build] is None:
                return None, f"{'before' if build == before else 'after'} {why}"
        pairs.append((told[before], told[after]))
    if promise.count and counting[0]:
        counts = [instructions(promise, build, *counting) for build in (before, after)]
        if None not in counts:
            pairs[0][0]["instructions"], pairs[0][1]["instructions"] = counts
    return compare(pairs), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--only", default="")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    before, after = os.path.abspath(options.before), os.path.abspath(options.after)
    for build in (before, after):
        for program in ("berth", "berth-bench"):
            if not os.access(f"{build}/bin/{program}", os.X_OK):
                sys.exit(f"{build}/bin/{program} is not there: build it (ninja -C {build} {program}), or let bench/all.sh do so")
    with open(f"{ROOT}/bench/promises.txt", encoding="utf-8") as file:
        promises = [Promise(line.strip()) for line in file if line.strip() and not line.startswith("#")]
    promises = [promise for promise in promises if re.search(options.only, promise.name)]
    counting = counter() if options.count else (None, None)
    if options.count and not counting[0]:
        print("instructions are not counted: neither `perf stat` nor valgrind can here")

    print(f"before: {commit_of(before)}  after: {commit_of(after)}  pairs: {options.rounds}\n")
    print(f"{'promise':<44} {'figure':<26} {'before':>16} {'after':>16} {'ratio':>6}")
    end, worse, failed, left = time.monotonic() + options.minutes * 60, 0, 0, []
    for promise in promises:
        if time.monotonic() > end:
            left.append(promise.name)
            continue
        rows, why = measure(promise, before, after, options.rounds, counting)
        if rows is None:
            failed += 1
            print(f"{promise.name:<44} FAILED: {why}", flush=True)
            continue
        print_rows(promise.name, rows)
        worse += any(row[4] == "WORSE" for row in rows)
        if options.record:
            record(promise, rows, before, after, options.rounds)
    if left:
        print(f"\nno time was left for {len(left)}: {', '.join(left)}")
    print(f"\n{len(promises) - len(left) - failed} promises compared, {worse} worse, {failed} failed")
    return 1 if worse or failed else 0


if __name__ == "__main__":
    sys.exit(main())
