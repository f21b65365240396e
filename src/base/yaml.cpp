// YAML out of JSON values, as sigs.k8s.io/yaml prints it.
#include <cctype>

#include "base/json.h"
#include "base/yaml_scalar.h"

namespace berth::json {
namespace {

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  if (is_yaml_word(text) || text == "<<" || text == "-" || text == "---") return true;
  if (yaml_number(text)) return true;
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

}  // namespace

std::string to_yaml(const Value& value) {
  std::string out;
  append_yaml(out, value, 0, false);
  if (out.empty() || out.back() != '\n') out += '\n';
  return out;
}

}  // namespace berth::json
