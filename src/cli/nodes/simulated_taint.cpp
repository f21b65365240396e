#include "cli/nodes/simulated_taint.h"

#include <array>
#include <optional>

#include "base/json_scan.h"
#include "base/log.h"
#include "client/client.h"
#include "client/response.h"

namespace berth::cli {
namespace {

constexpr std::string_view kSimulatedTaint = "sim.berth.dev/simulated";
const model::Gvr kNodes{"", "v1", "nodes"};

/// What the node's taints are to be; nullopt: they are so, or it is none of the simulated ones.
std::optional<json::Array> wanted_taints(const json::Value& node, bool is_wanted) {
  if (!json::find(node, {"metadata", "annotations", "sim.berth.dev/fleet"})) return std::nullopt;
  json::Array taints;
  bool is_there = false;
  for (const json::Value& taint : json::get_array(node, {"spec", "taints"})) {
    const bool own = json::get_string(taint, {"key"}) == kSimulatedTaint;
    is_there = is_there || own;
    if (!own) taints.push_back(taint);
  }
  if (is_there == is_wanted) return std::nullopt;
  if (is_wanted) taints.push_back(simulated_taint());
  return taints;
}

/// One of them, as it was listed. Whoever else changed it since keeps their taints: it is looked at again.
void taint_simulated(client::Client& client, json::Value node, bool is_wanted) {
  const std::string name(json::get_string(node, {"metadata", "name"}));
  constexpr int kMostTries = 20;
  for (int tries = 1;; ++tries) {
    auto taints = wanted_taints(node, is_wanted);
    if (!taints) return;
    client::Call patch{.verb = "patch", .gvr = kNodes, .name = name};
    patch.content_type = "application/merge-patch+json";
    patch.body = json::serialize(json::Object{{"metadata", {{"resourceVersion", json::get_string(node, {"metadata", "resourceVersion"})}}},
                                              {"spec", json::Object{{"taints", std::move(*taints)}}}});
    const auto patched = client.call_and_wait(std::move(patch));
    if (patched) return;
    if (patched.error().code != 409 || tries == kMostTries) return log::warning("up", "{}", patched.error().message);
    auto now = client.get_and_wait(kNodes, "", name);
    if (!now) return;  // It has gone.
    node = std::move(*now);
  }
}

}  // namespace

json::Value simulated_taint() { return json::Object{{"key", kSimulatedTaint}, {"effect", "NoSchedule"}}; }

void taint_simulated_nodes(const std::shared_ptr<client::Transport>& transport, bool is_wanted) {
  client::Client client(transport, nullptr, "berth-up");
  static const json::PathScanner kPage({"items", "metadata.continue"});
  std::array<std::string_view, 2> page;
  std::string next;
  do {
    // There may be a hundred thousand, which nobody has to take apart to see that they say nothing of it.
    const auto answer =
        client::send_and_wait(client, {.verb = "list", .gvr = kNodes, .query = "limit=500&continue=" + net::percent_encode(next)});
    if (answer.status != 200 || !kPage.scan(answer.body, page))
      return log::warning("up", "nodes were not looked through for the taint of simulated ones: {}", answer.body);
    json::for_each_element(page[0], [&](std::string_view text) {
      if (!is_wanted && text.find(kSimulatedTaint) == text.npos) return;
      if (auto node = json::parse(text)) taint_simulated(client, std::move(*node), is_wanted);
    });
    next = json::unquote(page[1]);
  } while (!next.empty());
}

}  // namespace berth::cli
