#include "autoscaler/external/provider_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

#include "base/base64.h"
#include "model/protobuf/protobuf.h"

namespace berth::autoscaler::external {
namespace {

using json::get_string;

/// Calls without an answer after which the rest is not waited for.
constexpr int kMostSilences = 3;
/// Nodes of which it is asked in one reading whose they are.
constexpr int kMostQuestions = 200;

std::int64_t number_of(const json::Value* value) {
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->get_int64();
  std::int64_t out = 0;
  const std::string_view text = value->is_string() ? json::as_view(*value) : std::string_view();
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::optional<double> fraction_of(const json::Value& options, std::string_view field) {
  const json::Value* value = json::find(options, field);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double out = value->to_number<double>();
  // Zero is what a provider says that knows nothing of the option.
  return out > 0 && out <= 1 ? std::optional(out) : std::nullopt;
}

std::optional<Duration> length_of(const json::Value& options, std::string_view field, std::string_view old_field) {
  if (const json::Value* value = json::find(options, field); value != nullptr && value->is_object()) {
    const auto seconds = number_of(json::find(*value, "seconds")), nanos = number_of(json::find(*value, "nanos"));
    if (seconds < 0 || seconds > 365LL * 86400) return std::nullopt;
    return std::chrono::duration_cast<Duration>(std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanos));
  }
  if (const json::Value* value = json::find(options, old_field); value != nullptr && value->is_object())
    if (const auto nanos = number_of(json::find(*value, "nanoseconds")); nanos > 0)
      return std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(nanos));
  return std::nullopt;
}

json::Object as_length(Duration length) {
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(length).count();
  return {{"seconds", std::to_string(nanos / 1'000'000'000)}, {"nanos", nanos % 1'000'000'000}};
}
json::Object as_old_length(Duration length) {
  return {{"nanoseconds", std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(length).count())}};
}

/// Nullopt: it is no such object.
std::optional<json::Value> document_of_bytes(std::string_view version, std::string_view kind, std::string_view encoded) {
  const auto raw = base64_decode(encoded);
  if (!raw || raw->empty()) return std::nullopt;
  std::string body = model::protobuf_head(version, kind, raw->size());
  body += *raw;
  body += model::protobuf_tail();
  auto document = model::decode_protobuf(body);
  return document ? std::optional(std::move(*document)) : std::nullopt;
}

/// Null: it is no Node.
model::NodeViewPtr node_of_bytes(std::string_view encoded) {
  const auto document = document_of_bytes("v1", "Node", encoded);
  if (!document) return nullptr;
  auto out = std::make_shared<model::NodeView>(model::NodeView::parse(*document));
  if (out->allocatable.empty()) out->allocatable = out->capacity;
  if (out->capacity.empty()) out->capacity = out->allocatable;
  return out->capacity.empty() ? nullptr : out;
}

class Reading {
 public:
  Reading(const Ask& ask, const std::vector<KnownNode>& nodes, const Options& options, TimePoint now, Memory& memory,
          const std::vector<KnownPod>& pods)
      : ask_(ask), nodes_(nodes), pods_(pods), options_(options), now_(now), memory_(memory) {
    for (const KnownNode& node : nodes)
      if (!node.provider_id.empty()) node_of_.emplace(node.provider_id, &node);
  }

  ProviderState run() {
    if (const auto refreshed = must("Refresh", json::Object{}); !refreshed) return unusable();
    const auto listed = must("NodeGroups", json::Object{});
    if (!listed) return unusable();
    ask_about_gpus();
    for (const json::Value& group : json::get_array(*listed, {"nodeGroups"})) add_group(group);
    ask_about_unlisted_nodes();
    if (asks_for_prices()) add_pod_prices();
    if (silences_ < kMostSilences) out_.left_alone = doubtful_;
    for (const std::string& id : doubtful_) std::erase_if(out_.groups, [&](const NodeGroup& group) { return group.id == id; });
    if (silences_ >= kMostSilences) return unusable();
    std::ranges::sort(out_.groups, {}, &NodeGroup::id);
    return std::move(out_);
  }

 private:
  ProviderState unusable() {
    out_.is_usable = false;
    out_.groups.clear();
    return std::move(out_);
  }
  void problem(std::string text) { out_.problems.push_back(std::move(text)); }

  /// Nullopt: it failed, which is said; after several silences nothing is asked any more.
  std::optional<json::Value> must(std::string_view method, const json::Value& request, std::string_view about = {}) {
    if (silences_ >= kMostSilences) return std::nullopt;
    auto answer = ask_(method, request);
    if (answer) return std::move(*answer);
    note_silence(answer.error());
    problem(fmt::format("provider: {}{}: {}", about, about.empty() ? std::string(method) : fmt::format(": {}", method),
                        answer.error().message));
    return std::nullopt;
  }
  /// The same of what a provider need not have.
  std::optional<json::Value> may(std::string_view method, const json::Value& request, std::string_view about) {
    if (silences_ >= kMostSilences || memory_.missing_methods.contains(std::string(method))) return std::nullopt;
    auto answer = ask_(method, request);
    if (answer) return std::move(*answer);
    if (answer.error().code == ErrorCode::kNotFound) {
      memory_.missing_methods.emplace(method);
      return std::nullopt;
    }
    note_silence(answer.error());
    problem(fmt::format("provider: {}{}: {}", about, about.empty() ? std::string(method) : fmt::format(": {}", method),
                        answer.error().message));
    return std::nullopt;
  }

  /// Who comes back may be another one, with more to say.
  void note_silence(const Error& error) {
    if (error.code != ErrorCode::kUnavailable) return;
    ++silences_;
    memory_.missing_methods.clear();
    memory_.gpu_label.reset();
  }
  [[nodiscard]] bool asks_for_prices() const { return std::ranges::find(options_.expanders, Expander::kPrice) != options_.expanders.end(); }

  void ask_about_gpus() {
    if (!memory_.gpu_label) {
      const auto label = may("GPULabel", json::Object{}, "");
      if (label) memory_.gpu_label = std::string(get_string(*label, {"label"}));
      const auto types = label ? may("GetAvailableGPUTypes", json::Object{}, "") : std::nullopt;
      if (types) memory_.gpu_types.clear();
      if (types)
        for (const auto& [name, details] : json::get_object(*types, {"gpuTypes"})) memory_.gpu_types.emplace(name.data(), name.size());
    }
    out_.gpu_label = memory_.gpu_label;
    out_.gpu_types = memory_.gpu_types;
  }

  void add_group(const json::Value& said) {
    NodeGroup group{.id = std::string(get_string(said, {"id"}))};
    group.min = number_of(json::find(said, "minSize"));
    group.max = number_of(json::find(said, "maxSize"));
    if (group.id.empty()) return problem("provider: a group without an id is left out");
    if (!ids_.insert(group.id).second) return doubt(group.id, "it is there twice");
    const json::Object request = {{"id", group.id}};
    const auto size = must("NodeGroupTargetSize", request, group.id);
    const auto machines = must("NodeGroupNodes", request, group.id);
    // Even of a group that is left out it is known whose nodes they are.
    const std::int64_t listed = machines ? add_machines(group, *machines) : 0;
    if (!size || !machines) return doubt(group.id, "");
    group.target = number_of(json::find(*size, "targetSize"));
    if (group.min < 0 || group.max < group.min)
      return doubt(group.id, fmt::format("sizes from {} to {} make no sense", group.min, group.max));
    if (group.target < 0) return doubt(group.id, fmt::format("its size is {}", group.target));
    if (group.target < listed) return doubt(group.id, fmt::format("its size is {}, and it lists {} machines", group.target, listed));
    // A maximum that was lowered stops no machine that is there; more than either is a lie.
    if (group.target > std::max(group.max, listed))
      return doubt(group.id, fmt::format("its size is {}, its maximum {}, and it lists {} machines", group.target, group.max, listed));
    add_options(group);
    add_template(group);
    if (const std::string* named = group.template_node == nullptr ? nullptr : group.template_node->labels().get(kMachineClassLabel))
      group.node_class = *named;
    if (asks_for_prices()) add_price(group);
    out_.groups.push_back(std::move(group));
  }

  /// The group is left out: it neither grows nor shrinks.
  void doubt(const std::string& id, const std::string& why) {
    doubtful_.insert(id);
    if (!why.empty()) problem(fmt::format("provider: {}: {}: the group is left alone", id, why));
  }

  /// How many are there or to come.
  std::int64_t add_machines(NodeGroup& group, const json::Value& said) {
    std::int64_t count = 0;
    for (const json::Value& machine : json::get_array(said, {"instances"})) {
      const std::string id(get_string(machine, {"id"}));
      if (id.empty()) {
        problem(fmt::format("provider: {}: a machine without an id is left out", group.id));
        continue;
      }
      if (const auto [known, is_new] = listed_.try_emplace(id, group.id); !is_new) {
        if (known->second != group.id) doubt(known->second, fmt::format("{} is listed in {} as well", id, group.id));
        doubt(group.id, fmt::format("{} is listed twice", id));
        continue;
      }
      const std::string_view state = get_string(machine, {"status", "instanceState"});
      const auto node = node_of_.find(id);
      group.instances.push_back(
          {.id = id, .node = node == node_of_.end() ? "" : node->second->name, .is_leaving = state == "instanceDeleting"});
      count += state != "instanceDeleting";
      const std::string_view code = get_string(machine, {"status", "errorInfo", "errorCode"});
      if (!code.empty() && state == "instanceCreating" && node == node_of_.end())
        group.instances.back().failure = fmt::format("{}: {}: {}", id, code, get_string(machine, {"status", "errorInfo", "errorMessage"}));
      memory_.group_of[id] = group.id;
    }
    return count;
  }

  void add_options(NodeGroup& group) {
    const json::Object defaults = {{"scaleDownUtilizationThreshold", options_.utilization_threshold},
                                   {"scaleDownGpuUtilizationThreshold", options_.gpu_utilization_threshold},
                                   {"oldUnneeded", as_old_length(options_.unneeded_time)},
                                   {"oldUnready", as_old_length(options_.unready_time)},
                                   {"oldProvision", as_old_length(options_.max_node_provision_time)},
                                   {"ignoreDaemonSetsUtilization", options_.ignore_daemonsets_utilization},
                                   {"scaleDownUnneededDuration", as_length(options_.unneeded_time)},
                                   {"scaleDownUnreadyDuration", as_length(options_.unready_time)},
                                   {"MaxNodeProvisionDuration", as_length(options_.max_node_provision_time)}};
    const auto said = may("NodeGroupGetOptions", json::Object{{"id", group.id}, {"defaults", defaults}}, group.id);
    const json::Value* options = said ? json::find(*said, "nodeGroupAutoscalingOptions") : nullptr;
    if (options == nullptr || !options->is_object()) return;
    group.overrides.utilization_threshold = fraction_of(*options, "scaleDownUtilizationThreshold");
    group.overrides.gpu_utilization_threshold = fraction_of(*options, "scaleDownGpuUtilizationThreshold");
    group.overrides.unneeded_time = length_of(*options, "scaleDownUnneededDuration", "oldUnneeded");
    group.overrides.unready_time = length_of(*options, "scaleDownUnreadyDuration", "oldUnready");
    group.overrides.max_node_provision_time = length_of(*options, "MaxNodeProvisionDuration", "oldProvision");
  }

  void add_template(NodeGroup& group) {
    const auto said = may("NodeGroupTemplateNodeInfo", json::Object{{"id", group.id}}, group.id);
    if (!said) {
      // What it would be does not change as long as nothing else is heard.
      if (const auto known = memory_.templates.find(group.id); known != memory_.templates.end())
        std::tie(group.template_node, group.template_slices) = known->second;
      return;
    }
    const std::string_view bytes = get_string(*said, {"nodeBytes"}), old = get_string(*said, {"oldNode"});
    group.template_node = node_of_bytes(bytes.empty() ? old : bytes);
    for (const json::Value& slice : json::get_array(*said, {"resourceSliceBytes"})) {
      if (auto document = document_of_bytes("resource.k8s.io/v1", "ResourceSlice", json::as_view(slice)))
        group.template_slices.push_back(std::move(*document));
      else
        problem(fmt::format("provider: {}: a device list of its template cannot be read as a ResourceSlice", group.id));
    }
    if (group.template_node != nullptr)
      memory_.templates[group.id] = std::pair(group.template_node, group.template_slices);
    else if (!bytes.empty() || !old.empty())
      problem(fmt::format("provider: {}: its template cannot be read as a Node: the group cannot grow from zero", group.id));
  }

  /// The hour from now on, as both forms of the protocol have it.
  [[nodiscard]] json::Object next_hour() const {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now_.time_since_epoch()).count();
    const json::Object start = {{"seconds", std::to_string(seconds)}}, end = {{"seconds", std::to_string(seconds + 3600)}};
    return {{"oldStart", start}, {"oldEnd", end}, {"startTimestamp", start}, {"endTimestamp", end}};
  }
  static std::optional<double> price_in(const std::optional<json::Value>& said) {
    const json::Value* price = said ? json::find(*said, "price") : nullptr;
    if (price == nullptr || !price->is_number() || !(price->to_number<double>() > 0)) return std::nullopt;
    return price->to_number<double>();
  }

  void add_price(NodeGroup& group) {
    if (group.template_node == nullptr) return;
    json::Object labels;
    for (const auto& [key, value] : group.template_node->meta.labels.pairs()) labels[key] = value;
    json::Object request = next_hour();
    request["node"] = json::Object{{"name", group.template_node->name()}, {"labels", std::move(labels)}};
    group.price_per_hour = price_in(may("PricingNodePrice", request, group.id));
  }

  void add_pod_prices() {
    for (const KnownPod& pod : pods_) {
      std::string bytes;
      if (!model::encode_message(*model::protobuf_type("v1", "Pod"), json::serialize(pod.document), bytes)) continue;
      json::Object request = next_hour();
      request["oldPod"] = request["podBytes"] = base64_encode(bytes);
      const auto price = price_in(may("PricingPodPrice", request, get_string(pod.document, {"metadata", "name"})));
      if (!price) return;  // Only whole lists of prices are used.
      out_.pod_prices[pod.shape] = *price;
    }
  }

  /// A node that no group lists is none's, or the list is not whole.
  void ask_about_unlisted_nodes() {
    int questions = 0;
    std::erase_if(memory_.removed, [&](const std::string& id) { return !node_of_.contains(id); });
    for (const KnownNode& node : nodes_) {
      if (memory_.removed.contains(node.provider_id)) continue;  // The machine goes first, its Node after it.
      const std::string key = node.name + " " + node.provider_id;
      if (listed_.contains(node.provider_id)) {
        memory_.answers.erase(key);
        continue;
      }
      const auto before = memory_.group_of.find(node.provider_id);
      const bool was_listed = !node.provider_id.empty() && before != memory_.group_of.end();
      if (const auto known = memory_.answers.find(key); !was_listed && known != memory_.answers.end() && known->second.empty()) continue;
      if (++questions > kMostQuestions) return;
      const auto said = must("NodeGroupForNode", json::Object{{"node", to_message(node)}}, node.name);
      if (!said) {
        if (was_listed)
          doubt(before->second, fmt::format("{} was one of its nodes, is listed no more, and nobody says whose it is", node.name));
        continue;
      }
      const std::string group(get_string(*said, {"nodeGroup", "id"}));
      memory_.answers[key] = group;
      if (!group.empty())
        doubt(group, fmt::format("it has {} by NodeGroupForNode, and does not list it", node.name));
      else if (was_listed && node.is_ready)
        doubt(before->second, fmt::format("{} was one of its nodes, is ready, and is listed no more", node.name));
      else if (was_listed)
        memory_.group_of.erase(before);
    }
  }

  const Ask& ask_;
  const std::vector<KnownNode>& nodes_;
  const std::vector<KnownPod>& pods_;
  const Options& options_;
  TimePoint now_;
  Memory& memory_;
  ProviderState out_;
  std::map<std::string_view, const KnownNode*> node_of_;  ///< By provider id.
  std::map<std::string, std::string> listed_;             ///< Machines, and their groups.
  std::set<std::string> ids_, doubtful_;
  int silences_ = 0;
};

}  // namespace

json::Value to_message(const KnownNode& node) {
  json::Object out = {{"providerID", node.provider_id}, {"name", node.name}};
  if (node.labels.is_object()) out["labels"] = node.labels;
  if (node.annotations.is_object()) out["annotations"] = node.annotations;
  return out;
}

ProviderState read_state(const Ask& ask, const std::vector<KnownNode>& nodes, const Options& options, TimePoint now, Memory& memory,
                         const std::vector<KnownPod>& pods) {
  return Reading(ask, nodes, options, now, memory, pods).run();
}

}  // namespace berth::autoscaler::external
