#ifdef BERTH_WITH_ETCD
#include "store/etcd/etcd_store.h"

#include <fmt/format.h>

#include <future>
#include <random>

#include "base/go/strings.h"
#include "base/log.h"
#include "base/mutex.h"
#include "store/etcd/calls.h"

namespace berth::store::etcd {
namespace {

constexpr std::string_view kFences = "/berth.dev/fence/";  // The stores' own, shown to nobody.
constexpr std::size_t kFirstPage = 500;                    // Keys of the first page when everything is read, then as many as make …
constexpr std::size_t kPageBytes = 64U << 20;              // … this much, at the size of those on the page before:
constexpr std::size_t kMostOnPage = 50'000;                // large objects may follow small ones.
constexpr int kPageSeconds = 180;
constexpr int kMostUses = 1000;  // Keys on one lease …
constexpr auto kPauseBetweenStreams = std::chrono::milliseconds(100);
constexpr const char* kCompactionKey = "compact_rev_key";  // kube-apiserver's, outside of the prefix.

/// gRPC's word for an answer beyond EtcdOptions::most_answer_bytes.
bool is_too_large(const Error& error) { return error.message.contains("larger than max"); }

std::string shown(std::string_view key) { return go::quote(key.substr(0, 256)); }

SharedRecord record_of(pb::KeyValue& kv, bool is_gone) {
  SharedRecord record;
  record.key = std::move(*kv.mutable_key());
  record.revision = kv.mod_revision();
  record.create_revision = kv.create_revision();
  if (!is_gone) record.value = make_bytes(std::move(*kv.mutable_value()));
  return record;
}

}  // namespace

std::string prefix_end(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) ++prefix.back();
  return prefix;
}

Deadlines::Watch end_late(grpc::ClientContext& context, std::chrono::milliseconds time) {
  return Deadlines::of_process().watch(time + kLate, [&context] { context.TryCancel(); });
}

EtcdStore::EtcdStore(EtcdOptions options, std::vector<Member> members) : options_(std::move(options)), members_(std::move(members)) {
  fence_ = std::make_shared<const Fence>(new_fence());
  queue_thread_ = std::thread([this] { run_queue(); });
  guard_thread_ = std::thread([this] { run_guard(); });
}

EtcdStore::~EtcdStore() {
  closing_ = true;
  stop();
  watch_wake_.notify_all();
  guard_thread_.join();
  // Every call ends by its own deadline, some seconds at most.
  for (int open = open_calls_.load(); open != 0; open = open_calls_.load()) open_calls_.wait(open);
  queue_.Shutdown();
  queue_thread_.join();
  tend_fence(false);
}

Fence EtcdStore::new_fence() const {
  std::random_device random;
  return {fmt::format("{}{}{:08x}{:08x}", options_.prefix, kFences, random(), random()), 0, 0, 0};
}

bool EtcdStore::is_fence(std::string_view key) const {
  return key.starts_with(options_.prefix) && key.substr(options_.prefix.size()).starts_with(kFences);
}

FencePtr EtcdStore::fence() {
  const MutexLock lock(calls_mutex_);
  return fence_;
}

void EtcdStore::tend_fence(bool renews) {
  const auto fence = this->fence();
  if (fence->lease == 0) return;
  const std::chrono::seconds time(renews ? 2 : 1);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + time);
  const auto watch = end_late(context, time);
  Member& used = members_[member()];
  if (!renews) {
    pb::LeaseRevokeRequest request;
    request.set_id(fence->lease);
    pb::LeaseRevokeResponse answer;
    used.lease->LeaseRevoke(&context, request, &answer);  // Otherwise it runs out by itself.
    return;
  }
  // One that ran out nevertheless is noticed by the next write.
  const auto stream = used.lease->LeaseKeepAlive(&context);
  pb::LeaseKeepAliveRequest request;
  request.set_id(fence->lease);
  pb::LeaseKeepAliveResponse answer;
  if (stream->Write(request)) stream->Read(&answer);
  context.TryCancel();
  stream->Finish();
}

void EtcdStore::leave(std::size_t failed) {
  std::size_t expected = failed;
  if (current_.compare_exchange_strong(expected, (failed + 1) % members_.size()) && members_.size() > 1) reconnect_from(failed);
}

void EtcdStore::run_queue() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) static_cast<Call*>(tag)->over(ok);
}

void EtcdStore::write(SharedWrite write, std::function<void(WriteAnswer)> done) {
  (new WriteCall(*this, std::move(write), std::move(done)))->send();
}

void EtcdStore::latest(std::function<void(Result<Revision>)> done) { (new LatestCall(*this, std::move(done)))->send(false); }

std::optional<std::int64_t> EtcdStore::lease_for(Duration ttl, WriteCall* call) {
  // Keys share a lease for a while, as kube-apiserver's Events do: at most a twentieth longer than asked, one minute.
  const auto asked = std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::seconds>(ttl).count(), 1);
  const auto shared_for = std::min<std::int64_t>(60, asked / 20);
  const auto seconds = asked + shared_for;
  LeaseCall* grant = nullptr;
  {
    const MutexLock lock(calls_mutex_);
    LeaseState& lease = leases_[asked];
    if (lease.id != 0 && lease.used < kMostUses && std::chrono::steady_clock::now() < lease.until) {
      ++lease.used;
      return lease.id;
    }
    lease.waiting.push_back(call);
    if (lease.is_asked) return std::nullopt;
    lease.is_asked = true;
    grant = new LeaseCall(*this, asked, seconds);
  }
  grant->send();
  return std::nullopt;
}

void EtcdStore::lease_granted(std::int64_t asked, std::int64_t id) {
  std::vector<WriteCall*> waiting;
  {
    const MutexLock lock(calls_mutex_);
    LeaseState& lease = leases_[asked];
    lease.is_asked = false;
    lease.id = id;
    lease.used = 0;
    lease.until =
        std::chrono::steady_clock::now() + std::chrono::seconds(std::max<std::int64_t>(std::min<std::int64_t>(60, asked / 20), 1));
    waiting.swap(lease.waiting);
  }
  for (WriteCall* call : waiting) {
    if (id != 0)
      call->send();
    else
      call->retry();
  }
}

void EtcdStore::raise_fence(WriteCall* call) {
  FenceCall* raise = nullptr;
  {
    const MutexLock lock(calls_mutex_);
    if (fence_ == call->fence) {
      fenced_.push_back(call);
      if (is_raising_) return;
      is_raising_ = true;
      raise = new FenceCall(*this, *call->fence);
    }
  }
  if (raise != nullptr) return raise->send();
  call->fenced(fence()->revision);
}

void EtcdStore::fence_raised(std::optional<Fence> now, const std::string& why) {
  const auto revision = now ? std::optional(now->revision) : std::nullopt;
  std::vector<WriteCall*> waiting;
  {
    const MutexLock lock(calls_mutex_);
    if (now) fence_ = std::make_shared<const Fence>(std::move(*now));
    is_raising_ = false;
    waiting.swap(fenced_);
  }
  for (WriteCall* call : waiting) {
    if (revision)
      call->fenced(*revision);
    else
      call->abandon(why);
  }
}

void EtcdStore::forget_leases() {
  const MutexLock lock(calls_mutex_);
  for (auto& [seconds, lease] : leases_) lease.id = 0;
}

Result<void> EtcdStore::ask(const std::function<grpc::Status(Member&, grpc::ClientContext&)>& method, int seconds) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (;;) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
    const auto watch = end_late(context, std::chrono::seconds(seconds));
    const std::size_t used = member();
    const grpc::Status status = method(members_[used], context);
    if (status.ok()) return {};
    const bool elsewhere = judge(status) == Failure::kElsewhere;
    if (elsewhere) leave(used);
    if (!elsewhere || closing_ || std::chrono::steady_clock::now() >= give_up) {
      const auto code = status.error_code() == grpc::StatusCode::OUT_OF_RANGE ? ErrorCode::kConflict : ErrorCode::kUnavailable;
      return fail(code, fmt::format("etcd at {}: {}", members_[used].address, status.error_message()));
    }
    MutexLock lock(watch_mutex_);
    watch_wake_.wait_for(watch_mutex_, kPauseBetweenStreams, [this]() BERTH_REQUIRES(watch_mutex_) { return closing_.load(); });
  }
}

Result<Revision> EtcdStore::read(const std::function<Result<void>(SharedRecord)>& each) {
  pb::RangeRequest request;
  request.set_key(options_.prefix + "/");
  request.set_range_end(prefix_end(options_.prefix + "/"));
  request.set_limit(kFirstPage);
  using Page = Result<std::unique_ptr<pb::RangeResponse>>;
  const auto fetch = [this](pb::RangeRequest of) -> Page {
    for (;;) {
      auto page = std::make_unique<pb::RangeResponse>();
      auto done =
          ask([&](Member& member, grpc::ClientContext& context) { return member.kv->Range(&context, of, page.get()); }, kPageSeconds);
      if (done) return page;
      if (of.limit() <= 1 || !is_too_large(done.error())) return std::unexpected(done.error());
      of.set_limit(std::max<std::int64_t>(of.limit() / 16, 1));
    }
  };
  std::string last;  // Keys come in their order, or the reading has no end.
  Page page = fetch(request);
  for (;;) {
    if (!page) return std::unexpected(page.error());
    auto& kvs = *(*page)->mutable_kvs();
    if (request.revision() == 0) request.set_revision((*page)->header().revision());
    const bool more = (*page)->more() && !kvs.empty();
    std::future<Page> next;
    if (more) {
      // For each page etcd looks at all keys that follow, which takes it a second or more where there are a million: few and large ones.
      // The next is on its way while this one is looked at.
      request.set_key(kvs[kvs.size() - 1].key() + '\0');
      const auto bytes = std::max<std::size_t>((*page)->ByteSizeLong() / static_cast<std::size_t>(kvs.size()), 1);
      request.set_limit(static_cast<std::int64_t>(std::clamp<std::size_t>(kPageBytes / bytes, kFirstPage, kMostOnPage)));
      next = std::async(std::launch::async, fetch, request);
    }
    for (pb::KeyValue& kv : kvs) {
      if (kv.key() <= last || !kv.key().starts_with(options_.prefix + "/")) {
        if (next.valid()) next.wait();
        return fail(ErrorCode::kCorrupt, fmt::format("etcd at {}: asked for what is below {}/, it answers {} behind {}",
                                                     members_[member()].address, options_.prefix, shown(kv.key()), shown(last)));
      }
      last = kv.key();
      if (!is_fence(kv.key()))
        if (auto taken = each(record_of(kv, false)); !taken) return std::unexpected(taken.error());
    }
    if (!more) return request.revision();
    page = next.get();
  }
}

Result<std::int64_t> EtcdStore::fill_lease(std::int64_t seconds) {
  const MutexLock lock(fill_mutex_);
  if (const auto found = fill_leases_.find(seconds); found != fill_leases_.end()) return found->second;
  pb::LeaseGrantRequest request;
  request.set_ttl(seconds);
  pb::LeaseGrantResponse answer;
  auto done = ask([&](Member& member, grpc::ClientContext& context) { return member.lease->LeaseGrant(&context, request, &answer); }, 10);
  if (!done) return std::unexpected(done.error());
  return fill_leases_[seconds] = answer.id();
}

Result<void> EtcdStore::fill(std::vector<SharedWrite> writes, const SharedRecord& marker) {
  pb::TxnRequest request;
  auto* compare = request.add_compare();
  compare->set_key(marker.key);
  compare->set_target(pb::Compare::MOD);
  compare->set_mod_revision(marker.revision);
  for (SharedWrite& write : writes) {
    auto* put = request.add_success()->mutable_request_put();
    put->set_key(std::move(write.key));
    put->set_value(*write.value);
    if (write.ttl == Duration::zero()) continue;
    const auto lease = fill_lease(std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::seconds>(write.ttl).count() / 60, 1) * 60);
    if (!lease) return std::unexpected(lease.error());
    put->set_lease(*lease);
  }
  pb::TxnResponse answer;
  auto done = ask([&](Member& member, grpc::ClientContext& context) { return member.kv->Txn(&context, request, &answer); }, 30);
  if (!done) return done;
  if (!answer.succeeded())
    return fail(ErrorCode::kConflict,
                fmt::format("{} was changed by somebody else: who fills {} must be alone", marker.key, options_.prefix));
  return {};
}

Result<std::vector<SharedRecord>> EtcdStore::find(const std::string& key_or_prefix, bool is_prefix) {
  pb::RangeRequest request;
  request.set_key(key_or_prefix);
  if (is_prefix) request.set_range_end(prefix_end(key_or_prefix));
  pb::RangeResponse answer;
  auto done = ask([&](Member& member, grpc::ClientContext& context) { return member.kv->Range(&context, request, &answer); }, 5);
  if (!done) return std::unexpected(done.error());
  std::vector<SharedRecord> found;
  for (pb::KeyValue& kv : *answer.mutable_kvs()) found.push_back(record_of(kv, false));
  return found;
}

Result<Revision> EtcdStore::up_to_date_until(Revision after) {
  const auto range = [this](const std::function<void(pb::RangeRequest&)>& choose) -> Result<pb::RangeResponse> {
    pb::RangeRequest request;
    request.set_key(options_.prefix + "/");
    request.set_range_end(prefix_end(options_.prefix + "/"));
    choose(request);
    pb::RangeResponse answer;
    auto done = ask([&](Member& member, grpc::ClientContext& context) { return member.kv->Range(&context, request, &answer); }, 5);
    if (!done) return std::unexpected(done.error());
    return answer;
  };
  const auto newer = range([&](pb::RangeRequest& request) {
    request.set_min_mod_revision(after + 1);
    request.set_keys_only(true);
    request.set_limit(1);
  });
  if (!newer) return std::unexpected(newer.error());
  if (!newer->kvs().empty()) return after;
  // Nothing is new: as many as there were are the same.
  const Revision now = newer->header().revision();
  std::int64_t counts[2] = {};
  for (int i = 0; i < 2; ++i) {
    const auto counted = range([&](pb::RangeRequest& request) {
      request.set_revision(i == 0 ? after : now);
      request.set_count_only(true);
    });
    if (!counted) return std::unexpected(counted.error());
    counts[i] = counted->count();
  }
  return counts[0] == counts[1] ? now : after;
}

Result<void> EtcdStore::compact(Revision revision) {
  pb::CompactionRequest request;
  request.set_revision(revision);
  pb::CompactionResponse answer;
  auto done = ask([&](Member& member, grpc::ClientContext& context) { return member.kv->Compact(&context, request, &answer); }, 30);
  // Somebody compacted beyond it: etcd has one code for that and for a revision that is not there yet, and words that differ.
  if (!done && done.error().code == ErrorCode::kConflict && done.error().message.find("compacted") != std::string::npos) return {};
  return done;
}

Result<SharedStore::Turn> EtcdStore::take_compaction_turn(std::int64_t version, Revision revision) {
  pb::TxnRequest request;
  auto* compare = request.add_compare();
  compare->set_key(kCompactionKey);
  compare->set_target(pb::Compare::VERSION);
  compare->set_version(version);
  auto* put = request.add_success()->mutable_request_put();
  put->set_key(kCompactionKey);
  put->set_value(std::to_string(revision));
  request.add_failure()->mutable_request_range()->set_key(kCompactionKey);
  pb::TxnResponse answer;
  auto done = ask([&](Member& member, grpc::ClientContext& context) { return member.kv->Txn(&context, request, &answer); }, 5);
  if (!done) return std::unexpected(done.error());
  Turn turn;
  turn.revision = answer.header().revision();
  turn.is_mine = answer.succeeded();
  turn.version = version + 1;
  if (!turn.is_mine) {
    const pb::KeyValue* there = first_in(answer);
    turn.version = there == nullptr ? 0 : there->version();
  }
  return turn;
}

void EtcdStore::nudge(std::function<void(bool)> done) {
  SharedWrite mark;
  mark.key = options_.prefix + "/berth.dev/progress";
  mark.value = make_bytes("{}");
  write(std::move(mark), [done = std::move(done)](const WriteAnswer& answer) { done(answer.verdict != WriteVerdict::kRejected); });
}

void EtcdStore::follow(Revision after, Follower& follower) {
  stop();
  {
    const MutexLock lock(watch_mutex_);
    watch_stopping_ = false;
  }
  reached_ = after;
  following_ = true;
  outcomes_.begin_following();
  watch_thread_ = std::thread([this, after, &follower] { run_watch(after, follower); });
}

void EtcdStore::stop() {
  {
    const MutexLock lock(watch_mutex_);
    watch_stopping_ = true;
    if (watch_context_ != nullptr) watch_context_->TryCancel();
  }
  watch_wake_.notify_all();
  if (watch_thread_.joinable()) watch_thread_.join();
  following_ = false;
  outcomes_.stop_following();
}

void EtcdStore::reconnect() {
  leave(member());
  const MutexLock lock(watch_mutex_);
  if (watch_context_ != nullptr) watch_context_->TryCancel();
}

void EtcdStore::run_watch(Revision, Follower& follower) {
  for (;;) {
    const bool is_lost = !read_stream(follower);
    MutexLock lock(watch_mutex_);
    if (watch_stopping_) return;
    if (is_lost) break;
    watch_wake_.wait_for(watch_mutex_, kPauseBetweenStreams, [this]() BERTH_REQUIRES(watch_mutex_) { return watch_stopping_; });
    if (watch_stopping_) return;
  }
  following_ = false;
  follower.lost();
}

bool EtcdStore::read_stream(Follower& follower) {
  grpc::ClientContext* context = nullptr;
  const std::size_t used = member();
  {
    const MutexLock lock(watch_mutex_);
    if (watch_stopping_) return true;
    watch_context_ = std::make_unique<grpc::ClientContext>();
    // A member that lost its leader ends the stream instead of standing still.
    watch_context_->AddMetadata("hasleader", "true");
    context = watch_context_.get();
    watch_member_ = used;
  }
  const auto stream = members_[used].watch->Watch(context);
  pb::WatchRequest request;
  auto* create = request.mutable_create_request();
  create->set_key(options_.prefix + "/");
  create->set_range_end(prefix_end(options_.prefix + "/"));
  create->set_start_revision(reached_.load() + 1);
  create->set_progress_notify(true);
  bool is_lost = false;
  pb::WatchResponse response;
  if (stream->Write(request)) {
    while (stream->Read(&response)) {
      if (response.canceled()) {
        is_lost = response.compact_revision() != 0;
        context->TryCancel();
        break;
      }
      if (!response.created()) tell(response, follower);
    }
  }
  const grpc::Status status = stream->Finish();
  bool is_failed = false;
  {
    const MutexLock lock(watch_mutex_);
    is_failed = !watch_stopping_ && !is_lost;
  }
  if (is_failed) {
    complain(members_[used].address, status.error_message().empty() ? "cancelled" : status.error_message());
    leave(used);
    // The same would come again: what it holds is read in pages.
    is_lost = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && status.error_message().contains("larger than max");
  }
  return !is_lost;
}

void EtcdStore::complain(const std::string& address, const std::string& why) {
  constexpr auto kSilence = std::chrono::seconds(10);
  const auto now = std::chrono::steady_clock::now();
  if (why == last_complaint_ && now - complained_at_ < kSilence) return;
  last_complaint_ = why;
  complained_at_ = now;
  log::warning("etcd", "the watch at {} ended ({}); it goes on at another member or again", address, why);
}

void EtcdStore::tell(pb::WatchResponse& response, Follower& follower) {
  // What the header says is the member's revision, not how far this watch is, unless the answer is about nothing else.
  const int events = response.events_size();
  const Revision reached = events == 0 ? response.header().revision() : response.events(events - 1).kv().mod_revision();
  if (reached <= reached_.load()) return;
  std::vector<SharedRecord> records;
  records.reserve(static_cast<std::size_t>(events));
  std::pair<std::string, Revision> mark;  // Of a deletion, and when.
  for (pb::Event& event : *response.mutable_events()) {
    pb::KeyValue& kv = *event.mutable_kv();
    const bool is_gone = event.type() == pb::Event::DELETE;
    if (is_fence(kv.key())) {
      if (!is_gone && kv.key().ends_with(kDeletionMark)) mark = {kv.value(), kv.mod_revision()};
      continue;
    }
    if (!is_gone)
      outcomes_.saw_put(kv.key(), kv.value(), kv.mod_revision());
    else if (mark.second == kv.mod_revision())
      outcomes_.saw_deletion(kv.key(), mark.first, kv.mod_revision());
    records.push_back(record_of(kv, is_gone));
  }
  follower.changed(std::move(records), reached);
  reached_ = reached;
  outcomes_.reached(reached);
}

void EtcdStore::run_guard() {
  constexpr auto kLook = std::chrono::seconds(1);
  constexpr int kRenewal = kFenceSeconds / 4;  // Looks.
  int behind = 0, looks = 0;
  while (!closing_) {
    {
      MutexLock lock(watch_mutex_);
      watch_wake_.wait_for(watch_mutex_, kLook, [this]() BERTH_REQUIRES(watch_mutex_) { return closing_.load(); });
      if (closing_) return;
    }
    outcomes_.expire(Outcomes::Clock::now());
    // A member that went is tried again every second, by this clock and not only by gRPC's (base/deadlines.h).
    for (const Member& one : members_) grpc::experimental::ChannelResetConnectionBackoff(one.channel.get());
    if (++looks % kRenewal == 0) tend_fence(true);
    if (!following_) continue;
    const Revision before = reached_.load();
    const std::size_t used = member();
    pb::RangeRequest request;
    request.set_key(options_.prefix + "/berth");
    request.set_count_only(true);
    pb::RangeResponse answer;
    constexpr std::chrono::seconds kTime(2);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kTime);
    const auto watch = end_late(context, kTime);
    const grpc::Status status = members_[used].kv->Range(&context, request, &answer);
    if (!status.ok()) {
      leave(used);
      // With one member there is nowhere else to go, and its stream goes on when it does.
      if (members_.size() > 1) reconnect_from(used);
      continue;
    }
    // Nothing came though there is something: of others' keys perhaps, which a mark of our own tells apart.
    behind = answer.header().revision() > before && reached_.load() == before ? behind + 1 : 0;
    if (behind == 2) nudge([](bool) {});
    if (behind >= 5) {
      log::warning("etcd", "the watch at {} gets nothing any more: it is begun anew", members_[used].address);
      reconnect();
      behind = 0;
    }
  }
}

void EtcdStore::reconnect_from(std::size_t used) {
  const MutexLock lock(watch_mutex_);
  if (watch_member_ == used && watch_context_ != nullptr) watch_context_->TryCancel();
}

}  // namespace berth::store::etcd
#endif
