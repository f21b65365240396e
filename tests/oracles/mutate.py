"""Definitions and objects with a mistake or two at a place drawn by lot: the same ones every time.

    mutations(seed, count)   definitions, nearly all of them bad
    objects(seed, count)     objects of OBJECTS, the kind that they are made for; about half of them bad
"""
import copy, json, random

S, I = {"type": "string"}, {"type": "integer"}


def document(plural, kind, versions, **spec):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.rec.example.com"},
            "spec": {"group": "rec.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": versions, **spec}}


SPEC = {"type": "object", "properties": {
    "s": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 10, "default": "abc"}, "i": {"type": "integer", "minimum": 1, "maximum": 9, "format": "int32"},
    "l": {"type": "array", "maxItems": 4, "items": {"type": "object", "required": ["k"], "properties": {"k": S, "v": {"type": "integer", "default": 3}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    "set": {"type": "array", "items": S, "x-kubernetes-list-type": "set"}, "m": {"type": "object", "additionalProperties": {"type": "string", "enum": ["a", "b"]}},
    "ios": {"x-kubernetes-int-or-string": True, "anyOf": [I, S]}, "emb": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    "any": {"type": "object", "properties": {"a": S, "b": I}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"properties": {"b": {"minimum": 5}}}}, "free": {"x-kubernetes-preserve-unknown-fields": True}},
    "x-kubernetes-validations": [{"rule": "!has(self.i) || self.i < 8", "message": "too big", "fieldPath": ".i"}]}
WHOLE = document("bases", "Base", [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {"metadata": {"type": "object"}, "spec": SPEC, "status": {"type": "object", "properties": {"n": I, "sel": S}}}}},
                                     "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.i", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.sel"}},
                                     "additionalPrinterColumns": [{"name": "S", "type": "string", "jsonPath": ".spec.s", "priority": 1, "format": "byte"}], "selectableFields": [{"jsonPath": ".spec.s"}]},
                                    {"name": "v1beta1", "served": True, "storage": False, "deprecated": True, "deprecationWarning": "gone soon", "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}],
                 conversion={"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/x", "port": 443}}}})
WHOLE["spec"]["names"].update(shortNames=["bs"], categories=["all"], singular="base", listKind="BaseList")
WHOLE = json.loads(json.dumps(WHOLE))  # No part of it stands in two places.

VALUES = [None, True, False, 0, -1, 1, 3, 1.5, 1e30, "", "x", "a b", "object", "string", "integer", "array", "number", "boolean", "v1", "1", "Base", "^a", "[", "a\nb", [], ["a"], ["a", "a"], [1], [{}], {}, S, {"type": "object"}, {"type": "array", "items": S}, {"a": S}, {"x-kubernetes-preserve-unknown-fields": True}]
ALTERNATIVES = [[{"minLength": 1}], [S], [{"properties": {"a": {"minLength": 1}}}], [{"required": ["a"]}], [{"default": 1}], [{"not": {"type": "string"}}]]
FITTING = {"type": ["object", "string", "integer", "array", "number", "boolean", "null", "float"], "enum": [["a"], ["a", "b"], [1, 2], [{"a": 1}]], "required": [["a"], ["k"], ["s", "i"], ["zz"]],
           "default": ["a", 5, {}, {"a": "b"}, {"s": "abc"}, [], ["a"], [{"k": "x"}], [{"v": 1}], {"zz": 1}, {"name": "x"}, {"labels": {"a": 1}}], "x-kubernetes-list-type": ["atomic", "set", "map", "bag", ""], "x-kubernetes-map-type": ["atomic", "granular", "x"],
           "x-kubernetes-list-map-keys": [["k"], ["v"], ["k", "v"], ["z"]], "pattern": ["^a$", "(", "a{2,1}", "\\d+", "(?!x)", "[a-"], "format": ["int32", "int64", "date-time", "date", "ipv4", "double", "byte", "cidr"],
           "allOf": ALTERNATIVES, "anyOf": ALTERNATIVES, "oneOf": ALTERNATIVES, "not": [{"minLength": 1}, S, {"properties": {"a": {}}}],
           "x-kubernetes-validations": [[{"rule": text, **more}] for text, more in [("self == self", {}), ("self.a == 'x'", {}), ("self.s == oldSelf.s", {}), ("size(self) > 0", {"message": "m"}), ("self.all(x, x == x)", {}), ("true", {"reason": "FieldValueForbidden", "fieldPath": ".s"}),
                                                                                    ("has(self.metadata)", {}), ("self > 3", {}), ("self.exists(k, self[k] == 'a')", {}), ("self.startsWith('a')", {"messageExpression": "'x' + self"}), ("self.matches('^a')", {}), ("self.l.all(x, self.l.all(y, x == y))", {})]]}
KEYWORDS = sorted(set(FITTING) | {"format", "title", "description", "nullable", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "maxItems", "minItems", "uniqueItems", "multipleOf", "maxProperties", "minProperties", "items", "properties", "additionalProperties", "patternProperties",
                                  "dependencies", "additionalItems", "definitions", "externalDocs", "example", "id", "$schema", "$ref", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"})


def places(value, path=()):
    out = [(path, value)]
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        out += places(below, path + (key,))
    return out


def is_schema(path):
    return "openAPIV3Schema" in path and (path[-1] in ("openAPIV3Schema", "items", "additionalProperties", "not") or path[-2] in ("properties", "anyOf", "oneOf", "allOf"))


def mutate(doc, lot):
    everywhere = [one for one in places(doc["spec"], ("spec",)) if len(one[0]) > 1]
    schemas = [one for one in everywhere if is_schema(one[0]) and isinstance(one[1], dict)]
    kind = lot.random()
    if kind < 0.7 and schemas:
        keyword = lot.choice(KEYWORDS)
        fits = keyword in FITTING and lot.random() < 0.8
        lot.choice(schemas)[1][keyword] = copy.deepcopy(lot.choice(FITTING[keyword] if fits else VALUES))
        return
    path = lot.choice(everywhere)[0]
    parent = doc
    for step in path[:-1]:
        parent = parent[step]
    if kind < 0.85:
        parent.pop(path[-1])
    else:
        parent[path[-1]] = copy.deepcopy(lot.choice(VALUES))


def mutations(seed, count):
    lot = random.Random(seed)
    for _ in range(count):
        doc = copy.deepcopy(WHOLE)
        for _ in range(lot.choice([1, 1, 1, 2])):
            mutate(doc, lot)
        yield doc


OBJECTS = document("drawns", "Drawn", [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
    **SPEC["properties"], "n": {"type": "number", "multipleOf": 0.5, "exclusiveMinimum": True, "minimum": 0}, "b": {"type": "boolean", "nullable": True}, "date": {"type": "string", "format": "date-time"},
    "deep": {"type": "object", "additionalProperties": {"type": "array", "minItems": 1, "items": {"type": "object", "properties": {"x": {"type": "string", "default": "d"}, "y": {"type": "integer", "enum": [1, 2]}}}}},
    "r": {"type": "array", "items": {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self != 'bad'", "reason": "FieldValueForbidden"}]}, "maxItems": 10}},
    "x-kubernetes-validations": [{"rule": "!has(self.i) || !has(self.n) || double(self.i) >= self.n", "messageExpression": "self.i > 5 ? 'i is large' : 'i is small'"}]}}}}}])
OBJECTS = json.loads(json.dumps(OBJECTS))
GOOD = {"s": "abc", "i": 4, "l": [{"k": "a"}, {"k": "b", "v": 1}], "set": ["p", "q"], "m": {"x": "a"}, "ios": "50%", "emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"z": 1}}, "any": {"a": "x"}, "free": {"a": [1, {"b": None}]},
        "n": 1.5, "b": None, "date": "2026-01-02T03:04:05Z", "deep": {"k": [{"x": "y"}, {"y": 2}]}, "r": ["a", "b"]}
MEMBERS = [None, True, 0, 5, -3, 1.25, 2.0, 100, "", "abc", "ABC", "a", "b", "bad", "toolongforthis", "10%", [], {}, ["a"], ["a", "a"], [1], {"a": "x"}, {"b": 7}, {"a": "x", "b": 1}, {"k": "a"}, [{"k": "a"}, {"k": "a"}], [{"v": 1}], {"apiVersion": "v1"}, {"unknown": 1}, [None]]


def objects(seed, count):
    lot = random.Random(seed)
    for _ in range(count):
        spec = {key: copy.deepcopy(GOOD[key]) for key in lot.sample(sorted(GOOD), lot.randint(2, 6))}
        for _ in range(lot.choice([0, 1, 1, 1, 2])):
            path = lot.choice([path for path, _ in places(spec) if path])
            parent = spec
            for step in path[:-1]:
                parent = parent[step]
            if lot.random() < 0.2 and isinstance(parent, dict):
                parent[lot.choice(["zzz", "k", "a", "metadata"])] = copy.deepcopy(lot.choice(MEMBERS))
            else:
                parent[path[-1]] = copy.deepcopy(lot.choice(MEMBERS))
        yield {"spec": spec}
