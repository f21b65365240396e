// A world of good objects, of which each field in turn is missing or is something else, as another server may show it: no controller ends
// for it, and what each wants then is recorded. A step that stumbles is told so; the engine takes it for a failed one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "controllers/manager.h"
#include "tests/controllers/fake_api.h"
#include "tests/support/long_life.h"

namespace berth::controllers {
namespace {

using json::get_string;
using json::Value;

constexpr const char* kPodSpec =
    "{nodeName: n1, tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 30}], containers: [{name: c, image: i, "
    "ports: [{name: web, containerPort: 80}], resources: {requests: {cpu: '1'}}}], volumes: [{name: v, persistentVolumeClaim: {claimName: "
    "c}}], resourceClaims: [{name: d, resourceClaimTemplateName: t}], schedulingGroup: {podGroupName: g}}";

std::string owned_by(const char* kind, const char* api) {
  return fmt::format("ownerReferences: [{{apiVersion: {}, kind: {}, name: {}, uid: u-{}, controller: true, blockOwnerDeletion: true}}]",
                     api, kind, "w", kind);
}

std::string pod(const std::string& name, const std::string& more) {
  return fmt::format(
      "{{apiVersion: v1, kind: Pod, metadata: {{name: {}, labels: {{app: a, controller-revision-hash: w-1, "
      "statefulset.kubernetes.io/pod-name: "
      "w-0, batch.kubernetes.io/job-completion-index: '0', job-name: w}}, {}}}, spec: {}, status: {{phase: Running, podIP: 10.0.0.9, "
      "podIPs: "
      "[{{ip: 10.0.0.9}}], startTime: '2026-01-05T09:00:00Z', conditions: [{{type: Ready, status: 'True', lastTransitionTime: "
      "'2026-01-05T09:01:00Z'}}], containerStatuses: [{{name: c, restartCount: 1, state: {{running: {{}}}}}}]}}}}",
      name, more, kPodSpec);
}

std::vector<std::string> documents() {
  const std::string pod_template = fmt::format("template: {{metadata: {{labels: {{app: a}}}}, spec: {}}}", kPodSpec);
  const std::string selector = "selector: {matchLabels: {app: a}}";
  const auto workload = [&](const char* api, const char* kind, const std::string& spec, const std::string& status) {
    return fmt::format("{{apiVersion: {}, kind: {}, metadata: {{name: w, uid: u-{}, generation: 2}}, spec: {{{}}}, status: {{{}}}}}", api,
                       kind, kind, spec, status);
  };
  return {
      "{apiVersion: v1, kind: Namespace, metadata: {name: default}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}",
      "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: z}, annotations: {k: v}}, spec: {podCIDR: "
      "10.1.0.0/24, taints: [{key: a, effect: NoExecute, timeAdded: '2026-01-05T09:59:50Z'}]}, status: {allocatable: {cpu: '4'}, capacity: "
      "{cpu: '4'}, conditions: [{type: Ready, status: 'True', lastHeartbeatTime: '2026-01-05T09:59:00Z', lastTransitionTime: "
      "'2026-01-05T09:00:00Z'}], addresses: [{type: InternalIP, address: 10.0.0.1}], volumesInUse: [kubernetes.io/csi/d^h]}}",
      "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v, finalizers: [kubernetes.io/pv-protection]}, spec: {capacity: {storage: "
      "5Gi}, accessModes: [ReadWriteOnce], storageClassName: gold, persistentVolumeReclaimPolicy: Delete, claimRef: {namespace: default, "
      "name: c, uid: u-c}, csi: {driver: d, volumeHandle: h}}, status: {phase: Bound}}",
      "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, uid: u-c, annotations: {pv.kubernetes.io/bind-completed: 'yes'}, "
      "finalizers: [kubernetes.io/pvc-protection]}, spec: {accessModes: [ReadWriteOnce], storageClassName: gold, volumeName: v, resources: "
      "{requests: {storage: 3Gi}}}, status: {phase: Bound, capacity: {storage: 1Gi}}}",
      "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: gold}, provisioner: d, volumeBindingMode: Immediate, "
      "allowVolumeExpansion: true, reclaimPolicy: Delete}",
      "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: d}, spec: {attachRequired: true}}",
      "{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: a}, spec: {attacher: d, nodeName: n1, source: "
      "{persistentVolumeName: v}}, status: {attached: true}}",
      workload("apps/v1", "ReplicaSet", "replicas: 2, minReadySeconds: 5, " + selector + ", " + pod_template,
               "replicas: 1, readyReplicas: 1, observedGeneration: 1"),
      workload(
          "apps/v1", "Deployment",
          "replicas: 3, revisionHistoryLimit: 1, progressDeadlineSeconds: 60, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: "
          "'50%', maxUnavailable: 1}}, " +
              selector + ", " + pod_template,
          "replicas: 1, observedGeneration: 1, conditions: [{type: Available, status: 'True'}]"),
      workload(
          "apps/v1", "StatefulSet",
          "replicas: 2, serviceName: s, podManagementPolicy: Parallel, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: "
          "1}}, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}, volumeClaimTemplates: [{metadata: {name: data}, spec: "
          "{accessModes: [ReadWriteOnce]}}], " +
              selector + ", " + pod_template,
          "replicas: 1, currentRevision: w-1, updateRevision: w-2"),
      workload("apps/v1", "DaemonSet",
               "minReadySeconds: 1, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}, " + selector + ", " +
                   pod_template,
               "desiredNumberScheduled: 1"),
      workload(
          "batch/v1", "Job",
          "parallelism: 2, completions: 3, backoffLimit: 1, completionMode: Indexed, activeDeadlineSeconds: 900, ttlSecondsAfterFinished: "
          "10, podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}]}, " +
              selector + ", " + pod_template,
          "active: 1, startTime: '2026-01-05T09:59:00Z', uncountedTerminatedPods: {succeeded: [x], failed: []}"),
      workload(
          "batch/v1", "CronJob",
          "schedule: '*/1 * * * *', concurrencyPolicy: Replace, startingDeadlineSeconds: 100, successfulJobsHistoryLimit: 1, jobTemplate: "
          "{metadata: {labels: {l: m}}, spec: {" +
              pod_template + "}}",
          "lastScheduleTime: '2026-01-05T09:58:00Z', active: [{kind: Job, namespace: default, name: w, uid: u-Job}]"),
      "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, generation: 1}, spec: {minAvailable: '50%', selector: "
      "{matchLabels: {app: a}}, unhealthyPodEvictionPolicy: IfHealthyBudget}, status: {disruptionsAllowed: 0, disruptedPods: {x: "
      "'2026-01-05T09:59:00Z'}}}",
      "{apiVersion: v1, kind: Service, metadata: {name: s, annotations: {service.kubernetes.io/topology-mode: Auto}}, spec: {type: "
      "ClusterIP, "
      "clusterIP: 10.96.0.7, clusterIPs: [10.96.0.7], ipFamilies: [IPv4], selector: {app: a}, publishNotReadyAddresses: true, ports: "
      "[{name: "
      "p, port: 80, targetPort: web, protocol: TCP}]}}",
      "{apiVersion: v1, kind: Endpoints, metadata: {name: other}, subsets: [{addresses: [{ip: 10.0.0.4, nodeName: n1}], notReadyAddresses: "
      "[{ip: 10.0.0.5}], ports: [{name: p, port: 80, protocol: TCP}]}]}",
      "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: '3', requests.cpu: '2', count/services: '1'}, "
      "scopes: "
      "[NotTerminating]}, status: {used: {pods: '1'}}}",
      "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: "
      "Deployment, name: w}, minReplicas: 1, maxReplicas: 5, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, "
      "averageUtilization: 50}}}], behavior: {scaleDown: {stabilizationWindowSeconds: 30, policies: [{type: Pods, value: 1, periodSeconds: "
      "60}]}}}, status: {currentReplicas: 1, desiredReplicas: 1}}",
      "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: t}, spec: {spec: {devices: {requests: [{name: r, "
      "exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}}}",
      "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: rc, uid: u-rc, annotations: "
      "{resource.kubernetes.io/pod-claim-name: "
      "d}, finalizers: [resource.kubernetes.io/delete-protection]}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: "
      "gpu}}]}}, "
      "status: {reservedFor: [{resource: pods, name: p-ReplicaSet, uid: u-p}], allocation: {devices: {results: [{request: r, driver: d, "
      "pool: n1, "
      "device: g}]}}}}",
      "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: sl}, spec: {driver: d, nodeName: n1, pool: {name: n1, "
      "generation: "
      "1, resourceSliceCount: 1}, devices: [{name: g, taints: [{key: worn, effect: NoExecute, timeAdded: '2026-01-05T09:59:00Z'}]}]}}",
      "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}",
      "{apiVersion: v1, kind: Secret, metadata: {name: tok, annotations: {kubernetes.io/service-account.name: default}}, type: "
      "kubernetes.io/service-account-token, data: {token: eA==}}",
      "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: csr}, spec: {request: eA==, signerName: "
      "kubernetes.io/kube-apiserver-client-kubelet, username: system:node:n1, usages: [client auth, digital signature]}, status: {}}",
      pod("p-ReplicaSet", "uid: u-p, " + owned_by("ReplicaSet", "apps/v1")),
      pod("w-0", owned_by("StatefulSet", "apps/v1")),
      pod("p-Job", "finalizers: [batch.kubernetes.io/job-tracking], " + owned_by("Job", "batch/v1")),
      pod("p-DaemonSet", owned_by("DaemonSet", "apps/v1")),
      pod("p-alone", "deletionTimestamp: '2026-01-05T10:00:10Z', deletionGracePeriodSeconds: 30"),
  };
}

class World {
 public:
  explicit World(berth::testing::LongLife& told) : told_(told) {
    ManagerOptions options;
    options.simulated_machines = true;
    options.root_ca_pem = "root";
    controllers_ = make_controllers(options);
    for (const std::string& text : documents()) {
      Value document = testing::yaml(text);
      const Kind kind = kind_of_reference(get_string(document, {"apiVersion"}), get_string(document, {"kind"}));
      EXPECT_NE(kind, nullptr) << text;
      if (kind == nullptr) continue;
      if (kind->namespaced) json::set(document, {"metadata", "namespace"}, Value("default"));
      if (get_string(document, {"metadata", "uid"}).empty())
        json::set(document, {"metadata", "uid"}, Value(fmt::format("u-{}", get_string(document, {"metadata", "name"}))));
      json::set(document, {"metadata", "creationTimestamp"}, Value("2026-01-05T09:00:00Z"));
      objects_.emplace_back(kind, document);
      (void)wanted_after(kind, std::move(document));
    }
    for (const ControllerPtr& controller : controllers_) {
      Sink sink;
      controller->on_start(cache_, now_, sink);
    }
  }
  void run() {
    for (const auto& [kind, good] : objects_) {
      Value broken = good;
      break_each(kind, broken, broken, fmt::format("{} {}", kind->kind, get_string(good, {"metadata", "name"})), good);
    }
  }

 private:
  struct Sink : KeySink {
    std::set<std::string> keys;
    void add(std::string key, Duration) override { keys.insert(std::move(key)); }
  };

  void break_each(Kind kind, Value& whole, Value& at, const std::string& path, const Value& good) {
    const auto with = [&](Value& place, const std::string& name) {
      const Value kept = place;
      for (const Value& other :
           {Value(nullptr), Value("x"), Value(-7), Value(json::Array{Value("x")}), Value(json::Object{{"x", 1}}), Value(true)}) {
        if (other.kind() == kept.kind() && !other.is_string() && !other.is_int64()) continue;
        // Not all of all: a third of the odd ones, and each field once as if it were not there.
        if (!other.is_null() && !told_.dice.chance(34)) continue;
        place = other;
        tell(kind, whole, fmt::format("{} = {}", name, json::serialize(other)), good);
      }
      place = kept;
      break_each(kind, whole, place, name, good);
    };
    if (at.is_array())
      for (std::size_t i = 0; i < at.get_array().size(); ++i) with(at.get_array()[i], fmt::format("{}[{}]", path, i));
    if (!at.is_object()) return;
    std::vector<std::string> names;
    for (const auto& [name, member] : at.get_object()) names.emplace_back(name);
    for (const std::string& name : names) {
      const bool is_identity =
          name == "name" || name == "namespace" || name == "uid" || name == "metadata" || name == "apiVersion" || name == "kind";
      if (is_identity && (&at == &whole || &at == json::find(whole, "metadata"))) {
        if (name == "metadata") break_each(kind, whole, at.get_object()[name], path + ".metadata", good);
        continue;
      }
      with(at.get_object()[name], path + "." + name);
    }
  }

  void tell(Kind kind, const Value& broken, const std::string& what, const Value& good) {
    told_.tell(what);
    for (const std::string& line : wanted_after(kind, broken)) told_.tell("  " + line);
    (void)wanted_after(kind, good);
  }

  /// What the controllers want that are told of the object.
  std::vector<std::string> wanted_after(Kind kind, Value document) {
    std::vector<std::string> out;
    now_ += std::chrono::seconds(1);
    json::set(document, {"metadata", "resourceVersion"}, Value(std::to_string(++revision_)));
    try {
      const Event event = cache_.apply(kind, std::make_shared<Object>(document), false);
      for (const ControllerPtr& controller : controllers_) {
        const auto watches = controller->watches();
        if (std::ranges::find(watches, kind) == watches.end()) continue;
        Sink sink;
        controller->on_event(event, cache_, now_, sink);
        for (const std::string& key : sink.keys) out.push_back(fmt::format("{} {}: {}", controller->name(), key, step(*controller, key)));
      }
    } catch (const std::exception& e) {
      ADD_FAILURE() << "a controller cannot be told of " << json::serialize(document) << ": " << e.what();
    }
    return out;
  }

  std::string step(Controller& controller, const std::string& key) {
    try {
      const Plan plan = controller.reconcile(key, now_, cache_);
      std::string out = plan.error ? "error " + *plan.error + "; " : "";
      for (const Write& write : plan.writes)
        out += fmt::format("{} {} {}/{} {} {} {}; ", static_cast<int>(write.verb), write.kind->plural, write.ns, write.name,
                           write.subresource, write.query, write.body.is_null() ? "" : json::serialize(write.body));
      for (const EventNote& note : plan.events) out += fmt::format("{}: {}; ", note.reason, note.message);
      return out;
    } catch (const std::exception& e) {
      return "stumbles";
    }
  }

  berth::testing::LongLife& told_;
  std::vector<ControllerPtr> controllers_;
  std::vector<std::pair<Kind, Value>> objects_;
  Cache cache_;
  TimePoint now_ = *parse_rfc3339("2026-01-05T10:00:00Z");
  std::int64_t revision_ = 100;
};

TEST(BrokenObjects, EndNobodyAndWhatIsWantedThenIsAsRecorded) {
  berth::testing::LongLife told("tests/controllers/lives/broken_objects.txt", 1, 14'000);
  World(told).run();
  told.expect_as_recorded();
}

}  // namespace
}  // namespace berth::controllers
