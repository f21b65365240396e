// What a world's store holds, and everything that it ever held: what judges compare everything with.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "store/shared.h"

namespace berth::world {

/// Keys are etcd's, whatever the store. For the loop's thread.
class Held {
 public:
  explicit Held(store::Revision revision) : revision_(revision) {}
  Held(const Held&) = delete;

  [[nodiscard]] store::Revision revision() const { return revision_; }
  struct Item {
    Bytes value;
    store::Revision created = 0, modified = 0;
  };
  [[nodiscard]] const std::map<std::string, Item, std::less<>>& items() const { return items_; }
  /// Every write below the prefix, in order, compacted or not.
  [[nodiscard]] const std::vector<store::SharedRecord>& whole_history() const { return whole_history_; }
  /// Sees every write as it happens. May be empty.
  std::function<void(const store::SharedRecord&)> on_write;

 protected:
  ~Held() = default;
  void put_down(const store::SharedRecord& record) {
    apply(record);
    whole_history_.push_back(record);
    if (on_write) on_write(record);
  }
  /// What was newer never was. Returns it.
  std::vector<store::SharedRecord> forget_after(store::Revision revision) {
    const auto first = std::ranges::upper_bound(whole_history_, revision, {}, &store::SharedRecord::revision);
    std::vector<store::SharedRecord> lost(first, whole_history_.end());
    whole_history_.erase(first, whole_history_.end());
    revision_ = revision;
    if (lost.empty()) return lost;
    items_.clear();
    for (const auto& record : whole_history_) apply(record);
    return lost;
  }
  store::Revision revision_;
  std::map<std::string, Item, std::less<>> items_;

 private:
  void apply(const store::SharedRecord& record) {
    if (record.value == nullptr)
      items_.erase(record.key);
    else
      items_[record.key] = {record.value, record.create_revision, record.revision};
  }
  std::vector<store::SharedRecord> whole_history_;
};

}  // namespace berth::world
