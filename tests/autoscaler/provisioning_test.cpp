// ProvisioningRequests: which conditions they get and when, what they book, what they grow.
#include "autoscaler/provisioning.h"

#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

constexpr const char* kAtomic = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
constexpr const char* kCheck = "check-capacity.autoscaling.x-k8s.io";

/// A cluster whose requests' updates come back to it, as the API server would bring them.
struct Requested : TestCluster {
  std::map<std::string, json::Value> documents;
  std::vector<std::string> deleted;

  void pod_template(const std::string& name, const std::string& cpu, const std::string& extra = "") {
    put(fmt::format(
        "kind: PodTemplate\nmetadata: {{namespace: default, name: {}}}\ntemplate:\n  spec:\n    containers: [{{name: c, image: i, "
        "resources: {{requests: {{cpu: '{}', memory: 1Gi}}}}}}]{}",
        name, cpu, extra));
  }
  void request(const std::string& name, const std::string& class_name, const std::string& sets, const std::string& parameters = "{}") {
    json::Value document = yaml(
        fmt::format("apiVersion: autoscaling.x-k8s.io/v1\nkind: ProvisioningRequest\nmetadata: {{namespace: default, name: {0}, uid: {0}, "
                    "generation: 1, "
                    "resourceVersion: '1', creationTimestamp: '{1}'}}\nspec: {{provisioningClassName: {2}, podSets: {3}, parameters: {4}}}",
                    name, format_rfc3339(now), class_name, sets, parameters));
    cache.upsert(document);
    documents[name] = std::move(document);
  }
  Actions pass() {
    Actions actions = step();
    for (const RequestUpdate& update : actions.requests) {
      json::Value& document = documents.at(update.request->name);
      if (update.is_deleted) {
        deleted.push_back(update.request->name);
        cache.remove("ProvisioningRequest", "default", update.request->name);
        continue;
      }
      json::set(document, {"status"}, update.status());
      cache.upsert(document);
    }
    return actions;
  }
  /// "Type=Status Reason" of each condition, in their order.
  std::string conditions(const std::string& name) {
    std::string out;
    for (const json::Value& one : json::get_array(documents.at(name), {"status", "conditions"}))
      out += fmt::format("{}{}={} {}", out.empty() ? "" : ", ", json::get_string(one, {"type"}), json::get_string(one, {"status"}),
                         json::get_string(one, {"reason"}));
    return out;
  }
  std::string message(const std::string& name, std::string_view type) {
    for (const json::Value& one : json::get_array(documents.at(name), {"status", "conditions"}))
      if (json::get_string(one, {"type"}) == type) return std::string(json::get_string(one, {"message"}));
    return "";
  }
};
constexpr const char* kFound = "Accepted=True Accepted, Provisioned=True CapacityIsFound";
constexpr const char* kProvisioned = "Accepted=True Accepted, Provisioned=True CapacityIsProvisioned";
constexpr const char* kNotFound = "Accepted=True Accepted, Provisioned=False CapacityIsNotFound";

TEST(ProvisioningRequest, RoomThatIsThereIsFoundAndBookedForTenMinutes) {
  Requested cluster;
  cluster.node("n1", "8");
  cluster.pod_template("t", "2");
  cluster.request("first", kCheck, "[{count: 3, podTemplateRef: {name: t}}]");
  cluster.pass();
  EXPECT_EQ(cluster.conditions("first"), kFound);
  EXPECT_EQ(cluster.message("first", "Accepted"), "ProvisioningRequest is accepted by ClusterAutoscaler");
  EXPECT_EQ(cluster.message("first", "Provisioned"), "Capacity is found in the cluster");
  // 8 cores: six are booked, so that two pods of two do not fit.
  cluster.request("second", kCheck, "[{count: 2, podTemplateRef: {name: t}}]");
  cluster.now += 10s;
  cluster.pass();
  EXPECT_EQ(cluster.conditions("second"), kNotFound);
  EXPECT_EQ(cluster.message("second", "Provisioned"), "Capacity is not found, CA will try to find it later.");
  cluster.now += 10min;
  cluster.pass();
  EXPECT_EQ(cluster.conditions("first"), std::string(kFound) + ", BookingExpired=True CapacityReservationTimeExpired");
  EXPECT_EQ(cluster.message("first", "BookingExpired"), "Capacity reservation time is expired");
  EXPECT_EQ(cluster.conditions("second"), kFound);
}

TEST(ProvisioningRequest, TwoOfOnePassDoNotGetTheSameRoom) {
  Requested cluster;
  cluster.node("n1", "8");
  cluster.pod_template("t", "3");
  cluster.request("a", kCheck, "[{count: 2, podTemplateRef: {name: t}}]");
  cluster.request("b", kCheck, "[{count: 1, podTemplateRef: {name: t}}]");
  cluster.pass();
  EXPECT_EQ(cluster.conditions("a"), kFound);
  EXPECT_EQ(cluster.conditions("b"), kNotFound);
}

TEST(ProvisioningRequest, IsTriedAgainAfterOneTwoAndFourMinutesAndThenEveryTen) {
  Requested cluster;
  cluster.pod_template("t", "2");
  cluster.request("r", kCheck, "[{count: 1, podTemplateRef: {name: t}}]");
  std::vector<int> attempts;
  const TimePoint start = cluster.now;
  for (; cluster.now < start + 40min; cluster.now += 10s)
    if (!cluster.pass().requests.empty())
      attempts.push_back(static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(cluster.now - start).count()));
  // A minute, two, four, eight, ten, each begun at the pass after it.
  EXPECT_EQ(attempts, (std::vector<int>{0, 70, 200, 450, 940, 1550, 2160}));
}

TEST(ProvisioningRequest, WithoutRetryItFails) {
  Requested cluster;
  cluster.pod_template("t", "2");
  cluster.request("r", kCheck, "[{count: 1, podTemplateRef: {name: t}}]", "{noRetry: 'true'}");
  cluster.pass();
  EXPECT_EQ(cluster.conditions("r"), "Accepted=True Accepted, Failed=True CapacityIsNotFound");
  EXPECT_EQ(cluster.message("r", "Failed"), "CA could not find requested capacity");
}

TEST(ProvisioningRequest, PartOfTheRoomIsBookedOrOnlyTold) {
  for (const auto& [mode, provisioned] : {std::pair("bookPartial", "True"), std::pair("checkOnly", "False")}) {
    Requested cluster;
    cluster.node("n1", "8");
    cluster.pod_template("large", "5");
    cluster.pod_template("small", "1");
    cluster.request("r", kCheck, "[{count: 2, podTemplateRef: {name: large}}, {count: 3, podTemplateRef: {name: small}}]",
                    fmt::format("{{partialCapacityCheck: {}}}", mode));
    cluster.pass();
    EXPECT_EQ(cluster.conditions("r"), fmt::format("Accepted=True Accepted, Provisioned={} PartialCapacityIsFound", provisioned));
    EXPECT_EQ(json::get_string(cluster.documents.at("r"), {"status", "provisioningClassDetails", "schedulablePodSets"}), "[\"small\"]");
    // Three of eight cores are booked, or none.
    cluster.request("six", kCheck, "[{count: 6, podTemplateRef: {name: small}}]");
    cluster.now += 10s;
    cluster.pass();
    EXPECT_EQ(cluster.conditions("six"), std::string_view(mode) == "bookPartial" ? kNotFound : kFound);
  }
}

TEST(ProvisioningRequest, GrowsOneGroupForAllOfItsPods) {
  Requested cluster;
  cluster.set("a", {.cpu = "8"});
  cluster.pod_template("t", "3");
  cluster.request("r", kAtomic, "[{count: 5, podTemplateRef: {name: t}}]");
  const Actions actions = cluster.pass();
  EXPECT_EQ(grown(actions), "[{MachineSet/m/a 0->3 (max: 10)}]");  // Two pods a node.
  ASSERT_EQ(actions.requests.size(), 1U);
  EXPECT_EQ(actions.requests[0].awaited_groups, std::vector<std::string>{"MachineSet/m/a"});
  EXPECT_EQ(cluster.conditions("r"), kProvisioned);
  EXPECT_EQ(cluster.message("r", "Provisioned"), "Capacity is found in the cluster");
  // Its nodes are on their way and booked: a pod that waits gets one of its own.
  cluster.set("a", {.replicas = 3, .cpu = "8"});
  cluster.pod("p", {.cpu = "7"});
  cluster.now += 10s;
  EXPECT_EQ(grown(cluster.pass()), "[{MachineSet/m/a 3->4 (max: 10)}]");
}

TEST(ProvisioningRequest, GrowsNothingWhenNotAllOfItsPodsCanBeHelped) {
  Requested cluster;
  cluster.set("a", {.max = 2, .cpu = "8"});
  cluster.set("b", {.max = 1, .cpu = "4"});
  cluster.pod_template("t", "3");
  cluster.request("r", kAtomic, "[{count: 5, podTemplateRef: {name: t}}]");
  const Actions actions = cluster.pass();
  EXPECT_TRUE(actions.grow.empty());
  EXPECT_EQ(cluster.conditions("r"), kNotFound);
}

TEST(ProvisioningRequest, ACapOfCoresIsNotWorkedAroundByHalf) {
  Requested cluster;
  cluster.options = options_of("{resourceLimits: {cores: {min: 0, max: 16}}}");
  cluster.set("a", {.cpu = "8"});
  cluster.pod_template("t", "3");
  cluster.request("r", kAtomic, "[{count: 5, podTemplateRef: {name: t}}]");
  EXPECT_TRUE(cluster.pass().grow.empty());
  EXPECT_EQ(cluster.conditions("r"), kNotFound);
}

TEST(ProvisioningRequest, WhatIsThereCountsBeforeNodesAreAdded) {
  Requested cluster;
  cluster.set("a", {.cpu = "8"});
  cluster.node("n1", "8");
  cluster.pod_template("t", "3");
  cluster.request("fits", kAtomic, "[{count: 2, podTemplateRef: {name: t}}]");
  EXPECT_TRUE(cluster.pass().grow.empty());
  EXPECT_EQ(cluster.conditions("fits"), kFound);
  cluster.request("more", kAtomic, "[{count: 2, podTemplateRef: {name: t}}]");
  cluster.now += 10s;
  EXPECT_EQ(grown(cluster.pass()), "[{MachineSet/m/a 0->1 (max: 10)}]");
}

TEST(ProvisioningRequest, PodsAndARequestThatBothWantNodesTakeTurns) {
  Requested cluster;
  cluster.set("a", {.cpu = "8"});
  cluster.pod_template("t", "8");
  cluster.pod("p", {.cpu = "7"});
  cluster.request("r", kAtomic, "[{count: 2, podTemplateRef: {name: t}}]");
  EXPECT_EQ(grown(cluster.pass()), "[{MachineSet/m/a 0->1 (max: 10)}]");
  EXPECT_EQ(cluster.conditions("r"), "");
  // Nothing came of it: the pod still waits, and the request has its turn.
  cluster.now += 10s;
  EXPECT_EQ(grown(cluster.pass()), "[{MachineSet/m/a 0->2 (max: 10)}]");
  EXPECT_EQ(cluster.conditions("r"), kProvisioned);
}

TEST(ProvisioningRequest, PodsThatTakeItsRoomAddNoNode) {
  Requested cluster;
  cluster.set("a", {.cpu = "8"});
  for (const char* key : {"autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io"})
    cluster.pod(std::string("p-") + key, {.extra_metadata = fmt::format(", annotations: {{{}/consume-provisioning-request: r}}", key)});
  const Actions actions = cluster.pass();
  EXPECT_TRUE(actions.grow.empty());
  EXPECT_EQ(message_for(actions, "p-autoscaling.x-k8s.io"),
            "NotTriggerScaleUp: Unschedulable pod didn't trigger scale-up, because it's consuming ProvisioningRequest default/r, which is "
            "not there");
}

TEST(ProvisioningRequest, WhatItsPodsHaveTakenIsNotBookedTwice) {
  Requested cluster;
  cluster.node("n1", "8");
  cluster.pod_template("t", "2");
  cluster.request("r", kCheck, "[{count: 2, podTemplateRef: {name: t}}]");
  cluster.pass();
  for (const char* name : {"c0", "c1"})
    cluster.pod(name,
                {.cpu = "2", .node = "n1", .extra_metadata = ", annotations: {autoscaling.x-k8s.io/consume-provisioning-request: r}"});
  cluster.request("other", kCheck, "[{count: 2, podTemplateRef: {name: t}}]");
  cluster.now += 10s;
  cluster.pass();
  EXPECT_EQ(cluster.conditions("other"), kFound);
}

TEST(ProvisioningRequest, ItsRoomKeepsNodesUntilTheBookingEnds) {
  Requested cluster;
  cluster.options = options_of("{scaleDown: {enabled: true, unneededTime: 1m, delayAfterAdd: 0s}}");
  cluster.set("a", {.replicas = 1, .cpu = "8"});
  cluster.machine("a", "m0");
  cluster.pod_template("t", "2");
  cluster.request("r", kCheck, "[{count: 2, podTemplateRef: {name: t}}]");
  const TimePoint start = cluster.now;
  std::optional<TimePoint> removed;
  for (; cluster.now < start + 15min && !removed; cluster.now += 10s)
    if (!cluster.pass().remove.empty()) removed = cluster.now;
  ASSERT_TRUE(removed);
  // Ten minutes of booking, and a minute of not being needed after that.
  EXPECT_EQ(std::chrono::duration_cast<std::chrono::seconds>(*removed - start).count(), 680);
}

TEST(ProvisioningRequest, RoomThatIsGoneForAMinuteIsRevoked) {
  Requested cluster;
  cluster.node("n1", "8");
  cluster.pod_template("t", "2");
  cluster.request("r", kCheck, "[{count: 2, podTemplateRef: {name: t}}]");
  cluster.pass();
  cluster.cache.remove("Node", "", "n1");
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(cluster.conditions("r"), kFound) << i;
    cluster.now += 10s;
    cluster.pass();
  }
  EXPECT_EQ(cluster.conditions("r"), std::string(kFound) + ", CapacityRevoked=True CapacityIsNotFound");
}

TEST(ProvisioningRequest, AMissingTemplateFailsItAtTheSecondLook) {
  Requested cluster;
  cluster.request("r", kCheck, "[{count: 1, podTemplateRef: {name: t}}]");
  cluster.pass();
  EXPECT_EQ(cluster.conditions("r"), "");
  cluster.pass();
  EXPECT_EQ(cluster.conditions("r"), "Failed=True FailedToCreatePods");
  EXPECT_EQ(cluster.message("r", "Failed"), "missing pod templates, 1 pod templates were referenced, 1 templates were missing: t");
}

TEST(ProvisioningRequest, ATemplateThatComesAfterItIsNoFault) {
  Requested cluster;
  cluster.node("n1", "8");
  cluster.request("r", kCheck, "[{count: 1, podTemplateRef: {name: t}}]");
  cluster.pass();
  cluster.pod_template("t", "1");
  cluster.pass();
  EXPECT_EQ(cluster.conditions("r"), kFound);
}

TEST(ProvisioningRequest, ItsTimeEndsAfterAWeekOrAsItSays) {
  Requested cluster;
  cluster.pod_template("t", "2");
  cluster.request("week", kCheck, "[{count: 1, podTemplateRef: {name: t}}]");
  cluster.request("hour", kAtomic, "[{count: 1, podTemplateRef: {name: t}}]", "{ValidUntilSeconds: '3600'}");
  cluster.pass();
  cluster.now += 1h + 1s;
  cluster.pass();
  EXPECT_EQ(cluster.conditions("hour"), std::string(kNotFound) + ", Failed=True Expired");
  EXPECT_EQ(cluster.message("hour", "Failed"), "ProvisioningRequest is expired");
  cluster.now += 24h * 7;
  cluster.pass();
  EXPECT_EQ(cluster.conditions("week"), std::string(kNotFound) + ", Failed=True Expired");
  EXPECT_EQ(cluster.deleted, std::vector<std::string>{});
  cluster.now += 24h * 7 + 1s;
  cluster.pass();
  EXPECT_EQ(cluster.deleted, (std::vector<std::string>{"hour", "week"}));
}

TEST(ProvisioningRequest, WordsThatAreNoneAreToldAndHurtNobody) {
  Requested cluster;
  cluster.node("n1", "8");
  cluster.pod_template("t", "2");
  cluster.request("typo", "check-capacity.autoscaling.k8s.io", "[{count: 1, podTemplateRef: {name: t}}]");
  cluster.request("odd", kCheck, "[{count: 1, podTemplateRef: {name: t}}]", "{noRetry: 'yes', ValidUntilSeconds: soon}");
  cluster.request("huge", kCheck, "[{count: 2147483647, podTemplateRef: {name: t}}]");
  const Actions actions = cluster.pass();
  EXPECT_EQ(cluster.conditions("typo"), "");
  EXPECT_EQ(cluster.conditions("odd"), kFound);
  EXPECT_EQ(cluster.conditions("huge"), "Failed=True FailedToCreatePods");
  const std::string problems = fmt::format("{}", fmt::join(actions.status.problems, "\n"));
  EXPECT_NE(problems.find("default/typo: provisioningClassName \"check-capacity.autoscaling.k8s.io\" is none that is known here"),
            std::string::npos)
      << problems;
  EXPECT_NE(problems.find("default/odd: parameter noRetry: \"yes\" has no effect"), std::string::npos) << problems;
  EXPECT_NE(problems.find("default/odd: parameter ValidUntilSeconds: \"soon\" has no effect"), std::string::npos) << problems;
}

TEST(ProvisioningRequest, AnInstanceOfItsOwnTakesThoseThatNameIt) {
  Requested cluster;
  cluster.node("n1", "8");
  cluster.pod_template("t", "2");
  cluster.request("mine", kCheck, "[{count: 1, podTemplateRef: {name: t}}]", "{processorInstance: second}");
  cluster.request("other", kCheck, "[{count: 1, podTemplateRef: {name: t}}]");
  cluster.options.check_capacity_processor_instance = "second";
  cluster.pass();
  EXPECT_EQ(cluster.conditions("mine"), kFound);
  EXPECT_EQ(cluster.conditions("other"), "");
}

}  // namespace
}  // namespace berth::autoscaler::testing
