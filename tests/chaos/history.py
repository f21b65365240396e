"""Clients that write, read and watch through any server, and what they saw: checked at the end (linear.py).

Registers (ConfigMaps: created, patched, swapped by resourceVersion, deleted, read) and lists that grow (ServiceAccounts: a JSON patch appends, which
the server repeats by itself when somebody was faster; each of them must be there once). Every few seconds new ones are begun, so that a search stays
small. Every value is written once, so a value that a watch tells at two revisions was written twice."""
import http.client, json, random, threading, time
from linear import check_list, check_register

MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
LABEL = {"chaos": "yes"}
REGISTERS, SECONDS = 3, 8  # At a time, and how long.


class History:
    def __init__(self, cluster, writers=4):
        self.cluster, self.stopping, self.lock = cluster, False, threading.Lock()
        self.registers, self.lists = {}, {}  # name -> operations
        self.revisions = {}  # (name, value) -> the revision that its writer was told
        self.acknowledged = self.unknown = self.refused = 0
        self.faults, self.requests, self.errors = [], 0, 0
        self.began = self.last_success = time.monotonic()
        self.stood_still = cluster.metronome.stood_still()
        self.longest_pause = self.still_in_longest_pause = 0.0
        status, now = self.insist("GET", MAPS)
        revision = now["metadata"]["resourceVersion"]
        self.watches = [Watch(self, i, MAPS, revision) for i in range(len(cluster.servers))]
        self.threads = [threading.Thread(target=self.write, args=(i,), daemon=True) for i in range(writers)]
        for thread in self.threads:
            thread.start()

    def fault(self, text):
        with self.lock:
            self.faults.append(text)

    def ask(self, server, method, path, body=None, kind=None):
        """None: nobody knows what came of it."""
        try:
            status, answer = self.cluster.request(server, method, path, body, timeout=15, kind=kind)
        except (OSError, ValueError):
            status, answer = 0, None
        with self.lock:
            self.requests += 1
            if status == 0 or status >= 500 or status == 429:
                self.errors += 1
                return None
            now, stood_still = time.monotonic(), self.cluster.metronome.stood_still()
            if now - self.last_success > self.longest_pause:
                self.longest_pause, self.still_in_longest_pause = now - self.last_success, stood_still - self.stood_still
            self.last_success, self.stood_still = now, stood_still
        if status in (401, 403):
            self.fault(f"{method} {path}: {status} {answer.get('message')}")
        return status, answer

    def insist(self, method, path, answers=(200,)):
        """From whichever server, until one answers."""
        for attempt in range(300):
            answer = self.ask(attempt % len(self.cluster.servers), method, path)
            if answer is not None and answer[0] in answers:
                return answer
            time.sleep(0.2)  # A client's pace.
        raise RuntimeError(f"{method} {path} was not answered for a minute")

    def write(self, number):
        order, serial = random.Random(number), 0
        while not self.stopping:
            serial += 1
            server, mine = order.randrange(len(self.cluster.servers)), f"w{number}-{serial}"
            epoch = int((time.monotonic() - self.began) / SECONDS)
            if order.random() < 0.25:
                self.append(server, f"list-{epoch}", mine, order)
            else:
                self.register(server, f"register-{epoch}-{order.randrange(REGISTERS)}", mine, order)
            time.sleep(0.02)  # A client's pace.

    def note(self, table, name, start, answer, op):
        op |= {"start": start, "end": None if answer is None else time.monotonic()}
        with self.lock:
            table.setdefault(name, []).append(op)
            if answer is None:
                self.unknown += 1
            elif op.get("ok", True):
                self.acknowledged += op["kind"] != "read"
            else:
                self.refused += 1
            if answer is not None and op.get("ok") and op["kind"] not in ("delete", "append"):
                self.revisions[name, op["value"]] = int(answer[1]["metadata"]["resourceVersion"])

    def register(self, server, name, mine, order):
        path, what = f"{MAPS}/{name}", order.random()
        document = {"metadata": {"name": name, "labels": LABEL}, "data": {"value": mine}}
        start = time.monotonic()
        if what < 0.2:
            answer = self.ask(server, "POST", MAPS, document)
            return self.note(self.registers, name, start, answer, self.told("create", answer, mine, (201,), (409,)))
        if what < 0.35:
            answer = self.ask(server, "PATCH", path, {"data": {"value": mine}}, "application/merge-patch+json")
            return self.note(self.registers, name, start, answer, self.told("patch", answer, mine, (200,), (404,)))
        if what < 0.4:
            answer = self.ask(server, "DELETE", path)
            return self.note(self.registers, name, start, answer, self.told("delete", answer, None, (200,), (404,)))
        got = self.ask(server, "GET", path)
        if got is None:
            return None
        seen = got[1]["data"]["value"] if got[0] == 200 else None
        self.note(self.registers, name, start, got, {"kind": "read", "value": seen})
        if seen is None or what < 0.55:
            return None
        document["metadata"]["resourceVersion"] = got[1]["metadata"]["resourceVersion"]
        start = time.monotonic()
        answer = self.ask(order.randrange(len(self.cluster.servers)), "PUT", path, document)
        return self.note(self.registers, name, start, answer, self.told("swap", answer, mine, (200,), (404, 409)) | {"was": seen})

    def append(self, server, name, mine, order):
        start = time.monotonic()
        if order.random() < 0.2:
            got = self.ask(server, "GET", f"{ACCOUNTS}/{name}")
            if got is not None and got[0] == 200:
                self.note(self.lists, name, start, got, {"kind": "read", "seen": self.entries(got[1])})
            return
        patch = [{"op": "add", "path": "/imagePullSecrets/-", "value": {"name": mine}}]
        answer = self.ask(server, "PATCH", f"{ACCOUNTS}/{name}", patch, "application/json-patch+json")
        if answer is not None and answer[0] == 404:
            self.ask(server, "POST", ACCOUNTS, {"metadata": {"name": name, "labels": LABEL}, "imagePullSecrets": [{"name": "first"}]})
            return
        op = self.told("append", answer, mine, (200,), (409,))
        self.note(self.lists, name, start, answer, op | ({"seen": self.entries(answer[1])} if op["ok"] and answer else {}))

    @staticmethod
    def entries(account):
        return [entry["name"] for entry in account.get("imagePullSecrets", [])]

    def told(self, kind, answer, value, done, refused):
        status = answer[0] if answer is not None else done[0]
        if status not in done + refused:
            self.fault(f"{kind} {value}: {status} {answer[1].get('message')}")
        return {"kind": kind, "value": value, "ok": status in done}

    def finish(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()
        now = time.monotonic()
        finals = {}
        for name in self.registers:
            _, answer = next(a for a in iter(lambda: self.ask(0, "GET", f"{MAPS}/{name}"), 0) if a is not None)
            finals[name] = answer["data"]["value"] if answer.get("data") else None
            self.registers[name].append({"kind": "read", "value": finals[name], "start": now, "end": time.monotonic()})
        # Nobody may have made it: every try to append was without an answer, and so was the creation.
        grown = {name: self.entries(self.insist("GET", f"{ACCOUNTS}/{name}", (200, 404))[1]) for name in self.lists}
        _, all_now = self.insist("GET", f"{MAPS}?labelSelector=chaos%3Dyes")
        end = int(all_now["metadata"]["resourceVersion"])
        for watch in self.watches:
            watch.finish(end)
        self.check_watches({item["metadata"]["name"]: item["data"]["value"] for item in all_now["items"] if "value" in item.get("data", {})})
        happened = self.happened()
        for name, operations in self.registers.items():
            if wrong := check_register(operations, happened.get(name, [])):
                self.fault(f"{name} is not linearizable: {wrong}")
        for name, operations in self.lists.items():
            if wrong := check_list(operations, grown[name]):
                self.fault(f"{name}: {wrong}")

    def happened(self):
        """What was written to each register, in its order, as all watches know it between them; None of registers of times when none listened."""
        blind = self.watches[0].gaps
        for watch in self.watches[1:]:
            blind = [(max(a, c), min(b, d)) for a, b in blind for c, d in watch.gaps if max(a, c) < min(b, d)]
        events = sorted({event for watch in self.watches for event in watch.seen}, key=lambda event: event[2])
        written, reach = {}, {}  # By register, and by epoch: from which revision to which.
        for name, value, revision in events:
            written.setdefault(name, []).append(value)
            epoch = int(name.split("-")[1])
            for near in (epoch - 1, epoch, epoch + 1):
                first, last = reach.get(near, (revision, revision))
                reach[near] = min(first, revision), max(last, revision)

        def is_seen(name):
            first, last = reach.get(int(name.split("-")[1]), (0, 0))
            return not any(begin < last and first <= end for begin, end in blind)

        return {name: written.get(name, []) if is_seen(name) else None for name in self.registers}

    def check_watches(self, live):
        told = {}
        for watch in self.watches:
            for name, value, revision in watch.seen:
                if told.setdefault((name, value), revision) != revision:
                    self.fault(f"{name}={value} was written at {told[name, value]} and at {revision}")
            if watch.live != live:
                self.fault(f"the watch at server {watch.server} ends with other objects: {list(set(watch.live.items()) ^ set(live.items()))[:5]}")
        refused = {(name, op["value"]) for name, all_of in self.registers.items() for op in all_of
                   if op["end"] is not None and not op.get("ok", True) and op["kind"] != "delete"}
        for name, value in refused & told.keys():
            self.fault(f"{name}={value} was refused, and written at {told[name, value]}")
        for watch in self.watches:
            for (name, value), revision in self.revisions.items():
                if (name, value, revision) not in watch.seen and not watch.has_gap_at(revision):
                    self.fault(f"the watch at server {watch.server} never heard of {name}={value}, acknowledged at {revision}")
            for other in self.watches:
                missing = {event for event in other.seen - watch.seen if not watch.has_gap_at(event[2])}
                if missing:
                    self.fault(f"the watch at server {watch.server} misses {len(missing)} events of the other's: {list(missing)[:3]}")


class Watch:
    """Follows one server, resuming where it was. After a 410 it lists anew, as clients do: a gap, in which nothing is expected of it."""

    def __init__(self, history, server, path, revision):
        self.history, self.server, self.path, self.revision = history, server, path, int(revision)
        self.seen, self.live, self.gaps, self.resumed = set(), {}, [], 0
        self.reached, self.wanted = threading.Event(), None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def has_gap_at(self, revision):
        return any(first < revision <= last for first, last in self.gaps)

    def run(self):
        cluster = self.history.cluster
        while not self.reached.is_set():
            connection = http.client.HTTPSConnection("127.0.0.1", cluster.server_ports[self.server], context=cluster.tls(), timeout=8)
            try:
                query = f"watch=1&labelSelector=chaos%3Dyes&allowWatchBookmarks=true&timeoutSeconds=60&resourceVersion={self.revision}"
                connection.request("GET", f"{self.path}?{query}")
                answer = connection.getresponse()
                if answer.status == 410:
                    self.begin_anew()
                elif answer.status == 200:
                    while line := answer.readline():
                        if not self.hear(json.loads(line)):
                            break
            except (OSError, ValueError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            self.resumed += 1
            time.sleep(0.05)

    def begin_anew(self):
        status, now = self.history.cluster.request(self.server, "GET", f"{self.path}?labelSelector=chaos%3Dyes")
        if status != 200:
            return
        revision = int(now["metadata"]["resourceVersion"])
        if revision < self.revision:
            self.history.fault(f"server {self.server} lists at {revision} after it had told {self.revision}")
        self.gaps.append((self.revision, revision))
        items = [item for item in now["items"] if "value" in item.get("data", {})]
        self.live = {item["metadata"]["name"]: item["data"]["value"] for item in items}
        self.seen |= {(item["metadata"]["name"], item["data"]["value"], int(item["metadata"]["resourceVersion"])) for item in items}
        self.revision = revision

    def hear(self, event):
        if event["type"] == "ERROR":
            if event["object"].get("code") == 410:
                self.begin_anew()
            return False
        revision = int(event["object"]["metadata"]["resourceVersion"])
        if event["type"] != "BOOKMARK":
            name, value = event["object"]["metadata"]["name"], event["object"].get("data", {}).get("value")
            if revision <= self.revision:
                self.history.fault(f"the watch at server {self.server} hears {event['type']} {name} at {revision} after {self.revision}")
            if event["type"] == "ADDED" and name in self.live or event["type"] != "ADDED" and name not in self.live:
                self.history.fault(f"the watch at server {self.server} hears {event['type']} {name} at {revision}, which it has{'' if name in self.live else ' not'}")
            if event["type"] == "DELETED":
                self.live.pop(name, None)
            else:
                self.live[name] = value
                if value is not None:
                    self.seen.add((name, value, revision))
        self.revision = max(self.revision, revision)
        if self.wanted is not None and self.revision >= self.wanted:
            self.reached.set()
        return not self.reached.is_set()

    def finish(self, end):
        """Waits until the last write is heard of; one is made so that there is one. It is not among what is compared."""
        self.wanted = end
        name = f"end-{self.server}"
        self.history.ask(0, "POST", MAPS, {"metadata": {"name": name, "labels": LABEL}, "data": {}})
        if not self.reached.wait(30):
            self.history.fault(f"the watch at server {self.server} is at {self.revision}, not at {end}, after 30 s")
        self.seen = {event for event in self.seen if event[2] <= end}
        self.live = {name: value for name, value in self.live.items() if value is not None}
