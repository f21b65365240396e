// A store in memory that is there again after a restart, fails when it is told to, and writes down what it is asked.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/store.h"

namespace berth::apiserver {

struct Disk {
  std::shared_ptr<store::Store> store = store::make_memory_store();
  int failing_commits = 0, failing_compactions = 0;
  ErrorCode failure = ErrorCode::kUnavailable;
  std::vector<std::string> lines;
};

inline std::string line_of(const store::Record& one) {
  return fmt::format("{} of {} after {} {}{}", one.revision, one.create_revision, one.previous_revision, one.key,
                     one.value == nullptr ? " gone" : fmt::format(" {}", one.value->size()));
}

class OnDisk final : public store::Store {
 public:
  explicit OnDisk(Disk& disk) : disk_(disk) {}
  [[nodiscard]] store::StoreState state() const override { return disk_.store->state(); }
  Result<void> commit(std::span<const store::Record> records, bool sync) override {
    std::string line = sync ? "commit" : "commit, some time";
    for (const auto& one : records) line += "; " + line_of(one);
    disk_.lines.push_back(std::move(line));
    if (disk_.failing_commits > 0) {
      --disk_.failing_commits;
      return fail(disk_.failure, "scripted");
    }
    return disk_.store->commit(records, sync);
  }
  Result<void> read(store::Revision after, const std::function<Result<void>(store::Record)>& each) override {
    return disk_.store->read(after, each);
  }
  Result<void> compact(store::Revision revision) override {
    disk_.lines.push_back(fmt::format("compact {}", revision));
    if (disk_.failing_compactions > 0) {
      --disk_.failing_compactions;
      return fail(disk_.failure, "scripted");
    }
    return disk_.store->compact(revision);
  }

 private:
  Disk& disk_;
};

}  // namespace berth::apiserver
