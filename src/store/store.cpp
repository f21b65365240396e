#include "store/store.h"

#include <algorithm>

namespace berth::store {

Result<void> Store::read_back(const std::function<bool(const RecordHead&)>& wants, const std::function<Result<void>(Record)>& each) {
  std::vector<Record> records;
  auto done = read(0, [&](Record record) -> Result<void> {
    records.push_back(std::move(record));
    return {};
  });
  for (auto record = records.rbegin(); done && record != records.rend(); ++record)
    if (wants({record->revision, record->previous_revision, record->key, record->value == nullptr})) done = each(std::move(*record));
  return done;
}

}  // namespace berth::store
