#include "apiserver/cache/expiring_room.h"

#include "base/log.h"

namespace berth::apiserver {

void ExpiringRoom::replace(const StoredObject* before, const StoredObject* now) {
  if (now != nullptr && now->expires) bytes_ += now->text_bytes();
  if (before != nullptr && before->expires) bytes_ -= before->text_bytes();
}

std::size_t ExpiringRoom::excess() const {
  const std::size_t bytes = bytes_;
  return is_bounded() && bytes > most_bytes_ ? bytes - most_bytes_ : 0;
}

void ExpiringRoom::went_early(std::size_t count) {
  if (count > 0 && early_.fetch_add(count) == 0)
    log::warning("store", "Events take more than {} MiB: from now on the oldest go before their time", most_bytes_ >> 20);
}

}  // namespace berth::apiserver
