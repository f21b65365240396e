// YAML out of JSON values, as sigs.k8s.io/yaml prints it: libyaml's emitter, of which the library of Kubernetes is a port.
#include <yaml.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/go/float.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/yaml_scalar.h"

namespace berth::json {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// What is not ASCII counts as a letter.
bool is_letter(char c) { return static_cast<unsigned char>(c) >= 0x80 || std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// "12:30:45" is a number to readers of YAML 1.1.
bool is_base_60(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  std::size_t at = 0;
  while (at < text.size() && (is_digit(text[at]) || (at > 0 && text[at] == '_'))) ++at;
  if (at == 0 || at == text.size()) return false;
  while (at < text.size() && text[at] == ':') {
    std::size_t end = at + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == at + 1 || end > at + 3 || (end == at + 3 && text[at + 1] > '5')) return false;
    at = end;
  }
  if (at < text.size() && text[at] == '.') at = std::min(text.find_first_not_of("0123456789_", at + 1), text.size());
  return at == text.size();
}

/// Read back without quotes it would be something else than this text.
bool needs_quotes(std::string_view text) { return is_yaml_word(text) || yaml_number(text) || is_yaml_timestamp(text) || is_base_60(text); }

/// Digits that begin at `at`, as a number (which may overflow, as in Go), and where they end.
std::pair<std::uint64_t, std::size_t> number_at(std::string_view text, std::size_t at, std::uint64_t start) {
  for (; at < text.size() && is_digit(text[at]); ++at) start = start * 10 + static_cast<std::uint64_t>(text[at] - '0');
  return {start, at};
}

/// The order of keys: letters behind everything else, numbers by their value.
bool stands_before(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  if (i == a.size() || i == b.size()) return a.size() < b.size();
  if (is_letter(a[i]) && is_letter(b[i])) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
  if (is_letter(a[i]) || is_letter(b[i])) return is_letter(b[i]);
  std::uint64_t before = 0;  // A zero inside of a number counts as a digit of it.
  if (a[i] == '0' || b[i] == '0')
    for (std::size_t k = i; k-- > 0 && is_digit(a[k]);)
      if (a[k] != '0') before = 1;
  const auto [a_number, a_end] = number_at(a, i, before);
  const auto [b_number, b_end] = number_at(b, i, before);
  if (a_number != b_number) return static_cast<std::int64_t>(a_number) < static_cast<std::int64_t>(b_number);
  if (a_end != b_end) return a_end < b_end;
  return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
}

/// Of those that an integer can hold.
bool is_whole(double value) { return value == std::floor(value) && std::abs(value) < 9.2e18; }

class Emitter {
 public:
  Emitter() {
    if (yaml_emitter_initialize(&emitter_) == 0) throw std::bad_alloc();
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_emitter_set_output(&emitter_, append, &out_);
  }
  ~Emitter() { yaml_emitter_delete(&emitter_); }
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  std::string print(const Value& value) {
    emit([](yaml_event_t* event) { return yaml_stream_start_event_initialize(event, YAML_UTF8_ENCODING); });
    emit([](yaml_event_t* event) { return yaml_document_start_event_initialize(event, nullptr, nullptr, nullptr, 1); });
    put(value);
    emit([](yaml_event_t* event) { return yaml_document_end_event_initialize(event, 1); });
    emit(yaml_stream_end_event_initialize);
    // libyaml alone marks the end behind a text that ends in empty lines.
    if (out_.ends_with("\n...\n")) out_.resize(out_.size() - 4);
    return std::move(out_);
  }

 private:
  static int append(void* out, unsigned char* bytes, std::size_t size) {
    static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(bytes), size);
    return 1;
  }
  template <typename Make>
  void emit(const Make& make) {
    yaml_event_t event;
    if (make(&event) == 0 || yaml_emitter_emit(&emitter_, &event) == 0) throw std::bad_alloc();
  }

  void put(const Value& value) {
    if (const Object* object = value.if_object())
      put_map(*object);
    else if (const Array* array = value.if_array())
      put_list(*array);
    else if (value.is_string())
      put_text(as_view(value), false);
    else if (value.is_double() && !is_whole(value.get_double()))
      put_scalar(go::format_float(value.get_double()), YAML_PLAIN_SCALAR_STYLE);
    else
      put_scalar(json::serialize(value), YAML_PLAIN_SCALAR_STYLE);
  }
  void put_map(const Object& object) {
    std::vector<std::string_view> keys;
    for (const auto& member : object) keys.emplace_back(member.key());
    std::ranges::sort(keys, stands_before);
    emit([](yaml_event_t* event) { return yaml_mapping_start_event_initialize(event, nullptr, nullptr, 1, YAML_BLOCK_MAPPING_STYLE); });
    for (const std::string_view key : keys) {
      put_text(key, key == "<<");
      put(*object.if_contains(key));
    }
    emit(yaml_mapping_end_event_initialize);
  }
  void put_list(const Array& array) {
    emit([](yaml_event_t* event) { return yaml_sequence_start_event_initialize(event, nullptr, nullptr, 1, YAML_BLOCK_SEQUENCE_STYLE); });
    for (const Value& member : array) put(member);
    emit(yaml_sequence_end_event_initialize);
  }
  void put_text(std::string_view text, bool means_merge) {
    const auto style = text.contains('\n')                 ? YAML_LITERAL_SCALAR_STYLE
                       : means_merge || needs_quotes(text) ? YAML_DOUBLE_QUOTED_SCALAR_STYLE
                                                           : YAML_PLAIN_SCALAR_STYLE;
    put_scalar(is_utf8(text) ? std::string(text) : to_utf8(text), style);
  }
  void put_scalar(const std::string& text, yaml_scalar_style_t style) {
    emit([&](yaml_event_t* event) {
      return yaml_scalar_event_initialize(event, nullptr, nullptr, reinterpret_cast<const yaml_char_t*>(text.data()),
                                          static_cast<int>(text.size()), 1, 1, style);
    });
  }

  yaml_emitter_t emitter_{};
  std::string out_;
};

}  // namespace

std::string to_yaml(const Value& value) { return Emitter().print(value); }

}  // namespace berth::json
