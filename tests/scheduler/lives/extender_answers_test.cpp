// Extenders of every make, and what they answer: sense, nonsense and nothing. Each question and what comes of it is recorded.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scheduler/extender.h"
#include "tests/support/long_life.h"

namespace berth::scheduler::lives {
namespace {

using placement::Candidate;
using placement::Decision;

class Conversations {
 public:
  explicit Conversations(testing::LongLife& life)
      : life_(life), framework_(*placement::Framework::create(placement::default_profile(placement::Era::k136))) {
    for (const char* name : kNodes)
      cluster_.upsert(json::Value{
          {"kind", "Node"}, {"metadata", {{"name", name}}}, {"status", {{"allocatable", {{"cpu", "4"}, {"pods", "10"}, {"x/gpu", "9"}}}}}});
    for (int i = 0; i < 8; ++i)
      cluster_.upsert(json::Value{{"kind", "Pod"},
                                  {"metadata", {{"name", fmt::format("p{}", i)}, {"namespace", "d"}, {"uid", fmt::format("u{}", i)}}},
                                  {"spec", {{"nodeName", kNodes[i % 4]}, {"priority", i}, {"containers", json::Array{{{"name", "c"}}}}}}});
  }

  void converse() {
    configs_.clear();
    for (int i = 1 + life_.dice.below(3); i > 0; --i) configs_.push_back(some_extender());
    const Extenders extenders(configs_, [this](std::size_t which, const std::string& verb, const std::string& body) {
      life_.tell(fmt::format("  {} {}: {}", which, verb, body));
      const auto answer = answer_to(which, verb, *json::parse(body));
      life_.tell("    " + (answer ? *answer : answer.error().message));
      return answer;
    });
    const json::Value document = some_pod();
    const auto pod =
        placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document)), placement::Era::k136);
    life_.tell(fmt::format("{}: interested {}, preempt {}, bind {}", json::serialize(json::get_array(document, {"spec", "containers"})[0]),
                           extenders.are_interested(pod->view()), extenders.preempt_for(pod->view()), extenders.bind_for(pod->view())));
    choose(extenders, *pod, document);
    preempt(extenders, *pod, document);
    const auto bound = extenders.bind(pod->view(), "b");
    life_.tell(fmt::format("  bound: {}", bound ? *bound ? "yes" : "not by them" : bound.error().message));
  }

 private:
  static constexpr std::array<const char*, 4> kNodes = {"a", "b", "c", "d"};

  config::Extender some_extender() {
    config::Extender out;
    out.url_prefix = fmt::format("http://x{}/", configs_.size());
    if (life_.dice.chance(80)) out.filter_verb = "filter";
    if (life_.dice.chance(70)) out.prioritize_verb = "rank";
    if (life_.dice.chance(60)) out.preempt_verb = "preempt";
    if (life_.dice.chance(50)) out.bind_verb = "bind";
    out.weight = 1 + life_.dice.below(3);
    out.node_cache_capable = life_.dice.chance(50);
    out.ignorable = life_.dice.chance(40);
    if (life_.dice.chance(60)) out.managed_resources = {{life_.dice.chance(60) ? "x/gpu" : "x/nic", false}};
    life_.tell(fmt::format("== {} {} {} {} {} weight {}{}{}{}", out.url_prefix, out.filter_verb, out.prioritize_verb, out.preempt_verb,
                           out.bind_verb, out.weight, out.node_cache_capable ? ", knows nodes" : "", out.ignorable ? ", ignorable" : "",
                           out.managed_resources.empty() ? "" : ", of " + out.managed_resources[0].name));
    return out;
  }
  json::Value some_pod() {
    json::Value container{{"name", "c"}};
    if (life_.dice.chance(60))
      json::set(container, {"resources", life_.dice.chance(50) ? "limits" : "requests"},
                json::Object{{life_.dice.chance(50) ? "x/gpu" : "x/nic", "1"}});
    return {{"kind", "Pod"},
            {"metadata", {{"name", "p"}, {"namespace", "d"}, {"uid", "u"}}},
            {"spec",
             {{life_.dice.chance(80) ? "containers" : "initContainers", json::Array{container}}, {"containers", json::Array{container}}}}};
  }

  Result<std::string> answer_to(std::size_t which, const std::string& verb, const json::Value& asked) {
    const int luck = life_.dice.below(100);
    if (luck < 6) return fail(ErrorCode::kUnavailable, fmt::format("{} is away", which));
    static constexpr std::array<const char*, 8> kNonsense = {"", "  ", "<html>", "[]", "\"x\"", "true", "7", "{\"a\":"};
    if (luck < 14) return std::string(life_.dice.of(kNonsense));
    if (verb == "bind") return std::string(luck < 40 ? R"({"Error":"not now"})" : luck < 50 ? R"({"Error":""})" : "{}");
    if (verb == "rank") return json::serialize(json::Value(some_scores(asked)));
    return json::serialize(verb == "filter" ? some_filter(asked, luck) : some_victims(asked));
  }
  static std::vector<std::string> nodes_in(const json::Value& asked) {
    std::vector<std::string> out;
    for (const json::Value& one : json::get_array(asked, {"NodeNames"})) out.emplace_back(json::as_view(one));
    for (const json::Value& one : json::get_array(asked, {"Nodes", "items"})) out.emplace_back(json::get_string(one, {"metadata", "name"}));
    return out;
  }
  json::Array some_scores(const json::Value& asked) {
    json::Array out;
    for (const std::string& name : nodes_in(asked)) {
      if (life_.dice.chance(15)) continue;
      const std::int64_t score = life_.dice.of(std::vector<std::int64_t>{0, 1, 5, 10, 10, 11, -3, INT64_MAX / 2, INT64_MIN});
      out.push_back(json::Object{{"Host", life_.dice.chance(95) ? name : "nowhere"}, {"Score", score}});
    }
    return out;
  }
  json::Value some_filter(const json::Value& asked, int luck) {
    if (luck < 20) return json::Object{{"Error", "out of order"}};
    json::Array names, items;
    json::Object failed, hopeless;
    for (const std::string& name : nodes_in(asked)) {
      const int what = life_.dice.below(10);
      if (what < 6) {
        names.push_back(json::Value(name));
        items.push_back(json::Object{{"metadata", json::Object{{"name", name}}}});
      }
      if (what > 4 && what < 9) failed[name] = life_.dice.chance(80) ? "busy" : "";
      if (what > 7) hopeless[name] = "broken";
    }
    if (luck > 96) names.push_back("nowhere");
    json::Object out;
    if (life_.dice.chance(70))
      out["NodeNames"] = std::move(names);
    else
      out["Nodes"] = json::Object{{"items", std::move(items)}};
    if (life_.dice.chance(80)) out["FailedNodes"] = std::move(failed);
    if (life_.dice.chance(80)) out["FailedAndUnresolvableNodes"] = std::move(hopeless);
    return out;
  }
  json::Value some_victims(const json::Value& asked) {
    json::Object nodes;
    for (const char* key : {"NodeNameToMetaVictims", "NodeNameToVictims"})
      for (const auto& [name, victims] : json::get_object(asked, {key})) {
        if (life_.dice.chance(25)) continue;
        json::Array pods;
        for (const json::Value& one : json::get_array(victims, {"Pods"})) {
          auto uid = json::get_string(one, {"UID"});
          if (uid.empty()) uid = json::get_string(one, {"metadata", "uid"});
          if (!life_.dice.chance(20)) pods.push_back(json::Object{{"UID", life_.dice.chance(97) ? uid : "nobody"}});
        }
        nodes[life_.dice.chance(97) ? std::string(name) : "nowhere"] =
            json::Object{{"Pods", std::move(pods)}, {"NumPDBViolations", life_.dice.below(4) - 1}};
      }
    json::Object out;
    if (life_.dice.chance(95)) out["NodeNameToMetaVictims"] = std::move(nodes);
    return out;
  }

  void choose(const Extenders& extenders, const placement::PodInfo& pod, const json::Value& document) {
    auto evaluation = placement::evaluate(*framework_, cluster_, pod);
    const Decision decision = extenders.choose(cluster_, pod, document, evaluation, [](const std::string& name) {
      return json::Value{{"metadata", {{"name", name}}}};
    });
    if (decision.outcome == Decision::Outcome::kScheduled)
      return life_.tell(fmt::format("  -> {} with {}, {} feasible, {} tied", decision.node_name, decision.score, decision.feasible_nodes,
                                    decision.tied_nodes));
    if (decision.outcome == Decision::Outcome::kError) return life_.tell("  -> error: " + decision.error);
    life_.tell(fmt::format("  -> {}, {} resolvable, by [{}]", placement::fit_error_message(*decision.diagnosis, placement::Era::k136, ""),
                           decision.diagnosis->resolvable_nodes, fmt::join(decision.diagnosis->plugins, " ")));
    for (const auto& one : evaluation.rejected)
      life_.tell(fmt::format("  {}: {} {}", cluster_.node(one.node)->name, placement::code_name(one.status.code), one.status.message()));
  }
  void preempt(const Extenders& extenders, const placement::PodInfo& pod, const json::Value& document) {
    std::vector<Candidate> candidates;
    for (const placement::NodeInfo* node : cluster_.nodes())
      if (life_.dice.chance(60)) candidates.push_back({node->index, node->pods, static_cast<std::size_t>(life_.dice.below(2))});
    const Extenders::Documents documents{[](const placement::PodInfo& one) {
                                           return json::Value{{"metadata", {{"uid", one.view().meta.uid}}}};
                                         },
                                         [](const std::string& name) {
                                           return json::Value{{"metadata", {{"name", name}}}};
                                         }};
    const auto left = extenders.process_preemption(cluster_, pod, document, candidates, documents);
    if (!left) return life_.tell("  victims: " + left.error().message);
    for (const Candidate& one : *left) {
      std::vector<std::string> uids;
      for (const auto& victim : one.victims) uids.push_back(victim->view().meta.uid);
      life_.tell(
          fmt::format("  victims on {}: {}, {} budgets", cluster_.node(one.node)->name, fmt::join(uids, " "), one.budget_violations));
    }
  }

  testing::LongLife& life_;
  placement::Cluster cluster_;
  placement::FrameworkPtr framework_;
  std::vector<config::Extender> configs_;
};

TEST(ExtenderLives, AnswersAreAsRecorded) {
  testing::LongLife life("tests/scheduler/lives/extender_answers.txt", 10, 16'000);
  Conversations conversations(life);
  for (int i = 0; i < 400; ++i) conversations.converse();
  life.expect_as_recorded();
}

}  // namespace
}  // namespace berth::scheduler::lives
