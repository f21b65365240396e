#include "apiserver/cache/watchers.h"

#include <algorithm>

#include "apiserver/cache/index.h"
#include "base/shared_mutex.h"

namespace berth::apiserver {
namespace {

/// The equality term a watch is filed under; null when it has none. Its name is preferred, being the most selective.
const model::FieldSelector::Term* filing_term(const WatchFilter& filter) {
  for (const auto& term : filter.fields.terms) {
    if (term.equals && term.field != "metadata.namespace" && term.field != "metadata.name") return &term;
  }
  return nullptr;
}

std::string_view filing_name(const WatchFilter& filter) {
  if (filter.name) return *filter.name;
  for (const auto& term : filter.fields.terms) {
    if (term.equals && term.field == "metadata.name") return term.value;
  }
  return {};
}

bool send(WatchState& state, WatchEvent event) {
  state.delivered = event.revision;
  if (state.sink->deliver(event)) return true;
  state.is_closed = true;
  return false;
}

}  // namespace

bool matches(const WatchFilter& filter, const StoredObject& object) {
  if (filter.name && *filter.name != object.meta.name) return false;
  for (const auto& term : filter.fields.terms) {
    if ((object.meta.field(term.field) == term.value) != term.equals) return false;
  }
  if (!filter.labels.is_everything() && !filter.labels.matches(object.meta.labels())) return false;
  return !filter.also || filter.also(object);
}

bool deliver_change(WatchState& state, const CacheEvent& change, ObjectPtr& gone) {
  if (state.is_closed) return false;
  if (change.revision() <= state.floor) return true;
  bool matched = change.previous != nullptr && matches(state.filter, *change.previous);
  bool matches_now = !change.is_delete && matches(state.filter, *change.object);
  if (change.is_delete) {
    return matched ? send(state, {WatchEventType::kDeleted, change.object, change.previous, change.revision()}) : true;
  }
  if (matches_now) {
    auto type = matched ? WatchEventType::kModified : WatchEventType::kAdded;
    return send(state, {type, change.object, change.previous, change.revision()});
  }
  if (!matched) return true;
  if (gone == nullptr) gone = std::make_shared<const StoredObject>(*change.previous, change.revision());
  return send(state, {WatchEventType::kDeleted, gone, change.previous, change.revision()});
}

WatcherTable::List& WatcherTable::list_of(const WatchFilter& filter) {
  Bucket& bucket = buckets_[filter.prefix];
  if (auto name = filing_name(filter); !name.empty()) return bucket.by_name[std::string(name)];
  const auto* term = filing_term(filter);
  if (term == nullptr) return bucket.all;
  for (auto& [field, by_value] : bucket.by_field) {
    if (field == term->field) return by_value[term->value];
  }
  return bucket.by_field.emplace_back(term->field, ByText{}).second[term->value];
}

void WatcherTable::add(std::shared_ptr<WatchState> state) {
  WriterLock lock(mutex_);
  list_of(state->filter).push_back(std::move(state));
  ++size_;
}

void WatcherTable::remove(const std::shared_ptr<WatchState>& state) {
  WriterLock lock(mutex_);
  const WatchFilter& filter = state->filter;
  List& list = list_of(filter);
  auto at = std::find(list.begin(), list.end(), state);
  if (at == list.end()) return;
  *at = std::move(list.back());
  list.pop_back();
  --size_;
  if (!list.empty()) return;
  // Empty lists go, or names and values long gone would stay for ever.
  Bucket& bucket = buckets_[filter.prefix];
  if (auto name = filing_name(filter); !name.empty()) {
    bucket.by_name.erase(std::string(name));
  } else if (const auto* term = filing_term(filter); term != nullptr) {
    for (auto& [field, by_value] : bucket.by_field) {
      if (field == term->field) by_value.erase(term->value);
    }
  }
  bool fields_empty = std::all_of(bucket.by_field.begin(), bucket.by_field.end(), [](const auto& f) { return f.second.empty(); });
  if (bucket.all.empty() && bucket.by_name.empty() && fields_empty) buckets_.erase(filter.prefix);
}

template <typename Each>
void WatcherTable::collect(const Bucket& bucket, const CacheEvent& change, const Each& each) {
  const auto visit = [&](const List& list) {
    for (const auto& state : list) each(state);
  };
  const auto visit_from = [&](const ByText& lists, std::string_view text) {
    if (auto at = lists.find(text); at != lists.end()) visit(at->second);
  };
  visit(bucket.all);
  if (!bucket.by_name.empty()) visit_from(bucket.by_name, change.object->meta.name);
  for (const auto& [field, by_value] : bucket.by_field) {
    if (by_value.empty()) continue;
    std::string_view now = change.object->meta.field(field);
    visit_from(by_value, now);
    if (change.previous == nullptr) continue;
    if (std::string_view before = change.previous->meta.field(field); before != now) visit_from(by_value, before);
  }
}

void WatcherTable::publish(std::span<const CacheEvent> changes) {
  distribute(changes);
  gone_.assign(changes.size(), nullptr);
  // Watch by watch: each is locked once a group, and what it works on stays in the processor's cache.
  for (auto& state : touched_) {
    bool keep;
    {
      GateLock lock(state->gate);
      keep = deliver_due(*state, changes);
    }
    state->due.clear();
    if (!keep) remove(state);
  }
  touched_.clear();
  gone_.clear();
}

void WatcherTable::distribute(std::span<const CacheEvent> changes) {
  ReaderLock lock(mutex_);
  for (std::uint32_t i = 0; i < changes.size(); ++i) {
    const CacheEvent& change = changes[i];
    const auto note = [&](const std::shared_ptr<WatchState>& state) {
      if (state->due.empty()) touched_.push_back(state);
      state->due.push_back(i);
    };
    const auto look = [&](std::string_view prefix) BERTH_REQUIRES_SHARED(mutex_) {
      if (auto bucket = buckets_.find(prefix); bucket != buckets_.end()) collect(bucket->second, change, note);
    };
    std::string_view key = change.object->key;
    look(resource_prefix(key));
    if (!change.object->meta.ns.empty()) look(key.substr(0, key.rfind('/') + 1));
  }
}

void WatcherTable::skip_history() {
  List all;
  {
    const ReaderLock lock(mutex_);
    const auto take = [&](const List& list) { all.insert(all.end(), list.begin(), list.end()); };
    for (const auto& [prefix, bucket] : buckets_) {
      take(bucket.all);
      for (const auto& [name, list] : bucket.by_name) take(list);
      for (const auto& [field, by_value] : bucket.by_field)
        for (const auto& [value, list] : by_value) take(list);
    }
  }
  for (const auto& state : all) {
    bool keep = true;
    {
      const GateLock lock(state->gate);
      if (!state->is_closed) keep = state->sink->skip_history();
    }
    if (!keep) remove(state);
  }
}

bool WatcherTable::deliver_due(WatchState& state, std::span<const CacheEvent> changes) {
  if (state.is_replaying) {
    // The rest of the state, and the sink, are the starter's until it has delivered what went before.
    for (const std::uint32_t i : state.due) state.pending.push_back(changes[i]);
    return true;
  }
  const Revision before = state.delivered;
  state.floor = before;
  for (const std::uint32_t i : state.due)
    if (!deliver_change(state, changes[i], gone_[i])) return false;
  if (state.delivered != before && !state.is_closed) state.sink->flush();
  return true;
}

std::size_t WatcherTable::size() const {
  ReaderLock lock(mutex_);
  return size_;
}

}  // namespace berth::apiserver
