// Jobs that become gangs by themselves: Workload, PodGroup and pods of it, over time.
#include "controllers/job_groups.h"

#include "controllers/workloads.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

constexpr const char* kGang = "completionMode: Indexed, completions: 3, parallelism: 3";

class JobGroups : public ::testing::Test {
 protected:
  void SetUp() override { start(); }
  void start(bool makes_groups = true) {
    api.engine.add(make_job_controller({.makes_groups = makes_groups}));
    api.engine.start();
  }
  void put_job(std::string_view spec, std::string_view pod_spec = "", std::string_view status = "{}") {
    api.put(kinds().job,
            yaml(fmt::format("{{apiVersion: batch/v1, kind: Job, metadata: {{name: j, uid: job-uid}}, spec: {{{}, selector: "
                             "{{matchLabels: {{app: j}}}}, template: {{metadata: {{labels: {{app: j}}}}, spec: {{restartPolicy: "
                             "Never, containers: [{{name: c, image: i}}]{}}}}}}}, status: {}}}",
                             spec, pod_spec, status)));
    settle();
  }
  void change(const char* field, json::Value value) {
    json::Value document = api.get(kinds().job, "j");
    json::set(document, {"spec", field}, std::move(value));
    api.put(kinds().job, document);
    settle();
  }
  /// The Job's Workload is there, with a PodGroup that somebody else controls, before its first pod.
  void change_owner_of_group() {
    put_job(kGang + std::string(", suspend: true"));
    json::Value group = api.get(kinds().pod_group, kGroup);
    json::set(group, {"metadata", "ownerReferences"}, json::Array{});
    api.put(kinds().pod_group, group);
    change("suspend", false);
  }
  void settle(Duration time = seconds(2)) { loop.run_for(time); }
  /// Groups that the pods which have not ended name, each once.
  std::set<std::string> groups_of_pods() {
    std::set<std::string> out;
    for (const json::Value& pod : api.all(kinds().pod))
      out.insert(std::string(json::get_string(pod, {"spec", "schedulingGroup", "podGroupName"}, "-")));
    return out;
  }
  std::size_t pods() { return api.all(kinds().pod).size(); }
  static constexpr const char* kWorkload = "j-7dccc85c97";
  static constexpr const char* kGroup = "j-7dccc85c97-j-pgt-0-8bb8d457f";

  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
};

TEST_F(JobGroups, AGangHasAWorkloadAndAGroupAndItsPodsNameIt) {
  put_job(kGang, ", priorityClassName: high");
  const json::Value workload = api.get(kinds().workload, kWorkload);
  ASSERT_FALSE(workload.is_null());
  EXPECT_EQ(json::serialize(workload.at("spec")),
            R"({"controllerRef":{"apiGroup":"batch","kind":"Job","name":"j"},"podGroupTemplates":[{"name":"j-pgt-0","schedulingPolicy":)"
            R"({"gang":{"minCount":3}},"priorityClassName":"high"}]})");
  const auto owners = owner_references(workload);
  ASSERT_EQ(owners.size(), 1U);
  EXPECT_EQ(owners[0].uid, "job-uid");
  EXPECT_TRUE(owners[0].is_controller);

  const json::Value group = api.get(kinds().pod_group, kGroup);
  ASSERT_FALSE(group.is_null());
  EXPECT_EQ(json::serialize(group.at("spec")), fmt::format(R"({{"podGroupTemplateRef":{{"workload":{{"workloadName":"{}",)"
                                                           R"("podGroupTemplateName":"j-pgt-0"}}}},"schedulingPolicy":{{"gang":)"
                                                           R"({{"minCount":3}}}},"priorityClassName":"high"}})",
                                                           kWorkload));
  const auto both = owner_references(group);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_TRUE(both[0].kind == "Job" && both[0].is_controller);
  EXPECT_TRUE(both[1].kind == "Workload" && !both[1].is_controller && !both[1].blocks_deletion);

  EXPECT_EQ(pods(), 3U);
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{kGroup}));
  EXPECT_TRUE(api.saw(fmt::format("WorkloadCreated: Created Workload {} for Job j", kWorkload)));
}

TEST_F(JobGroups, APodThatIsReplacedIsOfTheSameGroup) {
  put_job(kGang);
  api.erase(kinds().pod, "default", std::string(json::get_string(api.all(kinds().pod).at(0), {"metadata", "name"})));
  settle(minutes(1));
  EXPECT_EQ(pods(), 3U);
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{kGroup}));
  EXPECT_EQ(api.all(kinds().workload).size(), 1U);
}

TEST_F(JobGroups, OthersAreScheduledOneByOne) {
  for (const char* spec : {"completions: 3, parallelism: 3", "completionMode: Indexed, completions: 4, parallelism: 3",
                           "completionMode: Indexed, completions: 1, parallelism: 1"}) {
    put_job(spec);
    EXPECT_EQ(groups_of_pods(), (std::set<std::string>{"-"})) << spec;
    api.erase(kinds().job, "default", "j");
    for (const json::Value& pod : api.all(kinds().pod))
      api.erase(kinds().pod, "default", std::string(json::get_string(pod, {"metadata", "name"})));
    settle();
  }
  put_job(kGang, ", schedulingGroup: {podGroupName: mine}");
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{"mine"}));
  EXPECT_TRUE(api.all(kinds().workload).empty());
}

TEST_F(JobGroups, AJobFromBeforeStaysAsItIs) {
  put_job(kGang, "", "{startTime: '2026-01-05T09:00:00Z'}");
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{"-"}));
  EXPECT_TRUE(api.all(kinds().workload).empty());
}

TEST_F(JobGroups, AJobThatWasSuspendedFromBeforeStaysAsItIs) {
  put_job(kGang, "", "{conditions: [{type: Suspended, status: 'False'}]}");
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{"-"}));
}

TEST_F(JobGroups, ASuspendedJobHasItsGroupAndItsPodsWhenItResumes) {
  put_job(fmt::format("{}, suspend: true", kGang));
  EXPECT_EQ(pods(), 0U);
  EXPECT_EQ(api.all(kinds().pod_group).size(), 1U);
  change("suspend", false);
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{kGroup}));
  change("suspend", true);
  EXPECT_EQ(pods(), 0U);
  change("suspend", false);
  EXPECT_EQ(pods(), 3U);
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{kGroup}));
  EXPECT_EQ(api.all(kinds().pod_group).size(), 1U);
}

TEST_F(JobGroups, NoPodIsMadeUntilWorkloadAndGroupAreThere) {
  std::string refused = "workloads";
  api.refuse = [&](const Write& write) -> std::optional<model::ApiStatus> {
    if (write.verb != Write::Verb::kCreate || write.kind->plural != refused) return std::nullopt;
    return model::forbidden(write.kind->group, write.kind->plural, "x", "not now");
  };
  put_job(kGang);
  EXPECT_EQ(pods(), 0U);
  ASSERT_FALSE(api.events.empty());
  EXPECT_TRUE(api.events.front().starts_with("FailedWorkloadCreate: Failed to create Workload for Job j: "));
  EXPECT_EQ(json::find(api.get(kinds().job, "j"), {"status", "startTime"}), nullptr) << "it still counts as new";
  refused = "podgroups";
  settle(minutes(1));
  EXPECT_EQ(api.all(kinds().workload).size(), 1U);
  EXPECT_EQ(pods(), 0U);
  api.refuse = nullptr;
  settle(minutes(2));
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{kGroup}));
}

TEST_F(JobGroups, AServerWithoutThemHasPodsOneByOne) {
  api.refuse = [&](const Write& write) -> std::optional<model::ApiStatus> {
    if (write.kind->plural != "workloads") return std::nullopt;
    return model::not_found(write.kind->group, write.kind->plural, "");
  };
  put_job(kGang);
  settle(seconds(5));
  EXPECT_EQ(pods(), 3U);
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{"-"}));
}

TEST_F(JobGroups, AServerThatHasThemLaterIsAskedAgain) {
  bool is_there = false;
  int asked = 0;
  api.refuse = [&](const Write& write) -> std::optional<model::ApiStatus> {
    if (write.kind->plural != "workloads") return std::nullopt;
    ++asked;
    return is_there ? std::nullopt : std::optional(model::not_found(write.kind->group, write.kind->plural, ""));
  };
  put_job(kGang + std::string(", suspend: true"));
  EXPECT_EQ(asked, 1);
  is_there = true;
  const auto again = [&](const std::string& spec) {
    api.erase(kinds().job, "default", "j");
    put_job(spec);
  };
  settle(seconds(20));
  again(kGang + std::string(", suspend: true"));
  EXPECT_EQ(asked, 1) << "not for half a minute";
  settle(seconds(15));
  again(kGang);
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{kGroup}));
}

TEST_F(JobGroups, ARestartInTheMiddleGoesOnWithWhatIsThere) {
  // As somebody left it who ended after the Workload.
  api.put(kinds().workload,
          yaml("{apiVersion: scheduling.k8s.io/v1alpha2, kind: Workload, metadata: {name: w, ownerReferences: [{apiVersion: "
               "batch/v1, kind: Job, name: j, uid: job-uid, controller: true}]}, spec: {controllerRef: {apiGroup: batch, "
               "kind: Job, name: j}, podGroupTemplates: [{name: t, schedulingPolicy: {gang: {minCount: 3}}}]}}"));
  put_job(kGang);
  EXPECT_EQ(api.all(kinds().workload).size(), 1U);
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{job::pod_group_name("w", "t")}));
}

TEST_F(JobGroups, WhatIsNotItsOwnIsLeftAlone) {
  const char* strangers =
      "{{apiVersion: scheduling.k8s.io/v1alpha2, kind: Workload, metadata: {{name: {}, ownerReferences: [{}]}}, spec: "
      "{{controllerRef: {{apiGroup: batch, kind: Job, name: j}}, podGroupTemplates: [{}]}}}}";
  const char* own = "{apiVersion: batch/v1, kind: Job, name: j, uid: job-uid, controller: true}";
  const char* one = "{name: t, schedulingPolicy: {gang: {minCount: 3}}}";
  const char* two = "{name: t, schedulingPolicy: {basic: {}}}, {name: u, schedulingPolicy: {basic: {}}}";
  using Found = std::vector<std::string>;
  for (const Found& found :
       {Found{fmt::format(fmt::runtime(strangers), "w", "", one)}, Found{fmt::format(fmt::runtime(strangers), "w", own, two)},
        Found{fmt::format(fmt::runtime(strangers), "w", own, one), fmt::format(fmt::runtime(strangers), "v", own, one)}}) {
    for (const std::string& workload : found) api.put(kinds().workload, yaml(workload));
    put_job(kGang);
    EXPECT_EQ(pods(), 3U) << found[0];
    EXPECT_EQ(groups_of_pods(), (std::set<std::string>{"-"})) << found[0];
    EXPECT_TRUE(api.all(kinds().pod_group).empty()) << found[0];
    for (const Kind kind : {kinds().job, kinds().pod, kinds().workload})
      for (const json::Value& object : api.all(kind))
        api.erase(kind, "default", std::string(json::get_string(object, {"metadata", "name"})));
    settle();
  }
}

TEST_F(JobGroups, APodGroupThatOthersMadeOfItsWorkloadIsNotItsOwn) {
  change_owner_of_group();
  settle(minutes(1));
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{"-"}));
  EXPECT_EQ(api.all(kinds().pod_group).size(), 1U) << "nor is another made beside it";
}

TEST_F(JobGroups, AWorkloadOfThatNameThatIsAnotherJobsNowIsForgotten) {
  put_job(kGang);
  json::Value workload = api.get(kinds().workload, kWorkload);
  json::set(workload, {"spec", "controllerRef", "name"}, "other");
  json::erase(workload, {"metadata", "ownerReferences"});
  api.put(kinds().workload, workload);
  api.erase(kinds().pod, "default", std::string(json::get_string(api.all(kinds().pod).at(0), {"metadata", "name"})));
  settle(minutes(1));
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{"-", kGroup})) << "none of its own, and it is no new Job: one by one from here on";
}

TEST_F(JobGroups, ANameThatIsTakenIsToldAndTriedAgain) {
  api.put(kinds().workload, yaml(fmt::format("{{apiVersion: scheduling.k8s.io/v1alpha2, kind: Workload, metadata: {{name: {}}}, spec: "
                                             "{{podGroupTemplates: []}}}}",
                                             kWorkload)));
  put_job(kGang);
  EXPECT_EQ(pods(), 0U);
  ASSERT_FALSE(api.events.empty());
  EXPECT_NE(api.events.front().find("already exists"), std::string::npos) << api.events.front();
  api.erase(kinds().workload, "default", kWorkload);
  settle(minutes(2));
  EXPECT_EQ(groups_of_pods(), (std::set<std::string>{kGroup}));
}

TEST_F(JobGroups, AGroupThatIsDeletedIsMadeAgain) {
  put_job(kGang);
  api.erase(kinds().pod_group, "default", kGroup);
  api.erase(kinds().pod, "default", std::string(json::get_string(api.all(kinds().pod).at(0), {"metadata", "name"})));
  settle(minutes(1));
  EXPECT_FALSE(api.get(kinds().pod_group, kGroup).is_null());
  EXPECT_EQ(pods(), 3U);
}

TEST_F(JobGroups, AJobThatIsDeletedMeanwhileGetsNone) {
  api.hold_back(kinds().workload);
  put_job(kGang);
  api.erase(kinds().job, "default", "j");
  api.let_go_on();
  settle(minutes(1));
  EXPECT_TRUE(api.all(kinds().pod_group).empty());
  EXPECT_EQ(pods(), 0U);
}

TEST(JobWithoutGroups, TheGateOffMakesNone) {
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
  api.engine.add(make_job_controller());
  api.engine.start();
  api.put(kinds().job,
          yaml("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {completionMode: Indexed, completions: 2, "
               "parallelism: 2, selector: {matchLabels: {app: j}}, template: {metadata: {labels: {app: j}}, spec: {containers: "
               "[{name: c, image: i}]}}}}"));
  loop.run_for(seconds(2));
  EXPECT_EQ(api.all(kinds().pod).size(), 2U);
  EXPECT_TRUE(api.all(kinds().workload).empty());
}

TEST(JobGroupNames, AreShortenedAsKubernetesDoes) {
  const std::string w200(200, 'w'), t200(200, 't'), w253(253, 'w');
  EXPECT_EQ(job::workload_name(w253, "u").size(), 253U);
  EXPECT_EQ(job::pod_group_name(w200, t200).size(), 253U);
  // Each half of what is left: 253 less the hash and two dashes.
  const std::string both = job::pod_group_name(w200, t200);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(both, 'w')), static_cast<double>(std::ranges::count(both, 't')), 12);
  EXPECT_TRUE(job::pod_group_name("wl", std::string(250, 't')).starts_with("wl-ttt"));
  EXPECT_TRUE(job::pod_group_name(w253, "t").find("w-t-") != std::string::npos);
}

TEST_F(JobGroups, AGangWithoutAClassNamesNone) {
  put_job(kGang);
  EXPECT_EQ(json::serialize(api.get(kinds().workload, kWorkload).at("spec").at("podGroupTemplates")),
            R"([{"name":"j-pgt-0","schedulingPolicy":{"gang":{"minCount":3}}}])");
  EXPECT_FALSE(api.get(kinds().pod_group, kGroup).at("spec").get_object().contains("priorityClassName"));
}

}  // namespace
}  // namespace berth::controllers
