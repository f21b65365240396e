// Texts that a process keeps for long, mostly unread: stored objects, in the server's cache and in those of components beside it.
//
//   plain --(old, and nobody changed it: TextPacker::pack)--> packed against a sample, a text like it; reading makes a copy
//
// A pod of 5.3 KB takes about 300 bytes then, and reading it a microsecond.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace berth {

/// Somebody's hold on a text: what points into it is valid as long as this, or a copy of shared(), lives.
class HeldText {
 public:
  HeldText() = default;
  explicit HeldText(Bytes bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] const std::string& operator*() const& { return *bytes_; }
  const std::string& operator*() const&& = delete;  ///< The text may be gone behind the expression: keep the hold, or say here().
  [[nodiscard]] const std::string* operator->() const { return bytes_.get(); }
  /// For a call within this expression, which keeps no view of it.
  [[nodiscard]] const std::string& here() const { return *bytes_; }
  [[nodiscard]] const Bytes& shared() const { return bytes_; }
  explicit operator bool() const { return bytes_ != nullptr; }

 private:
  Bytes bytes_;
};

/// One immutable text, the same for all who keep it. Thread-safe.
class KeptText {
 public:
  explicit KeptText(Bytes plain) : held_(std::move(plain)), size_(static_cast<std::uint32_t>(held_->size())) {}
  explicit KeptText(std::string plain) : KeptText(make_bytes(std::move(plain))) {}
  KeptText(const KeptText&) = delete;
  KeptText& operator=(const KeptText&) = delete;

  /// As it is while it is plain; of a packed one a copy of the caller's own.
  [[nodiscard]] HeldText read() const;
  [[nodiscard]] std::size_t size() const { return size_; }  ///< In bytes, when plain.
  [[nodiscard]] bool is_packed() const;
  /// What a reader made of the text and offered, for all readers after him as long as one keeps it; null before and after that.
  [[nodiscard]] std::shared_ptr<const void> form() const;
  /// Of several readers' the first stays, and is returned. Forms are of one type in a process: a component's object.
  std::shared_ptr<const void> offer_form(std::shared_ptr<const void> made) const;

 private:
  friend class TextPacker;
  void keep_packed(Bytes sample, std::string_view packed) const;

  mutable Bytes held_;  ///< The text; when packed the sample, or null without one.
  mutable std::unique_ptr<char[]> packed_;
  mutable std::weak_ptr<const void> form_;
  std::uint32_t size_;
  mutable std::uint32_t packed_size_ = 0;
};

}  // namespace berth
