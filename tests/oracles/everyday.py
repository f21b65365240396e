"""Every kind through a day: made, read in each form, listed in each way, patched in every language, applied, replaced, its status written, deleted."""
import copy, json
import generate, oracle
from behaviours import APPLY, JSON, MERGE, STRATEGIC, TABLE, PARTIAL, PARTIALS

# A controller of the server's own has its hand in these, who asks is another in process, or bytes are kept as they were sent there.
LEFT_OUT = {"CertificateSigningRequest", "ControllerRevision", "ResourceClaim", "Namespace", "APIService", "CustomResourceDefinition", "ServiceCIDR", "FlowSchema", "PriorityLevelConfiguration"}
BETA = "application/json;as={};v=v1beta1;g=meta.k8s.io"


def minimal(body, **metadata):
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": {"name": body["metadata"]["name"], **metadata}}


def reads(add, one, many, name):
    """The object and its list in each form and by each parameter; what others made is left out by the name."""
    for accept in (None, TABLE, PARTIAL, BETA.format("Table"), BETA.format("PartialObjectMetadata"), PARTIALS, "application/yaml", "text/html"):
        add("GET", one, accept=accept)
    own = many + "?fieldSelector=metadata.name%3D" + name
    for accept in (None, TABLE, PARTIALS, BETA.format("PartialObjectMetadataList"), "application/yaml"):
        add("GET", own, accept=accept)
    add("GET", own + "&includeObject=None", accept=TABLE)
    add("GET", own + "&includeObject=Object", accept=TABLE)
    for more in ("&labelSelector=day%3Done", "&labelSelector=day%3Dother", "&limit=5", "&resourceVersion=0", "&resourceVersion={rv}", "&resourceVersion={rv}&resourceVersionMatch=Exact",
                 "&resourceVersion={rv}&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact", "&resourceVersion=0&resourceVersionMatch=Exact", "&sendInitialEvents=true", "&pretty=true", "&limit=x"):
        add("GET", own + more)
        if "{rv}" in more:
            add("GET", one)  # A list's revision is nobody's business.
    for field in ("metadata.namespace%3Dnowhere", "spec.none%3Dx", "metadata.labels%3Dx", "status.phase%3DRunning", "metadata.name!%3D" + name):
        if not field.startswith("metadata.name!"):
            add("GET", f"{many}?fieldSelector={field},metadata.name%3D{name}")
    add("GET", one + "/nothing")
    add("GET", one + "-none")


def patches(add, one, body):
    put = one + "?dryRun=All"
    add("PATCH", put, {"metadata": {"labels": {"day": "two"}}}, MERGE)
    add("PATCH", put, {"metadata": {"labels": None}}, MERGE)
    add("PATCH", put, [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}], JSON)
    add("PATCH", put, [{"op": "remove", "path": "/metadata/labels/day"}], JSON)
    add("PATCH", put, [{"op": "test", "path": "/metadata/name", "value": "x"}], JSON)
    add("PATCH", put, {"metadata": {"labels": {"day": "three"}}}, STRATEGIC)
    add("PATCH", put, {"metadata": {"$patch": "replace", "labels": {"day": "four"}}}, STRATEGIC)
    add("PATCH", put, {"metadata": {"finalizers": ["a.example.com/b"]}}, STRATEGIC)
    for validation in ("Strict", "Warn", "Ignore", "Wrong"):
        add("PATCH", f"{put}&fieldValidation={validation}", {"nonsense": 1, "metadata": {"more": 2}}, MERGE)
        add("PATCH", f"{put}&fieldValidation={validation}", '{"metadata":{"labels":{"day":"a","day":"b"}}}', MERGE)
    add("PATCH", put, {"metadata": {"name": "other"}}, MERGE)
    add("PATCH", put, {"metadata": {"namespace": "other"}}, MERGE)
    add("PATCH", put, {"metadata": {"resourceVersion": "1"}}, MERGE)
    add("PATCH", put, {"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}}, MERGE)
    add("PATCH", put, {"metadata": {"generation": 77, "deletionTimestamp": "2026-01-01T00:00:00Z"}}, MERGE)
    add("PATCH", put, {"status": {"nonsense": 1}}, MERGE)
    for manager, more, labels in (("one", "", {"day": "five"}), ("two", "", {"other": "x"}), ("two", "&force=true", {"day": "six"}), ("one", "", {})):
        add("PATCH", f"{one}?fieldManager={manager}{more}", minimal(body, labels=labels), APPLY)
    add("PATCH", f"{one}?fieldManager=one&fieldValidation=Strict", {**minimal(body), "nonsense": 1}, APPLY)
    add("PATCH", f"{one}?fieldManager=one", {**minimal(body), "kind": "Wrong"}, APPLY)


def writes(add, one, many, body):
    put = one + "?dryRun=All"
    add("GET", one)
    labelled = copy.deepcopy(body)
    labelled["metadata"]["labels"] = {"day": "seven"}
    add("PUT", put, {**labelled, "metadata": {**labelled["metadata"], "resourceVersion": "{rv}"}})
    add("GET", one)
    add("PUT", put, {**labelled, "metadata": {**labelled["metadata"], "resourceVersion": "1"}})
    add("PUT", put + "&fieldValidation=Strict", {**labelled, "nonsense": {"a": 1}})
    add("PUT", put, {**labelled, "metadata": {**labelled["metadata"], "name": "other"}})
    add("PUT", one + "-none?dryRun=All", {**labelled, "metadata": {**labelled["metadata"], "name": body["metadata"]["name"] + "-none"}})
    add("PUT", put, {"kind": "Wrong", "apiVersion": "v1"})
    add("PUT", many, labelled)
    add("GET", one + "/status")
    add("PATCH", one + "/status?dryRun=All", {"metadata": {"labels": {"by": "status"}, "annotations": {"by": "status"}}}, MERGE)
    add("PATCH", one + "/status?dryRun=All", {"status": {"nonsense": 1}}, MERGE)
    add("PATCH", one + "/status?dryRun=All&fieldValidation=Strict", {"status": {"nonsense": 1}}, MERGE)
    add("PATCH", one + "/status?dryRun=All&fieldManager=st", minimal(body, labels={"by": "status"}), APPLY)
    add("GET", one)
    add("PUT", one + "/status?dryRun=All", {**labelled, "metadata": {**labelled["metadata"], "resourceVersion": "{rv}"}})
    add("GET", one + "/scale")
    add("POST", many, body)
    add("POST", many + "?dryRun=All", {**body, "metadata": {**body["metadata"], "name": body["metadata"]["name"] + "-2", "resourceVersion": "5", "uid": "x", "generation": 9, "selfLink": "y"}})
    add("POST", many + "?dryRun=All&fieldManager=me&fieldValidation=Warn", {**body, "nonsense": 1, "metadata": {**body["metadata"], "name": body["metadata"]["name"] + "-3"}})


def deletions(add, one, many, name):
    own = many + "?fieldSelector=metadata.name%3D" + name
    add("DELETE", one + "?dryRun=All")
    add("DELETE", one + "?gracePeriodSeconds=x")
    add("DELETE", one, {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}})
    add("DELETE", one, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Wrong"})
    add("DELETE", own + "&dryRun=All")
    add("DELETE", own + "&labelSelector=day%3Dnone")
    add("GET", one, accept=PARTIAL)
    add("DELETE", one + "?propagationPolicy=Background", accept=TABLE)
    add("GET", one, accept=PARTIAL)
    add("PATCH", one, {"metadata": {"finalizers": None}}, MERGE)
    add("DELETE", one)
    add("GET", own)


def stories(args):
    maker, out, seen = generate.Maker(args.openapi), [], set()
    for key, object in maker.objects.items():
        if object["kind"] in generate.REVIEWS or object["kind"] in LEFT_OUT or (object["apiVersion"], object["kind"]) in seen:
            continue
        seen.add((object["apiVersion"], object["kind"]))
        space, body, many, steps = maker.prepared(key, "day")
        if "name" not in body["metadata"]:
            continue
        body["metadata"]["labels"] = {**body["metadata"].get("labels", {}), "day": "one"}
        name = body["metadata"]["name"]
        one = f"{many}/{name}"

        def add(method, path, body=None, type=None, accept=None):
            step = {"m": method, "p": path}
            if body is not None:
                step["b"] = body
            if type:
                step["t"] = type
            if accept:
                step["a"] = accept
            steps.append(step)

        add("POST", many, body)
        reads(add, one, many, name)
        patches(add, one, body)
        writes(add, one, many, body)
        deletions(add, one, many, name)
        out.append({"name": "day_" + key, "steps": steps})
    return out
