#!/usr/bin/env python3
"""Asks a real kube-apiserver about definitions of custom kinds and their objects, and writes down what it said.

    record.py URL TOKEN OUTPUT.jsonl.gz

One line a story: {"name", "steps": [{"name", "method", "path", "type", "body", "code", and "reason", "message", "causes" of a refusal
or "object" of a success}]}. Uids, times, revisions and managed fields are left out.
"""
import gzip, json, ssl, sys, time, urllib.request, urllib.error

CONTEXT = ssl._create_unverified_context()
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def version(schema=None, name="v1", **more):
    out = {"name": name, "served": True, "storage": True}
    if schema is not None:
        out["schema"] = {"openAPIV3Schema": schema}
    out.update(more)
    return out


def definition(plural, schema=None, versions=None, kind=None, group="rec.example.com", **spec):
    kind = kind or plural[:-1].capitalize()
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                     "versions": versions if versions is not None else [version(schema if schema is not None else {"type": "object"})],
                     **spec}}


def root(spec, **more):
    return {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}, **more}


def of(**properties):
    return {"type": "object", "properties": properties}


def rule(text, **more):
    return {"rule": text, **more}


STORIES = []


def refused(name, document, **more):
    STORIES.append({"name": name, "steps": [dict(name="define", method="POST", path=CRDS, body=document, **more)]})


def objects(name, document, *steps, plural=None, api="v1", established=True):
    plural = document["spec"]["names"]["plural"]
    group, kind = document["spec"]["group"], document["spec"]["names"]["kind"]
    at = f"/apis/{group}/{api}/namespaces/default/{plural}"
    out = [dict(name="define", method="POST", path=CRDS, body=document), dict(name="established", method="WAIT", path=f"{CRDS}/{document['metadata']['name']}")]
    for step in steps:
        what, verb, content = step[0], step[1], step[2]
        more = step[3] if len(step) > 3 else {}
        obj = more.get("object", "x")
        path = more.get("path", at if verb == "POST" else f"{at}/{obj}") + more.get("query", "")
        body = content
        if verb in ("POST", "PUT"):
            body = {"apiVersion": f"{group}/{api}", "kind": kind, "metadata": {"name": obj}, **content}
        out.append(dict(name=what, method=verb, path=path, body=body, type=more.get("type", "application/merge-patch+json" if verb == "PATCH" else "application/json")))
    STORIES.append({"name": name, "steps": out})


# ---- schemas that are refused
I = {"type": "integer"}
S = {"type": "string"}
NODES = {
    "no_type": {}, "root_array": {"type": "array", "items": S}, "root_string": S,
    "field_without_type": of(a={}), "nested_without_type": of(a=of(b={"description": "x"})),
    "items_missing": of(a={"type": "array"}), "items_without_type": of(a={"type": "array", "items": {}}),
    "items_list": of(a={"type": "array", "items": [S, I]}),
    "additional_false": of(a={"type": "object", "additionalProperties": False}),
    "additional_and_properties": of(a={"type": "object", "properties": {"b": S}, "additionalProperties": S}),
    "additional_without_type": of(a={"type": "object", "additionalProperties": {}}),
    "ref": of(a={"$ref": "#/definitions/x"}), "schema_id": of(a={"type": "string", "id": "x"}),
    "dollar_schema": {"type": "object", "$schema": "http://json-schema.org/draft-04/schema#"},
    "definitions": {"type": "object", "definitions": {"x": S}},
    "dependencies": of(a={"type": "object", "dependencies": {"b": ["c"]}}),
    "pattern_properties": of(a={"type": "object", "patternProperties": {"^x": S}}),
    "additional_items": of(a={"type": "array", "items": S, "additionalItems": True}),
    "unique_items": of(a={"type": "array", "items": S, "uniqueItems": True}),
    "unknown_type": of(a={"type": "float"}), "null_type": of(a={"type": "null"}),
    "anyof_with_type": of(a={"type": "string", "anyOf": [{"type": "string"}]}),
    "anyof_with_properties": of(a={"type": "object", "anyOf": [{"properties": {"b": {"minLength": 1}}}]}),
    "anyof_new_property": of(a={"type": "object", "properties": {"b": S}, "anyOf": [{"properties": {"c": {"minLength": 1}}}]}),
    "allof_with_default": of(a={"type": "string", "allOf": [{"default": "x"}]}),
    "oneof_with_description": of(a={"type": "string", "oneOf": [{"description": "x"}]}),
    "oneof_with_title": of(a={"type": "string", "oneOf": [{"title": "x"}]}),
    "not_with_type": of(a={"type": "string", "not": {"type": "string"}}),
    "not_with_nullable": of(a={"type": "string", "not": {"nullable": True}}),
    "anyof_additional": of(a={"type": "object", "anyOf": [{"additionalProperties": {"minLength": 1}}]}),
    "anyof_int_or_string": of(a={"type": "object", "anyOf": [{"x-kubernetes-int-or-string": True}]}),
    "anyof_preserve": of(a={"type": "object", "anyOf": [{"x-kubernetes-preserve-unknown-fields": True}]}),
    "int_or_string_with_type": of(a={"type": "string", "x-kubernetes-int-or-string": True}),
    "int_or_string_bad_anyof": of(a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
    "int_or_string_three": of(a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "number"}]}),
    "preserve_false": of(a={"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
    "embedded_string": of(a={"type": "string", "x-kubernetes-embedded-resource": True}),
    "embedded_empty": of(a={"type": "object", "x-kubernetes-embedded-resource": True}),
    "embedded_bad_metadata": of(a={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"metadata": S}}),
    "embedded_bad_kind": of(a={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"kind": I}}),
    "metadata_with_labels": of(metadata=of(labels={"type": "object", "additionalProperties": S})),
    "metadata_string": of(metadata=S), "metadata_name_int": of(metadata=of(name=I)),
    "apiversion_int": of(apiVersion=I), "kind_object": of(kind={"type": "object"}),
    "metadata_name_pattern": of(metadata=of(name={"type": "string", "pattern": "^a"})),
    "metadata_required": {"type": "object", "properties": {"metadata": {"type": "object", "required": ["name"]}}},
    "bad_pattern": of(a={"type": "string", "pattern": "["}), "bad_pattern_lookahead": of(a={"type": "string", "pattern": "(?=a)"}),
    "list_type_unknown": of(a={"type": "array", "items": S, "x-kubernetes-list-type": "bag"}),
    "list_type_on_object": of(a={"type": "object", "x-kubernetes-list-type": "atomic"}),
    "list_set_of_objects": of(a={"type": "array", "items": of(b=S), "x-kubernetes-list-type": "set"}),
    "list_set_of_arrays": of(a={"type": "array", "items": {"type": "array", "items": S}, "x-kubernetes-list-type": "set"}),
    "list_map_no_keys": of(a={"type": "array", "items": of(b=S), "x-kubernetes-list-type": "map"}),
    "list_map_of_strings": of(a={"type": "array", "items": S, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]}),
    "list_map_key_unknown": of(a={"type": "array", "items": of(b=S), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["c"]}),
    "list_map_key_optional": of(a={"type": "array", "items": of(b=S), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]}),
    "list_map_key_twice": of(a={"type": "array", "items": {"type": "object", "required": ["b"], "properties": {"b": S}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b", "b"]}),
    "list_map_key_object": of(a={"type": "array", "items": {"type": "object", "required": ["b"], "properties": {"b": of(c=S)}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]}),
    "list_map_key_nullable": of(a={"type": "array", "items": {"type": "object", "required": ["b"], "properties": {"b": {"type": "string", "nullable": True}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]}),
    "list_map_nullable_items": of(a={"type": "array", "items": {"type": "object", "nullable": True, "required": ["b"], "properties": {"b": S}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]}),
    "map_keys_without_map": of(a={"type": "array", "items": of(b=S), "x-kubernetes-list-map-keys": ["b"]}),
    "map_type_unknown": of(a={"type": "object", "x-kubernetes-map-type": "loose"}),
    "map_type_on_string": of(a={"type": "string", "x-kubernetes-map-type": "atomic"}),
    "default_wrong_type": of(a={"type": "string", "default": 1}), "default_not_pruned": of(a={"type": "object", "properties": {"b": S}, "default": {"c": "x"}}),
    "default_pattern": of(a={"type": "string", "pattern": "^a$", "default": "b"}), "default_enum": of(a={"type": "string", "enum": ["a"], "default": "b"}),
    "default_maximum": of(a={"type": "integer", "maximum": 3, "default": 4}), "default_null": of(a={"type": "string", "default": None}),
    "default_null_nullable": of(a={"type": "string", "nullable": True, "default": None}),
    "default_in_metadata": of(metadata=of(name={"type": "string", "default": "x"})),
    "default_at_root": {"type": "object", "default": {"spec": 1}}, "default_under_not": of(a={"type": "object", "not": {"properties": {"b": {"default": 1}}}}),
    "default_required": of(a={"type": "object", "required": ["b"], "properties": {"b": S}, "default": {}}),
    "default_in_items": of(a={"type": "array", "items": {"type": "string", "default": 1}}),
    "enum_duplicate": of(a={"type": "string", "enum": ["a", "a"]}), "required_twice": {"type": "object", "required": ["a", "a"], "properties": {"a": S}},
    "nullable_with_enum": of(a={"type": "string", "nullable": True, "enum": ["a"]}),
    "multiple_mistakes": of(a={}, b={"type": "array"}, c={"type": "object", "properties": {"d": {}}, "additionalProperties": S}),
    "format_unknown": of(a={"type": "string", "format": "banana"}), "format_int32_string": of(a={"type": "string", "format": "int32"}),
    "items_on_string": of(a={"type": "string", "items": S}), "properties_on_string": of(a={"type": "string", "properties": {"b": S}}),
    "minimum_on_string": of(a={"type": "string", "minimum": 1}), "negative_max_length": of(a={"type": "string", "maxLength": -1}),
    "forbidden_external_docs": of(a={"type": "string", "externalDocs": {"url": "http://x"}}), "example": of(a={"type": "string", "example": "x"}),
}
for key, schema in NODES.items():
    refused(f"schema_{key}", definition("nodes", schema))

RULES = {
    "syntax": rule("self.a +"), "undeclared": rule("self.b == 1"), "not_bool": rule("self.a"), "empty": rule(""), "blank": rule("  "), "int_not_bool": rule("size(self.a)"),
    "message_newline": rule("true", message="a\nb"), "message_blank": rule("true", message="  "), "message_long": rule("true", message="x" * 2049),
    "message_expression_int": rule("true", messageExpression="1"), "message_expression_syntax": rule("true", messageExpression="'a"), "message_expression_blank": rule("true", messageExpression=" "),
    "message_expression_line": rule("true", message="m", messageExpression="'a' + self.a"),
    "reason_unknown": rule("true", reason="Whatever"), "reason_known": rule("true", reason="FieldValueForbidden"),
    "field_path_unknown": rule("true", fieldPath=".zzz"), "field_path_known": rule("true", fieldPath=".a"), "field_path_no_dot": rule("true", fieldPath="a"),
    "field_path_newline": rule("true", fieldPath=".a\n"), "field_path_brackets": rule("true", fieldPath="['a']"), "field_path_list": rule("true", fieldPath=".l[0]"),
    "old_self": rule("self.a == oldSelf.a"), "optional_old_self": rule("oldSelf.hasValue()", optionalOldSelf=True), "optional_old_self_unused": rule("true", optionalOldSelf=True),
    "no_rule": {"message": "x"}, "type_mismatch": rule("self.a == 1"), "unknown_function": rule("foo(self.a)"), "reserved": rule("self.namespace == 'x'"),
    "escaped": rule("self.__namespace__ == 'x'"), "expensive": rule("self.l.all(x, self.l.all(y, self.l.all(z, x == y && y == z)))"), "expensive_two": rule("self.l.all(x, self.l.all(y, x == y))"),
    "cheap": rule("self.l.size() < 5"), "matches": rule("self.a.matches('[')"), "regex": rule("self.a.matches('^a')"), "type_of_list": rule("type(self.l) == list"),
    "macros": rule("self.l.exists_one(x, x == 'a')"), "optional": rule("self.?a.orValue('') != 'x'"), "quantity": rule("quantity('1Gi').isGreaterThan(quantity('1Mi'))"),
    "ip": rule("isIP('1.2.3.4')"), "format": rule("!format.dns1123Label().validate(self.a).hasValue()"), "sets": rule("sets.contains(self.l, ['a'])"),
    "duration": rule("duration('1h') > duration('1m')"), "timestamp_bad": rule("timestamp('x') > timestamp('y')"), "division": rule("1 / 0 == 1"), "long_rule": rule("true || " + " || ".join(["self.a == 'x'"] * 200)),
}
RULED = {"a": {"type": "string", "maxLength": 100}, "namespace": S, "l": {"type": "array", "items": {"type": "string"}}}
for key, one in RULES.items():
    refused(f"rule_{key}", definition("rules", root({"type": "object", "properties": RULED, "x-kubernetes-validations": [one]})))
refused("rule_in_unbounded_map", definition("rules", root({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "object", "properties": {"a": S}, "x-kubernetes-validations": [rule("self.a.contains('x')")]}}})))
refused("rule_old_self_in_list", definition("rules", root(of(l={"type": "array", "items": {"type": "string", "x-kubernetes-validations": [rule("self == oldSelf")]}}))))
refused("rule_old_self_in_set", definition("rules", root(of(l={"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": {"type": "string", "maxLength": 5, "x-kubernetes-validations": [rule("self == oldSelf")]}}))))
refused("rule_on_any_of", definition("rules", root({"type": "object", "properties": {"a": S}, "anyOf": [{"x-kubernetes-validations": [rule("true")]}]})))
refused("rule_on_preserve", definition("rules", root({"type": "object", "x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": [rule("self.x == 1")]})))
refused("rule_int_or_string", definition("rules", root(of(p={"x-kubernetes-int-or-string": True, "x-kubernetes-validations": [rule("type(self) == string ? self == '5%' : self == 5")]}))))
refused("rule_root_metadata", definition("rules", root(of(a=S), **{"x-kubernetes-validations": [rule("self.metadata.name == 'x'"), rule("self.metadata.labels.x == 'y'")]})))

# ---- the rest of a definition
GOOD = of(spec=of(a=S, n=I))
BASE = lambda **k: definition("bases", GOOD, **k)


def changed(document, path, value):
    at = document
    for step in path[:-1]:
        at = at[step]
    if value is None:
        at.pop(path[-1])
    else:
        at[path[-1]] = value
    return document


PARTS = {
    "name_mismatch": (["metadata", "name"], "other.rec.example.com"), "group_empty": (["spec", "group"], ""), "group_no_dots": (["spec", "group"], "example"), "group_upper": (["spec", "group"], "Rec.example.com"),
    "scope_empty": (["spec", "scope"], ""), "scope_unknown": (["spec", "scope"], "Galaxy"), "scope_missing": (["spec", "scope"], None), "plural_empty": (["spec", "names", "plural"], ""), "plural_upper": (["spec", "names", "plural"], "Bases"),
    "kind_empty": (["spec", "names", "kind"], ""), "kind_missing": (["spec", "names", "kind"], None), "kind_underscore": (["spec", "names", "kind"], "Ba_se"), "singular_upper": (["spec", "names", "singular"], "Base"),
    "short_name_bad": (["spec", "names", "shortNames"], ["b_"]), "short_name_upper": (["spec", "names", "shortNames"], ["B"]), "category_bad": (["spec", "names", "categories"], ["a b"]), "list_kind_same": (["spec", "names", "listKind"], "Base"), "list_kind_bad": (["spec", "names", "listKind"], "List_"),
    "names_missing": (["spec", "names"], None), "versions_missing": (["spec", "versions"], None), "versions_empty": (["spec", "versions"], []), "spec_missing": (["spec"], None),
    "version_name_bad": (["spec", "versions", 0, "name"], "V1"), "version_name_empty": (["spec", "versions", 0, "name"], ""), "no_schema": (["spec", "versions", 0, "schema"], None), "empty_schema": (["spec", "versions", 0, "schema"], {}),
    "not_stored": (["spec", "versions", 0, "storage"], False), "not_served": (["spec", "versions", 0, "served"], False), "preserve_true": (["spec", "preserveUnknownFields"], True),
    "conversion_unknown": (["spec", "conversion"], {"strategy": "Magic"}), "conversion_webhook_missing": (["spec", "conversion"], {"strategy": "Webhook"}),
    "conversion_none_with_webhook": (["spec", "conversion"], {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://x.example.com"}}}),
    "conversion_no_versions": (["spec", "conversion"], {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x.example.com"}}}),
    "conversion_bad_version": (["spec", "conversion"], {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v7"], "clientConfig": {"url": "https://x.example.com"}}}),
    "conversion_twice": (["spec", "conversion"], {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1", "v1"], "clientConfig": {"url": "https://x.example.com"}}}),
    "conversion_version_name": (["spec", "conversion"], {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1", "0v"], "clientConfig": {"url": "https://x.example.com"}}}),
    "conversion_no_client": (["spec", "conversion"], {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}),
    "conversion_url_http": (["spec", "conversion"], {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "http://x.example.com"}}}),
    "conversion_url_and_service": (["spec", "conversion"], {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://x.example.com", "service": {"name": "s", "namespace": "n"}}}}),
    "conversion_service_bad": (["spec", "conversion"], {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"name": "", "namespace": "", "port": 70000, "path": "x"}}}}),
    "conversion_good": (["spec", "conversion"], {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"name": "s", "namespace": "n"}}}}),
    "conversion_bad_bundle": (["spec", "conversion"], {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://x.example.com", "caBundle": "aGVsbG8="}}}),
    "column_no_path": (["spec", "versions", 0, "additionalPrinterColumns"], [{"name": "A", "type": "string"}]), "column_bad_type": (["spec", "versions", 0, "additionalPrinterColumns"], [{"name": "A", "type": "text", "jsonPath": ".spec.a"}]),
    "column_no_name": (["spec", "versions", 0, "additionalPrinterColumns"], [{"type": "string", "jsonPath": ".spec.a"}]), "column_bad_format": (["spec", "versions", 0, "additionalPrinterColumns"], [{"name": "A", "type": "string", "format": "x", "jsonPath": ".spec.a"}]),
    "column_bad_path": (["spec", "versions", 0, "additionalPrinterColumns"], [{"name": "A", "type": "string", "jsonPath": "spec.a"}]), "column_bad_path_two": (["spec", "versions", 0, "additionalPrinterColumns"], [{"name": "A", "type": "string", "jsonPath": ".spec.a["}]),
    "column_good": (["spec", "versions", 0, "additionalPrinterColumns"], [{"name": "A", "type": "string", "jsonPath": ".spec.a", "priority": 1, "description": "d", "format": "password"}]),
    "scale_no_paths": (["spec", "versions", 0, "subresources"], {"scale": {}}), "scale_bad_paths": (["spec", "versions", 0, "subresources"], {"scale": {"specReplicasPath": "spec.n", "statusReplicasPath": ".spec.n"}}),
    "scale_array_path": (["spec", "versions", 0, "subresources"], {"scale": {"specReplicasPath": ".spec.n[0]", "statusReplicasPath": ".status.n"}}), "scale_label_path": (["spec", "versions", 0, "subresources"], {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".metadata.x"}}),
    "scale_good": (["spec", "versions", 0, "subresources"], {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"}}),
    "selectable_unknown": (["spec", "versions", 0, "selectableFields"], [{"jsonPath": ".spec.zzz"}]), "selectable_object": (["spec", "versions", 0, "selectableFields"], [{"jsonPath": ".spec"}]), "selectable_metadata": (["spec", "versions", 0, "selectableFields"], [{"jsonPath": ".metadata.name"}]),
    "selectable_twice": (["spec", "versions", 0, "selectableFields"], [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}]), "selectable_empty": (["spec", "versions", 0, "selectableFields"], [{"jsonPath": ""}]), "selectable_no_dot": (["spec", "versions", 0, "selectableFields"], [{"jsonPath": "spec.a"}]),
    "selectable_many": (["spec", "versions", 0, "selectableFields"], [{"jsonPath": f".spec.a{i}"} for i in range(9)]), "selectable_good": (["spec", "versions", 0, "selectableFields"], [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.n"}]),
    "deprecated_warning_alone": (["spec", "versions", 0, "deprecationWarning"], "gone soon"), "deprecated": (["spec", "versions", 0, "deprecated"], True),
    "versions_number": (["spec", "versions"], 7), "max_length_text": (["spec", "versions", 0, "schema", "openAPIV3Schema", "maxLength"], "7"), "required_text": (["spec", "versions", 0, "schema", "openAPIV3Schema", "required"], "a"),
}
for key, (path, value) in PARTS.items():
    refused(f"part_{key}", changed(json.loads(json.dumps(BASE())), path, value))
refused("two_stored", definition("bases", versions=[version(GOOD), version(GOOD, "v2")]))
refused("twice_the_same_version", definition("bases", versions=[version(GOOD), version(GOOD, "v1", storage=False)]))
refused("kubernetes_group", definition("bases", GOOD, group="rec.k8s.io"))
refused("kubernetes_group_approved", changed(definition("bases", GOOD, group="rec.k8s.io"), ["metadata", "annotations"], {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}))
refused("kubernetes_group_unapproved", changed(definition("bases", GOOD, group="rec.k8s.io"), ["metadata", "annotations"], {"api-approved.kubernetes.io": "unapproved, testing"}))
refused("kubernetes_group_nonsense", changed(definition("bases", GOOD, group="rec.k8s.io"), ["metadata", "annotations"], {"api-approved.kubernetes.io": "yes"}))
refused("strict_unknown", changed(BASE(), ["spec", "colour"], "red"), query="?fieldValidation=Strict")

# ---- objects
KEYWORDS = of(s={"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"}, e={"type": "string", "enum": ["a", "b"]}, i={"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2},
              x={"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 5, "exclusiveMaximum": True}, n={"type": "number"}, b={"type": "boolean"}, l={"type": "array", "items": S, "minItems": 1, "maxItems": 2},
              m={"type": "object", "additionalProperties": I, "minProperties": 1, "maxProperties": 2}, r={"type": "object", "required": ["a", "b"], "properties": {"a": S, "b": I}}, nul={"type": "string", "nullable": True},
              ios={"x-kubernetes-int-or-string": True}, any={"type": "object", "properties": {"p": S, "q": S}, "anyOf": [{"required": ["p"]}, {"required": ["q"]}]}, one={"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 3}]},
              all={"type": "string", "allOf": [{"minLength": 1}, {"pattern": "^x"}]}, no={"type": "string", "not": {"enum": ["bad"]}}, date={"type": "string", "format": "date-time"}, day={"type": "string", "format": "date"}, ip={"type": "string", "format": "ipv4"},
              cidr={"type": "string", "format": "cidr"}, uuid={"type": "string", "format": "uuid"}, mail={"type": "string", "format": "email"}, uri={"type": "string", "format": "uri"}, dur={"type": "string", "format": "duration"}, byte={"type": "string", "format": "byte"}, i32={"type": "integer", "format": "int32"},
              set={"type": "array", "items": S, "x-kubernetes-list-type": "set"}, map={"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": S, "v": I}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
VALUES = [("s", "abc"), ("s", "a"), ("s", "abcde"), ("s", "AB"), ("s", 7), ("s", None), ("e", "a"), ("e", "c"), ("e", 1), ("i", 4), ("i", 0), ("i", 12), ("i", 3), ("i", 1.5), ("i", 2.0), ("i", "4"), ("x", 1), ("x", 5), ("x", 3), ("n", 1.5), ("n", 2), ("n", "1"), ("b", True), ("b", "true"),
          ("l", ["a"]), ("l", []), ("l", ["a", "b", "c"]), ("l", [1]), ("l", "a"), ("l", {"a": 1}), ("m", {"a": 1}), ("m", {}), ("m", {"a": 1, "b": 2, "c": 3}), ("m", {"a": "x"}), ("m", []), ("r", {"a": "x", "b": 1}), ("r", {}), ("r", {"a": "x"}), ("r", {"a": 1, "b": "x"}), ("r", {"a": "x", "b": 1, "c": 2}),
          ("nul", None), ("nul", "x"), ("nul", 1), ("ios", 1), ("ios", "50%"), ("ios", 1.5), ("ios", True), ("any", {"p": "x"}), ("any", {}), ("one", 7), ("one", 4), ("one", 2), ("all", "xy"), ("all", ""), ("all", "y"), ("no", "good"), ("no", "bad"),
          ("date", "2026-01-01T00:00:00Z"), ("date", "yesterday"), ("day", "2026-01-01"), ("day", "2026-13-01"), ("ip", "1.2.3.4"), ("ip", "1.2.3"), ("cidr", "10.0.0.0/8"), ("cidr", "10.0.0.0"), ("uuid", "123e4567-e89b-12d3-a456-426614174000"), ("uuid", "x"), ("mail", "a@b.c"), ("mail", "a"), ("uri", "http://a/b"), ("uri", "a b"),
          ("dur", "1h"), ("dur", "soon"), ("byte", "aGVsbG8="), ("byte", "*"), ("i32", 5), ("i32", 5000000000), ("set", ["a", "b"]), ("set", ["a", "a"]), ("map", [{"k": "a"}, {"k": "b"}]), ("map", [{"k": "a"}, {"k": "a", "v": 1}]), ("map", [{"v": 1}]), ("zzz", 1)]
objects("keywords", definition("keyfields", root(KEYWORDS), kind="Keyfield"), *[(f"{field}_{n}", "POST", {"spec": {field: value}}, {"object": f"o{n}"}) for n, (field, value) in enumerate(VALUES)],
        ("spec_is_text", "POST", {"spec": "x"}, {"object": "text"}), ("spec_is_null", "POST", {"spec": None}, {"object": "null"}),
        ("strict", "POST", {"spec": {"zzz": 1, "r": {"a": "x", "b": 1, "c": 2}}}, {"object": "strict", "query": "?fieldValidation=Strict"}), ("bad_name", "POST", {"spec": {}}, {"object": "Bad_Name"}), ("no_body_kind", "POST", {"kind": "Other", "spec": {}}, {"object": "other"}),
        ("bad_label", "POST", {"metadata": {"name": "label", "labels": {"a b": "c"}}}), ("label_number", "POST", {"metadata": {"name": "label2", "labels": {"a": 1}}}), ("wrong_namespace", "POST", {"metadata": {"name": "ns", "namespace": "other"}}), ("finalizer", "POST", {"metadata": {"name": "fin", "finalizers": ["plain"]}}),
        ("missing", "GET", None, {"object": "nobody"}), ("update_missing", "PUT", {"metadata": {"name": "nobody", "resourceVersion": "1"}}, {"object": "nobody"}), ("update_without_revision", "PUT", {"metadata": {"name": "o0"}, "spec": {}}, {"object": "o0"}),
        ("strategic", "PATCH", {"spec": {"s": "abc"}}, {"object": "o0", "type": "application/strategic-merge-patch+json"}), ("json_patch_bad", "PATCH", [{"op": "remove", "path": "/nope"}], {"object": "o0", "type": "application/json-patch+json"}), ("merge_bad", "PATCH", {"spec": {"s": "A"}}, {"object": "o0"}),
        ("status_door_missing", "PUT", {"metadata": {"name": "o0"}}, {"object": "o0/status"}))

DEFAULTS = of(a={"type": "string", "default": "x"}, o={"type": "object", "default": {}, "properties": {"p": {"type": "integer", "default": 5}, "q": S}}, n={"type": "object", "properties": {"p": {"type": "string", "default": "deep"}}},
              l={"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "each"}}}}, m={"type": "object", "additionalProperties": {"type": "object", "properties": {"p": {"type": "boolean", "default": True}}}},
              nul={"type": "string", "nullable": True, "default": "d"}, ios={"x-kubernetes-int-or-string": True, "default": 5}, free={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"p": {"type": "string", "default": "known"}}},
              list={"type": "array", "items": S, "default": ["one"]}, emb={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True})
objects("defaults", definition("defaults", root(DEFAULTS)), *[(f"case_{n}", "POST", {"spec": spec}, {"object": f"o{n}"}) for n, spec in enumerate([
    {}, {"a": None}, {"a": "y"}, {"o": {}}, {"o": {"q": "z"}}, {"o": None}, {"n": {}}, {"n": None}, {"l": [{}, {"p": "own"}, {"z": 1}]}, {"m": {"a": {}, "b": {"p": False}}}, {"nul": None}, {"nul": "x"}, {"ios": "x"}, {"free": {"z": {"y": 1}}}, {"list": []}, {"list": None}, {"unknown": 1, "o": {"unknown": 2}}, {"l": [None]},
    {"emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "zzz": 1}, "spec": {"a": 1}}}, {"emb": {"kind": "Pod"}}, {"emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Bad_Name"}}}, {"emb": {"apiVersion": "a/b/c", "kind": "Pod"}}, {"emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}}, {"emb": "x"}])],
        ("no_spec", "POST", {}, {"object": "none"}), ("top_level_unknown", "POST", {"extra": 1, "spec": {}}, {"object": "top"}), ("read_again", "GET", None, {"object": "o4"}), ("remove_default", "PATCH", {"spec": {"a": None}}, {"object": "o2"}), ("change", "PATCH", {"spec": {"o": {"p": 9}}}, {"object": "o2"}))

RULED = root({"type": "object", "properties": {"a": I, "b": I, "s": {"type": "string", "maxLength": 20}, "l": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10, "x-kubernetes-validations": [rule("self != 'bad'", message="no bad elements")]}},
                                              "im": {"type": "string", "x-kubernetes-validations": [rule("self == oldSelf", message="immutable")]}, "opt": {"type": "string", "x-kubernetes-validations": [rule("!oldSelf.hasValue() || oldSelf.value() == self", optionalOldSelf=True, message="set once")]},
                                              "q": {"type": "string", "maxLength": 10, "x-kubernetes-validations": [rule("isQuantity(self)", reason="FieldValueForbidden")]}, "g": of(h={"type": "integer"})},
              "x-kubernetes-validations": [rule("!has(self.a) || !has(self.b) || self.a <= self.b", messageExpression="self.a > 100 ? 'a is far above b' : 'a is above b'"), rule("!has(self.s) || self.s.startsWith('x')", message="must start with x", fieldPath=".s", reason="FieldValueInvalid"),
                                           rule("!has(self.g) || !has(self.g.h) || 10 / self.g.h > 1", fieldPath=".g.h"), rule("!has(self.s) || self.s != 'xdup'", reason="FieldValueDuplicate"), rule("!has(self.s) || self.s != 'xreq'", reason="FieldValueRequired", fieldPath=".a")]})
objects("rules", definition("ruleds", RULED), *[(f"case_{n}", "POST", {"spec": spec}, {"object": f"o{n}"}) for n, spec in enumerate([
    {"a": 1, "b": 2}, {"a": 3, "b": 2}, {"s": "xa"}, {"s": "a"}, {"s": "a", "a": 3, "b": 2}, {"l": ["ok", "bad", "fine", "bad"]}, {"q": "1Gi"}, {"q": "one"}, {"g": {"h": 0}}, {"g": {"h": 20}}, {"s": "xdup"}, {"s": "xreq"}, {"im": "first", "opt": "first"}, {"a": "x", "s": "a"}, {}, {"l": ["toolongforthis"]}])],
        ("im_same", "PATCH", {"spec": {"im": "first", "a": 1}}, {"object": "o12"}), ("im_changes", "PATCH", {"spec": {"im": "second"}}, {"object": "o12"}), ("im_goes", "PATCH", {"spec": {"im": None}}, {"object": "o12"}), ("opt_changes", "PATCH", {"spec": {"opt": "second"}}, {"object": "o12"}),
        ("rule_by_patch", "PATCH", {"spec": {"a": 5, "b": 1}}, {"object": "o0"}), ("dry_run", "POST", {"spec": {"a": 5, "b": 1}}, {"object": "dry", "query": "?dryRun=All"}))

objects("ratcheting", definition("ratchets", root({"type": "object", "x-kubernetes-preserve-unknown-fields": False} if False else of(a=S, b=S, n=I, l={"type": "array", "items": of(v=S, w=S)}, m={"type": "object", "additionalProperties": S}, e=S, x=S, o=of(p=S, q=S)))),
        ("first", "POST", {"spec": {"a": "UPPER", "b": "ok", "n": 100, "l": [{"v": "BAD", "w": "x"}], "m": {"k": "LONGVALUE"}, "e": "z", "x": "BAD", "o": {"p": "1", "q": "2"}}}, {"object": "x"}))
TIGHT = root(of(a={"type": "string", "pattern": "^[a-z]+$"}, b=S, n={"type": "integer", "maximum": 10}, l={"type": "array", "items": of(v={"type": "string", "pattern": "^[a-z]+$"}, w=S)}, m={"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}}, e={"type": "string", "enum": ["a"]},
                x={"type": "string", "x-kubernetes-validations": [rule("self == self.lowerAscii()", message="lower")]}, o={"type": "object", "required": ["r"], "properties": {"p": S, "q": S, "r": S}}))
STORIES[-1]["steps"] += [dict(name="tighten", method="PATCH", path=f"{CRDS}/ratchets.rec.example.com", type="application/json-patch+json", body=[{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": TIGHT}]), dict(name="settle", method="SETTLE", path=f"{CRDS}/ratchets.rec.example.com")] + [
    dict(name=name, method="PATCH", path="/apis/rec.example.com/v1/namespaces/default/ratchets/x", type="application/merge-patch+json", body={"spec": spec}) for name, spec in [
        ("untouched", {"b": "new"}), ("a_changes_badly", {"a": "OTHER"}), ("n_changes_badly", {"n": 101}), ("e_changes_badly", {"e": "y"}), ("x_changes_badly", {"x": "WORSE"}), ("m_adds_bad", {"m": {"j": "TOOLONG"}}), ("m_adds_good", {"m": {"j": "ok"}}), ("o_changes", {"o": {"p": "9"}}), ("list_same", {"l": [{"v": "BAD", "w": "x"}]}),
        ("list_inner_changes", {"l": [{"v": "BAD", "w": "y"}]}), ("list_value_changes", {"l": [{"v": "WORSE", "w": "y"}]}), ("list_grows_good", {"l": [{"v": "BAD", "w": "x"}, {"v": "ok"}]}), ("a_mended", {"a": "fine"}), ("a_broken_again", {"a": "NO"})]]

objects("statuses", definition("statuses", versions=[version(root(of(n={"type": "integer", "minimum": 0})), subresources={"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"}})], kind="Stat"),
        ("status_dropped", "POST", {"spec": {"n": 1}, "status": {"n": 3}}), ("status_patch", "PATCH", {"status": {"n": 2, "s": "a=b"}, "spec": {"n": 9}}, {"object": "x/status"}), ("generation_same", "GET", None), ("spec_patch", "PATCH", {"spec": {"n": 4}, "status": {"n": 7}}), ("scale_get", "GET", None, {"object": "x/scale"}),
        ("scale_patch", "PATCH", {"spec": {"replicas": 6}}, {"object": "x/scale"}), ("scale_negative", "PATCH", {"spec": {"replicas": -1}}, {"object": "x/scale"}), ("negative", "PATCH", {"spec": {"n": -4}}), ("status_bad", "PATCH", {"status": {"n": "x"}}, {"object": "x/status"}), ("delete", "DELETE", None))
objects("cluster_kind", definition("wides", GOOD, scope="Cluster"), ("in_namespace", "POST", {"spec": {}}), ("own_place", "POST", {"spec": {}}, {"path": "/apis/rec.example.com/v1/wides"}), ("list", "GET", None, {"path": "/apis/rec.example.com/v1/wides"}))
objects("versions", definition("multis", versions=[version(of(spec=of(a=S, b=S)), "v1"), version(of(spec=of(a=S, c={"type": "string", "default": "d"})), "v2", storage=False), version(GOOD, "v1beta1", storage=False, served=False), version(of(spec=of(a=S)), "v1alpha1", storage=False, deprecated=True)]),
        ("create", "POST", {"spec": {"a": "1", "b": "2"}}), ("read_v2", "GET", None, {"path": "/apis/rec.example.com/v2/namespaces/default/multis/x"}), ("read_unserved", "GET", None, {"path": "/apis/rec.example.com/v1beta1/namespaces/default/multis/x"}), ("patch_v2", "PATCH", {"spec": {"c": "own"}}, {"path": "/apis/rec.example.com/v2/namespaces/default/multis/x"}),
        ("read_v1", "GET", None), ("discovery", "GET", None, {"path": "/apis/rec.example.com"}), ("discovery_v1", "GET", None, {"path": "/apis/rec.example.com/v1"}))
STORIES[-1]["steps"] += [dict(name="store_another", method="PATCH", path=f"{CRDS}/multis.rec.example.com", type="application/json-patch+json", body=[{"op": "replace", "path": "/spec/versions/0/storage", "value": False}, {"op": "replace", "path": "/spec/versions/1/storage", "value": True}]),
                         dict(name="settle", method="SETTLE", path=f"{CRDS}/multis.rec.example.com"), dict(name="stored_versions", method="GET", path=f"{CRDS}/multis.rec.example.com"),
                         dict(name="drop_old_too_early", method="PATCH", path=f"{CRDS}/multis.rec.example.com", type="application/json-patch+json", body=[{"op": "remove", "path": "/spec/versions/0"}]),
                         dict(name="old_object_in_v2", method="GET", path="/apis/rec.example.com/v2/namespaces/default/multis/x"),
                         dict(name="rewrite", method="PATCH", path="/apis/rec.example.com/v2/namespaces/default/multis/x", type="application/merge-patch+json", body={}),
                         dict(name="forget_v1", method="PATCH", path=f"{CRDS}/multis.rec.example.com/status", type="application/merge-patch+json", body={"status": {"storedVersions": ["v2"]}}),
                         dict(name="forget_stored", method="PATCH", path=f"{CRDS}/multis.rec.example.com/status", type="application/merge-patch+json", body={"status": {"storedVersions": ["v1"]}}),
                         dict(name="drop_old", method="PATCH", path=f"{CRDS}/multis.rec.example.com", type="application/json-patch+json", body=[{"op": "remove", "path": "/spec/versions/0"}])]
objects("immutable_parts", BASE())
STORIES[-1]["steps"] += [dict(name=name, method="PATCH", path=f"{CRDS}/bases.rec.example.com", type="application/merge-patch+json", body={"spec": spec}) for name, spec in [("scope", {"scope": "Cluster"}), ("group", {"group": "other.example.com"}), ("kind", {"names": {"kind": "Other"}}), ("plural", {"names": {"plural": "others"}}), ("singular", {"names": {"singular": "one"}}), ("short", {"names": {"shortNames": ["bs"]}}), ("preserve", {"preserveUnknownFields": True})]]
objects("applied", definition("applieds", root(of(set={"type": "array", "items": S, "x-kubernetes-list-type": "set"}, map={"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": S, "v": I, "w": I}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}, atom={"type": "array", "items": S},
                                                  obj={"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": S, "b": S}}, gran=of(a=S, b=S), free={"type": "object", "x-kubernetes-preserve-unknown-fields": True}))))


def apply(name, manager, spec, force=False):
    body = {"apiVersion": "rec.example.com/v1", "kind": "Applied", "metadata": {"name": "x"}, "spec": spec}
    return dict(name=name, method="PATCH", path=f"/apis/rec.example.com/v1/namespaces/default/applieds/x?fieldManager={manager}{'&force=true' if force else ''}", type="application/apply-patch+yaml", body=body)


STORIES[-1]["steps"] += [apply("one", "one", {"set": ["a", "b"], "map": [{"k": "x", "v": 1}], "atom": ["p"], "obj": {"a": "1"}, "gran": {"a": "1"}, "free": {"z": {"y": [1]}}}), apply("two_adds", "two", {"set": ["c"], "map": [{"k": "y", "v": 2}, {"k": "x", "w": 3}], "gran": {"b": "2"}}), apply("two_conflicts_item", "two", {"map": [{"k": "x", "v": 9}]}),
                         apply("two_conflicts_atomic", "two", {"atom": ["q"]}), apply("two_conflicts_object", "two", {"obj": {"b": "2"}}), apply("two_forces", "two", {"atom": ["q"], "set": ["c"]}, True), apply("one_lets_go", "one", {"set": ["b"]}), apply("unknown_field", "one", {"zzz": 1}), apply("wrong_type", "one", {"gran": "x"}), apply("duplicate_key", "one", {"map": [{"k": "x"}, {"k": "x"}]}), apply("duplicate_set", "one", {"set": ["a", "a"]})]


# ---- asking
def ask(url, token, step):
    body = step.get("body")
    request = urllib.request.Request(url + step["path"] + step.get("query", ""), method=step["method"], data=None if body is None else json.dumps(body).encode(),
                                     headers={"Authorization": f"Bearer {token}", "Accept": "application/json", "User-Agent": "recorder", "Content-Type": step.get("type") or "application/json"})
    try:
        with urllib.request.urlopen(request, context=CONTEXT, timeout=60) as answer:
            return answer.status, json.loads(answer.read() or b"{}"), answer.headers.get_all("Warning") or []
    except urllib.error.HTTPError as e:
        text = e.read().decode()
        try:
            return e.code, json.loads(text), []
        except ValueError:
            return e.code, {"kind": "Status", "message": text}, []
    except OSError:  # It panicked: the connection is gone.
        return 0, {}, []


def facts(code, body, warnings):
    out = {"code": code}
    if warnings:
        out["warnings"] = warnings
    if body.get("kind") == "Status" and code >= 400:
        out.update(reason=body.get("reason", ""), message=body.get("message", ""), causes=body.get("details", {}).get("causes", []))
        return out
    clean = json.loads(json.dumps(body))

    def strip(value):
        if isinstance(value, dict):
            metadata = value.get("metadata")
            if isinstance(metadata, dict):
                for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp"):
                    metadata.pop(field, None)
            for field in ("lastTransitionTime", "storageVersionHash"):
                value.pop(field, None)
            details = value.get("details")
            if isinstance(details, dict):
                details.pop("uid", None)
            for one in value.values():
                strip(one)
        elif isinstance(value, list):
            for one in value:
                strip(one)
    strip(clean)
    out["object"] = clean
    return out


def established(url, token, path):
    for _ in range(600):
        code, body, _ = ask(url, token, {"method": "GET", "path": path})
        if code != 200:
            return
        conditions = {c["type"]: c["status"] for c in body.get("status", {}).get("conditions") or []}
        if conditions.get("Established") == "True" or conditions.get("NamesAccepted") == "False":
            break
        time.sleep(0.1)
    # Served a moment after the condition says so.
    group = path.rsplit("/", 1)[1].split(".", 1)[1]
    for _ in range(100):
        code, body, _ = ask(url, token, {"method": "GET", "path": f"/apis/{group}"})
        if code == 200:
            break
        time.sleep(0.1)
    time.sleep(1.5)


def main():
    url, token, output = sys.argv[1:4]
    only = sys.argv[4] if len(sys.argv) > 4 else ""
    with gzip.open(output, "wt") as out:
        for number, story in enumerate(STORIES):
            if only not in story["name"]:
                continue
            kept = []
            for step in story["steps"]:
                if step["method"] == "WAIT":
                    established(url, token, step["path"])
                    kept.append({"name": step["name"], "method": "WAIT", "path": step["path"]})
                    continue
                if step["method"] == "SETTLE":
                    time.sleep(3)
                    kept.append({"name": step["name"], "method": "WAIT", "path": step["path"]})
                    continue
                code, body, warnings = ask(url, token, step)
                sent = {k: step[k] for k in ("name", "method", "type") if k in step}
                sent["path"] = step["path"] + step.get("query", "")
                if step.get("body") is not None:
                    sent["body"] = step["body"]
                kept.append({**sent, **facts(code, body, warnings)})
            out.write(json.dumps({"name": story["name"], "steps": kept}, separators=(",", ":")) + "\n")
            for step in story["steps"]:
                if step["path"] == CRDS and step["method"] == "POST" and not step.get("query"):
                    name = step["body"].get("metadata", {}).get("name", "")
                    ask(url, token, {"method": "DELETE", "path": f"{CRDS}/{name}"})
                    for _ in range(200):
                        if ask(url, token, {"method": "GET", "path": f"{CRDS}/{name}"})[0] == 404:
                            break
                        time.sleep(0.1)
            print(number, story["name"], kept[0].get("code"), flush=True)


if __name__ == "__main__":
    main()
