"""More stories about definitions of custom kinds: other lots of the same drawing, and what several managers, later schemas and three versions make of objects."""
import copy, json, random
import definitions, mutate, oracle
from behaviours import APPLY, JSON, MERGE, TABLE
from definitions import B, CRDS, I, N, S, Story, array, mapping, of, regrouped, root, rule, version


def drawn():
    for seed in range(40, 48):
        s = Story(f"definition_drawn_{seed}")
        s.add("POST", CRDS + "?dryRun=All", mutate.WHOLE)
        for document in mutate.mutations(seed, 30):
            s.tried(0, document)
    for seed in range(40, 43):
        s = Story(f"definition_objects_{seed}")
        s.kind = "Drawn"
        s.define(regrouped(mutate.OBJECTS, s.group))
        for content in mutate.objects(seed, 40):
            s.add("POST", "/apis/GROUP/v1NS/drawns?dryRun=All", s.object(content["spec"]))
        for content in mutate.objects(seed + 500, 10):
            s.add("POST", "/apis/GROUP/v1NS/drawns?dryRun=All&fieldValidation=Strict", s.object(content["spec"]))


def managers():
    """Server-side apply where the schema says how lists and maps merge, several levels deep."""
    s = Story("definition_managers")
    s.kind = "Many"
    port = {"type": "object", "required": ["n"], "properties": {"n": I, "proto": {"type": "string", "default": "TCP"}, "tags": array(S, **{"x-kubernetes-list-type": "set"}), "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    host = {"type": "object", "required": ["name"], "properties": {"name": S, "ports": array(port, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "proto"]}), "at": array(S), "whole": {**of(a=S, b=S), "x-kubernetes-map-type": "atomic"}}}
    s.define(s.definition("manys", versions=[version(root(of(hosts=array(host, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}), by=mapping(of(x=I, y=array(S, **{"x-kubernetes-list-type": "set"}))), ios={"x-kubernetes-int-or-string": True}, n=I, d={"type": "string", "default": "dd"}, nul={"type": "string", "nullable": True},
                                                                                       emb={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
                                                                                  beside={"status": of(conditions=array({"type": "object", "required": ["type"], "properties": {"type": S, "status": S}}, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}), n=I)}), subresources={"status": {}})], kind="Many"))
    at = "/apis/GROUP/v1NS/manys/x"

    def apply(manager, spec, more="", **beside):
        s.add("PATCH", f"{at}?fieldManager={manager}{more}", s.object(spec, **beside), APPLY)

    apply("one", {"hosts": [{"name": "a", "ports": [{"n": 1}, {"n": 1, "proto": "UDP", "tags": ["p"]}]}], "n": 1})
    apply("two", {"hosts": [{"name": "b", "at": ["x"]}, {"name": "a", "ports": [{"n": 2, "tags": ["q", "r"]}]}]})
    apply("two", {"hosts": [{"name": "a", "ports": [{"n": 1, "tags": ["z"]}]}], "n": 2})
    apply("two", {"hosts": [{"name": "a", "ports": [{"n": 1, "tags": ["z"]}]}], "n": 2}, "&force=true")
    apply("one", {"hosts": [{"name": "a", "ports": [{"n": 1, "proto": "UDP"}]}]})
    apply("one", {"hosts": []})
    apply("one", {"hosts": [{"name": "a"}], "by": {"k": {"x": 1, "y": ["p"]}, "l.m/n": {"x": 2}}, "ios": "50%", "d": "own", "nul": None})
    apply("three", {"by": {"k": {"y": ["q"]}}, "ios": 5})
    apply("three", {"by": {"k": {"y": ["q", "p"]}}})
    apply("three", {"hosts": [{"name": "c", "whole": {"a": "1"}}]})
    apply("four", {"hosts": [{"name": "c", "whole": {"b": "2"}}]})
    apply("four", {"hosts": [{"name": "c", "whole": {"b": "2"}}]}, "&force=true")
    for spec in ({"hosts": [{"name": "a"}, {"name": "a"}]}, {"hosts": [{"ports": []}]}, {"hosts": [{"name": "a", "ports": [{"n": 1}, {"n": 1, "proto": "TCP"}]}]}, {"hosts": {"name": "a"}}, {"hosts": [5]}, {"hosts": [{"name": 5}]}, {"by": {"k": 5}}, {"by": []}, {"n": "x"}, {"ios": True}, {"unknown": 1}, {"hosts": [{"name": "a", "zz": 1}]}, {"hosts": [{"name": "a", "ports": [{"n": 1, "tags": ["s", "s"]}]}]}, {"emb": {"kind": "Pod"}}, {"emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "e", "labels": {"a": 5}}}}, {"hosts": [{"name": None}]}, {"hosts": None}, {"d": None}):
        apply("five", spec)
    apply("five", {"emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "e", "labels": {"a": "b"}}, "spec": {"any": [1, {"x": 2}]}}})
    apply("five", {"emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "e"}, "spec": {"any": [2]}}})
    s.add("PATCH", at + "/status?fieldManager=six", s.object(..., status={"conditions": [{"type": "A", "status": "True"}], "n": 1}), APPLY)
    s.add("PATCH", at + "/status?fieldManager=seven", s.object(..., status={"conditions": [{"type": "B"}, {"type": "A", "status": "False"}]}), APPLY)
    s.add("PATCH", at + "/status?fieldManager=seven", s.object({"n": 7}, status={"conditions": [{"type": "B"}]}), APPLY)
    s.add("PATCH", at + "/status?fieldManager=eight", {"status": {"n": 5, "conditions": [{"type": "C"}]}}, MERGE)
    s.add("PATCH", at + "?fieldManager=nine", [{"op": "add", "path": "/spec/hosts/0/ports/-", "value": {"n": 9}}], JSON)
    s.add("PATCH", at + "?fieldManager=nine", {"spec": {"by": {"k": None}}}, MERGE)
    s.add("GET", at)
    apply("one", {}, metadata={"name": "x", "finalizers": ["a.example.com/f", "a.example.com/g"], "labels": {"l": "1"}, "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]})
    apply("two", {}, metadata={"name": "x", "finalizers": ["a.example.com/h"], "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "v"}]})
    apply("two", ...)
    apply("two", {"n": 1}, "&dryRun=All&fieldValidation=Strict")
    apply("two", {"n": 1, "zz": 2}, "&dryRun=All&fieldValidation=Ignore")
    s.add("PATCH", at + "?fieldManager=two", "apiVersion: x\nkind: Many\n", APPLY).add("PATCH", at + "?fieldManager=two", "spec: {n: 1, n: 2}\n" + json.dumps(s.object({}))[1:-1], APPLY)
    s.add("PATCH", at, {"metadata": {"finalizers": None}}, MERGE).add("DELETE", at)
    s.add("PATCH", at.replace("/x", "/y") + "/status?fieldManager=six", s.object(..., name="y", status={"n": 1}), APPLY)
    s.add("PATCH", at.replace("/x", "/y") + "?fieldManager=six&dryRun=All", s.object({"n": 1}, name="y", status={"n": 1}), APPLY)


def later():
    """What is stored already is read, changed and judged by a schema that came after it."""
    s = Story("definition_later")
    s.kind = "Late"
    before = of(a=S, b=S, i=I, l=array(of(k=S, v=S), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}), at=array(S), m=mapping(S), gone=S, o=of(p=S, q=S))
    before["properties"]["l"]["items"]["required"] = ["k"]
    s.define(s.definition("lates", root(before), kind="Late"))
    at = "/apis/GROUP/v1NS/lates/x"
    s.add("POST", "/apis/GROUP/v1NS/lates", s.object({"a": "UPPER", "b": "toolong", "i": 50, "l": [{"k": "a", "v": "bad"}, {"k": "b", "v": "good"}], "at": ["bad", "good"], "m": {"x": "bad", "y": "good"}, "gone": "here", "o": {"p": "bad", "q": "z"}}))
    after = copy.deepcopy(before)
    del after["properties"]["gone"]
    props = after["properties"]
    not_bad = {"type": "string", "maxLength": 20, "x-kubernetes-validations": [rule("self != 'bad'", message="is bad")]}
    props["a"] = {"type": "string", "pattern": "^[a-z]+$"}
    props["b"] = {"type": "string", "maxLength": 3}
    props["i"] = {"type": "integer", "maximum": 9, "x-kubernetes-validations": [rule("self % 5 == 1", message="odd one")]}
    props["l"]["items"]["properties"]["v"] = not_bad
    props["l"]["maxItems"] = 5
    props["at"] = array(not_bad, maxItems=5)
    props["m"] = mapping(not_bad, maxProperties=5)
    props["o"] = {**of(p=not_bad, q=S, r={"type": "string", "default": "new"}), "x-kubernetes-validations": [rule("!has(self.q) || self.q == 'y'", fieldPath=".q")]}
    props["d"] = {"type": "string", "default": "added"}
    props["e"] = {"type": "string", "enum": ["x", "y"]}
    after["required"] = ["e"]
    after["x-kubernetes-validations"] = [rule("!has(self.a) || !has(self.b) || self.a != self.b")]
    s.redefine("lates", json.dumps([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec", "value": after}]), JSON)
    s.add("GET", at).add("GET", "/apis/GROUP/v1NS/lates")
    for spec in ({}, {"e": "x"}, {"e": "z"}, {"e": "x", "a": "lower"}, {"e": "x", "a": "ALSO"}, {"e": "x", "b": "abc"}, {"e": "x", "b": "other"}, {"e": "x", "i": 6}, {"e": "x", "i": 51}, {"e": "x", "i": 7}, {"e": "x", "l": [{"k": "a", "v": "bad"}]}, {"e": "x", "l": [{"k": "b", "v": "bad"}]}, {"e": "x", "l": [{"k": "c", "v": "bad"}, {"k": "a", "v": "bad"}]},
                 {"e": "x", "at": ["bad", "good"]}, {"e": "x", "at": ["good", "bad"]}, {"e": "x", "at": ["bad"]}, {"e": "x", "m": {"y": "bad"}}, {"e": "x", "m": {"x": "bad", "z": "good"}}, {"e": "x", "m": {"x": None}}, {"e": "x", "o": {"q": "y"}}, {"e": "x", "o": {"q": "w"}}, {"e": "x", "o": {"p": "fine"}}, {"e": "x", "o": None}, {"e": "x", "gone": "again"}, {"e": "x", "a": "same", "b": "same"}, {"e": "x", "d": None}):
        s.add("PATCH", at + "?dryRun=All", {"spec": spec}, MERGE)
    s.add("PATCH", at + "?dryRun=All", {"metadata": {"labels": {"a": "b"}}}, MERGE).add("PATCH", at + "?dryRun=All", {"metadata": {"finalizers": ["x.example.com/y"]}}, MERGE)
    s.add("PATCH", at + "?fieldManager=m&dryRun=All", s.object({"e": "x"}), APPLY).add("PATCH", at + "?fieldManager=m&dryRun=All&force=true", s.object({"e": "x", "a": "UPPER"}), APPLY)
    s.add("POST", "/apis/GROUP/v1NS/lates?dryRun=All", s.object({"a": "UPPER", "e": "q"}, "y"))
    s.add("PATCH", at, {"spec": {"e": "x"}}, MERGE).add("GET", at)
    s.redefine("lates", json.dumps([{"op": "add", "path": "/spec/versions/0/subresources", "value": {"status": {}}}, {"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status", "value": of(n={"type": "integer", "x-kubernetes-validations": [rule("self == oldSelf", message="stays")]})}]), JSON)
    s.add("PATCH", at, {"status": {"n": 1}}, MERGE).add("PATCH", at + "/status", {"status": {"n": 1}}, MERGE).add("PATCH", at + "/status", {"status": {"n": 2}}, MERGE).add("PATCH", at + "/status", {"status": None}, MERGE).add("GET", at + "/status")


def three_versions():
    s = Story("definition_three")
    s.kind = "Three"
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    s.define(s.definition("threes", versions=[
        version(root(of(a=S, old=S, n={"type": "integer", "default": 1})), "v1alpha1", storage=False, deprecated=True, additionalPrinterColumns=[{"name": "Old", "type": "string", "jsonPath": ".spec.old"}]),
        version(root({**of(a=S, mid=S), **{"x-kubernetes-preserve-unknown-fields": True}}), "v1beta1", storage=True, selectableFields=[{"jsonPath": ".spec.a"}]),
        version(root({**of(a={"type": "string", "minLength": 2}, new={"type": "string", "default": "fresh"}), "required": ["a"]}, beside={"status": kept}), "v1", storage=False, subresources={"status": {}}, selectableFields=[{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.new"}]),
        version(root(of(a=S)), "v2", storage=False, served=False)], kind="Three"))
    at = lambda v: f"/apis/GROUP/{v}NS/threes"
    s.add("GET", "/apis/GROUP").add("GET", "/apis/GROUP/v1").add("GET", "/apis/GROUP/v1alpha1").add("GET", "/apis/GROUP/v2").add("GET", CRDS + "/threes.GROUP")
    for v in ("v1alpha1", "v1beta1", "v1", "v2"):
        s.add("POST", at(v), s.object({"a": "xx", "old": "o", "mid": "m", "more": {"b": 1}}, "from-" + v, version=v, status={"n": 1}))
    for v in ("v1alpha1", "v1beta1", "v1"):
        s.add("GET", at(v)).add("GET", at(v), accept=TABLE)
        for other in ("v1alpha1", "v1beta1", "v1"):
            s.add("GET", at(v) + "/from-" + other)
        for field in ("spec.a%3Dxx", "spec.new%3Dfresh", "spec.a!%3Dxx"):
            s.add("GET", f"{at(v)}?fieldSelector={field}")
    s.add("PATCH", at("v1alpha1") + "/from-v1", {"spec": {"a": "y"}}, MERGE).add("PATCH", at("v1") + "/from-v1alpha1", {"spec": {"new": "set"}}, MERGE).add("PATCH", at("v1") + "/from-v1beta1", [{"op": "replace", "path": "/spec/a", "value": "z"}], JSON)
    s.add("PATCH", at("v1") + "/from-v1/status", {"status": {"deep": [1, 2]}}, MERGE).add("PATCH", at("v1beta1") + "/from-v1/status", {"status": {"n": 2}}, MERGE).add("GET", at("v1beta1") + "/from-v1")
    s.add("PUT", at("v1"), s.object({"a": "xx"})).add("POST", at("v1"), s.object({"a": "xx"}, "wrong", version="v1beta1")).add("POST", at("v1"), s.object({}, "short", version="v1")).add("DELETE", at("v1alpha1") + "/from-v1beta1").add("DELETE", at("v1") + "?fieldSelector=spec.new%3Dset")
    s.redefine("threes", json.dumps([{"op": "replace", "path": "/spec/versions/0/served", "value": False}, {"op": "replace", "path": "/spec/versions/1/storage", "value": False}, {"op": "replace", "path": "/spec/versions/2/storage", "value": True}]), JSON)
    s.add("GET", CRDS + "/threes.GROUP").add("GET", at("v1alpha1")).add("GET", at("v1") + "/from-v1").add("PATCH", at("v1") + "/from-v1", {"metadata": {"labels": {"moved": "yes"}}}, MERGE).add("GET", at("v1beta1") + "/from-v1")


MORE_RULES = """self.l.all(x, self.m.all(k, self.m[k] != x))|self.ol.all(o, o.l.all(x, x.size() < 3))|self.ol.map(o, o.s).all(x, x.startsWith('a'))|self.m.exists_one(k, self.m[k] == 'a')|self.s.split(',').map(x, x.trim()).all(x, x != '')|self.s.indexOf('a', 2) == 3|self.s.replace('a', '').size() == self.s.size()|[self.s, self.t, 'c'].exists(x, x in self.st)|self.l.filter(x, x in self.st).size() == self.l.size()|self.ml.map(o, o.k).isSorted()
self.ml.filter(o, has(o.v) && o.v > 1).size() < 3|self.k.all(x, x % 2 == 0 || x > 10)|self.k.sum() / self.k.size() > 1|self.i > 0 && self.k[self.i] == 1|size(self.s + self.t) < 50|self.d < self.d + duration('1h')|self.dur + self.dur < duration('24h')|quantity(self.s).compareTo(quantity(self.t)) <= 0|quantity(self.s).sign() == 1|self.ll.map(x, x.size()).max() < 4|self.ll.exists(x, sets.contains(x, ['a', 'b']))
cidr(self.s).containsIP(ip(self.t))|cidr(self.s).prefixLength() < 24|cidr(self.s).masked() == cidr(self.s)|url(self.s).getQuery().size() == 0|url(self.s).getHostname().endsWith('.com')|url(self.s).getPort() == '443'|url(self.s).getEscapedPath().startsWith('/a')|self.?m['a'].optMap(x, x + 'b').orValue('') == 'xb'|self.?o.optFlatMap(o, o.?s).orValue('') == 'x'|optional.none().or(optional.of(self.s)).value() == 'a'|self.o == {'s': 'a'}|self.e in ['a', 'bcd'] ? true : self.s.contains('b')
self.nul == null || self.nul.size() > 1|self.ios == '10%' || self.ios == 10|string(self.ios).matches('^[0-9]+%?$')|int(self.ios) < 5|self.any.l.all(x, x == 1)|has(self.any.zz) && self.any.zz > 2|self.emb.metadata.name.size() < 5|self.emb.spec.a.contains('x')|self.d.getDayOfWeek() == 1|self.dur.getMilliseconds() > 5|timestamp(self.day + 'T00:00:00Z') < timestamp('2030-01-01T00:00:00Z')|self.s.matches('^' + self.t + '$')|semver(self.s).patch() < semver(self.t).patch()|isSemver(self.s, true)
oldSelf.s == self.s || self.i > oldSelf.i|oldSelf.k.all(x, self.k.exists(y, y >= x))|oldSelf.m.all(k, k in self.m)|self.l.all(x, x in oldSelf.l) || size(self.l) == 0|has(oldSelf.o) == has(self.o)|self.st == oldSelf.st|!(self.b && oldSelf.b)|self.ml.all(n, oldSelf.ml.exists(o, o.k == n.k) || n.v == 0)|self.s.lowerAscii().contains(oldSelf.s.lowerAscii())|type(self.i) == type(oldSelf.i)
self.l.exists(x, x == 1)|self.i == 'a'|self.m.all(k, v, k == v && v == 1)|self.k.all(x, x.size() > 1)|self.ol.all(o, o.i.contains('a'))|self.b + 1 == 2|self.d > '2026'|self.dur == 5|self.e == 1|self.nul > 1|self.l + self.k == self.l|self.m == self.l|self.o.s.t.u|self.ol[0].zz == 1|self.ml[0].k.v|self.st['a']|self.by.size() == 'a'|size(self.o) > 1|self.l.map(x, y, x)|self.l.filter(x)|has(self.s.size())|has(self.l.all)|self.s.startsWith()|self.s.startsWith('a', 'b')|matches(self.s)|in self.l|self.s ==|== self.s|self..s|self.s.|self[|self.l[|{'a': }|[1,|(((|'a|\"a|self.s = 'a'|self.i++|self.s; true|if self.b then true"""


def rules():
    import re
    texts = re.split(r"(?<!\|)\|(?!\|)|\n", MORE_RULES)
    for bound in (False, True):
        s = Story(f"definition_rules_more_{'bound' if bound else 'free'}")
        fields = definitions.fields(bound)
        # No part of it stands in two places.
        s.add("POST", CRDS + "?dryRun=All", json.loads(json.dumps(s.definition("ruleds", root({**of(**fields), "x-kubernetes-validations": [rule("true")]})))))
        for text in texts:
            s.add("POST", CRDS + "?dryRun=All", {"of": 0, "set": [[["spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "x-kubernetes-validations", 0, "rule"], text]]})
        for at, values in (("s", ["a", "abc"]), ("l", [["a"]])):
            for text in texts[:8]:
                s.add("POST", CRDS + "?dryRun=All", {"of": 0, "set": [[["spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", at, "x-kubernetes-validations"], [rule(text)]]]})


def stories(args):
    definitions.OUT.clear()
    for make in (drawn, managers, later, three_versions, rules):
        make()
    return [{"name": s.name, "steps": s.steps} for s in definitions.OUT]
