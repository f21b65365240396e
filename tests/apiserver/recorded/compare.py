#!/usr/bin/env python3
"""Sends the recorded stories to two servers and shows what they answer differently.

usage: compare.py LEFT RIGHT [STORY-PREFIX]
LEFT, RIGHT: a berth binary, of which a server is started on a free port of the loopback for the run, or URL,TOKEN of one that is there.
"""
import gzip
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse

MASKS = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r'"resourceVersion":\s?"[0-9]+"'), '"resourceVersion":"N"'),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z"), "TIME"),
    (re.compile(r'"([0-9]+m)?[0-9]+s"'), '"AGE"'),
    (re.compile(r"\b10\.(9[6-9]|10[0-9]|11[01])\.[0-9]+\.[0-9]+\b"), "ADDRESS"),
    (re.compile(r"\b3[0-2][0-9]{3}\b"), "PORT"),
    (re.compile(r"stem-[a-z0-9]{5}"), "stem-NAME"),
    (re.compile(r'"continue":"[^"]*"'), '"continue":"C"'),
]


class Server:
    def __init__(self, where):
        self.process, self.connection = None, None
        if "," in where:
            url, self.token = where.split(",", 1)
        else:
            url, self.token = self.start(where)
        self.url = urllib.parse.urlsplit(url)

    def start(self, binary):
        self.work = tempfile.mkdtemp(prefix="berth-compare.")
        tokens = os.path.join(self.work, "tokens.csv")
        with open(tokens, "w", encoding="utf-8") as out:
            out.write('compare-token,recorder,1,"system:masters"\n')
        os.chmod(tokens, 0o600)
        log = open(os.path.join(self.work, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [binary, "server", "--data-dir", self.work, "--listen", "127.0.0.1:0", "--token-auth-file", tokens],
            stdout=log, stderr=subprocess.STDOUT)
        for _ in range(600):
            with open(log.name, encoding="utf-8") as text:
                found = re.search(r"https://127\.0\.0\.1:[0-9]+", text.read())
            if found:
                return found.group(0), "compare-token"
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f"{binary} did not start: {open(log.name, encoding='utf-8').read()}")

    def send(self, request):
        context = ssl._create_unverified_context()
        for _ in range(2):
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(self.url.hostname, self.url.port, context=context, timeout=60)
            headers = {"Accept": request["accept"], "User-Agent": "recorder", "Authorization": f"Bearer {self.token}"}
            if request["body"]:
                headers["Content-Type"] = request["type"]
            try:
                self.connection.request(request["method"], request["path"], request["body"].encode() or None, headers)
                answer = self.connection.getresponse()
                text = f"{answer.status} {answer.read().decode(errors='replace')}"
                break
            except (http.client.HTTPException, OSError):
                self.connection = None
        else:
            text = "no answer"
        for pattern, word in MASKS:
            text = pattern.sub(word, text)
        return text

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


def first_difference(left, right):
    at = next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))
    begin = max(0, at - 60)
    return f"  < …{left[begin:at + 160]}\n  > …{right[begin:at + 160]}"


def main():
    pack = os.path.join(os.path.dirname(os.path.abspath(__file__)), "answers.jsonl.gz")
    with gzip.open(pack, "rt", encoding="utf-8") as lines:
        stories = [json.loads(line) for line in lines]
    prefix = sys.argv[3] if len(sys.argv) > 3 else ""
    servers = [Server(where) for where in sys.argv[1:3]]
    sent = differing = 0
    try:
        for story in stories:
            if not story["name"].startswith(prefix):
                continue
            for request in story["requests"]:
                left, right = (server.send(request) for server in servers)
                sent += 1
                if left != right:
                    differing += 1
                    print(f"{story['name']}: {request['method']} {request['path']} {request['body'][:200]}\n{first_difference(left, right)}")
    finally:
        for server in servers:
            server.stop()
    print(f"{sent} requests, {differing} answered differently")
    return differing != 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    sys.exit(main())
