// Which field of a type a number in protobuf's wire form is. For this folder's sources.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "base/wire.h"
#include "model/schema.h"

namespace berth::model::wire {

using berth::wire::append_field;
using berth::wire::Field;
using berth::wire::Malformed;
using berth::wire::Reader;

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
