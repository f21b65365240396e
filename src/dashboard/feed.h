// What the page shows, live: nodes, pods, events and budgets of the cluster, listed and watched with the user's own rights, sent to every
// open page as lines of rows (rows.h).
#pragma once
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "client/transport.h"
#include "net/http.h"

namespace berth::dashboard {

struct FeedOptions {
  std::string ns;                              ///< Pods and events of this namespace only; empty: of all.
  std::string own_ns;                          ///< Shown alone where the pods of all may not be listed; empty: none.
  Duration linger = std::chrono::seconds(30);  ///< How long the cluster is watched on after the last page has gone.
  Duration heartbeat = std::chrono::seconds(5);
};

/// Watches nothing until somebody looks. A page that takes its lines slowly gets each object's latest state only: what waits for it is a
/// set of names, never a queue of states.
///
/// Lines: rows; {"kind":"state","synced":B,"problems":[{"what","message","only"}]} (`only`: the namespace that is shown nevertheless) when
/// everything that is known was sent, when that changes, and with every heartbeat.
///
/// Made, used and destroyed on any thread but the loop's; the loop outlives it.
class Feed {
 public:
  Feed(std::shared_ptr<client::Transport> transport, EventLoop& loop, FeedOptions options);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// Streams to it until it is gone.
  void subscribe(std::shared_ptr<net::ResponseWriter> writer);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::dashboard
