#include "node/csi/volume_ledger.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::node::csi {

using Kind = VolumeLedger::Effect::Kind;

void VolumeLedger::Retry::fail(std::string why, TimePoint now) {
  Duration pause = kFirstPause;
  for (int i = 0; i < failures && pause < kMostPause; ++i) pause *= 2;
  ++failures;
  not_before = now + std::min<Duration>(pause, kMostPause);
  error = std::move(why);
}

void VolumeLedger::found_staged(const std::string& key, const std::string& driver) {
  Volume& volume = volumes_[key];
  volume.driver = driver;
  volume.is_staged_first = volume.was_found = true;
  volume.stage = Presence::kMaybe;
}

void VolumeLedger::found_published(const std::string& key, const std::string& driver, const std::string& pod, bool is_persistent,
                                   bool is_mounted) {
  Volume& volume = volumes_[key];
  volume.driver = driver;
  volume.is_persistent = is_persistent;
  Publication& publication = volume.pods[pod];
  publication.presence = Presence::kMaybe;
  publication.is_wanted = publication.was_found = true;  // Until somebody says that its pod is gone.
  publication.is_mounted = is_mounted;
}

VolumeLedger::Effects VolumeLedger::settle(const std::set<std::string>& pods, TimePoint now) {
  is_settled_ = true;
  for (auto& [key, volume] : volumes_)
    for (auto& [pod, publication] : volume.pods)
      if (publication.was_found && !pods.contains(pod)) publication.is_wanted = false;
  return tick(now);
}

Result<VolumeLedger::Effects> VolumeLedger::want(const Want& want, TimePoint now) {
  if (const auto known = volumes_.find(want.volume); want.is_exclusive && known != volumes_.end())
    for (const auto& [pod, publication] : known->second.pods)
      if (pod != want.pod && (publication.is_wanted || publication.presence != Presence::kNone))
        return fail(ErrorCode::kConflict, "volume uses the ReadWriteOncePod access mode and is already in use by another pod");
  Volume& volume = volumes_[want.volume];
  volume.driver = want.driver;
  volume.is_persistent = want.is_persistent;
  volume.is_staged_first = want.is_staged_first;
  volume.expand_to = std::max(volume.expand_to, want.expand_to_bytes);
  Publication& publication = volume.pods[want.pod];
  publication.is_wanted = publication.is_asked_for = true;
  publication.republish_every = want.republish_every;
  Effects out;
  go_on(want.volume, now, out);
  return out;
}

VolumeLedger::Effects VolumeLedger::release(const std::string& pod, TimePoint now) {
  for (auto& [key, volume] : volumes_)
    if (const auto found = volume.pods.find(pod); found != volume.pods.end()) {
      if (found->second.is_wanted) found->second.retry = {};
      found->second.is_wanted = found->second.is_asked_for = false;
    }
  return tick(now);
}

VolumeLedger::Effects VolumeLedger::driver_came(const std::string& driver, TimePoint now) {
  drivers_.insert(driver);
  for (auto& [key, volume] : volumes_) {
    if (volume.driver != driver) continue;
    volume.stage_retry = volume.expand_retry = {};
    for (auto& [pod, publication] : volume.pods) publication.retry = {};
  }
  return tick(now);
}

VolumeLedger::Effects VolumeLedger::tick(TimePoint now) {
  std::vector<std::string> keys;
  for (const auto& [key, volume] : volumes_) keys.push_back(key);
  Effects out;
  for (const auto& key : keys) go_on(key, now, out);
  return out;
}

void VolumeLedger::go_on(const std::string& key, TimePoint now, Effects& out) {
  const auto found = volumes_.find(key);
  if (found == volumes_.end() || found->second.under_way) return;
  Volume& volume = found->second;
  std::erase_if(volume.pods, [](const auto& one) { return !one.second.is_wanted && one.second.presence == Presence::kNone; });
  if (volume.pods.empty() && volume.stage == Presence::kNone) {
    volumes_.erase(found);
    return;
  }
  if (!drivers_.contains(volume.driver)) return;
  volume.under_way = next(key, volume, now);
  if (volume.under_way) out.push_back(*volume.under_way);
}

/// What is given back goes first: another pod may wait for it.
std::optional<VolumeLedger::Effect> VolumeLedger::next(const std::string& key, Volume& volume, TimePoint now) {
  for (const auto& [pod, publication] : volume.pods)
    if (!publication.is_wanted && publication.presence != Presence::kNone && now >= publication.retry.not_before)
      return Effect{Kind::kUnpublish, key, pod};
  if (volume.pods.empty()) {
    if (is_settled_ && now >= volume.stage_retry.not_before) return Effect{Kind::kUnstage, key, ""};
    return std::nullopt;
  }
  return next_wanted(key, volume, now);
}

std::optional<VolumeLedger::Effect> VolumeLedger::next_wanted(const std::string& key, Volume& volume, TimePoint now) {
  // What was found and nobody asked for yet may be over: its pod says so soon.
  const auto is_asked_for = [](const auto& one) { return one.second.is_asked_for; };
  if (std::ranges::none_of(volume.pods, is_asked_for)) return std::nullopt;
  if (volume.is_staged_first && volume.stage != Presence::kThere) {
    if (now < volume.stage_retry.not_before) return std::nullopt;
    return Effect{Kind::kStage, key, ""};
  }
  for (const auto& [pod, one] : volume.pods) {
    if (!one.is_asked_for || now < one.retry.not_before) continue;
    const bool is_old = one.republish_every && now - one.published_at >= *one.republish_every;
    if (one.presence != Presence::kThere || is_old) return Effect{Kind::kPublish, key, pod};
  }
  if (volume.expand_to > volume.expanded_to && now >= volume.expand_retry.not_before)
    for (const auto& [pod, one] : volume.pods)
      if (one.is_asked_for && one.presence == Presence::kThere) return Effect{Kind::kExpand, key, pod};
  return std::nullopt;
}

VolumeLedger::Effects VolumeLedger::done(const Effect& effect, Outcome outcome, const std::string& error, TimePoint now) {
  Effects out;
  const auto found = volumes_.find(effect.volume);
  if (found == volumes_.end()) return out;
  Volume& volume = found->second;
  volume.under_way.reset();
  if (effect.kind == Kind::kStage || effect.kind == Kind::kUnstage) {
    stage_done(volume, effect, outcome, error, now);
  } else if (effect.kind == Kind::kExpand) {
    if (outcome == Outcome::kDone) {
      volume.expanded_to = volume.expand_to;
      volume.expand_retry = {};
    } else {
      volume.expand_retry.fail(error, now);
    }
  } else if (const auto publication = volume.pods.find(effect.pod); publication != volume.pods.end()) {
    publication_done(publication->second, effect, outcome, error, now);
  }
  go_on(effect.volume, now, out);
  return out;
}

void VolumeLedger::stage_done(Volume& volume, const Effect& effect, Outcome outcome, const std::string& error, TimePoint now) {
  if (outcome == Outcome::kDone) {
    volume.stage = effect.kind == Kind::kStage ? Presence::kThere : Presence::kNone;
    volume.stage_retry = {};
    return;
  }
  volume.stage_retry.fail(error, now);
  if (effect.kind == Kind::kUnstage || outcome == Outcome::kUnknown)
    volume.stage = Presence::kMaybe;
  else if (!volume.was_found)  // What an earlier process staged is there, whatever is said to a second request.
    volume.stage = Presence::kNone;
}

void VolumeLedger::publication_done(Publication& publication, const Effect& effect, Outcome outcome, const std::string& error,
                                    TimePoint now) {
  if (outcome == Outcome::kDone) {
    const bool is_published = effect.kind == Kind::kPublish;
    publication.presence = is_published ? Presence::kThere : Presence::kNone;
    publication.published_at = now;
    publication.is_mounted = is_published;
    publication.retry = {};
    return;
  }
  publication.retry.fail(error, now);
  if (effect.kind == Kind::kUnpublish)
    publication.presence = Presence::kMaybe;
  else if (publication.presence == Presence::kThere)
    return;  // Publishing again failed: the pod has what it had.
  else if (outcome == Outcome::kUnknown)
    publication.presence = Presence::kMaybe;
  else if (!publication.was_found)
    publication.presence = Presence::kNone;
}

VolumeLedger::State VolumeLedger::waiting(const Volume& volume, const std::string& error) const {
  if (!volume.under_way && !drivers_.contains(volume.driver))
    return {State::Kind::kFailed, fmt::format("driver name {} not found in the list of registered CSI drivers", volume.driver)};
  if (volume.under_way || error.empty()) return {State::Kind::kUnderWay, ""};
  return {State::Kind::kFailed, error};
}

VolumeLedger::State VolumeLedger::published(const std::string& key, const std::string& pod) const {
  const auto found = volumes_.find(key);
  const auto publication = found == volumes_.end() ? decltype(found->second.pods.end()){} : found->second.pods.find(pod);
  if (found == volumes_.end() || publication == found->second.pods.end()) return {State::Kind::kFailed, "nobody wants it"};
  if (publication->second.presence == Presence::kThere || publication->second.is_mounted) return {};
  const bool is_stage = found->second.is_staged_first && found->second.stage != Presence::kThere;
  return waiting(found->second, is_stage ? found->second.stage_retry.error : publication->second.retry.error);
}

VolumeLedger::State VolumeLedger::released(const std::string& pod) const {
  for (const auto& [key, volume] : volumes_)
    if (const auto found = volume.pods.find(pod); found != volume.pods.end()) return waiting(volume, found->second.retry.error);
  return {};
}

std::vector<std::string> VolumeLedger::in_use() const {
  std::vector<std::string> out;
  for (const auto& [key, volume] : volumes_)
    if (volume.is_persistent) out.push_back(key);
  return out;
}

}  // namespace berth::node::csi
