// YAML in and out of JSON values, as sigs.k8s.io/yaml does it.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cmath>
#include <sstream>

#include "base/json.h"
#include "base/utf8.h"

namespace berth::json {
namespace {

constexpr int kMaxYamlDepth = 500;
/// An alias bomb ("billion laughs") grows without end: more nodes than this is refused.
constexpr std::size_t kMaxNodes = 500'000;
/// The same for text: few aliases of one long string are enough to fill the memory.
constexpr std::size_t kMaxTextBytes = 64 * 1024 * 1024;

struct TooDeep {};
struct TooBig {};

bool any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::optional<Value> resolve_number(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  const bool negative = digits.starts_with('-');
  std::string_view body = digits;
  if (negative || body.starts_with('+')) body.remove_prefix(1);
  if (body.empty() || !((body[0] >= '0' && body[0] <= '9') || body[0] == '.')) return std::nullopt;
  int base = 10;
  std::string_view number = body;
  if (body.starts_with("0x") || body.starts_with("0X"))
    base = 16, number.remove_prefix(2);
  else if (body.starts_with("0o"))
    base = 8, number.remove_prefix(2);
  else if (body.starts_with("0b"))
    base = 2, number.remove_prefix(2);
  else if (body.size() > 1 && body[0] == '0' && body.find_first_not_of("01234567") == std::string_view::npos)
    base = 8, number.remove_prefix(1);
  std::uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), magnitude, base);
  if (error == std::errc() && end == number.data() + number.size()) {
    if (!negative) return magnitude <= INT64_MAX ? Value(static_cast<std::int64_t>(magnitude)) : Value(magnitude);
    if (magnitude <= static_cast<std::uint64_t>(INT64_MAX) + 1) return Value(static_cast<std::int64_t>(~magnitude + 1));
  }
  if (base != 10) return std::nullopt;
  double real = 0;
  const auto [real_end, real_error] = std::from_chars(body.data(), body.data() + body.size(), real);
  if (real_error == std::errc() && real_end == body.data() + body.size()) return Value(negative ? -real : real);
  return std::nullopt;
}

/// The text of a scalar. yaml-cpp gives the escapes `\N` and `\_` as single bytes, which are no UTF-8.
std::string text_of(const YAML::Node& node) {
  const std::string_view text = node.Scalar();
  if (is_utf8(text)) return std::string(text);
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t n = 1;
    while (n <= 4 && !is_utf8(text.substr(i, n))) ++n;
    if (n > 4 && (text[i] == '\x85' || text[i] == '\xa0')) out += '\xc2';
    if (n > 4) n = 1;
    out += text.substr(i, n);
    i += n;
  }
  return to_utf8(out);  // Halves of UTF-16 pairs are left.
}

Value resolve_scalar(const YAML::Node& node) {
  const std::string text = text_of(node);
  if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str") return Value(text);
  if (any_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (any_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"})) return true;
  if (any_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"})) return false;
  if (auto number = resolve_number(text)) return std::move(*number);
  return Value(text);
}

class Converter {
 public:
  Value convert(const YAML::Node& node, int depth) {
    if (depth > kMaxYamlDepth) throw TooDeep{};
    if (++nodes_ > kMaxNodes) throw TooBig{};
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        count_text(node.Scalar());
        return resolve_scalar(node);
      case YAML::NodeType::Sequence: {
        Array array;
        for (const auto& member : node) array.push_back(convert(member, depth + 1));
        return array;
      }
      case YAML::NodeType::Map:
        return convert_map(node, depth);
      default:
        return nullptr;
    }
  }

 private:
  Value convert_map(const YAML::Node& node, int depth) {
    Object object;
    for (const auto& member : node) {
      if (!member.first.IsScalar()) throw YAML::ParserException(member.first.Mark(), "a mapping key must be a string");
      if (member.first.Scalar() == "<<" && member.first.Tag() != "!") {  // A merge key: explicit keys win.
        const Value merged = convert(member.second, depth + 1);
        if (const Object* more = merged.if_object())
          for (const auto& [key, value] : *more) object.emplace(key, value);
        continue;
      }
      count_text(member.first.Scalar());
      object.insert_or_assign(text_of(member.first), convert(member.second, depth + 1));
    }
    return object;
  }
  void count_text(const std::string& text) {
    if ((text_bytes_ += text.size()) > kMaxTextBytes) throw TooBig{};
  }
  std::size_t nodes_ = 0, text_bytes_ = 0;
};

// ---- out

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  if (any_of(text, {"~",     "null",  "Null",  "NULL", "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y",  "Y",
                    "false", "False", "FALSE", "no",   "No",   "NO",   "off",  "Off", "OFF", "n",   "N",  "<<", "-",  "---"}))
    return true;
  if (resolve_number(text)) return true;
  if (std::string_view("!&*-?:{}[],#|>@`\"'% ").find(text[0]) != std::string_view::npos) {
    const bool plain_dash = (text[0] == '-' || text[0] == '?' || text[0] == ':') && text.size() > 1 && text[1] != ' ';
    if (!plain_dash) return true;
  }
  if (text.back() == ' ' || text.back() == ':') return true;
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) return true;
  // A timestamp would be read back as another type by other readers.
  if (text.size() >= 10 && text[4] == '-' && text[7] == '-' && std::isdigit(static_cast<unsigned char>(text[0])) != 0) return true;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20) return true;
  return false;
}

void append_yaml_string(std::string& out, std::string_view text, std::size_t indent) {
  const bool multi_line = text.find('\n') != std::string_view::npos;
  bool control = false;
  for (const char c : text) control |= static_cast<unsigned char>(c) < 0x20 && c != '\n';
  if (multi_line && !control && text[0] != ' ' && text[0] != '\n') {
    out += text.back() != '\n' ? "|-" : text.size() > 1 && text[text.size() - 2] == '\n' ? "|+" : "|";
    std::size_t start = 0;
    while (start < text.size()) {
      const std::size_t end = std::min(text.find('\n', start), text.size());
      out += '\n';
      if (end > start) out.append(indent, ' ').append(text, start, end - start);
      start = end + 1;
    }
    return;
  }
  if (control || multi_line) {
    serialize_to(out, Value(text));
  } else if (needs_quotes(text)) {
    const bool single = text.find('"') != std::string_view::npos || text.find('\\') != std::string_view::npos;
    if (single) {
      out += '\'';
      for (const char c : text) out.append(c == '\'' ? 2 : 1, c);
      out += '\'';
    } else {
      serialize_to(out, Value(text));
    }
  } else {
    out += text;
  }
}

void append_yaml(std::string& out, const Value& value, std::size_t indent, bool in_sequence);

void append_yaml_member(std::string& out, const Value& value, std::size_t indent, std::size_t sequence_indent) {
  if (value.is_object() && !value.get_object().empty()) {
    out += '\n';
    append_yaml(out, value, indent + 2, false);
  } else if (value.is_array() && !value.get_array().empty()) {
    out += '\n';
    append_yaml(out, value, sequence_indent, false);
  } else {
    out += ' ';
    append_yaml(out, value, indent + 2, false);
    out += '\n';
  }
}

/// `? key` and on the next line `: value`, as Go's printer does with keys of more than 128 bytes: readers take none of more than 1,024
/// characters before a colon.
void append_yaml_long_member(std::string& out, std::string_view key, const Value& value, std::size_t indent) {
  out += "? ";
  if (key.find('\n') != std::string_view::npos)
    serialize_to(out, Value(key));
  else
    append_yaml_string(out, key, indent);
  out.append("\n").append(indent, ' ').append(": ");
  std::string text;
  append_yaml(text, value, indent + 2, true);
  // A sequence's first element stands behind the colon, too.
  const std::size_t start = value.is_array() ? std::min(text.find_first_not_of(' '), text.size()) : 0;
  out.append(text, start, std::string::npos);
  if (out.back() != '\n') out += '\n';
}

void append_yaml(std::string& out, const Value& value, std::size_t indent, bool in_sequence) {
  if (const Object* object = value.if_object()) {
    if (object->empty()) {
      out += "{}";
      return;
    }
    std::vector<std::string_view> keys;
    for (const auto& member : *object) keys.emplace_back(member.key().data(), member.key().size());
    std::sort(keys.begin(), keys.end());
    bool first = true;
    for (const std::string_view key : keys) {
      if (!first || !in_sequence) out.append(indent, ' ');
      first = false;
      if (key.size() > 128) {
        append_yaml_long_member(out, key, *object->if_contains(key), indent);
        continue;
      }
      // A block scalar cannot be a key.
      if (key.find('\n') != std::string_view::npos)
        serialize_to(out, Value(key));
      else
        append_yaml_string(out, key, indent);
      out += ':';
      append_yaml_member(out, *object->if_contains(key), indent, indent);
    }
  } else if (const Array* array = value.if_array()) {
    if (array->empty()) {
      out += "[]";
      return;
    }
    for (const Value& member : *array) {
      out.append(indent, ' ').append("- ");
      const bool nested = (member.is_object() && !member.get_object().empty()) || (member.is_array() && !member.get_array().empty());
      if (member.is_array() && nested) {
        out.erase(out.size() - 1);
        out += '\n';
        append_yaml(out, member, indent + 2, false);
        continue;
      }
      append_yaml(out, member, indent + 2, true);
      if (!nested) out += '\n';
    }
  } else if (value.is_string()) {
    append_yaml_string(out, as_view(value), indent);
  } else {
    serialize_to(out, value);
  }
}

/// Takes no notice of anything.
class Discard final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

std::size_t count_of(std::string_view text, std::string_view marker) {
  std::size_t count = 0;
  for (auto at = text.find(marker); at != std::string_view::npos; at = text.find(marker, at + marker.size())) ++count;
  return count;
}

/// yaml-cpp answers some stray tokens ("a: 1}") with empty documents for ever. More documents than there are markers that could begin or
/// end one means that it is stuck.
void check_progress(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Discard nothing;
  const std::size_t limit = 2 + count_of(text, "---") + count_of(text, "...");
  for (std::size_t documents = 0; parser.HandleNextDocument(nothing); ++documents)
    if (documents > limit) throw YAML::ParserException(YAML::Mark::null_mark(), "unexpected token");
}

}  // namespace

Result<std::vector<Value>> parse_yaml_stream(std::string_view text) {
  const bool has_utf16_mark = text.starts_with("\xfe\xff") || text.starts_with("\xff\xfe");
  if (!has_utf16_mark && !is_utf8(text)) return invalid("invalid YAML: it is not valid UTF-8");
  try {
    std::vector<Value> out;
    check_progress(std::string(text));
    for (const YAML::Node& document : YAML::LoadAll(std::string(text)))
      if (document.IsDefined() && !document.IsNull()) out.push_back(Converter().convert(document, 0));
    return out;
  } catch (const YAML::Exception& error) {
    return invalid(fmt::format("invalid YAML at line {}, column {}: {}", error.mark.line + 1, error.mark.column + 1, error.msg));
  } catch (const TooDeep&) {
    return invalid(fmt::format("invalid YAML: nested more than {} levels deep", kMaxYamlDepth));
  } catch (const TooBig&) {
    return invalid("invalid YAML: it grows too large when its aliases are expanded");
  }
}

Result<Value> parse_yaml(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return parse(text);
  auto documents = parse_yaml_stream(text);
  if (!documents) return std::unexpected(documents.error());
  if (documents->size() != 1) return invalid(fmt::format("expected one YAML document, found {}", documents->size()));
  return std::move((*documents)[0]);
}

std::string to_yaml(const Value& value) {
  std::string out;
  append_yaml(out, value, 0, false);
  if (out.empty() || out.back() != '\n') out += '\n';
  return out;
}

}  // namespace berth::json
