#include "cli/verbs/nodes.h"

#include <CLI/CLI.hpp>

namespace berth::cli {

void NodeChoice::add_to(CLI::App& app) {
  app.add_option("-l,--selector", selector, "The nodes with these labels");
  app.add_flag("--all", all, "All nodes");
}

Result<std::vector<std::string>> NodeChoice::resolve(Session& session) const {
  const int ways = (names.empty() ? 0 : 1) + (selector.empty() ? 0 : 1) + (all ? 1 : 0);
  if (ways == 0) return invalid("which nodes? name them, or say -l LABEL=VALUE or --all");
  if (ways > 1) return invalid("nodes are named, or chosen by -l, or --all: use one of the three");
  if (!names.empty()) return names;
  client::ListOptions options;
  options.label_selector = selector;
  auto page = session.client().list_and_wait(kNodes, "", options);
  if (!page) return fail(ErrorCode::kUnavailable, page.error().message);
  std::vector<std::string> out;
  for (const json::Value& node : page->items) out.emplace_back(json::get_string(node, {"metadata", "name"}));
  if (out.empty()) return fail(ErrorCode::kNotFound, all ? "there are no nodes" : fmt::format("no node has the labels {}", selector));
  return out;
}

}  // namespace berth::cli
