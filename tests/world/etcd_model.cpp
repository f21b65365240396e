#include "tests/world/etcd_model.h"

#include <algorithm>

namespace berth::world {
namespace {

using store::Revision;
using store::SharedRecord;
using store::SharedStore;
using store::SharedWrite;
using store::WriteAnswer;
using store::WriteVerdict;

constexpr Duration kSendAgain = std::chrono::milliseconds(200);
constexpr Duration kAskWhatCame = std::chrono::seconds(1);
constexpr Duration kPatience = std::chrono::seconds(SharedStore::kWriteSeconds);

}  // namespace

void Etcd::put_down(SharedRecord record) {
  history_.push_back(record);
  Held::put_down(record);
  for (EtcdLink* link : links_) link->grew();
}

WriteAnswer Etcd::apply(const SharedWrite& write) {
  if (is_full && write.value != nullptr) return {WriteVerdict::kRejected, 0, {}, "etcdserver: mvcc: database space exceeded"};
  const auto found = items_.find(write.key);
  const bool is_there = found != items_.end();
  const Revision present = is_there ? found->second.modified : 0;
  if ((write.expected && *write.expected != present) || (write.value == nullptr && !is_there)) {
    WriteAnswer answer{WriteVerdict::kRefused, revision_, {}, {}};
    if (is_there) answer.present = SharedRecord{write.key, found->second.value, present, found->second.created};
    return answer;
  }
  const Revision revision = ++revision_;
  const Revision created = is_there ? found->second.created : revision;
  put_down({write.key, write.value, revision, write.value == nullptr ? 0 : created});
  if (write.ttl > Duration::zero()) {
    leases_.emplace(loop_.now() + turned_ + write.ttl, Lease{write.key, revision});
    loop_.schedule_after(write.ttl, [this] { end_leases(); });
  }
  return {WriteVerdict::kDone, revision, {}, {}};
}

void Etcd::end_leases() {
  while (!leases_.empty() && leases_.begin()->first <= loop_.now() + turned_) {
    const Lease lease = leases_.extract(leases_.begin()).mapped();
    const auto found = items_.find(lease.key);
    if (found != items_.end() && found->second.modified == lease.of) put_down({lease.key, nullptr, ++revision_, 0});
  }
}

void Etcd::turn_clock(Duration by) {
  turned_ += by;
  end_leases();
  for (const auto& [end, lease] : leases_) loop_.schedule_after(end - loop_.now() - turned_, [this] { end_leases(); });
}

void Etcd::compact(Revision revision) {
  compacted_ = std::max(compacted_, std::min(revision, revision_));
  while (!history_.empty() && history_.front().revision <= compacted_) history_.pop_front();
}

/// A write, or (without a key) the question for the newest revision, on its way.
struct EtcdLink::Message {
  SharedWrite write;
  std::function<void(WriteAnswer)> done;
  WriteAnswer answer;
  bool is_write = true, has_arrived = false, is_over = false;
};

EtcdLink::EtcdLink(Etcd& etcd, std::uint64_t seed, EventLoop* home)
    : etcd_(etcd), loop_(etcd.loop_), home_(home == nullptr ? etcd.loop_ : *home), random_(seed, "etcd") {
  etcd_.links_.push_back(this);
}

EtcdLink::~EtcdLink() {
  kill();
  std::erase(etcd_.links_, this);
}

Duration EtcdLink::delay() {
  const auto span = static_cast<std::uint64_t>((most_delay - least_delay).count());
  return least_delay + Duration(static_cast<std::int64_t>(span == 0 ? 0 : random_.below(span)));
}

Result<void> EtcdLink::reachable() const {
  if (is_cut || is_dead_ || !etcd_.has_leader) return fail(ErrorCode::kUnavailable, "etcd does not answer");
  return {};
}

SharedWrite EtcdLink::stored(SharedWrite write) const {
  if (as_stored) write.value = as_stored(write.value);
  return write;
}

SharedRecord EtcdLink::read(SharedRecord record) const {
  if (as_read) record.value = as_read(record.value);
  return record;
}

WriteAnswer EtcdLink::read(WriteAnswer answer) const {
  if (answer.present) answer.present = read(std::move(*answer.present));
  return answer;
}

void EtcdLink::kill() {
  alive_.reset();
  is_dead_ = true;
  follower_ = nullptr;
  for (const MessagePtr& message : std::exchange(under_way_, {})) finish(message, false);
}

void EtcdLink::finish(const MessagePtr& message, bool is_known) {
  if (std::exchange(message->is_over, true)) return;
  std::erase(under_way_, message);
  message->done(is_known ? read(message->answer) : WriteAnswer{WriteVerdict::kUnknown, 0, {}, "etcd did not answer in time"});
}

void EtcdLink::write(SharedWrite write, std::function<void(WriteAnswer)> done) {
  write = stored(std::move(write));
  if (is_calm) {
    const WriteAnswer answer = read(etcd_.apply(write));
    pump();
    return done(answer);
  }
  if (is_dead_) return done({WriteVerdict::kUnknown, 0, {}, "the server ends"});
  auto message = std::make_shared<Message>(Message{std::move(write), std::move(done), {}, true, false, false});
  under_way_.push_back(message);
  home_.schedule_after(kPatience, [this, alive = std::weak_ptr(alive_), message] {
    if (!alive.expired()) finish(message, false);
  });
  send(message);
}

void EtcdLink::latest(std::function<void(Result<Revision>)> done) {
  if (is_calm) return done(etcd_.revision());
  if (is_dead_) return done(fail(ErrorCode::kUnavailable, "the server ends"));
  auto message = std::make_shared<Message>();
  message->is_write = false;
  message->done = [done = std::move(done)](const WriteAnswer& answer) {
    if (answer.verdict == WriteVerdict::kDone) return done(answer.revision);
    done(fail(ErrorCode::kUnavailable, answer.message));
  };
  under_way_.push_back(message);
  home_.schedule_after(kPatience, [this, alive = std::weak_ptr(alive_), message] {
    if (!alive.expired()) finish(message, false);
  });
  send(message);
}

void EtcdLink::send(const MessagePtr& message) {
  const bool is_lost = is_cut || (message->is_write && random_.uniform() < loses_requests);
  if (is_lost) {
    home_.schedule_after(kSendAgain, [this, alive = std::weak_ptr(alive_), message] {
      if (!alive.expired() && !message->is_over) send(message);
    });
    return;
  }
  loop_.schedule_after(delay(), [this, alive = std::weak_ptr(alive_), message, etcd = &etcd_] {
    if (!alive.expired()) return arrive(message);
    // The server is gone, and what it had sent arrives nevertheless.
    if (message->is_write && etcd->has_leader) etcd->apply(message->write);
  });
}

void EtcdLink::arrive(const MessagePtr& message) {
  if (!etcd_.has_leader) {
    if (!message->is_over) send(message);
    return;
  }
  message->answer = message->is_write ? etcd_.apply(message->write) : WriteAnswer{WriteVerdict::kDone, etcd_.revision(), {}, {}};
  message->has_arrived = true;
  const bool is_lost = message->is_write && random_.uniform() < loses_answers;
  loop_.schedule_after(is_lost ? kAskWhatCame : delay(), [this, alive = std::weak_ptr(alive_), message] {
    if (alive.expired()) return;
    home_.post([this, alive, message] {
      if (!alive.expired()) come_back(message);
    });
  });
}

void EtcdLink::come_back(const MessagePtr& message) {
  if (!is_cut) return finish(message, true);
  home_.schedule_after(kAskWhatCame, [this, alive = std::weak_ptr(alive_), message] {
    if (!alive.expired() && !message->is_over) come_back(message);
  });
}

WriteAnswer EtcdLink::write_and_wait(SharedWrite write) {
  if (!reachable()) return {WriteVerdict::kUnknown, 0, {}, "etcd does not answer"};
  WriteAnswer answer = read(etcd_.apply(stored(std::move(write))));
  if (!is_calm && random_.uniform() < loses_answers) return {WriteVerdict::kUnknown, 0, {}, "etcd did not answer in time"};
  return answer;
}

Result<Revision> EtcdLink::read(const std::function<Result<void>(SharedRecord)>& each) {
  if (auto here = reachable(); !here) return std::unexpected(here.error());
  for (const auto& [key, item] : etcd_.items_)
    if (auto taken = each(read({key, item.value, item.modified, item.created})); !taken) return std::unexpected(taken.error());
  return etcd_.revision();
}

Result<void> EtcdLink::fill(std::vector<SharedWrite> writes, const SharedRecord&) {
  if (auto here = reachable(); !here) return here;
  for (SharedWrite& write : writes) etcd_.apply(stored(std::move(write)));
  return {};
}

void EtcdLink::follow(Revision after, store::Follower& follower) {
  follower_ = &follower;
  told_ = after;
  grew();
}

void EtcdLink::stop() { follower_ = nullptr; }

void EtcdLink::grew() {
  if (follower_ != nullptr) schedule_pump(delay() + watch_lag);
}

void EtcdLink::schedule_pump(Duration after) {
  if (std::exchange(is_pumping_, true)) return;
  home_.schedule_after(after, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    is_pumping_ = false;
    pump();
  });
}

void EtcdLink::pump() {
  if (follower_ == nullptr) return;
  if (is_cut) return schedule_pump(kSendAgain);
  if (told_ < etcd_.compacted()) {
    store::Follower* const lost = std::exchange(follower_, nullptr);
    return lost->lost();
  }
  const auto& history = etcd_.history();
  auto at = std::ranges::upper_bound(history, told_, {}, &SharedRecord::revision);
  if (at == history.end()) return;
  // A part of it: etcd's responses end anywhere between two revisions.
  auto most = is_calm ? history.size() : 1 + random_.below(20);
  std::vector<SharedRecord> records;
  for (; at != history.end() && most-- > 0; ++at) records.push_back(read(*at));
  told_ = records.back().revision;
  const bool is_more = at != history.end();
  follower_->changed(std::move(records), told_);
  if (is_more && follower_ != nullptr) is_calm ? pump() : schedule_pump(delay());
}

void EtcdLink::nudge(std::function<void(bool)> done) {
  write({etcd_.prefix_ + "/berth.dev/progress", make_bytes("{}"), {}, {}},
        [done = std::move(done)](const WriteAnswer& answer) { done(answer.verdict != WriteVerdict::kRejected); });
}

Result<std::vector<SharedRecord>> EtcdLink::find(const std::string& key_or_prefix, bool is_prefix) {
  if (auto here = reachable(); !here) return std::unexpected(here.error());
  std::vector<SharedRecord> out;
  for (auto at = etcd_.items_.lower_bound(key_or_prefix); at != etcd_.items_.end(); ++at) {
    if (is_prefix ? !at->first.starts_with(key_or_prefix) : at->first != key_or_prefix) break;
    out.push_back(read({at->first, at->second.value, at->second.modified, at->second.created}));
  }
  return out;
}

Result<Revision> EtcdLink::up_to_date_until(Revision after) {
  if (auto here = reachable(); !here) return std::unexpected(here.error());
  if (after < etcd_.compacted_) return fail(ErrorCode::kConflict, "mvcc: required revision has been compacted");
  return etcd_.history_.empty() || etcd_.history_.back().revision <= after ? etcd_.revision_ : after;
}

Result<void> EtcdLink::compact(Revision revision) {
  if (auto here = reachable(); !here) return here;
  etcd_.compact(revision);
  return {};
}

Result<SharedStore::Turn> EtcdLink::take_compaction_turn(std::int64_t version, Revision) {
  if (auto here = reachable(); !here) return std::unexpected(here.error());
  Turn turn;
  turn.is_mine = version == etcd_.compaction_version_;
  if (turn.is_mine) {
    ++etcd_.compaction_version_;
    etcd_.write_elsewhere();
  }
  turn.version = etcd_.compaction_version_;
  turn.revision = etcd_.revision();
  return turn;
}

}  // namespace berth::world
