#include "model/protobuf/protobuf.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/base64.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "model/protobuf/reader.h"

namespace berth::model {
namespace {

using json::Object;
using json::Value;
using Kind = TypeRef::Kind;

using wire::Field;
using wire::first_bytes;
using wire::Malformed;
using wire::Numbers;
using wire::Reader;

/// What is seen on the way that is in no table.
struct Seen {
  bool unknown = false;
};

Value read_time(std::string_view message, bool micro) {
  Reader reader(message);
  Field field;
  std::int64_t seconds = 0, nanos = 0;
  while (reader.next(field)) (field.number == 1 ? seconds : nanos) = static_cast<std::int64_t>(field.varint);
  if (seconds == 0 && nanos == 0) return nullptr;
  if (seconds > 253402300799 || seconds < -62135596800) throw Malformed{};
  const TimePoint time = TimePoint{} + std::chrono::seconds(seconds) + std::chrono::microseconds(nanos / 1000);
  return Value(micro ? format_rfc3339_micro(time) : format_rfc3339(time));
}

/// Whatever the bytes are, what is stored is JSON; what Go's encoder makes of such a string is what other servers show.
Value text_value(std::string_view bytes) { return is_utf8(bytes) ? Value(bytes) : Value(to_utf8(bytes)); }

Value read_int_or_string(std::string_view message) {
  Reader reader(message);
  Field field;
  std::uint64_t type = 0, number = 0;
  std::string_view text;
  while (reader.next(field)) {
    if (field.number == 1) type = field.varint;
    if (field.number == 2) number = field.varint;
    if (field.number == 3) text = field.bytes;
  }
  return type == 0 ? Value(static_cast<std::int64_t>(static_cast<std::int32_t>(number))) : text_value(text);
}

Value read_value(const TypeRef& ref, const Field& field, Seen& seen, int depth);

/// A message always carries its plain members; a zero of theirs is what JSON leaves out. One of a pointer says something (replicas: 0).
bool is_plain_zero(const FieldDef& field, const Value& value) {
  if (value.is_null()) return true;
  if (!field.omits_zero) return false;
  return (value.is_int64() && value.get_int64() == 0) || (value.is_string() && value.get_string().empty()) ||
         (value.is_bool() && !value.get_bool());
}

/// Reads the fields of one message into `out`; `numbers`: what they mean, of the type or of a message that JSON spreads into this object.
void read_message(const Numbers& numbers, std::string_view message, Object& out, Seen& seen, int depth) {
  if (depth > 100) throw Malformed{};
  Reader reader(message);
  Field field;
  while (reader.next(field)) {
    const Numbers* known = numbers.find(field.number);
    if (known == nullptr) {
      seen.unknown = true;
    } else if (known->field == nullptr) {
      read_message(*known, field.bytes, out, seen, depth + 1);
    } else if (const FieldDef& exact = *known->field; exact.ref.kind == Kind::kList) {
      Value& list = out[exact.name];
      if (!list.is_array()) list.emplace_array();
      list.get_array().push_back(read_value(*exact.ref.element, field, seen, depth));
    } else if (exact.ref.kind == Kind::kMap) {
      Value& map = out[exact.name];
      if (!map.is_object()) map.emplace_object();
      std::string_view key;
      Field value, part;
      Reader entry(field.bytes);
      while (entry.next(part)) {
        if (part.number == 1) key = part.bytes;
        if (part.number == 2) value = part;
      }
      map.get_object()[to_utf8(key)] = read_value(*exact.ref.element, value, seen, depth);
    } else {
      Value value = read_value(exact.ref, field, seen, depth);
      if (!is_plain_zero(exact, value)) out[exact.name] = std::move(value);
    }
  }
}

/// Where JSON has a schema or something else: JSONSchemaPropsOrBool (1: whether anything may be there, 2: a schema) or
/// JSONSchemaPropsOrArray (1: a schema, 2: schemas).
Value read_schema_or(const TypeDef& schema, std::string_view message, Seen& seen, int depth) {
  const auto read_schema = [&](std::string_view bytes) {
    Object object;
    read_message(wire::numbers_of(schema), bytes, object, seen, depth + 1);
    return object;
  };
  Value out;
  bool is_or_bool = false;
  Reader reader(message);
  Field field;
  while (reader.next(field)) {
    if (field.number == 1) {
      is_or_bool = field.bytes.data() == nullptr;
      if (is_or_bool)
        out = field.varint != 0;
      else
        out = read_schema(field.bytes);
    } else if (field.number == 2 && is_or_bool) {
      out = read_schema(field.bytes);
    } else if (field.number == 2) {
      if (!out.is_array()) out.emplace_array();
      out.get_array().emplace_back(read_schema(field.bytes));
    }
  }
  return out;
}

Value read_value(const TypeRef& ref, const Field& field, Seen& seen, int depth) {
  switch (ref.kind) {
    case Kind::kString:
      return text_value(field.bytes);
    case Kind::kInt32:
      return Value(static_cast<std::int64_t>(static_cast<std::int32_t>(field.varint)));
    case Kind::kInt64:
      return Value(static_cast<std::int64_t>(field.varint));
    case Kind::kDouble: {
      double value = 0;
      std::memcpy(&value, &field.varint, sizeof value);
      return value;
    }
    case Kind::kBool:
      return field.varint != 0;
    case Kind::kQuantity:
      return text_value(first_bytes(field.bytes, 1));
    case Kind::kTime:
      return read_time(field.bytes, false);
    case Kind::kMicroTime:
      return read_time(field.bytes, true);
    case Kind::kBytes:
      return Value(base64_encode(field.bytes));
    case Kind::kIntOrString:
      return read_int_or_string(field.bytes);
    case Kind::kStruct: {
      Object object;
      read_message(wire::numbers_of(*ref.type), field.bytes, object, seen, depth + 1);
      return object;
    }
    case Kind::kAny: {
      if (ref.type != nullptr) return read_schema_or(*ref.type, field.bytes, seen, depth + 1);
      auto parsed = json::parse(first_bytes(field.bytes, 1));  // RawExtension, FieldsV1: JSON inside.
      return parsed ? std::move(*parsed) : Value(nullptr);
    }
    case Kind::kList: {  // In a map, where a list is a message of its own.
      Value list;
      list.emplace_array();
      Reader reader(field.bytes);
      Field item;
      while (reader.next(item))
        if (item.number == 1) list.get_array().push_back(read_value(*ref.element, item, seen, depth + 1));
      return list;
    }
    case Kind::kMap:
      break;  // Maps of maps do not exist in the API.
  }
  return nullptr;
}

void add_numbers(Numbers& to, const FieldDef& field, std::size_t level) {
  const auto at = std::ranges::lower_bound(to.inner, field.proto[level], {}, [](const auto& one) { return one.first; });
  auto place = at;
  if (at == to.inner.end() || at->first != field.proto[level])
    place = to.inner.emplace(at, field.proto[level], std::make_unique<Numbers>());
  if (level + 1 == field.proto.size())
    place->second->field = &field;
  else
    add_numbers(*place->second, field, level + 1);
}

Numbers numbers_from(const TypeDef& type) {
  Numbers out;
  for (const FieldDef& field : type.fields)
    if (!field.proto.empty()) add_numbers(out, field, 0);
  return out;
}

}  // namespace

namespace wire {

std::string_view first_bytes(std::string_view message, int number) {
  Reader reader(message);
  Field field;
  std::string_view out;
  while (reader.next(field))
    if (field.number == number) out = field.bytes;
  return out;
}

const Numbers* Numbers::find(int number) const {
  const auto at = std::ranges::lower_bound(inner, number, {}, [](const auto& one) { return one.first; });
  return at == inner.end() || at->first != number ? nullptr : at->second.get();
}

const Numbers& numbers_of(const TypeDef& type) {
  static const auto kNumbers = [] {
    std::unordered_map<const TypeDef*, Numbers> out;
    for (const TypeDef* one : all_types()) out.emplace(one, numbers_from(*one));
    out.emplace(&partial_metadata_type(), numbers_from(partial_metadata_type()));
    return out;
  }();
  static const Numbers kNone;
  const auto found = kNumbers.find(&type);
  return found == kNumbers.end() ? kNone : found->second;
}

}  // namespace wire

std::string_view bytes_field(std::string_view message, int number) {
  try {
    return first_bytes(message, number);
  } catch (const Malformed&) {
    return {};
  }
}

Result<json::Value> decode_protobuf(std::string_view body, bool* has_unknown) {
  if (body.substr(0, 4) != std::string_view("k8s\0", 4))
    return invalid("the provided data does not appear to be a protobuf message: the magic number is missing");
  try {
    const std::string_view unknown = body.substr(4);
    const std::string_view type_meta = first_bytes(unknown, 1);
    const std::string api_version = to_utf8(first_bytes(type_meta, 1)), kind = to_utf8(first_bytes(type_meta, 2));
    const TypeDef* type = kind == "DeleteOptions" ? find_type("meta.v1.DeleteOptions") : protobuf_type(api_version, kind);
    if (type == nullptr) return invalid(fmt::format("no kind \"{}\" is registered for version \"{}\"", kind, api_version));
    Object out{{"apiVersion", api_version}, {"kind", kind}};
    Seen seen;
    read_message(wire::numbers_of(*type), first_bytes(unknown, 2), out, seen, 0);
    if (has_unknown != nullptr) *has_unknown = seen.unknown;
    return Value(std::move(out));
  } catch (const Malformed&) {
    return invalid("the protobuf body is malformed");
  }
}

}  // namespace berth::model
