// What is under way on the completion queue.
#pragma once
#include <grpcpp/alarm.h>

#include "base/deadlines.h"
#include "store/etcd/etcd_store.h"

namespace berth::store::etcd {

/// The key that a refused transaction shows; null: none.
const pb::KeyValue* first_in(const pb::TxnResponse& response);

/// One call, or one pause between two tries. Deletes itself when it is over.
struct EtcdStore::Call {
  explicit Call(EtcdStore& store) : store(store) { ++store.open_calls_; }
  virtual ~Call() {
    if (--store.open_calls_ == 0) store.open_calls_.notify_all();
  }
  /// Something this waited for has happened. `ok` false: the queue is closing.
  virtual void proceed(bool ok) = 0;
  /// Gives up without waiting on.
  virtual void abandon(const std::string& why) = 0;
  /// A try begins, of at most so long; `context` is its own.
  void begin_try(std::chrono::milliseconds time);
  /// A short one, between two tries.
  void pause(grpc::Alarm& alarm);
  /// What is waited for happened: the queue's word to `proceed`.
  void over(bool ok) {
    watch = {};
    proceed(ok);
  }

  EtcdStore& store;
  std::unique_ptr<grpc::ClientContext> context;
  Deadlines::Watch watch;  ///< Of the context: goes before it.
  grpc::Status status;
  std::size_t member = 0;
};

/// A transaction, sent until it is known what came of it. A try without an answer may still be on its way and take effect much later, after
/// the key was deleted again, say: so every try compares the fence (a key of this process in etcd, there as long as the process) too, and
/// before the next try the fence is raised. Then the earlier one is either done or never will be, and which of the two the watch says once
/// it has passed the fence (outcomes.h). What the key holds by then says nothing: what was done may have been overwritten, and what was
/// overwritten must not be done again.
struct EtcdStore::WriteCall final : Call {
  WriteCall(EtcdStore& store, SharedWrite write, std::function<void(WriteAnswer)> done);
  void send();
  void proceed(bool ok) override;
  void abandon(const std::string& why) override;
  void answer(WriteAnswer given);
  void interpret();
  /// No try so far can take effect after this revision.
  void fenced(Revision revision);
  /// After a pause, unless its time is over.
  void retry();
  [[nodiscard]] pb::TxnRequest transaction(std::int64_t lease) const;

  SharedWrite write;
  std::function<void(WriteAnswer)> done;
  SoughtPtr sought;
  std::chrono::steady_clock::time_point give_up;
  pb::TxnResponse response;
  std::unique_ptr<grpc::ClientAsyncResponseReader<pb::TxnResponse>> reader;
  grpc::Alarm alarm;
  bool is_pausing = false;
  bool is_marked = true;        ///< A deletion carries its mark.
  bool may_be_written = false;  ///< A try ended without an answer, and nobody knows yet.
  int fences = 0;               ///< Raised for its sake.
  FencePtr fence;               ///< As the last try compared it.
  std::string last_error = "etcd gives no lease";
};

/// Raises the fence by one, until it has; then the writes that wait for it go on. One that is not there yet is made, on a lease: a lease
/// that ran out took the fence with it, and the next one has another name, so that no try from before it can ever succeed.
struct EtcdStore::FenceCall final : Call {
  FenceCall(EtcdStore& store, Fence from);
  void send();
  void send_grant();
  void send_raise();
  void proceed(bool ok) override;
  void answered();
  void retry();
  void abandon(const std::string& why) override;

  Fence from;
  pb::TxnResponse response;
  std::unique_ptr<grpc::ClientAsyncResponseReader<pb::TxnResponse>> reader;
  pb::LeaseGrantResponse granted;
  std::unique_ptr<grpc::ClientAsyncResponseReader<pb::LeaseGrantResponse>> grant_reader;
  grpc::Alarm alarm;
  bool is_pausing = false, is_granting = false;
  std::chrono::steady_clock::time_point give_up;
};

struct EtcdStore::LatestCall final : Call {
  LatestCall(EtcdStore& store, std::function<void(Result<Revision>)> done);
  /// `patient`: waits for its member to be there.
  void send(bool patient);
  void proceed(bool ok) override;
  void abandon(const std::string& why) override;

  std::function<void(Result<Revision>)> done;
  std::chrono::steady_clock::time_point give_up;
  pb::RangeResponse response;
  std::unique_ptr<grpc::ClientAsyncResponseReader<pb::RangeResponse>> reader;
};

struct EtcdStore::LeaseCall final : Call {
  /// `asked`: the life asked for; `seconds`: the lease's.
  LeaseCall(EtcdStore& store, std::int64_t asked, std::int64_t seconds);
  void send();
  void proceed(bool ok) override;
  void abandon(const std::string& why) override;

  std::int64_t asked, seconds;
  pb::LeaseGrantResponse response;
  std::unique_ptr<grpc::ClientAsyncResponseReader<pb::LeaseGrantResponse>> reader;
};

}  // namespace berth::store::etcd
