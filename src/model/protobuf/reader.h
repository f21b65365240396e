// Protobuf's wire form, field by field, and which field of a type a number is. For this folder's protobuf sources.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "model/schema.h"

namespace berth::model::wire {

struct Malformed {};  // Thrown by Reader, caught within this folder: the input ends or lies.

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

/// The last field of that number, as a later one replaces an earlier; empty: not there.
std::string_view first_bytes(std::string_view message, int number);

/// What the numbers of a message mean: a field, or a message that JSON spreads into this object.
struct Numbers {
  const FieldDef* field = nullptr;
  std::vector<std::pair<int, std::unique_ptr<Numbers>>> inner;  ///< By number, ascending.
  [[nodiscard]] const Numbers* find(int number) const;
};
/// For the whole life of the process; types are those of the tables.
const Numbers& numbers_of(const TypeDef& type);

}  // namespace berth::model::wire
