#include "base/json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "base/go/float.h"
#include "base/json_indented.h"
#include "base/json_quote.h"

namespace berth::json {
namespace {

// ---- duplicates: a walk over text that is already known to be valid JSON

class DuplicateScanner {
 public:
  DuplicateScanner(std::string_view text, std::vector<std::string>& out) : text_(text), out_(out) {}
  void run() { value(nullptr); }

 private:
  struct Step {  // One step of the path; linked, so that paths cost nothing until one is reported.
    const Step* parent;
    std::string_view key;
    std::size_t index;
  };

  void skip_space() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' || text_[pos_] == '\t' || text_[pos_] == '\r')) ++pos_;
  }
  std::string_view string() {
    const std::size_t start = ++pos_;
    while (text_[pos_] != '"') pos_ += text_[pos_] == '\\' ? 2 : 1;
    return text_.substr(start, pos_++ - start);
  }
  void value(const Step* step) {
    skip_space();
    switch (text_[pos_]) {
      case '{':
        object(step);
        break;
      case '[':
        array(step);
        break;
      case '"':
        string();
        break;
      default:
        while (pos_ < text_.size() && text_[pos_] != ',' && text_[pos_] != '}' && text_[pos_] != ']') ++pos_;
    }
    skip_space();
  }
  /// The keys of one object: how often each was seen, without a set for the few that most objects have.
  class Keys {
   public:
    /// True the second time alone.
    bool repeats(std::string_view key) {
      const auto end = few_.begin() + static_cast<std::ptrdiff_t>(count_);
      if (const auto found = std::find_if(few_.begin(), end, [&](const auto& seen) { return seen.first == key; }); found != end)
        return ++found->second == 2;
      if (count_ == few_.size()) return ++many_[key] == 2;
      few_[count_++] = {key, 1};
      return false;
    }

   private:
    std::array<std::pair<std::string_view, std::size_t>, 24> few_;
    std::size_t count_ = 0;
    std::map<std::string_view, std::size_t> many_;
  };

  void object(const Step* parent) {
    Keys keys;
    ++pos_;
    skip_space();
    while (text_[pos_] != '}') {
      const std::string_view key = string();
      const Step step{parent, key, 0};
      if (keys.repeats(key)) report(step);
      skip_space();
      ++pos_;  // ':'
      value(&step);
      if (text_[pos_] == ',') ++pos_;
      skip_space();
    }
    ++pos_;
  }
  void array(const Step* parent) {
    ++pos_;
    skip_space();
    for (std::size_t i = 0; text_[pos_] != ']'; ++i) {
      const Step step{parent, {}, i};
      value(&step);
      if (text_[pos_] == ',') ++pos_;
      skip_space();
    }
    ++pos_;
  }
  void report(const Step& last) {
    if (out_.size() >= kMaxDuplicates) return;
    std::vector<const Step*> steps;
    std::size_t bytes = 0;
    for (const Step* step = &last; step != nullptr; step = step->parent) {
      steps.push_back(step);
      bytes += step->key.size() + 1;
    }
    if (told_bytes_ > 0 && told_bytes_ + bytes > kMaxDuplicateBytes) return;
    told_bytes_ += bytes;
    std::string path;
    for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
      if ((*at)->key.data() == nullptr) {
        fmt::format_to(std::back_inserter(path), "[{}]", (*at)->index);
      } else {
        if (!path.empty()) path += '.';
        path += (*at)->key;
      }
    }
    out_.push_back(std::move(path));
  }

  static constexpr std::size_t kMaxDuplicates = 100, kMaxDuplicateBytes = 256 * 1024;
  std::size_t told_bytes_ = 0;
  std::string_view text_;
  std::vector<std::string>& out_;
  std::size_t pos_ = 0;
};

// ---- serialising

/// Whether a JSON string's inside is the text as it is.
bool is_plain(std::string_view text) {
  // Eight bytes at a time: a high bit is left where a byte is a quote, a backslash or below a blank.
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
  const auto zeros = [](std::uint64_t word) { return (word - kOnes) & ~word & kHighs; };
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, sizeof word);
    const std::uint64_t below = (word - kOnes * 0x20) & ~word & kHighs;
    if ((below | zeros(word ^ (kOnes * '"')) | zeros(word ^ (kOnes * '\\'))) != 0) return false;
  }
  for (; i < text.size(); ++i)
    if (static_cast<unsigned char>(text[i]) < 0x20 || text[i] == '"' || text[i] == '\\') return false;
  return true;
}

void append_string(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    const std::size_t begin = out.size(), end = begin + text.size() + 2;
    out.resize_and_overwrite(end, [&](char* at, std::size_t) {
      at[begin] = '"';
      std::memcpy(at + begin + 1, text.data(), text.size());
      at[end - 1] = '"';
      return end;
    });
    return;
  }
  out += '"';
  std::size_t run = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, run, i - run);
    run = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += fmt::format("\\u{:04x}", c);
    }
  }
  out.append(text, run);
  out += '"';
}

template <typename Integer>
void append_integer(std::string& out, Integer value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
  } else if (value == std::floor(value) && std::abs(value) < 1e15) {
    append_integer(out, static_cast<std::int64_t>(value));
  } else {
    out += go::format_json_number(value);
  }
}

void append_scalar(std::string& out, const Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      out += "null";
      break;
    case boost::json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      break;
    case boost::json::kind::int64:
      append_integer(out, value.get_int64());
      break;
    case boost::json::kind::uint64:
      append_integer(out, value.get_uint64());
      break;
    case boost::json::kind::double_:
      append_double(out, value.get_double());
      break;
    case boost::json::kind::string:
      append_string(out, as_view(value));
      break;
    default:
      break;
  }
}

void append_pretty(std::string& out, const Value& value, std::size_t width, std::size_t indent) {
  const auto open = [&](char bracket) { out += bracket; };
  const auto line = [&](std::size_t depth) { out.append(1, '\n').append(depth * width, ' '); };
  if (const Object* object = value.if_object()) {
    open('{');
    bool first = true;
    for (const auto& [key, member] : *object) {
      if (!first) out += ',';
      first = false;
      line(indent + 1);
      append_string(out, {key.data(), key.size()});
      out += ": ";
      append_pretty(out, member, width, indent + 1);
    }
    if (!first) line(indent);
    out += '}';
  } else if (const Array* array = value.if_array()) {
    open('[');
    bool first = true;
    for (const Value& member : *array) {
      if (!first) out += ',';
      first = false;
      line(indent + 1);
      append_pretty(out, member, width, indent + 1);
    }
    if (!first) line(indent);
    out += ']';
  } else {
    append_scalar(out, value);
  }
}

std::string position_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return fmt::format("line {}, column {}", line, before.size() - start + 1);
}

}  // namespace

Result<Value> parse(std::string_view text, const ParseOptions& options) {
  boost::json::parse_options limits;
  limits.max_depth = options.max_depth;
  boost::json::parser parser({}, limits);
  boost::json::error_code error;
  std::size_t consumed = parser.write_some(text.data(), text.size(), error);
  if (!error) {
    while (consumed < text.size() && std::string_view(" \n\r\t").find(text[consumed]) != std::string_view::npos) ++consumed;
    if (consumed < text.size())
      return invalid(fmt::format("invalid JSON at {}: unexpected text after the top-level value", position_of(text, consumed)));
  }
  if (error == boost::json::error::incomplete)
    return invalid(text.empty() ? "invalid JSON: empty text" : "invalid JSON: unexpected end of JSON input");
  if (error) return invalid(fmt::format("invalid JSON at {}: {}", position_of(text, consumed), error.message()));
  if (options.duplicates != nullptr) DuplicateScanner(text, *options.duplicates).run();
  return parser.release();
}

void serialize_to(std::string& out, const Value& value) {
  if (const Object* object = value.if_object()) {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : *object) {
      if (!first) out += ',';
      first = false;
      append_string(out, {key.data(), key.size()});
      out += ':';
      serialize_to(out, member);
    }
    out += '}';
  } else if (const Array* array = value.if_array()) {
    out += '[';
    bool first = true;
    for (const Value& member : *array) {
      if (!first) out += ',';
      first = false;
      serialize_to(out, member);
    }
    out += ']';
  } else {
    append_scalar(out, value);
  }
}

void quote_to(std::string& out, std::string_view text) { append_string(out, text); }

std::string serialize(const Value& value) {
  std::string out;
  out.reserve(1024);
  serialize_to(out, value);
  return out;
}

std::string serialize_indented(const Value& value, std::size_t width) {
  std::string out;
  append_pretty(out, value, width, 0);
  return out;
}

std::string serialize_pretty(const Value& value) { return serialize_indented(value, 4) + '\n'; }

namespace {

/// As if_contains; of the small objects that documents are made of without a call for every member.
const Value* member(const Object& object, std::string_view key) {
  if (object.size() > 18 || key.empty()) return object.if_contains(key);  // Then it is hashed.
  for (const auto& [name, value] : object)
    if (name.size() == key.size() && name.back() == key.back() && std::memcmp(name.data(), key.data(), key.size()) == 0) return &value;
  return nullptr;
}

}  // namespace

const Value* find(const Value& root, Path path) {
  const Value* at = &root;
  for (const std::string_view key : path) {
    const Object* object = at->if_object();
    if (object == nullptr) return nullptr;
    at = member(*object, key);
    if (at == nullptr || at->is_null()) return nullptr;
  }
  return at;
}

Value* find(Value& root, Path path) { return const_cast<Value*>(find(static_cast<const Value&>(root), path)); }

std::string_view get_string(const Value& root, Path path, std::string_view fallback) {
  const Value* value = find(root, path);
  return value != nullptr && value->is_string() ? as_view(*value) : fallback;
}

std::int64_t get_int(const Value& root, Path path, std::int64_t fallback) {
  const Value* value = find(root, path);
  if (value == nullptr) return fallback;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) return std::numeric_limits<std::int64_t>::max();
  if (value->is_double() && std::abs(value->get_double()) < 9e18) return static_cast<std::int64_t>(value->get_double());
  return fallback;
}

bool get_bool(const Value& root, Path path, bool fallback) {
  const Value* value = find(root, path);
  return value != nullptr && value->is_bool() ? value->get_bool() : fallback;
}

const Array& get_array(const Value& root, Path path) {
  static const Array kEmpty;
  const Value* value = find(root, path);
  return value != nullptr && value->is_array() ? value->get_array() : kEmpty;
}

const Object& get_object(const Value& root, Path path) {
  static const Object kEmpty;
  const Value* value = find(root, path);
  return value != nullptr && value->is_object() ? value->get_object() : kEmpty;
}

Object& ensure_object(Value& root, Path path) {
  Value* at = &root;
  if (!at->is_object()) at->emplace_object();
  for (const std::string_view key : path) {
    at = &at->get_object()[key];
    if (!at->is_object()) at->emplace_object();
  }
  return at->get_object();
}

void set(Value& root, Path path, Value value) {
  Value* at = &root;
  for (const std::string_view key : path) {
    if (!at->is_object()) at->emplace_object();
    at = &at->get_object()[key];
  }
  *at = std::move(value);
}

bool erase(Value& root, Path path) {
  Value* at = &root;
  std::size_t left = path.size();
  for (const std::string_view key : path) {
    Object* object = at->if_object();
    if (object == nullptr) return false;
    if (--left == 0) return object->erase(key) != 0;
    at = object->if_contains(key);
    if (at == nullptr) return false;
  }
  return false;
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.kind() == b.kind()) return a == b;
    return a.to_number<double>() == b.to_number<double>();
  }
  if (a.kind() != b.kind()) return false;
  if (const Object* object = a.if_object()) {
    const Object& other = b.get_object();
    if (object->size() != other.size()) return false;
    for (const auto& [key, member] : *object) {
      const Value* match = other.if_contains(key);
      if (match == nullptr || !equal(member, *match)) return false;
    }
    return true;
  }
  if (const Array* array = a.if_array()) {
    const Array& other = b.get_array();
    return array->size() == other.size() && std::equal(array->begin(), array->end(), other.begin(), equal);
  }
  return a == b;
}

}  // namespace berth::json
