// List + watch with a local cache (client-go's informers): no gap, no repeat, relist after 410, resume after a lost connection.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "client/object.h"

namespace berth::client {

struct InformerHandler {
  std::function<void(const ObjectRef&)> on_add;
  std::function<void(const ObjectRef& before, const ObjectRef& after)> on_update;
  std::function<void(const ObjectRef&)> on_delete;  ///< The last state known.
};

struct InformerOptions {
  std::string ns;  ///< Empty: all.
  std::string label_selector, field_selector;
  std::size_t page = 500;  ///< List chunk; 0: all at once.
  /// Who may not list the resource goes on without it, with a warning that names the right; otherwise the first list is waited for.
  bool is_optional = false;
  std::uint64_t seed = 0;  ///< Of the pauses' jitter and the watches' lengths, mixed with the resource's name.
};

/// Lives on its client's loop (which it needs): construct, use and destroy it there. Handlers run on the loop, in the order of the watch.
/// An object deleted and made again under its name is a deletion and an addition, even when the watch was away meanwhile.
class Informer {
 public:
  Informer(Client& client, Gvr gvr, InformerOptions options = {});
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  /// Handlers added before start see everything; added later they first get on_add for all that is cached.
  void add_handler(InformerHandler handler);
  void start();
  /// True once the first list is in the cache and its handlers have run.
  [[nodiscard]] bool has_synced() const;
  void on_synced(std::function<void()> synced);
  /// Calls `done` once the cache holds, and its handlers have seen, all that was written before the call: what a new leader needs to know
  /// of the one before. The watch begins anew for it, at once where it was pausing. Of a server that does not know model::kTellWhenCurrent
  /// a second without news is taken for it.
  void catch_up(std::function<void()> done);
  /// `changed(true)`: the watch was lost, and what happened since is not known. `changed(false)`: it is known again.
  void on_behind(std::function<void(bool)> changed);
  /// It has listed what there is, and its watch is not known to be lost.
  [[nodiscard]] bool is_current() const;
  /// Ends the pause after a lost watch, if there is one.
  void retry_now();
  /// The highest resourceVersion seen, bookmarks included.
  [[nodiscard]] std::int64_t revision() const;

  [[nodiscard]] ObjectRef get(std::string_view ns, std::string_view name) const;
  /// In order of (namespace, name).
  void for_each(const std::function<void(const ObjectRef&)>& each) const;
  void for_each_in(std::string_view ns, const std::function<void(const ObjectRef&)>& each) const;
  /// Objects by an index made with add_index (before start), in order of (namespace, name).
  void add_index(std::string index, std::function<std::vector<std::string>(const Object&)> keys);
  [[nodiscard]] std::vector<ObjectRef> by_index(std::string_view index, std::string_view key) const;
  [[nodiscard]] std::size_t size() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Informer::catch_up, of all of them.
void catch_up(const std::vector<std::unique_ptr<Informer>>& informers, std::function<void()> done);

/// One informer a resource, shared by all who ask on one loop. Asked for after start, an informer starts at once.
class InformerFactory {
 public:
  explicit InformerFactory(Client& client) : client_(client) {}
  ~InformerFactory();
  InformerFactory(const InformerFactory&) = delete;
  InformerFactory& operator=(const InformerFactory&) = delete;
  /// `is_optional` counts where the informer is made, by the first who asks.
  Informer& get(const Gvr& gvr, bool is_optional = false);
  void start();
  [[nodiscard]] bool has_synced() const;
  void on_synced(std::function<void()> synced);
  /// Informer::catch_up, of all of them.
  void catch_up(std::function<void()> done);
  /// `changed(true)`: some of them lost their watch, and whoever decides by all of them had better wait; `changed(false)`: all know again
  /// what there is, or those that do not have been waited for (half a minute in which others were watched).
  void on_behind(std::function<void(bool)> changed) { behind_changed_ = std::move(changed); }

 private:
  [[nodiscard]] std::vector<Informer*> all() const;
  void one_changed(const Gvr& gvr, bool is_behind);
  void give_up();
  void tell_behind(bool now);

  Client& client_;
  bool is_started_ = false;
  std::set<Gvr> behind_;
  bool is_told_behind_ = false;
  std::function<void(bool)> behind_changed_;
  TimerId patience_ = TimerId::kNone;  ///< Runs while some are behind and others are not.
  std::map<Gvr, std::unique_ptr<Informer>> informers_;
};

}  // namespace berth::client
