// What the informers of one component have to do with each other.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "client/informer.h"

namespace berth::client {
namespace {

/// So long some may be behind where others are not, before the component goes on without them.
constexpr Duration kPatience = std::chrono::seconds(30);

}  // namespace

Informer& InformerFactory::get(const Gvr& gvr, bool is_optional) {
  auto& informer = informers_[gvr];
  if (!informer) {
    informer = std::make_unique<Informer>(client_, gvr, InformerOptions{.is_optional = is_optional});
    informer->on_behind([this, gvr](bool is_behind) { one_changed(gvr, is_behind); });
    if (is_started_) informer->start();
  }
  return *informer;
}

void InformerFactory::start() {
  is_started_ = true;
  for (const auto& [gvr, informer] : informers_) informer->start();
}

bool InformerFactory::has_synced() const {
  return std::all_of(informers_.begin(), informers_.end(), [](const auto& entry) { return entry.second->has_synced(); });
}

InformerFactory::~InformerFactory() {
  if (client_.loop() != nullptr) client_.loop()->cancel(patience_);
}

void InformerFactory::one_changed(const Gvr& gvr, bool is_behind) {
  is_behind ? (void)behind_.insert(gvr) : (void)behind_.erase(gvr);
  if (!is_behind)  // Where one is back the others need not pause.
    for (const Gvr& other : std::set(behind_)) informers_.at(other)->retry_now();
  // While nobody knows anything new, nothing can be done anyway.
  const bool is_anybody_current = std::ranges::any_of(informers_, [](const auto& one) { return one.second->is_current(); });
  if (behind_.empty() || !is_anybody_current)
    client_.loop()->cancel(std::exchange(patience_, TimerId::kNone));
  else if (patience_ == TimerId::kNone)
    patience_ = client_.loop()->schedule_after(kPatience, [this] { give_up(); });
  tell_behind(!behind_.empty());
}

void InformerFactory::give_up() {
  patience_ = TimerId::kNone;
  std::vector<std::string> names;
  for (const Gvr& one : std::exchange(behind_, {})) names.push_back(one.resource);
  log::warning("informer", "going on with what was known of {}: they cannot be watched", fmt::join(names, ", "));
  tell_behind(false);
}

void InformerFactory::tell_behind(bool now) {
  if (std::exchange(is_told_behind_, now) != now && behind_changed_) behind_changed_(now);
}

std::vector<Informer*> InformerFactory::all() const {
  std::vector<Informer*> out;
  for (const auto& [gvr, informer] : informers_) out.push_back(informer.get());
  return out;
}

/// Calls `done` once `ask` has answered for each of them.
static void when_all(const std::vector<Informer*>& informers, void (Informer::*ask)(std::function<void()>), std::function<void()> done) {
  auto left = std::make_shared<std::size_t>(informers.size());
  if (*left == 0) return done();
  auto shared = std::make_shared<std::function<void()>>(std::move(done));
  for (Informer* informer : informers) {
    (informer->*ask)([left, shared] {
      if (--*left == 0) (*shared)();
    });
  }
}

void catch_up(const std::vector<std::unique_ptr<Informer>>& informers, std::function<void()> done) {
  std::vector<Informer*> all;
  for (const auto& informer : informers) all.push_back(informer.get());
  when_all(all, &Informer::catch_up, std::move(done));
}

void InformerFactory::on_synced(std::function<void()> synced) { when_all(all(), &Informer::on_synced, std::move(synced)); }
void InformerFactory::catch_up(std::function<void()> done) { when_all(all(), &Informer::catch_up, std::move(done)); }

}  // namespace berth::client
