#ifdef BERTH_WITH_ETCD
#include "store/etcd/calls.h"

#include <fmt/format.h>

namespace berth::store::etcd {
namespace {

constexpr auto kTry = std::chrono::seconds(3);  // One try: a member that is stopped answers nothing at all.
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr int kFencesAtOnce = 3;

}  // namespace

void EtcdStore::Call::begin_try(std::chrono::milliseconds time) {
  context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + time);
  watch = end_late(*context, time);
}

void EtcdStore::Call::pause(grpc::Alarm& alarm) {
  watch = Deadlines::of_process().watch(kPause + kLate, [&alarm] { alarm.Cancel(); });
  alarm.Set(&store.queue(), std::chrono::system_clock::now() + kPause, this);
}

Failure judge(const grpc::Status& status) {
  // Where etcd has one code for several things, its words tell them apart.
  const std::string& text = status.error_message();
  const auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
      return Failure::kElsewhere;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return says("too many requests") ? Failure::kElsewhere : Failure::kFinal;
    case grpc::StatusCode::FAILED_PRECONDITION:
      return says("learner") || says("leader") ? Failure::kElsewhere : Failure::kFinal;
    case grpc::StatusCode::NOT_FOUND:
      return says("lease") ? Failure::kLeaseGone : Failure::kFinal;
    default:
      return Failure::kFinal;
  }
}

const pb::KeyValue* first_in(const pb::TxnResponse& response) {
  if (response.responses_size() == 0 || response.responses(0).response_range().kvs_size() == 0) return nullptr;
  return &response.responses(0).response_range().kvs(0);
}

EtcdStore::WriteCall::WriteCall(EtcdStore& store, SharedWrite given, std::function<void(WriteAnswer)> then)
    : Call(store), write(std::move(given)), done(std::move(then)), sought(store.outcomes().begin(write.key, write.value)) {
  give_up = std::chrono::steady_clock::now() + std::chrono::seconds(kWriteSeconds);
}

pb::TxnRequest EtcdStore::WriteCall::transaction(std::int64_t lease) const {
  pb::TxnRequest request;
  if (write.expected || write.value == nullptr) {
    auto* compare = request.add_compare();
    compare->set_key(write.key);
    if (write.expected) {
      compare->set_target(pb::Compare::MOD);
      compare->set_mod_revision(*write.expected);
    } else {
      compare->set_target(pb::Compare::VERSION);
      compare->set_result(pb::Compare::GREATER);
      compare->set_version(0);
    }
  }
  auto* guard = request.add_compare();
  guard->set_key(fence->key);
  guard->set_target(pb::Compare::VERSION);
  guard->set_version(fence->version);
  if (write.value != nullptr) {
    auto* put = request.add_success()->mutable_request_put();
    put->set_key(write.key);
    put->set_value(*write.value);
    put->set_lease(lease);
  } else {
    if (is_marked) {
      // Before the deletion, so that the watch tells whose it is.
      auto* put = request.add_success()->mutable_request_put();
      put->set_key(fence->key + std::string(kDeletionMark));
      put->set_value(sought->mark);
      put->set_lease(fence->lease);
    }
    request.add_success()->mutable_request_delete_range()->set_key(write.key);
  }
  request.add_failure()->mutable_request_range()->set_key(write.key);
  return request;
}

void EtcdStore::WriteCall::send() {
  if (std::chrono::steady_clock::now() >= give_up) return abandon(last_error);
  fence = store.fence();
  if (fence->version == 0) return store.raise_fence(this);
  std::int64_t lease = 0;
  if (write.ttl > Duration::zero() && write.value != nullptr) {
    const auto found = store.lease_for(write.ttl, this);
    if (!found) return;
    lease = *found;
  }
  is_pausing = false;
  response.Clear();
  begin_try(kTry);
  member = store.member();
  reader = store.at(member).kv->PrepareAsyncTxn(context.get(), transaction(lease), &store.queue());
  reader->StartCall();
  reader->Finish(&response, &status, static_cast<Call*>(this));
}

void EtcdStore::WriteCall::answer(WriteAnswer given) {
  store.outcomes().end(sought);
  done(std::move(given));
  delete this;
}

void EtcdStore::WriteCall::fenced(Revision revision) {
  // At once, unless an etcd that contradicts itself would be asked without end.
  if (!may_be_written) return ++fences > kFencesAtOnce ? retry() : send();
  if (write.value == nullptr && !is_marked) return abandon(last_error);
  store.outcomes().wait(sought, revision, give_up, [this](Outcome outcome, Revision seen) {
    switch (outcome) {
      case Outcome::kWritten:
        return answer({WriteVerdict::kDone, seen, {}, {}});
      case Outcome::kUnknown:
        return abandon(last_error);
      case Outcome::kNotWritten:
        may_be_written = false;
        break;
      case Outcome::kUnwatched:
        break;
    }
    retry();
  });
}

void EtcdStore::WriteCall::abandon(const std::string& why) {
  answer({may_be_written ? WriteVerdict::kUnknown : WriteVerdict::kRejected, 0, {}, why});
}

void EtcdStore::WriteCall::retry() {
  if (store.is_closing() || std::chrono::steady_clock::now() >= give_up) return abandon(last_error);
  is_pausing = true;
  pause(alarm);
}

void EtcdStore::WriteCall::proceed(bool) {
  if (is_pausing) return send();
  if (status.ok()) return interpret();
  last_error = fmt::format("etcd at {}: {}", store.at(member).address, status.error_message());
  switch (judge(status)) {
    case Failure::kFinal:
      // A full etcd still deletes, as long as nothing is put.
      if (std::exchange(is_marked, false) && write.value == nullptr && status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
        return send();
      return answer({WriteVerdict::kRejected, 0, {}, last_error});
    case Failure::kLeaseGone:
      store.forget_leases();
      break;
    case Failure::kElsewhere:
      may_be_written = true;
      store.leave(member);
      return store.raise_fence(this);
  }
  retry();
}

void EtcdStore::WriteCall::interpret() {
  WriteAnswer given;
  given.revision = response.header().revision();
  given.verdict = WriteVerdict::kDone;
  if (response.succeeded()) return answer(std::move(given));
  const pb::KeyValue* there = first_in(response);
  // Before anybody follows, what stands there is all that is known of an earlier try.
  const bool is_ours = may_be_written && (write.value == nullptr ? there == nullptr : there != nullptr && there->value() == *write.value);
  if (is_ours) {
    if (there != nullptr) given.revision = there->mod_revision();
    return answer(std::move(given));
  }
  // When what stands there is what was expected, the fence was: it is raised for another's sake.
  const std::int64_t stands = there == nullptr ? 0 : there->mod_revision();
  const bool is_as_expected = write.expected ? stands == *write.expected : write.value != nullptr || there != nullptr;
  if (is_as_expected) {
    last_error = fmt::format("etcd at {}: it refuses a write though it holds what the write expects", store.at(member).address);
    return store.raise_fence(this);
  }
  given.verdict = WriteVerdict::kRefused;
  if (there != nullptr)
    given.present = SharedRecord{there->key(), make_bytes(there->value()), there->mod_revision(), there->create_revision()};
  answer(std::move(given));
}

EtcdStore::FenceCall::FenceCall(EtcdStore& store, Fence from) : Call(store), from(std::move(from)) {
  give_up = std::chrono::steady_clock::now() + std::chrono::seconds(kWriteSeconds);
}

void EtcdStore::FenceCall::send() {
  is_pausing = false;
  begin_try(kTry);
  member = store.member();
  is_granting = from.lease == 0;
  if (is_granting)
    send_grant();
  else
    send_raise();
}

void EtcdStore::FenceCall::send_grant() {
  pb::LeaseGrantRequest request;
  request.set_ttl(kFenceSeconds);
  granted.Clear();
  grant_reader = store.at(member).lease->PrepareAsyncLeaseGrant(context.get(), request, &store.queue());
  grant_reader->StartCall();
  grant_reader->Finish(&granted, &status, static_cast<Call*>(this));
}

void EtcdStore::FenceCall::send_raise() {
  pb::TxnRequest request;
  auto* compare = request.add_compare();
  compare->set_key(from.key);
  compare->set_target(pb::Compare::VERSION);
  compare->set_version(from.version);
  auto* put = request.add_success()->mutable_request_put();
  put->set_key(from.key);
  put->set_lease(from.lease);
  request.add_failure()->mutable_request_range()->set_key(from.key);
  response.Clear();
  reader = store.at(member).kv->PrepareAsyncTxn(context.get(), request, &store.queue());
  reader->StartCall();
  reader->Finish(&response, &status, static_cast<Call*>(this));
}

void EtcdStore::FenceCall::abandon(const std::string& why) {
  store.fence_raised(std::nullopt, why);
  delete this;
}

void EtcdStore::FenceCall::retry() {
  if (store.is_closing() || std::chrono::steady_clock::now() >= give_up)
    return abandon(fmt::format("etcd at {}: {}", store.at(member).address,
                               status.ok() ? "it neither grants a lease nor keeps a key on one" : status.error_message()));
  is_pausing = true;
  pause(alarm);
}

void EtcdStore::FenceCall::proceed(bool) {
  if (is_pausing) return send();
  if (status.ok()) return answered();
  switch (judge(status)) {
    case Failure::kFinal:
      return abandon(fmt::format("etcd at {}: {}", store.at(member).address, status.error_message()));
    case Failure::kLeaseGone:
      from = store.new_fence();
      break;
    case Failure::kElsewhere:
      store.leave(member);
      break;
  }
  retry();
}

void EtcdStore::FenceCall::answered() {
  if (is_granting) {
    from.lease = granted.error().empty() ? granted.id() : 0;
    return from.lease == 0 ? retry() : send();
  }
  if (response.succeeded()) {
    ++from.version;
    from.revision = response.header().revision();
  } else if (const pb::KeyValue* there = first_in(response); there != nullptr && there->version() > 0) {
    from.version = there->version();  // A try of this call's own without an answer.
    from.revision = there->mod_revision();
  } else {
    from = store.new_fence();
    return retry();
  }
  store.fence_raised(from, "");
  delete this;
}

EtcdStore::LatestCall::LatestCall(EtcdStore& store, std::function<void(Result<Revision>)> then) : Call(store), done(std::move(then)) {
  give_up = std::chrono::steady_clock::now() + std::chrono::seconds(kWriteSeconds);
}

void EtcdStore::LatestCall::send(bool patient) {
  pb::RangeRequest request;
  request.set_key(store.options_.prefix + "/berth");
  request.set_count_only(true);
  response.Clear();
  begin_try(kTry);
  context->set_wait_for_ready(patient);
  member = store.member();
  reader = store.at(member).kv->PrepareAsyncRange(context.get(), request, &store.queue());
  reader->StartCall();
  reader->Finish(&response, &status, static_cast<Call*>(this));
}

void EtcdStore::LatestCall::abandon(const std::string& why) {
  done(fail(ErrorCode::kUnavailable, why));
  delete this;
}

void EtcdStore::LatestCall::proceed(bool) {
  if (status.ok()) {
    done(response.header().revision());
    delete this;
    return;
  }
  const bool elsewhere = judge(status) == Failure::kElsewhere;
  if (elsewhere) store.leave(member);
  if (!elsewhere || store.is_closing() || std::chrono::steady_clock::now() >= give_up)
    return abandon(fmt::format("etcd at {}: {}", store.at(member).address, status.error_message()));
  send(true);
}

EtcdStore::LeaseCall::LeaseCall(EtcdStore& store, std::int64_t asked, std::int64_t seconds) : Call(store), asked(asked), seconds(seconds) {}

void EtcdStore::LeaseCall::send() {
  pb::LeaseGrantRequest request;
  request.set_ttl(seconds);
  begin_try(kTry);
  member = store.member();
  reader = store.at(member).lease->PrepareAsyncLeaseGrant(context.get(), request, &store.queue());
  reader->StartCall();
  reader->Finish(&response, &status, static_cast<Call*>(this));
}

void EtcdStore::LeaseCall::abandon(const std::string&) {
  store.lease_granted(asked, 0);
  delete this;
}

void EtcdStore::LeaseCall::proceed(bool) {
  if (!status.ok() && judge(status) == Failure::kElsewhere) store.leave(member);
  store.lease_granted(asked, status.ok() && response.error().empty() ? response.id() : 0);
  delete this;
}

}  // namespace berth::store::etcd
#endif
