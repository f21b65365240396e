#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json_skip.h"
#include "base/utf8.h"
#include "base/wire.h"
#include "model/internal_form.h"
#include "model/protobuf/protobuf.h"

namespace berth::model {
namespace {

using Kind = TypeRef::Kind;
using namespace berth::wire;

constexpr int kMaxDepth = 600;
constexpr std::string_view kMagic("k8s\0", 4);

/// Makes what was written behind a place of one byte a field of bytes: the byte becomes the length.
void close_length(std::string& out, std::size_t place) {
  const std::size_t size = out.size() - place - 1;
  if (size < 0x80) {
    out[place] = static_cast<char>(size);
    return;
  }
  char length[10];
  std::size_t used = 0;
  for (std::uint64_t rest = size; used == 0 || rest != 0; rest >>= 7)
    length[used++] = static_cast<char>((rest & 0x7f) | (rest >= 0x80 ? 0x80 : 0));
  out[place] = length[0];
  out.insert(place + 1, length + 1, used - 1);
}

/// A piece of a message: the field numbers that lead to it (several where JSON spreads an inner message into this object) and its bytes,
/// the tag of the last number included.
struct Part {
  const std::vector<int>* path;
  std::size_t begin, end;
};

struct MapEntry {
  std::size_t key_begin, key_end, begin, end;
};

/// One pass over the text, straight into bytes: no document is built.
class Encoder {
 public:
  Encoder(std::string_view text, std::string& out) : at_(text.data()), end_(text.data() + text.size()), out_(out) {}

  bool run(const TypeDef& type) {
    skip_space();
    return message(type, 0) && (skip_space(), at_ == end_);
  }

 private:
  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  bool take(char wanted) {
    skip_space();
    if (at_ >= end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  char peek() {
    skip_space();
    return at_ < end_ ? *at_ : '\0';
  }

  /// A string as it stands between its quotes.
  bool raw_string(std::string_view& raw, bool& has_escapes) {
    skip_space();
    if (at_ >= end_ || *at_ != '"') return false;
    const char* start = at_ + 1;
    if (!json::detail::skip_string(at_, end_)) return false;
    raw = {start, static_cast<std::size_t>(at_ - 1 - start)};
    has_escapes = raw.find('\\') != std::string_view::npos;
    return true;
  }

  static bool hex4(std::string_view text, std::uint32_t& code) {
    if (text.size() < 4) return false;
    const auto [end, error] = std::from_chars(text.data(), text.data() + 4, code, 16);
    return error == std::errc() && end == text.data() + 4;
  }

  static bool append_unescaped(std::string& out, std::string_view raw) {
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        out += raw[i];
        continue;
      }
      if (++i >= raw.size()) return false;
      static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
      if (const auto known = kFrom.find(raw[i]); known != std::string_view::npos) {
        out += kTo[known];
        continue;
      }
      std::uint32_t code = 0, low = 0;
      if (raw[i] != 'u' || !hex4(raw.substr(i + 1), code)) return false;
      i += 4;
      if (code >= 0xd800 && code < 0xdc00 && raw.substr(i + 1).starts_with("\\u") && hex4(raw.substr(i + 3), low) && low >= 0xdc00 &&
          low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        i += 6;
      }
      append_rune(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
    }
    return true;
  }

  bool skip_value() {
    const char first = peek();
    if (first == '"') return json::detail::skip_string(at_, end_);
    if (first == '{' || first == '[') return json::detail::skip_container(at_, end_);
    return !scalar().empty();
  }

  bool take_null() {
    if (peek() != 'n' || end_ - at_ < 4 || std::memcmp(at_, "null", 4) != 0) return false;
    at_ += 4;
    return true;
  }

  /// A number's or a word's text; empty for anything else.
  std::string_view scalar() {
    const char first = peek();
    if (first == '"' || first == '{' || first == '[') return {};
    const char* start = at_;
    while (at_ < end_ && *at_ != ',' && *at_ != '}' && *at_ != ']' && *at_ > ' ') ++at_;
    return {start, static_cast<std::size_t>(at_ - start)};
  }

  static bool integer(std::string_view text, std::int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return true;
    double wide = 0;
    const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), wide);
    if (failed != std::errc() || stop != text.data() + text.size() || !(wide >= -9.2e18 && wide <= 9.2e18)) return false;
    value = static_cast<std::int64_t>(wide);
    return true;
  }

  /// The string at the place, decoded into `scratch_` when it has escapes.
  bool text_value(std::string_view& text) {
    bool escapes = false;
    if (!raw_string(text, escapes)) return false;
    if (!escapes) return true;
    scratch_.clear();
    if (!append_unescaped(scratch_, text)) return false;
    text = scratch_;
    return true;
  }

  // --- values: each writes tag and bytes of field `number`, or nothing when the value is of another type

  bool value(const TypeRef& ref, int number, int depth) {
    if (depth > kMaxDepth) return false;
    switch (ref.kind) {
      case Kind::kString:
      case Kind::kBytes:
      case Kind::kQuantity:
      case Kind::kTime:
      case Kind::kMicroTime:
        return peek() == '"' ? text_field(ref.kind, number) : number_as_quantity(ref.kind, number);
      case Kind::kInt32:
      case Kind::kInt64:
      case Kind::kDouble:
      case Kind::kBool:
        return number_field(ref.kind, number);
      case Kind::kIntOrString:
        return int_or_string(number);
      case Kind::kStruct: {
        if (peek() != '{') return skip_value();
        const std::size_t place = open_field(number);
        if (!message(*ref.type, depth + 1)) return false;
        close_length(out_, place);
        return true;
      }
      case Kind::kAny: {
        if (ref.type != nullptr) return schema_or(*ref.type, number, depth);
        skip_space();
        const char* start = at_;
        if (!skip_value()) return false;
        const std::size_t place = open_field(number);
        std::string_view raw(start, static_cast<std::size_t>(at_ - start));
        std::string escaped;
        // As Go writes JSON: who keeps the bytes (a ControllerRevision's data) compares them with its own.
        if (raw.find_first_of("<>&") != std::string_view::npos) raw = escaped = escape_html(raw);
        append_field(out_, 1, raw);
        close_length(out_, place);
        return true;
      }
      case Kind::kList: {
        // A list in a list or a map has a message of its own.
        if (peek() != '[') return skip_value();
        const std::size_t place = open_field(number);
        if (!list(*ref.element, 1, depth + 1)) return false;
        close_length(out_, place);
        return true;
      }
      case Kind::kMap:
        break;
    }
    return skip_value();
  }

  /// JSONSchemaPropsOrBool and JSONSchemaPropsOrArray; which of the two a lone schema is in depends on the field, as read_schema_or says.
  bool schema_or(const TypeDef& schema, int number, int depth) {
    const std::size_t place = open_field(number);
    if (peek() == '[') {
      const TypeRef element{.kind = Kind::kStruct, .type = &schema};
      if (!list(element, 2, depth + 1)) return false;
    } else if (peek() == '{') {
      const bool is_items = schema.field("items") != nullptr && schema.field("items")->proto.back() == number;
      if (!is_items) {
        append_tag(out_, 1, 0);
        out_ += '\1';
      }
      const std::size_t inner = open_field(is_items ? 1 : 2);
      if (!message(schema, depth + 1)) return false;
      close_length(out_, inner);
    } else if (!number_field(Kind::kBool, 1)) {
      return false;
    }
    close_length(out_, place);
    return true;
  }

  std::size_t open_field(int number) {
    append_tag(out_, number, 2);
    out_ += '\0';
    return out_.size() - 1;
  }

  bool text_field(Kind kind, int number) {
    std::string_view text;
    if (!text_value(text)) return false;
    if (kind == Kind::kString) {
      append_field(out_, number, text);
    } else if (kind == Kind::kQuantity) {
      append_tag(out_, number, 2);
      append_varint(out_, field_size(1, text.size()));
      append_field(out_, 1, text);
    } else if (kind == Kind::kBytes) {
      if (const auto bytes = base64_decode(text)) append_field(out_, number, *bytes);
    } else if (const auto time = parse_rfc3339(text)) {
      const auto seconds = std::chrono::floor<std::chrono::seconds>(*time);
      const std::size_t place = open_field(number);
      append_tag(out_, 1, 0);
      append_varint(out_, static_cast<std::uint64_t>(seconds.time_since_epoch().count()));
      append_tag(out_, 2, 0);
      append_varint(out_, kind == Kind::kMicroTime ? static_cast<std::uint64_t>((*time - seconds).count()) * 1000 : 0);
      close_length(out_, place);
    }
    return true;
  }

  /// Quantities may stand as numbers in documents that nobody canonicalised.
  bool number_as_quantity(Kind kind, int number) {
    if (kind != Kind::kQuantity || peek() == 'n') return skip_value();
    const auto text = scalar();
    if (text.empty()) return skip_value();
    const std::size_t place = open_field(number);
    append_field(out_, 1, text);
    close_length(out_, place);
    return true;
  }

  bool number_field(Kind kind, int number) {
    const auto text = scalar();
    if (text.empty()) return skip_value();
    if (kind == Kind::kBool) {
      if (text != "true" && text != "false") return true;
      append_tag(out_, number, 0);
      out_ += text == "true" ? '\1' : '\0';
    } else if (kind == Kind::kDouble) {
      double wide = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), wide).ec != std::errc()) return true;
      char bytes[8];
      std::memcpy(bytes, &wide, sizeof bytes);
      append_tag(out_, number, 1);
      out_.append(bytes, sizeof bytes);
    } else {
      std::int64_t whole = 0;
      if (!integer(text, whole)) return true;
      append_tag(out_, number, 0);
      append_varint(out_, static_cast<std::uint64_t>(whole));
    }
    return true;
  }

  bool int_or_string(int number) {
    const bool is_text = peek() == '"';
    std::string_view text;
    if (is_text ? !text_value(text) : (text = scalar()).empty()) return !is_text && skip_value();
    std::int64_t whole = 0;
    if (!is_text && !integer(text, whole)) return true;
    const std::size_t place = open_field(number);
    append_tag(out_, 1, 0);
    out_ += is_text ? '\1' : '\0';
    append_tag(out_, 2, 0);
    append_varint(out_, static_cast<std::uint64_t>(whole));
    append_field(out_, 3, is_text ? text : std::string_view());
    close_length(out_, place);
    return true;
  }

  bool list(const TypeRef& element, int number, int depth) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      // Null is a value among values of any kind, and left out among others.
      if ((element.kind == Kind::kAny || !take_null()) && !value(element, number, depth)) return false;
    } while (take(','));
    return take(']');
  }

  bool map(const TypeRef& element, int number, int depth) {
    if (!take('{')) return false;
    if (take('}')) return true;
    std::vector<MapEntry> entries;
    bool is_sorted = true;
    const std::size_t begin = out_.size();
    do {
      MapEntry entry{};
      entry.begin = out_.size();
      const std::size_t place = open_field(number);
      std::string_view key;
      if (!text_value(key) || !take(':')) return false;
      append_field(out_, 1, key);
      if (!take_null() && !value(element, 2, depth)) return false;
      close_length(out_, place);
      entry.end = out_.size();
      // Where the key stands is known only now: the length before it has grown.
      std::size_t at = place;
      while ((static_cast<unsigned char>(out_[at]) & 0x80) != 0) ++at;
      entry.key_begin = at + 2 + varint_size(key.size());
      entry.key_end = entry.key_begin + key.size();
      is_sorted = is_sorted && (entries.empty() || key_of(entries.back()) < key_of(entry));
      entries.push_back(entry);
    } while (take(','));
    if (!take('}')) return false;
    if (is_sorted) return true;
    std::stable_sort(entries.begin(), entries.end(), [this](const MapEntry& a, const MapEntry& b) { return key_of(a) < key_of(b); });
    std::string ordered;
    ordered.reserve(out_.size() - begin);
    for (const MapEntry& entry : entries) ordered.append(out_, entry.begin, entry.end - entry.begin);
    out_.replace(begin, std::string::npos, ordered);
    return true;
  }
  std::string_view key_of(const MapEntry& entry) const {
    return std::string_view(out_).substr(entry.key_begin, entry.key_end - entry.key_begin);
  }

  bool message(const TypeDef& type, int depth) {
    if (depth > kMaxDepth || !take('{')) return false;
    if (take('}')) return true;
    const std::size_t begin = out_.size(), first_part = parts_.size();
    bool in_order = true;
    do {
      std::string_view name;
      if (!text_value(name) || !take(':')) return false;
      const FieldDef* field = type.field(name);
      if (field == nullptr || field->proto.empty()) {
        if (!skip_value()) return false;
        continue;
      }
      if (take_null()) continue;
      const std::size_t from = out_.size();
      const int number = field->proto.back();
      bool good = false;
      if (field->ref.kind == Kind::kList) {
        good = peek() == '[' ? list(*field->ref.element, number, depth + 1) : skip_value();
      } else if (field->ref.kind == Kind::kMap) {
        good = peek() == '{' ? map(*field->ref.element, number, depth + 1) : skip_value();
      } else {
        good = value(field->ref, number, depth + 1);
      }
      if (!good) return false;
      if (out_.size() == from) continue;
      in_order = in_order && field->proto.size() == 1 && (parts_.size() == first_part || *parts_.back().path < field->proto);
      parts_.push_back({&field->proto, from, out_.size()});
    } while (take(','));
    if (!take('}')) return false;
    if (!in_order) arrange(begin, first_part);
    parts_.resize(first_part);
    return true;
  }

  /// Brings the parts of a message into the order of their numbers, and those of an inner message together.
  void arrange(std::size_t begin, std::size_t first_part) {
    std::stable_sort(parts_.begin() + static_cast<std::ptrdiff_t>(first_part), parts_.end(),
                     [](const Part& a, const Part& b) { return *a.path < *b.path; });
    std::string ordered;
    ordered.reserve(out_.size() - begin + 16);
    append_parts(ordered, first_part, parts_.size(), 0);
    out_.replace(begin, std::string::npos, ordered);
  }
  void append_parts(std::string& to, std::size_t first, std::size_t last, std::size_t level) const {
    for (std::size_t i = first; i < last;) {
      const Part& part = parts_[i];
      if (part.path->size() == level + 1) {
        to.append(out_, part.begin, part.end - part.begin);
        ++i;
        continue;
      }
      std::size_t after = i + 1;
      while (after < last && (*parts_[after].path)[level] == (*part.path)[level]) ++after;
      append_tag(to, (*part.path)[level], 2);
      const std::size_t place = to.size();
      to += '\0';
      append_parts(to, i, after, level + 1);
      close_length(to, place);
      i = after;
    }
  }

  const char* at_;
  const char* end_;
  std::string& out_;
  std::string scratch_;
  std::vector<Part> parts_;
};

/// An object's own apiVersion and kind, at the root or in a list of templates, are not in its message.
bool all_numbered(const TypeDef& type, std::set<const TypeDef*>& seen) {
  if (!seen.insert(&type).second) return true;
  const bool is_object = type.field("metadata") != nullptr;
  for (const FieldDef& field : type.fields) {
    const bool is_type_meta = is_object && (field.name == "apiVersion" || field.name == "kind");
    if (field.proto.empty() && !is_type_meta) return false;
    const TypeRef* ref = &field.ref;
    while (ref->element != nullptr) ref = ref->element;
    if (ref->kind == Kind::kStruct && !all_numbered(*ref->type, seen)) return false;
  }
  return true;
}

}  // namespace

bool has_protobuf(const KindInfo& kind) {
  static const auto by_kind = [] {
    std::map<Gvk, bool> out;
    for (const KindInfo& info : all_kinds()) {
      std::set<const TypeDef*> seen;
      out[info.gvk()] = all_numbered(*type_of(info), seen);
    }
    return out;
  }();
  const auto found = by_kind.find(kind.gvk());
  return found != by_kind.end() && found->second;
}

const TypeDef& partial_metadata_type() {
  static const std::unique_ptr<const TypeDef> type = [] {
    auto out = std::make_unique<TypeDef>();
    out->name = "meta.v1.PartialObjectMetadata";
    FieldDef& metadata = out->fields.emplace_back();
    metadata.name = "metadata";
    metadata.ref.kind = Kind::kStruct;
    metadata.ref.type = find_type("meta.v1.ObjectMeta");
    metadata.proto = {1};
    out->by_name.emplace(metadata.name, &metadata);
    return out;
  }();
  return *type;
}

const TypeDef* protobuf_type(std::string_view api_version, std::string_view kind) {
  // Discovery's own kinds; one of them names no version.
  if ((api_version == "v1" || api_version.empty()) && kind.starts_with("API")) return find_type(fmt::format("meta.v1.{}", kind));
  if (api_version == "v1" && kind == "Status") return find_type("meta.v1.Status");
  if (api_version == "meta.k8s.io/v1" && kind == "PartialObjectMetadata") return &partial_metadata_type();
  if (kind == "Scale" && api_version == "autoscaling/v1") return find_type("autoscaling.v1.Scale");
  if (kind == "Eviction" && api_version == "policy/v1") return find_type("policy.v1.Eviction");
  if (kind == "TokenRequest" && api_version == "authentication.k8s.io/v1") return find_type("authentication.v1.TokenRequest");
  const std::size_t slash = api_version.find('/');
  const auto group = slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  const auto version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
  const KindInfo* info = find_kind(group, version, kind);
  return info != nullptr && has_protobuf(*info) ? type_of(*info) : nullptr;
}

bool encode_message(const TypeDef& type, std::string_view text, std::string& out) { return Encoder(text, out).run(type); }

std::string protobuf_head(std::string_view api_version, std::string_view kind, std::size_t size) {
  std::string type_meta;
  append_field(type_meta, 1, api_version);
  append_field(type_meta, 2, kind);
  std::string out(kMagic);
  append_field(out, 1, type_meta);
  append_tag(out, 2, 2);
  append_varint(out, size);
  return out;
}

std::string_view protobuf_tail() { return {"\x1a\0\x22\0", 4}; }  // contentEncoding and contentType, both empty.

std::optional<std::string> encode_protobuf(const TypeDef& type, std::string_view api_version, std::string_view kind,
                                           std::string_view text) {
  std::string message;
  message.reserve(text.size());
  if (!encode_message(type, text, message)) return std::nullopt;
  std::string out = protobuf_head(api_version, kind, message.size());
  out.reserve(out.size() + message.size() + 4);
  out += message;
  out += protobuf_tail();
  return out;
}

std::optional<std::string> encode_protobuf(const json::Value& document) {
  const auto api_version = json::get_string(document, {"apiVersion"}), kind = json::get_string(document, {"kind"});
  const TypeDef* type = protobuf_type(api_version, kind);
  if (type == nullptr) return std::nullopt;
  return encode_protobuf(*type, api_version, kind, json::serialize(document));
}

std::string encode_list_meta(std::string_view revision, std::string_view continue_token, std::optional<std::int64_t> remaining) {
  std::string out;
  append_field(out, 1, {});  // selfLink, as Go's struct always has it.
  append_field(out, 2, revision);
  append_field(out, 3, continue_token);
  if (remaining) {
    append_number(out, 4, static_cast<std::uint64_t>(*remaining));
  }
  return out;
}

void append_watch_frame(std::string& out, std::string_view type, std::string_view body) {
  const std::size_t object = field_size(1, body.size());
  const std::size_t size = field_size(1, type.size()) + field_size(2, object);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift & 0xff);
  append_field(out, 1, type);
  append_tag(out, 2, 2);
  append_varint(out, object);
  append_field(out, 1, body);
}

}  // namespace berth::model
