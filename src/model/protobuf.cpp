#include "model/protobuf.h"

#include <fmt/format.h>

#include <cstring>

#include "base/base64.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "model/schema.h"

namespace berth::model {
namespace {

using json::Object;
using json::Value;
using Kind = TypeRef::Kind;

struct Malformed {};  // Thrown and caught in this file only: the input ends or lies.

/// One field of a message: its number and either a number or bytes.
struct Field {
  int number = 0;
  std::uint64_t varint = 0;
  std::string_view bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view data) : data_(data) {}
  bool next(Field& field) {
    if (at_ >= data_.size()) return false;
    const std::uint64_t tag = varint();
    field = {static_cast<int>(tag >> 3), 0, {}};
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

std::string_view first_bytes(std::string_view message, int number) {
  Reader reader(message);
  Field field;
  std::string_view out;
  while (reader.next(field))
    if (field.number == number) out = field.bytes;
  return out;
}

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

Value read_value(const TypeRef& ref, const Field& field, int depth);

/// A message always carries its plain members; a zero of theirs is what JSON leaves out. One of a pointer says something (replicas: 0).
bool is_plain_zero(const FieldDef& field, const Value& value) {
  if (value.is_null()) return true;
  if (!field.omits_zero) return false;
  return (value.is_int64() && value.get_int64() == 0) || (value.is_string() && value.get_string().empty()) ||
         (value.is_bool() && !value.get_bool());
}

/// Reads the fields of one message into `out`; `prefix` are the numbers of the messages that JSON spreads into this object.
void read_message(const TypeDef& type, std::string_view message, std::vector<int>& prefix, Object& out, int depth) {
  if (depth > 100) throw Malformed{};
  Reader reader(message);
  Field field;
  while (reader.next(field)) {
    prefix.push_back(field.number);
    const FieldDef* exact = nullptr;
    bool spread = false;
    for (const FieldDef& one : type.fields) {
      if (one.proto == prefix)
        exact = &one;
      else
        spread |= one.proto.size() > prefix.size() && std::equal(prefix.begin(), prefix.end(), one.proto.begin());
    }
    if (exact != nullptr) {
      if (exact->ref.kind == Kind::kList) {
        Value& list = out[exact->name];
        if (!list.is_array()) list.emplace_array();
        list.get_array().push_back(read_value(*exact->ref.element, field, depth));
      } else if (exact->ref.kind == Kind::kMap) {
        Value& map = out[exact->name];
        if (!map.is_object()) map.emplace_object();
        std::string_view key;
        Field value;
        Reader entry(field.bytes);
        Field part;
        while (entry.next(part)) {
          if (part.number == 1) key = part.bytes;
          if (part.number == 2) value = part;
        }
        map.get_object()[to_utf8(key)] = read_value(*exact->ref.element, value, depth);
      } else {
        Value value = read_value(exact->ref, field, depth);
        if (!is_plain_zero(*exact, value)) out[exact->name] = std::move(value);
      }
    } else if (spread) {
      read_message(type, field.bytes, prefix, out, depth + 1);
    }
    prefix.pop_back();
  }
}

Value read_value(const TypeRef& ref, const Field& field, int depth) {
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
      std::vector<int> prefix;
      read_message(*ref.type, field.bytes, prefix, object, depth + 1);
      return object;
    }
    case Kind::kAny: {
      auto parsed = json::parse(first_bytes(field.bytes, 1));  // RawExtension, FieldsV1: JSON inside.
      return parsed ? std::move(*parsed) : Value(nullptr);
    }
    case Kind::kList: {  // In a map, where a list is a message of its own.
      Value list;
      list.emplace_array();
      Reader reader(field.bytes);
      Field item;
      while (reader.next(item))
        if (item.number == 1) list.get_array().push_back(read_value(*ref.element, item, depth + 1));
      return list;
    }
    case Kind::kMap:
      break;  // Maps of maps do not exist in the API.
  }
  return nullptr;
}

}  // namespace

Result<json::Value> decode_protobuf(std::string_view body) {
  if (body.substr(0, 4) != std::string_view("k8s\0", 4))
    return invalid("the provided data does not appear to be a protobuf message: the magic number is missing");
  try {
    const std::string_view unknown = body.substr(4);
    const std::string_view type_meta = first_bytes(unknown, 1);
    const std::string api_version = to_utf8(first_bytes(type_meta, 1)), kind = to_utf8(first_bytes(type_meta, 2));
    const TypeDef* type = kind == "DeleteOptions" ? find_type("meta.v1.DeleteOptions") : protobuf_type(api_version, kind);
    if (type == nullptr) return invalid(fmt::format("no kind \"{}\" is registered for version \"{}\"", kind, api_version));
    Object out{{"apiVersion", api_version}, {"kind", kind}};
    std::vector<int> prefix;
    read_message(*type, first_bytes(unknown, 2), prefix, out, 0);
    return Value(std::move(out));
  } catch (const Malformed&) {
    return invalid("the protobuf body is malformed");
  }
}

}  // namespace berth::model
