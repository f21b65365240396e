// Tests for a scheduler plugin that its author need not write: random nodes and pods, and what must hold of every plugin. Link
// berth::testing.
#pragma once
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "placement/trial.h"

namespace berth::plugin_testing {

/// Chance that follows from its seed.
class Dice {
 public:
  explicit Dice(std::mt19937_64& random) : random_(&random) {}
  /// 0 to n - 1.
  int below(int n) { return static_cast<int>((*random_)() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::mt19937_64* random_;
};

/// One field of a pod that somebody changes.
struct Change {
  const char* what;
  std::function<void(model::PodView& pod, Dice& dice)> make;
};
/// Of every field that a plugin could read; of annotations and labels only a few keys: add those that yours looks at.
std::span<const Change> common_changes();

/// What there is in your plugin's world. Unset members leave nodes and pods as they are: with CPU, memory, zones, labels, taints,
/// priorities.
struct World {
  std::function<void(model::NodeView& node, Dice& dice)> dress_node;
  std::function<void(model::PodView& pod, Dice& dice)> dress_pod;
  std::vector<Change> changes;  ///< Beside the common ones.
};
struct CheckOptions {
  std::uint64_t first_seed = 1;
  int seeds = 20;
};

// Each of these says what is wrong, and with which seed; empty when nothing was found. The profile names registered plugins, or those in
// `more`.

/// Two pods of one signature get the same verdicts, scores and victims: finds a plugin that reads what it did not sign.
std::string check_signature(const placement::Profile& profile, const World& world, const CheckOptions& options = {},
                            std::span<const placement::PluginRegistration> more = {});
/// The engine's columns decide as the plugin's plain form does, through histories in which pods come and go: finds one that looks at more
/// than its column_kind says.
std::string check_columns(const placement::Profile& profile, const World& world, const CheckOptions& options = {},
                          std::span<const placement::PluginRegistration> more = {});
/// A reservation that is undone leaves no trace, and a fork's placements do not show in what it was forked from: finds state that is kept
/// beside the cluster.
std::string check_forks(const placement::Profile& profile, const World& world, const CheckOptions& options = {},
                        std::span<const placement::PluginRegistration> more = {});
/// All of them.
std::string check_plugin(const placement::Profile& profile, const World& world, const CheckOptions& options = {},
                         std::span<const placement::PluginRegistration> more = {});

/// What `compare_alike` found.
struct SignatureFindings {
  std::string difference;  ///< Of two pods of one signature; empty when there is none.
  std::size_t alike = 0;   ///< Changes that the signature leaves out.
  std::size_t different = 0;
};
/// The comparison that check_signature makes, for one pod in a cluster of your own. `onlookers` may be null: then the signature holds in
/// every cluster.
SignatureFindings compare_alike(const placement::FrameworkPtr& framework, const placement::Cluster& cluster,
                                placement::Onlookers* onlookers, const model::PodViewPtr& pod, std::span<const Change> changes, Dice& dice);

/// Berth's default profile with a plugin of yours at every point that it extends, and its arguments. Of a name that nobody registered, or
/// of arguments that the plugin refuses, every check says so.
placement::Profile profile_with(std::string_view plugin, json::Value args = {}, std::int64_t weight = 1);

}  // namespace berth::plugin_testing
