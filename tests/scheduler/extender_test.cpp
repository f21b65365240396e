// HTTP extenders: what they are asked, and what their answers change.
#include "scheduler/extender.h"

#include <gtest/gtest.h>

#include "net/server.h"

namespace berth::scheduler {
namespace {

using placement::Decision;

class Extended : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "c"})
      cluster_.upsert(json::Value{{"kind", "Node"},
                                  {"metadata", {{"name", name}}},
                                  {"status", {{"allocatable", {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "10"}}}}}});
    framework_ = *placement::Framework::create(placement::default_profile(placement::Era::k136));
    pod_ = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document_)), placement::Era::k136);
  }
  Decision choose(const Extenders& extenders) {
    evaluation_ = placement::evaluate(*framework_, cluster_, *pod_);
    return extenders.choose(cluster_, *pod_, document_, evaluation_, [](const std::string& name) {
      return json::Value{{"metadata", {{"name", name}}}};
    });
  }
  static config::Extender extender() {
    config::Extender out;
    out.url_prefix = "http://x";
    out.filter_verb = "filter";
    out.node_cache_capable = true;
    return out;
  }

  json::Value document_ = {{"kind", "Pod"},
                           {"metadata", {{"name", "p"}, {"namespace", "default"}, {"uid", "u"}}},
                           {"spec", {{"containers", json::Array{{{"name", "c"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}}}}}};
  placement::Cluster cluster_;
  placement::FrameworkPtr framework_;
  placement::PodInfoPtr pod_;
  placement::Evaluation evaluation_;
};

TEST_F(Extended, FilterNarrowsAndPrioritizeDecides) {
  auto config = extender();
  config.prioritize_verb = "rank";
  config.weight = 2;
  std::vector<std::string> bodies;
  const Extenders extenders({config}, [&](std::size_t, const std::string& verb, const std::string& body) -> Result<std::string> {
    bodies.push_back(body);
    if (verb == "filter") return std::string(R"({"NodeNames":["b","c"],"FailedNodes":{"a":"too old"}})");
    return std::string(R"([{"Host":"b","Score":1},{"Host":"c","Score":10}])");
  });
  const auto decision = choose(extenders);
  EXPECT_EQ(decision.outcome, Decision::Outcome::kScheduled);
  EXPECT_EQ(decision.node_name, "c");
  ASSERT_EQ(bodies.size(), 2u);
  EXPECT_NE(bodies[0].find(R"("NodeNames":["a","b","c"])"), std::string::npos) << bodies[0];
  EXPECT_NE(bodies[1].find(R"("NodeNames":["b","c"])"), std::string::npos) << bodies[1];
}

TEST_F(Extended, OneNodeAloneIsNotScored) {
  auto config = extender();
  config.prioritize_verb = "rank";
  config.weight = 2;
  std::vector<std::string> verbs;
  const Extenders extenders({config}, [&](std::size_t, const std::string& verb, const std::string&) -> Result<std::string> {
    verbs.push_back(verb);
    return std::string(R"({"NodeNames":["b"]})");
  });
  EXPECT_EQ(choose(extenders).node_name, "b");
  EXPECT_EQ(verbs, std::vector<std::string>{"filter"});
}

TEST_F(Extended, ScoresBeyondTenCountAsTheyAre) {
  auto config = extender();
  config.filter_verb.clear();
  config.prioritize_verb = "rank";
  config.weight = 1;
  const Extenders extenders({config}, [](std::size_t, const std::string&, const std::string&) -> Result<std::string> {
    return std::string(R"([{"Host":"a","Score":10},{"Host":"b","Score":-3},{"Host":"c","Score":11}])");
  });
  EXPECT_EQ(choose(extenders).node_name, "c");
}

TEST_F(Extended, RefusedEverywhereCountsItsReasons) {
  const Extenders extenders({extender()}, [](std::size_t, const std::string&, const std::string&) -> Result<std::string> {
    return std::string(R"({"NodeNames":[],"FailedNodes":{"a":"too old","b":"too old","c":"too new"}})");
  });
  const auto decision = choose(extenders);
  EXPECT_EQ(decision.outcome, Decision::Outcome::kUnschedulable);
  EXPECT_EQ(placement::fit_error_message(*decision.diagnosis, placement::Era::k136, ""), "0/3 nodes are available: 1 too new, 2 too old.");
}

TEST_F(Extended, AFailureIsAnErrorUnlessIgnorable) {
  const auto broken = [](std::size_t, const std::string&, const std::string&) -> Result<std::string> {
    return fail(ErrorCode::kUnavailable, "down");
  };
  auto config = extender();
  EXPECT_EQ(choose(Extenders({config}, broken)).outcome, Decision::Outcome::kError);
  config.ignorable = true;
  EXPECT_EQ(choose(Extenders({config}, broken)).outcome, Decision::Outcome::kScheduled);
  const auto garbage = [](std::size_t, const std::string&, const std::string&) -> Result<std::string> {
    return std::string(R"({"NodeNames":["elsewhere"]})");
  };
  EXPECT_EQ(choose(Extenders({extender()}, garbage)).outcome, Decision::Outcome::kError);
}

TEST_F(Extended, AnAnswerThatIsNoneIsToldInTheWordsOfADecoder) {
  const auto error = [&](const std::string& body) {
    return choose(Extenders({extender()}, [&](std::size_t, const std::string&, const std::string&) -> Result<std::string> { return body; }))
        .error;
  };
  const auto cannot = [](const std::string& what) {
    return "json: cannot unmarshal " + what + " into Go value of type v1.ExtenderFilterResult";
  };
  EXPECT_EQ(error("\"word\""), cannot("string"));
  EXPECT_EQ(error("[]"), cannot("array"));
  EXPECT_EQ(error("true"), cannot("bool"));
  EXPECT_EQ(error(" 7"), cannot("number"));
  EXPECT_EQ(error(" \n"), "EOF");
  EXPECT_EQ(error("<html>"), "invalid character '<' looking for beginning of value");
  EXPECT_EQ(error(R"({"Error":"not today"})"), "not today");
  EXPECT_EQ(error(R"({"NodeNames":["a","elsewhere"]})"),
            "extender \"http://x\" claims a filtered node \"elsewhere\" which is not found in the input node list");
}

TEST_F(Extended, TheDecisionNamesItsNodeItsScoreAndHowManyWereAsGood) {
  auto config = extender();
  config.prioritize_verb = "rank";
  config.weight = 1;
  const auto with = [&](const std::string& ranks) {
    return choose(Extenders({config}, [&](std::size_t, const std::string& verb, const std::string&) -> Result<std::string> {
      return verb == "filter" ? R"({"NodeNames":["b","c"]})" : ranks;
    }));
  };
  const auto alike = with(R"([{"Host":"b","Score":2},{"Host":"c","Score":2}])");
  EXPECT_EQ(alike.node, cluster_.find_node("b")->index);
  EXPECT_EQ(alike.tied_nodes, 2U);
  EXPECT_EQ(alike.feasible_nodes, 2U);
  const auto one = with(R"([{"Host":"b","Score":2},{"Host":"c","Score":3}])");
  EXPECT_EQ(one.node, cluster_.find_node("c")->index);
  EXPECT_EQ(one.tied_nodes, 1U);
  EXPECT_EQ(one.score, alike.score + 10);
  EXPECT_EQ(with("no ranks").node, cluster_.find_node("b")->index) << "advice alone";
  EXPECT_EQ(with(R"([{"Host":"c","Score":922337203685477581}])").node, cluster_.find_node("b")->index) << "beyond all numbers: not counted";
}

TEST_F(Extended, WholeNodesAreSentToOneWithoutACache) {
  auto config = extender();
  config.node_cache_capable = false;
  std::string sent;
  const Extenders extenders({config}, [&](std::size_t, const std::string&, const std::string& body) -> Result<std::string> {
    sent = body;
    return std::string(R"({"Nodes":{"items":[{"metadata":{"name":"c"}}]},"FailedAndUnresolvableNodes":{"a":"never"}})");
  });
  EXPECT_EQ(choose(extenders).node_name, "c");
  EXPECT_NE(sent.find(R"("NodeNames":null)"), std::string::npos) << sent;
  EXPECT_NE(sent.find(R"("items":[{"metadata":{"name":"a"}})"), std::string::npos) << sent;
}

TEST_F(Extended, WhatWasRefusedForGoodIsNoCandidateOfPreemption) {
  const Extenders extenders({extender()}, [](std::size_t, const std::string&, const std::string&) -> Result<std::string> {
    return std::string(R"({"NodeNames":[],"FailedNodes":{"a":"full","b":"full"},"FailedAndUnresolvableNodes":{"b":"broken"}})");
  });
  const auto decision = choose(extenders);
  EXPECT_EQ(placement::fit_error_message(*decision.diagnosis, placement::Era::k136, ""),
            "0/3 nodes are available: 1 broken, 1 full, 1 node(s) were refused by the extender http://x.");
  EXPECT_EQ(decision.diagnosis->resolvable_nodes, 2U);
  EXPECT_TRUE(decision.diagnosis->plugins.empty()) << "any event may help";
  EXPECT_TRUE(evaluation_.feasible.empty());
  EXPECT_EQ(evaluation_.rejected.size(), 3U);
}

TEST_F(Extended, AnUncheckedServerHasNoAuthorities) {
  auto config = extender();
  config.insecure_skip_verify = true;
  EXPECT_TRUE(Extenders::create({config}));
  const std::string words = "extender http://x: specifying a root certificates file with the insecure flag is not allowed";
  config.ca_file = "/ca.pem";
  EXPECT_EQ(Extenders::create({config}).error().message, words);
  config.ca_file.clear();
  config.ca_data = "pem";
  EXPECT_EQ(Extenders::create({config}).error().message, words);
  config.insecure_skip_verify = false;
  config.ca_data.clear();
  config.ca_file = "/nowhere/ca.pem";
  EXPECT_EQ(Extenders::create({config}).error().message, "/nowhere/ca.pem: cannot be read");
}

TEST_F(Extended, ManagedResourcesLimitItsInterest) {
  auto config = extender();
  config.managed_resources = {{"example.com/gpu", false}};
  config.bind_verb = "bind";
  const Extenders extenders({config},
                            [](std::size_t, const std::string&, const std::string&) -> Result<std::string> { return std::string("{}"); });
  EXPECT_FALSE(extenders.are_interested(pod_->view()));
  EXPECT_FALSE(extenders.bind_for(pod_->view()));
  model::PodView gpu = pod_->view();
  gpu.containers.change_at(0, [&](auto& one) { one.limits = {{"example.com/gpu", model::Quantity::from_value(1)}}; });
  EXPECT_TRUE(extenders.are_interested(gpu));
  EXPECT_TRUE(extenders.bind_for(gpu));
}

TEST_F(Extended, AnUnreachableExtenderIsNamed) {
  auto config = extender();
  config.url_prefix = "http://127.0.0.1:1/prefix";
  config.http_timeout_ms = 2000;
  const auto extenders = Extenders::create({config});
  ASSERT_TRUE(extenders) << extenders.error().message;
  const auto decision = choose(**extenders);
  EXPECT_EQ(decision.outcome, Decision::Outcome::kError);
  EXPECT_EQ(decision.error, "Post \"http://127.0.0.1:1/prefix/filter\": dial tcp 127.0.0.1:1: connect: connection refused");
}

using Answers = std::map<std::string, std::string>;

/// A local extender: notes what it is asked and answers by verb.
class LocalExtender : public net::Handler {
 public:
  explicit LocalExtender(Answers answers) : answers_(std::move(answers)) {
    auto started = net::Server::start({}, *this);
    EXPECT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    net::HttpResponse response;
    {
      const std::lock_guard lock(mutex_);
      asked_.emplace_back(request.path, request.body);
    }
    const auto found = answers_.find(request.path);
    response.status = found == answers_.end() ? 500 : 200;
    response.body = found == answers_.end() ? "no" : found->second;
    writer->respond(std::move(response));
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/ext", server_->port()); }
  std::vector<std::pair<std::string, std::string>> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::map<std::string, std::string> answers_;
  std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> asked_;
  std::unique_ptr<net::Server> server_;
};

TEST_F(Extended, AnAnswerWithoutEndIsNotReadWhole) {
  LocalExtender local({{"/ext/filter", R"({"NodeNames":["b"]})" + std::string(std::size_t{17} << 20, ' ')}});
  auto config = extender();
  config.url_prefix = local.url();
  config.http_timeout_ms = 20'000;
  const auto extenders = Extenders::create({config});
  ASSERT_TRUE(extenders) << extenders.error().message;
  EXPECT_EQ(choose(**extenders).outcome, Decision::Outcome::kError);
}

/// Two full nodes: "one" with the low pods l1 and l2, "two" with l3.
class ExtendedPreemption : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"one", "two"})
      cluster_.upsert(json::Value{{"kind", "Node"},
                                  {"metadata", {{"name", name}}},
                                  {"status", {{"allocatable", {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "10"}}}}}});
    add("l1", "one", "2", 0);
    add("l2", "one", "2", 0);
    add("l3", "two", "4", 0);
    framework_ = *placement::Framework::create(placement::default_profile(placement::Era::k136));
    pod_ = info("vip", "", "3", 100);
    const auto evaluation = placement::evaluate(*framework_, cluster_, *pod_);
    candidates_ = placement::run_post_filter(framework_, cluster_, pod_, evaluation).candidates;
    ASSERT_EQ(candidates_.size(), 2u);
  }
  static placement::PodInfoPtr info(const std::string& name, const std::string& node, const std::string& cpu, int priority) {
    return placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document(name, node, cpu, priority))),
                                    placement::Era::k136);
  }
  static json::Value document(const std::string& name, const std::string& node, const std::string& cpu, int priority) {
    json::Value out = {
        {"kind", "Pod"},
        {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "uid-" + name}}},
        {"spec", {{"priority", priority}, {"containers", json::Array{{{"name", "c"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}}}}}};
    if (!node.empty()) json::set(out, {"spec", "nodeName"}, json::Value(node));
    return out;
  }
  void add(const std::string& name, const std::string& node, const std::string& cpu, int priority) {
    cluster_.upsert(document(name, node, cpu, priority));
  }

  Result<std::vector<placement::Candidate>> process(const config::Extender& config) {
    auto extenders = Extenders::create({config});
    EXPECT_TRUE(extenders) << extenders.error().message;
    return (*extenders)
        ->process_preemption(cluster_, *pod_, document("vip", "", "3", 100), candidates_,
                             {[](const placement::PodInfo& pod) {
                                return json::Value{{"metadata", {{"name", pod.view().meta.name}, {"uid", pod.view().meta.uid}}}};
                              },
                              {}});
  }
  static config::Extender preempting(const LocalExtender& extender, bool has_cache) {
    config::Extender out;
    out.url_prefix = extender.url();
    out.preempt_verb = "preempt";
    out.node_cache_capable = has_cache;
    return out;
  }

  placement::Cluster cluster_;
  placement::FrameworkPtr framework_;
  placement::PodInfoPtr pod_;
  std::vector<placement::Candidate> candidates_;
};

TEST_F(ExtendedPreemption, AnExtenderWithACacheGetsUidsAndChoosesNodesAndVictims) {
  LocalExtender extender(
      Answers{{"/ext/preempt", R"({"NodeNameToMetaVictims":{"two":{"Pods":[{"UID":"uid-l3"}],"NumPDBViolations":1}}})"}});
  const auto left = process(preempting(extender, true));
  ASSERT_TRUE(left) << left.error().message;
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(cluster_.node((*left)[0].node)->name, "two");
  EXPECT_EQ((*left)[0].victims[0]->key, "default/l3");
  EXPECT_EQ((*left)[0].budget_violations, 1u);
  const auto asked = json::parse(extender.asked().at(0).second);
  EXPECT_EQ(json::find(*asked, {"NodeNameToVictims"}), nullptr);
  EXPECT_EQ(json::get_array(*asked, {"NodeNameToMetaVictims", "one", "Pods"}).size(), 2u);
  EXPECT_EQ(json::get_string(json::get_array(*asked, {"NodeNameToMetaVictims", "two", "Pods"})[0], {"UID"}), "uid-l3");
  EXPECT_EQ(json::get_string(*asked, {"Pod", "metadata", "name"}), "vip");
}

TEST_F(ExtendedPreemption, OneWithoutGetsWholePods) {
  LocalExtender extender(Answers{{"/ext/preempt", R"({"NodeNameToMetaVictims":{"one":{"Pods":[{"UID":"uid-l1"},{"UID":"uid-l2"}]}}})"}});
  const auto left = process(preempting(extender, false));
  ASSERT_TRUE(left) << left.error().message;
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ((*left)[0].victims.size(), 2u);
  const auto asked = json::parse(extender.asked().at(0).second);
  EXPECT_EQ(json::find(*asked, {"NodeNameToMetaVictims"}), nullptr);
  EXPECT_EQ(json::get_string(json::get_array(*asked, {"NodeNameToVictims", "two", "Pods"})[0], {"metadata", "name"}), "l3");
}

TEST_F(ExtendedPreemption, NoNodeLeftMeansNoPreemption) {
  LocalExtender extender(Answers{{"/ext/preempt", R"({"NodeNameToMetaVictims":{}})"}});
  const auto left = process(preempting(extender, true));
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->empty());
}

TEST_F(ExtendedPreemption, NonsenseAndFailuresAreErrorsUnlessIgnorable) {
  for (const auto& [answer, words] :
       {std::pair{R"({"NodeNameToMetaVictims":{"one":{"Pods":[{"UID":"uid-l3"}]}}})",
                  "claims to preempt pod (UID: uid-l3) on node: one, but the pod is not found on that node"},
        {R"({"NodeNameToMetaVictims":{"one":{"Pods":[]}}})", "expected at least one victim pod on node \"one\""},
        {R"({"NodeNameToMetaVictims":{"three":{"Pods":[]}}})", "there is no node \"three\""},
        {"[]", "json: cannot unmarshal array into Go value of type v1.ExtenderPreemptionResult"},
        {"garbage", "invalid character 'g' looking for beginning of value"},
        {" ", "EOF"}}) {
    LocalExtender extender(Answers{{"/ext/preempt", answer}});
    auto config = preempting(extender, true);
    const auto left = process(config);
    ASSERT_FALSE(left) << answer;
    EXPECT_NE(left.error().message.find(words), std::string::npos) << left.error().message;
  }
  LocalExtender failing(Answers{});
  auto config = preempting(failing, true);
  const auto left = process(config);
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().message, fmt::format("failed preempt with extender at URL {}/preempt, code 500", config.url_prefix));
  config.ignorable = true;
  const auto all = process(config);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 2u) << "an ignorable extender that fails has no say";
}

TEST_F(Extended, BindsThroughTheExtenderAndFallsBackWhenItIsIgnorable) {
  LocalExtender extender(Answers{{"/ext/bind", "{}"}});
  config::Extender config;
  config.url_prefix = extender.url();
  config.bind_verb = "bind";
  auto extenders = Extenders::create({config});
  ASSERT_TRUE(extenders);
  const auto bound = (*extenders)->bind(pod_->view(), "a");
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_TRUE(*bound);
  const auto asked = json::parse(extender.asked().at(0).second);
  EXPECT_EQ(json::get_string(*asked, {"PodName"}), "p");
  EXPECT_EQ(json::get_string(*asked, {"PodUID"}), "u");
  EXPECT_EQ(json::get_string(*asked, {"Node"}), "a");
  LocalExtender refusing(Answers{{"/ext/bind", R"({"Error":"not today"})"}});
  config.url_prefix = refusing.url();
  EXPECT_FALSE((*Extenders::create({config}))->bind(pod_->view(), "a"));
  config.ignorable = true;
  const auto fallen_back = (*Extenders::create({config}))->bind(pod_->view(), "a");
  ASSERT_TRUE(fallen_back);
  EXPECT_FALSE(*fallen_back);
}

TEST_F(Extended, NodesThatOnlyAnExtenderRefusesAreCandidatesOfPreemptionUnlessUnresolvable) {
  const Extenders extenders({extender()}, [](std::size_t, const std::string&, const std::string&) -> Result<std::string> {
    return std::string(R"({"NodeNames":[],"FailedNodes":{"a":"busy"},"FailedAndUnresolvableNodes":{"b":"never","c":"never"}})");
  });
  const auto decision = choose(extenders);
  EXPECT_EQ(decision.outcome, Decision::Outcome::kUnschedulable);
  EXPECT_EQ(decision.diagnosis->resolvable_nodes, 1u);
  ASSERT_EQ(evaluation_.rejected.size(), 3u);
  EXPECT_EQ(evaluation_.rejected[0].status.code, placement::Code::kUnschedulable);
  EXPECT_EQ(evaluation_.rejected[1].status.code, placement::Code::kUnschedulableAndUnresolvable);
}

}  // namespace
}  // namespace berth::scheduler
