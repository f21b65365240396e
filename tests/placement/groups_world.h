// Small clusters and groups for tests of placement/groups.
#pragma once
#include <fmt/format.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/views/node_view.h"
#include "model/views/pod_view.h"
#include "placement/groups/group_preemption.h"

namespace berth::placement::testing {

struct PodSpec {
  std::int64_t cpu = 1;  ///< Whole processors.
  std::int64_t priority = 0;
  std::string node;            ///< Where it runs; empty: nowhere.
  std::string selects = {};    ///< Only nodes with this value of the label "kind".
  std::string apart_by = {};   ///< No two of the label "app: apart" in one domain of this key.
  std::int64_t rank = -1;      ///< Of a Job's pod; -1: none.
  std::int64_t started_s = 0;  ///< Seconds after some time; 0: not told.
  std::string label = {};      ///< Value of "app".
};

class GroupWorld {
 public:
  void node(const std::string& name, std::int64_t cpu, const std::map<std::string, std::string>& labels = {}) {
    auto out = std::make_shared<model::NodeView>();
    out->meta.name = name;
    std::vector<std::pair<std::string, std::string>> all(labels.begin(), labels.end());
    all.emplace_back("kubernetes.io/hostname", name);
    out->meta.labels = model::Labels(std::move(all));
    out->allocatable = {{"cpu", model::Quantity::from_value(cpu)},
                        {"memory", model::Quantity::from_value(64LL << 30)},
                        {"pods", model::Quantity::from_value(110)}};
    cluster.upsert_node(std::move(out));
  }

  static PodInfoPtr make(const std::string& name, const PodSpec& spec) {
    auto out = std::make_shared<model::PodView>();
    out->meta.ns = "default";
    out->meta.name = name;
    out->meta.uid = "uid-" + name;
    out->scheduler_name = "default-scheduler";
    out->node_name = spec.node;
    out->priority = spec.priority;
    std::vector<std::pair<std::string, std::string>> labels;
    if (!spec.label.empty()) labels.emplace_back("app", spec.label);
    if (!spec.apart_by.empty()) labels.emplace_back("app", "apart");
    out->meta.labels = model::Labels(std::move(labels));
    if (spec.rank >= 0) out->meta.annotations = {{"batch.kubernetes.io/job-completion-index", std::to_string(spec.rank)}};
    if (spec.started_s > 0) out->start_time = fmt::format("2026-01-01T00:{:02}:{:02}Z", spec.started_s / 60, spec.started_s % 60);
    model::ContainerView container;
    container.name = "main";
    container.requests = {{"cpu", model::Quantity::from_value(spec.cpu)}};
    out->containers.push_back(std::move(container));
    if (!spec.selects.empty()) out->node_selector = {{"kind", spec.selects}};
    if (!spec.apart_by.empty()) {
      model::PodAffinityTerm term;
      term.topology_key = spec.apart_by;
      const json::Value labels{{"app", "apart"}};
      term.selector = model::Selector::from_map(&labels);
      out->required_anti_affinity.push_back(std::move(term));
    }
    return PodInfo::make(std::move(out), Era::k136);
  }

  PodInfoPtr running(const std::string& name, const PodSpec& spec, const std::string& group = {}) {
    PodInfoPtr out = make(name, spec);
    cluster.upsert_pod(out);
    if (!group.empty()) groups.add_member("default/" + group, {out->view().meta.uid, out->key});
    return out;
  }

  Trial trial() {
    TrialOptions options;
    options.engine.tie_break = EngineOptions::TieBreak::kFirstByName;
    return {cluster, *Profiles::create({default_profile(Era::k136)}), options};
  }

  Cluster cluster{Era::k136};
  PodGroups groups;
};

inline PodGroup gang_of(std::int64_t min_count, std::vector<TopologyLevel> levels = {}, std::int64_t priority = 0) {
  PodGroup out;
  out.ns = "default";
  out.name = "gang";
  out.is_gang = true;
  out.min_count = min_count;
  for (const TopologyLevel& level : levels)
    if (level.is_required && out.topology_key.empty()) out.topology_key = level.key;
  out.has_constraints = !out.topology_key.empty();
  out.levels = std::move(levels);
  out.priority = priority;
  return out;
}

/// By member: the node's name, or "-".
inline std::vector<std::string> places(const Trial& trial, const GroupDecision& decision) {
  std::vector<std::string> out;
  for (const MemberDecision& one : decision.members)
    out.push_back(one.has_place() ? trial.cluster().node(one.decision.node)->name : std::string("-"));
  return out;
}

}  // namespace berth::placement::testing
