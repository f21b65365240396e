// A cluster that a seed changes, and pods that wait in it: what each Filter plugin says of them by itself, and whom a change wakes, told
// line by line. Judges: whoever comes to fit is woken by a plugin that held it back, and the engine decides as its plain form does.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "placement/events.h"
#include "placement/trial.h"
#include "tests/support/long_life.h"

namespace berth::placement::testing {

class ToldCluster {
 public:
  struct Pending {
    json::Value document;
    PodInfoPtr pod;
    std::string shown;              ///< What was said of it last.
    std::set<std::string> held_by;  ///< Who holds it back; empty where it fits somewhere.
    bool has_failed = false;        ///< An error: it is tried again without being woken.
  };

  /// `plugins`: those of the profile that are asked.
  ToldCluster(berth::testing::LongLife& told, Profile profile, const std::set<std::string>& plugins, std::size_t waiting);

  /// Replaces the waiting pod of that number.
  void wait(std::size_t i, json::Value document);
  [[nodiscard]] Pending& pending(std::size_t i) { return pending_[i]; }
  [[nodiscard]] const json::Value* find(std::string_view kind, std::string_view ns, std::string_view name) const;

  /// Without a word: the world before its first step.
  void begin_with(const json::Value& object);
  /// One object comes, changes or goes (`now` is null then); of nodes and pods the caller says what is otherwise.
  void change(const json::Value& before, const json::Value& now, ClusterEvent event);
  /// The waiting pod itself changes.
  void change_own(std::size_t i, json::Value now, ClusterEvent event);
  /// Reserves the pod's place where it has one, tells what binding would write and how the others fare, and gives it back.
  void bind(std::size_t i);

  /// BERTH_SEEDS: so many are judged beside those that are recorded.
  [[nodiscard]] static std::uint64_t more_seeds();
  [[nodiscard]] static std::string key_of(const json::Value& object);
  [[nodiscard]] PodInfoPtr read(const json::Value& document) const;

 private:
  void tell_plugins(const EventChange& change, std::size_t first, std::size_t count);
  void look(Pending& one);
  [[nodiscard]] std::string shown(const Evaluation& said) const;

  berth::testing::LongLife& told_;
  Profile profile_;
  FrameworkPtr framework_;
  Cluster cluster_;
  Trial trial_;
  std::vector<std::pair<std::string, FrameworkPtr>> alone_;
  std::vector<PluginPtr> plugins_;
  std::map<std::string, json::Value> objects_;
  std::vector<Pending> pending_;
};

}  // namespace berth::placement::testing
