// ResourceQuotas' status, recounted.
#include "controllers/services.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

class Quotas : public ::testing::Test {
 protected:
  Quotas() {
    world.api.engine.add(make_resource_quota_controller());
    world.api.engine.start();
  }
  void quota(const char* name, const std::string& spec) {
    world.api.put(kinds().resource_quota,
                  yaml(fmt::format("{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: {}}}, spec: {{{}}}}}", name, spec)));
    settle();
  }
  void pod(const char* name, const char* spec, const char* phase = "Running") {
    world.api.put(
        kinds().pod,
        yaml(fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}, spec: {{{}}}, status: {{phase: {}}}}}", name, spec, phase)));
  }
  /// As admission does, or another controller.
  void book(const char* pods) {
    json::Value document = world.api.get(kinds().resource_quota, "q");
    json::set(document, {"status", "used", "pods"}, pods);
    world.api.put(kinds().resource_quota, document);
  }
  std::string used(const char* name, const char* resource) const {
    return std::string(json::get_string(world.api.get(kinds().resource_quota, name), {"status", "used", resource}));
  }
  void settle() { world.loop.run_for(seconds(5)); }
  static constexpr const char* kAsking = "containers: [{name: c, resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: '1'}}}]";
  World world;
};

TEST_F(Quotas, CountsWhatPodsAskForAndObjects) {
  pod("a", kAsking);
  pod("b", kAsking);
  pod("done", kAsking, "Succeeded");
  world.api.put(kinds().config_map, yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}"));
  quota("q", "hard: {requests.cpu: '4', requests.memory: 8Gi, limits.cpu: '4', pods: '10', count/pods: '10', configmaps: '5'}");
  EXPECT_EQ(used("q", "requests.cpu"), "1");
  EXPECT_EQ(used("q", "requests.memory"), "2Gi");
  EXPECT_EQ(used("q", "limits.cpu"), "2");
  EXPECT_EQ(used("q", "pods"), "2") << "a finished pod takes no place";
  EXPECT_EQ(used("q", "count/pods"), "3") << "but it is an object";
  EXPECT_EQ(used("q", "configmaps"), "1");
  EXPECT_EQ(json::get_string(world.api.get(kinds().resource_quota, "q"), {"status", "hard", "pods"}), "10");
}

TEST_F(Quotas, FollowsDeletionsAndEnds) {
  pod("a", kAsking);
  quota("q", "hard: {pods: '10'}");
  ASSERT_EQ(used("q", "pods"), "1");
  world.api.erase(kinds().pod, "default", "a");
  settle();
  EXPECT_EQ(used("q", "pods"), "0");
}

TEST_F(Quotas, WhatIsBookedAndNotThereYetStaysBooked) {
  pod("a", kAsking);
  quota("q", "hard: {pods: '10'}");
  book("3");  // Two are on their way.
  world.loop.run_for(seconds(12));
  EXPECT_EQ(used("q", "pods"), "3");
  world.api.erase(kinds().pod, "default", "a");
  world.loop.run_for(seconds(1));
  EXPECT_EQ(used("q", "pods"), "2") << "what went is given back at once";
  pod("b", kAsking);
  world.loop.run_for(seconds(12));
  EXPECT_EQ(used("q", "pods"), "2");
  world.loop.run_for(seconds(5));
  EXPECT_EQ(used("q", "pods"), "1") << "and who never came, when it cannot come any more";
}

TEST_F(Quotas, WhatOthersGaveBackIsNotGivenBackAgain) {
  pod("a", kAsking);
  quota("q", "hard: {pods: '10'}");
  world.api.erase(kinds().pod, "default", "a");
  book("0");  // Who led before has seen it go, too.
  settle();
  book("1");  // One is on its way.
  world.loop.run_for(seconds(5));
  EXPECT_EQ(used("q", "pods"), "1");
}

TEST_F(Quotas, DevicesOfClaimsCountByTheNameThatTheirClassHasNow) {
  const auto device_class = [&](const char* spec) {
    world.api.put(kinds().device_class, yaml(fmt::format("{{metadata: {{name: gpu}}, spec: {{{}}}}}", spec)));
    settle();
  };
  world.api.put(kinds().resource_claim, yaml("metadata: {name: c}\nspec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, "
                                             "allocationMode: ExactCount, count: 2}}]}}"));
  quota("q", "hard: {requests.example.com/gpu: '4', requests.example.com/other: '4'}");
  EXPECT_EQ(used("q", "requests.example.com/gpu"), "0");
  device_class("extendedResourceName: example.com/gpu");
  EXPECT_EQ(used("q", "requests.example.com/gpu"), "2");
  device_class("extendedResourceName: example.com/other");
  EXPECT_EQ(used("q", "requests.example.com/gpu"), "0");
  EXPECT_EQ(used("q", "requests.example.com/other"), "2");
  world.api.erase(kinds().resource_claim, "default", "c");
  settle();
  EXPECT_EQ(used("q", "requests.example.com/other"), "0");
}

/// As one that a lost node never confirms the end of.
TEST_F(Quotas, APodThatDoesNotGoLosesItsPlaceWhenItsGraceHasPassedTwice) {
  const auto going = [&](const char* name, const char* at) {
    world.api.put(kinds().pod,
                  yaml(fmt::format("{{metadata: {{name: {}, uid: {}, deletionTimestamp: '{}', deletionGracePeriodSeconds: 30}}, spec: "
                                   "{{{}}}, status: {{phase: Running}}}}",
                                   name, name, at, kAsking)));
  };
  going("before", "2026-01-05T10:00:30Z");
  quota("q", "hard: {pods: '10', count/pods: '10', requests.cpu: '4'}");
  pod("stays", kAsking);
  going("after", "2026-01-05T10:01:30Z");
  settle();
  EXPECT_EQ(used("q", "pods"), "3");
  world.loop.run_for(seconds(40));
  EXPECT_EQ(used("q", "pods"), "3") << "it may have stopped late";
  world.loop.run_for(seconds(15));
  EXPECT_EQ(used("q", "pods"), "2");
  EXPECT_EQ(used("q", "requests.cpu"), "1");
  world.loop.run_for(seconds(60));
  EXPECT_EQ(used("q", "pods"), "1");
  EXPECT_EQ(used("q", "count/pods"), "3") << "they are objects yet";
  quota("r", "hard: {pods: '10'}");
  EXPECT_EQ(used("r", "pods"), "1");
  for (const char* name : {"before", "after"}) world.api.erase(kinds().pod, "default", name);
  settle();
  EXPECT_EQ(used("q", "pods"), "1") << "and give nothing back a second time";
  EXPECT_EQ(used("q", "requests.cpu"), "500m");
  EXPECT_EQ(used("q", "count/pods"), "1");
}

TEST_F(Quotas, APodCountsWithWhatItHoldsWhileItsSizeChanges) {
  const auto sized = [&](const char* asked, const char* runs, const char* allocated, const char* conditions) {
    world.api.put(kinds().pod,
                  yaml(fmt::format("{{metadata: {{name: a}}, spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {0}}}, "
                                   "limits: {{cpu: {0}}}}}}}]}}, status: {{phase: Running, conditions: [{3}], containerStatuses: "
                                   "[{{name: c, resources: {{requests: {{cpu: {1}}}, limits: {{cpu: {1}}}}}, "
                                   "allocatedResources: {{cpu: {2}}}}}]}}}}",
                                   asked, runs, allocated, conditions)));
    settle();
  };
  quota("q", "hard: {requests.cpu: '40', limits.cpu: '40'}");
  sized("'4'", "'4'", "'4'", "");
  EXPECT_EQ(used("q", "requests.cpu"), "4");
  sized("'1'", "'4'", "'4'", "");
  EXPECT_EQ(used("q", "requests.cpu"), "4") << "it was not made smaller yet";
  sized("'1'", "'4'", "'1'", "");
  EXPECT_EQ(used("q", "requests.cpu"), "4");
  sized("'1'", "'1'", "'1'", "");
  EXPECT_EQ(used("q", "requests.cpu"), "1");
  EXPECT_EQ(used("q", "limits.cpu"), "1");
  sized("'9'", "'1'", "'1'", "{type: PodResizePending, status: 'True', reason: Deferred}");
  EXPECT_EQ(used("q", "requests.cpu"), "9");
  sized("'9'", "'1'", "'1'", "{type: PodResizePending, status: 'True', reason: Infeasible}");
  EXPECT_EQ(used("q", "requests.cpu"), "1") << "what no node can grant";
  EXPECT_EQ(used("q", "limits.cpu"), "1");
}

TEST_F(Quotas, ClaimsCountByWhatTheirStatusSaysOfThem) {
  const auto claim = [&](const char* annotations, const char* asked, const char* status) {
    world.api.put(
        kinds().persistent_volume_claim,
        yaml(fmt::format("{{metadata: {{name: c, annotations: {{{}}}}}, spec: {{storageClassName: gold, volumeAttributesClassName: "
                         "new, resources: {{requests: {{storage: {}}}}}}}, status: {{{}}}}}",
                         annotations, asked, status)));
    settle();
  };
  quota("q",
        "hard: {requests.storage: 99Gi, gold.storageclass.storage.k8s.io/requests.storage: 99Gi, "
        "old.storageclass.storage.k8s.io/requests.storage: 99Gi}");
  quota("former",
        "hard: {persistentvolumeclaims: '9'}, scopeSelector: {matchExpressions: [{scopeName: VolumeAttributesClass, operator: In, "
        "values: [former]}]}");
  claim("", "5Gi", "currentVolumeAttributesClassName: former, allocatedResources: {storage: 20Gi}");
  EXPECT_EQ(used("q", "requests.storage"), "20Gi") << "a growth that was taken back and that the driver may have begun";
  EXPECT_EQ(used("q", "gold.storageclass.storage.k8s.io/requests.storage"), "20Gi");
  EXPECT_EQ(used("former", "persistentvolumeclaims"), "1");
  claim("", "5Gi", "currentVolumeAttributesClassName: new, allocatedResources: {storage: 5Gi}");
  EXPECT_EQ(used("q", "requests.storage"), "5Gi");
  EXPECT_EQ(used("former", "persistentvolumeclaims"), "0") << "it has its new class";
  claim("volume.beta.kubernetes.io/storage-class: old", "5Gi", "");
  EXPECT_EQ(used("q", "gold.storageclass.storage.k8s.io/requests.storage"), "0");
  EXPECT_EQ(used("q", "old.storageclass.storage.k8s.io/requests.storage"), "5Gi") << "the old annotation goes before the field";
}

TEST_F(Quotas, ClaimsAreSelectedByTheirAttributesClasses) {
  const auto claim = [&](const char* name, const char* cls, const char* status) {
    world.api.put(
        kinds().persistent_volume_claim,
        yaml(fmt::format("{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {}}}, spec: {{{}resources: {{requests: "
                         "{{storage: 1Gi}}}}}}, status: {{{}}}}}",
                         name, cls, status)));
  };
  claim("gold", "volumeAttributesClassName: gold, ", "");
  claim("silver", "volumeAttributesClassName: silver, ", "");
  claim("leaving-gold", "volumeAttributesClassName: silver, ", "currentVolumeAttributesClassName: gold");
  claim("plain", "", "");
  const auto scoped = [](const char* op, const char* values) {
    return fmt::format(
        "hard: {{persistentvolumeclaims: '10', requests.storage: 10Gi}}, scopeSelector: {{matchExpressions: [{{scopeName: "
        "VolumeAttributesClass, operator: {}{}}}]}}",
        op, values);
  };
  quota("gold", scoped("In", ", values: [gold]"));
  quota("other", scoped("NotIn", ", values: [gold]"));
  quota("any", scoped("Exists", ""));
  quota("none", scoped("DoesNotExist", ""));
  EXPECT_EQ(used("gold", "persistentvolumeclaims"), "2");
  EXPECT_EQ(used("gold", "requests.storage"), "2Gi");
  EXPECT_EQ(used("other", "persistentvolumeclaims"), "3") << "one that leaves gold counts on both sides";
  EXPECT_EQ(used("any", "persistentvolumeclaims"), "3");
  EXPECT_EQ(used("none", "persistentvolumeclaims"), "1");
}

TEST_F(Quotas, ScopesSelect) {
  pod("besteffort", "containers: [{name: c}]");
  pod("burstable", kAsking);
  pod("limited", "activeDeadlineSeconds: 60, containers: [{name: c}]");
  pod("important", "priorityClassName: high, containers: [{name: c}]");
  quota("best", "hard: {pods: '10'}, scopes: [BestEffort]");
  quota("rest", "hard: {pods: '10'}, scopes: [NotBestEffort]");
  quota("ending", "hard: {pods: '10'}, scopes: [Terminating]");
  quota("high", "hard: {pods: '10'}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}");
  EXPECT_EQ(used("best", "pods"), "3");
  EXPECT_EQ(used("rest", "pods"), "1");
  EXPECT_EQ(used("ending", "pods"), "1");
  EXPECT_EQ(used("high", "pods"), "1");
}

TEST_F(Quotas, ARaisedLimitShowsInStatus) {
  quota("q", "hard: {pods: '1'}");
  quota("q", "hard: {pods: '2', services: '3'}");
  const json::Value document = world.api.get(kinds().resource_quota, "q");
  EXPECT_EQ(json::get_string(document, {"status", "hard", "pods"}), "2");
  EXPECT_EQ(used("q", "services"), "0");
}

}  // namespace
}  // namespace berth::controllers
