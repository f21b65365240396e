// What is asked of the scheduler in the server's process, and what becomes of each question (SPEC I3).
#include "cli/roles/placement_pages.h"

#include <gtest/gtest.h>

#include "cli/planning/placement_question.h"
#include "client/client.h"
#include "placement/profiles.h"

namespace berth::cli {
namespace {

json::Value pod_named(const std::string& name) {
  return {{"metadata", {{"name", name}, {"namespace", "shop"}}},
          {"spec", {{"containers", json::Array{{{"name", "c"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}}}}}};
}

class Pages : public ::testing::Test {
 protected:
  net::HttpResponse send(const std::string& method, const std::string& path, const std::string& body) {
    net::HttpRequest request;
    request.method = method;
    request.path = path;
    request.body = body;
    net::HttpResponse out;
    out.status = -1;
    client::make_in_process_transport(pages_, {"admin", {"system:masters"}})->send(std::move(request), [&](net::HttpResponse response) {
      out = std::move(response);
    });
    return out;
  }
  net::HttpResponse ask(const std::string& body) { return send("POST", std::string(kQuestionPath), body); }
  std::optional<std::string> ask_as_client(const PlacementQuestion& question) {
    client::Client client(client::make_in_process_transport(pages_, {"admin", {"system:masters"}}), nullptr, "test");
    return ask_running_scheduler(client, question);
  }
  PlacementPages pages_;
};

TEST_F(Pages, WithoutASchedulerNobodyAnswersAndWhoAsksReadsTheCluster) {
  EXPECT_EQ(ask(PlacementQuestion{pod_named("a")}.body()).status, 503);
  EXPECT_EQ(ask_as_client({pod_named("a")}), std::nullopt);
}

TEST_F(Pages, AQuestionArrivesAsItWasAskedAndTheAnswerComesLater) {
  std::vector<PlacementQuestion> asked;
  pages_.set([&](PlacementQuestion question, auto done) {
    asked.push_back(std::move(question));
    done("it fits");
  });
  EXPECT_EQ(ask_as_client({pod_named("a"), "wide", true}), "it fits");
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(json::serialize(asked[0].pod), json::serialize(pod_named("a")));
  EXPECT_EQ(asked[0].output, "wide");
  EXPECT_TRUE(asked[0].budgets_are_hard);
  EXPECT_EQ(ask_as_client({pod_named("b"), "json", false}), "it fits");
  EXPECT_FALSE(asked[1].budgets_are_hard);
}

TEST_F(Pages, AGroupIsAskedAboutByItsKey) {
  PlacementQuestion asked;
  pages_.set([&](PlacementQuestion question, auto done) {
    asked = std::move(question);
    done("it waits");
  });
  EXPECT_EQ(ask_as_client({.pod = {}, .output = "json", .group = "shop/trainer"}), "it waits");
  EXPECT_EQ(asked.group, "shop/trainer");
  EXPECT_TRUE(asked.pod.is_null());
  EXPECT_EQ(asked.output, "json");
}

TEST_F(Pages, ARefusalSaysWhyAndIsNoAnswer) {
  pages_.set([](const PlacementQuestion&, auto done) {
    model::ApiStatus status;
    status.code = 404;
    status.message = "no profile of this scheduler is called other";
    done(std::unexpected(status));
  });
  const auto response = ask(PlacementQuestion{pod_named("a")}.body());
  EXPECT_EQ(response.status, 404);
  EXPECT_NE(response.body.find("no profile of this scheduler is called other"), std::string::npos) << response.body;
  EXPECT_EQ(ask_as_client({pod_named("a")}), std::nullopt);
}

TEST_F(Pages, WhoAnsweredIsNotAskedOnceItIsSaidSo) {
  int asked = 0;
  pages_.set([&](const PlacementQuestion&, auto done) {
    ++asked;
    done("yes");
  });
  EXPECT_EQ(ask(PlacementQuestion{pod_named("a")}.body()).status, 200);
  pages_.set({});
  EXPECT_EQ(ask(PlacementQuestion{pod_named("a")}.body()).status, 503);
  EXPECT_EQ(asked, 1);
}

TEST_F(Pages, WhatIsNoQuestionIsRefusedWithoutAskingAnybody) {
  pages_.set([](const PlacementQuestion&, auto) { FAIL() << "nobody is to be asked"; });
  const std::pair<const char*, const char*> wrong[] = {
      {"", ""},
      {"[]", "one of pod and podGroup is wanted"},
      {R"({"pod":{"metadata":{"name":"a"}},"podGroup":"shop/g"})", "one of pod and podGroup is wanted"},
      {"{\"pod\":{}}", "pod: a whole pod with a name is wanted"},
      {"{\"pod\":7}", "pod: a whole pod with a name is wanted"},
      {R"({"pod":{"metadata":{"name":"a"}},"output":"yaml"})", "\\\"yaml\\\" is none of"}};
  for (const auto& [body, words] : wrong) {
    const auto response = ask(body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_NE(response.body.find(words), std::string::npos) << response.body;
  }
  EXPECT_EQ(send("GET", std::string(kQuestionPath), "").status, 405);
  EXPECT_EQ(send("POST", "/debug/placement", "").status, 404);
}

TEST(PlacementQuestion, IsAnsweredOverAClusterInEachForm) {
  placement::Cluster cluster(placement::Era::k136);
  cluster.upsert(json::Value{
      {"kind", "Node"}, {"metadata", {{"name", "n1"}}}, {"status", {{"allocatable", {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "10"}}}}}});
  const auto profiles = placement::Profiles::create({placement::default_profile(placement::Era::k136)});
  const auto answer = [&](const std::string& output) {
    return answer_of({pod_named("a"), output, false}, profiles->find("default-scheduler"), cluster, "a file");
  };
  EXPECT_NE(answer("text").find("shop/a fits on 1 of 1 nodes; the best is n1"), std::string::npos) << answer("text");
  EXPECT_NE(answer("text").find("a file"), std::string::npos);
  EXPECT_EQ(json::get_string(*json::parse(answer("json")), {"configuration"}), "a file");
  EXPECT_EQ(json::find(*json::parse(answer("json")), "text"), nullptr);
  const auto page = json::parse(answer("page"));
  ASSERT_TRUE(page);
  EXPECT_EQ(json::get_string(*page, {"text"}), answer("text"));
}

TEST(PlacementQuestion, APodThatNoServerWouldHaveTakenIsAnsweredNevertheless) {
  placement::Cluster cluster(placement::Era::k136);
  cluster.upsert(
      json::Value{{"kind", "Node"}, {"metadata", {{"name", "n1"}}}, {"status", {{"allocatable", {{"cpu", "4"}, {"pods", "1"}}}}}});
  const auto profiles = placement::Profiles::create({placement::default_profile(placement::Era::k136)});
  for (
      const char* spec :
      {"7", "[]", "null", R"({"containers":{}})", R"({"containers":[7,null,{}]})", R"({"containers":[{"resources":{"requests":[]}}]})",
       R"({"containers":[{"resources":{"requests":{"cpu":"much","memory":-1,"pods":{}}}}]})", R"({"affinity":[]})",
       R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{}]}]}}}})",
       R"({"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{},7]}}})",
       R"({"topologySpreadConstraints":[{},{"maxSkew":"x","labelSelector":{"matchExpressions":[{"operator":"Perhaps"}]}}]})",
       R"({"volumes":3})", R"({"volumes":[{"persistentVolumeClaim":7}]})", R"({"priority":"x","overhead":5,"tolerations":{}})",
       R"({"resourceClaims":[{"name":7}],"schedulingGates":[{}],"nodeSelector":[1]})"}) {
    json::Value pod = pod_named("a");
    json::set(pod, {"spec"}, *json::parse(spec));
    for (const char* output : {"text", "wide", "json", "page"})
      EXPECT_NE(answer_of({pod, output, false}, profiles->find("default-scheduler"), cluster, "a file").find("shop/a"), std::string::npos)
          << spec;
  }
}

TEST(PlacementQuestion, TheVerdictThatThePodsConditionContradictsSaysSo) {
  placement::Cluster cluster(placement::Era::k136);
  cluster.upsert(json::Value{
      {"kind", "Node"}, {"metadata", {{"name", "n1"}}}, {"status", {{"allocatable", {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "10"}}}}}});
  const auto profiles = placement::Profiles::create({placement::default_profile(placement::Era::k136)});
  json::Value pod = pod_named("a");
  json::set(pod, {"status", "conditions"},
            json::Array{json::Object{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}, {"message", "0/1"}}});
  const std::string text = answer_of({pod, "text", false}, profiles->find("default-scheduler"), cluster, "a file");
  EXPECT_NE(text.find("The scheduler says otherwise: PodScheduled is False (Unschedulable)"), std::string::npos) << text;
}

}  // namespace
}  // namespace berth::cli
