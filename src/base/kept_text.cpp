#include "base/kept_text.h"

#include <zstd.h>

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/mutex.h"

namespace berth {
namespace {

/// Texts are read for moments: one lock for many of them costs nobody a wait, and no text a lock of its own.
Mutex& lock_of(const KeptText* text) {
  static std::array<Mutex, 256> locks;
  return locks[(reinterpret_cast<std::uintptr_t>(text) >> 6) % locks.size()];
}

struct Unpacking {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  Unpacking() = default;
  ~Unpacking() { ZSTD_freeDCtx(context); }
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;
};

std::string unpack(const Bytes& sample, std::string_view packed, std::size_t size) {
  thread_local Unpacking unpacking;
  std::string text;
  text.resize_and_overwrite(size, [&](char* out, std::size_t room) {
    if (sample != nullptr) ZSTD_DCtx_refPrefix(unpacking.context, sample->data(), sample->size());
    const std::size_t written = ZSTD_decompressDCtx(unpacking.context, out, room, packed.data(), packed.size());
    BERTH_CHECK(written == room, "a packed text is not what was packed");
    return written;
  });
  return text;
}

}  // namespace

HeldText KeptText::read() const {
  Bytes held;
  std::string_view packed;
  {
    const MutexLock lock(lock_of(this));
    held = held_;
    packed = {packed_.get(), packed_size_};
  }
  // What is packed stays so, and where it is.
  return HeldText(packed.data() == nullptr ? std::move(held) : make_bytes(unpack(held, packed, size_)));
}

bool KeptText::is_packed() const {
  const MutexLock lock(lock_of(this));
  return packed_ != nullptr;
}

std::shared_ptr<const void> KeptText::form() const {
  const MutexLock lock(lock_of(this));
  return form_.lock();
}

std::shared_ptr<const void> KeptText::offer_form(std::shared_ptr<const void> made) const {
  const MutexLock lock(lock_of(this));
  if (auto first = form_.lock()) return first;
  form_ = made;
  return made;
}

void KeptText::keep_packed(Bytes sample, std::string_view packed) const {
  auto own = std::make_unique_for_overwrite<char[]>(packed.size());
  std::memcpy(own.get(), packed.data(), packed.size());
  // Whoever holds the plain text goes on doing so; its last reference may go here.
  const MutexLock lock(lock_of(this));
  held_.swap(sample);
  packed_ = std::move(own);
  packed_size_ = static_cast<std::uint32_t>(packed.size());
}

}  // namespace berth
