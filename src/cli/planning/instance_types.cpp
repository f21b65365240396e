#include "cli/planning/instance_types.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/config_reader.h"
#include "cli/command/session.h"
#include "cli/planning/dumps.h"
#include "cli/planning/placement_input.h"
#include "pools/catalogue.h"
#include "pools/node_pool.h"

namespace berth::cli {
namespace {

/// The text that a ConfigMap of that name has; empty: it is another one.
std::string published_in(const json::Value& object) {
  if (json::get_string(object, {"kind"}) != "ConfigMap" || json::get_string(object, {"metadata", "name"}) != pools::kPublishedTypes)
    return "";
  return std::string(json::get_string(object, {"data", pools::kPublishedKey}));
}

}  // namespace

Result<json::Value> read_instance_types(const std::string& file) {
  if (auto catalogue = pools::Catalogue::load(file); !catalogue) return std::unexpected(catalogue.error());
  const auto text = config::read_whole_file(file);
  if (!text) return std::unexpected(text.error());
  return json::parse_yaml(*text);
}

std::optional<json::Value> published_instance_types(const PlacementFlags& flags) {
  std::string text;
  if (!flags.cluster_files.empty()) {
    auto dumps = Dumps::find(flags.cluster_files);
    if (!dumps) return std::nullopt;
    const auto look = [&](const json::Value& object, const std::string&) {
      if (text.empty()) text = published_in(object);
    };
    (void)dumps->for_each(look, "ConfigMap");
  } else if (auto session = Session::open(flags.connection)) {
    if (const auto map = (*session)->client().get_and_wait({"", "v1", "configmaps"}, "kube-system", std::string(pools::kPublishedTypes)))
      text = json::get_string(*map, {"data", pools::kPublishedKey});
  }
  auto document = text.empty() ? Result<json::Value>(invalid("")) : json::parse_yaml(text);
  return document ? std::optional(std::move(*document)) : std::nullopt;
}

Result<pools::Catalogue> catalogue_of(const std::string& file, const std::vector<json::Value>& objects) {
  if (!file.empty()) return pools::Catalogue::load(file);
  for (const json::Value& object : objects)
    if (const std::string text = published_in(object); !text.empty())
      return pools::Catalogue::parse(text, fmt::format("ConfigMap kube-system/{}", pools::kPublishedTypes));
  // Machines' groups say themselves what they are.
  if (std::ranges::any_of(objects, [](const json::Value& one) { return json::get_string(one, {"kind"}) == pools::kMachineClassKind; }))
    return pools::Catalogue{};
  return invalid(
      "what can be bought is not known: name the file with --instance-types (a cluster in which `berth autoscaler --instance-types` runs "
      "says it itself)");
}

}  // namespace berth::cli
