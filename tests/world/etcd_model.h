// What etcd promises to API servers, and no more, in memory and virtual time: revisions, conditional writes, watches that lag, are cut and
// go on, compaction, leases, and answers that are lost after the write was done.
//
//   Etcd ── the members together: one history
//     ├─ EtcdLink ── one API server's way to it (store::SharedStore): delays, losses, cuts
//     └─ EtcdLink
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "base/event_loop.h"
#include "simulator/random.h"
#include "store/shared.h"
#include "tests/world/held.h"

namespace berth::world {

class EtcdLink;

/// For the loop's thread.
class Etcd final : public Held {
 public:
  explicit Etcd(EventLoop& loop, std::string prefix = "/registry") : Held(1), loop_(loop), prefix_(std::move(prefix)) {}

  [[nodiscard]] store::Revision compacted() const { return compacted_; }
  /// Without one nothing is written and no newest revision is told; watches and what is read at a revision go on.
  bool has_leader = true;
  /// Its disk is full: it takes deletions and nothing else.
  bool is_full = false;

  /// One transaction. Only with a leader.
  store::WriteAnswer apply(const store::SharedWrite& write);
  /// Somebody writes outside of the prefix: the revision grows, and nobody is told.
  void write_elsewhere() { ++revision_; }
  void compact(store::Revision revision);
  /// Its clock jumps, either way: leases end sooner or later by so much.
  void turn_clock(Duration by);

  /// Every write below the prefix that is not compacted, in order.
  [[nodiscard]] const std::deque<store::SharedRecord>& history() const { return history_; }

 private:
  friend class EtcdLink;
  void put_down(store::SharedRecord record);
  struct Lease {
    std::string key;
    store::Revision of = 0;
  };
  void end_leases();

  EventLoop& loop_;
  const std::string prefix_;
  store::Revision compacted_ = 0;
  std::deque<store::SharedRecord> history_;
  Duration turned_{};                       ///< Its clock, against the world's.
  std::multimap<TimePoint, Lease> leases_;  ///< By their ends, on its clock.
  std::int64_t compaction_version_ = 0;
  std::vector<EtcdLink*> links_;
};

/// One API server's etcd. Each call is a message that takes its time, may be lost on its way or on the way back, and is overtaken by
/// others. For the loop's thread; the Etcd outlives it.
class EtcdLink final : public store::SharedStore {
 public:
  /// `home`: the server's own loop; null: the network's.
  EtcdLink(Etcd& etcd, std::uint64_t seed, EventLoop* home = nullptr);
  ~EtcdLink() override;

  /// Of each way, drawn anew for each message.
  Duration least_delay = std::chrono::microseconds(200), most_delay = std::chrono::milliseconds(3);
  /// Of the watch, besides.
  Duration watch_lag{};
  /// Shares of the writes that get lost before etcd sees them (they are sent again), and whose answers do (what came of them is found out
  /// seconds later, as long as there is time).
  double loses_requests = 0, loses_answers = 0;
  /// Nothing passes.
  bool is_cut = false;
  /// Between what the server's build writes and what etcd has of it (builds.h). May be empty.
  std::function<Bytes(const Bytes&)> as_stored, as_read;
  /// Everything happens within the call: a server that starts, waiting for each of its writes.
  bool is_calm = false;
  /// The server is killed: what it waits for is answered as unknown, and what it sent may still arrive.
  void kill();

  Result<store::Revision> read(const std::function<Result<void>(store::SharedRecord)>& each) override;
  Result<void> fill(std::vector<store::SharedWrite> writes, const store::SharedRecord& marker) override;
  void write(store::SharedWrite write, std::function<void(store::WriteAnswer)> done) override;
  store::WriteAnswer write_and_wait(store::SharedWrite write) override;
  void latest(std::function<void(Result<store::Revision>)> done) override;
  void follow(store::Revision after, store::Follower& follower) override;
  void stop() override;
  void nudge(std::function<void(bool)> done) override;
  void reconnect() override {}
  Result<std::vector<store::SharedRecord>> find(const std::string& key_or_prefix, bool is_prefix) override;
  Result<store::Revision> up_to_date_until(store::Revision after) override;
  Result<void> compact(store::Revision revision) override;
  Result<Turn> take_compaction_turn(std::int64_t version, store::Revision revision) override;

 private:
  friend class Etcd;
  struct Message;
  using MessagePtr = std::shared_ptr<Message>;
  void send(const MessagePtr& message);
  void arrive(const MessagePtr& message);
  void come_back(const MessagePtr& message);
  void finish(const MessagePtr& message, bool is_known);
  /// The history has grown.
  void grew();
  void schedule_pump(Duration after);
  void pump();
  Duration delay();
  [[nodiscard]] Result<void> reachable() const;
  store::SharedWrite stored(store::SharedWrite write) const;
  store::SharedRecord read(store::SharedRecord record) const;
  store::WriteAnswer read(store::WriteAnswer answer) const;

  Etcd& etcd_;
  EventLoop &loop_, &home_;  ///< The network's, and where the server hears.
  simulator::Random random_;
  std::vector<MessagePtr> under_way_;
  bool is_dead_ = false;
  store::Follower* follower_ = nullptr;
  store::Revision told_ = 0;  ///< The follower has everything up to here.
  bool is_pumping_ = false;   ///< A pump is on its way.
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace berth::world
