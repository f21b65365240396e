// NodeAffinity: nodeSelector, required and preferred node affinity, and the profile's addedAffinity
// (pkg/scheduler/framework/plugins/nodeaffinity; predicate MatchNodeSelector, priority NodeAffinityPriority).
#include <fmt/format.h>

#include <algorithm>

#include "placement/plugins/factories.h"
#include "placement/plugins/normalize.h"

namespace berth::placement {
namespace {

constexpr std::string_view kReasonPod = "node(s) didn't match Pod's node affinity/selector";
constexpr std::string_view kReasonPod120 = "node(s) didn't match Pod's node affinity";
constexpr std::string_view kReasonEnforced = "node(s) didn't match scheduler-enforced node affinity";
constexpr std::string_view kReasonConflict = "pod affinity terms conflict";

bool counts(const model::PreferredSchedulingTerm& term) { return term.weight != 0 && !term.preference.is_empty(); }

std::int64_t preferred_sum(const std::vector<model::PreferredSchedulingTerm>& terms, const NodeInfo& node) {
  std::int64_t out = 0;
  for (const auto& term : terms)
    if (counts(term) && term.preference.matches(node.labels(), node.name)) out += term.weight;
  return out;
}

/// What keeps the terms that count from being parsed, as one text; empty when nothing does.
std::string parse_error(const std::vector<model::PreferredSchedulingTerm>& terms) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < terms.size(); ++i)
    if (terms[i].weight != 0)
      for (const auto& error : terms[i].preference.errors) out.push_back(fmt::format("[{}].{}", i, error));
  return out.empty() ? std::string() : model::aggregate_words(out);
}

/// The first error as 1.20 words it: without the field, and of an operator its own sentence.
std::string parse_error_120(const std::vector<model::PreferredSchedulingTerm>& terms) {
  constexpr std::string_view kOperator = "operator: Unsupported value: ";
  constexpr std::string_view kInvalid = ": Invalid value: ";
  for (const auto& term : terms) {
    if (term.weight == 0 || term.preference.errors.empty()) continue;
    const std::string_view error = term.preference.errors.front();
    if (const auto at = error.find(kOperator); at != std::string_view::npos) {
      const auto rest = error.substr(at + kOperator.size());
      return fmt::format("{} is not a valid node selector operator", rest.substr(0, rest.find(": supported values")));
    }
    for (const std::string_view words : {"for 'in', 'notin' operators", "values set must be empty", "for 'Gt', 'Lt' operators"})
      if (const auto at = error.rfind(words); at != std::string_view::npos) return std::string(error.substr(at));
    const auto at = error.find(kInvalid);
    return std::string(at == std::string_view::npos ? error : error.substr(at + kInvalid.size()));
  }
  return {};
}

/// The node names that required terms allow, when every term names nodes by metadata.name.
std::optional<std::set<std::string>> named_nodes(const model::NodeSelector& required) {
  std::set<std::string> out;
  for (const auto& term : required.terms) {
    std::optional<std::set<std::string>> names;
    for (const auto& field : term.fields) {
      if (field.op != model::Requirement::Op::kIn) continue;
      const std::set<std::string> values(field.values.begin(), field.values.end());
      if (!names) {
        names = values;
      } else {
        std::erase_if(*names, [&](const std::string& name) { return !values.contains(name); });
      }
    }
    if (!names) return std::nullopt;
    out.merge(*names);
  }
  return out;
}

class NodeAffinity final : public PluginOf<NodeAffinity> {
 public:
  NodeAffinity(Era era, std::optional<model::NodeAffinity> added) : era_(era), added_(std::move(added)) {}
  std::string_view name() const override { return "NodeAffinity"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.node_selection(); }
  ColumnKind column_kind() const override { return ColumnKind::kStatic; }
  Normalization normalization() const override { return Normalization::kByMax; }

  PreFilterOutcome pre_filter(CycleState&, const PodInfo& pod) const override {
    if (era_ == Era::k120) return {};
    const auto& view = pod.view();
    const auto& required = view.node_affinity.required;
    if (!required && !(added_ && added_->required) && view.node_selector.empty()) return {Status::skip(), {}};
    if (!required || required->terms.empty()) return {};
    auto names = named_nodes(*required);
    if (!names) return {};
    if (names->empty()) return {Status::unresolvable(std::string(kReasonConflict)), {}};
    return {Status::success(), std::move(names)};
  }

  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    if (added_ && added_->required && !added_->required->matches(node.labels(), node.name))
      return Status::unresolvable(std::string(kReasonEnforced));
    if (pod.view().matches_node_selector(node.labels(), node.name)) return Status::success();
    return Status::unresolvable(std::string(era_ == Era::k120 ? kReasonPod120 : kReasonPod));
  }

  Status pre_score(CycleState&, const PodInfo& pod, std::span<const NodeInfo* const>) const override {
    const auto& preferred = pod.view().node_affinity.preferred;
    if (era_ == Era::k120) return Status::success();
    if (auto error = parse_error(preferred); !error.empty()) return Status::error(std::move(error));
    const bool nothing_added = !added_ || added_->preferred.empty();
    return preferred.empty() && nothing_added ? Status::skip() : Status::success();
  }

  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    const auto& preferred = pod.view().node_affinity.preferred;
    if (auto error = era_ == Era::k120 ? parse_error_120(preferred) : parse_error(preferred); !error.empty())
      return std::unexpected(Status::error(std::move(error)));
    return preferred_sum(preferred, node) + (added_ ? preferred_sum(added_->preferred, node) : 0);
  }

  Status normalize(const CycleState&, const PodInfo&, std::span<const NodeInfo* const>, std::span<std::int64_t> scores) const override {
    normalize_by_max(scores, false);
    return Status::success();
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | kNodeLabels;
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;

 private:
  Era era_;
  std::optional<model::NodeAffinity> added_;
};

bool NodeAffinity::queueing_hint(const Cluster& /*cluster*/, const PodInfo& pending, const EventChange& change) const {
  if (change.event == ClusterEvent::kNodeTaints || change.node == nullptr) return true;
  // What the profile adds may be what the node lacked; kube-scheduler's hint forgets it.
  const auto takes = [&](const model::NodeView& node) {
    return (!added_ || !added_->required || added_->required->matches(node.labels(), node.name())) &&
           pending.view().matches_node_selector(node.labels(), node.name());
  };
  return takes(*change.node) && (change.node_before == nullptr || !takes(*change.node_before));
}

}  // namespace

Result<PluginPtr> make_node_affinity(const Profile& profile) {
  const auto& added = profile.args.added_affinity;
  if (added && added->required) {
    std::vector<std::string> problems;
    for (std::size_t i = 0; i < added->required->terms.size(); ++i)
      for (const auto& error : added->required->terms[i].errors) problems.push_back(fmt::format("nodeSelectorTerms[{}].{}", i, error));
    if (!problems.empty())
      return invalid("parsing addedAffinity.requiredDuringSchedulingIgnoredDuringExecution: " + model::aggregate_words(problems));
  }
  if (added) {
    if (const auto error = parse_error(added->preferred); !error.empty())
      return invalid("parsing addedAffinity.preferredDuringSchedulingIgnoredDuringExecution: " + error);
  }
  return std::make_unique<NodeAffinity>(profile.era, added);
}

}  // namespace berth::placement
