"""The stories that record.py tells: what somebody asks of the API, and where the controllers are left to come to rest."""
ALL = []
CORE, APPS, BATCH, POLICY = "/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/policy/v1"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


def story(name, *steps, **more):
    flat = []
    for step in steps:
        flat += step if isinstance(step, list) else [step]
    ALL.append({"name": name, "steps": flat, **more})


def at(root, resource, name=None, sub=""):
    return f"{root}/namespaces/{{ns}}/{resource}" + (f"/{name}{sub}" if name else "")


ROOTS = {"Deployment": (APPS, "deployments"), "ReplicaSet": (APPS, "replicasets"), "StatefulSet": (APPS, "statefulsets"), "DaemonSet": (APPS, "daemonsets"), "Job": (BATCH, "jobs"),
         "CronJob": (BATCH, "cronjobs"), "Pod": (CORE, "pods"), "Service": (CORE, "services"), "Endpoints": (CORE, "endpoints"), "ConfigMap": (CORE, "configmaps"), "Secret": (CORE, "secrets"),
         "ServiceAccount": (CORE, "serviceaccounts"), "ResourceQuota": (CORE, "resourcequotas"), "ReplicationController": (CORE, "replicationcontrollers"), "PersistentVolumeClaim": (CORE, "persistentvolumeclaims"),
         "PodDisruptionBudget": (POLICY, "poddisruptionbudgets"), "HorizontalPodAutoscaler": ("/apis/autoscaling/v2", "horizontalpodautoscalers"), "EndpointSlice": ("/apis/discovery.k8s.io/v1", "endpointslices"),
         "ControllerRevision": (APPS, "controllerrevisions"), "LimitRange": (CORE, "limitranges"), "ResourceClaimTemplate": ("/apis/resource.k8s.io/v1", "resourceclaimtemplates"), "PodTemplate": (CORE, "podtemplates"),
         "Lease": ("/apis/coordination.k8s.io/v1", "leases")}


def create(kind, name, spec=None, **more):
    root, resource = ROOTS[kind]
    metadata = {"name": name, **more.pop("metadata", {})}
    body = {"apiVersion": root.removeprefix("/apis/").removeprefix("/api/"), "kind": kind, "metadata": metadata, **more}
    if spec is not None:
        body["spec"] = spec
    return {"method": "POST", "path": at(root, resource), "body": body}


def patch(kind, name, body, sub="", type=MERGE):
    return {"method": "PATCH", "path": at(*ROOTS[kind], name, sub), "body": body, "type": type}


def spec(kind, name, **fields):
    return patch(kind, name, {"spec": fields})


def delete(kind, name, policy=None, **options):
    if policy:
        options["propagationPolicy"] = policy
    return {"method": "DELETE", "path": at(*ROOTS[kind], name), "body": {"apiVersion": "v1", "kind": "DeleteOptions", **options}}


def cluster(method, path, body=None, type="application/json"):
    return {"method": method, "path": path, **({"body": body} if body is not None else {}), "type": type}


def each(verb, kind, selector, body=None, sub="", first=0, to=None, type=MERGE):
    return {"each": verb, "path": at(*ROOTS[kind]) + f"?labelSelector={selector}", "sub": sub, "from": first, "to": to, "type": type, **({"body": body} if body is not None else {})}


def rest(name="rest", **more):
    return {"rest": name, **more}


def template(app="w", image="a:1", labels=None, annotations=None, grace=1, container=None, **pod):
    return {"metadata": {"labels": {"app": app, **(labels or {})}, **({"annotations": annotations} if annotations else {})},
            "spec": {"terminationGracePeriodSeconds": grace, "containers": [{"name": "c", "image": image, **(container or {})}], **pod}}


def sets(replicas=2, app="w", **more):
    t = more.pop("template", None) or template(app, **more.pop("t", {}))
    return {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": t, **more}


def image(kind, name, to):
    return patch(kind, name, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": to}]}}}}, type=STRATEGIC)


NEVER_READY = {"sim.berth.dev/ready": "false"}
D, RS, SS, DS = "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"

# ---- Deployments
story("deploy_create", create(D, "w", sets(3)), rest())
story("deploy_zero", create(D, "w", sets(0)), rest())
story("deploy_rolling", create(D, "w", sets(3)), rest("made"), image(D, "w", "a:2"), rest("rolled"))
story("deploy_rolling_many", create(D, "w", sets(10)), rest("made"), image(D, "w", "a:2"), rest("rolled"))
story("deploy_recreate", create(D, "w", sets(2, strategy={"type": "Recreate"})), rest("made"), image(D, "w", "a:2"), rest("rolled"))
for name, surge, lost in [("surge", 1, 0), ("unavailable", 0, 1), ("percent", "50%", "50%"), ("all", "100%", "0%"), ("both", 2, 2), ("tiny_percent", "1%", "1%")]:
    story(f"deploy_stuck_{name}", create(D, "w", sets(4, strategy={"rollingUpdate": {"maxSurge": surge, "maxUnavailable": lost}})), rest("made"),
          patch(D, "w", {"spec": {"template": {"metadata": {"annotations": NEVER_READY}, "spec": {"containers": [{"name": "c", "image": "a:2"}]}}}}, type=STRATEGIC), rest("stuck"))
story("deploy_scale_up", create(D, "w", sets(1)), rest(), spec(D, "w", replicas=4), rest("scaled"))
story("deploy_scale_down", create(D, "w", sets(4)), rest(), spec(D, "w", replicas=1), rest("scaled"))
story("deploy_scale_subresource", create(D, "w", sets(1)), rest(), patch(D, "w", {"spec": {"replicas": 3}}, "/scale"), rest("scaled"))
story("deploy_scale_while_rolling", create(D, "w", sets(10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})), rest("made"),
      patch(D, "w", {"spec": {"template": {"metadata": {"annotations": NEVER_READY}}}}), rest("stuck"), spec(D, "w", replicas=20), rest("up"), spec(D, "w", replicas=5), rest("down"))
story("deploy_pause", create(D, "w", sets(2, paused=True)), rest("paused"), image(D, "w", "a:2"), rest("changed"), spec(D, "w", replicas=3), rest("scaled"), spec(D, "w", paused=False), rest("resumed"))
story("deploy_pause_midway", create(D, "w", sets(2)), rest("made"), spec(D, "w", paused=True), rest("paused"), image(D, "w", "a:2"), rest("changed"), spec(D, "w", paused=None), rest("resumed"))
story("deploy_rollback_by_template", create(D, "w", sets(2)), rest("one"), image(D, "w", "a:2"), rest("two"), image(D, "w", "a:1"), rest("back"))
story("deploy_history_limit", create(D, "w", sets(1, revisionHistoryLimit=1)), rest(), image(D, "w", "a:2"), rest(), image(D, "w", "a:3"), rest(), image(D, "w", "a:4"), rest("kept"))
story("deploy_history_zero", create(D, "w", sets(1, revisionHistoryLimit=0)), rest(), image(D, "w", "a:2"), rest("kept"))
story("deploy_change_cause", create(D, "w", sets(1), metadata={"annotations": {"kubernetes.io/change-cause": "first"}}), rest(), patch(D, "w", {"metadata": {"annotations": {"kubernetes.io/change-cause": "second", "more": "x"}}}), rest("annotated"), image(D, "w", "a:2"), rest("rolled"))
story("deploy_progress_deadline", create(D, "w", sets(2, progressDeadlineSeconds=4, t={"annotations": NEVER_READY})), rest("late", quiet=7), spec(D, "w", replicas=3), rest("scaled", quiet=7), patch(D, "w", {"spec": {"template": {"metadata": {"annotations": {"sim.berth.dev/ready": "true"}}}}}), rest("mended", quiet=5), long=1)
story("deploy_progress_new_template", create(D, "w", sets(2, progressDeadlineSeconds=4)), rest("made"), patch(D, "w", {"spec": {"template": {"metadata": {"annotations": NEVER_READY}}}}), rest("late", quiet=7), image(D, "w", "a:3"), rest("changed", quiet=7), long=1)
story("deploy_min_ready", create(D, "w", sets(2, minReadySeconds=4)), rest("first", seconds=2), rest("then", quiet=6), image(D, "w", "a:2"), rest("rolled", quiet=8), long=1)
story("deploy_not_ready", create(D, "w", sets(2, t={"annotations": NEVER_READY})), rest())
story("deploy_adopts_rs", create(RS, "mine", sets(2), metadata={"labels": {"app": "w"}}), rest("alone"), create(D, "w", sets(2)), rest("adopted"))
story("deploy_orphan", create(D, "w", sets(2)), rest("made"), delete(D, "w", "Orphan"), rest("orphaned"), create(D, "w", sets(2)), rest("again"))
story("deploy_delete_background", create(D, "w", sets(2)), rest(), delete(D, "w", "Background"), rest("gone"))
story("deploy_delete_foreground", create(D, "w", sets(2)), rest(), delete(D, "w", "Foreground"), rest("gone"))
story("deploy_label_collision", create(D, "w", sets(1)), create(D, "v", sets(1)), rest())
story("deploy_quota_blocked", create("ResourceQuota", "q", {"hard": {"pods": "1"}}), rest("quota"), create(D, "w", sets(3)), rest("blocked", seconds=6))
story("deploy_pod_deleted", create(D, "w", sets(2)), rest(), each("DELETE", "Pod", "app=w", to=1), rest("replaced"))
story("deploy_selector_matches_not", create(D, "w", {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template()}), rest())
story("deploy_hash_collision_count", create(D, "w", sets(1)), rest(), patch(D, "w", {"spec": {"template": {"metadata": {"labels": {"more": "x"}}}}}), rest("label"))
story("deploy_terminating", create(D, "w", sets(2, t={"grace": 6, "annotations": {"sim.berth.dev/stop-after": "6s"}})), rest(), spec(D, "w", replicas=1), rest("going", seconds=3), rest("gone", quiet=5))
story("deploy_generation", create(D, "w", sets(1)), rest(), patch(D, "w", {"metadata": {"labels": {"x": "y"}}}), rest("label"), spec(D, "w", minReadySeconds=1), rest("spec"))
story("deploy_rs_scaled_by_hand", create(D, "w", sets(2)), rest(), each("PATCH", RS, "app=w", {"spec": {"replicas": 5}}), rest("back"))
story("deploy_rs_deleted", create(D, "w", sets(2)), rest(), each("DELETE", RS, "app=w"), rest("made again"))
story("deploy_annotation_copied", create(D, "w", sets(1), metadata={"annotations": {"a": "1", "kubectl.kubernetes.io/last-applied-configuration": "x"}}), rest(), patch(D, "w", {"metadata": {"annotations": {"a": "2", "b": "3"}}}), rest("changed"))
story("deploy_bad_image", create(D, "w", sets(1, t={"annotations": {"sim.berth.dev/image-pull": "fail"}})), rest())

# ---- ReplicaSets
story("rs_create", create(RS, "w", sets(3)), rest())
story("rs_scale", create(RS, "w", sets(3)), rest(), spec(RS, "w", replicas=1), rest("down"), spec(RS, "w", replicas=0), rest("none"))
story("rs_adopts", create("Pod", "lone", template()["spec"], metadata={"labels": {"app": "w"}}), rest(), create(RS, "w", sets(2)), rest("adopted"))
story("rs_releases", create(RS, "w", sets(2)), rest(), each("PATCH", "Pod", "app=w", {"metadata": {"labels": {"app": "other"}}}, to=1), rest("released"))
story("rs_selector_expressions", create(RS, "w", {"replicas": 2, "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["w", "v"]}, {"key": "no", "operator": "DoesNotExist"}]}, "template": template()}), rest())
story("rs_min_ready", create(RS, "w", sets(2, minReadySeconds=3)), rest("soon", seconds=2), rest("later", quiet=5))
story("rs_failed_pods", create(RS, "w", sets(2)), rest(), each("PATCH", "Pod", "app=w", {"status": {"phase": "Failed"}}, "/status", to=1), rest("replaced"))
story("rs_succeeded_pod", create("Pod", "done", template(restartPolicy="Never", container={"command": ["true"]})["spec"], metadata={"labels": {"app": "w"}}), rest(), create(RS, "w", sets(1)), rest("ignored"))
story("rs_orphan", create(RS, "w", sets(2)), rest(), delete(RS, "w", "Orphan"), rest("orphans"))
story("rs_foreground", create(RS, "w", sets(2)), rest(), delete(RS, "w", "Foreground"), rest("gone"))
story("rs_labels_fully", create(RS, "w", sets(2, t={"labels": {"tier": "x"}})), rest(), patch(RS, "w", {"spec": {"template": {"metadata": {"labels": {"tier": "y"}}}}}), rest("template"), spec(RS, "w", replicas=3), rest("more"))
story("rs_deletion_cost", create(RS, "w", sets(3)), rest(), each("PATCH", "Pod", "app=w", {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}, "labels": {"cheap": "yes"}}}, to=1), spec(RS, "w", replicas=2), rest("cheapest first"))
story("rs_not_ready_first", create(RS, "w", sets(2)), rest(), create("Pod", "bad", template()["spec"], metadata={"labels": {"app": "w", "bad": "yes"}, "annotations": NEVER_READY}), rest("too many"), spec(RS, "w", replicas=1), rest("one"))
story("rs_quota", create("ResourceQuota", "q", {"hard": {"pods": "2"}}), rest(), create(RS, "w", sets(3)), rest("failure", seconds=6))
story("rs_service_account_missing", create(RS, "w", sets(1, t={"serviceAccountName": "nobody"})), rest("failure", seconds=4))
story("rs_two_overlap", create(RS, "w", sets(2)), create(RS, "v", sets(2)), rest())
story("rs_paused_pods_finalizer", create(RS, "w", sets(2)), rest(), each("PATCH", "Pod", "app=w", {"metadata": {"finalizers": ["example.com/hold"]}}, to=1), each("DELETE", "Pod", "app=w", to=1), rest("held"), each("PATCH", "Pod", "app=w", {"metadata": {"finalizers": None}}), rest("let go"))
story("rc_create", create("ReplicationController", "w", {"replicas": 2, "selector": {"app": "w"}, "template": template()}), rest(), spec("ReplicationController", "w", replicas=1), rest("down"), delete("ReplicationController", "w", "Background"), rest("gone"))
story("rc_adopts", create("Pod", "lone", template()["spec"], metadata={"labels": {"app": "w"}}), rest(), create("ReplicationController", "w", {"replicas": 1, "selector": {"app": "w"}, "template": template()}), rest("adopted"))
story("rc_quota", create("ResourceQuota", "q", {"hard": {"pods": "1"}}), rest(), create("ReplicationController", "w", {"replicas": 2, "selector": {"app": "w"}, "template": template()}), rest("failure", seconds=5))


# ---- StatefulSets
def stateful(replicas=2, **more):
    return sets(replicas, serviceName="w", **more)


CLAIM = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}}]
story("sts_create", create(SS, "w", stateful(3)), rest())
story("sts_scale", create(SS, "w", stateful(3)), rest(), spec(SS, "w", replicas=1), rest("down"), spec(SS, "w", replicas=2), rest("up"))
story("sts_parallel", create(SS, "w", stateful(3, podManagementPolicy="Parallel")), rest(), image(SS, "w", "a:2"), rest("rolled"))
story("sts_ordered_stuck", create(SS, "w", stateful(3, t={"annotations": NEVER_READY})), rest())
story("sts_parallel_stuck", create(SS, "w", stateful(3, podManagementPolicy="Parallel", t={"annotations": NEVER_READY})), rest())
story("sts_rolling", create(SS, "w", stateful(3)), rest(), image(SS, "w", "a:2"), rest("rolled"))
story("sts_partition", create(SS, "w", stateful(3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})), rest(), image(SS, "w", "a:2"), rest("one"), spec(SS, "w", updateStrategy={"rollingUpdate": {"partition": 0}}), rest("all"))
story("sts_partition_beyond", create(SS, "w", stateful(2, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 5}})), rest(), image(SS, "w", "a:2"), rest("none"), spec(SS, "w", replicas=3), rest("old ones"))
story("sts_on_delete", create(SS, "w", stateful(2, updateStrategy={"type": "OnDelete"})), rest(), image(SS, "w", "a:2"), rest("waits"), each("DELETE", "Pod", "app=w", to=1), rest("one"))
story("sts_rollback", create(SS, "w", stateful(1)), rest(), image(SS, "w", "a:2"), rest(), image(SS, "w", "a:1"), rest("back"))
story("sts_history", create(SS, "w", stateful(1, revisionHistoryLimit=1)), rest(), image(SS, "w", "a:2"), rest(), image(SS, "w", "a:3"), rest(), image(SS, "w", "a:4"), rest("kept"))
story("sts_stuck_update", create(SS, "w", stateful(2)), rest(), patch(SS, "w", {"spec": {"template": {"metadata": {"annotations": NEVER_READY}}}}), rest("stuck"))
story("sts_ordinals", create(SS, "w", stateful(2, ordinals={"start": 5})), rest(), spec(SS, "w", ordinals={"start": 6}), rest("moved"))
story("sts_claims", create(SS, "w", stateful(2, volumeClaimTemplates=CLAIM)), rest("pending"), delete(SS, "w", "Background"), rest("kept"))
for when_deleted in ("Delete", "Retain"):
    for when_scaled in ("Delete", "Retain"):
        story(f"sts_claims_{when_deleted}_{when_scaled}".lower(), create(SS, "w", stateful(2, podManagementPolicy="Parallel", volumeClaimTemplates=CLAIM, persistentVolumeClaimRetentionPolicy={"whenDeleted": when_deleted, "whenScaled": when_scaled})), rest("made"), spec(SS, "w", replicas=1), rest("scaled"), delete(SS, "w", "Background"), rest("deleted"))
story("sts_min_ready", create(SS, "w", stateful(2, minReadySeconds=3)), rest("soon", seconds=2), rest("later", quiet=6))
story("sts_failed_pod", create(SS, "w", stateful(2)), rest(), patch("Pod", "w-1", {"status": {"phase": "Failed"}}, "/status"), rest("again"))
story("sts_pod_deleted", create(SS, "w", stateful(2)), rest(), delete("Pod", "w-0"), rest("again"))
story("sts_orphan", create(SS, "w", stateful(2)), rest(), delete(SS, "w", "Orphan"), rest("orphans"), create(SS, "w", stateful(2)), rest("adopted"))
story("sts_foreground", create(SS, "w", stateful(2)), rest(), delete(SS, "w", "Foreground"), rest("gone"))
story("sts_adopts_named", create("Pod", "w-0", template()["spec"], metadata={"labels": {"app": "w"}}), rest(), create(SS, "w", stateful(1)), rest("adopted"))
story("sts_name_taken", create("Pod", "w-0", template("x")["spec"], metadata={"labels": {"app": "x"}}), rest(), create(SS, "w", stateful(1)), rest("blocked", seconds=4))
story("sts_quota", create("ResourceQuota", "q", {"hard": {"pods": "1"}}), rest(), create(SS, "w", stateful(2)), rest("blocked", seconds=5))
story("sts_max_unavailable", create(SS, "w", stateful(4, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}})), rest(), patch(SS, "w", {"spec": {"template": {"metadata": {"annotations": NEVER_READY}}}}), rest("stuck"))
story("sts_max_unavailable_parallel", create(SS, "w", stateful(4, podManagementPolicy="Parallel", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}})), rest(), patch(SS, "w", {"spec": {"template": {"metadata": {"annotations": NEVER_READY}}}}), rest("stuck"))
story("sts_headless", create("Service", "w", {"clusterIP": "None", "selector": {"app": "w"}, "ports": [{"port": 80, "name": "http"}]}), create(SS, "w", stateful(2)), rest())

# ---- DaemonSets
story("ds_create", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template()}), rest())
story("ds_rolling", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template()}), rest(), image(DS, "w", "a:2"), rest("rolled"))
story("ds_on_delete", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template(), "updateStrategy": {"type": "OnDelete"}}), rest(), image(DS, "w", "a:2"), rest("waits"), each("DELETE", "Pod", "app=w", to=1), rest("one"))
story("ds_surge", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template(), "updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}), rest(), image(DS, "w", "a:2"), rest("rolled"))
story("ds_surge_stuck", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template(), "updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}), rest(), patch(DS, "w", {"spec": {"template": {"metadata": {"annotations": NEVER_READY}}}}), rest("stuck"))
story("ds_unavailable_stuck", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template(), "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}), rest(), patch(DS, "w", {"spec": {"template": {"metadata": {"annotations": NEVER_READY}}}}), rest("stuck"))
story("ds_node_selector", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template(nodeSelector={"kubernetes.io/hostname": "node-2"})}), rest(), patch(DS, "w", {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "nowhere"}}}}}), rest("none"))
story("ds_history", create(DS, "w", {"revisionHistoryLimit": 1, "selector": {"matchLabels": {"app": "w"}}, "template": template()}), rest(), image(DS, "w", "a:2"), rest(), image(DS, "w", "a:3"), rest(), image(DS, "w", "a:4"), rest("kept"))
story("ds_rollback", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template()}), rest(), image(DS, "w", "a:2"), rest(), image(DS, "w", "a:1"), rest("back"))
story("ds_failed_pod", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template()}), rest(), each("PATCH", "Pod", "app=w", {"status": {"phase": "Failed"}}, "/status", to=1), rest("again", quiet=5))
story("ds_orphan", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template()}), rest(), delete(DS, "w", "Orphan"), rest("orphans"))
story("ds_min_ready", create(DS, "w", {"minReadySeconds": 3, "selector": {"matchLabels": {"app": "w"}}, "template": template()}), rest("soon", seconds=2), rest("later", quiet=5))
story("ds_adopts", create("Pod", "lone", template(nodeName="node-1")["spec"], metadata={"labels": {"app": "w"}}), rest(), create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template()}), rest("adopted"))
story("ds_host_network", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template(hostNetwork=True, container={"ports": [{"containerPort": 31234}]})}), rest())


# ---- Jobs
def job(name="j", pod=None, annotations=None, **fields):
    t = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "a:1", "command": ["true"]}], **(pod or {})}}
    if annotations:
        t["metadata"] = {"annotations": annotations}
    return create("Job", name, {"template": t, **fields})


FAILS = {"sim.berth.dev/run-for": "0s", "sim.berth.dev/exit-code": "3"}
RUNS = {"sim.berth.dev/run-for": "1h"}
story("job_one", job(), rest())
story("job_completions", job(completions=4, parallelism=2), rest())
story("job_parallel_only", job(parallelism=3), rest())
story("job_indexed", job(completions=3, parallelism=3, completionMode="Indexed"), rest())
story("job_indexed_fail", job(completions=3, parallelism=3, completionMode="Indexed", backoffLimit=0, annotations=FAILS), rest())
story("job_backoff_zero", job(backoffLimit=0, annotations=FAILS), rest())
story("job_backoff_one", job(backoffLimit=1, annotations=FAILS), rest(quiet=14, longest=60), long=2)
story("job_backoff_per_index", job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=0, annotations=FAILS), rest())
story("job_backoff_per_index_one", job(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1, annotations=FAILS), rest(quiet=14), long=2)
story("job_max_failed_indexes", job(completions=4, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=0, maxFailedIndexes=1, annotations=FAILS), rest(quiet=4))
for action in ("FailJob", "Ignore", "Count"):
    story(f"job_policy_{action}".lower(), job(backoffLimit=0, annotations=FAILS, podFailurePolicy={"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [3]}}]}) if action != "Ignore" else
          job(backoffLimit=0, annotations={**FAILS, "sim.berth.dev/run-for": "20s"}, podFailurePolicy={"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [4]}}]}), rest(seconds=5))
story("job_policy_failindex", job(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=3, annotations=FAILS, podFailurePolicy={"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [5]}}]}), rest())
story("job_policy_container", job(backoffLimit=6, annotations=FAILS, podFailurePolicy={"rules": [{"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [2, 3]}}]}), rest())
story("job_policy_condition", job(annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}, podFailurePolicy={"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]}), rest("runs"), each("PATCH", "Pod", "job-name=j", {"status": {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "x"}]}}, "/status"), rest("failed"))
story("job_success_count", job(completions=4, parallelism=2, completionMode="Indexed", successPolicy={"rules": [{"succeededCount": 2}]}), rest())
story("job_success_indexes", job(completions=4, parallelism=4, completionMode="Indexed", successPolicy={"rules": [{"succeededIndexes": "1-2"}]}), rest())
story("job_suspend", job(suspend=True), rest("suspended"), spec("Job", "j", suspend=False), rest("done"))
story("job_suspend_midway", job(annotations=RUNS, parallelism=2, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest("runs"), spec("Job", "j", suspend=True), rest("suspended"), spec("Job", "j", suspend=False), rest("again"))
story("job_ttl", job(ttlSecondsAfterFinished=4), rest("done", seconds=3), rest("gone", seconds=6))
story("job_ttl_zero", job(ttlSecondsAfterFinished=0), rest(quiet=4))
story("job_managed_by", job(managedBy="example.com/other"), rest())
story("job_managed_by_own", job(managedBy="kubernetes.io/job-controller"), rest())
story("job_deadline", job(activeDeadlineSeconds=3, annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest(quiet=5))
story("job_deadline_suspended", job(activeDeadlineSeconds=2, suspend=True), rest(seconds=4))
story("job_elastic", job(completions=4, parallelism=4, completionMode="Indexed", annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest(), spec("Job", "j", completions=2, parallelism=2), rest("less"), spec("Job", "j", completions=3, parallelism=3), rest("more"))
story("job_parallelism_zero", job(parallelism=0), rest())
story("job_parallelism_changes", job(completions=5, parallelism=1, annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest(), spec("Job", "j", parallelism=3), rest("more"), spec("Job", "j", parallelism=1), rest("less"))
story("job_zero_completions", job(completions=0), rest())
story("job_indexed_zero", job(completions=0, completionMode="Indexed", parallelism=1), rest())
story("job_replacement_failed", job(podReplacementPolicy="Failed", annotations={**RUNS, "sim.berth.dev/stop-after": "4s"}, pod={"terminationGracePeriodSeconds": 4, "containers": [{"name": "c", "image": "a:1"}]}), rest(), each("DELETE", "Pod", "job-name=j"), rest("going", seconds=2), rest("replaced", quiet=5))
story("job_replacement_terminating", job(podReplacementPolicy="TerminatingOrFailed", annotations={**RUNS, "sim.berth.dev/stop-after": "4s"}, pod={"terminationGracePeriodSeconds": 4, "containers": [{"name": "c", "image": "a:1"}]}), rest(), each("DELETE", "Pod", "job-name=j"), rest("going", seconds=2), rest("replaced", quiet=5))
story("job_delete_background", job(annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest(), delete("Job", "j", "Background"), rest("gone"))
story("job_delete_orphan", job(annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest(), delete("Job", "j", "Orphan"), rest("orphan"))
story("job_delete_foreground", job(annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest(), delete("Job", "j", "Foreground"), rest("gone"))
story("job_pod_deleted", job(annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest(), each("DELETE", "Pod", "job-name=j"), rest("again", quiet=13), long=2)
story("job_manual_selector", create("Job", "j", {"manualSelector": True, "selector": {"matchLabels": {"app": "w"}}, "template": template(restartPolicy="Never", container={"command": ["true"]})}), rest())
story("job_on_failure", job(annotations=FAILS, backoffLimit=0, pod={"restartPolicy": "OnFailure"}), rest(quiet=4))
story("job_quota", create("ResourceQuota", "q", {"hard": {"pods": "1"}}), rest(), job(parallelism=2, completions=2, annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest("blocked", seconds=4))
story("job_many_indexes", job(completions=12, parallelism=12, completionMode="Indexed"), rest())

# ---- CronJobs
NOW = "* * * * *"


def cron(name="cj", schedule="0 0 1 1 *", pod=None, annotations=None, metadata=None, **fields):
    t = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "a:1", "command": ["true"]}], **(pod or {})}}
    if annotations:
        t["metadata"] = {"annotations": annotations}
    return create("CronJob", name, {"schedule": schedule, "jobTemplate": {"metadata": {"labels": {"x": "y"}, "annotations": {"k": "v"}}, "spec": {"template": t}}, **fields}, metadata=metadata or {})


story("cron_idle", cron(), rest())
story("cron_runs", cron(schedule=NOW), rest("ran", seconds=75), long=9)
story("cron_history", cron(schedule=NOW, successfulJobsHistoryLimit=1), rest("ran", seconds=135), long=10)
story("cron_failed_history", cron(schedule=NOW, failedJobsHistoryLimit=0, annotations=FAILS), rest("ran", seconds=75), long=9)
story("cron_forbid", cron(schedule=NOW, concurrencyPolicy="Forbid", annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest("ran", seconds=135), long=10)
story("cron_replace", cron(schedule=NOW, concurrencyPolicy="Replace", annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest("ran", seconds=135), long=10)
story("cron_suspend", cron(schedule=NOW, suspend=True), rest("nothing", seconds=70), long=9)
story("cron_zone", cron(schedule="0 12 * * *", timeZone="Europe/Berlin"), rest())
story("cron_tz_in_schedule", cron(schedule="TZ=UTC 0 12 * * *"), rest())
story("cron_delete", cron(schedule=NOW, annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), rest("ran", seconds=70), delete("CronJob", "cj", "Background"), rest("gone"), long=9)
story("cron_adopts_not", cron(), rest(), create("Job", "cj-manual", {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "a:1", "command": ["true"]}]}}}, metadata={"annotations": {"cronjob.kubernetes.io/instantiate": "manual"}}), rest())
story("cron_every", cron(schedule="@every 1m"), rest("ran", seconds=70), long=9)
story("cron_bad_zone_later", cron(schedule="0 0 * * *", timeZone="Asia/Tokyo"), rest(), spec("CronJob", "cj", timeZone=None), rest("none"))

# ---- Services
SVC = {"selector": {"app": "w"}, "ports": [{"port": 80, "targetPort": 8080}]}
story("svc_no_pods", create("Service", "s", SVC), rest())
story("svc_pods", create("Service", "s", SVC), create(D, "w", sets(2)), rest())
story("svc_named_ports", create("Service", "s", {"selector": {"app": "w"}, "ports": [{"name": "a", "port": 80, "targetPort": "http"}, {"name": "b", "port": 81, "targetPort": "none"}]}), create(D, "w", sets(2, t={"container": {"ports": [{"name": "http", "containerPort": 8080}]}})), rest())
story("svc_not_ready", create("Service", "s", SVC), create(D, "w", sets(2, t={"annotations": NEVER_READY})), rest())
story("svc_publish_not_ready", create("Service", "s", {**SVC, "publishNotReadyAddresses": True}), create(D, "w", sets(2, t={"annotations": NEVER_READY})), rest())
story("svc_headless", create("Service", "s", {**SVC, "clusterIP": "None"}), create(D, "w", sets(1)), rest())
story("svc_headless_hostname", create("Service", "s", {**SVC, "clusterIP": "None"}), create(D, "w", sets(1, t={"hostname": "here", "subdomain": "s"})), rest())
story("svc_headless_no_ports", create("Service", "s", {"selector": {"app": "w"}, "clusterIP": "None"}), create(D, "w", sets(1)), rest())
story("svc_selector_changes", create("Service", "s", SVC), create(D, "w", sets(2)), rest(), spec("Service", "s", selector={"app": "x"}), rest("none"))
story("svc_port_changes", create("Service", "s", SVC), create(D, "w", sets(1)), rest(), patch("Service", "s", {"spec": {"ports": [{"port": 80, "targetPort": 9090, "name": "x", "appProtocol": "http"}]}}), rest("other"))
story("svc_deleted", create("Service", "s", SVC), create(D, "w", sets(1)), rest(), delete("Service", "s"), rest("gone"))
story("svc_labels", create("Service", "s", SVC, metadata={"labels": {"a": "b", "endpointslice.kubernetes.io/managed-by": "x"}, "annotations": {"c": "d", "endpoints.kubernetes.io/last-change-trigger-time": "x"}}), create(D, "w", sets(1)), rest(), patch("Service", "s", {"metadata": {"labels": {"a": "c"}, "annotations": {"e": "f"}}}), rest("changed"))
story("svc_external_name", create("Service", "s", {"type": "ExternalName", "externalName": "example.com"}), rest())
story("svc_no_selector", create("Service", "s", {"ports": [{"port": 80}]}), rest())
story("svc_mirror", create("Service", "s", {"ports": [{"port": 80, "name": "x"}]}), create("Endpoints", "s", subsets=[{"addresses": [{"ip": "10.1.1.1", "hostname": "h"}, {"ip": "10.1.1.2", "nodeName": "node-1"}], "notReadyAddresses": [{"ip": "10.1.1.3"}], "ports": [{"name": "x", "port": 8080}]}], metadata={"labels": {"l": "m"}, "annotations": {"a": "b"}}), rest(), patch("Endpoints", "s", {"subsets": [{"addresses": [{"ip": "10.1.1.9"}], "ports": [{"name": "x", "port": 8081}]}]}), rest("changed"), delete("Endpoints", "s"), rest("gone"))
story("svc_mirror_two_subsets", create("Service", "s", {"ports": [{"port": 80, "name": "x"}]}), create("Endpoints", "s", subsets=[{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"name": "x", "port": 8080}]}, {"addresses": [{"ip": "10.1.1.2"}], "ports": [{"name": "x", "port": 9090}]}]), rest())
story("svc_mirror_skip", create("Service", "s", {"ports": [{"port": 80}]}), create("Endpoints", "s", subsets=[{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 8080}]}], metadata={"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}), rest())
story("svc_mirror_no_service", create("Endpoints", "s", subsets=[{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 8080}]}]), rest())
story("svc_mirror_ipv6", create("Service", "s", {"ports": [{"port": 80}]}), create("Endpoints", "s", subsets=[{"addresses": [{"ip": "10.1.1.1"}, {"ip": "fd00::1"}], "ports": [{"port": 8080}]}]), rest())
story("svc_terminating_pods", create("Service", "s", SVC), create(D, "w", sets(1, t={"grace": 6, "annotations": {"sim.berth.dev/stop-after": "6s"}})), rest(), spec(D, "w", replicas=0), rest("going", seconds=3), rest("gone", quiet=5))
story("svc_topology_auto", create("Service", "s", SVC, metadata={"annotations": {"service.kubernetes.io/topology-mode": "Auto"}}), create(D, "w", sets(2)), rest())
story("svc_prefer_same_zone", create("Service", "s", {**SVC, "trafficDistribution": "PreferClose"}), create(D, "w", sets(1)), rest())
story("svc_prefer_same_node", create("Service", "s", {**SVC, "trafficDistribution": "PreferSameNode"}), create(D, "w", sets(1)), rest())
story("svc_many_ports", create("Service", "s", {"selector": {"app": "w"}, "ports": [{"name": f"p{i}", "port": 80 + i, "protocol": "UDP" if i % 2 else "TCP"} for i in range(4)]}), create(D, "w", sets(1)), rest())
story("svc_node_port", create("Service", "s", {**SVC, "type": "LoadBalancer"}), rest())
story("svc_slice_by_hand", create("EndpointSlice", "mine", addressType="IPv4", endpoints=[{"addresses": ["10.1.1.1"]}], ports=[{"port": 80}], metadata={"labels": {"kubernetes.io/service-name": "s"}}), create("Service", "s", SVC), rest(), delete("Service", "s"), rest("kept"))
story("svc_slice_deleted", create("Service", "s", SVC), create(D, "w", sets(1)), rest(), each("DELETE", "EndpointSlice", "kubernetes.io/service-name=s"), delete("Endpoints", "s"), rest("again"))
story("svc_pod_fails", create("Service", "s", SVC), create("Pod", "p", template(restartPolicy="Never", container={"command": ["sleep", "2"]})["spec"], metadata={"labels": {"app": "w"}}), rest("ended", quiet=5))

# ---- PodDisruptionBudgets
PDB = "PodDisruptionBudget"
for name, fields in {"min": {"minAvailable": 1}, "min_percent": {"minAvailable": "50%"}, "max": {"maxUnavailable": 1}, "max_percent": {"maxUnavailable": "34%"}, "min_all": {"minAvailable": "100%"}, "min_too_many": {"minAvailable": 5}, "max_zero": {"maxUnavailable": 0}, "always": {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}}.items():
    story(f"pdb_{name}", create(D, "w", sets(3)), create(PDB, "b", {"selector": {"matchLabels": {"app": "w"}}, **fields}), rest())
story("pdb_no_pods", create(PDB, "b", {"minAvailable": 1, "selector": {"matchLabels": {"app": "w"}}}), rest())
story("pdb_empty_selector", create(D, "w", sets(2)), create(PDB, "b", {"minAvailable": 1, "selector": {}}), rest())
story("pdb_no_selector", create(D, "w", sets(2)), create(PDB, "b", {"minAvailable": 1}), rest())
story("pdb_not_ready", create(D, "w", sets(2, t={"annotations": NEVER_READY})), create(PDB, "b", {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "w"}}}), rest())
story("pdb_lone_pods_max", create("Pod", "p", template()["spec"], metadata={"labels": {"app": "w"}}), create(PDB, "b", {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "w"}}}), rest())
story("pdb_lone_pods_percent", create("Pod", "p", template()["spec"], metadata={"labels": {"app": "w"}}), create(PDB, "b", {"minAvailable": "50%", "selector": {"matchLabels": {"app": "w"}}}), rest())
story("pdb_lone_pods_min", create("Pod", "p", template()["spec"], metadata={"labels": {"app": "w"}}), create(PDB, "b", {"minAvailable": 1, "selector": {"matchLabels": {"app": "w"}}}), rest())
story("pdb_two", create(D, "w", sets(2)), create(PDB, "b", {"minAvailable": 1, "selector": {"matchLabels": {"app": "w"}}}), create(PDB, "c", {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "w"}}}), rest())
story("pdb_evict", create(D, "w", sets(2)), create(PDB, "b", {"minAvailable": 2, "selector": {"matchLabels": {"app": "w"}}}), rest(), each("POST", "Pod", "app=w", {"apiVersion": "policy/v1", "kind": "Eviction"}, "/eviction", to=1, type="application/json"), rest("refused"), spec(PDB, "b", minAvailable=1), rest("allows"))
story("pdb_sts", create(SS, "w", stateful(2)), create(PDB, "b", {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "w"}}}), rest())
story("pdb_rc", create("ReplicationController", "w", {"replicas": 2, "selector": {"app": "w"}, "template": template()}), create(PDB, "b", {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "w"}}}), rest())
story("pdb_job_pods", job(parallelism=2, completions=2, annotations=RUNS, pod={"containers": [{"name": "c", "image": "a:1"}]}), create(PDB, "b", {"maxUnavailable": 1, "selector": {"matchLabels": {"batch.kubernetes.io/job-name": "j"}}}), rest())
story("pdb_ds_pods", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template()}), create(PDB, "b", {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "w"}}}), rest())

# ---- HPA
HPA = "HorizontalPodAutoscaler"


def hpa(target="w", kind=D, **fields):
    return create(HPA, "h", {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target}, "minReplicas": 1, "maxReplicas": 4, **fields})


CPU = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]
story("hpa_no_target", hpa(metrics=CPU), rest(seconds=20), long=3)
story("hpa_target_zero", create(D, "w", sets(0)), rest(), hpa(metrics=CPU), rest(seconds=20), long=3)
story("hpa_above_max", create(D, "w", sets(6)), rest(), hpa(metrics=CPU), rest(seconds=20), long=3)
story("hpa_below_min", create(D, "w", sets(1)), rest(), hpa(metrics=CPU, minReplicas=2), rest(seconds=20), long=3)
story("hpa_bad_kind", hpa(kind="Nonsense", metrics=CPU), rest(seconds=20), long=3)

# ---- garbage
CM = "ConfigMap"
story("gc_owner_missing", create(CM, "a", data={"k": "v"}, metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "11111111-1111-1111-1111-111111111111"}]}), rest(quiet=4))
story("gc_owner_wrong_kind", create(CM, "a", data={}, metadata={"ownerReferences": [{"apiVersion": "nothing.example.com/v1", "kind": "Nothing", "name": "none", "uid": "11111111-1111-1111-1111-111111111111"}]}), rest(quiet=4))
story("gc_two_owners", create(CM, "a", data={}, metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "uid": "11111111-1111-1111-1111-111111111111"}]}), rest(quiet=4))
story("gc_finalizer", create(CM, "a", data={}, metadata={"finalizers": ["example.com/hold"]}), delete(CM, "a"), rest("held"), patch(CM, "a", {"metadata": {"finalizers": None}}), rest("gone"))
story("gc_foreground_alone", create(CM, "a", data={}), delete(CM, "a", "Foreground"), rest())
story("gc_orphan_alone", create(CM, "a", data={}), delete(CM, "a", "Orphan"), rest())
story("gc_deploy_pod_blocks", create(D, "w", sets(1)), rest(), each("PATCH", "Pod", "app=w", {"metadata": {"finalizers": ["example.com/hold"]}}), delete(D, "w", "Foreground"), rest("held"), each("PATCH", "Pod", "app=w", {"metadata": {"finalizers": None}}), rest("gone"))

# ---- namespaces
NSPATH = "/api/v1/namespaces/{ns}"
story("ns_delete", create(D, "w", sets(1)), create(CM, "a", data={}), rest(), cluster("DELETE", NSPATH), rest("gone", show=[NSPATH], quiet=8))
story("ns_finalizer_holds", create(CM, "a", data={}, metadata={"finalizers": ["example.com/hold"]}), cluster("DELETE", NSPATH), rest("held", show=[NSPATH], seconds=8), create(CM, "b", data={}), patch(CM, "a", {"metadata": {"finalizers": None}}), rest("gone", show=[NSPATH], seconds=15), long=3)
story("ns_accounts", rest(), delete("ServiceAccount", "default"), rest("again"), delete(CM, "kube-root-ca.crt"), rest("again too"), patch(CM, "kube-root-ca.crt", {"data": {"ca.crt": "x"}}), rest("mended"))
story("sa_token_secret", create("ServiceAccount", "bot"), create("Secret", "t", type="kubernetes.io/service-account-token", metadata={"annotations": {"kubernetes.io/service-account.name": "bot"}}), rest(), delete("ServiceAccount", "bot"), rest("gone"))
story("sa_token_no_account", create("Secret", "t", type="kubernetes.io/service-account-token", metadata={"annotations": {"kubernetes.io/service-account.name": "none"}}), rest(quiet=4))

# ---- quota
RQ = "ResourceQuota"
story("quota_counts", create(RQ, "q", {"hard": {"pods": "10", "requests.cpu": "4", "limits.memory": "1Gi", "configmaps": "5", "secrets": "5", "services": "3", "count/deployments.apps": "2", "persistentvolumeclaims": "2", "requests.storage": "10Gi"}}), rest("empty"), create(D, "w", sets(2, t={"container": {"resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}}}})), create("Service", "s", SVC), create("PersistentVolumeClaim", "p", {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "2Gi"}}}), rest("used"), delete(D, "w"), rest("less", quiet=5))
story("quota_scopes", create(RQ, "best", {"hard": {"pods": "5"}, "scopes": ["BestEffort"]}), create(RQ, "notbest", {"hard": {"pods": "5"}, "scopes": ["NotBestEffort"]}), create(RQ, "term", {"hard": {"pods": "5"}, "scopes": ["Terminating"]}), rest(), create("Pod", "a", template()["spec"]), create("Pod", "b", template(container={"resources": {"requests": {"cpu": "10m"}}}, activeDeadlineSeconds=1000)["spec"]), rest("counted"))
story("quota_changes", create(RQ, "q", {"hard": {"pods": "1"}}), rest(), spec(RQ, "q", hard={"pods": "3", "services": "1"}), rest("other"))
story("quota_terminated", create(RQ, "q", {"hard": {"pods": "3", "count/pods": "3"}}), job(), rest(quiet=4))
story("quota_priority_class", create(RQ, "q", {"hard": {"pods": "5"}, "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}}), rest(), create("Pod", "a", template()["spec"]), create("Pod", "b", template(priorityClassName="system-node-critical")["spec"]), rest())

# ---- volumes
PVC = "PersistentVolumeClaim"
PV = "/api/v1/persistentvolumes"


def volume(name, size="5Gi", **more):
    return cluster("POST", PV, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "{ns}", "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/x"}, **more}})


def claim(name="p", size="2Gi", **more):
    return create(PVC, name, {"accessModes": ["ReadWriteOnce"], "storageClassName": "{ns}", "resources": {"requests": {"storage": size}}, **more})


SHOWPV = [PV + "/{ns}"]
story("pv_binds", volume("{ns}"), claim(), rest("bound", show=SHOWPV), delete(PVC, "p"), rest("released", show=SHOWPV), after=SHOWPV)
story("pv_too_small", volume("{ns}", "1Gi"), claim(), rest(show=SHOWPV), after=SHOWPV)
story("pv_mode_differs", volume("{ns}"), claim(accessModes=["ReadWriteMany"]), rest(show=SHOWPV), after=SHOWPV)
story("pv_claim_ref", volume("{ns}", claimRef={"namespace": "{ns}", "name": "p"}), rest("waits", show=SHOWPV), claim(), rest("bound", show=SHOWPV), after=SHOWPV)
story("pv_volume_name", volume("{ns}"), claim(volumeName="{ns}"), rest(show=SHOWPV), after=SHOWPV)
story("pv_volume_name_missing", claim(volumeName="nowhere"), rest(quiet=4))
story("pv_deleted_under_claim", volume("{ns}"), claim(), rest("bound", show=SHOWPV), cluster("DELETE", PV + "/{ns}"), rest("held", show=SHOWPV), delete(PVC, "p"), rest("gone", show=SHOWPV), after=SHOWPV)
story("pv_reclaim_delete", volume("{ns}", persistentVolumeReclaimPolicy="Delete"), claim(), rest("bound", show=SHOWPV), delete(PVC, "p"), rest("gone", show=SHOWPV, quiet=4), after=SHOWPV)
story("pv_selector", volume("{ns}"), claim(selector={"matchLabels": {"a": "b"}}), rest(show=SHOWPV), after=SHOWPV)
story("pvc_in_use", volume("{ns}"), claim(), create("Pod", "a", template(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}])["spec"]), rest("used", show=SHOWPV), delete(PVC, "p"), rest("held", show=SHOWPV), delete("Pod", "a"), rest("gone", show=SHOWPV), after=SHOWPV)
story("pvc_no_class", create(PVC, "p", {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}), rest())
story("pvc_class_missing", claim(), rest(quiet=4))
SC = "/apis/storage.k8s.io/v1/storageclasses"
story("pvc_wait_for_consumer", cluster("POST", SC, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "{ns}"}, "provisioner": "example.com/p", "volumeBindingMode": "WaitForFirstConsumer"}), claim(), rest("waits"), create("Pod", "a", template(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}])["spec"]), rest("asked"), after=[SC + "/{ns}"])
story("pvc_provisioner", cluster("POST", SC, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "{ns}"}, "provisioner": "example.com/p"}), claim(), rest("asked"), after=[SC + "/{ns}"])
story("pvc_ephemeral", create("Pod", "a", template(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"x": "y"}}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}}}}])["spec"]), rest())

# ---- requests for certificates
REQUEST = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIaE1JR0lBZ0VBTUNZeER6QU5CZ05WQkFvTUJtUmxkbk55T0RFVE1CRUdBMVVFQXd3S1lXeHBZMlV0ZEdWegpk"
story("aggregated_role", cluster("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "{ns}-part", "labels": {"into": "{ns}"}}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
      cluster("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "{ns}"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"into": "{ns}"}}]}, "rules": []}), rest(seconds=3, show=["/apis/rbac.authorization.k8s.io/v1/clusterroles/{ns}"]),
      cluster("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/{ns}-part", {"rules": [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}]}, MERGE), rest(seconds=3, show=["/apis/rbac.authorization.k8s.io/v1/clusterroles/{ns}"]),
      after=["/apis/rbac.authorization.k8s.io/v1/clusterroles/{ns}", "/apis/rbac.authorization.k8s.io/v1/clusterroles/{ns}-part"])
VAP = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
for name, expression in {"good": "object.spec.replicas < 5", "type": "object.spec.replicaz < 5", "mixed": "object.spec.replicas < 'x'"}.items():
    story(f"policy_check_{name}", cluster("POST", VAP, {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "{ns}"}, "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]}, "validations": [{"expression": expression}]}}), rest(seconds=3, show=[VAP + "/{ns}"]), after=[VAP + "/{ns}"])
story("claim_template", create("ResourceClaimTemplate", "t", {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "none"}}]}}}), create("Pod", "a", template(resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}], container={"resources": {"claims": [{"name": "g"}]}})["spec"]), rest(), delete("Pod", "a"), rest("gone"))
story("claim_template_missing", create("Pod", "a", template(resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}])["spec"]), rest(quiet=4))
SCIDR = "/apis/networking.k8s.io/v1/servicecidrs"
story("service_cidr", cluster("POST", SCIDR, {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "{ns}"}, "spec": {"cidrs": ["10.200.0.0/24"]}}), rest(seconds=3, show=[SCIDR + "/{ns}"]), cluster("DELETE", SCIDR + "/{ns}"), rest("gone", seconds=3, show=[SCIDR + "/{ns}"]), after=[SCIDR + "/{ns}"])


# ---- nodes (alone: the others would feel them)
def node(name, body, type=MERGE):
    return cluster("PATCH", f"/api/v1/nodes/{name}", body, type)


story("node_made", cluster("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "{ns}"}, "spec": {}}), rest(seconds=5, show=["/api/v1/nodes/{ns}"]), after=["/api/v1/nodes/{ns}"], long=3)
story("node_no_execute", create(D, "w", sets(1, t={"nodeSelector": {"kubernetes.io/hostname": "node-3"}})), create("Pod", "p", template(nodeName="node-3")["spec"]), rest(), node("node-3", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}), rest("evicted", show=["/api/v1/nodes/node-3"], quiet=4), node("node-3", {"spec": {"taints": None}}), rest("back", show=["/api/v1/nodes/node-3"]), alone=True)
story("node_cordoned", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template()}), rest(), node("node-3", {"spec": {"unschedulable": True}}), rest("cordoned", show=["/api/v1/nodes/node-3"]), node("node-3", {"spec": {"unschedulable": None}}), rest("back", show=["/api/v1/nodes/node-3"]), alone=True)
story("ds_taint", create(DS, "w", {"selector": {"matchLabels": {"app": "w"}}, "template": template()}), rest(), node("node-3", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}), rest("tainted"), each("DELETE", "Pod", "app=w"), rest("two"), node("node-3", {"spec": {"taints": None}}), rest("three"), alone=True)

assert len({s["name"] for s in ALL}) == len(ALL)
if __name__ == "__main__":
    print(len(ALL))
