#include "autoscaler/external/expander_client.h"

#include <fmt/format.h>

#include "autoscaler/expander.h"
#include "autoscaler/external/protocol.h"
#include "base/base64.h"
#include "model/protobuf/protobuf.h"

namespace berth::autoscaler::external {
namespace {

json::Object shown(const model::ResourceList& list) {
  json::Object out;
  for (const auto& [name, quantity] : list) out[name] = quantity.to_string();
  return out;
}
json::Object shown(const model::ObjectMeta& meta) {
  json::Object labels;
  for (const auto& [key, value] : meta.labels.pairs()) labels[key] = value;
  json::Object out = {{"name", meta.name}, {"labels", std::move(labels)}};
  if (!meta.ns.empty()) out["namespace"] = meta.ns;
  if (!meta.uid.empty()) out["uid"] = meta.uid;
  return out;
}

/// The object's message, as base64.
std::string encoded(std::string_view kind, const json::Value& object) {
  std::string out;
  const model::TypeDef* type = model::protobuf_type("v1", kind);
  if (type == nullptr || !model::encode_message(*type, json::serialize(object), out)) return "";
  return base64_encode(out);
}

std::string encoded(const model::PodView& pod) {
  json::Array containers;
  for (const auto& one : pod.containers)
    containers.push_back(
        json::Object{{"name", one.name}, {"image", one.image}, {"resources", json::Object{{"requests", shown(one.requests)}}}});
  return encoded("Pod", json::Object{{"metadata", shown(pod.meta)},
                                     {"spec", json::Object{{"containers", std::move(containers)},
                                                           {"priority", pod.priority},
                                                           {"schedulerName", pod.scheduler_name}}}});
}

std::string encoded(const model::NodeView& node) {
  json::Array taints;
  for (const auto& taint : node.taints)
    taints.push_back(json::Object{{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
  return encoded("Node",
                 json::Object{{"metadata", shown(node.meta)},
                              {"spec", json::Object{{"taints", std::move(taints)}}},
                              {"status", json::Object{{"capacity", shown(node.capacity)}, {"allocatable", shown(node.allocatable)}}}});
}

}  // namespace

json::Value best_options_request(const std::vector<ExpansionOption>& options) {
  json::Array out;
  json::Object nodes;
  for (const ExpansionOption& option : options) {
    json::Array pods;
    for (const PodPtr& pod : option.pods) pods.emplace_back(encoded(pod->view()));
    out.push_back(json::Object{
        {"nodeGroupId", option.group}, {"nodeCount", option.nodes}, {"debug", option.group}, {"pod", pods}, {"podBytes", pods}});
    nodes[option.group] = encoded(*option.node_template->node);
  }
  return json::Object{{"options", std::move(out)}, {"nodeMap", nodes}, {"nodeBytesMap", nodes}};
}

std::vector<std::string> groups_of_answer(const json::Value& answer) {
  std::vector<std::string> out;
  for (const json::Value& option : json::get_array(answer, {"options"})) out.emplace_back(json::get_string(option, {"nodeGroupId"}));
  return out;
}

Result<std::function<Result<std::vector<std::string>>(const std::vector<ExpansionOption>&)>> connect_expander(const std::string& url,
                                                                                                              const std::string& ca_pem) {
  auto channel = Channel::open({.address = url, .certificate_pem = {}, .key_pem = {}, .ca_pem = ca_pem}, kExpanderProto);
  if (!channel) return std::unexpected(channel.error());
  return [shared = std::shared_ptr<Channel>(std::move(*channel))](
             const std::vector<ExpansionOption>& options) -> Result<std::vector<std::string>> {
    constexpr int kTimeoutMs = 5000;
    auto answer = shared->call(fmt::format("{}/BestOptions", kExpander), best_options_request(options), kTimeoutMs);
    if (!answer) return std::unexpected(answer.error());
    return groups_of_answer(*answer);
  };
}

}  // namespace berth::autoscaler::external
