// Whatever YAML says of a document, it is read as that document: written by libyaml in every style that there is, block and flow, plain,
// quoted, literal and folded, with anchors, and read here.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml.h>

#include <random>

#include "base/yaml.h"

namespace berth::json {
namespace {

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  Value document() {
    Value out = Object();
    for (int i = below(5); i >= 0; --i) out.get_object()[key()] = value(4);
    return out;
  }
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }

 private:
  std::string key() { return below(6) == 0 ? text() : fmt::format("{}{}", static_cast<char>('a' + below(26)), below(100)); }
  /// With what has a meaning somewhere in YAML, and words that are no strings where they stand alone.
  std::string text() {
    static constexpr std::array kWords = {"yes",  "no",   "on",  "off",        "true", "False", "null",  "~",    "",       "1",    "0x1f",
                                          "017",  "0o17", "1e3", "1_0",        ".5",   "-.inf", ".nan",  "1:30", "<<",     "=",    "y",
                                          "N",    "+1",   "1.",  "2001-01-01", "-",    "- a",   "? b",   "a: b", "#c",     "a #c", "&a",
                                          "*a",   "!t",   "|",   ">",          "%d",   "@e",    "`f",    "[g]",  "{h: i}", "'j'",  "\"k\"",
                                          "l\\n", "---",  "...", "a:",         ":b",   ", c",   "1,000", "0b11"};
    static constexpr std::array kPieces = {"a", "Z",  "9",  " ", "  ",     ":",  ": ",         " #", "\n", "\n\n", "\t", "-",
                                           "'", "\"", "\\", "ü", "\u2028", "日", "\U0001F600", "{",  "}",  "[",    "]",  ",",
                                           "&", "*",  "!",  "|", ">",      "%",  "@",          "`",  "?",  "=",    "\r", "\x01"};
    if (below(2) == 0) return kWords.at(static_cast<std::size_t>(below(kWords.size())));
    std::string out;
    for (int i = below(8); i >= 0; --i) out += kPieces.at(static_cast<std::size_t>(below(kPieces.size())));
    return out;
  }
  Value value(int depth) {
    switch (below(depth > 0 ? 8 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return below(4) == 0 ? std::numeric_limits<std::int64_t>::max() - below(3) : std::int64_t{below(2'000'001)} - 1'000'000;
      case 3:
        return (below(2'000'001) - 1'000'000) / 1024.0 + 0.0001;
      case 4:
      case 5:
        return Value(text());
      case 6: {
        Array out;
        for (int i = below(4); i > 0; --i) out.push_back(value(depth - 1));
        return out;
      }
      default: {
        Object out;
        for (int i = below(4); i > 0; --i) out[key()] = value(depth - 1);
        return out;
      }
    }
  }
  std::mt19937 random_;
};

/// libyaml's own emitter.
class Writer {
 public:
  explicit Writer(Maker& choose) : choose_(choose) {
    yaml_emitter_initialize(&emitter_);
    yaml_emitter_set_output(
        &emitter_,
        [](void* out, unsigned char* bytes, std::size_t size) {
          static_cast<std::string*>(out)->append(reinterpret_cast<char*>(bytes), size);
          return 1;
        },
        &out_);
    yaml_emitter_set_unicode(&emitter_, choose_.below(2));
    yaml_emitter_set_width(&emitter_, choose_.below(2) == 0 ? -1 : 20 + choose_.below(80));
    yaml_emitter_set_indent(&emitter_, 2 + choose_.below(7));
  }
  ~Writer() { yaml_emitter_delete(&emitter_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  std::string write(const Value& document) {
    emit([](yaml_event_t& event) { return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING); });
    const int implicit = choose_.below(2);
    emit([&](yaml_event_t& event) { return yaml_document_start_event_initialize(&event, nullptr, nullptr, nullptr, implicit); });
    node(document);
    emit([&](yaml_event_t& event) { return yaml_document_end_event_initialize(&event, implicit); });
    emit([](yaml_event_t& event) { return yaml_stream_end_event_initialize(&event); });
    yaml_emitter_flush(&emitter_);
    return out_;
  }

 private:
  template <typename Make>
  void emit(Make make) {
    yaml_event_t event;
    ASSERT_EQ(make(event), 1);
    ASSERT_EQ(yaml_emitter_emit(&emitter_, &event), 1) << emitter_.problem;
  }
  void scalar(std::string_view text, bool is_string) {
    static constexpr std::array kStyles = {YAML_SINGLE_QUOTED_SCALAR_STYLE, YAML_DOUBLE_QUOTED_SCALAR_STYLE, YAML_LITERAL_SCALAR_STYLE,
                                           YAML_FOLDED_SCALAR_STYLE};
    // A word of letters that is nothing else may stand as it is; the emitter itself knows which other styles a text can have.
    const bool is_word = text.size() > 5 && std::ranges::all_of(text, [](unsigned char c) { return std::isalpha(c) != 0; });
    const auto style = !is_string || (is_word && choose_.below(2) == 0)
                           ? YAML_PLAIN_SCALAR_STYLE
                           : kStyles.at(static_cast<std::size_t>(choose_.below(kStyles.size())));
    emit([&](yaml_event_t& event) {
      return yaml_scalar_event_initialize(&event, nullptr, nullptr, reinterpret_cast<const yaml_char_t*>(text.data()),
                                          static_cast<int>(text.size()), is_string ? static_cast<int>(is_word) : 1, 1, style);
    });
  }
  void node(const Value& value) {
    if (const auto* list = value.if_array()) {
      const auto style = choose_.below(2) == 0 ? YAML_BLOCK_SEQUENCE_STYLE : YAML_FLOW_SEQUENCE_STYLE;
      emit([&](yaml_event_t& event) { return yaml_sequence_start_event_initialize(&event, nullptr, nullptr, 1, style); });
      for (const auto& one : *list) node(one);
      return emit([](yaml_event_t& event) { return yaml_sequence_end_event_initialize(&event); });
    }
    if (const auto* object = value.if_object()) {
      const auto style = choose_.below(2) == 0 ? YAML_BLOCK_MAPPING_STYLE : YAML_FLOW_MAPPING_STYLE;
      emit([&](yaml_event_t& event) { return yaml_mapping_start_event_initialize(&event, nullptr, nullptr, 1, style); });
      for (const auto& [key, member] : *object) {
        scalar(key, true);
        node(member);
      }
      return emit([](yaml_event_t& event) { return yaml_mapping_end_event_initialize(&event); });
    }
    if (value.is_string()) return scalar(as_view(value), true);
    scalar(json::serialize(value), false);
  }

  Maker& choose_;
  yaml_emitter_t emitter_{};
  std::string out_;
};

TEST(YamlProperty, WhatIsWrittenInAnyStyleIsReadAsItIs) {
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Maker maker(seed);
    const Value document = maker.document();
    const std::string text = Writer(maker).write(document);
    const auto read = read_first_yaml(text);
    ASSERT_TRUE(read) << seed << ": " << read.error().go_words << "\n" << text;
    ASSERT_TRUE(json::equal(*read, document)) << seed << ": " << json::serialize(document) << "\nread as " << json::serialize(*read) << "\n"
                                              << text;
  }
}

/// What a JSON text says, read as YAML: of one line or indented, that is what kubectl and people send.
TEST(YamlProperty, JsonIsYaml) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Maker maker(seed);
    const Value document = maker.document();
    std::string text = json::serialize(document);
    // To YAML 1.1 a line separator ends a line, on which a key must stand whole: whoever writes JSON for it escapes them, as Go does.
    for (std::size_t at = 0; (at = text.find("\u2028", at)) != std::string::npos;) text.replace(at, 3, "\\u2028");
    const auto read = read_first_yaml(text);
    ASSERT_TRUE(read) << seed << ": " << read.error().go_words << "\n" << text;
    ASSERT_TRUE(json::equal(*read, document)) << seed << ": read as " << json::serialize(*read) << "\n" << text;
  }
}

}  // namespace
}  // namespace berth::json
