"""What the oracles share: asking a server, masking what differs from one run to the next, comparing, and the pack of stories.

A story is a list of steps on one fresh namespace and on names of its own. A step: {"m": method, "p": path, and where they are not the usual "t": media type
of the body, "a": Accept, "u": user; "b": body, or "of": the number of an earlier step whose body is taken with "set": [[path, value]...] and
"drop": [path...] done to it; "wait": how many seconds earlier steps are given until this is asked}. An answer: {"c": status, "w": warnings, "o": document} or "of" and "set"/"drop" against an earlier answer.
"""
import copy, gzip, http.client, json, re, ssl, time, urllib.parse

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"(?!2026-01-01)20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
SERVICE = re.compile(r"^10\.(0|96|97|98|99|1[01]\d)\.\d+\.\d+$")  # --service-cluster-ip-range of the recording, and 10.96 here.
AGE = re.compile(r"^(\d+[smhdy])+$|^<invalid>$")
TYPE = re.compile(r"selfType\d+")  # Rules are compiled with a type of a random name.
TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")


class Server:
    def __init__(self, url, token="admin-token"):
        self.at = urllib.parse.urlparse(url)
        self.token = token
        self.connection = None

    def ask(self, step, body):
        headers = {"User-Agent": "recorder", "Authorization": "Bearer " + step.get("u", self.token), "Accept": step.get("a", "application/json")}
        data = None
        if body is not None:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            headers["Content-Type"] = step.get("t", "application/json")
        for attempt in (1, 2):
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(self.at.hostname, self.at.port, context=ssl._create_unverified_context(), timeout=30)
            try:
                self.connection.request(step["m"], step["p"], data, headers)
                answer = self.connection.getresponse()
                text = answer.read()
                break
            except (http.client.HTTPException, OSError):
                self.connection = None
                if attempt == 2:
                    raise
        warnings = [w[7:-1] if w.startswith('299 - "') else w for w in answer.headers.get_all("Warning") or []]
        return {"c": answer.status, "k": answer.headers.get("Content-Type", ""), "w": warnings, "text": text.decode("utf-8", "replace")}


def mask_text(text):
    # A build by hand says where its scheme stands without its module; releases say it with.
    text = text.replace('"pkg/api/', '"k8s.io/kubernetes/pkg/api/')
    text = UUID.sub("UID", text)
    text = TIME.sub(lambda m: "TIME.F" if m.group(1) else "TIME", text)
    text = TYPE.sub("selfType", text)
    return TOKEN.sub("TOKEN", text)


def mask(value, key=""):
    if isinstance(value, str):
        if key in ("clusterIP", "clusterIPs") and value.startswith("10."):
            return "ADDRESS"
        return mask_text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return "PORT" if key in ("nodePort", "healthCheckNodePort") and value >= 30000 and value != 30999 else value
    if isinstance(value, list):
        return [mask(one, key) for one in value]
    if not isinstance(value, dict):
        return value
    out = {k: mask(v, k) for k, v in value.items()}
    metadata = out.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("resourceVersion", None)
        metadata.pop("selfLink", None)
        if "continue" in metadata:
            metadata["continue"] = "TOKEN"
        if metadata.get("generateName") and str(metadata.get("name", "")).startswith(metadata["generateName"]):
            metadata["name"] = metadata["generateName"] + "*"
    if out.get("kind") == "Table":
        for row in out.get("rows") or []:
            row["cells"] = ["AGE" if isinstance(c, str) and AGE.match(c) else "ADDRESS" if isinstance(c, str) and SERVICE.match(c) else c for c in row["cells"]]
    if "managedFields" in out and isinstance(out["managedFields"], list):
        out["managedFields"].sort(key=lambda f: json.dumps([f.get("manager"), f.get("operation"), f.get("subresource"), f.get("apiVersion")]))
    return out


def document(answer):
    """The masked document of an answer, or its masked text where it is none."""
    try:
        return mask(json.loads(answer["text"]))
    except ValueError:
        lines = answer["text"].strip().split("\n")
        try:  # A watch: a document a line.
            return [mask(json.loads(line)) for line in lines]
        except ValueError:
            return mask_text(answer["text"])


def put(document, path, value):
    at = document
    for key in path[:-1]:
        at = at[key]
    if isinstance(at, list) and path[-1] == len(at):
        at.append(value)
    else:
        at[path[-1]] = value


def drop(document, path):
    at = document
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]


def apply(base, change):
    if change.get("set") and change["set"][0][0] == []:
        return copy.deepcopy(change["set"][0][1])
    out = copy.deepcopy(base)
    for path in change.get("drop", []):
        drop(out, path)
    for path, value in change.get("set", []):
        put(out, path, copy.deepcopy(value))
    return out


def difference(old, new, path=(), out=None):
    """Changes that make `new` of `old`."""
    out = {"set": [], "drop": []} if out is None else out
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            if key not in new:
                out["drop"].append([*path, key])
        for key, value in new.items():
            if key not in old:
                out["set"].append([[*path, key], value])
            else:
                difference(old[key], value, (*path, key), out)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new)):
            difference(one, other, (*path, index), out)
    elif type(old) is not type(new) or old != new:
        out["set"].append([list(path), new])
    return out


def body_of(steps, number):
    step = steps[number]
    if "of" in step:
        return apply(body_of(steps, step["of"]), step)
    return step.get("b")


def play(server, story):
    """Sends a story's steps; the answers in their order."""
    out, last = [], {}
    for number, step in enumerate(story["steps"]):
        body = body_of(story["steps"], number)
        sent = dict(step)
        if "{" in step["p"]:
            for word, value in last.items():
                sent["p"] = sent["p"].replace("{" + word + "}", urllib.parse.quote(value))
        if isinstance(body, (dict, list)) and "{rv}" in json.dumps(body) or isinstance(body, str) and "{rv}" in body:
            text = json.dumps(body) if not isinstance(body, str) else body
            body = text.replace("{rv}", last.get("rv", "0")).replace("{uid}", last.get("uid", ""))
        if "wait" in step:
            time.sleep(step["wait"])
        try:
            answer = server.ask(sent, body)
        except (http.client.HTTPException, OSError):  # It panicked: the connection is gone.
            answer = {"c": 0, "k": "", "w": [], "text": "null"}
        try:
            metadata = json.loads(answer["text"]).get("metadata", {})
            last.update({word: metadata[key] for word, key in (("continue", "continue"), ("rv", "resourceVersion"), ("uid", "uid"), ("name", "name")) if metadata.get(key)})
        except (ValueError, AttributeError):
            pass
        out.append({"c": answer["c"], "k": answer["k"], "w": sorted(mask_text(w) for w in answer["w"]), "o": document(answer)})
    return out


def loose(value):
    """Order of causes, and of parts of a message, is Go's order of a map now and then."""
    if isinstance(value, dict):
        out = {k: loose(v) for k, v in value.items()}
        if out.get("kind") == "Status" and isinstance(out.get("message"), str):
            out["message"] = sorted(re.split(r", |: \[|\]$", out["message"]))
            if isinstance(out.get("details"), dict) and isinstance(out["details"].get("causes"), list):
                out["details"]["causes"].sort(key=json.dumps)
        return out
    if isinstance(value, list):
        return [loose(one) for one in value]
    return value


def alike(theirs, ours):
    if theirs == ours:
        return True
    if theirs["c"] != ours["c"] or theirs["w"] != ours["w"] or theirs["k"] != ours["k"]:
        return False
    return loose(theirs["o"]) == loose(ours["o"])
