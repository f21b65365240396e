#include "parity/scheduling.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "placement/trial.h"
#include "scheduler/config/config.h"

namespace berth::scheduler::parity {
namespace {

using placement::Cluster;
using placement::Era;
using placement::Evaluation;
using placement::FrameworkPtr;
using placement::PodInfoPtr;
using placement::Trial;
using Strings = std::set<std::string>;

Strings strings_of(const json::Array& items) {
  Strings out;
  for (const auto& item : items)
    if (item.is_string()) out.emplace(json::as_view(item));
  return out;
}

std::string show(const Strings& set) { return fmt::format("[{}]", fmt::join(set, "; ")); }

/// Compares one step; differences go to `out` with the step's name in front.
class StepCheck {
 public:
  StepCheck(const Cluster& cluster, std::string step, std::vector<std::string>& out)
      : cluster_(cluster), step_(std::move(step)), out_(out) {}

  template <typename T>
  void equal(std::string_view what, const T& wanted, const T& got) {
    if (wanted != got) out_.push_back(fmt::format("{}: {}: wanted {}, got {}", step_, what, text(wanted), text(got)));
  }
  void pre_filter(const json::Value* wanted, const Evaluation& got);
  void nodes(const json::Value& expect, const Evaluation& got);
  void preemption(const json::Value* wanted, const placement::PostFilterResult& got);
  [[nodiscard]] std::string name(placement::NodeIndex node) const { return cluster_.node(node)->name; }

 private:
  static std::string text(const Strings& value) { return show(value); }
  static std::string text(const std::string& value) { return "\"" + value + "\""; }
  static std::string text(std::int64_t value) { return std::to_string(value); }
  void feasible(const json::Object& wanted, const Evaluation& got);
  void rejected(const json::Object& wanted, const Evaluation& got);

  const Cluster& cluster_;
  std::string step_;
  std::vector<std::string>& out_;
};

void StepCheck::pre_filter(const json::Value* wanted, const Evaluation& got) {
  const std::string wanted_code(wanted == nullptr ? "Success" : json::get_string(*wanted, {"code"}, "Success"));
  const bool is_rejection = wanted_code != "Success";
  equal("prefilter code", wanted_code, std::string(placement::code_name(got.pre_filter.code)));
  if (is_rejection) {
    equal("prefilter plugin", std::string(json::get_string(*wanted, {"plugin"})), std::string(got.pre_filter.plugin));
    equal("prefilter reasons", strings_of(json::get_array(*wanted, {"reasons"})),
          Strings(got.pre_filter.reasons.begin(), got.pre_filter.reasons.end()));
  } else if (wanted != nullptr && json::find(*wanted, "nodes") != nullptr) {
    equal("prefilter nodes", strings_of(json::get_array(*wanted, {"nodes"})), got.pre_filter_nodes.value_or(Strings{"(all)"}));
  } else if (got.pre_filter_nodes) {
    equal("prefilter nodes", Strings{"(all)"}, *got.pre_filter_nodes);
  }
}

void StepCheck::feasible(const json::Object& wanted, const Evaluation& got) {
  Strings wanted_names, got_names;
  for (const auto& member : wanted) wanted_names.emplace(member.key());
  for (const auto& one : got.feasible) got_names.insert(name(one.node));
  equal("feasible nodes", wanted_names, got_names);
  for (const auto& one : got.feasible) {
    const std::string node = name(one.node);
    const auto* entry = wanted.if_contains(node);
    if (entry == nullptr) continue;
    std::map<std::string, std::int64_t> scores;
    for (std::size_t i = 0; i < got.scorers.size(); ++i) scores[std::string(got.scorers[i])] += one.scores[i];
    for (const auto& member : json::get_object(*entry, {"scores"})) {
      const std::string plugin(member.key());
      const auto at = scores.find(plugin);
      equal(fmt::format("node {}: plugin {}: score", node, plugin), member.value().is_int64() ? member.value().get_int64() : -1,
            at == scores.end() ? std::int64_t{0} : at->second);
      if (at != scores.end()) scores.erase(at);
    }
    // A scorer that the recording skipped must not have counted.
    for (const auto& [plugin, score] : scores) equal(fmt::format("node {}: plugin {}: score", node, plugin), std::int64_t{0}, score);
    equal(fmt::format("node {}: total", node), json::get_int(*entry, {"total"}), one.total);
  }
}

void StepCheck::rejected(const json::Object& wanted, const Evaluation& got) {
  std::set<std::string> seen;
  for (const auto& one : got.rejected) {
    const std::string node = name(one.node);
    seen.insert(node);
    const auto* entry = wanted.if_contains(node);
    if (entry == nullptr) {
      out_.push_back(fmt::format("{}: node {}: wanted not rejected, got {} by \"{}\"", step_, node,
                                 show({one.status.reasons.begin(), one.status.reasons.end()}), one.status.plugin));
      continue;
    }
    std::string plugin(one.status.plugin);
    Strings reasons(one.status.reasons.begin(), one.status.reasons.end());
    if (!one.all.empty()) {
      Strings plugins;
      for (const auto& status : one.all) {
        plugins.emplace(status.plugin);
        reasons.insert(status.reasons.begin(), status.reasons.end());
      }
      plugin = fmt::format("{}", fmt::join(plugins, ","));
    }
    equal(fmt::format("node {}: rejecting plugin", node), std::string(json::get_string(*entry, {"plugin"})), plugin);
    equal(fmt::format("node {}: plugin {}: code", node, plugin), std::string(json::get_string(*entry, {"code"})),
          std::string(placement::code_name(one.status.code)));
    equal(fmt::format("node {}: plugin {}: reasons", node, plugin), strings_of(json::get_array(*entry, {"reasons"})), reasons);
  }
  for (const auto& member : wanted) {
    if (!seen.contains(std::string(member.key())))
      out_.push_back(fmt::format("{}: node {}: plugin {}: wanted rejected with {}, got not rejected", step_, std::string_view(member.key()),
                                 json::get_string(member.value(), {"plugin"}),
                                 show(strings_of(json::get_array(member.value(), {"reasons"})))));
  }
}

void StepCheck::nodes(const json::Value& expect, const Evaluation& got) {
  feasible(json::get_object(expect, {"feasible"}), got);
  rejected(json::get_object(expect, {"rejected"}), got);
}

void StepCheck::preemption(const json::Value* wanted, const placement::PostFilterResult& got) {
  if (wanted == nullptr) {
    equal("preemption node", std::string(), got.choice() == nullptr ? std::string() : name(got.choice()->node));
    return;
  }
  const auto keys = [](const placement::Candidate& candidate) {
    Strings out;
    for (const auto& victim : candidate.victims) out.insert(victim->key);
    return out;
  };
  equal("preemption node", std::string(json::get_string(*wanted, {"node"})),
        got.choice() == nullptr ? std::string() : name(got.choice()->node));
  equal("preemption victims", strings_of(json::get_array(*wanted, {"victims"})), got.choice() == nullptr ? Strings{} : keys(*got.choice()));
  Strings tied;
  for (const auto node : got.tied) tied.insert(name(node));
  equal("preemption tied nodes", strings_of(json::get_array(*wanted, {"tied"})), tied);
  const auto& candidates = json::get_object(*wanted, {"candidates"});
  Strings wanted_names, got_names;
  for (const auto& member : candidates) wanted_names.emplace(member.key());
  for (const auto& candidate : got.candidates) {
    const std::string node = name(candidate.node);
    got_names.insert(node);
    const auto* entry = candidates.if_contains(node);
    if (entry == nullptr) continue;
    equal(fmt::format("preemption candidate {}: victims", node), strings_of(json::get_array(*entry, {"victims"})), keys(candidate));
    equal(fmt::format("preemption candidate {}: pdbViolations", node), json::get_int(*entry, {"pdbViolations"}),
          static_cast<std::int64_t>(candidate.budget_violations));
  }
  equal("preemption candidates", wanted_names, got_names);
}

class Replay {
 public:
  explicit Replay(const json::Value& file) : file_(file) {}

  std::vector<std::string> run() {
    const std::string source(json::get_string(file_, {"source"}));
    const Era era = source.find(" 1.20") != std::string::npos ? Era::k120 : Era::k136;
    config_ = config::default_config(era);
    if (const auto* document = json::find(file_, "config")) {
      auto read = config::from_json(*document, {.file = "config", .era = era});
      if (!read) return {"config: " + read.error().message};
      config_ = std::move(*read);
    }
    auto profiles = placement::Profiles::create(config_.profiles);
    if (!profiles) return {"config: " + profiles.error().message};
    Cluster cluster(era);
    for (const auto& object : json::get_array(file_, {"objects"})) cluster.upsert(object);
    // kube-scheduler does not confirm its choice. Where a terminating pod is a victim, spreading counts it gone twice, and the eviction is
    // in vain: that is its recorded decision, and not berth's.
    Trial trial(cluster, std::move(*profiles),
                {.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}, .preemption = {.confirm = false}});
    const auto& pods = json::get_array(file_, {"pods"});
    const auto& expect = json::get_array(file_, {"expect"});
    if (pods.size() != expect.size() || pods.empty()) return {"malformed: pods and expect must be lists of one length"};
    for (std::size_t i = 0; i < pods.size(); ++i) {
      auto view = std::make_shared<const model::PodView>(model::PodView::parse(pods[i]));
      step(trial, placement::PodInfo::make(std::move(view), era), expect[i],
           fmt::format("step {} {}", i, json::get_string(expect[i], {"pod"})));
    }
    return std::move(out_);
  }

 private:
  void step(Trial& trial, const PodInfoPtr& pod, const json::Value& expect, const std::string& step_name) {
    const auto* profile = config_.profile(pod->view().scheduler_name);
    if (profile == nullptr) {
      out_.push_back(fmt::format("{}: no profile for schedulerName \"{}\"", step_name, pod->view().scheduler_name));
      return;
    }
    const FrameworkPtr& framework = trial.profiles().of(*pod);
    const Cluster& cluster = trial.cluster();
    // The pod exists from its own step on: its nomination counts for others only while it waits.
    const Evaluation got = trial.evaluate(*pod);
    StepCheck check(cluster, step_name, out_);
    const Strings wanted_errors = strings_of(json::get_array(expect, {"error"}));
    check.equal("errors", wanted_errors, Strings(got.errors.begin(), got.errors.end()));
    if (!wanted_errors.empty() || !got.errors.empty()) return;
    check.pre_filter(json::find(expect, "prefilter"), got);
    check.nodes(expect, got);
    Strings tied;
    for (const auto node : got.tied) tied.insert(check.name(node));
    check.equal("tied nodes", strings_of(json::get_array(expect, {"tied"})), tied);
    check.equal("nominatedFirst", std::int64_t{json::get_bool(expect, {"nominatedFirst"})}, std::int64_t{got.nominated_first});
    const std::string wanted_choice(json::get_string(expect, {"choice"}));
    check.equal("choice", wanted_choice, got.tied.empty() ? std::string() : check.name(got.tied[0]));
    // The engine's columns decide as the plain form does, and give the same reasons.
    const placement::Decision decision = trial.decide(pod);
    check.equal("choice by columns", wanted_choice, std::string(decision.node_name));
    if (decision.diagnosis != nullptr && got.tied.empty()) {
      const Era era = framework->profile().era;
      check.equal("reasons by columns", placement::fit_error_message(got.diagnosis, era, ""),
                  placement::fit_error_message(*decision.diagnosis, era, ""));
    }
    if (got.tied.empty()) return unplaced(trial, framework, pod, got, expect, check);
    check.equal("message", std::string(json::get_string(expect, {"message"})), std::string());
    if (const auto reserved = trial.reserve(pod, got.tied[0]); !reserved)
      out_.push_back(fmt::format("{}: reserve failed: {}", step_name, reserved.error().message()));
  }

  static void unplaced(Trial& trial, const FrameworkPtr& framework, const PodInfoPtr& pod, const Evaluation& got, const json::Value& expect,
                       StepCheck& check) {
    const bool has_post_filter = !framework->profile().post_filter.empty();
    placement::PostFilterResult result;
    if (has_post_filter) result = trial.victims_for(pod, &got);
    const std::string text = result.status.message();
    check.equal("message", std::string(json::get_string(expect, {"message"})),
                placement::fit_error_message(got.diagnosis, framework->profile().era, has_post_filter ? text : ""));
    const auto* wanted = json::find(expect, "postfilter");
    if (wanted == nullptr) {
      check.equal("postfilter", std::string("none"), std::string(has_post_filter ? "ran" : "none"));
    } else {
      check.equal("postfilter code", std::string(json::get_string(*wanted, {"code"})),
                  std::string(placement::code_name(result.status.code)));
      check.equal("postfilter message", std::string(json::get_string(*wanted, {"message"})), text);
    }
    check.preemption(json::find(expect, "preemption"), result);
  }

  const json::Value& file_;
  config::SchedulerConfig config_;
  std::vector<std::string> out_;
};

}  // namespace

bool is_scheduling_vector(const json::Value& file) {
  return file.is_object() && json::find(file, "kind") == nullptr && json::find(file, "pods") != nullptr &&
         json::find(file, "expect") != nullptr;
}

std::vector<std::string> replay_scheduling(const json::Value& file) { return Replay(file).run(); }

}  // namespace berth::scheduler::parity
