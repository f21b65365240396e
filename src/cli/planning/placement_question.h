// What is asked about a pod, or a group of pods, and the answer over a cluster: of a command that has read one, and of the scheduler that
// keeps one (SPEC I3).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace berth::client {
class Client;
}
namespace berth::placement {
class Cluster;
class Framework;
struct GroupExplanation;
}  // namespace berth::placement

namespace berth::cli {

/// Where a server answers such questions (POST), when a scheduler runs in its process; by default to system:masters alone.
inline constexpr std::string_view kQuestionPath = "/debug/placement/explain";

/// Where may it go, and why?
struct PlacementQuestion {
  json::Value pod;                         ///< Whole: as the server has it, or as admission would complete it.
  std::string output = "text";             ///< "text", "wide" (text, with every node), "json", or "page" (json with the text in it).
  bool budgets_are_hard = false;           ///< No eviction that breaks a disruption budget is planned.
  std::string group{};                     ///< Instead of a pod: a PodGroup, "namespace/name"; the output is "text" or "json".
  [[nodiscard]] std::string body() const;  ///< As it is sent.
  static Result<PlacementQuestion> parse(std::string_view body);
};

/// The answer, as `output` wants it. `configuration`: where the profile is from. `group`: of the pod's group; null where it has none.
std::string answer_of(const PlacementQuestion& question, const std::shared_ptr<const placement::Framework>& framework,
                      const placement::Cluster& cluster, const std::string& configuration,
                      const placement::GroupExplanation* group = nullptr);

/// The answer about a group.
std::string answer_of(const placement::GroupExplanation& group, const std::string& output, const std::string& configuration);

/// The answer of the scheduler that runs in the server's process; nullopt where there is none, it does not place such pods, or the user may
/// not ask it: then who asks reads the cluster. Blocks.
std::optional<std::string> ask_running_scheduler(client::Client& client, const PlacementQuestion& question);

}  // namespace berth::cli
