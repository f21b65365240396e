// SharedStore over etcd's gRPC interface, version 3. Only this folder sees gRPC and the generated code.
//
// Two threads: one waits for answers to transactions and reads (a completion queue), one reads the watch. A third looks every second
// whether the members answer and the watch keeps up, and moves both to another member when not: one that is stopped, not dead, closes no
// connection.
#pragma once
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <map>
#include <thread>

#include "base/deadlines.h"
#include "base/mutex.h"
#include "rpc.grpc.pb.h"
#include "store/etcd/outcomes.h"
#include "store/shared.h"

namespace berth::store::etcd {

namespace pb = etcdserverpb;

/// One member, and its stubs.
struct Member {
  std::string address;  ///< As given, for messages.
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<pb::KV::Stub> kv;
  std::unique_ptr<pb::Watch::Stub> watch;
  std::unique_ptr<pb::Lease::Stub> lease;
  std::unique_ptr<pb::Maintenance::Stub> maintenance;
};

/// What a failed call means for a write.
enum class Failure { kElsewhere, kLeaseGone, kFinal };
Failure judge(const grpc::Status& status);

/// How late gRPC's own deadline may be.
inline constexpr std::chrono::milliseconds kLate{1000};
/// Ends a call that gRPC does not end at its deadline, which is `time` from now (base/deadlines.h).
[[nodiscard]] Deadlines::Watch end_late(grpc::ClientContext& context, std::chrono::milliseconds time);

/// A key of this process in etcd that every transaction of its compares (calls.h). Version 0: it is to be made first.
struct Fence {
  std::string key;
  std::int64_t version = 0, lease = 0;
  Revision revision = 0;  ///< At which it was raised to this version.
};
using FencePtr = std::shared_ptr<const Fence>;
/// Behind the fence's key: what the last deletion put beside itself.
inline constexpr std::string_view kDeletionMark = "/deletion";
inline constexpr int kFenceSeconds = 60;  ///< Of its lease, which is renewed as long as the process lives.

/// The key right behind all that begin with `prefix`.
std::string prefix_end(std::string prefix);

class EtcdStore final : public SharedStore {
 public:
  EtcdStore(EtcdOptions options, std::vector<Member> members);
  ~EtcdStore() override;

  /// What must hold before anything is written (open.cpp).
  Result<void> examine();

  Result<Revision> read(const std::function<Result<void>(SharedRecord)>& each) override;
  Result<void> fill(std::vector<SharedWrite> writes, const SharedRecord& marker) override;
  void write(SharedWrite write, std::function<void(WriteAnswer)> done) override;
  void latest(std::function<void(Result<Revision>)> done) override;
  void follow(Revision after, Follower& follower) override;
  void stop() override;
  void nudge(std::function<void(bool)> done) override;
  void reconnect() override;
  Result<std::vector<SharedRecord>> find(const std::string& key_or_prefix, bool is_prefix) override;
  Result<Revision> up_to_date_until(Revision after) override;
  Result<void> compact(Revision revision) override;
  Result<Turn> take_compaction_turn(std::int64_t version, Revision revision) override;

  // For the calls (calls.cpp).
  struct Call;
  struct WriteCall;
  struct FenceCall;
  struct LatestCall;
  struct LeaseCall;
  [[nodiscard]] std::size_t member() const { return current_.load(); }
  Member& at(std::size_t index) { return members_[index]; }
  /// The next calls go to another member, and the watch, too; nothing when somebody has moved on from `failed` already.
  void leave(std::size_t failed);
  grpc::CompletionQueue& queue() { return queue_; }
  Outcomes& outcomes() { return outcomes_; }
  [[nodiscard]] bool is_closing() const { return closing_.load(); }
  [[nodiscard]] FencePtr fence();
  /// One that never was: under a name of its own.
  [[nodiscard]] Fence new_fence() const;
  [[nodiscard]] bool is_fence(std::string_view key) const;
  /// Tells `call` once no earlier try of it can take effect any more.
  void raise_fence(WriteCall* call);
  void fence_raised(std::optional<Fence> now, const std::string& why);
  /// The lease for a key with this life, or null: `call` is sent again when it is there.
  std::optional<std::int64_t> lease_for(Duration ttl, WriteCall* call);
  void lease_granted(std::int64_t asked, std::int64_t id);
  void forget_leases();

 private:
  /// What the members say to who asks each of them.
  struct Roll {
    std::map<std::uint64_t, std::string> clusters;  ///< Their ids, and a member's address of each.
    std::string unreachable;                        ///< Who does not answer, and why.
    std::optional<std::size_t> answering;           ///< The first that does.
    bool is_slow = false;                           ///< One was silent, not away.
  };
  Roll call_roll();
  /// A lease of that many seconds for keys of `fill`.
  Result<std::int64_t> fill_lease(std::int64_t seconds);
  /// Calls `method(Member&, ClientContext&)` on one member after the other until one answers, or the time is over.
  Result<void> ask(const std::function<grpc::Status(Member&, grpc::ClientContext&)>& method, int seconds);
  void run_queue();
  void run_watch(Revision after, Follower& follower);
  /// Reads one stream until it ends; false: what is next is compacted.
  bool read_stream(Follower& follower);
  /// The watch ended. While etcd has no leader it does so many times a second, which is said once in a while. On the watch's thread.
  void complain(const std::string& address, const std::string& why);
  /// What the watch brought: to whom it concerns.
  void tell(pb::WatchResponse& response, Follower& follower);
  void run_guard();
  /// Keeps the fence's lease alive; without `renews` it is given back.
  void tend_fence(bool renews);
  /// Ends the watch's stream when it is at that member.
  void reconnect_from(std::size_t used);

  struct LeaseState {
    std::int64_t id = 0;
    std::chrono::steady_clock::time_point until{};
    int used = 0;
    bool is_asked = false;
    std::vector<WriteCall*> waiting;
  };

  const EtcdOptions options_;
  std::vector<Member> members_;
  std::atomic<std::size_t> current_{0};
  grpc::CompletionQueue queue_;
  Mutex calls_mutex_;
  std::atomic<bool> closing_{false};
  std::atomic<int> open_calls_{0};
  FencePtr fence_ BERTH_GUARDED_BY(calls_mutex_);
  std::vector<WriteCall*> fenced_ BERTH_GUARDED_BY(calls_mutex_);  ///< Wait for the fence.
  bool is_raising_ BERTH_GUARDED_BY(calls_mutex_) = false;
  std::map<std::int64_t, LeaseState> leases_ BERTH_GUARDED_BY(calls_mutex_);  ///< By seconds.
  Mutex fill_mutex_;
  std::map<std::int64_t, std::int64_t> fill_leases_ BERTH_GUARDED_BY(fill_mutex_);  ///< By seconds.

  Outcomes outcomes_;

  Mutex watch_mutex_;
  CondVar watch_wake_;
  std::unique_ptr<grpc::ClientContext> watch_context_ BERTH_GUARDED_BY(watch_mutex_);
  bool watch_stopping_ BERTH_GUARDED_BY(watch_mutex_) = false;
  std::size_t watch_member_ BERTH_GUARDED_BY(watch_mutex_) = 0;
  std::string last_complaint_;
  std::chrono::steady_clock::time_point complained_at_{};
  std::atomic<Revision> reached_{0};
  std::atomic<bool> following_{false};
  std::thread queue_thread_, watch_thread_, guard_thread_;
};

}  // namespace berth::store::etcd
