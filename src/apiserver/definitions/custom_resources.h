// Definitions of custom kinds at work: their conditions, the kinds that they make, their end (apiextensions-apiserver/pkg/controller:
// status, establish, nonstructuralschema, apiapproval, finalizer).
//
//   a definition is written ─> names accepted? ─> its kinds are served ─> Established
//   it is deleted           ─> Terminating: no new objects ─> its objects are deleted ─> the finalizer goes, and the kinds with it
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "apiserver/ground/ground.h"
#include "apiserver/kinds/kind_table.h"
#include "base/mutex.h"
#include "custom/definition.h"

namespace berth::apiserver {

/// Thread-safe. Owned by the server; destroyed before its cache, after its workers stopped.
class CustomResources {
 public:
  /// Watches of kinds that are gone, or that have another schema now, end.
  using EndWatches = std::function<void(std::string_view group, std::string_view plural)>;
  /// `ground` outlives this.
  CustomResources(Ground& ground, EndWatches end_watches);
  ~CustomResources();

  /// Serves what is stored; from then on follows the store. Before any request.
  void start();
  [[nodiscard]] KindTablePtr table() const;
  /// A definition is about to be marked as deleted: the finalizer and the condition that go with it.
  void begin_deletion(json::Value& definition) const;

 private:
  struct Follower;
  struct Entry {
    std::string uid;
    std::int64_t generation = -1;
    std::shared_ptr<const custom::Definition> definition;
    std::vector<ServedKind> kinds;  ///< Empty: not established.
    std::string problem;            ///< Why the schema is not structural; kept for the generation.
    bool is_terminating = false;
    bool is_builtin = false;  ///< The server has this kind by itself, and goes on serving that.
  };

  void enqueue(std::string name);
  void run();
  void process(const std::string& name);
  /// Of this revision something is written that is not seen yet, nor refused: nothing is to be decided anew.
  [[nodiscard]] bool is_being_written(const std::string& name, Revision revision) const;
  void forget_write(const std::string& name);
  void refused(const std::string& name);
  void forget(const std::string& name);
  bool update_entry(Entry& entry, const StoredObject& object, const json::Value& document);
  bool settle_status(const Entry& entry, json::Value& document);
  void serve(Entry& entry, const json::Value& document, Revision since);
  void publish();
  void requeue_group(const std::string& group, const std::string& except);
  void finish_deletion(const std::string& name, const Entry& entry, const StoredObject& object, json::Value document);
  void again_later(const std::string& name);
  /// True when none is left.
  bool delete_instances(const Entry& entry);
  void write(const StoredObject& base, json::Value document, const std::string& name);

  Ground& ground_;
  EndWatches end_watches_;
  std::shared_ptr<Follower> follower_;
  std::unique_ptr<Watch> watch_;
  mutable Mutex mutex_;  ///< Of the queue, the table and the writes.
  std::deque<std::string> queue_ BERTH_GUARDED_BY(mutex_);
  std::set<std::string> queued_ BERTH_GUARDED_BY(mutex_);  ///< The same.
  bool is_running_ BERTH_GUARDED_BY(mutex_) = false;
  KindTablePtr table_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, Revision> written_ BERTH_GUARDED_BY(mutex_);  ///< By name: of what the write was made that is under way.
  std::map<std::string, Entry> entries_;                              ///< By the definition's name. Of whoever runs.
};

}  // namespace berth::apiserver
