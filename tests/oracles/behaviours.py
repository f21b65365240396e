"""Stories told by hand: what is done with objects that are there (patches, apply, lists, tables, deletion, subresources), admission, CEL's compiler."""
import json

APPLY, JSON, MERGE, STRATEGIC = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
OUT = []


class Story:
    def __init__(self, name, labels=None, account=True):
        self.name, self.space = name, name.replace("_", "-")
        self.steps = []
        self.add("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.space, "labels": labels or {}}})
        if account:
            self.add("POST", f"/api/v1/namespaces/{self.space}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}, "automountServiceAccountToken": False})
        OUT.append(self)

    def add(self, method, path, body=None, type=None, accept=None):
        step = {"m": method, "p": path.replace("NS", "/namespaces/" + self.space)}
        if body is not None:
            step["b"] = body
        if type:
            step["t"] = type
        if accept:
            step["a"] = accept
        self.steps.append(step)
        return self


def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}


def deployment(name, **spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "b"}]}]}}, **spec}}


def patches():
    s = Story("patch_deployment")
    at = "/apis/apps/v1NS/deployments"
    s.add("POST", at, deployment("d"))
    one = at + "/d"
    for body in ({"spec": {"replicas": 3}}, {"spec": {"replicas": None}}, {"spec": {"template": {"spec": {"containers": [{"name": "x", "image": "y"}]}}}}, {"spec": {"replicas": "x"}}, {"spec": {"nonsense": 1}}, {"metadata": {"name": "other"}},
                 {"metadata": {"labels": None}}, {"metadata": {"annotations": {"a": "b"}}}, {"metadata": {"resourceVersion": "1"}}, {"metadata": {"uid": "x"}}, {"spec": {"selector": {"matchLabels": {"x": "y"}}}}, {}, [], "x", 5, {"kind": "Pod"}, {"apiVersion": "v1"}, {"status": {"replicas": 5}}, {"metadata": {"finalizers": ["a.b/c"]}}):
        s.add("PATCH", one + "?dryRun=All", json.dumps(body), MERGE)
    for body in ({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}}, {"spec": {"template": {"spec": {"containers": [{"name": "new", "image": "j"}]}}}}, {"spec": {"template": {"spec": {"containers": [{"name": "c", "$patch": "delete"}]}}}},
                 {"spec": {"template": {"spec": {"containers": [{"$patch": "replace"}, {"name": "z", "image": "z"}]}}}}, {"spec": {"template": {"spec": {"containers": [{"image": "j"}]}}}}, {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "c"}, {"name": "B", "value": "d"}]}]}}}},
                 {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "n"}, {"name": "c"}], "containers": [{"name": "n", "image": "x"}]}}}}, {"spec": {"template": {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "$patch": "delete"}]}]}}}}, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
                 {"spec": {"strategy": {"type": "Recreate"}}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}}, {"metadata": {"finalizers": ["a.b/c"]}}, {"spec": {"$patch": "replace", "replicas": 1}}, {"spec": {"$patch": "wrong"}}, {"$patch": "delete"}, {"spec": {"template": {"spec": {"containers": "x"}}}}, {"spec": {"template": {"spec": {"tolerations": [{"key": "a"}]}}}}, {"spec": {"template": {"spec": {"containers": [5]}}}}):
        s.add("PATCH", one + "?dryRun=All", json.dumps(body), STRATEGIC)
    for body in ([{"op": "replace", "path": "/spec/replicas", "value": 5}], [{"op": "add", "path": "/metadata/labels/x", "value": "y"}], [{"op": "remove", "path": "/metadata/labels/app"}], [{"op": "remove", "path": "/metadata/labels/none"}], [{"op": "test", "path": "/spec/replicas", "value": 2}], [{"op": "test", "path": "/spec/replicas", "value": 9}],
                 [{"op": "replace", "path": "/spec/none/x", "value": 5}], [{"op": "copy", "from": "/metadata/labels/app", "path": "/metadata/labels/b"}], [{"op": "move", "from": "/metadata/labels/app", "path": "/metadata/labels/b"}], [{"op": "wrong", "path": "/a"}], [{"path": "/a"}], [{"op": "add", "path": "a", "value": 1}], {"op": "add"}, "x", [], [5], [{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "z", "image": "z"}}],
                 [{"op": "add", "path": "/spec/template/spec/containers/7", "value": {}}], [{"op": "replace", "path": "/spec/replicas"}], [{"op": "remove", "path": ""}], [{"op": "replace", "path": "/metadata/name", "value": "q"}], [{"op": "replace", "path": "", "value": 5}], [{"op": "add", "path": "/spec/nonsense", "value": 1}]):
        s.add("PATCH", one + "?dryRun=All", json.dumps(body), JSON)
    for type in ("application/json", "text/plain", "application/yaml", ""):
        s.add("PATCH", one, "{}", type or None)
    s.add("PATCH", at + "/none", "{}", MERGE).add("PATCH", at, "{}", MERGE).add("PATCH", one + "?fieldManager=" + "x" * 129, "{}", MERGE).add("PATCH", one + "?force=true", "{}", MERGE).add("PATCH", one + "?dryRun=Some", "{}", MERGE).add("PATCH", one + "?fieldValidation=Wrong", "{}", MERGE)
    s.add("PATCH", one + "?fieldValidation=Strict", {"spec": {"nonsense": 1}}, MERGE).add("PATCH", one + "?fieldValidation=Strict", '{"spec":{"replicas":1,"replicas":2}}', MERGE).add("PATCH", one + "?fieldValidation=Warn&dryRun=All", {"spec": {"nonsense": 1}}, STRATEGIC)
    s.add("PATCH", one + "/status", {"status": {"replicas": 7}, "spec": {"replicas": 9}}, MERGE).add("PATCH", one + "/scale", {"spec": {"replicas": 4}}, MERGE).add("GET", one + "/scale").add("PUT", one + "/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": -1}}).add("PATCH", one + "/scale", {"spec": {"replicas": "x"}}, MERGE)
    s.add("GET", one).add("GET", one + "/nothing").add("POST", one, {}).add("PUT", at, {}).add("DELETE", one + "/status")


def applies():
    s = Story("apply_two_managers")
    at = "/api/v1NS/configmaps/m"

    def config(**data):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": {"l": data.pop("label", "x")}}, "data": data}

    a, b = at + "?fieldManager=a", at + "?fieldManager=b"
    s.add("PATCH", at, config(k="1"), APPLY).add("PATCH", a, config(k="1", j="2"), APPLY).add("PATCH", a, config(k="1", j="2"), APPLY).add("PATCH", b, config(k="1"), APPLY).add("PATCH", b, config(k="3"), APPLY).add("PATCH", b + "&force=true", config(k="3"), APPLY)
    s.add("PATCH", a, config(j="2"), APPLY).add("PATCH", a, config(k="1", j="2", label="y"), APPLY).add("PATCH", b, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}, APPLY).add("PATCH", at + "?fieldManager=c", {"data": {"k": "merged"}}, MERGE).add("PATCH", a, config(k="1", j="2"), APPLY)
    s.add("GET", at)
    for body in ({}, {"kind": "ConfigMap"}, {"apiVersion": "v1"}, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "m"}}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "managedFields": [{"manager": "x"}]}}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": 5}},
                 {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "nonsense": 1}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "resourceVersion": "1"}, "data": {}}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "elsewhere"}}, [], "x: [", "a: b"):
        s.add("PATCH", a, body if isinstance(body, str) else json.dumps(body), APPLY)
    s.add("PATCH", a + "&force=maybe", config(k="1"), APPLY)
    s = Story("apply_lists")
    at = "/apis/apps/v1NS/deployments/d?fieldManager="
    containers = lambda *names, **more: {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": n, "image": "i", **more} for n in names]}}}}
    s.add("PATCH", at + "a", containers("c"), APPLY).add("PATCH", at + "b", containers("d"), APPLY).add("PATCH", at + "b", containers("c", "d"), APPLY).add("PATCH", at + "a", containers("c", ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]), APPLY).add("PATCH", at + "a", containers("c", ports=[{"containerPort": 80}, {"containerPort": 80}]), APPLY)
    s.add("PATCH", at + "a", containers("c", "c"), APPLY).add("PATCH", at + "a", containers("c", env=[{"name": "A", "value": "x"}]), APPLY).add("PATCH", at + "c", containers("c", env=[{"name": "A", "value": "y"}]), APPLY).add("PATCH", at + "c&force=true", containers("c", env=[{"name": "A", "value": "y"}]), APPLY).add("PATCH", at + "a", containers("x"), APPLY)
    s.add("PATCH", at + "a", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": "x"}}, APPLY).add("PATCH", at + "a", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}, APPLY).add("PATCH", at + "a", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "finalizers": ["a.b/c", "a.b/c"]}}, APPLY)
    s.add("PATCH", "/apis/apps/v1NS/deployments/d/status?fieldManager=s", {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 3}}, APPLY).add("PATCH", "/apis/apps/v1NS/deployments/d/scale?fieldManager=s", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 6}}, APPLY).add("GET", "/apis/apps/v1NS/deployments/d")


def reading():
    s = Story("read_pods")
    at = "/api/v1NS/pods"
    for n in ("a", "b", "c"):
        s.add("POST", at, pod(n))
    for query in ("", "?labelSelector=app%3Da", "?labelSelector=app%20in%20(a,b)", "?labelSelector=app!%3Da", "?labelSelector=!app", "?labelSelector=app%20notin%20(a)", "?labelSelector=app%3E5", "?labelSelector=a%3D%3D%3D", "?labelSelector=(", "?labelSelector=app%20in%20()", "?labelSelector=-x", "?labelSelector=app%3D" + "x" * 64, "?fieldSelector=metadata.name%3Da", "?fieldSelector=metadata.name!%3Da",
                  "?fieldSelector=spec.nodeName%3D", "?fieldSelector=status.phase%3DPending", "?fieldSelector=wrong%3Da", "?fieldSelector=metadata.name", "?fieldSelector=spec.containers%3Da", "?fieldSelector=metadata.name%3Da,status.phase%3DPending", "?limit=2", "?limit=-1", "?limit=x", "?continue=nonsense", "?resourceVersion=x", "?resourceVersion=0", "?resourceVersionMatch=Exact", "?resourceVersion=1&resourceVersionMatch=Wrong", "?resourceVersion=999999999", "?sendInitialEvents=true", "?watch=x", "?timeoutSeconds=x", "?pretty=true", "?unknown=1",
                  "?resourceVersionMatch=NotOlderThan", "?resourceVersion=0&resourceVersionMatch=Exact", "?limit=1&resourceVersion=0"):
        s.add("GET", at + query)
    s.add("GET", at + "?limit=2").add("GET", at + "?limit=2&continue={continue}")
    for accept in (TABLE, PARTIAL, PARTIALS, "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "application/json;as=Wrong;v=v1;g=meta.k8s.io", "application/yaml", "text/plain", "text/html", "*/*", "application/*", "application/xml, application/json;q=0.5", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "", "image/png"):
        s.add("GET", at, accept=accept).add("GET", at + "/a", accept=accept)
    s.add("GET", at + "?includeObject=Object", accept=TABLE).add("GET", at + "?includeObject=None", accept=TABLE).add("GET", at + "?includeObject=Wrong", accept=TABLE).add("GET", at + "/none").add("GET", at + "/none", accept=TABLE).add("GET", at + "/A_b").add("HEAD", at).add("OPTIONS", at).add("GET", "/api/v1/namespaces/none-such/pods").add("GET", "/api/v2/pods").add("GET", "/apis/none/v1/x").add("GET", "/api/v1/nonsense").add("GET", "/api/v1NS/nonsense").add("POST", "/api/v1/pods", pod("x")).add("GET", "/wrong").add("POST", "/api/v1/namespaces/none-such/pods", pod("x"))
    s.add("POST", at, pod("a")).add("POST", at + "?dryRun=All", pod("a")).add("POST", at, "x", "text/plain").add("POST", at, "a: [", "application/yaml").add("POST", at, json.dumps(pod("y")), "application/yaml").add("PUT", at + "/a", pod("b")).add("PUT", at + "/zz", pod("zz")).add("DELETE", at + "/zz")
    s = Story("delete_config_maps", account=False)
    at = "/api/v1NS/configmaps"
    for n in "abcdefgh":
        s.add("POST", at, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n, "labels": {"n": n}, "finalizers": ["x.example.com/f"] if n == "h" else []}})
    options = lambda **more: {"apiVersion": "v1", "kind": "DeleteOptions", **more}
    s.add("DELETE", at + "/a", options(preconditions={"uid": "wrong"})).add("DELETE", at + "/a", options(preconditions={"resourceVersion": "1"})).add("DELETE", at + "/a", options(dryRun=["All"])).add("DELETE", at + "/a", options(dryRun=["Some"])).add("DELETE", at + "/a", options(propagationPolicy="Wrong")).add("DELETE", at + "/a", options(propagationPolicy="Orphan", orphanDependents=True)).add("DELETE", at + "/a", options(gracePeriodSeconds=-5)).add("DELETE", at + "/a", {"kind": "Wrong", "apiVersion": "v1"}).add("DELETE", at + "/a", "x").add("DELETE", at + "/a?gracePeriodSeconds=x").add("DELETE", at + "/a?propagationPolicy=Nope").add("DELETE", at + "/a?dryRun=No")
    s.add("DELETE", at + "/a").add("DELETE", at + "/a").add("DELETE", at + "/b?propagationPolicy=Background").add("DELETE", at + "/c", options(propagationPolicy="Foreground")).add("GET", at + "/c").add("DELETE", at + "/d?propagationPolicy=Orphan").add("GET", at + "/d").add("DELETE", at + "/h").add("GET", at + "/h").add("PATCH", at + "/h", {"metadata": {"finalizers": ["y.example.com/g"]}}, MERGE).add("PATCH", at + "/h", {"metadata": {"finalizers": None}}, MERGE).add("GET", at + "/h")
    s.add("DELETE", at + "?labelSelector=n%3De").add("DELETE", at + "?fieldSelector=metadata.name%3Df&dryRun=All").add("DELETE", at + "?labelSelector=%28").add("DELETE", at + "?limit=1").add("DELETE", at).add("GET", at)
    s.add("POST", at + "?fieldManager=" + "y" * 200, {"metadata": {"name": "z"}}).add("POST", at + "?dryRun=x", {"metadata": {"name": "z"}}).add("POST", at, {"metadata": {"name": "z", "namespace": "other"}}).add("POST", at, {"metadata": {"generateName": "z-"}}).add("POST", at, {"metadata": {}}).add("DELETE", "/api/v1NS/bindings").add("DELETE", "/api/v1/namespaces/absent-space").add("GET", "/api/v1NS/configmaps/z/status")
    s = Story("pod_subresources")
    at = "/api/v1NS/pods"
    s.add("POST", at, pod("p")).add("GET", at + "/p/status").add("PATCH", at + "/p/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC).add("PATCH", at + "/p/status", {"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "x", "status": "True"}]}}, STRATEGIC).add("PATCH", at + "/p/status", {"status": {"phase": "Wrong"}}, MERGE)
    s.add("POST", at + "/p/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}).add("POST", at + "/p/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}).add("POST", at + "/p/binding", {"target": {}}).add("POST", at + "/q/binding", {"metadata": {"name": "q"}, "target": {"name": "n"}}).add("POST", at + "/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n"}})
    s.add("PATCH", at + "/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}, STRATEGIC).add("PATCH", at + "/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "c", "image": "i"}]}}, STRATEGIC).add("PATCH", at + "/p/resize", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}, STRATEGIC).add("PATCH", at + "/p", {"spec": {"containers": [{"name": "c", "image": "j"}]}}, STRATEGIC).add("PATCH", at + "/p", {"spec": {"nodeName": "m"}}, MERGE).add("PATCH", at + "/p", {"spec": {"tolerations": [{"key": "k"}]}}, MERGE).add("PATCH", at + "/p", {"spec": {"activeDeadlineSeconds": 5}}, MERGE).add("PATCH", at + "/p", {"spec": {"activeDeadlineSeconds": 9}}, MERGE).add("PATCH", at + "/p", {"spec": {"restartPolicy": "Never"}}, MERGE)
    s.add("POST", at + "/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["All"]}}).add("POST", at + "/p/eviction", {"metadata": {"name": "x"}}).add("POST", at + "/none/eviction", {"metadata": {"name": "none"}}).add("POST", "/api/v1NS/serviceaccounts/default/token", {"spec": {"expirationSeconds": 5}}).add("POST", "/api/v1NS/serviceaccounts/none/token", {"spec": {}}).add("GET", at + "/p", accept=TABLE).add("DELETE", at + "/p", {"gracePeriodSeconds": 0}).add("GET", at + "/p")


def admissions():
    for level in ("baseline", "restricted"):
        s = Story("security_" + level, {"pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"})
        at = "/api/v1NS/pods?dryRun=All"
        c = lambda **sc: [{"name": "c", "image": "i", "securityContext": sc}]
        good = dict(runAsNonRoot=True, allowPrivilegeEscalation=False, capabilities={"drop": ["ALL"]}, seccompProfile={"type": "RuntimeDefault"})
        for spec in ({}, {"containers": c(**good)}, {"hostNetwork": True}, {"hostPID": True, "hostIPC": True}, {"containers": c(privileged=True)}, {"containers": c(**{**good, "capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}})}, {"containers": c(**{**good, "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}})}, {"containers": c(procMount="Unmasked"), "hostUsers": False}, {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]},
                     {"volumes": [{"name": "n", "nfs": {"server": "s", "path": "/"}}], "containers": c(**good)}, {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, {"containers": c(**{**good, "runAsUser": 0})}, {"containers": c(**{k: v for k, v in good.items() if k != "runAsNonRoot"})}, {"containers": c(**{**good, "seLinuxOptions": {"type": "spc_t"}})}, {"containers": c(**{**good, "seLinuxOptions": {"user": "u"}})}, {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]}, {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
                     {"containers": c(**good) + [{"name": "d", "image": "i"}]}, {"initContainers": [{"name": "x", "image": "i", "securityContext": {"privileged": True}}], "containers": c(**good)}, {"os": {"name": "windows"}, "securityContext": {"windowsOptions": {"hostProcess": True, "runAsUserName": "x"}}, "hostNetwork": True}, {"containers": [{"name": "c", "image": "i", "livenessProbe": {"httpGet": {"port": 80, "host": "1.2.3.4"}}}]}):
            s.add("POST", at, pod("p", **spec))
        s.add("POST", "/apis/apps/v1NS/deployments?dryRun=All", deployment("d"))
    s = Story("security_labels", account=False)
    for labels in ({"pod-security.kubernetes.io/enforce": "wrong"}, {"pod-security.kubernetes.io/enforce-version": "v99"}, {"pod-security.kubernetes.io/warn-version": "x"}, {"pod-security.kubernetes.io/audit": "restricted"}, {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.20"}):
        s.add("POST", "/api/v1/namespaces?dryRun=All", {"metadata": {"name": "sec-x", "labels": labels}})
    s = Story("pods_admitted")
    at = "/api/v1NS/pods?dryRun=All"
    for spec in ({"priorityClassName": "none"}, {"priorityClassName": "system-node-critical"}, {"priority": 5}, {"runtimeClassName": "none"}, {"serviceAccountName": "none"}, {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]}, {"tolerations": [{"operator": "Exists"}]}, {"overhead": {"cpu": "1"}}, {"nodeName": "absent"}, {"automountServiceAccountToken": True}, {"preemptionPolicy": "Never"}, {"containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always", "resources": {"limits": {"memory": "1Gi"}}}]}):
        s.add("POST", at, pod("p", **{**spec, **({"automountServiceAccountToken": False} if "automountServiceAccountToken" in spec else {})}))
    s.add("POST", "/api/v1NS/pods?dryRun=All", {**pod("p"), "metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}})


CEL = """object.metadata.name == 'x'|object.metadata.nam|foo|1 + 'a'|object.metadata.name + 1|true &&|'a'.contains(5)|size(5)|[1, 'a']|{'a': 1, 2: 'b'}|object.spec.x.y == 1|has(object.spec)|has(x)|oldObject == null|request.operation == 'CREATE'|request.wrong|request.userInfo.username.startsWith('a')|params.x|namespaceObject.metadata.name|namespaceObject.wrong|authorizer.group('').resource('pods').check('get').allowed()|authorizer.path('/x').check('get').allowed()|authorizer.wrong()|authorizer.group(5)|variables.x|1|'text'|null|1.5 == 1|1u == 1|duration('1h') > duration('x')|timestamp('x') == timestamp('y')|int('a') == 1|string(5) == '5'|bool('x')|bytes('a') == b'a'|type(1) == int|dyn(1) == 'a'|[1].all(x, x > 0)|[1].exists(x, x)|[1].map(x, x + 1) == [2]|[1].filter(x, x > 0).size() == 1|[1].exists_one(y, y == 1)|[1].all(x + 1, true)|[1].all(1, true)|{'a': 1}.all(k, v, v == 1)|[1, 2].all(i, v, i < v)|[1].transformList(i, v, v) == [1]|{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}|optional.of(1).hasValue()|optional.none().orValue(1) == 1|object.?spec.?x.orValue(1) == 1|object[?'a'].hasValue()|[?optional.of(1)] == [1]|quantity('1Gi').isGreaterThan(quantity('1'))|quantity(1)|isQuantity('x')|quantity('1').add(1) == quantity('2')|quantity('1').wrong()|ip('1.2.3.4').family() == 4|isIP('x')|ip(1)|cidr('10.0.0.0/8').containsIP('10.1.1.1')|cidr('10.0.0.0/8').containsIP(5)|isCIDR('x')|url('https://a.b/c').getHost() == 'a.b'|isURL('x')|url(5)|'abc'.find('[a-z]+') == 'abc'|'abc'.findAll('a') == ['a']|'a'.matches('[')|'a'.find('(')|'a b'.split(' ') == ['a', 'b']|['a'].join(',') == 'a'|[1].join(',')|'abc'.substring(1) == 'bc'|'abc'.substring('a')|'a'.replace('a', 'b') == 'b'|'a'.upperAscii() == 'A'|' a '.trim() == 'a'|'a'.charAt(0) == 'a'|'abc'.indexOf('b') == 1|'%s'.format(['a']) == 'a'|'%d'.format(['a']) == 'a'|'%z'.format([1]) == 'a'|'a'.format([])|format.dns1123Label().validate('a').hasValue()|format.named('uuid').hasValue()|format.wrong()|semver('1.2.3').major() == 1|semver('x').major() == 1|semver(1)|isSemver('1.0.0')|semver('1.2.3').isLessThan(semver('2.0.0'))|sets.contains([1], [1])|sets.contains([1], ['a'])|sets.wrong([1], [1])|[1, 2].sum() == 3|['a'].sum() == 'a'|[1, 2].max() == 2|[[1]].max() == [1]|[1].isSorted()|[1].indexOf(1) == 0|[3, 1].sort() == [1, 3]|[1].distinct() == [1]|[1].flatten() == [1]|[1, 2].slice(0, 1) == [1]|lists.range(3) == [0, 1, 2]|[1].reverse() == [1]|['b', 'a'].sortBy(x, x) == ['a', 'b']|cel.bind(x, 1, x == 1)|math.greatest(1, 2) == 2|base64.encode(b'a') == 'YQ=='|1 / 0 == 1|1 % 0 == 1|-'a'|!1|true ? 1 : 'a'|true ? true : false|object.metadata.labels.all(k, k.startsWith('a'))|object.metadata.labels['a'] == 'b'|object.metadata.labels['a-b'].size() > 0|'a' in object.metadata.labels|1 in ['a']|object.kind in ['A', 'B']|request.resource.group == 'x'|request.name == 'n' && request.namespace == 'y'|request.dryRun|request.options|request.userInfo.groups.exists(g, g == 'x')|request.userInfo.extra['a']|"unclosed|'a' 'b'|a..b|(1|[1|{1|1 ++ 2|@|object.metadata.name.matches('^[a-z]$')|b'x' + 'y'|r'\\d' == '\\\\d'|'\\q'|0xFF == 255|1e3 == 1000.0|9223372036854775808|-9223372036854775809|18446744073709551616u|object == oldObject|[] == {}|object.spec.containers.all(c, c.image.startsWith('x'))|object.spec.containers.all(c, object.spec.containers.all(d, object.spec.containers.all(e, c == d && d == e)))""".split("|")
# Joined where a logical or was meant.


def cel():
    for tag, kinds in (("open", {"apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "resources": ["things"]}), ("pods", {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]})):
        s = Story("cel_" + tag, account=False)
        at = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All"
        for text in CEL if tag == "open" else CEL[:60:3]:
            s.add("POST", at, {"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [{**kinds, "operations": ["CREATE"]}]}, "validations": [{"expression": text}]}})
        for more in ({"messageExpression": "1"}, {"messageExpression": "'a' + object.metadata.name"}, {"messageExpression": "object.x +"}, {"message": "a\nb"}, {"reason": "Wrong"}, {"message": " "}):
            s.add("POST", at, {"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [{**kinds, "operations": ["CREATE"]}]}, "validations": [{"expression": "true", **more}]}})
    s = Story("cel_mutating", account=False)
    at = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies?dryRun=All"
    for text in ("Object{}", "Object{spec: Object.spec{a: 1}}", "Object{metadata: 5}", "1", "Object{", "Object{wrong: object.x}", "[]", "object", "Wrong{}", "Object{metadata: Object.metadata{labels: {'a': 'b'}}}", "has(object.x) ? Object{} : Object{}"):
        s.add("POST", at, {"metadata": {"name": "p"}, "spec": {"reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [{"apiGroups": ["x.example.com"], "apiVersions": ["v1"], "resources": ["y"], "operations": ["CREATE"]}]}, "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}]}})
    for text in ("[]", "[JSONPatch{op: 'add', path: '/a', value: 1}]", "[JSONPatch{op: 1}]", "[JSONPatch{wrong: 1}]", "JSONPatch{}", "[1]", "jsonpatch.escapeKey('a/b')", "[JSONPatch{op: 'test', path: '/' + jsonpatch.escapeKey('a/b'), value: Object{}}]"):
        s.add("POST", at, {"metadata": {"name": "p"}, "spec": {"reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [{"apiGroups": ["x.example.com"], "apiVersions": ["v1"], "resources": ["y"], "operations": ["CREATE"]}]}, "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": text}}]}})


def stories(args):
    OUT.clear()
    for make in (patches, applies, reading, admissions, cel):
        make()
    return [{"name": s.name, "steps": s.steps} for s in OUT]
