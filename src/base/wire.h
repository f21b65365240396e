// Protobuf's wire form, field by field, for messages whose types are not generated.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace berth::wire {

inline void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
constexpr std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}
/// `wire_type`: 0 for a number, 1 for eight bytes, 2 for bytes, texts and messages, 5 for four bytes.
inline void append_tag(std::string& out, int number, int wire_type) {
  append_varint(out, static_cast<std::uint64_t>(number) << 3 | static_cast<std::uint64_t>(wire_type));
}
inline void append_number(std::string& out, int number, std::uint64_t value) {
  append_tag(out, number, 0);
  append_varint(out, value);
}
inline void append_fixed64(std::string& out, int number, std::uint64_t value) {
  append_tag(out, number, 1);
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
}
inline void append_field(std::string& out, int number, std::string_view bytes) {
  append_tag(out, number, 2);
  append_varint(out, bytes.size());
  out += bytes;
}
/// How many bytes append_field makes of so many.
constexpr std::size_t field_size(int number, std::size_t bytes) {
  return varint_size(static_cast<std::uint64_t>(number) << 3 | 2) + varint_size(bytes) + bytes;
}

struct Malformed {};  ///< Thrown by Reader: the input ends or lies. Whoever makes one catches it.

/// One field of a message: its number and either a number or bytes.
struct Field {
  int number = 0;
  std::uint64_t varint = 0;
  std::string_view bytes;
  std::string_view whole;  ///< With its tag.
};

class Reader {
 public:
  explicit Reader(std::string_view data) : data_(data) {}
  /// False at the end.
  bool next(Field& field) {
    if (at_ >= data_.size()) return false;
    const std::size_t begin = at_;
    const std::uint64_t tag = varint();
    field = {static_cast<int>(tag >> 3), 0, {}, {}};
    switch (tag & 7) {
      case 0:
        field.varint = varint();
        break;
      case 1:
        field.varint = fixed(8);
        break;
      case 2: {
        const std::uint64_t size = varint();
        if (size > data_.size() - at_) throw Malformed{};
        field.bytes = data_.substr(at_, size);
        at_ += size;
        break;
      }
      case 5:
        field.varint = fixed(4);
        break;
      default:
        throw Malformed{};
    }
    field.whole = data_.substr(begin, at_ - begin);
    return true;
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= data_.size()) throw Malformed{};
      const auto byte = static_cast<unsigned char>(data_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw Malformed{};
  }
  std::uint64_t fixed(std::size_t size) {
    if (data_.size() - at_ < size) throw Malformed{};
    std::uint64_t value = 0;
    std::memcpy(&value, data_.data() + at_, size);
    at_ += size;
    return value;
  }
  std::string_view data_;
  std::size_t at_ = 0;
};

}  // namespace berth::wire
