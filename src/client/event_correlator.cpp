#include "client/event_correlator.h"

namespace berth::client {
namespace {

// client-go, tools/record/events_cache.go
constexpr std::size_t kCombineFrom = 10;
constexpr Duration kCombineWithin = std::chrono::minutes(10);
constexpr double kSpamBurst = 25;
constexpr double kSpamPerSecond = 1.0 / 300;

std::string join(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const auto part : parts) out.append(part).push_back('\0');
  return out;
}

}  // namespace

bool EventCorrelator::is_spam(const CoreEvent& event, TimePoint now) {
  const auto& o = event.involved;
  auto& bucket = buckets_.get_or_make(join({event.component, event.host, o.kind, o.ns, o.name, o.uid, o.api_version}));
  if (!bucket.at) {
    bucket.tokens = kSpamBurst;
  } else {
    const auto seconds = std::chrono::duration<double>(now - *bucket.at).count();
    bucket.tokens = std::min(kSpamBurst, bucket.tokens + seconds * kSpamPerSecond);
  }
  bucket.at = now;
  // Refilled in many small steps a token may lack the last bit of its sum.
  if (bucket.tokens < 1 - 1e-9) return true;
  bucket.tokens -= 1;
  return false;
}

std::optional<CoreEvent> EventCorrelator::correlate(CoreEvent event, TimePoint now, const std::string& combined_name) {
  const auto& o = event.involved;
  auto key = join(
      {event.component, event.host, o.kind, o.ns, o.name, o.field_path, o.uid, o.api_version, event.type, event.reason, event.message});
  const auto group_key = join({event.component, event.host, o.kind, o.ns, o.name, o.uid, o.api_version, event.type, event.reason});
  auto& group = groups_.get_or_make(group_key);
  if (now - group.last > kCombineWithin) group.messages.clear();
  group.messages.insert(event.message);
  group.last = now;
  if (group.messages.size() >= kCombineFrom) {
    // Which one goes does not matter, as long as there are never more than the limit.
    group.messages.erase(group.messages.begin());
    event.message = "(combined from similar events): " + event.message;
    event.name = combined_name;
    event.is_combined = true;
    event.first = event.last = now;
    key = group_key;
  }
  auto& log = logs_.get_or_make(key);
  if (log.count > 0) {
    event.name = log.name;
    event.first = log.first;
    event.count = log.count + 1;
  }
  log = {event.count, event.first, event.name};
  if (is_spam(event, now)) return std::nullopt;
  return event;
}

}  // namespace berth::client
