#include "controllers/event_recorder.h"

namespace berth::controllers {
namespace {

constexpr std::size_t kMemory = 4096;
constexpr double kBurst = 25, kRefillPerSecond = 1.0 / 300;
constexpr int kCombineAfter = 10;
constexpr Duration kCombineWindow = std::chrono::minutes(10);

template <typename Map>
void bound(Map& map) {
  if (map.size() > kMemory) map.clear();
}

}  // namespace

std::optional<Write> EventRecorder::record(std::string_view source, const EventNote& note, TimePoint now) {
  const std::string about = fmt::format("{}|{}|{}|{}|{}", source, note.kind, note.ns, note.name, note.uid);
  bound(buckets_), bound(similar_), bound(known_);
  Bucket& bucket = buckets_[about];
  if (bucket.last != TimePoint{}) bucket.tokens = std::min(kBurst, bucket.tokens + kRefillPerSecond * std::chrono::duration<double>(now - bucket.last).count());
  bucket.last = now;
  if (bucket.tokens < 1) return std::nullopt;
  bucket.tokens -= 1;

  std::string message = note.message.size() > 1024 ? note.message.substr(0, 1021) + "..." : note.message;
  Similar& similar = similar_[fmt::format("{}|{}|{}", about, note.type, note.reason)];
  if (similar.last != TimePoint{} && now - similar.last > kCombineWindow) similar.messages.clear();
  similar.last = now;
  if (similar.messages.size() < kCombineAfter || similar.messages.contains(message)) ++similar.messages[message];
  const bool combined = similar.messages.size() >= kCombineAfter;
  if (combined) message = "(combined from similar events): " + message;

  Known& known = known_[fmt::format("{}|{}|{}|{}", about, note.type, note.reason, combined ? std::string_view("*") : std::string_view(message))];
  Write write;
  write.kind = kinds().event;
  write.ns = note.ns.empty() ? "default" : note.ns;
  write.may_fail = true;
  // The API server forgets Events after an hour; a count on a forgotten one would be lost.
  if (known.first != TimePoint{} && now - known.first > std::chrono::minutes(50)) known = Known{};
  if (++known.count > 1) {
    write.verb = Write::Verb::kPatch;
    write.name = known.name;
    write.body = json::Object{{"count", known.count}, {"lastTimestamp", format_rfc3339(now)}, {"message", message}};
    return write;
  }
  known.first = now;
  known.name = fmt::format("{}.{:x}{:04x}", note.name, static_cast<std::uint64_t>(now.time_since_epoch().count()) * 1000, ++sequence_ & 0xffff);
  json::Object involved{{"kind", note.kind}, {"name", note.name}, {"apiVersion", note.api_version}};
  if (!note.ns.empty()) involved["namespace"] = note.ns;
  if (!note.uid.empty()) involved["uid"] = note.uid;
  if (!note.resource_version.empty()) involved["resourceVersion"] = note.resource_version;
  const std::string time = format_rfc3339(now);
  write.verb = Write::Verb::kCreate;
  write.body = json::Object{{"apiVersion", "v1"}, {"kind", "Event"}, {"metadata", json::Object{{"name", known.name}, {"namespace", write.ns}}},
                            {"involvedObject", std::move(involved)}, {"reason", note.reason}, {"message", message}, {"type", note.type},
                            {"source", json::Object{{"component", source}}}, {"reportingComponent", source}, {"reportingInstance", host_},
                            {"firstTimestamp", time}, {"lastTimestamp", time}, {"count", 1}};
  return write;
}

}  // namespace berth::controllers
