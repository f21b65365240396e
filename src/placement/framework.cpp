#include "placement/framework.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/columns/topology_part.h"
#include "placement/removable_load.h"

namespace berth::placement {
namespace {

Status attributed(Status status, const Plugin& plugin) {
  if (status.plugin.empty() && !status.is_success()) status.plugin = plugin.name();
  return status;
}

/// All verdicts as one: errors first, then unresolvable, then unschedulable (1.20's PluginToStatus.Merge).
Status merge(std::vector<Status> statuses) {
  if (statuses.empty()) return Status::success();
  if (statuses.size() == 1) return std::move(statuses.front());
  Status out = statuses.front();
  out.reasons.clear();
  for (auto& status : statuses) {
    if (status.is_error() || (status.code == Code::kUnschedulableAndUnresolvable && !out.is_error())) out.code = status.code;
    for (auto& reason : status.reasons) out.reasons.push_back(std::move(reason));
  }
  return out;
}

}  // namespace

TopologyOutcome Plugin::topology_part(const TopologySetup&) const { return {.plain_only = true}; }
std::unique_ptr<RemovableLoad> Plugin::removable_load(const TopologySetup&) const { return nullptr; }

CycleState::CycleState(const CycleState& other)
    : cluster_(other.cluster_),
      data_(other.data_.size()),
      skip_filter_(other.skip_filter_),
      skip_score_(other.skip_score_),
      annotations_(other.annotations_) {
  for (std::size_t i = 0; i < data_.size(); ++i)
    if (other.data_[i] != nullptr) data_[i] = other.data_[i]->clone();
}

void CycleState::annotate(std::string key, std::string value, std::string_view plugin) {
  const auto at = std::ranges::find(annotations_, key, &PodAnnotation::key);
  if (at != annotations_.end())
    *at = {std::move(key), std::move(value), plugin};
  else
    annotations_.push_back({std::move(key), std::move(value), plugin});
}

Result<std::shared_ptr<const Framework>> Framework::create(Profile profile, std::span<const PluginRegistration> more) {
  auto out = std::shared_ptr<Framework>(new Framework(std::move(profile)));
  const Profile& p = out->profile_;
  const auto instance = [&](std::string_view name) -> Result<const Plugin*> {
    for (const auto& plugin : out->plugins_)
      if (plugin->name() == name) return plugin.get();
    const auto own = std::ranges::find(more, name, &PluginRegistration::name);
    const auto* registration = own == more.end() ? find_plugin(name) : &*own;
    if (registration == nullptr) return invalid(fmt::format("plugin \"{}\" does not exist", name));
    auto made = make_plugin(*registration, p);
    if (!made) return std::unexpected(made.error());
    (*made)->slot_ = out->plugins_.size();
    out->plugins_.push_back(std::move(*made));
    return out->plugins_.back().get();
  };
  const auto fill = [&](const std::vector<PluginUse>& uses, bool Points::*point, std::string_view point_name, auto&& add) -> Result<bool> {
    for (const auto& use : uses) {
      const auto plugin = instance(use.name);
      if (!plugin) return std::unexpected(plugin.error());
      if (!((*plugin)->points().*point)) return invalid(fmt::format("plugin \"{}\" does not extend {} plugin", use.name, point_name));
      add(*plugin, use.weight);
    }
    return true;
  };
  const auto into = [](std::vector<const Plugin*>& list) {
    return [&list](const Plugin* plugin, std::int64_t) { list.push_back(plugin); };
  };
  const auto nowhere = [](const Plugin*, std::int64_t) {};
  // The queue goes by priority and age (PrioritySort): another order would be promised and not kept.
  for (const PluginUse& use : p.queue_sort)
    if (use.name != "PrioritySort")
      return invalid(
          fmt::format("plugin \"{}\" cannot order the queue: PrioritySort is the only QueueSort plugin that there is", use.name));

  Result<bool> done = fill(p.pre_enqueue, &Points::pre_enqueue, "PreEnqueue", into(out->pre_enqueues_));
  if (done) done = fill(p.queue_sort, &Points::queue_sort, "QueueSort", nowhere);
  if (done) done = fill(p.pre_filter, &Points::pre_filter, "PreFilter", into(out->pre_filters_));
  if (done) done = fill(p.filter, &Points::filter, "Filter", into(out->filters_));
  if (done) done = fill(p.post_filter, &Points::post_filter, "PostFilter", into(out->post_filters_));
  if (done) done = fill(p.pre_score, &Points::pre_score, "PreScore", into(out->pre_scorers_));
  if (done) {
    done = fill(p.score, &Points::score, "Score", [&](const Plugin* plugin, std::int64_t weight) {
      out->scorers_.push_back({plugin, weight});
    });
  }
  if (done) done = fill(p.reserve, &Points::reserve, "Reserve", into(out->reservers_));
  if (done) done = fill(p.permit, &Points::permit, "Permit", into(out->permitters_));
  if (done) done = fill(p.pre_bind, &Points::pre_bind, "PreBind", into(out->pre_binders_));
  if (done) done = fill(p.bind, &Points::bind, "Bind", into(out->binders_));
  if (done) done = fill(p.post_bind, &Points::post_bind, "PostBind", into(out->post_binders_));
  if (!done) return std::unexpected(done.error());
  out->order_signing();
  return out;
}

void Framework::order_signing() {
  const auto stage = [](const Plugin* plugin) {
    return plugin->column_kind() == ColumnKind::kStatic ? 0 : plugin->column_kind() == ColumnKind::kVolumes ? 2 : 1;
  };
  for (const auto& plugin : plugins_) signing_.push_back(plugin.get());
  std::ranges::stable_sort(signing_, {}, stage);
  std::ranges::copy_if(signing_, std::back_inserter(signing_filters_), [&](const Plugin* plugin) {
    return std::ranges::find(filters_, plugin) != filters_.end() || std::ranges::find(pre_filters_, plugin) != pre_filters_.end() ||
           plugin->points().post_filter;
  });
}

namespace {

Signature collect(std::span<const Plugin* const> plugins, const PodInfo& pod, bool counts_scores, Onlookers* onlookers) {
  Signer signer(pod, counts_scores, onlookers);
  enum class Stage { kStatic, kColumns, kChecks } at = Stage::kStatic;
  const auto reach = [&](Stage stage, std::size_t slot) {
    if (at == Stage::kStatic && stage != Stage::kStatic) {
      signer.end_static();
      signer.priority();  // By which nominated pods count for it.
      signer.begin_plugin(slot);
      at = Stage::kColumns;
    }
    if (at == Stage::kColumns && stage == Stage::kChecks) {
      signer.begin_checks();
      at = Stage::kChecks;
    }
  };
  for (const Plugin* plugin : plugins) {
    const ColumnKind kind = plugin->column_kind();
    signer.begin_plugin(plugin->slot());
    reach(kind == ColumnKind::kStatic ? Stage::kStatic : kind == ColumnKind::kVolumes ? Stage::kChecks : Stage::kColumns, plugin->slot());
    plugin->sign(signer, pod);
  }
  signer.begin_plugin(0);
  reach(Stage::kChecks, 0);
  return std::move(signer).finish();
}

}  // namespace

Signature Framework::sign(const PodInfo& pod, Onlookers* onlookers) const { return collect(signing_, pod, true, onlookers); }

Signature Framework::sign_filters(const PodInfo& pod, Onlookers* onlookers) const {
  return collect(signing_filters_, pod, false, onlookers);
}

const Plugin* Framework::find(std::string_view name) const {
  const auto found = std::ranges::find_if(plugins_, [&](const PluginPtr& plugin) { return plugin->name() == name; });
  return found == plugins_.end() ? nullptr : found->get();
}

Status Framework::run_pre_enqueue(const model::PodView& pod, const Cluster* cluster) const {
  for (const Plugin* plugin : pre_enqueues_) {
    Status status = cluster == nullptr ? plugin->pre_enqueue(pod) : plugin->pre_enqueue_in(pod, *cluster);
    if (!status.is_success()) return attributed(std::move(status), *plugin);
  }
  return Status::success();
}

Status left_out_by(const std::vector<std::string_view>& narrowed_by) {
  return Status::unresolvable(fmt::format("node(s) didn't satisfy plugin(s) [{}]", fmt::join(narrowed_by, " ")));
}

PreFilterOutcome Framework::run_pre_filter(CycleState& state, const PodInfo& pod, std::vector<std::string_view>* narrowed_by) const {
  PreFilterOutcome out;
  std::vector<std::string_view> narrowing;
  for (const Plugin* plugin : pre_filters_) {
    PreFilterOutcome one = plugin->pre_filter(state, pod);
    if (one.status.is_skip()) {
      state.skip_filter(plugin->slot());
      continue;
    }
    if (one.status.is_rejected()) {
      out.status = attributed(std::move(one.status), *plugin);
      break;
    }
    if (!one.status.is_success()) {
      out.status = Status::error(fmt::format("running PreFilter plugin \"{}\": {}", plugin->name(), one.status.message()));
      out.status.plugin = plugin->name();
      break;
    }
    if (!one.node_names) continue;
    narrowing.push_back(plugin->name());
    if (!out.node_names) {
      out.node_names = std::move(one.node_names);
    } else {
      std::erase_if(*out.node_names, [&](const std::string& name) { return !one.node_names->contains(name); });
    }
    if (out.node_names->empty()) {
      out.status = Status::unresolvable(
          narrowing.size() == 1 ? fmt::format("node(s) didn't satisfy plugin {}", narrowing[0])
                                : fmt::format("node(s) didn't satisfy plugin(s) [{}] simultaneously", fmt::join(narrowing, " ")));
      break;
    }
  }
  if (narrowed_by != nullptr) {
    std::ranges::sort(narrowing);
    *narrowed_by = std::move(narrowing);
  }
  return out;
}

Status Framework::run_add_pod(CycleState& state, const PodInfo& pod, const PodInfo& added, const NodeInfo& node) const {
  for (const Plugin* plugin : pre_filters_) {
    if (state.filter_skipped(plugin->slot())) continue;
    Status status = plugin->add_pod(state, pod, added, node);
    if (!status.is_success()) return attributed(std::move(status), *plugin);
  }
  return Status::success();
}

Status Framework::run_remove_pod(CycleState& state, const PodInfo& pod, const PodInfo& removed, const NodeInfo& node) const {
  for (const Plugin* plugin : pre_filters_) {
    if (state.filter_skipped(plugin->slot())) continue;
    Status status = plugin->remove_pod(state, pod, removed, node);
    if (!status.is_success()) return attributed(std::move(status), *plugin);
  }
  return Status::success();
}

Status Framework::run_filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node, std::vector<Status>* all) const {
  if (profile_.always_check_all_filters) {
    auto every = run_every_filter(state, pod, node);
    if (all != nullptr) *all = every;
    return merge(std::move(every));
  }
  for (const Plugin* plugin : filters_) {
    if (state.filter_skipped(plugin->slot())) continue;
    Status status = plugin->filter(state, pod, node);
    if (status.is_success()) continue;
    status = attributed(std::move(status), *plugin);
    if (status.is_rejected()) return status;
    const std::string of_pod = profile_.era == Era::k120 ? fmt::format(" for pod \"{}\"", pod.view().name()) : "";
    status.reasons = {fmt::format("running \"{}\" filter plugin{}: {}", plugin->name(), of_pod, status.message())};
    status.code = Code::kError;
    return status;
  }
  return Status::success();
}

std::vector<Status> Framework::run_every_filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const {
  std::vector<Status> out;
  for (const Plugin* plugin : filters_) {
    if (state.filter_skipped(plugin->slot())) continue;
    Status status = plugin->filter(state, pod, node);
    if (status.is_success()) continue;
    status = attributed(std::move(status), *plugin);
    if (status.is_rejected()) {
      out.push_back(std::move(status));
      continue;
    }
    const std::string of_pod = profile_.era == Era::k120 ? fmt::format(" for pod \"{}\"", pod.view().name()) : "";
    status.reasons = {fmt::format("running \"{}\" filter plugin{}: {}", plugin->name(), of_pod, status.message())};
    status.code = Code::kError;
    return {std::move(status)};
  }
  return out;
}

Status Framework::run_filter_with_nominated(const CycleState& state, const PodInfo& pod, const NodeInfo& node,
                                            std::vector<Status>* all) const {
  const auto& nominated = state.cluster().nominated(node.index);
  std::vector<PodInfoPtr> counted;
  for (const auto& other : nominated) {
    if (other->view().priority >= pod.view().priority && other->key != pod.key) counted.push_back(other);
  }
  if (counted.empty()) return run_filter(state, pod, node, all);
  CycleState with = state.clone();
  NodeInfo crowded = node;
  for (const auto& other : counted) {
    crowded.add_pod(other);
    Status status = run_add_pod(with, pod, *other, crowded);
    if (!status.is_success()) return status;
  }
  Status status = run_filter(with, pod, crowded, all);
  // The nominated pods may never come: what needs them (affinity) must not be met by them alone.
  return status.is_success() ? run_filter(state, pod, node, all) : status;
}

Status Framework::run_pre_score(CycleState& state, const PodInfo& pod, std::span<const NodeInfo* const> feasible) const {
  state.clear_score_skips();
  for (const Plugin* plugin : pre_scorers_) {
    const Status status = plugin->pre_score(state, pod, feasible);
    if (status.is_skip()) {
      state.skip_score(plugin->slot());
    } else if (!status.is_success()) {
      Status out = Status::error(fmt::format("running PreScore plugin \"{}\": {}", plugin->name(), status.message()));
      out.plugin = plugin->name();
      return out;
    }
  }
  return Status::success();
}

Expected<std::vector<Framework::ScoreRow>, Status> Framework::run_score(const CycleState& state, const PodInfo& pod,
                                                                        std::span<const NodeInfo* const> feasible) const {
  std::vector<ScoreRow> out;
  const auto failed = [&](const Plugin& plugin, const Status& status) {
    Status error = Status::error(fmt::format("running Score plugins: plugin \"{}\" failed with: {}", plugin.name(), status.message()));
    error.plugin = plugin.name();
    return std::unexpected(std::move(error));
  };
  for (const auto& [plugin, weight] : scorers_) {
    if (state.score_skipped(plugin->slot())) continue;
    ScoreRow row{plugin->name(), std::vector<std::int64_t>(feasible.size())};
    for (std::size_t i = 0; i < feasible.size(); ++i) {
      const auto score = plugin->score(state, pod, *feasible[i]);
      if (!score) return failed(*plugin, score.error());
      row.scores[i] = *score;
    }
    const Status status = plugin->normalize(state, pod, feasible, row.scores);
    if (!status.is_success()) return failed(*plugin, status);
    for (auto& score : row.scores) score *= weight;
    out.push_back(std::move(row));
  }
  return out;
}

Status Framework::prepare_reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node) const {
  for (const Plugin* plugin : reservers_) {
    if (plugin->points().pre_filter) {
      PreFilterOutcome outcome = plugin->pre_filter(state, pod);
      if (outcome.status.is_skip()) {
        state.skip_filter(plugin->slot());
      } else if (!outcome.status.is_success()) {
        return attributed(std::move(outcome.status), *plugin);
      }
    }
    if (!plugin->points().filter || state.filter_skipped(plugin->slot())) continue;
    Status status = plugin->filter(state, pod, node);
    if (!status.is_success()) return attributed(std::move(status), *plugin);
  }
  return Status::success();
}

Status Framework::run_reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node, Cluster& cluster) const {
  for (const Plugin* plugin : reservers_) {
    Status status = plugin->reserve(state, pod, node, cluster);
    if (status.is_success()) continue;
    run_unreserve(state, pod, node, cluster);
    return attributed(std::move(status), *plugin);
  }
  return Status::success();
}

void Framework::run_unreserve(CycleState& state, const PodInfo& pod, const NodeInfo& node, Cluster& cluster) const {
  for (std::size_t i = reservers_.size(); i-- > 0;) reservers_[i]->unreserve(state, pod, node, cluster);
  state.clear_annotations();
}

Status Framework::run_permit(CycleState& state, const PodInfo& pod, const NodeInfo& node, WaitingPods& waiting,
                             std::vector<PermitWait>& waits) const {
  for (const Plugin* plugin : permitters_) {
    PermitOutcome outcome = plugin->permit(state, pod, node, waiting);
    if (outcome.status.is_success()) continue;
    if (outcome.status.code == Code::kWait) {
      waits.push_back({plugin->name(), std::min(outcome.timeout, kLongestPermitWait)});
      continue;
    }
    if (outcome.status.is_rejected()) return attributed(std::move(outcome.status), *plugin);
    Status error = Status::error(fmt::format("running Permit plugin \"{}\": {}", plugin->name(), outcome.status.message()));
    return attributed(std::move(error), *plugin);
  }
  return waits.empty() ? Status::success() : Status::wait();
}

std::expected<std::vector<PreBindWrite>, Status> Framework::run_pre_bind(const CycleState& state, const PodInfo& pod,
                                                                         const NodeInfo& node) const {
  std::vector<PreBindWrite> out;
  for (const Plugin* plugin : pre_binders_) {
    auto writes = plugin->pre_bind(state, pod, node);
    if (!writes) return std::unexpected(attributed(std::move(writes.error()), *plugin));
    for (PreBindWrite& write : *writes) {
      write.plugin = plugin->name();
      out.push_back(std::move(write));
    }
  }
  return out;
}

std::optional<std::pair<std::string_view, BindCall>> Framework::run_bind(const CycleState& state, const PodInfo& pod,
                                                                         std::string_view node_name) const {
  for (const Plugin* plugin : binders_)
    if (auto call = plugin->bind(state, pod, node_name)) return std::pair(plugin->name(), std::move(*call));
  return std::nullopt;
}

void Framework::run_post_bind(const CycleState& state, const PodInfo& pod, std::string_view node_name) const {
  for (const Plugin* plugin : post_binders_) plugin->post_bind(state, pod, node_name);
}

}  // namespace berth::placement
