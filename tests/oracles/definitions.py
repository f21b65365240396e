"""Stories about definitions of custom kinds and their objects: drawn by lot (mutate.py), and by hand."""
import copy, json, random, re
import mutate, oracle
from behaviours import APPLY, JSON, MERGE, STRATEGIC, TABLE, PARTIAL

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OUT = []
S, I, N, B = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}


def of(**properties):
    return {"type": "object", "properties": properties}


def array(items, **more):
    return {"type": "array", "items": items, **more}


def mapping(values, **more):
    return {"type": "object", "additionalProperties": values, **more}


def rule(text, **more):
    return {"rule": text, **more}


def root(spec, **more):
    return {"type": "object", "properties": {"spec": spec, **more.pop("beside", {})}, **more}


def version(schema=None, name="v1", **more):
    return {"name": name, "served": True, "storage": True, **({"schema": {"openAPIV3Schema": schema}} if schema is not None else {}), **more}


class Story:
    """Steps about one group of its own, GROUP in paths and bodies; custom objects stand in the namespace "default"."""

    def __init__(self, name):
        self.name, self.group = name, name.replace("_", "-") + ".example.com"
        self.steps, self.pause = [], 0
        OUT.append(self)

    def definition(self, plural, schema=None, versions=None, kind=None, **spec):
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{self.group}"},
                "spec": {"group": self.group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind or plural[:-1].capitalize()}, "versions": versions if versions is not None else [version(schema)], **spec}}

    def add(self, method, path, body=None, type=None, accept=None):
        step = {"m": method, "p": path.replace("GROUP", self.group).replace("NS", "/namespaces/default")}
        if isinstance(body, dict) and "of" in body:
            step.update(body)
        elif body is not None:
            step["b"] = body
        if type:
            step["t"] = type
        if accept:
            step["a"] = accept
        if self.pause:
            step["wait"], self.pause = self.pause, 0
        self.steps.append(step)
        return self

    def define(self, document):
        """Stored, and served before the next step."""
        self.add("POST", CRDS, document)
        self.pause = 5
        return self

    def redefine(self, name, body, type=MERGE):
        self.add("PATCH", f"{CRDS}/{name}.GROUP", body, type)
        self.pause = 5
        return self

    def settle(self):
        self.pause = 5
        return self

    def tried(self, base, document):
        """A definition that is only tried, told by what differs from the step `base`."""
        change = oracle.difference(oracle.body_of(self.steps, base), document)
        return self.add("POST", CRDS + "?dryRun=All", {"of": base, **{k: v for k, v in change.items() if v}})

    def object(self, spec, name="x", kind=None, version="v1", **more):
        return {"apiVersion": f"{self.group}/{version}", "kind": kind or self.kind, "metadata": {"name": name}, **({"spec": spec} if spec is not ... else {}), **more}


# ---- by lot
def regrouped(document, group):
    out = copy.deepcopy(document)
    plural = out["spec"]["names"]["plural"]
    out["spec"]["group"], out["metadata"]["name"] = group, f"{plural}.{group}"
    return out


def drawn():
    for seed in range(24):
        s = Story(f"definition_drawn_{seed:02}")
        s.add("POST", CRDS + "?dryRun=All", mutate.WHOLE)
        for document in mutate.mutations(seed, 30):
            s.tried(0, document)
    for seed in range(6):
        s = Story(f"definition_changed_{seed:02}")
        stored = regrouped(mutate.WHOLE, s.group)
        s.define(stored).add("GET", CRDS + "/bases.GROUP")
        for document in mutate.mutations(100 + seed, 40):
            change = oracle.difference(stored, regrouped(document, s.group) if isinstance(document["spec"].get("names"), dict) and document["spec"]["names"].get("plural") == "bases" else {**document, "metadata": stored["metadata"]})
            change["set"] = [pair for pair in change["set"] if pair[0] != ["spec", "group"]] + [[["metadata", "resourceVersion"], "{rv}"]]
            s.add("PUT", CRDS + "/bases.GROUP?dryRun=All", {"of": 0, **{k: v for k, v in change.items() if v}})
    for seed in range(8):
        s = Story(f"definition_objects_{seed:02}")
        s.kind = "Drawn"
        s.define(regrouped(mutate.OBJECTS, s.group))
        at = "/apis/GROUP/v1NS/drawns"
        for content in mutate.objects(seed, 40):
            s.add("POST", at + "?dryRun=All", s.object(content["spec"]))
    for seed in range(4):  # What is there already is bad by the schema that came later.
        s = Story(f"definition_ratchets_{seed:02}")
        s.kind = "Drawn"
        strict = regrouped(mutate.OBJECTS, s.group)
        loose = copy.deepcopy(strict)
        loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        s.define(loose)
        there = list(mutate.objects(200 + seed, 12))
        for n, content in enumerate(there):
            s.add("POST", "/apis/GROUP/v1NS/drawns", s.object(content["spec"], f"o{n}"))
        s.redefine("drawns", json.dumps([{"op": "replace", "path": "/spec/versions", "value": strict["spec"]["versions"]}]), JSON)
        lot = random.Random(seed)
        for n, content in enumerate(there):
            at = f"/apis/GROUP/v1NS/drawns/o{n}?dryRun=All"
            s.add("GET", at).add("PATCH", at, {"metadata": {"labels": {"a": "b"}}}, MERGE)
            for _ in range(2):
                spec = copy.deepcopy(content["spec"])
                field = lot.choice(sorted(mutate.GOOD))
                spec[field] = lot.choice([mutate.GOOD[field], lot.choice(mutate.MEMBERS)])
                s.add("PATCH", at, json.dumps([{"op": "replace", "path": "/spec", "value": spec}]), JSON)


# ---- rules: what the compiler says and what it estimates, with bounds and without
def fields(bound):
    few = {"maxLength": 10} if bound else {}
    some = {"maxItems": 20} if bound else {}
    pairs = {"maxProperties": 8} if bound else {}
    text = {"type": "string", **few}
    return {"s": text, "t": text, "i": I, "n": N, "b": B, "l": array(text, **some), "k": array(I, **some), "ll": array(array(text, **some), **some), "m": mapping(text, **pairs), "mi": mapping(I, **pairs), "o": of(s=text, i=I, l=array(text, **some)), "ol": array(of(s=text, i=I), **some),
            "ml": {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": text, "v": I}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], **some}, "st": array(text, **{"x-kubernetes-list-type": "set"}, **some), "d": {"type": "string", "format": "date-time"},
            "dur": {"type": "string", "format": "duration"}, "day": {"type": "string", "format": "date"}, "by": {"type": "string", "format": "byte", **few}, "e": {"type": "string", "enum": ["a", "bcd"]}, "ios": {"x-kubernetes-int-or-string": True}, "nul": {"type": "string", "nullable": True, **few}, "any": {"x-kubernetes-preserve-unknown-fields": True},
            "emb": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": of(a=text)}}, "in": I, "a-b": I, "x.y": I, "__under__": I}


COSTS = """self.s == self.t|self.s.contains(self.t)|self.s.startsWith('abc')|self.s.endsWith(self.t)|self.s.matches('^[a-z]+$')|self.s.matches('(a|b)*c{1,5}')|self.s.matches(self.t)|self.s.replace('a', 'b') == self.t|self.s.replace('a', 'bb', 2).size() > 1|self.s.split(',').size() > 2|self.s.split(',').all(x, x == 'a')|self.s.split(',', 3).all(x, x.size() > 1)
self.s.lowerAscii() == 'a'|self.s.upperAscii().lowerAscii() == 'a'|self.s.trim() == self.t|self.s.substring(1) == 'a'|self.s.substring(1, 3) == 'a'|self.s.charAt(0) == 'a'|self.s.indexOf('a') > 1|self.s.lastIndexOf('a', 3) > 1|(self.s + self.t).contains('x')|(self.s + self.t + self.s).size() > 1|self.s.find('a+') == 'b'|self.s.findAll('a+').size() == 2|self.s.findAll('a+', 1).all(x, x == 'a')|self.s.quote() == 'x'|self.s.reverse() == self.s|strings.quote(self.s) == 'a'
size(self.s) > 1|self.s.size() > self.l.size()|self.s < self.t|self.s in self.l|'a' in self.m|self.s in ['a', 'b']|self.s in self.m|self.l == self.l|self.l.all(x, x == 'a')|self.l.exists(x, x.contains('a'))|self.l.exists_one(x, x.startsWith('a'))|self.l.map(x, x + 'a').size() > 1|self.l.map(x, x.size() > 1, x + 'a').all(y, y == 'b')|self.l.filter(x, x != 'a').size() == 1|self.l.all(x, self.l.all(y, x == y))
self.l.all(x, self.l.all(y, self.l.all(z, x == y || y == z)))|self.ll.all(x, x.all(y, y == 'a'))|self.ll.all(x, x.exists(y, y.matches('a+')))|self.m.all(k, k == 'a')|self.m.all(k, self.m[k] == 'a')|self.m.exists(k, self.m[k].contains(k))|self.m.map(k, k).size() > 1|self.mi.all(k, self.mi[k] > 3)|self.ol.all(o, o.s == 'a')|self.ol.all(o, has(o.s) && o.s.size() < 5)|self.ml.all(o, o.k.contains('a'))|self.ml.exists(o, o.k == 'a' && o.v > 3)|self.st.all(x, x == 'a')|self.k.all(x, x > 1)|self.k.sum() > 5|self.k.min() > 1|self.k.max() < 9|self.l.isSorted()|self.k.isSorted()
self.l.indexOf('a') > 1|self.l.lastIndexOf('a') > 1|self.l.join(',') == 'a'|self.l.join() == 'a'|self.l + self.l == self.l|(self.l + self.l).all(x, x == 'a')|self.l[0] == 'a'|self.ol[0].s == 'a'|self.m['a'] == 'b'|self.m.a == 'b'|sets.contains(self.l, self.l)|sets.equivalent(self.l, ['a'])|sets.intersects(self.l, self.l)|self.l.slice(0, 2).size() > 1|self.ll.flatten().size() > 1|self.l.sort() == self.l|self.l.distinct().size() == self.l.size()|self.l.first() == optional.none()|self.l.reverse() == self.l|lists.range(5).all(i, i < 5)
self.l.all(i, x, x == 'a')|self.l.transformList(i, x, x + 'a').size() > 1|self.m.transformMap(k, v, v + 'a').size() > 1|self.m.transformList(k, v, k).size() > 1|self.m.all(k, v, k == v)|self.l.existsOne(i, x, x == 'a')|cel.bind(x, self.s, x + x == 'a')|cel.bind(x, self.l, x.all(y, x.all(z, y == z)))|url(self.s).getHost() == 'a'|isURL(self.s)|isIP(self.s)|ip(self.s).family() == 4|cidr(self.s).containsIP('1.2.3.4')|isCIDR(self.s)|quantity(self.s).isGreaterThan(quantity('1'))|isQuantity(self.s)|quantity(self.s).add(quantity('1')).sub(5).asInteger() == 1|semver(self.s).major() == 1|isSemver(self.s)|semver(self.s, true).compareTo(semver('1.0.0')) > 0
format.dns1123Label().validate(self.s).hasValue()|!format.named('uuid').value().validate(self.s).hasValue()|self.s.format([1]) == 'a'|'%s-%d'.format([self.s, self.i]) == 'a'|'%s'.format([self.l]).size() > 1|base64.encode(self.by) == 'a'|string(self.by) == 'a'|bytes(self.s) == b'a'|int(self.s) > 1|double(self.s) > 1.0|string(self.i) == '1'|string(self.n) == 'a'|timestamp(self.s) > self.d|duration(self.s) > self.dur|self.d.getFullYear() > 2000|self.d + self.dur > self.d|self.d - self.d == duration('1h')|self.dur.getHours() > 1|self.day.getMonth() == 1|string(self.d) == 'a'|self.d.getHours('America/New_York') > 1
self.e == 'a'|self.e == 'zzz'|self.e.contains('b')|self.ios == 5|self.ios == 'a'|type(self.ios) == int|self.ios > 5|self.nul == null|self.nul == 'a'|self.nul.contains('a')|self.any.x == 5|self.any == self.any|self.emb.metadata.name == 'a'|self.emb.kind == 'Pod'|self.emb.spec.a == 'b'|self.emb.metadata.labels.a == 'b'|self.emb.apiVersion.startsWith('v')|self.__in__ == 1|self.in == 1|self.a__dash__b == 1|self.x__dot__y == 1|self.__underscores__under__underscores__ == 1|self['a-b'] == 1|has(self.s)|has(self.o.s)|!has(self.o)|has(self.m.a)|has(self.l[0])|has(self)|self.?s.orValue('x') == 'a'|self.?o.?s.hasValue()|self.o.?s.orValue('').contains('a')
self.m[?'a'].orValue('x') == 'y'|self.l[?0].orValue('x') == 'y'|optional.of(self.s).value() == 'a'|optional.ofNonZeroValue(self.i).hasValue()|self.i + 1 > 5|self.i / 2 == 1|self.i % 2 == 0|self.n > 5|self.n > 5.0|self.n > self.i|self.i == 5.0|self.i > 5u|-self.i < 0|self.i == self.n|self.i in [1, 2]|self.b|!self.b|self.b == true|self.b ? self.s == 'a' : self.t.contains('b')|self.b && self.s.contains('a') || self.t.matches('x')|self.i > 1 ? true : 'x'|self.i|self.s|self.l|null|1 + 1|'a'|[]|{}|self|oldSelf|self == oldSelf|self.s == oldSelf.s|oldSelf.l.all(x, x in self.l)|oldSelf.ml.all(x, self.ml.exists(y, y.k == x.k))
math.greatest(self.i, 5) > 3|math.least([self.i, 5]) > 3|math.abs(self.i) > 3|math.ceil(self.n) > 3.0|math.bitAnd(self.i, 3) == 1|math.sqrt(self.i) > 1.0|authorizer.group('').resource('pods').check('get').allowed()|request.userInfo == 1|object == 1|variables.x == 1|dyn(self.s) == 5|type(self.s) == string|self.s == 5|self.zzz == 1|self.o.zzz == 1|self.l.zzz|self.l.foo()|foo(1)|self.s.size|self.s +|(self.s|self.s == 'a' &&|'unclosed|self.s == "a" # no|1 / 0 == 1|self.l.all(x, y == 1)|self.l.all(x)|self.all(x, true)|[1, 'a'] == [1]|{1: 2, 'a': 3} == {}|self.s.contains(5)|size(5) == 1|timestamp('x') > self.d|duration('x') > self.dur|'a'.matches('(') || true|self.s.matches('(')|self.s.matches('(?=a)')
self.l.map(x, self.l.map(y, x + y)).size() > 1|self.ll.map(x, x.size()).sum() > 3|self.l.all(x, x.all(y, true))|self.m.m.m == 'a'|self.ol.all(o, o.zzz == 1)|self.ol.map(o, o.i).sum() == 5|self.ol.filter(o, o.i > 1)[0].s.contains('a')|self.ol.exists(o, self.ol.exists(p, o.s == p.s && o.i != p.i))|self.ml.all(a, self.ml.all(b, a.k == b.k || a.v != b.v))|self.l.all(x, self.m.exists(k, self.m[k].contains(x)))|self.s.split('').all(x, self.s.contains(x))|self.l.map(x, x.split(',')).flatten().all(y, y.size() < 5)|(self.b ? self.l : self.st).all(x, x == 'a')|(self.s == 'a' ? self.s : self.t).contains('b')|[self.s, self.t].all(x, x.contains('a'))|{'a': self.s}.a.contains('b')|self.l.all(x, x in self.st)|self.l.all(x, x.matches('a') && x.replace('a', 'b').contains('c'))
jsonpatch.escapeKey(self.s) == 'a'|self.l.distinct().all(x, x == 'a')|self.l.sortBy(x, x).size() > 1|self.ol.sortBy(o, o.i)[0].s == 'a'|self.l.exists(x, self.s.startsWith(x)) && self.l.exists(x, self.s.endsWith(x))|self.s.size() + self.t.size() + self.l.size() < 100|string(1.5) == self.s|self.k.all(x, self.k.exists_one(y, x == y))|self.ll[0][0].contains('a')|self.ll.all(x, sets.contains(x, self.l))|self.m == {'a': 'b'}|self.o == self.o|self.ol == self.ol|self.d in [self.d]|self.d == timestamp('2026-01-01T00:00:00Z')|self.dur < duration('1h')|ip.isCanonical(self.s)|cidr(self.s).ip().isLoopback()|cidr(self.s).containsCIDR(cidr('10.0.0.0/8'))|self.s.matches('a{1000}{1000}')|self.s.matches('\\\\d+')|self.s == 'a\\nb'|r'\\d' == self.s"""
# An or has two bars.
COSTS = re.split(r"(?<!\|)\|(?!\|)|\n", COSTS)


def rules():
    for bound in (False, True):
        for part in range(0, len(COSTS), 40):
            s = Story(f"definition_rules_{'bound' if bound else 'free'}_{part // 40}")
            base = s.definition("ruleds", root({**of(**fields(bound)), "x-kubernetes-validations": [rule("true")]}))
            s.add("POST", CRDS + "?dryRun=All", base)
            for text in COSTS[part:part + 40]:
                s.add("POST", CRDS + "?dryRun=All", {"of": 0, "set": [[["spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "x-kubernetes-validations", 0, "rule"], text]]})
    s = Story("definition_rules_places")
    base = s.definition("ruleds", root(of(x=S)))
    s.add("POST", CRDS + "?dryRun=All", base)
    text = {"type": "string", "maxLength": 20}
    costly = rule("self.matches('(a+)+$')")
    for spec in (of(l=array({**S, "x-kubernetes-validations": [costly]})), of(l=array({**text, "x-kubernetes-validations": [costly]}, maxItems=10)), of(l=array({**text, "x-kubernetes-validations": [costly]})), of(l=array(array({**text, "x-kubernetes-validations": [costly]}, maxItems=100), maxItems=100)), of(l=array(array({**text, "x-kubernetes-validations": [costly]}))),
                 of(m=mapping({**text, "x-kubernetes-validations": [costly]})), of(m=mapping({**text, "x-kubernetes-validations": [costly]}, maxProperties=10)), of(m=mapping(mapping({**S, "x-kubernetes-validations": [costly]}))), of(m=mapping(array({**S, "x-kubernetes-validations": [costly]}), maxProperties=3)),
                 of(**{f"f{n}": {"type": "string", "x-kubernetes-validations": [costly]} for n in range(5)}), of(**{f"f{n}": {"type": "string", "maxLength": 5000, "x-kubernetes-validations": [rule("self.contains('a')")]} for n in range(20)}), of(**{f"f{n}": array({"type": "string", "maxLength": 100, "x-kubernetes-validations": [rule("self.contains('a')")]}) for n in range(30)}),
                 of(l=array(of(s={**S, "x-kubernetes-validations": [rule("self == oldSelf")]}))), of(l=array(of(s={**S, "x-kubernetes-validations": [rule("self == oldSelf")]}), **{"x-kubernetes-list-type": "atomic"})), of(m=mapping(of(s={**S, "x-kubernetes-validations": [rule("self == oldSelf")]}))),
                 of(l={"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": text, "v": {"type": "string", "x-kubernetes-validations": [rule("self == oldSelf")]}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "maxItems": 10}),
                 of(l=array({**S, "x-kubernetes-validations": [rule("oldSelf.hasValue() || true", optionalOldSelf=True)]})), {**of(a=S), "x-kubernetes-map-type": "atomic", "x-kubernetes-validations": [rule("self.a == oldSelf.a")]}, of(o={**of(a={**S, "x-kubernetes-validations": [rule("self == oldSelf")]}), "x-kubernetes-map-type": "atomic"}),
                 of(a={**S, "allOf": [{"x-kubernetes-validations": [rule("true")]}]}), of(a={**S, "not": {"x-kubernetes-validations": [rule("true")]}}), of(a={"x-kubernetes-int-or-string": True, "x-kubernetes-validations": [rule("self != 5")]}), of(a={"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": [rule("true")]}), of(a={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": [rule("has(self.b)")]}),
                 of(a={**N, "x-kubernetes-validations": [rule("self > 1.0")]}), of(a={**B, "x-kubernetes-validations": [rule("self")]}), of(a={"type": "string", "format": "date-time", "x-kubernetes-validations": [rule("self > timestamp('2026-01-01T00:00:00Z')")]}), of(a={"type": "string", "enum": ["a", "b"], "x-kubernetes-validations": [rule("self.matches('(a+)+')")]}),
                 of(a={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": [rule("self.metadata.name == 'a'"), rule("self.spec.a == 1"), rule("self.kind.contains('P')")]}), of(a={"type": "string", "nullable": True, "x-kubernetes-validations": [rule("self == null || self == 'a'")]}),
                 {**of(a=S, b=I), "x-kubernetes-validations": [rule("self.a == 'x'", messageExpression="self.a + string(self.b)"), rule("self.b > 1", messageExpression="self.a.replace('a', 'b') + self.a"), rule("true", messageExpression="self.zzz"), rule("true", messageExpression="[1].map(x, 'a')"), rule("true", messageExpression="self.b"), rule("true", messageExpression="''"), rule("true", messageExpression="'a\\nb'")]},
                 {**of(a=S, b=I), "x-kubernetes-validations": [rule("true", reason=r) for r in ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate", "FieldValueTypeInvalid", "invalid", "")]},
                 {**of(a=S, o=of(p=S, q=array(S)), m=mapping(S), **{"a-b": S, "c.d": S}), "x-kubernetes-validations": [rule("true", fieldPath=f) for f in (".a", ".o.p", ".o.zzz", ".o.q", ".o.q[0]", ".m.x", ".m['x']", ".m['x y']", "['a']", ".['a']", ".o['p']", ".a-b", "['a-b']", ".c.d", ".['c.d']", "", " ", ".", "..", ".a.", "a", ".a\n", ".o['p", ".o[p]", ".o[]", "$.a", "self.a", ".o.p.q", ".m['a\\'b']", ".m['a'].b")]},
                 {**of(a=S), "x-kubernetes-validations": [rule("true"), rule("true"), rule("true", message="m"), rule("")]}, {**of(a=S), "x-kubernetes-validations": [{}]}, {**of(a=S), "x-kubernetes-validations": []}, {**of(a=S), "x-kubernetes-validations": [rule("true", message=" a"), rule("true", message="a\n"), rule("true", message="\n"), rule("true", message=""), rule("a\nb"), rule("true\n && false")]},
                 {**of(a=S), "x-kubernetes-validations": [rule("true", optionalOldSelf=True), rule("true", optionalOldSelf=False), rule("oldSelf == self", optionalOldSelf=False), rule("oldSelf.a == 'x'", optionalOldSelf=True), rule("oldSelf.orValue(self) == self", optionalOldSelf=True), rule("oldSelf.?a.orValue('') == self.a", optionalOldSelf=True), rule("oldSelf.hasValue()")]}):
        s.add("POST", CRDS + "?dryRun=All", {"of": 0, "set": [[["spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec"], spec]]})
    for whole in ([rule("self.metadata.name == 'a'")], [rule("self.metadata.generateName == 'a'")], [rule("self.metadata.labels.a == 'a'")], [rule("self.metadata.namespace == 'a'")], [rule("self.metadata == oldSelf.metadata")], [rule("self.kind == 'a' && self.apiVersion == 'b'")], [rule("self.spec.x == oldSelf.spec.x")], [rule("self.status.x == 1")], [rule("self == oldSelf")],
                  [rule("self.metadata.name.matches('^[a-z]+$') && self.metadata.name.size() < 10")], [rule("true", fieldPath=".metadata.name")], [rule("true", fieldPath=".spec.x")], [rule("true", fieldPath=".metadata.labels")], [rule("true", fieldPath=".kind")], [rule("self.spec.x.contains(self.metadata.name)")]):
        s.add("POST", CRDS + "?dryRun=All", {"of": 0, "set": [[["spec", "versions", 0, "schema", "openAPIV3Schema", "x-kubernetes-validations"], whole]]})


def ruled_objects():
    """Rules at work: fields with a rule each, objects that set one."""
    text = {"type": "string", "maxLength": 30}
    cases = [
        (text, "self.startsWith('a')", ["abc", "xyz", "", None, 5]), (text, "self.matches('^[a-z]+$')", ["abc", "A1", "\u00e9"]), (text, "self.size() == 2", ["\u00e9\u00e8", "ab", "abc", "\U0001f600\U0001f600"]), (text, "int(self) > 5", ["7", "3", "x", ""]), (text, "double(self) > 1.5", ["1.6", "1", "x"]), (text, "timestamp(self) > timestamp('2026-01-01T00:00:00Z')", ["2026-06-01T00:00:00Z", "2025-06-01T00:00:00Z", "x"]),
        (text, "duration(self) < duration('1h')", ["5m", "2h", "x"]), (text, "quantity(self).isLessThan(quantity('1Gi'))", ["1Mi", "2Gi", "x"]), (text, "ip(self).family() == 4", ["1.2.3.4", "::1", "x", "::ffff:1.2.3.4"]), (text, "cidr('10.0.0.0/8').containsIP(self)", ["10.1.1.1", "11.0.0.1", "x"]), (text, "url(self).getScheme() == 'https'", ["https://a/b", "http://a", "x", ":"]), (text, "semver(self).isLessThan(semver('2.0.0'))", ["1.5.0", "2.1.0", "x", "v1.0.0"]),
        (text, "!format.dns1123Label().validate(self).hasValue()", ["abc", "A_b", ""]), (text, "self.split(',').all(x, x.size() > 1)", ["aa,bb", "a,b", ""]), (text, "self.substring(1, 2) == 'b'", ["abc", "acc", "a", ""]), (text, "self.charAt(5) == 'a'", ["aaaaaa", "ab"]), (text, "self.lowerAscii() == self", ["abc", "aBc"]), (text, "self.format([1, 'a']) == '1 a'", ["%d %s", "%s %s", "%z", "%d"]), (text, "self.matches(self)", ["a", "(", "[a-"]),
        (I, "self / 2 > 1", [5, 1, 0]), (I, "10 / self > 1", [2, 20, 0]), (I, "10 % self == 0", [5, 3, 0]), (I, "self + 9223372036854775807 > 0", [0, 1, -1]), (I, "self * self < 100", [5, 11, 4000000000]), (I, "-self < 0", [1, -1]), (I, "self in [1, 2]", [1, 3]), (I, "self == 1 || 1 / (self - 2) > 0", [1, 3, 2]), (I, "self != 2 && 1 / (self - 3) > -5", [2, 4, 3]), (I, "[1, 2, 3][self] == 2", [1, 0, 7, -1]), (I, "{1: 'a'}[self] == 'a'", [1, 2]), (I, "uint(self) > 3u", [5, 1, -1]),
        (N, "self > 1.5", [2, 1.5, 1, 1.25]), (N, "int(self) == 3", [3.7, 4, 1e30]), (N, "self / 0.0 > 1.0", [1, -1, 0]), (N, "string(self) == '1.5'", [1.5, 2, 1e21]), (B, "self", [True, False, "true"]),
        (array(text, maxItems=10), "self.all(x, x.size() > 1)", [["aa"], ["a"], [], None]), (array(text, maxItems=10), "self[0] == 'a'", [["a"], ["b"], []]), (array(text, maxItems=10), "self.exists_one(x, x == 'a')", [["a"], ["a", "a"], []]), (array(text, maxItems=10), "self.map(x, int(x)).sum() > 5", [["3", "4"], ["1"], ["x"]]), (array(text, maxItems=10), "self.isSorted()", [["a", "b"], ["b", "a"], []]), (array(text, maxItems=10), "self.join('-') == 'a-b'", [["a", "b"], []]),
        (array(text, maxItems=10), "self.all(x, self.exists_one(y, x == y))", [["a", "b"], ["a", "a"]]), (array(I, maxItems=10), "self.min() > 1", [[2, 3], [1], []]), (array(I, maxItems=10), "self.slice(0, 2).sum() == 3", [[1, 2, 9], [1]]), (array(I, maxItems=10), "self.filter(x, x > 3).size() == 1", [[5, 1], [5, 5]]), (array({**text}, **{"x-kubernetes-list-type": "set", "maxItems": 10}), "self == ['a', 'b']", [["a", "b"], ["b", "a"], ["c"]]), (array({**text}, **{"x-kubernetes-list-type": "set", "maxItems": 10}), "self + ['a'] == ['a']", [[], ["a"], ["b"]]),
        (mapping(text, maxProperties=10), "self.all(k, k.size() > 1)", [{"aa": "b"}, {"a": "b"}, {}]), (mapping(text, maxProperties=10), "self['a'] == 'b'", [{"a": "b"}, {"a": "c"}, {}]), (mapping(text, maxProperties=10), "has(self.a) && self.a == 'b'", [{"a": "b"}, {}]), (mapping(I, maxProperties=10), "self.exists(k, self[k] > 5)", [{"a": 6}, {"a": 5}]), (mapping(I, maxProperties=10), "self.transformList(k, v, v).sum() > 5", [{"a": 6}, {"a": 5}]),
        (of(a=text, b=I), "self.a == 'x'", [{"a": "x"}, {"a": "y"}, {}, {"b": 1}]), (of(a=text, b=I), "has(self.a) != has(self.b)", [{"a": "x"}, {"b": 1}, {"a": "x", "b": 1}, {}]), (of(a=text, b=I), "self.?a.orValue('x') == 'x'", [{"a": "x"}, {"a": "y"}, {}]), (of(a={**text, "default": "d"}, b=I), "self.a == 'd'", [{}, {"a": "e"}]),
        ({"x-kubernetes-int-or-string": True}, "type(self) == string ? self.endsWith('%') : self > 5", [6, 5, "5%", "5"]), ({"type": "string", "nullable": True, "maxLength": 5}, "self == 'a'", ["a", "b", None]), ({"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}, "self.kind == 'Pod' && self.metadata.name == 'a'", [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}, {"apiVersion": "v1", "kind": "Pod"}]),
        ({"type": "string", "format": "date-time"}, "self.getFullYear() == 2026", ["2026-06-01T00:00:00Z", "2025-06-01T00:00:00Z", "x"]), ({"type": "string", "format": "duration"}, "self.getSeconds() == 60", ["1m", "1h", "x"]), ({"type": "string", "format": "byte"}, "self == b'hello'", ["aGVsbG8=", "aGk="]), ({"type": "string", "format": "date"}, "self.getDayOfMonth() == 4", ["2026-01-05", "2026-01-01"]),
    ]
    s = Story("definition_rules_run")
    s.kind = "Ran"
    s.define(s.definition("rans", root(of(**{f"f{n}": {**schema, "x-kubernetes-validations": [rule(text)]} for n, (schema, text, _) in enumerate(cases)})), kind="Ran"))
    for n, (_, _, values) in enumerate(cases):
        for value in values:
            s.add("POST", "/apis/GROUP/v1NS/rans?dryRun=All", s.object({f"f{n}": value}))
    s = Story("definition_rules_messages")
    s.kind = "Told"
    told = [dict(message="plain"), dict(messageExpression="'value is ' + self.a"), dict(messageExpression="self.a", message="fallback"), dict(messageExpression="'x'.substring(5)", message="fallback"), dict(messageExpression="'x'.substring(5)"), dict(messageExpression="'a' + '\\n' + self.a", message="fallback"), dict(messageExpression="' '", message="fallback"), dict(reason="FieldValueForbidden"), dict(reason="FieldValueRequired", message="needed"), dict(reason="FieldValueDuplicate", message="twice"),
            dict(reason="FieldValueInvalid", fieldPath=".a"), dict(fieldPath=".o.p", message="deep"), dict(fieldPath=".o['p']"), dict(fieldPath=".m['x y']", reason="FieldValueRequired"), dict(fieldPath=".zz", reason="FieldValueDuplicate")]
    inner = of(a={"type": "string", "maxLength": 20}, o=of(p=S), m=mapping(S), zz=I)
    s.define(s.definition("tolds", root(of(**{f"f{n}": {**inner, "x-kubernetes-validations": [rule("self.a != 'bad' && self.a != 'long' && self.a != ''", **one)]} for n, one in enumerate(told)}, l=array({**inner, "x-kubernetes-validations": [rule("self.a != 'bad'", fieldPath=".a")]}, maxItems=5), mm=mapping({"type": "string", "x-kubernetes-validations": [rule("self != 'bad'")]}, maxProperties=5))), kind="Told"))
    for n in range(len(told)):
        for value in ("good", "bad", ""):
            s.add("POST", "/apis/GROUP/v1NS/tolds?dryRun=All", s.object({f"f{n}": {"a": value}}))
    s.add("POST", "/apis/GROUP/v1NS/tolds?dryRun=All", s.object({f"f{n}": {"a": "bad"} for n in range(6)}))
    for spec in ({"l": [{"a": "bad"}, {"a": "good"}, {"a": "bad"}]}, {"l": [{}]}, {"mm": {"x": "bad", "y.z": "bad", "good": "good"}}, {"f0": {"a": 5}, "f1": {"a": "bad"}}, {"f0": {"a": "x" * 21}, "f1": {"a": "bad"}}, {"f0": {}}):
        s.add("POST", "/apis/GROUP/v1NS/tolds?dryRun=All", s.object(spec))


def transitions():
    s = Story("definition_transitions")
    s.kind = "Turn"
    s.define(s.definition("turns", root(of(
        im={"type": "string", "x-kubernetes-validations": [rule("self == oldSelf", message="is immutable")]}, up={"type": "integer", "x-kubernetes-validations": [rule("self >= oldSelf")]}, once={"type": "string", "x-kubernetes-validations": [rule("!oldSelf.hasValue() || oldSelf.value() == self", optionalOldSelf=True)]},
        ml={"type": "array", "maxItems": 5, "items": {"type": "object", "required": ["k"], "properties": {"k": S, "v": {"type": "integer", "x-kubernetes-validations": [rule("self >= oldSelf")]}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "x-kubernetes-validations": [rule("oldSelf.all(o, self.exists(n, n.k == o.k))")]},
        st={"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10}, "x-kubernetes-list-type": "set", "x-kubernetes-validations": [rule("oldSelf.all(x, x in self)")]}, at={"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10}, "x-kubernetes-validations": [rule("self == oldSelf || self.size() > oldSelf.size()")]},
        m={"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer", "x-kubernetes-validations": [rule("self != oldSelf || true"), rule("self >= oldSelf")]}}, o={**of(a=S, b=S), "x-kubernetes-validations": [rule("!has(oldSelf.a) || has(self.a)", message="a stays")]}), beside={"status": of(n={"type": "integer", "x-kubernetes-validations": [rule("self >= oldSelf")]})},
        **{"x-kubernetes-validations": [rule("self.metadata.name.startsWith('x')"), rule("has(self.spec) == has(oldSelf.spec)", message="spec stays")]}), versions=None, kind="Turn"))
    s.steps[0]["b"]["spec"]["versions"][0]["subresources"] = {"status": {}}
    at = "/apis/GROUP/v1NS/turns"
    whole = {"im": "a", "up": 5, "once": "a", "ml": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "st": ["a", "b"], "at": ["a"], "m": {"a": 1, "b": 2}, "o": {"a": "x", "b": "y"}}
    s.add("POST", at + "?dryRun=All", s.object(whole, "y")).add("POST", at, s.object(whole)).add("PUT", at + "/x/status", s.object(whole, status={"n": 5}))
    s.steps[-1]["b"]["metadata"]["resourceVersion"] = "{rv}"
    for spec in ({"im": "b"}, {"im": None}, {"im": "a"}, {"up": 6}, {"up": 4}, {"up": None}, {"once": "b"}, {"once": None}, {"ml": [{"k": "b", "v": 2}, {"k": "a", "v": 1}]}, {"ml": [{"k": "b", "v": 1}, {"k": "a", "v": 1}]}, {"ml": [{"k": "a", "v": 1}]}, {"ml": [{"k": "a", "v": 9}, {"k": "b", "v": 9}, {"k": "c", "v": 0}]}, {"ml": None}, {"st": ["b", "a"]}, {"st": ["a"]}, {"st": ["a", "b", "c"]}, {"at": ["b"]}, {"at": ["b", "c"]}, {"m": {"a": 0}}, {"m": {"a": None}}, {"m": {"c": 0, "a": 2}}, {"o": {"a": None}}, {"o": None}, {"o": {"b": None}}, {"im": "b", "up": 4, "m": {"a": 0, "b": 0}}):
        s.add("PATCH", at + "/x?dryRun=All", {"spec": spec}, MERGE)
    s.add("PATCH", at + "/x?dryRun=All", {"spec": None}, MERGE)
    for n in (4, 5, 6):
        s.add("PATCH", at + "/x/status?dryRun=All", {"status": {"n": n}}, MERGE)
    s.add("PATCH", at + "/x/status?dryRun=All", {"spec": {"im": "b"}, "status": {"n": 7}}, MERGE).add("PATCH", at + "/x?dryRun=All", {"status": {"n": 1}}, MERGE)


# ---- serving
def serving():
    s = Story("definition_served")
    s.kind = "Served"
    columns = [{"name": "Text", "type": "string", "jsonPath": ".spec.s"}, {"name": "Number", "type": "integer", "jsonPath": ".spec.i", "priority": 1}, {"name": "Fraction", "type": "number", "jsonPath": ".spec.n"}, {"name": "Yes", "type": "boolean", "jsonPath": ".spec.b"}, {"name": "When", "type": "date", "jsonPath": ".spec.d"}, {"name": "List", "type": "string", "jsonPath": ".spec.l"}, {"name": "All", "type": "string", "jsonPath": ".spec.l[*]"}, {"name": "First", "type": "string", "jsonPath": ".spec.l[0]"},
               {"name": "Keyed", "type": "string", "jsonPath": ".spec.ol[?(@.k==\"a\")].v"}, {"name": "Object", "type": "string", "jsonPath": ".spec.o"}, {"name": "Deep", "type": "string", "jsonPath": ".spec.o.a"}, {"name": "Label", "type": "string", "jsonPath": ".metadata.labels.a\\.b/c"}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    spec = {**of(s=S, i=I, n=N, b=B, d=S, l=array(S), ol=array(of(k=S, v=I)), o=of(a=S)), "x-kubernetes-preserve-unknown-fields": True}
    s.define(s.definition("serveds", versions=[version(root(spec, beside={"status": of(n=I, sel=S)}), additionalPrinterColumns=columns, selectableFields=[{"jsonPath": ".spec.s"}, {"jsonPath": ".spec.i"}, {"jsonPath": ".spec.b"}],
                                                       subresources={"status": {}, "scale": {"specReplicasPath": ".spec.i", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.sel"}})], kind="Served"))
    s.steps[0]["b"]["spec"]["names"].update(shortNames=["srv"], categories=["all", "things"], singular="serving", listKind="ServingList")
    at = "/apis/GROUP/v1NS/serveds"
    s.add("GET", CRDS + "/serveds.GROUP").add("GET", "/apis/GROUP").add("GET", "/apis/GROUP/v1").add("GET", "/apis/GROUP/v2").add("GET", at)
    full = {"s": "t", "i": 3, "n": 1.5, "b": True, "d": "2026-01-01T00:00:00Z", "l": ["a", "b"], "ol": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "o": {"a": "x"}}
    s.add("POST", at, s.object(full, "a")).add("POST", at, s.object({}, "b")).add("POST", at, s.object({"s": "u", "i": 2, "d": "nonsense", "n": 2, "l": []}, "c")).add("POST", at, s.object(..., "d"))
    for accept in (TABLE, PARTIAL, "application/yaml", "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json", "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "text/plain", "application/json;as=Table;v=v2;g=meta.k8s.io", "application/cbor"):
        s.add("GET", at, accept=accept).add("GET", at + "/a", accept=accept)
    for query in ("spec.s%3Dt", "spec.s!%3Dt", "spec.i%3D3", "spec.b%3Dtrue", "spec.b%3D", "spec.s%3D", "spec.n%3D1.5", "metadata.name%3Da", "metadata.namespace%3Ddefault", "metadata.uid%3Dx", "spec.s%3Dt,metadata.name%3Da", "spec", "status.n%3D1", "spec.i%3Dx", "spec.o.a%3Dx"):
        s.add("GET", f"{at}?fieldSelector={query}").add("DELETE", f"{at}?dryRun=All&fieldSelector={query}")
    for query in ("limit=1", "limit=-1", "resourceVersion=x", "labelSelector=(", "resourceVersionMatch=Exact", "pretty=true", "watch=x", "continue=x"):
        s.add("GET", f"{at}?{query}")
    s.add("GET", at + "/zz").add("GET", "/apis/GROUP/v1/namespaces/none/serveds").add("GET", "/apis/GROUP/v1/serveds").add("GET", "/apis/GROUP/v1/serveds/a").add("POST", "/apis/GROUP/v1/serveds", s.object({})).add("POST", "/apis/GROUP/v1/namespaces/none-such/serveds", s.object({})).add("GET", at + "/a/zz").add("GET", "/apis/GROUP/v1NS/wrongs").add("GET", "/apis/GROUP/v1NS/serving").add("GET", "/apis/GROUP/v1NS/srv")
    one = at + "/a"
    scale = lambda **spec: {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "default"}, "spec": spec}
    s.add("GET", one + "/status").add("GET", one + "/scale").add("GET", at + "/b/scale").add("GET", at + "/zz/scale").add("PUT", one + "/scale", scale(replicas=5)).add("PUT", one + "/scale", scale()).add("PUT", one + "/scale", scale(replicas=-1)).add("PUT", one + "/scale", scale(replicas="x")).add("PUT", one + "/scale", {**scale(replicas=6), "kind": "Wrong"}).add("PUT", one + "/scale", {**scale(replicas=6), "metadata": {"name": "b"}}).add("PUT", one + "/scale", {**scale(replicas=6), "metadata": {"name": "a", "resourceVersion": "1"}})
    s.add("PATCH", one + "/scale", {"spec": {"replicas": 7}}, MERGE).add("PATCH", one + "/scale", {"spec": {"replicas": None}}, MERGE).add("PATCH", one + "/scale", [{"op": "replace", "path": "/spec/replicas", "value": 8}], JSON).add("PATCH", one + "/scale", {"spec": {"replicas": 7}}, STRATEGIC).add("DELETE", one + "/scale").add("GET", one + "/scale", accept=TABLE)
    s.add("PATCH", one + "/status", {"status": {"n": 4, "sel": "a=b"}}, MERGE).add("GET", one + "/scale").add("PATCH", one + "/status", {"status": {"sel": "((("}}, MERGE).add("GET", one + "/scale").add("PATCH", one + "/status", {"status": {"n": "x"}}, MERGE).add("PATCH", one + "/status", {"spec": {"s": "changed"}, "metadata": {"labels": {"l": "m"}, "finalizers": ["a.b/c"]}}, MERGE).add("PATCH", one, {"status": {"n": 99}}, MERGE).add("POST", at, s.object({"s": "t"}, "e", status={"n": 7})).add("PUT", one + "/status", s.object({}, "a")).add("DELETE", one + "/status").add("POST", one + "/status", {})
    s.add("GET", one + "/status", accept=TABLE).add("PATCH", at + "/b/scale", {"spec": {"replicas": 1}}, MERGE).add("GET", at + "/b").add("PATCH", at + "/d/scale", {"spec": {"replicas": 1}}, MERGE).add("PATCH", at + "/d/status", {"status": {"n": 2}}, MERGE).add("PUT", at + "/d/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 2}}).add("GET", at + "/d")
    # What is written, in every form.
    good = s.object({"s": "t"}, "w")
    for body, type, query in ((good, "application/yaml", ""), (json.dumps(good), "text/plain", ""), (json.dumps(good), "application/vnd.kubernetes.protobuf", ""), ("{", "application/json", ""), ("[]", "application/json", ""), ("null", "application/json", ""), ("", "application/json", ""), ("a: [", "application/yaml", ""), ({**good, "kind": "Wrong"}, None, ""), ({**good, "apiVersion": "v1"}, None, ""), ({**good, "apiVersion": s.group + "/v2"}, None, ""), ({k: v for k, v in good.items() if k != "kind"}, None, ""), ({k: v for k, v in good.items() if k != "apiVersion"}, None, ""), ({k: v for k, v in good.items() if k != "metadata"}, None, ""),
                              ({**good, "metadata": None}, None, ""), ({**good, "metadata": "x"}, None, ""), ({**good, "metadata": []}, None, ""), ({**good, "spec": []}, None, ""), ({**good, "zzz": 1}, None, ""), ({**good, "zzz": 1}, None, "fieldValidation=Strict"), ({**good, "zzz": 1}, None, "fieldValidation=Warn"), ({**good, "zzz": 1}, None, "fieldValidation=Ignore"), ({**good, "zzz": 1}, None, "fieldValidation=Wrong"), (json.dumps(good)[:-1] + ', "spec": {"s": "u"}}', None, ""), (json.dumps(good)[:-1] + ', "spec": {"s": "u"}}', None, "fieldValidation=Strict"),
                              (json.dumps(good)[:-1] + ', "spec": {"s": "u", "s": "v"}}', None, "fieldValidation=Warn"), ({**good, "metadata": {"name": "w", "nonsense": 1}}, None, "fieldValidation=Strict"), ({**good, "metadata": {"name": "w", "nonsense": 1}}, None, ""), ({**good, "status": {"zzz": 1}}, None, "fieldValidation=Strict"), (good, None, "fieldManager=" + "x" * 130), (good, None, "fieldManager=a%0Ab"), (good, None, "dryRun=Some")):
        s.add("POST", at + "?dryRun=All" + ("&" + query if query else "") if "dryRun" not in query else at + "?" + query, body, type)
    for metadata in ({"name": "Bad_Name"}, {"name": ""}, {"name": "a" * 254}, {"name": "a.b"}, {"name": "a/b"}, {"name": ".."}, {"name": 5}, {"name": "w", "namespace": "elsewhere"}, {"name": "w", "namespace": ""}, {"name": "w", "uid": "u"}, {"name": "w", "resourceVersion": "5"}, {"name": "w", "creationTimestamp": "x"}, {"name": "w", "creationTimestamp": "2020-01-01T00:00:00Z"}, {"name": "w", "creationTimestamp": 5}, {"name": "w", "generation": 7}, {"name": "w", "generation": "x"}, {"name": "w", "labels": {"a": "b c"}}, {"name": "w", "labels": {"a": 5}}, {"name": "w", "labels": ["a"]}, {"name": "w", "labels": {"a b": "c"}}, {"name": "w", "labels": None},
                     {"name": "w", "annotations": {"x y": "z"}}, {"name": "w", "annotations": {"a": None}}, {"name": "w", "annotations": {"a": {}}}, {"name": "w", "finalizers": ["plain"]}, {"name": "w", "finalizers": ["a b"]}, {"name": "w", "finalizers": "x"}, {"name": "w", "finalizers": ["a.b/c", "a.b/c"]}, {"name": "w", "finalizers": [5]}, {"name": "w", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}, {"name": "w", "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}]}, {"name": "w", "ownerReferences": [{}]}, {"name": "w", "ownerReferences": "x"},
                     {"name": "w", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}, {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "v", "controller": True}]}, {"name": "w", "deletionTimestamp": "2026-01-01T00:00:00Z"}, {"name": "w", "deletionGracePeriodSeconds": 5}, {"name": "w", "selfLink": "x"}, {"name": "w", "managedFields": [{}]}, {"name": "w", "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]}, {"generateName": "gen-"}, {"generateName": "Bad_"}, {"generateName": "gen-", "name": "w"}, {}):
        s.add("POST", at + "?dryRun=All", {**good, "metadata": metadata})
    # What is there, changed.
    for body, type in (({"spec": {"s": 5}}, MERGE), ({"spec": {"zzz": {"y": 1}}}, MERGE), ({"metadata": {"name": "b"}}, MERGE), ({"metadata": {"namespace": "x"}}, MERGE), ({"metadata": {"uid": "x"}}, MERGE), ({"metadata": {"resourceVersion": "1"}}, MERGE), ({"metadata": {"generation": 99}}, MERGE), ({"metadata": {"labels": {"a": None}}}, MERGE), ({"kind": "Wrong"}, MERGE), ({"apiVersion": "v1"}, MERGE), ({}, MERGE), ([], MERGE), ("x", MERGE), ("", MERGE), ([{"op": "replace", "path": "/spec/s", "value": "z"}], JSON), ([{"op": "remove", "path": "/spec/none"}], JSON), ([{"op": "test", "path": "/spec/i", "value": 99}], JSON), ([{"op": "wrong"}], JSON), ([{"op": "replace", "path": "/metadata/name", "value": "z"}], JSON),
                       ({"spec": {"s": "x"}}, STRATEGIC), ({"spec": {"s": "x"}}, "application/json"), ({"spec": {"s": "x"}}, "text/plain"), ({"metadata": {"finalizers": ["x"]}}, MERGE), ({"metadata": {"ownerReferences": [{}]}}, MERGE), ({"metadata": {"creationTimestamp": None}}, MERGE), ({"metadata": {"managedFields": []}}, MERGE), ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, MERGE)):
        s.add("PATCH", one + "?dryRun=All", json.dumps(body) if not isinstance(body, str) else body, type)
    s.add("PATCH", at + "/zz", {}, MERGE).add("PATCH", at, {}, MERGE).add("PUT", one, s.object({}, "a")).add("PUT", one, s.object({}, "b")).add("PUT", at + "/zz", s.object({}, "zz")).add("GET", one).add("PUT", one, s.object({"s": "put"}, "a"))
    s.steps[-1]["b"]["metadata"]["resourceVersion"] = "{rv}"
    s.add("PUT", one, s.object({"s": "put"}, "a", metadata={"name": "a", "resourceVersion": "1"})).add("PUT", one, s.object({"s": "put"}, "a", metadata={"name": "a", "resourceVersion": "x"})).add("POST", at, s.object({}, "a")).add("POST", one, {}).add("PUT", at, {})
    s.add("DELETE", one, {"preconditions": {"uid": "x"}}).add("DELETE", one, {"preconditions": {"resourceVersion": "1"}}).add("DELETE", one + "?propagationPolicy=Wrong").add("DELETE", one + "?dryRun=All").add("DELETE", one, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}).add("GET", one).add("PATCH", one, {"metadata": {"finalizers": ["d.e/f"]}}, MERGE).add("PATCH", one, {"metadata": {"finalizers": None}}, MERGE).add("GET", one)
    s.add("DELETE", at + "/b").add("DELETE", at + "/b").add("DELETE", at + "?limit=1").add("DELETE", at).add("GET", at)
    s.add("DELETE", CRDS + "/serveds.GROUP").settle().add("GET", CRDS + "/serveds.GROUP").add("GET", at).add("GET", "/apis/GROUP").add("POST", at, s.object({}))


def applying():
    s = Story("definition_applied")
    s.kind = "Applied"
    keyed = {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": S, "v": I, "w": I, "n": {"type": "string", "default": "d"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    two = {"type": "array", "items": {"type": "object", "required": ["p"], "properties": {"p": I, "proto": {"type": "string", "default": "TCP"}, "v": S}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["p", "proto"]}
    s.define(s.definition("applieds", root(of(set=array(S, **{"x-kubernetes-list-type": "set"}), map=keyed, two=two, atom=array(S), obj={**of(a=S, b=S), "x-kubernetes-map-type": "atomic"}, gran=of(a=S, b=S), mp=mapping(S), mo=mapping(of(a=S, b=S)), free={"type": "object", "x-kubernetes-preserve-unknown-fields": True}, ios={"x-kubernetes-int-or-string": True}, nul={"type": "string", "nullable": True}, d={"type": "string", "default": "dd"},
                                                  emb={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}, ints=array(I, **{"x-kubernetes-list-type": "set"}), lst={"type": "object", "additionalProperties": S, "x-kubernetes-map-type": "atomic"})), kind="Applied"))
    s.steps[0]["b"]["spec"]["versions"][0]["subresources"] = {"status": {}}
    s.steps[0]["b"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = of(n=I, c=keyed)

    def put(manager, spec, more="", sub="", **rest):
        s.add("PATCH", f"/apis/GROUP/v1NS/applieds/x{sub}?fieldManager={manager}{more}", s.object(spec, **rest), APPLY)

    put("one", {"set": ["a", "b"], "map": [{"k": "x", "v": 1}], "two": [{"p": 1}, {"p": 1, "proto": "UDP"}], "atom": ["p"], "obj": {"a": "1"}, "gran": {"a": "1"}, "mp": {"a": "1"}, "mo": {"a": {"a": "1"}}, "free": {"z": {"y": [1]}}, "ios": 1, "ints": [1, 2], "lst": {"a": "b"}})
    for manager, spec in (("two", {"set": ["c"], "map": [{"k": "y", "v": 2}, {"k": "x", "w": 3}], "gran": {"b": "2"}, "mp": {"b": "2"}, "mo": {"a": {"b": "2"}, "c": {}}}), ("two", {"set": ["a"]}), ("two", {"map": [{"k": "x", "v": 9}]}), ("two", {"atom": ["q"]}), ("two", {"obj": {"b": "2"}}), ("two", {"free": {"z": {"y": [2]}}}), ("two", {"free": {"z": {"x": 1}}}), ("two", {"ios": "5%"}), ("two", {"two": [{"p": 1, "v": "x"}]}), ("two", {"two": [{"p": 1, "proto": "UDP", "v": "x"}, {"p": 2}]}), ("two", {"lst": {"c": "d"}}), ("two", {"mp": {"a": "2"}}), ("two", {"mo": {"a": {"a": "2"}}}),
                          ("one", {"set": ["b"]}), ("one", {"zzz": 1}), ("one", {"gran": "x"}), ("one", {"gran": None}), ("one", {"map": [{"k": "x"}, {"k": "x"}]}), ("one", {"map": [{"v": 1}]}), ("one", {"map": {}}), ("one", {"map": [5]}), ("one", {"set": ["a", "a"]}), ("one", {"set": [["a"]]}), ("one", {"set": "x"}), ("one", {"ints": [1, 1]}), ("one", {"ints": ["1"]}), ("one", {"ints": [1.5]}), ("one", {"two": [{"p": 1}, {"p": 1, "proto": "TCP"}]}), ("one", {"two": [{"proto": "TCP"}]}), ("one", {"nul": None}), ("one", {"nul": "x"}), ("one", {"d": "own"}), ("one", {"d": None}), ("one", {"emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}}), ("one", {"emb": {"x": 1}}), ("one", {}), ("one", ...), ("one", "x"), ("one", None)):
        put(manager, spec)
    put("two", {"atom": ["q"], "set": ["c"]}, "&force=true")
    put("three", {"map": [{"k": "x", "v": 7}]}, "&force=true")
    put("st", ..., "", "/status", status={"n": 1, "c": [{"k": "a", "v": 1}]})
    put("st2", ..., "", "/status", status={"n": 2})
    put("st2", {"d": "ignored"}, "", "/status", status={"c": [{"k": "b"}]})
    put("one", {"gran": {"a": "1"}}, "", "", status={"n": 5})
    for body in ("", "{", "[]", "a: b", json.dumps({"apiVersion": s.group + "/v1", "kind": "Wrong", "metadata": {"name": "x"}}), json.dumps({"apiVersion": "v1", "kind": "Applied", "metadata": {"name": "x"}}), json.dumps({"kind": "Applied", "metadata": {"name": "x"}}), json.dumps(s.object({}, "other")), json.dumps({**s.object({}), "metadata": {"name": "x", "managedFields": [{"manager": "a"}]}}), json.dumps({**s.object({}), "metadata": {"name": "x", "resourceVersion": "1"}}), json.dumps({**s.object({}), "metadata": {"name": "x", "namespace": "other"}}), json.dumps({**s.object({}), "metadata": {"name": "x", "labels": {"a": 5}}}), json.dumps({**s.object({}), "metadata": {"name": "x", "uid": "none"}})):
        s.add("PATCH", "/apis/GROUP/v1NS/applieds/x?fieldManager=one", body, APPLY)
    s.add("PATCH", "/apis/GROUP/v1NS/applieds/x", s.object({}), APPLY).add("PATCH", "/apis/GROUP/v1NS/applieds/x?fieldManager=one&force=x", s.object({}), APPLY).add("PATCH", "/apis/GROUP/v1NS/applieds/new?fieldManager=one&dryRun=All", s.object({"set": ["z"]}, "new"), APPLY).add("PATCH", "/apis/GROUP/v1NS/applieds/new?fieldManager=one&fieldValidation=Strict", s.object({"zzz": 1, "gran": {"c": 1}}, "new"), APPLY)
    s.add("PATCH", "/apis/GROUP/v1NS/applieds/x?fieldManager=m", {"spec": {"map": [{"k": "x"}, {"k": "x"}]}}, MERGE).add("PATCH", "/apis/GROUP/v1NS/applieds/x?fieldManager=m", {"spec": {"set": ["a", "a"]}}, MERGE).add("PATCH", "/apis/GROUP/v1NS/applieds/x?fieldManager=m", {"spec": {"set": ["m"], "mp": {"m": "m"}}}, MERGE).add("GET", "/apis/GROUP/v1NS/applieds/x")


def versions():
    s = Story("definition_versions")
    s.kind = "Multi"
    schema = lambda **p: root(of(**p))
    s.define(s.definition("multis", versions=[version(schema(a=S, b={"type": "string", "default": "one"}), "v1beta1", storage=True, deprecated=True), version(schema(a=S, c={"type": "string", "default": "two"}), "v1", storage=False, additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".spec.a"}]), version(schema(a=I), "v2alpha1", storage=False, deprecated=True, deprecationWarning="use v1"), version(schema(), "v3", storage=False, served=False)], kind="Multi"))
    at = lambda v: f"/apis/GROUP/{v}NS/multis"
    s.add("GET", CRDS + "/multis.GROUP").add("GET", "/apis/GROUP").add("GET", "/apis/GROUP/v1").add("GET", "/apis/GROUP/v1beta1").add("GET", "/apis/GROUP/v3")
    for v in ("v1beta1", "v1", "v2alpha1", "v3"):
        s.add("POST", at(v), s.object({"a": "x", "b": "y", "c": "z"}, "o-" + v, version=v))
    for v in ("v1beta1", "v1", "v2alpha1", "v3"):
        s.add("GET", at(v)).add("GET", at(v) + "/o-v1").add("GET", at(v) + "/o-v1beta1").add("PATCH", at(v) + "/o-v1?dryRun=All", {"spec": {"a": "changed"}}, MERGE).add("GET", at(v), accept=TABLE)
    s.add("POST", at("v1"), s.object({"a": "x"}, "wrong", version="v1beta1")).add("PATCH", at("v1") + "/app?fieldManager=m", s.object({"a": "x"}, "app"), APPLY).add("PATCH", at("v1beta1") + "/app?fieldManager=m", s.object({"a": "y"}, "app", version="v1beta1"), APPLY).add("PATCH", at("v1") + "/app?fieldManager=n", s.object({"a": "z"}, "app"), APPLY).add("GET", at("v1") + "/app")
    s.redefine("multis", json.dumps([{"op": "replace", "path": "/spec/versions/0/storage", "value": False}, {"op": "replace", "path": "/spec/versions/1/storage", "value": True}]), JSON)
    s.add("GET", CRDS + "/multis.GROUP").add("GET", at("v1") + "/o-v1").add("GET", at("v1beta1") + "/o-v1").add("PATCH", at("v1") + "/o-v1", {"spec": {"a": "moved"}}, MERGE).add("GET", at("v1beta1") + "/o-v1")
    for patch in ([{"op": "remove", "path": "/spec/versions/0"}], [{"op": "remove", "path": "/spec/versions/2"}], [{"op": "replace", "path": "/spec/versions/0/storage", "value": True}], [{"op": "replace", "path": "/spec/versions/1/storage", "value": False}], [{"op": "replace", "path": "/spec/versions/1/served", "value": False}], [{"op": "replace", "path": "/spec/versions/1/name", "value": "v7"}], [{"op": "add", "path": "/spec/versions/-", "value": {"name": "v9", "served": True, "storage": False}}], [{"op": "add", "path": "/spec/versions/-", "value": {"name": "v9", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}}],
                  [{"op": "replace", "path": "/spec/names/kind", "value": "Other"}], [{"op": "replace", "path": "/spec/names/plural", "value": "others"}], [{"op": "replace", "path": "/spec/scope", "value": "Cluster"}], [{"op": "replace", "path": "/spec/group", "value": "other.example.com"}], [{"op": "add", "path": "/spec/names/shortNames", "value": ["m", "m"]}], [{"op": "add", "path": "/spec/preserveUnknownFields", "value": True}], [{"op": "replace", "path": "/metadata/name", "value": "x"}], [{"op": "add", "path": "/status/storedVersions", "value": []}], [{"op": "add", "path": "/spec/conversion", "value": {"strategy": "Webhook"}}]):
        s.add("PATCH", CRDS + "/multis.GROUP?dryRun=All", json.dumps(patch), JSON)
    for stored in (["v1"], ["v1beta1"], ["v1", "v1beta1"], [], ["v9"], ["v1", "v1"], "x", None):
        s.add("PATCH", CRDS + "/multis.GROUP/status?dryRun=All", {"status": {"storedVersions": stored}}, MERGE)
    s.add("PATCH", CRDS + "/multis.GROUP/status?dryRun=All", {"status": {"conditions": []}, "spec": {"scope": "Cluster"}}, MERGE).add("PATCH", CRDS + "/multis.GROUP/status", {"status": {"storedVersions": ["v1"]}}, MERGE)
    s.redefine("multis", json.dumps([{"op": "remove", "path": "/spec/versions/0"}]), JSON)
    s.add("GET", "/apis/GROUP").add("GET", at("v1beta1")).add("GET", at("v1") + "/o-v1").add("GET", CRDS + "/multis.GROUP/status").add("GET", CRDS + "/multis.GROUP", accept=TABLE)
    s = Story("definition_conversion")
    s.kind = "Con"
    hook = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"name": "absent", "namespace": "default"}}}}
    s.define(s.definition("cons", versions=[version(root(of(a=S)), "v1"), version(root(of(a=S)), "v2", storage=False)], kind="Con", conversion=hook))
    s.add("GET", CRDS + "/cons.GROUP").add("POST", at("v1").replace("multis", "cons"), s.object({"a": "x"})).add("GET", at("v1").replace("multis", "cons") + "/x")
    for step in (("GET", "/x", None), ("GET", "", None), ("POST", "", s.object({"a": "y"}, "y", version="v2")), ("PUT", "/x", s.object({"a": "y"}, version="v2")), ("DELETE", "/x", None), ("DELETE", "/none", None), ("GET", "/none", None)):
        s.add(step[0], at("v2").replace("multis", "cons") + step[1], step[2])
    s.add("PATCH", at("v2").replace("multis", "cons") + "/x", {"spec": {"a": "z"}}, MERGE).add("PATCH", at("v2").replace("multis", "cons") + "/x?fieldManager=m", s.object({"a": "z"}, version="v2"), APPLY)


def names():
    s = Story("definition_names")
    s.kind = "One"
    s.define(s.definition("ones", root(of(a=S)), names={"plural": "ones", "singular": "one", "kind": "One", "shortNames": ["o"], "categories": ["cat"]}))
    s.define(s.definition("twos", root(of(a=S)), names={"plural": "twos", "singular": "one", "kind": "Two", "shortNames": ["o"]}))
    s.add("GET", CRDS + "/twos.GROUP")
    s.define(s.definition("threes", root(of(a=S)), names={"plural": "threes", "kind": "One"}))
    s.add("GET", CRDS + "/threes.GROUP")
    s.define(s.definition("fours", root(of(a=S)), names={"plural": "fours", "kind": "Four", "listKind": "OneList"}))
    s.add("GET", CRDS + "/fours.GROUP")
    s.define(s.definition("ss", root(of(a=S)), names={"plural": "o", "kind": "Five"}))
    s.add("GET", CRDS + "/ss.GROUP").add("GET", "/apis/GROUP/v1").add("GET", "/apis/GROUP/v1NS/twos").add("GET", "/apis/GROUP/v1NS/threes").add("POST", "/apis/GROUP/v1NS/fours", s.object({}, kind="Four"))
    s.redefine("twos", {"spec": {"names": {"singular": "two", "shortNames": ["t"]}}})
    s.add("GET", CRDS + "/twos.GROUP").add("GET", "/apis/GROUP/v1NS/twos")
    s.redefine("ones", {"spec": {"names": {"shortNames": ["t", "oo"]}}})
    s.add("GET", CRDS + "/ones.GROUP")
    s.add("DELETE", CRDS + "/ones.GROUP").settle().add("GET", CRDS + "/threes.GROUP").add("GET", CRDS + "/fours.GROUP")
    s = Story("definition_cluster")
    s.kind = "Wide"
    s.define(s.definition("wides", root(of(a=S), beside={"status": of(n=I)}), kind="Wide", scope="Cluster"))
    at = "/apis/GROUP/v1/wides"
    s.add("POST", at, s.object({"a": "x"})).add("POST", at, s.object({"a": "x"}, metadata={"name": "y", "namespace": "default"})).add("GET", "/apis/GROUP/v1NS/wides").add("POST", "/apis/GROUP/v1NS/wides", s.object({})).add("GET", at + "/x").add("GET", at + "/x/status").add("GET", at + "/x/scale").add("PATCH", at + "/x", {"status": {"n": 1}}, MERGE).add("POST", at, s.object({"a": "x"}, "with-status", status={"n": 1})).add("GET", at, accept=TABLE).add("GET", "/apis/GROUP/v1").add("DELETE", at).add("DELETE", at + "/none")


# ---- schemas and the fields of a definition, alone
def schemas():
    kinds = [S, I, N, B, {"type": "object"}, array(S), mapping(S), of(a=S), {"x-kubernetes-int-or-string": True}, {"x-kubernetes-preserve-unknown-fields": True}, {"type": "string", "format": "date-time"}]
    values = ["x", "", 5, 1.5, -1, True, None, [], ["a"], [1], {}, {"a": "x"}, {"a": 1}, {"zz": 1}]
    s = Story("definition_defaults")
    s.add("POST", CRDS + "?dryRun=All", s.definition("schemas", root(of(f=S))))
    here = ["spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "f"]
    for kind in kinds:
        for value in values:
            s.add("POST", CRDS + "?dryRun=All", {"of": 0, "set": [[here, {**kind, "default": value}]]})
    s = Story("definition_keywords")
    s.add("POST", CRDS + "?dryRun=All", s.definition("schemas", root(of(f=S))))
    for kind in kinds:
        for word, value in (("enum", ["x"]), ("enum", [1, "a"]), ("enum", [None]), ("enum", [["a"]]), ("enum", []), ("pattern", "^a"), ("format", "int32"), ("nullable", True), ("maxLength", 5), ("minimum", 5), ("maxItems", 5), ("maxProperties", 5), ("required", ["a"]), ("x-kubernetes-list-type", "set"), ("x-kubernetes-map-type", "atomic"), ("x-kubernetes-embedded-resource", True), ("x-kubernetes-int-or-string", True), ("x-kubernetes-preserve-unknown-fields", True), ("anyOf", [{"minLength": 1}, {"required": ["a"]}]), ("not", {"enum": ["x"]}), ("items", S), ("additionalProperties", True), ("properties", {"metadata": S})):
            s.add("POST", CRDS + "?dryRun=All", {"of": 0, "set": [[here, {**kind, word: value}]]})
    s = Story("definition_formats")
    s.kind = "Formed"
    formats = ["date-time", "date", "datetime", "duration", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uri", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "bsonobjectid", "k8s-short-name", "k8s-long-name", "int32", "nonsense"]
    s.define(s.definition("formeds", root(of(**{f.replace("-", ""): {"type": "string", "format": f} for f in formats})), kind="Formed"))
    tries = {"date-time": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00+01:00", "2026-01-01 00:00:00", "2026-01-01T25:00:00Z", "2026-01-01T00:00:00.123456789Z", "x"], "date": ["2026-02-28", "2026-02-30", "2026-2-1"], "duration": ["1h", "1.5h", "1 day", "P1D", "-1h", "3", "1w"], "email": ["a@b", "a b@c.d", "A <a@b.c>"], "hostname": ["a.b", "a_b", "-a", "a" * 64, "\u00e9.com"], "ipv4": ["1.2.3.4", "01.2.3.4", "::1", "1.2.3"], "ipv6": ["::1", "1.2.3.4", "::ffff:1.2.3.4", "fe80::1%eth0"], "cidr": ["10.0.0.0/8", "10.0.0.1/8", "::/0", "10.0.0.0/33"],
             "mac": ["00:11:22:33:44:55", "0011.2233.4455", "x"], "uri": ["http://a", "/a", "a:b", "%zz", "a b"], "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000", "x"], "uuid4": ["123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"], "isbn": ["978-3-16-148410-0", "0-306-40615-2", "x"], "creditcard": ["4111111111111111", "4111111111111112"], "ssn": ["123-45-6789", "123456789"], "hexcolor": ["#fff", "fff", "#ggg"], "rgbcolor": ["rgb(1,2,3)", "rgb(300,0,0)"], "byte": ["aGk=", "aGk", "!"],
             "bsonobjectid": ["507f1f77bcf86cd799439011", "x"], "k8s-short-name": ["abc", "A", "a.b"], "k8s-long-name": ["a.b", "A"], "int32": ["x"], "nonsense": ["x"], "password": ["x"], "datetime": ["2026-01-01T00:00:00Z", "x"], "uuid3": ["x"], "uuid5": ["x"], "isbn10": ["0-306-40615-2", "x"], "isbn13": ["978-3-16-148410-0", "x"]}
    for form in formats:
        for value in tries[form] + ["", 5]:
            s.add("POST", "/apis/GROUP/v1NS/formeds?dryRun=All", s.object({form.replace("-", ""): value}))
    s = Story("definition_parts")
    base = s.definition("parts", root(of(a=S, n=I, l=array(S), o=of(p=S)), beside={"status": of(n=I, s=S)}), kind="Part")
    s.add("POST", CRDS + "?dryRun=All", base)
    v = ["spec", "versions", 0]
    for at, tried in ((["metadata", "name"], ["other." + s.group, "parts", "", "Bad_Name", 5, None, "parts." + s.group + ".x"]), (["metadata", "generateName"], ["x-"]), (["metadata", "namespace"], ["default"]), (["metadata", "labels"], [{"a": "b c"}, {"a": 5}]), (["metadata", "finalizers"], [["plain"], ["customresourcecleanup.apiextensions.k8s.io"]]), (["apiVersion"], ["apiextensions.k8s.io/v1beta1", "v1", ""]), (["kind"], ["Wrong", ""]), (["status"], [{"storedVersions": ["v7"]}, {"conditions": [{"type": "x"}]}, "x", {"acceptedNames": 5}]),
                      (["spec", "group"], ["", "example", "Bad.example.com", "a..b", "x.k8s.io", 5, None]), (["spec", "scope"], ["", "Galaxy", "cluster", None, 5]), (["spec", "names"], [None, {}, "x", {"plural": "parts"}, {"kind": "Part"}, {"plural": "parts", "kind": "part"}, {"plural": "Parts", "kind": "Part"}, {"plural": "parts", "kind": "Part", "singular": "parts"}, {"plural": "parts", "kind": "Part", "listKind": "Part"}, {"plural": "parts", "kind": "Part", "shortNames": ["parts"]}, {"plural": "parts", "kind": "Part", "shortNames": ["a", "a"]}, {"plural": "parts", "kind": "Part", "shortNames": [""]}, {"plural": "parts", "kind": "Part", "categories": ["", "All", "a_b"]}, {"plural": "a.b", "kind": "Part"}, {"plural": "parts", "kind": "Pa.rt"}, {"plural": "parts", "kind": "P" * 64}, {"plural": "1parts", "kind": "1Part"}]),
                      (["spec", "versions"], [None, [], {}, "x", [None], [{}], [5], [{"name": "v1"}]]), (v + ["name"], ["", "V1", "1", "v1.0", "v-1", "v" * 64, None, 5]), (v + ["served"], [None, "x", False]), (v + ["storage"], [None, "x", False]), (v + ["schema"], [None, {}, {"openAPIV3Schema": None}, {"openAPIV3Schema": {}}, {"openAPIV3Schema": "x"}, "x"]), (v + ["deprecated"], [True, "x"]), (v + ["deprecationWarning"], ["x", "", 5]), (["spec", "preserveUnknownFields"], [True, False, "x"]),
                      (v + ["subresources"], [{}, {"status": {}}, {"status": None}, {"scale": {}}, {"scale": {"specReplicasPath": ".spec.n"}}, {"scale": {"specReplicasPath": "spec.n", "statusReplicasPath": "status.n"}}, {"scale": {"specReplicasPath": ".status.n", "statusReplicasPath": ".spec.n"}}, {"scale": {"specReplicasPath": ".spec.l[0]", "statusReplicasPath": ".status.n[x]"}}, {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ""}}, {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".metadata.s"}}, {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".spec.a"}}, {"scale": {"specReplicasPath": ".spec", "statusReplicasPath": ".status"}}, {"wrong": {}}, "x"]),
                      (v + ["additionalPrinterColumns"], [[], [{}], [{"name": "A"}], [{"name": "A", "type": "string"}], [{"name": "A", "type": "text", "jsonPath": ".a"}], [{"name": "A", "type": "string", "jsonPath": "a"}], [{"name": "A", "type": "string", "jsonPath": "{.a}"}], [{"name": "A", "type": "string", "jsonPath": ".a["}], [{"name": "A", "type": "string", "jsonPath": ".a[?(@.b==1)]"}], [{"name": "A", "type": "string", "jsonPath": "..a"}], [{"name": "A", "type": "string", "jsonPath": ".a", "format": "x"}], [{"name": "A", "type": "integer", "jsonPath": ".a", "format": "int64"}], [{"name": "", "type": "date", "jsonPath": ".a"}], [{"name": "A", "type": "date", "jsonPath": ".a", "priority": -1}], [{"name": "A", "type": "string", "jsonPath": ".a"}] * 2, [{"name": "A", "type": "string", "jsonPath": ".a", "priority": "x"}], "x"]),
                      (v + ["selectableFields"], [[], [{}], [{"jsonPath": ""}], [{"jsonPath": ".spec.a"}], [{"jsonPath": "spec.a"}], [{"jsonPath": ".spec.l"}], [{"jsonPath": ".spec.l[0]"}], [{"jsonPath": ".spec.o"}], [{"jsonPath": ".spec.o.p"}], [{"jsonPath": ".spec.zz"}], [{"jsonPath": ".metadata.name"}], [{"jsonPath": ".status.n"}], [{"jsonPath": ".spec.a"}] * 2, [{"jsonPath": ".spec['a']"}], [{"jsonPath": ".spec.a", "x": 1}], [{"jsonPath": f".spec.{c}"} for c in "abcdefghi"], "x"]),
                      (["spec", "conversion"], [None, {}, {"strategy": "None"}, {"strategy": "Webhook"}, {"strategy": "Magic"}, {"strategy": "Webhook", "webhook": {}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}}}, {"strategy": "Webhook", "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a?b=c"}, "conversionReviewVersions": ["v1"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://u:p@a"}, "conversionReviewVersions": ["v1"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a#f"}, "conversionReviewVersions": ["v1"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "a"}, "conversionReviewVersions": ["v1"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}, "conversionReviewVersions": []}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v2"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1", "v1"]}},
                                                 {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s", "namespace": "n", "port": 0}}, "conversionReviewVersions": ["v1beta1"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s", "namespace": "n", "path": "a"}}, "conversionReviewVersions": ["v1"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/a//b"}}, "conversionReviewVersions": ["v1"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/A_b"}}, "conversionReviewVersions": ["v1"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a", "caBundle": "!!"}, "conversionReviewVersions": ["v1"]}}, {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a", "caBundle": "eA=="}, "conversionReviewVersions": ["v1"]}}, "x"])):
        for value in tried:
            s.add("POST", CRDS + "?dryRun=All", {"of": 0, "set": [[at, value]]})
    for mode in ("Strict", "Warn", "Ignore"):
        for at in (["spec", "nonsense"], v + ["nonsense"], v + ["schema", "nonsense"], v + ["schema", "openAPIV3Schema", "nonsense"], v + ["schema", "openAPIV3Schema", "properties", "spec", "x-kubernetes-nonsense"], ["spec", "names", "nonsense"]):
            s.add("POST", CRDS + "?dryRun=All&fieldValidation=" + mode, {"of": 0, "set": [[at, 1]]})
    for text in ("", "{", "[]", "null", "5"):
        s.add("POST", CRDS + "?dryRun=All", text)


def stories(args):
    OUT.clear()
    for make in (drawn, rules, ruled_objects, transitions, serving, applying, versions, names, schemas):
        make()
    return [{"name": s.name, "steps": s.steps} for s in OUT]
