#include "tests/apiserver/wrapped_cache.h"

namespace berth::apiserver::testing {

class Delete : public ServerTest {};

/// A node that confirms a pod's end before anybody else can do anything, and, where it is told so, a controller that has made another pod
/// of that name by then.
class QuickNode final : public WrappedCache {
 public:
  QuickNode(std::unique_ptr<ObjectCache> below, bool is_followed) : WrappedCache(std::move(below)), is_followed_(is_followed) {}
  void propose(Proposal proposal, std::function<void(ProposeResult)> result) override {
    const bool ends = !proposal.is_delete && proposal.value.find("\"deletionGracePeriodSeconds\":0") != std::string::npos;
    Proposal next = proposal;
    below_->propose(std::move(proposal), [this, ends, next = std::move(next), result = std::move(result)](ProposeResult stored) mutable {
      if (ends && stored) {
        Proposal gone;
        gone.key = next.key;
        gone.expected = (*stored)->revision;
        gone.is_delete = true;
        below_->propose(std::move(gone), [](ProposeResult removed) { EXPECT_TRUE(removed); });
        if (is_followed_) {
          next.value.replace(next.value.find(next.meta.uid), next.meta.uid.size(), std::string(next.meta.uid.size(), '9'));
          next.meta.uid = std::string(next.meta.uid.size(), '9');
          next.expected = 0;
          below_->propose(std::move(next), [](ProposeResult made) { EXPECT_TRUE(made); });
        }
      }
      result(std::move(stored));
    });
  }

 private:
  const bool is_followed_;
};

TEST_F(Delete, APodThatItsNodeEndsFirstIsDeletedAndItsSuccessorIsNot) {
  for (const bool is_followed : {false, true}) {
    wrap_cache_ = [&](std::unique_ptr<ObjectCache> cache) { return std::make_unique<QuickNode>(std::move(cache), is_followed); };
    start({});
    const auto made = create(kPods, pod("p"));
    const auto gone = remove(std::string(kPods) + "/p");
    EXPECT_EQ(gone->status, 200) << gone->body;
    EXPECT_EQ(text(gone->document(), {"metadata", "uid"}), text(made, {"metadata", "uid"}));
    EXPECT_EQ(get(std::string(kPods) + "/p")->status, is_followed ? 200 : 404)
        << "another pod of that name is not the one that was deleted";
  }
}

TEST_F(Delete, AnswersAStatusOrThePod) {
  const auto map = create(kMaps, config_map("a"));
  auto gone = remove(std::string(kMaps) + "/a");
  EXPECT_EQ(gone->status, 200);
  EXPECT_EQ(text(gone->document(), {"status"}), "Success");
  EXPECT_EQ(text(gone->document(), {"details", "uid"}), text(map, {"metadata", "uid"}));
  create(kPods, pod("p"));
  auto unscheduled = remove(std::string(kPods) + "/p");
  EXPECT_EQ(text(unscheduled->document(), {"kind"}), "Pod");
  EXPECT_EQ(get(std::string(kPods) + "/p")->status, 404) << "an unscheduled pod goes at once";
}

TEST_F(Delete, GraceOnlyGetsShorter) {
  create(kPods, pod("p", R"("nodeName":"n1")"));
  const std::string path = std::string(kPods) + "/p";
  auto first = remove(path)->document();
  EXPECT_EQ(json::get_int(first, {"metadata", "deletionGracePeriodSeconds"}), 30);
  EXPECT_EQ(text(first, {"metadata", "deletionTimestamp"}), "2026-01-02T03:04:35Z");
  auto longer = remove(path + "?gracePeriodSeconds=60")->document();
  EXPECT_TRUE(json::equal(first, longer));
  auto shorter = remove(path, R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":5})")->document();
  EXPECT_EQ(text(shorter, {"metadata", "deletionTimestamp"}), "2026-01-02T03:04:10Z");
  EXPECT_EQ(get(path)->status, 200);
  EXPECT_EQ(remove(path + "?gracePeriodSeconds=0")->status, 200);
  EXPECT_EQ(get(path)->status, 404);
}

TEST_F(Delete, APodThatGoesAtOnceIsSeenToEndFirst) {
  const auto made = create(kPods, pod("p"));
  auto watch = get(std::string(kPods) + "?watch=1&resourceVersion=" + text(made, {"metadata", "resourceVersion"}));
  EXPECT_EQ(json::get_int(remove(std::string(kPods) + "/p?dryRun=All")->document(), {"metadata", "deletionGracePeriodSeconds"}, -1), 0);
  const auto gone = remove(std::string(kPods) + "/p")->document();
  EXPECT_EQ(text(gone, {"metadata", "deletionTimestamp"}), "2026-01-02T03:04:05Z");
  EXPECT_EQ(json::get_int(gone, {"metadata", "generation"}), 2);
  const auto events = watch->events();
  ASSERT_EQ(events.size(), 2U) << watch->body;
  EXPECT_EQ(text(events[0], {"type"}), "MODIFIED");
  EXPECT_EQ(json::get_int(events[0], {"object", "metadata", "deletionGracePeriodSeconds"}, -1), 0);
  EXPECT_EQ(text(events[1], {"type"}), "DELETED");
}

TEST_F(Delete, AJobsPodsStayUnlessSomethingElseIsSaid) {
  const std::string jobs = "/apis/batch/v1/namespaces/default/jobs";
  const auto job = [](const char* name) {
    return fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{"template":{{"spec":{{"restartPolicy":"Never","containers":[{{"name":"c","image":"i"}}]}}}}}}}})",
        name);
  };
  create(jobs, job("a"));
  create(jobs, job("b"));
  EXPECT_EQ(remove(jobs + "/b?propagationPolicy=Background")->headers.get("Warning"), "");
  EXPECT_EQ(remove(jobs + "/a?orphanDependents=true&dryRun=All")->headers.get("Warning"), "");
  EXPECT_NE(remove(jobs + "/a")->headers.get("Warning").find("child pods are preserved by default when jobs are deleted"),
            std::string::npos);
  EXPECT_NE(remove(jobs)->headers.get("Warning").find("child pods are preserved"), std::string::npos);
}

TEST_F(Delete, FinalizersHoldAndRelease) {
  create(kMaps, R"({"metadata":{"name":"a","finalizers":["x.io/hold"]}})");
  const std::string path = std::string(kMaps) + "/a";
  auto marked = remove(path);
  EXPECT_EQ(marked->status, 200);
  EXPECT_FALSE(text(read(path), {"metadata", "deletionTimestamp"}).empty());
  auto more = patch(path, R"({"metadata":{"finalizers":["x.io/hold","x.io/new"]}})");
  EXPECT_STATUS(more, 422, "Invalid");
  EXPECT_NE(more->body.find("no new finalizers can be added if the object is being deleted"), std::string::npos);
  EXPECT_EQ(patch(path, R"({"data":{"k":"still"}})")->status, 200);
  EXPECT_EQ(patch(path, R"({"metadata":{"finalizers":null}})")->status, 200);
  EXPECT_EQ(get(path)->status, 404);
}

/// A controller's finalizer keeps an object of a custom kind: it can still be taken away once nothing new can be made.
TEST_F(Delete, WhoFinishesCustomObjectsMayChangeThemWhileTheirDefinitionGoes) {
  const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", boxes = "/apis/example.com/v1/boxes";
  create(definitions, R"({"metadata":{"name":"boxes.example.com"},"spec":{"group":"example.com","scope":"Cluster",
      "names":{"plural":"boxes","singular":"box","kind":"Box"},"versions":[{"name":"v1","served":true,"storage":true,
      "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})");
  loop_.run_for(std::chrono::seconds(1));
  const auto box = [](std::string_view name) {
    return fmt::format(R"({{"apiVersion":"example.com/v1","kind":"Box","metadata":{{"name":"{}","finalizers":["x.io/hold"]}}}})", name);
  };
  create(boxes, box("a"));
  remove(definitions + "/boxes.example.com");
  loop_.run_for(std::chrono::seconds(10));
  const auto late = post(boxes, box("late"));
  EXPECT_STATUS(late, 405, "MethodNotAllowed");
  EXPECT_EQ(text(late->document(), {"message"}), "create not allowed while custom resource definition is terminating");
  EXPECT_EQ(patch(boxes + "/a", R"({"metadata":{"finalizers":null}})")->status, 200);
  loop_.run_for(std::chrono::seconds(60));
  EXPECT_EQ(get(definitions + "/boxes.example.com")->status, 404);
}

/// An autoscaler is stored as autoscaling/v2.
TEST_F(Delete, IsJudgedAndShownInTheVersionAskedFor) {
  const std::string scalers = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
  create(scalers, R"({"metadata":{"name":"h","finalizers":["x.io/hold"]},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":80,
      "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}})");
  const std::string policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
  create(policies, R"({"metadata":{"name":"p"},"spec":{"matchConstraints":{"matchPolicy":"Exact","resourceRules":[
      {"apiGroups":["autoscaling"],"apiVersions":["v1"],"operations":["DELETE"],"resources":["horizontalpodautoscalers"]}]},
      "validations":[{"expression":"oldObject.spec.targetCPUUtilizationPercentage != 80","message":"not this one"}]}})");
  create(policies.substr(0, policies.size() - 3) + "ybindings",
         R"({"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny"]}})");
  const auto refused = remove(scalers + "/h");
  EXPECT_STATUS(refused, 422, "Invalid");
  EXPECT_NE(refused->body.find("not this one"), std::string::npos) << refused->body;
  remove(policies.substr(0, policies.size() - 3) + "ybindings/b");
  const auto tried = remove(scalers + "/h?dryRun=All")->document();
  EXPECT_EQ(text(tried, {"apiVersion"}), "autoscaling/v1");
  EXPECT_EQ(json::get_int(tried, {"spec", "targetCPUUtilizationPercentage"}), 80);
  EXPECT_FALSE(text(tried, {"metadata", "deletionTimestamp"}).empty());
}

TEST_F(Delete, PropagationBecomesFinalizers) {
  create(kMaps, config_map("a"));
  auto foreground = remove(std::string(kMaps) + "/a?propagationPolicy=Foreground");
  EXPECT_EQ(json::serialize(*json::find(foreground->document(), {"metadata", "finalizers"})), R"(["foregroundDeletion"])");
  create(kMaps, config_map("b"));
  remove(std::string(kMaps) + "/b", R"({"propagationPolicy":"Orphan"})");
  EXPECT_EQ(json::serialize(*json::find(read(std::string(kMaps) + "/b"), {"metadata", "finalizers"})), R"(["orphan"])");
  create(kMaps, config_map("c"));
  EXPECT_STATUS(remove(std::string(kMaps) + "/c?propagationPolicy=Sideways"), 422, "Invalid");
  remove(std::string(kMaps) + "/c?propagationPolicy=Background");
  EXPECT_EQ(get(std::string(kMaps) + "/c")->status, 404);
}

TEST_F(Delete, Preconditions) {
  const auto map = create(kMaps, config_map("a"));
  EXPECT_STATUS(remove(std::string(kMaps) + "/a", R"({"preconditions":{"uid":"nope"}})"), 409, "Conflict");
  EXPECT_STATUS(remove(std::string(kMaps) + "/a", R"({"preconditions":{"resourceVersion":"1"}})"), 409, "Conflict");
  EXPECT_EQ(remove(std::string(kMaps) + "/a", fmt::format(R"({{"preconditions":{{"uid":"{}"}}}})", text(map, {"metadata", "uid"})))->status,
            200);
}

TEST_F(Delete, CollectionBySelector) {
  for (const char* name : {"a", "b", "c"}) create(kMaps, config_map(name, "{}", std::string_view(name) == "c" ? "{}" : R"({"x":"y"})"));
  EXPECT_EQ(remove(std::string(kMaps) + "?labelSelector=x%3Dy")->status, 200);
  EXPECT_EQ(json::get_array(read(kMaps), {"items"}).size(), 1u);
}

TEST_F(Delete, NamespacesTerminateUntilFinalized) {
  create("/api/v1/namespaces", R"({"metadata":{"name":"n"}})");
  create("/api/v1/namespaces/n/configmaps", config_map("a"));
  auto marked = remove("/api/v1/namespaces/n");
  EXPECT_EQ(text(marked->document(), {"status", "phase"}), "Terminating") << marked->body;
  auto late = post("/api/v1/namespaces/n/configmaps", config_map("late"));
  EXPECT_STATUS(late, 403, "Forbidden");
  EXPECT_EQ(text(late->document(), {"message"}),
            "configmaps \"late\" is forbidden: unable to create new content in namespace n because it is being terminated");
  EXPECT_STATUS(remove("/api/v1/namespaces/n"), 409, "Conflict");
  auto document = read("/api/v1/namespaces/n");
  json::set(document, {"spec", "finalizers"}, json::Array());
  EXPECT_EQ(put("/api/v1/namespaces/n", document)->status, 200) << "the main resource does not touch the finalizers";
  document = read("/api/v1/namespaces/n");
  EXPECT_EQ(json::get_array(document, {"spec", "finalizers"}).size(), 1u);
  json::set(document, {"spec", "finalizers"}, json::Array());
  auto finalized = put("/api/v1/namespaces/n/finalize", document);
  EXPECT_EQ(finalized->status, 200) << finalized->body;
  EXPECT_EQ(get("/api/v1/namespaces/n")->status, 404);
  EXPECT_STATUS(remove("/api/v1/namespaces/default"), 403, "Forbidden");
}

}  // namespace berth::apiserver::testing
