"""Stories made of objects.yaml and of Kubernetes' published OpenAPI: every field in every wrong and right way."""
import copy, json, os, yaml
from oracle import apply

HERE = os.path.dirname(os.path.abspath(__file__))
LONG = "x" * 300


class Schemas:
    def __init__(self, path):
        document = json.load(open(path))
        self.definitions = document["definitions"]
        self.kinds, self.resources = {}, {}
        for name, one in self.definitions.items():
            for gvk in one.get("x-kubernetes-group-version-kind", []):
                self.kinds.setdefault((gvk["group"], gvk["version"], gvk["kind"]), name)
        for path, item in document["paths"].items():
            for verb, operation in item.items():
                gvk = operation.get("x-kubernetes-group-version-kind") if isinstance(operation, dict) else None
                if verb == "post" and gvk and "{name}" not in path:
                    self.resources[gvk["group"], gvk["version"], gvk["kind"]] = path
                if verb == "put" and gvk and path.endswith("/{name}/status"):
                    self.resources[gvk["group"], gvk["version"], gvk["kind"], "status"] = True

    def resolve(self, schema):
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            return name, self.definitions[name]
        return "", schema


def gvk_of(body):
    group, _, version = body["apiVersion"].rpartition("/")
    return group, version, body["kind"]


SKIP = {"apiVersion", "kind", "managedFields", "creationTimestamp", "deletionTimestamp", "selfLink", "uid", "resourceVersion", "status"}
STRINGS = [5, "", "A_b!", LONG, "a/b/c"]
INTS = ["5", -1, 0, 65536, 3000000000]


def values(schema, name):
    """Values to try for a field of that schema, right and wrong ones."""
    kind, form = schema.get("type"), schema.get("format", "")
    if name.endswith("resource.Quantity"):
        return ["abc", -1, "-1", "1.5", 0, "1e30", "", None, {}]
    if form == "int-or-string":
        return [-1, 0, "x", "50%", "150%", "-5%", "", 70000, None, True]
    if form == "date-time":
        return ["x", 5, "2026-01-01", "2026-01-01T01:02:03+01:00", "2026-01-01T00:00:00.123456Z", None, ""]
    if form == "byte":
        return ["!!", "YQ", 5, "", None]
    if kind == "string":
        return STRINGS
    if kind == "integer":
        return INTS
    if kind == "number":
        return ["x", -1.5, 1e400 if False else 1e30]
    if kind == "boolean":
        return ["true"]
    if kind == "array":
        return [{}, [], None, [None]]
    if kind == "object" and "additionalProperties" in schema:
        return [[], {}, None, {"bad key!": "v"}, {"a": 5}, {"a/b/c": LONG}]
    return [[], {}, None]


def other(value):
    """Another value that may stand there as well."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    return None


def walk(schemas, schema, value, path, visit, depth=0):
    """Visits every field of the schema, those that the object has not as well."""
    name, schema = schemas.resolve(schema)
    if isinstance(value, list):
        items = schema.get("items", {})
        for index, element in enumerate(value):
            walk(schemas, items, element, path + [index], visit, depth + 1)
        return
    if not isinstance(value, dict):
        return
    for key, field in schema.get("properties", {}).items():
        if key in SKIP:
            continue
        inner, resolved = schemas.resolve(field)
        visit(name, key, inner, resolved, path + [key], value.get(key), key in value)
        if key in value:
            walk(schemas, field, value[key], path + [key], visit, depth + 1)
    if "additionalProperties" in schema and isinstance(schema["additionalProperties"], dict):
        for key, element in list(value.items())[:1]:
            inner, resolved = schemas.resolve(schema["additionalProperties"])
            visit(name or "/".join(map(str, path[-2:])), "*", inner, resolved, path + [key], element, True)


class Maker:
    def __init__(self, openapi, objects=os.path.join(HERE, "objects.yaml")):
        self.schemas = Schemas(openapi)
        self.objects = yaml.safe_load(open(objects))
        self.stories = []

    def start(self, key):
        """A namespace of the story's own with its default account, and what the object is with its path."""
        body = copy.deepcopy(self.objects[key])
        story = "o-" + key.replace("_", "-")
        return story, body

    def prepared(self, key, tag):
        body = copy.deepcopy(self.objects[key])
        space = f"{tag}-{key}".replace("_", "-")
        template = self.schemas.resources[gvk_of(body)]
        body.setdefault("metadata", {})
        if body["kind"] in REVIEWS:
            body.pop("metadata")
        elif "generateName" not in body["metadata"] and "name" not in body["metadata"]:
            body["metadata"]["name"] = "d.example.com" if body["kind"] == "CSIDriver" and False else space
        path = template.replace("{namespace}", space)
        text = json.dumps(body).replace('"NS"', json.dumps(space))
        body = json.loads(text)
        if "{namespace}" in template and body["kind"] == "Event":
            for field in ("involvedObject", "regarding"):
                if field in body:
                    body[field]["namespace"] = space
        steps = [{"m": "POST", "p": "/api/v1/namespaces", "b": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space + "-ns" if body["kind"] == "Namespace" else space}}}]
        if "{namespace}" in template:
            steps.append({"m": "POST", "p": f"/api/v1/namespaces/{space}/serviceaccounts",
                          "b": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}, "automountServiceAccountToken": False}})
        return space, body, path, steps

    # ---- creation with each field set to each value
    def creations(self):
        seen, kinds_seen = {}, set()
        for key in self.objects:
            space, body, path, steps = self.prepared(key, "cr")
            dry = path + ("" if body["kind"] in REVIEWS else "?dryRun=All")
            base = len(steps)
            steps.append({"m": "POST", "p": dry, "b": body})

            def visit(name, field, inner, schema, at, old, present):
                mark = (name, field)
                mine = seen.setdefault(mark, {})
                if at[:2] == ["metadata", "labels"] or at[:2] == ["metadata", "annotations"]:
                    mine = seen.setdefault(("meta",) + tuple(at), {})
                tries = [("drop", None)] if present else []
                tries += [("set", v) for v in values(schema, inner)]
                if present and isinstance(old, list) and old:
                    tries += [("set", old + [old[0]])]
                    if isinstance(old[0], dict):
                        tries += [("set", [{}])]
                if present and isinstance(old, (str, int)) and not isinstance(old, bool):
                    tries += [("set", other(old))]
                if isinstance(old, bool):
                    tries += [("set", not old)]
                for verb, value in tries:
                    limit = 2 if value is None or verb == "drop" or old is not None else 1
                    if value in ([], {}, "") and not isinstance(value, bool):
                        limit = 2
                    word = verb + json.dumps(value)[:40] + ("" if present else "-")
                    if isinstance(old, (list, str)) and (value == other(old) or isinstance(old, list) and value == old + old[:1]):
                        word = "other"
                        limit = 3
                    if mine.get(word, 0) >= limit:
                        continue
                    mine[word] = mine.get(word, 0) + 1
                    steps.append({"m": "POST", "p": dry, "of": base, **({"drop": [at]} if verb == "drop" else {"set": [[at, value]]})})

            walk(self.schemas, {"$ref": "x/" + self.schemas.kinds[gvk_of(body)]}, body, [], visit)

            def unknown(schema, value, at, depth=0):
                if isinstance(value, dict):
                    if (at, depth) and seen.setdefault(("unknown", schema.get("$ref", "")), 0) < 1 and schema.get("$ref"):
                        seen["unknown", schema.get("$ref", "")] += 1
                        if not self.schemas.resolve(schema)[1].get("properties"):
                            return
                        for mode in ("Strict", "Warn", "Ignore")[:3 if depth < 2 else 2]:
                            steps.append({"m": "POST", "p": dry + ("&" if "?" in dry else "?") + "fieldValidation=" + mode, "of": base, "set": [[at + ["nonsense"], 1]]})
                    resolved = self.schemas.resolve(schema)[1]
                    for k, v in value.items():
                        if k in resolved.get("properties", {}):
                            unknown(resolved["properties"][k], v, at + [k], depth + 1)
                elif isinstance(value, list) and value:
                    unknown(self.schemas.resolve(schema)[1].get("items", {}), value[0], at + [0], depth + 1)

            unknown({"$ref": "x/" + self.schemas.kinds[gvk_of(body)]}, body, [])
            if body["kind"] in kinds_seen:
                self.stories.append({"name": "create_" + key, "steps": steps})
                continue
            kinds_seen.add(body["kind"])
            for at, value in ((["apiVersion"], "v9"), (["apiVersion"], ""), (["kind"], "Wrong"), (["kind"], ""), (["metadata", "name"], "Bad_Name"), (["metadata", "name"], ""), (["metadata", "name"], "a" * 254),
                              (["metadata", "name"], "a.b"), (["metadata", "name"], "a/b"), (["metadata", "name"], ".."), (["metadata", "namespace"], "elsewhere"), (["metadata", "uid"], "u"), (["metadata", "resourceVersion"], "5"),
                              (["metadata", "creationTimestamp"], "x"), (["metadata", "generation"], 7), (["metadata", "managedFields"], [{}]), (["metadata", "managedFields"], [{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2"}]),
                              (["metadata", "ownerReferences"], [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]), (["metadata", "ownerReferences"], [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}]),
                              (["metadata", "labels"], {"a": "b c"}), (["metadata", "annotations"], {"x y": "z"}), (["metadata", "finalizers"], ["plain"]), (["metadata", "finalizers"], ["a b"]), (["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z"), (["metadata", "generateName"], "Bad_"), (["status"], {}), (["status"], "x"), (["status"], {"nonsense": 1})):
                if at[0] == "metadata" and "metadata" not in body:
                    continue
                steps.append({"m": "POST", "p": dry, "of": base, "set": [[at, value]]})
            for text in ("", "{", "[]", "null", "5", '{"kind":"x","kind":"y"}'):
                steps.append({"m": "POST", "p": dry, "b": text})
            self.stories.append({"name": "create_" + key, "steps": steps})

    # ---- update of each field of an object that is there
    def updates(self):
        seen = {}
        for key in self.objects:
            space, body, path, steps = self.prepared(key, "up")
            if body["kind"] in REVIEWS or "generateName" in body["metadata"] and not body["metadata"].pop("generateName", None):
                continue
            body["metadata"].setdefault("name", space)
            if body["metadata"]["name"] == "v1.things.example.com":
                body["metadata"]["name"], body["spec"]["group"] = f"v1.{space}.example.com", f"{space}.example.com"
            if body["kind"] == "CustomResourceDefinition":
                body["metadata"]["name"], body["spec"]["group"] = f"oracles.{space}.example.com", f"{space}.example.com"
            if key == "ip_address":
                body["metadata"]["name"] = "10.200.0.6"
            if key == "service_node_port":
                body["spec"]["ports"][0]["nodePort"] = 30998
                body["spec"]["ports"][0].pop("nodePort")
            name = body["metadata"]["name"]
            steps.append({"m": "POST", "p": path, "b": body})
            base = len(steps)
            dry = f"{path}/{name}?dryRun=All"
            steps.append({"m": "PUT", "p": dry, "b": body})

            def visit(label, field, inner, schema, at, old, present):
                mine = seen.setdefault((label, field, at[0] == "metadata" and tuple(at)), {})
                tries = []
                if present:
                    tries.append(("drop", None))
                    changed = other(old)
                    if changed is not None:
                        tries.append(("set", changed))
                    if isinstance(old, list):
                        tries += [("set", []), ("set", old + old[:1])]
                    if isinstance(old, dict):
                        tries.append(("set", {}))
                else:
                    sample = {"string": "x", "integer": 1, "boolean": True}.get(schema.get("type"))
                    if sample is not None and not inner.endswith("Quantity"):
                        tries.append(("set", sample))
                for verb, value in tries:
                    word = verb + ("x" if value else "-") + str(present)
                    if mine.get(word, 0) >= 2:
                        continue
                    mine[word] = mine.get(word, 0) + 1
                    steps.append({"m": "PUT", "p": dry, "of": base, **({"drop": [at]} if verb == "drop" else {"set": [[at, value]]})})

            walk(self.schemas, {"$ref": "x/" + self.schemas.kinds[gvk_of(body)]}, body, [], visit)
            for at, value in ((["metadata", "name"], "another"), (["metadata", "namespace"], "elsewhere"), (["metadata", "uid"], "wrong"), (["metadata", "resourceVersion"], "1"), (["metadata", "resourceVersion"], "x"), (["metadata", "resourceVersion"], "0"),
                              (["metadata", "finalizers"], ["new.example.com/f"]), (["metadata", "generation"], 99), (["metadata", "creationTimestamp"], "2026-01-01T00:00:00Z"), (["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z"), (["kind"], "Wrong"), (["status"], {"nonsense": 1})):
                steps.append({"m": "PUT", "p": dry, "of": base, "set": [[at, value]]})
            steps.append({"m": "PUT", "p": f"{path}/absent-one?dryRun=All", "of": base, "set": [[["metadata", "name"], "absent-one"]]})
            if gvk_of(body) + ("status",) in self.schemas.resources:
                self.status(steps, base, body, f"{path}/{name}/status", seen)
            self.stories.append({"name": "update_" + key, "steps": steps})

    def status(self, steps, base, body, path, seen):
        """The status subresource: every field of it alone, in several ways."""
        kind = self.schemas.definitions[self.schemas.kinds[gvk_of(body)]]
        dry = path + "?dryRun=All"
        steps.append({"m": "GET", "p": path})
        steps.append({"m": "PUT", "p": dry, "of": base})
        steps.append({"m": "PUT", "p": dry, "of": base, "set": [[["metadata", "labels"], {"changed": "yes"}]]})
        field = kind["properties"].get("status")
        if field is None:
            return
        name, schema = self.schemas.resolve(field)

        def sample(schema, depth=0):
            inner, resolved = self.schemas.resolve(schema)
            if inner.endswith("Quantity"):
                return "1"
            if resolved.get("format") == "date-time":
                return "2026-01-01T00:00:00Z"
            if resolved.get("format") == "int-or-string":
                return 1
            if resolved.get("format") == "byte":
                return "YQ=="
            kind = resolved.get("type")
            if kind == "string":
                return "True"
            if kind == "integer":
                return 1
            if kind == "boolean":
                return True
            if kind == "array":
                return [sample(resolved["items"], depth + 1)] if depth < 6 else []
            if kind == "object" and isinstance(resolved.get("additionalProperties"), dict):
                return {"pods": sample(resolved["additionalProperties"], depth + 1)}
            return {k: sample(v, depth + 1) for k, v in resolved.get("properties", {}).items()} if depth < 6 else {}

        for key, one in schema.get("properties", {}).items():
            mark = ("status", name, key)
            if seen.get(mark, 0) >= 1:
                continue
            seen[mark] = 1
            inner, resolved = self.schemas.resolve(one)
            whole = sample(one)
            steps.append({"m": "PUT", "p": dry, "of": base, "set": [[["status"], {key: whole}]]})
            for value in values(resolved, inner):
                steps.append({"m": "PUT", "p": dry, "of": base, "set": [[["status"], {key: value}]]})
            element = whole[0] if isinstance(whole, list) else whole
            item = resolved.get("items", one) if isinstance(whole, list) else one
            if isinstance(element, dict):
                item_name, item_schema = self.schemas.resolve(item)
                for sub, sub_schema in item_schema.get("properties", {}).items():
                    sub_inner, sub_resolved = self.schemas.resolve(sub_schema)
                    for value in values(sub_resolved, sub_inner)[:5]:
                        changed = {**element, sub: value}
                        steps.append({"m": "PUT", "p": dry, "of": base, "set": [[["status"], {key: [changed] if isinstance(whole, list) else changed}]]})


REVIEWS = {"TokenReview", "SelfSubjectReview", "SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectRulesReview"}
