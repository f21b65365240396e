// The leadership of a component: sought and kept on a thread of its own, so that the lease is renewed whatever a pass of the component
// costs; and a fence, so that a component whose lease ran out writes nothing more, whatever it is in the middle of.
#pragma once
#include <memory>

#include "client/leader_election.h"

namespace berth::client {

struct LeadershipOptions {
  LeaderElectionConfig election;
  std::string user_agent;
  /// After the leadership was lost it is sought again; otherwise the component ends.
  bool stands_again = false;
  /// The election's own way to the server, which a component that opens a hundred connections at once does not fill. Null: the component's.
  std::shared_ptr<Transport> transport;
  /// Has the caches that the component keeps while others lead be as new as the lease (Informer::catch_up): on the component's loop, before
  /// it is told that it leads, for half a minute at most: what cannot be watched any more must not keep everybody from leading. Empty: it
  /// keeps none.
  std::function<void(std::function<void()> done)> catch_up;
  /// Where the election runs; must outlive the leadership. Null: on a thread of its own.
  EventLoop* election_loop = nullptr;
};

/// Thread-safe. The destructor gives a lease that is held up, and waits for that, two seconds at most.
class Leadership {
 public:
  /// `callbacks` run on `loop`, the component's own, and none after the destructor began; destroy it there, or after the loop has stopped.
  /// Without a loop they run where the election does. Requires a valid election (LeaderElector::validate).
  Leadership(std::shared_ptr<Transport> transport, LeadershipOptions options, EventLoop* loop, LeaderCallbacks callbacks);
  ~Leadership();
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;

  void start();
  /// The lease is ours now: nobody else can have taken it, as long as clocks run at one speed.
  [[nodiscard]] bool holds() const;
  /// For the component: reads pass always, writes only while the lease is held; else they are answered 403 at once. Lives on its own.
  [[nodiscard]] std::shared_ptr<Transport> transport() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// For a component that ends with its leadership: sought by `plain`'s way, `lead` and `lost` run on its loop. `catch_up`
/// and `election_loop`: as in LeadershipOptions.
std::unique_ptr<Leadership> seek_leadership(Client& plain, LeaderElectionConfig election, std::function<void()> lead,
                                            std::function<void()> lost, std::function<void(std::function<void()> done)> catch_up = {},
                                            EventLoop* election_loop = nullptr);

}  // namespace berth::client
