// StatefulSets under a virtual clock.
#include "controllers/workloads.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

class StatefulSetTest : public ::testing::Test {
 protected:
  StatefulSetTest() {
    api.engine.add(make_statefulset_controller());
    api.engine.start();
  }
  void put_set(int replicas, const std::string& extra = "", const char* image = "a:1") {
    const json::Value before = set();
    json::Value document =
        yaml(fmt::format("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: w, generation: 1}}\nspec:\n  replicas: {}\n  "
                         "serviceName: svc\n{}  selector: {{matchLabels: {{app: w}}}}\n"
                         "  template:\n    metadata: {{labels: {{app: w}}}}\n    spec: {{containers: [{{name: c, image: '{}'}}]}}\n",
                         replicas, extra, image));
    if (!before.is_null()) {
      document.at("metadata") = before.at("metadata");
      if (json::find(before, "status") != nullptr) document.get_object()["status"] = before.at("status");
    }
    api.put(kinds().stateful_set, document);
  }
  json::Value set() const { return api.get(kinds().stateful_set, "w"); }
  void settle(int rounds = 1) {
    for (int i = 0; i < rounds; ++i) {
      loop.run_for(seconds(1));
      api.run_pods();
      loop.run_for(seconds(1));
    }
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const json::Value& pod : api.all(kinds().pod)) all.emplace(json::get_string(pod, {"metadata", "name"}));
    return all;
  }
  std::string image(const std::string& pod) const {
    return std::string(json::get_string(api.get(kinds().pod, pod).at("spec").at("containers").at(0), {"image"}));
  }
  void unready(const std::string& name) {
    json::Value pod = api.get(kinds().pod, name);
    pod.at("status").at("conditions").at(0).at("status") = "False";
    api.put(kinds().pod, pod);
  }
  json::Value claim(const std::string& name) const { return api.get(kinds().persistent_volume_claim, name); }
  std::string owner_of(const std::string& name) const {
    const auto owners = owner_references(claim(name));
    return owners.empty() ? "" : owners[0].kind;
  }
  int status(const char* field) const { return static_cast<int>(json::get_int(set(), {"status", field})); }

  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
};

TEST_F(StatefulSetTest, PodsHaveTheirIdentity) {
  put_set(1);
  settle();
  const json::Value pod = api.get(kinds().pod, "w-0");
  ASSERT_FALSE(pod.is_null());
  EXPECT_EQ(json::get_string(pod, {"metadata", "labels", "statefulset.kubernetes.io/pod-name"}), "w-0");
  EXPECT_EQ(json::get_string(pod, {"metadata", "labels", "apps.kubernetes.io/pod-index"}), "0");
  EXPECT_EQ(json::get_string(pod, {"metadata", "labels", "controller-revision-hash"}),
            json::get_string(set(), {"status", "updateRevision"}));
  EXPECT_EQ(json::get_string(pod, {"metadata", "generateName"}), "w-");
  EXPECT_EQ(json::get_string(pod, {"spec", "hostname"}), "w-0");
  EXPECT_EQ(json::get_string(pod, {"spec", "subdomain"}), "svc");
  EXPECT_TRUE(api.saw("SuccessfulCreate: Create Pod w-0 in StatefulSet w successful"));
}

TEST_F(StatefulSetTest, OrderedSetsWaitForEachPod) {
  put_set(3);
  loop.run_for(seconds(1));
  EXPECT_EQ(names(), (std::set<std::string>{"w-0"}));
  settle(2);
  EXPECT_TRUE(names().contains("w-1"));
  unready("w-0");
  settle(3);
  EXPECT_FALSE(names().contains("w-2") &&
               json::get_string(api.get(kinds().pod, "w-0").at("status").at("conditions").at(0), {"status"}) == "True");
}

TEST_F(StatefulSetTest, OrdinalsMayStartElsewhere) {
  put_set(2, "  ordinals: {start: 5}\n");
  settle(3);
  EXPECT_EQ(names(), (std::set<std::string>{"w-5", "w-6"}));
  put_set(2, "  ordinals: {start: 0}\n");
  settle(8);
  EXPECT_EQ(names(), (std::set<std::string>{"w-0", "w-1"}));
}

TEST_F(StatefulSetTest, ScalesDownFromTheTopOneAfterTheOther) {
  put_set(3);
  settle(4);
  for (json::Value pod : api.all(kinds().pod)) {  // Leaving takes time.
    json::set(pod, {"metadata", "finalizers"}, json::Array{"test/hold"});
    api.put(kinds().pod, pod);
  }
  put_set(1);
  settle(2);
  const auto leaving = [&](const char* name) {
    return json::find(api.get(kinds().pod, name), {"metadata", "deletionTimestamp"}) != nullptr;
  };
  EXPECT_TRUE(leaving("w-2"));
  EXPECT_FALSE(leaving("w-1")) << "one at a time";
  EXPECT_TRUE(api.saw("SuccessfulDelete: Delete Pod w-2 in StatefulSet w successful"));
}

TEST_F(StatefulSetTest, ParallelSetsDoNotWait) {
  put_set(5, "  podManagementPolicy: Parallel\n");
  loop.run_for(seconds(1));
  EXPECT_EQ(names().size(), 5u);
  put_set(1, "  podManagementPolicy: Parallel\n");
  loop.run_for(seconds(1));
  EXPECT_EQ(names(), (std::set<std::string>{"w-0"}));
}

TEST_F(StatefulSetTest, AParallelUpdateWaitsForThePodItTookAway) {
  put_set(3, "  podManagementPolicy: Parallel\n");
  settle(3);
  put_set(3, "  podManagementPolicy: Parallel\n", "a:2");
  loop.run_for(seconds(5));  // Nobody runs the new pod.
  std::map<std::string, std::string> images;
  for (const json::Value& pod : api.all(kinds().pod))
    images[std::string(json::get_string(pod, {"metadata", "name"}))] = json::get_string(pod.at("spec").at("containers").at(0), {"image"});
  EXPECT_EQ(images, (std::map<std::string, std::string>{{"w-0", "a:1"}, {"w-1", "a:1"}, {"w-2", "a:2"}}));
}

TEST_F(StatefulSetTest, RollsFromTheTopToThePartition) {
  const char* partition = "  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}\n";
  put_set(3, partition);
  settle(4);
  put_set(3, partition, "a:2");
  settle(8);
  EXPECT_EQ(image("w-0"), "a:1");
  EXPECT_EQ(image("w-1"), "a:2");
  EXPECT_EQ(image("w-2"), "a:2");
  EXPECT_NE(json::get_string(set(), {"status", "currentRevision"}), json::get_string(set(), {"status", "updateRevision"}));
  api.erase(kinds().pod, "default", "w-0");
  settle(2);
  EXPECT_EQ(image("w-0"), "a:1") << "below the partition a pod comes back as it was";
  EXPECT_EQ(status("updatedReplicas"), 2);
  put_set(3, "  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}\n", "a:2");
  settle(4);
  EXPECT_EQ(image("w-0"), "a:2");
  EXPECT_EQ(json::get_string(set(), {"status", "currentRevision"}), json::get_string(set(), {"status", "updateRevision"}));
}

TEST_F(StatefulSetTest, WhoseFormerRevisionIsDeletedHasThePresentOneAlone) {
  const char* partition = "  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}\n";
  put_set(2, partition);
  settle(4);
  const std::string former(json::get_string(set(), {"status", "currentRevision"}));
  put_set(2, partition, "a:2");
  settle(4);
  ASSERT_EQ(json::get_string(set(), {"status", "currentRevision"}), former);
  api.erase(kinds().controller_revision, "default", former);
  settle(2);
  EXPECT_EQ(json::get_string(set(), {"status", "currentRevision"}), json::get_string(set(), {"status", "updateRevision"}));
  EXPECT_EQ(status("currentReplicas"), 1);
  EXPECT_EQ(image("w-0"), "a:1") << "who runs goes on";
  api.erase(kinds().pod, "default", "w-0");
  settle(2);
  EXPECT_EQ(image("w-0"), "a:2") << "the former template is known no more";
  EXPECT_EQ(status("currentReplicas"), 2);
}

TEST_F(StatefulSetTest, OnDeleteUpdatesNobodyItself) {
  put_set(2, "  updateStrategy: {type: OnDelete}\n");
  settle(3);
  put_set(2, "  updateStrategy: {type: OnDelete}\n", "a:2");
  settle(3);
  EXPECT_EQ(image("w-1"), "a:1");
  api.erase(kinds().pod, "default", "w-1");
  settle(2);
  EXPECT_EQ(image("w-1"), "a:2");
  EXPECT_EQ(image("w-0"), "a:1");
}

TEST_F(StatefulSetTest, MaxUnavailableUpdatesSeveralAtOnce) {
  const char* two =
      "  podManagementPolicy: Parallel\n  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0, maxUnavailable: 50%}}\n";
  put_set(5, two);
  settle(2);
  put_set(5, two, "a:2");
  loop.run_for(std::chrono::milliseconds(500));
  std::set<std::string> fresh;
  for (const std::string& name : names())
    if (image(name) == "a:2") fresh.insert(name);
  EXPECT_EQ(fresh, (std::set<std::string>{"w-3", "w-4"})) << "50% of five, rounded down";
  settle(6);
  for (const std::string& name : names()) EXPECT_EQ(image(name), "a:2");
}

TEST_F(StatefulSetTest, ABrokenNewPodHoldsTheUpdateAndARollbackNeedsItsDeletion) {
  put_set(2);
  settle(3);
  put_set(2, "", "broken:1");
  loop.run_for(seconds(1));
  EXPECT_EQ(image("w-1"), "broken:1");
  EXPECT_EQ(image("w-0"), "a:1");
  put_set(2);  // Back again, while w-1 never becomes ready.
  loop.run_for(seconds(5));
  EXPECT_EQ(image("w-1"), "broken:1") << "an ordered set waits for its pods (kubernetes issue 67250)";
  api.erase(kinds().pod, "default", "w-1");
  settle(2);
  EXPECT_EQ(image("w-1"), "a:1");
}

TEST_F(StatefulSetTest, MinReadySecondsHoldsThePaceAndTheCount) {
  put_set(2, "  minReadySeconds: 10\n");
  settle(2);
  EXPECT_EQ(names().size(), 1u);
  EXPECT_EQ(status("readyReplicas"), 1);
  EXPECT_EQ(status("availableReplicas"), 0);
  loop.run_for(seconds(11));
  EXPECT_EQ(names().size(), 2u);
  EXPECT_EQ(status("availableReplicas"), 1);
}

TEST_F(StatefulSetTest, AFailedPodIsMadeAnew) {
  put_set(1);
  settle();
  json::Value pod = api.get(kinds().pod, "w-0");
  const std::string uid(json::get_string(pod, {"metadata", "uid"}));
  json::set(pod, {"status", "phase"}, "Failed");
  api.put(kinds().pod, pod);
  settle(2);
  EXPECT_NE(json::get_string(api.get(kinds().pod, "w-0"), {"metadata", "uid"}), uid);
  EXPECT_FALSE(api.saw("RecreatingFailedPod: StatefulSet default/w is recreating failed Pod w-0")) << "no such event since 1.31";
}

TEST_F(StatefulSetTest, OnItsWayOutItMakesNothing) {
  put_set(2);
  settle(4);
  json::Value document = set();
  json::set(document, {"metadata", "deletionTimestamp"}, "2026-01-05T10:00:30Z");
  json::set(document, {"metadata", "finalizers"}, json::Array{"foregroundDeletion"});
  api.put(kinds().stateful_set, document);
  for (const json::Value& revision : api.all(kinds().controller_revision))
    api.erase(kinds().controller_revision, "default", std::string(json::get_string(revision, {"metadata", "name"})));
  api.erase(kinds().pod, "default", "w-1");
  settle(2);
  EXPECT_TRUE(api.all(kinds().controller_revision).empty());
  EXPECT_EQ(names(), (std::set<std::string>{"w-0"}));
  EXPECT_EQ(status("replicas"), 1);
}

TEST_F(StatefulSetTest, ASetMadeAnewTakesPodsAndHistoryOver) {
  put_set(2);
  settle(4);
  const std::string uid(json::get_string(api.get(kinds().pod, "w-0"), {"metadata", "uid"}));
  const std::string revision(json::get_string(set(), {"status", "updateRevision"}));
  // Deleted with --cascade=orphan.
  api.erase(kinds().stateful_set, "default", "w");
  for (const Kind kind : {kinds().pod, kinds().controller_revision}) {
    for (json::Value document : api.all(kind)) {
      json::erase(document, {"metadata", "ownerReferences"});
      api.put(kind, document);
    }
  }
  put_set(2);
  settle(6);
  EXPECT_EQ(json::get_string(api.get(kinds().pod, "w-0"), {"metadata", "uid"}), uid) << "the same template: no pod is made anew";
  EXPECT_EQ(json::get_string(set(), {"status", "updateRevision"}), revision);
  EXPECT_EQ(api.all(kinds().controller_revision).size(), 1u);
  EXPECT_EQ(status("updatedReplicas"), 2);
}

std::string with_claims(const char* deleted, const char* scaled) {
  return fmt::format(
      "  persistentVolumeClaimRetentionPolicy: {{whenDeleted: {}, whenScaled: {}}}\n  volumeClaimTemplates: [{{metadata: {{name: data, "
      "labels: {{kept: x}}}}, spec: {{accessModes: [ReadWriteOnce]}}}}]\n",
      deleted, scaled);
}

TEST_F(StatefulSetTest, EveryPodHasItsClaimAndFindsItAgain) {
  put_set(1, with_claims("Retain", "Retain"));
  settle();
  const json::Value made = claim("data-w-0");
  ASSERT_FALSE(made.is_null());
  EXPECT_EQ(json::get_string(made, {"metadata", "labels", "app"}), "w");
  EXPECT_EQ(json::get_string(made, {"metadata", "labels", "kept"}), "x");
  EXPECT_EQ(json::get_string(api.get(kinds().pod, "w-0").at("spec").at("volumes").at(0), {"persistentVolumeClaim", "claimName"}),
            "data-w-0");
  EXPECT_TRUE(api.saw("SuccessfulCreate: Create Claim data-w-0 Pod w-0 in StatefulSet w success"));
  put_set(0, with_claims("Retain", "Retain"));
  settle(2);
  EXPECT_FALSE(claim("data-w-0").is_null());
  EXPECT_EQ(owner_of("data-w-0"), "");
}

TEST_F(StatefulSetTest, RetentionPolicyIsKeptInTheClaimsOwners) {
  put_set(2, with_claims("Delete", "Delete"));
  settle(3);
  EXPECT_EQ(owner_of("data-w-0"), "StatefulSet");
  json::Value pod = api.get(kinds().pod, "w-1");
  json::set(pod, {"metadata", "finalizers"}, json::Array{"test/hold"});
  api.put(kinds().pod, pod);
  put_set(1, with_claims("Delete", "Delete"));
  settle(2);
  EXPECT_EQ(owner_of("data-w-1"), "Pod") << "it goes with the pod that is scaled away";
  EXPECT_EQ(owner_of("data-w-0"), "StatefulSet");
  EXPECT_FALSE(api.saw("SuccessfulUpdate: Update Pod w-1 in StatefulSet w successful"));
  put_set(1, with_claims("Retain", "Delete"));
  settle(2);
  EXPECT_EQ(owner_of("data-w-0"), "") << "a policy may change later";
  EXPECT_TRUE(api.saw("SuccessfulUpdate: Update Pod w-0 in StatefulSet w successful"));
}

TEST_F(StatefulSetTest, AClaimThatSomebodyElseControlsIsLeftAlone) {
  api.put(kinds().persistent_volume_claim,
          yaml("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-w-0, ownerReferences: [{apiVersion: v1, kind: Backup, "
               "name: b, uid: u, controller: true}]}}"));
  put_set(1, with_claims("Delete", "Delete"));
  settle(3);
  EXPECT_EQ(names(), (std::set<std::string>{"w-0"}));
  EXPECT_EQ(owner_of("data-w-0"), "Backup");
  EXPECT_EQ(owner_references(claim("data-w-0")).size(), 1u);
  EXPECT_TRUE(
      api.saw("ConflictingController: PersistentVolumeClaim data-w-0 has a conflicting OwnerReference that acts as a manging "
              "controller, the retention policy is ignored for this claim"));
}

TEST_F(StatefulSetTest, APodWaitsForTheClaimOfItsPredecessorToGo) {
  api.put(kinds().persistent_volume_claim, yaml("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-w-0, "
                                                "deletionTimestamp: '2026-01-05T09:00:00Z', finalizers: [kubernetes.io/pvc-protection]}}"));
  put_set(1, with_claims("Retain", "Retain"));
  settle(2);
  EXPECT_TRUE(names().empty());
  EXPECT_TRUE(api.saw("FailedCreate: Create Pod w-0 in StatefulSet w failed error: pvc data-w-0 is being deleted"));
  api.erase(kinds().persistent_volume_claim, "default", "data-w-0");
  settle(2);
  EXPECT_EQ(names(), (std::set<std::string>{"w-0"}));
}

TEST_F(StatefulSetTest, RevisionsAreKeptUpToTheLimitAndReused) {
  for (const char* image : {"a:1", "a:2", "a:3", "a:4", "a:1"}) {
    put_set(1, "  revisionHistoryLimit: 1\n", image);
    settle(3);
  }
  const auto revisions = api.all(kinds().controller_revision);
  EXPECT_EQ(revisions.size(), 2u) << "the present one and one of history";
  for (const json::Value& revision : revisions)
    EXPECT_NE(json::find(revision, {"metadata", "labels", "controller.kubernetes.io/hash"}), nullptr);
}

TEST_F(StatefulSetTest, AnAdoptedPodGetsItsLabels) {
  api.put(kinds().pod,
          yaml("{apiVersion: v1, kind: Pod, metadata: {name: w-0, labels: {app: w}}, spec: {nodeName: node-1}, status: {phase: "
               "Running, conditions: [{type: Ready, status: 'True'}]}}"));
  put_set(1, "  updateStrategy: {type: OnDelete}\n");
  settle(2);
  const json::Value pod = api.get(kinds().pod, "w-0");
  EXPECT_EQ(owner_references(pod).size(), 1u);
  EXPECT_EQ(json::get_string(pod, {"metadata", "labels", "statefulset.kubernetes.io/pod-name"}), "w-0");
  EXPECT_TRUE(api.saw("SuccessfulUpdate: Update Pod w-0 in StatefulSet w successful"));
}

TEST_F(StatefulSetTest, AnOwnerThatControlsNothingStaysBesideTheSet) {
  api.put(kinds().persistent_volume_claim,
          yaml("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-w-0, ownerReferences: [{apiVersion: v1, kind: Backup, "
               "name: b, uid: u}]}}"));
  const auto owners = [&] {
    std::vector<std::string> out;
    for (const OwnerReference& one : owner_references(claim("data-w-0"))) out.push_back(one.kind);
    return out;
  };
  put_set(1, with_claims("Retain", "Retain"));
  settle(3);
  EXPECT_EQ(owners(), (std::vector<std::string>{"Backup"}));
  put_set(1, with_claims("Delete", "Retain"));
  settle(2);
  EXPECT_EQ(owners(), (std::vector<std::string>{"Backup", "StatefulSet"}));
  const std::string revision(json::get_string(claim("data-w-0"), {"metadata", "resourceVersion"}));
  for (int i = 0; i < 3; ++i) {
    unready("w-0");
    json::Value pod = api.get(kinds().pod, "w-0");
    pod.at("status").at("conditions").at(0).at("status") = "True";
    api.put(kinds().pod, pod);
    settle();
  }
  EXPECT_EQ(json::get_string(claim("data-w-0"), {"metadata", "resourceVersion"}), revision) << "what is right is not written again";
}

TEST_F(StatefulSetTest, ANameThatIsTakenIsNoNews) {
  api.put(kinds().pod, yaml("{apiVersion: v1, kind: Pod, metadata: {name: w-0, labels: {app: other}}, spec: {}}"));
  put_set(1);
  settle(3);
  EXPECT_TRUE(std::ranges::none_of(api.events, [](const std::string& event) { return event.starts_with("FailedCreate"); }));
  api.erase(kinds().pod, "default", "w-0");
  settle(10);
  EXPECT_EQ(names(), (std::set<std::string>{"w-0"})) << "it is tried again";
}

}  // namespace
}  // namespace berth::controllers
