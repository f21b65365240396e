#include "node/plugins/plugin_registry.h"

#include <algorithm>

namespace berth::node::plugins {
namespace {

Duration backoff(int failures) {
  Duration pause = kFirstRetry;
  for (int i = 1; i < failures && pause < kMostRetry; ++i) pause *= 2;
  return std::min<Duration>(pause, kMostRetry);
}

}  // namespace

PluginRegistry::Effects PluginRegistry::look(const Sockets& there, TimePoint now) {
  Effects out;
  for (const auto& [path, identity] : there) {
    Entry& entry = entries_[path];
    if (entry.is_there && entry.identity == identity) continue;
    entry.is_there = true;
    entry.identity = identity;
    ++entry.life;
    entry.failures = 0;
    entry.not_before = {};
  }
  for (auto& [path, entry] : entries_) {
    if (!there.contains(path)) entry.is_there = false;
    step(path, entry, now, out);
  }
  std::erase_if(entries_, [](const auto& one) { return !one.second.is_there && !one.second.is_busy && one.second.registered_life == 0; });
  return out;
}

PluginRegistry::Effects PluginRegistry::done(const Effect& effect, bool is_accepted, TimePoint now) {
  Effects out;
  const auto found = entries_.find(effect.path);
  if (found == entries_.end()) return out;
  Entry& entry = found->second;
  entry.is_busy = false;
  if (effect.kind == Effect::Kind::kDeregister)
    entry.registered_life = 0;
  else if (is_accepted)
    entry.registered_life = effect.life;
  else if (effect.life == entry.life)
    entry.not_before = now + backoff(++entry.failures);
  step(effect.path, entry, now, out);
  return out;
}

bool PluginRegistry::is_registered(const std::string& path) const {
  const auto found = entries_.find(path);
  return found != entries_.end() && found->second.registered_life != 0;
}

void PluginRegistry::step(const std::string& path, Entry& entry, TimePoint now, Effects& out) {
  if (entry.is_busy) return;
  const bool is_current = entry.is_there && entry.registered_life == entry.life;
  if (entry.registered_life != 0 && !is_current)
    out.push_back({Effect::Kind::kDeregister, path, entry.registered_life});
  else if (entry.is_there && entry.registered_life == 0 && now >= entry.not_before)
    out.push_back({Effect::Kind::kRegister, path, entry.life});
  else
    return;
  entry.is_busy = true;
}

}  // namespace berth::node::plugins
