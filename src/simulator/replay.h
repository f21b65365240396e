// A recorded day, run again: the same pods come and go, and everything else decides anew.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/recording.h"
#include "simulator/story.h"

namespace berth::simulator {

/// What of a recording is others' doing, and so is done again: nodes that come and go, pods (by themselves, or as the workloads that make
/// them), priority classes, budgets, quotas. What a cluster's own components did is left out.
class Replay {
 public:
  /// Reads the whole recording. `as_workloads`: Deployments, Jobs and the like are created and their controllers make the pods; otherwise
  /// every pod comes when it came, runs as long as it ran, and is deleted when it was.
  static Result<std::unique_ptr<Replay>> load(const std::string& file, bool as_workloads);
  /// What was there at the recording's start; with the server up. Notes for people.
  std::vector<std::string> set_up(Story& story);
  void begin(Story& story);

 private:
  struct Action {
    Duration at{};
    enum class What { kCreate, kUpdate, kDelete } what = What::kCreate;
    json::Value object;
  };
  /// What became of a pod, as far as the file has been read.
  struct Life {
    json::Value pod;  ///< As first seen.
    std::int64_t came = 0;
    std::optional<std::int64_t> started, ended, deleted;  ///< Milliseconds.
    bool was_placed = false;                              ///< When the recording began.
  };
  void see(RecordedEvent event);
  void see_pod(RecordedEvent& event, const std::string& key);
  void see_node(RecordedEvent& event, const std::string& key);
  void see_other(RecordedEvent& event, const std::string& key);
  void finish();
  void run_next(Story& story);
  void act(Story& story, Action& action);

  bool as_workloads_ = false;
  std::vector<std::string> notes_;
  std::vector<json::Value> initial_;
  std::vector<Action> actions_;
  std::size_t next_ = 0;
  std::map<std::string, Life> pods_;         ///< By uid, while the file is read.
  std::map<std::string, json::Value> last_;  ///< Other objects as last seen, by kind and key.
  std::vector<std::string> order_;           ///< uids of pods in the order of their coming.
};

/// An object as a user would have written it: without what the server and the controllers added.
json::Value as_written(json::Value object);

}  // namespace berth::simulator
