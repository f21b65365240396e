// A cache over a store, with pods as small JSON texts, and a sink that records.
#pragma once
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>

#include "apiserver/cache/object_cache.h"
#include "base/json.h"
#include "store/store.h"

namespace berth::apiserver {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return TimePoint(Duration(now_us_.load())); }
  void advance(Duration d) { now_us_ += d.count(); }

 private:
  std::atomic<std::int64_t> now_us_{1'700'000'000'000'000};
};

struct TestPod {
  std::string ns = "default", name, node, phase = "Pending";
  std::vector<std::pair<std::string, std::string>> labels;
  std::size_t padding = 0;
};

inline ObjectMeta meta_of_json(std::string_view, const std::string& text) {
  ObjectMeta meta;
  auto parsed = json::parse(text);
  if (!parsed) return meta;
  meta.ns = json::get_string(*parsed, {"metadata", "namespace"});
  meta.name = json::get_string(*parsed, {"metadata", "name"});
  meta.uid = json::get_string(*parsed, {"metadata", "uid"});
  meta.labels = model::Labels::from_json(json::find(*parsed, {"metadata", "labels"}));
  meta.fields = {{"spec.nodeName", std::string(json::get_string(*parsed, {"spec", "nodeName"}))},
                 {"status.phase", std::string(json::get_string(*parsed, {"status", "phase"}))}};
  if (auto ttl = json::get_int(*parsed, {"expiresAtUs"}); ttl != 0) meta.expires_at = TimePoint(Duration(ttl));
  return meta;
}

inline Proposal pod_proposal(const TestPod& pod, std::optional<Revision> expected = {}) {
  json::Object labels;
  for (const auto& [k, v] : pod.labels) labels[k] = v;
  std::string labels_text = json::serialize(labels);
  Proposal p;
  p.key = make_key("", "pods", pod.ns, pod.name);
  p.value = fmt::format(R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"{}","uid":"uid-{}","labels":{},"resourceVersion":"")",
                        pod.name, pod.ns, pod.name, labels_text);
  p.revision_offset = p.value.size() - 1;
  p.value += fmt::format(R"(}},"spec":{{"nodeName":"{}"}},"status":{{"phase":"{}"}},"padding":"{}"}})", pod.node, pod.phase,
                         std::string(pod.padding, 'x'));
  p.meta = meta_of_json({}, p.value);
  p.expected = expected;
  return p;
}

inline Proposal delete_proposal(std::string_view ns, std::string_view name, std::optional<Revision> expected = {}) {
  Proposal p;
  p.key = make_key("", "pods", ns, name);
  p.is_delete = true;
  p.expected = expected;
  return p;
}

inline Revision revision_in_bytes(const ObjectPtr& object) {
  auto parsed = json::parse(object->text().here());
  EXPECT_TRUE(parsed.has_value()) << object->text().here();
  return parsed ? std::stoll(std::string(json::get_string(*parsed, {"metadata", "resourceVersion"}))) : -1;
}

/// Remembers events as text: "ADDED ns/name@revision"; stops accepting after `capacity`.
class RecordingSink final : public WatchSink {
 public:
  explicit RecordingSink(std::size_t capacity = SIZE_MAX) : capacity_(capacity) {}
  bool deliver(const WatchEvent& event) override {
    static constexpr const char* kNames[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    std::lock_guard lock(mutex_);
    if (events_.size() >= capacity_) return false;
    std::string text = kNames[static_cast<int>(event.type)];
    if (event.object != nullptr) {
      text += fmt::format(" {}/{}", event.object->meta.ns, event.object->meta.name);
      if (revision_in_bytes(event.object) != event.object->revision) text += " (bytes differ)";
    }
    events_.push_back(fmt::format("{}@{}", text, event.revision));
    revisions_.push_back(event.revision);
    changed_.notify_all();
    return true;
  }
  std::vector<std::string> events() const {
    std::lock_guard lock(mutex_);
    return events_;
  }
  std::vector<Revision> revisions() const {
    std::lock_guard lock(mutex_);
    return revisions_;
  }
  bool wait_for_count(std::size_t count) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return events_.size() >= count; });
  }

 private:
  std::size_t capacity_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::string> events_;
  std::vector<Revision> revisions_;
};

class CacheFixture : public testing::Test {
 protected:
  void open(std::unique_ptr<store::Store> store = store::make_memory_store(), bool synchronous = true, CacheOptions options = {}) {
    auto opened = ObjectCache::open(std::move(store), clock_, options, meta_of_json, synchronous);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    cache_ = std::move(*opened);
  }
  /// Proposes and waits for the answer.
  ProposeResult propose(Proposal proposal) {
    std::promise<ProposeResult> answer;
    cache_->propose(std::move(proposal), [&](ProposeResult result) { answer.set_value(std::move(result)); });
    return answer.get_future().get();
  }
  Revision put(const TestPod& pod) {
    auto result = propose(pod_proposal(pod));
    EXPECT_TRUE(result.has_value());
    return result ? (*result)->revision : 0;
  }
  Revision remove(std::string_view name) {
    auto result = propose(delete_proposal("default", name));
    EXPECT_TRUE(result.has_value());
    return result ? (*result)->revision : 0;
  }
  WatchFilter pods(std::string ns = {}) const { return {.prefix = make_prefix("", "pods", ns)}; }
  WatchFilter pods_on(const std::string& node) const {
    auto filter = pods();
    filter.fields.terms.push_back({"spec.nodeName", true, node});
    return filter;
  }
  std::vector<std::string> names(const ListResult& list) const {
    std::vector<std::string> all;
    for (const auto& object : list.items) all.push_back(fmt::format("{}/{}", object->meta.ns, object->meta.name));
    return all;
  }

  ManualClock clock_;
  std::unique_ptr<ObjectCache> cache_;
};

}  // namespace berth::apiserver
