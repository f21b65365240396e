"""Clients that write, read and watch through any server, and what they saw: checked at the end.

Every writer has keys of its own and a counter that it shares with all. What was acknowledged must be there once; a read never shows less than
what anybody was told before it began; a watch hears every write once, in order."""
import http.client, json, random, threading, time

MAPS = "/api/v1/namespaces/default/configmaps"


class History:
    def __init__(self, cluster, writers=4):
        self.cluster, self.stopping, self.lock = cluster, False, threading.Lock()
        self.acknowledged = {}  # name -> revision, of what was created and is still there
        self.unknown, self.deleted = set(), set()
        self.increments, self.maybe = 0, 0
        self.newest = 0  # of any acknowledged write of the counter
        self.faults, self.requests, self.errors = [], 0, 0
        self.last_success, self.longest_pause = time.monotonic(), 0.0
        cluster.wait(lambda: cluster.request(0, "GET", MAPS)[0] == 200, 20, "a list")
        counter = {"metadata": {"name": "counter", "labels": {"chaos": "yes"}}, "data": {"n": "0"}}
        status, made = cluster.request(0, "POST", MAPS, counter)
        assert status == 201, made
        self.start_revision = made["metadata"]["resourceVersion"]
        self.threads = [threading.Thread(target=self.write, args=(i,)) for i in range(writers)]
        self.watches = [Watch(self, i, self.start_revision) for i in range(len(cluster.servers))]
        for thread in self.threads:
            thread.start()

    def fault(self, text):
        with self.lock:
            self.faults.append(text)

    def ask(self, server, method, path, body=None):
        """None: nobody knows what came of it."""
        self.requests += 1
        try:
            status, answer = self.cluster.request(server, method, path, body, timeout=15)
        except OSError:
            self.errors += 1
            return None
        if status >= 500 or status == 429:
            self.errors += 1
            return None
        with self.lock:
            now = time.monotonic()
            self.longest_pause = max(self.longest_pause, now - self.last_success)
            self.last_success = now
        return status, answer

    def write(self, number):
        order = random.Random(number)
        serial = 0
        while not self.stopping:
            server = order.randrange(len(self.cluster.servers))
            what = order.random()
            if what < 0.5:
                serial += 1
                self.create(server, f"w{number}-{serial}")
            elif what < 0.8:
                self.increment(server)
            elif what < 0.9:
                self.remove(server, number, order)
            else:
                self.read(server)
            time.sleep(0.005)  # A client's pace.

    def create(self, server, name):
        answer = self.ask(server, "POST", MAPS, {"metadata": {"name": name, "labels": {"chaos": "yes"}}, "data": {"by": name}})
        with self.lock:
            if answer is None:
                self.unknown.add(name)
            elif answer[0] == 201:
                self.acknowledged[name] = int(answer[1]["metadata"]["resourceVersion"])
            else:
                self.faults.append(f"creating {name}, which nobody else does: {answer[0]} {answer[1].get('message')}")

    def remove(self, server, number, order):
        with self.lock:
            mine = [name for name in self.acknowledged if name.startswith(f"w{number}-")]
            if not mine:
                return
            name = order.choice(mine)
            del self.acknowledged[name]
        answer = self.ask(server, "DELETE", f"{MAPS}/{name}")
        with self.lock:
            if answer is None:
                self.unknown.add(name)
            elif answer[0] == 200:
                self.deleted.add(name)
            else:
                self.faults.append(f"deleting {name}, which is there: {answer[0]}")

    def increment(self, server):
        before = self.newest
        got = self.ask(server, "GET", f"{MAPS}/counter")
        if got is None or got[0] != 200:
            return
        counter = got[1]
        if int(counter["metadata"]["resourceVersion"]) < before:
            self.fault(f"server {server} shows the counter at {counter['metadata']['resourceVersion']} after {before} was acknowledged")
        counter["data"]["n"] = str(int(counter["data"]["n"]) + 1)
        answer = self.ask(server, "PUT", f"{MAPS}/counter", counter)
        with self.lock:
            if answer is None:
                self.maybe += 1
            elif answer[0] == 200:
                self.increments += 1
                self.newest = max(self.newest, int(answer[1]["metadata"]["resourceVersion"]))
            elif answer[0] != 409:
                self.faults.append(f"incrementing: {answer[0]} {answer[1].get('message')}")

    def read(self, server):
        with self.lock:
            if not self.acknowledged:
                return
            name, revision = random.choice(list(self.acknowledged.items()))
        answer = self.ask(server, "GET", f"{MAPS}/{name}")
        with self.lock:
            there = name in self.acknowledged
        if answer is not None and answer[0] == 404 and there:
            self.fault(f"server {server} does not show {name}, acknowledged at {revision}")

    def finish(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()
        self.cluster.wait(lambda: self.ask(0, "GET", f"{MAPS}/counter") is not None, 60, "a read")
        status, final = self.cluster.request(0, "GET", f"{MAPS}?labelSelector=chaos=yes")
        names = {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in final["items"]}
        count = next(int(item["data"]["n"]) for item in final["items"] if item["metadata"]["name"] == "counter")
        for name, revision in self.acknowledged.items():
            if names.get(name) != revision:
                self.fault(f"{name} was acknowledged at {revision}; there is {names.get(name)}")
        for name in self.deleted & names.keys():
            self.fault(f"{name} was deleted, and is there")
        for name in names.keys() - self.acknowledged.keys() - self.unknown - {"counter"}:
            self.fault(f"{name} is there, and nobody wrote it")
        if not self.increments <= count <= self.increments + self.maybe:
            self.fault(f"the counter is {count} after {self.increments} increments and {self.maybe} of unknown outcome")
        end = int(final["metadata"]["resourceVersion"])
        for watch in self.watches:
            watch.finish(end)
        self.compare(names)

    def compare(self, names):
        for watch in self.watches:
            for name, revision in self.acknowledged.items():
                if not watch.expired and (name, revision) not in watch.seen:
                    self.fault(f"the watch at server {watch.server} never heard of {name} at {revision}")
            if not watch.expired and watch.live.keys() != names.keys():
                self.fault(f"the watch at server {watch.server} ends with other objects: {list(watch.live.keys() ^ names.keys())[:5]}")
        whole = [watch for watch in self.watches if not watch.expired]
        for watch in whole[1:]:
            if watch.seen != whole[0].seen:
                self.fault(f"watches differ in {len(watch.seen ^ whole[0].seen)} events: {list(watch.seen ^ whole[0].seen)[:5]}")


class Watch:
    """Follows one server, resuming where it was; 410 is counted, and the watch is then not compared."""

    def __init__(self, history, server, revision):
        self.history, self.server, self.revision, self.expired = history, server, int(revision), 0
        self.seen, self.live, self.reached, self.resumed = set(), {"counter": int(revision)}, threading.Event(), 0
        self.wanted = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        cluster = self.history.cluster
        while not self.reached.is_set():
            connection = http.client.HTTPSConnection("127.0.0.1", cluster.server_ports[self.server], context=cluster.tls(), timeout=8)
            try:
                query = f"watch=1&labelSelector=chaos%3Dyes&allowWatchBookmarks=true&timeoutSeconds=60&resourceVersion={self.revision}"
                connection.request("GET", f"{MAPS}?{query}")
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
        self.expired += 1
        status, now = self.history.cluster.request(self.server, "GET", MAPS)
        if status == 200:
            self.revision = int(now["metadata"]["resourceVersion"])

    def hear(self, event):
        if event["type"] == "ERROR":
            if event["object"].get("code") == 410:
                self.begin_anew()
            return False
        revision = int(event["object"]["metadata"]["resourceVersion"])
        if event["type"] != "BOOKMARK":
            name = event["object"]["metadata"]["name"]
            if revision <= self.revision:
                self.history.fault(f"the watch at server {self.server} hears {event['type']} {name} at {revision} after {self.revision}")
            self.seen.add((name, revision))
            if event["type"] == "DELETED":
                self.live.pop(name, None)
            else:
                self.live[name] = revision
        self.revision = max(self.revision, revision)
        if self.wanted is not None and self.revision >= self.wanted:
            self.reached.set()
        return not self.reached.is_set()

    def finish(self, end):
        """Waits until the last write is heard of; a last one is made so that there is one."""
        self.wanted = end
        status, answer = self.history.cluster.request(0, "POST", MAPS, {"metadata": {"name": f"end-{self.server}", "labels": {"chaos": "yes"}}})
        if status == 201 and not self.reached.wait(20):
            self.history.fault(f"the watch at server {self.server} is at {self.revision}, not at {end}, after 20 s")
        self.seen = {(name, revision) for name, revision in self.seen if revision <= end and not name.startswith("end-")}
        self.live = {name: revision for name, revision in self.live.items() if not name.startswith("end-")}
