#include "cli/planning/live_objects.h"

#include <fmt/format.h>

#include "client/list_all.h"
#include "placement/cluster_kinds.h"

namespace berth::cli {
namespace {

/// Of kinds that definitions make the API server's tables say nothing.
client::ApiResult<void> list(client::Client& client, const std::string& group, const std::string& plural,
                             const std::function<void(json::Value)>& each) {
  for (const placement::ClusterResource& one : placement::kClusterResources)
    if (one.is_custom && one.group == group && one.plural == plural)
      return client::list_all(client, {group, std::string(one.versions.front()), plural}, one.kind, each);
  return client::list_all(client, group, plural, each);
}

}  // namespace

client::ApiResult<LiveKinds> read_live_objects(client::Client& client, std::span<const std::pair<std::string, std::string>> resources,
                                               const std::function<void(json::Value)>& each) {
  LiveKinds out;
  std::vector<std::string> forbidden;
  std::string words;
  for (const auto& [group, plural] : resources) {
    const auto read = list(client, group, plural, each);
    if (read) {
      out.listed.push_back(plural);
      continue;
    }
    if (plural == "nodes" || plural == "pods") return std::unexpected(read.error());
    if (read.error().code == 403) {
      if (forbidden.empty()) words = read.error().message;
      forbidden.push_back(plural);
    } else if (read.error().code != 404) {
      out.unread.push_back(fmt::format("{} could not be read, and the answer does without them: {}", plural, read.error().message));
    }
  }
  if (!forbidden.empty())
    out.unread.push_back(fmt::format("you may not list {}, and the answer does without them ({})", fmt::join(forbidden, ", "), words));
  return out;
}

Error live_error(const model::ApiStatus& said, std::optional<model::ApiStatus>* refused) {
  if (refused != nullptr) *refused = said;
  return {said.code == 404 ? ErrorCode::kNotFound : ErrorCode::kUnavailable, "the cluster could not be read: " + said.message};
}

}  // namespace berth::cli
