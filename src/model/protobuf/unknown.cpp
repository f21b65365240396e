// Fields that the tables do not know stay with an object that is written anew.
#include <algorithm>
#include <map>

#include "model/protobuf/protobuf.h"
#include "model/protobuf/reader.h"

namespace berth::model {
namespace {

using wire::Field;
using wire::Numbers;
using wire::Reader;

/// The messages of one number in the earlier body, each taken at most once.
struct Earlier {
  std::vector<std::string_view> messages;
  std::vector<bool> is_taken;
};

class Keeper {
 public:
  /// `now` with what `before` has beside the known fields. Depth is bounded by the tables and the messages' sizes.
  static std::string merge(const Numbers& numbers, std::string_view before, std::string_view now, int depth) {
    if (depth > 100) throw wire::Malformed{};
    std::string unknown, out;
    std::map<int, Earlier> earlier;
    Field field;
    for (Reader reader(before); reader.next(field);) {
      if (const Numbers* known = numbers.find(field.number); known == nullptr) {
        unknown += field.whole;
      } else if (known->field == nullptr || inner_type(known->field->ref) != nullptr) {
        earlier[field.number].messages.push_back(field.bytes);
        earlier[field.number].is_taken.push_back(false);
      }
    }
    const auto sizes = counts(now);
    std::map<int, std::size_t> index;
    for (Reader reader(now); reader.next(field);) {
      const auto was = earlier.find(field.number);
      if (was == earlier.end()) {
        out += field.whole;
        continue;
      }
      const Numbers& known = *numbers.find(field.number);
      const std::size_t at = index[field.number]++;
      wire::append_field(out, field.number, merge_field(known, was->second, field.bytes, at, sizes.at(field.number), depth));
      if (known.field == nullptr) earlier.erase(was);
    }
    // A message that JSON spreads is gone from JSON when nothing of it is known.
    for (const auto& [number, was] : earlier)
      if (const Numbers& known = *numbers.find(number); known.field == nullptr)
        if (const auto kept = merge(known, was.messages.back(), {}, depth + 1); !kept.empty()) wire::append_field(out, number, kept);
    return out + unknown;
  }

 private:
  /// The type of the messages of a field, in lists and maps too; null: they are none of the tables'.
  static const TypeDef* inner_type(const TypeRef& ref) {
    if (ref.kind == TypeRef::Kind::kStruct) return ref.type;
    if ((ref.kind == TypeRef::Kind::kList || ref.kind == TypeRef::Kind::kMap) && ref.element->kind == TypeRef::Kind::kStruct)
      return ref.element->type;
    return nullptr;
  }

  static std::map<int, std::size_t> counts(std::string_view message) {
    std::map<int, std::size_t> out;
    Field field;
    for (Reader reader(message); reader.next(field);) ++out[field.number];
    return out;
  }

  static std::string merge_field(const Numbers& known, Earlier& was, std::string_view now, std::size_t at, std::size_t size, int depth) {
    if (known.field == nullptr) return merge(known, was.messages.back(), now, depth + 1);
    const Numbers& inner = wire::numbers_of(*inner_type(known.field->ref));
    if (known.field->ref.kind == TypeRef::Kind::kStruct) return merge(inner, was.messages.back(), now, depth + 1);
    const bool is_map = known.field->ref.kind == TypeRef::Kind::kMap;
    const auto twin = is_map ? same_key(was, now) : same_item(*known.field, was, now, at, size);
    if (!twin) return std::string(now);
    was.is_taken[*twin] = true;
    if (!is_map) return merge(inner, was.messages[*twin], now, depth + 1);
    std::string out;
    wire::append_field(out, 1, wire::first_bytes(now, 1));
    wire::append_field(out, 2, merge(inner, wire::first_bytes(was.messages[*twin], 2), wire::first_bytes(now, 2), depth + 1));
    return out;
  }

  static std::optional<std::size_t> same_key(const Earlier& was, std::string_view now) {
    const auto key = wire::first_bytes(now, 1);
    for (std::size_t i = 0; i < was.messages.size(); ++i)
      if (wire::first_bytes(was.messages[i], 1) == key) return i;
    return std::nullopt;
  }

  /// The item with the same keys; in a list without keys the one that says the same, or the one in the same place while their number is
  /// the same.
  static std::optional<std::size_t> same_item(const FieldDef& field, const Earlier& was, std::string_view now, std::size_t at,
                                              std::size_t size) {
    const TypeDef& type = *field.ref.element->type;
    std::vector<std::string> names = field.list_keys;
    if (names.empty() && !field.patch_merge_key.empty()) names.push_back(field.patch_merge_key);
    for (std::size_t i = 0; i < was.messages.size(); ++i) {
      if (was.is_taken[i]) continue;
      if (names.empty() ? known_part(type, was.messages[i]) == known_part(type, now) : has_same(type, names, was.messages[i], now))
        return i;
    }
    if (names.empty() && was.messages.size() == size && !was.is_taken[at]) return at;
    return std::nullopt;
  }

  static bool has_same(const TypeDef& type, const std::vector<std::string>& names, std::string_view a, std::string_view b) {
    return std::ranges::all_of(names, [&](const std::string& name) {
      const FieldDef* key = type.field(name);
      return key != nullptr && key->proto.size() == 1 && value_of(a, key->proto[0]) == value_of(b, key->proto[0]);
    });
  }
  static std::pair<std::string_view, std::uint64_t> value_of(std::string_view message, int number) {
    std::pair<std::string_view, std::uint64_t> out;
    Field field;
    for (Reader reader(message); reader.next(field);)
      if (field.number == number) out = {field.bytes, field.varint};
    return out;
  }
  /// The message's fields that the tables know and that say something: zeros are written by some and left out by others.
  static std::string known_part(const TypeDef& type, std::string_view message) {
    std::string out;
    const Numbers& numbers = wire::numbers_of(type);
    Field field;
    for (Reader reader(message); reader.next(field);)
      if (numbers.find(field.number) != nullptr && (field.varint != 0 || !field.bytes.empty())) out += field.whole;
    return out;
  }
};

}  // namespace

std::optional<std::string> keep_unknown_fields(std::string_view before, std::string_view now) {
  constexpr std::size_t kMark = 4;
  if (before.size() < kMark || now.size() < kMark) return std::nullopt;
  try {
    const auto type_meta = wire::first_bytes(now.substr(kMark), 1);
    const auto api_version = wire::first_bytes(type_meta, 1), kind = wire::first_bytes(type_meta, 2);
    const TypeDef* type = protobuf_type(api_version, kind);
    if (type == nullptr) return std::nullopt;
    const auto merged =
        Keeper::merge(wire::numbers_of(*type), wire::first_bytes(before.substr(kMark), 2), wire::first_bytes(now.substr(kMark), 2), 0);
    return protobuf_head(api_version, kind, merged.size()) + merged + std::string(protobuf_tail());
  } catch (const wire::Malformed&) {
    return std::nullopt;
  }
}

}  // namespace berth::model
