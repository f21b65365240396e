// Events with Kubernetes' correlation (client-go tools/record): repeats raise a count, many alike are combined, a noisy object is throttled.
#pragma once
#include <map>
#include <optional>
#include <unordered_map>

#include "controllers/controller.h"

namespace berth::controllers {

/// Pure: turns a note and the time into the request to send. The memory of recent events is bounded (4096 a table, oldest forgotten).
class EventRecorder {
 public:
  explicit EventRecorder(std::string host) : host_(std::move(host)) {}
  /// The write that records the note, from `source`; nullopt when the object has had its burst of 25 (one more each 5 minutes).
  std::optional<Write> record(std::string_view source, const EventNote& note, TimePoint now);

 private:
  struct Bucket { double tokens = 25; TimePoint last{}; };
  struct Similar { std::map<std::string, int> messages; TimePoint last{}; };
  struct Known { std::string name; std::int64_t count = 0; TimePoint first{}; };
  std::string host_;
  std::uint64_t sequence_ = 0;
  std::unordered_map<std::string, Bucket> buckets_;
  std::unordered_map<std::string, Similar> similar_;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace berth::controllers
