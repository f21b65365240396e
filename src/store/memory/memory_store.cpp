#include <deque>

#include "store/store.h"

namespace berth::store {
namespace {

/// The log as a list. Compaction empties places (key cleared) and drops empty ones from the front.
class MemoryStore final : public Store {
 public:
  [[nodiscard]] StoreState state() const override { return {first_ + static_cast<Revision>(records_.size()) - 1, compacted_}; }

  Result<void> commit(std::span<const Record> records, bool) override {
    Revision next = state().last_revision;
    for (const Record& record : records) {
      if (record.revision != ++next) {
        return fail(ErrorCode::kConflict,
                    fmt::format("revision {} does not follow the store's last revision {}", record.revision, next - 1));
      }
    }
    records_.insert(records_.end(), records.begin(), records.end());
    return {};
  }

  Result<void> read(Revision after, const std::function<Result<void>(Record)>& each) override {
    for (std::size_t i = after < first_ ? 0 : static_cast<std::size_t>(after - first_ + 1); i < records_.size(); ++i) {
      if (records_[i].key.empty()) continue;
      if (auto result = each(records_[i]); !result) return result;
    }
    return {};
  }

  Result<void> compact(Revision revision) override {
    revision = std::min(revision, state().last_revision);
    for (Revision r = compacted_ + 1; r <= revision; ++r) {
      if (Revision previous = at(r).previous_revision; previous != 0) forget(previous);
      if (at(r).value == nullptr) forget(r);
    }
    compacted_ = std::max(compacted_, revision);
    while (!records_.empty() && records_.front().key.empty() && first_ <= compacted_ && records_.size() > 1) {
      records_.pop_front();
      ++first_;
    }
    return {};
  }

 private:
  Record& at(Revision revision) { return records_[static_cast<std::size_t>(revision - first_)]; }
  void forget(Revision revision) {
    if (revision >= first_) at(revision) = Record{.revision = revision};
  }

  std::deque<Record> records_;
  Revision first_ = 1;
  Revision compacted_ = 0;
};

}  // namespace

std::unique_ptr<Store> make_memory_store() { return std::make_unique<MemoryStore>(); }

}  // namespace berth::store
