// Single texts and values of users, each through what reads it: no reader costs more than n log n steps of its length, and what defaults
// make of an object is bounded (issue 31: a quantity of 100 KB took 1.8 s, 2.4 MB of `{}` became 250 MB).
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/go/cron.h"
#include "base/go/duration.h"
#include "base/go/url.h"
#include "base/json_size.h"
#include "custom/objects.h"
#include "custom/validate.h"
#include "model/quantity.h"
#include "model/selector.h"
#include "tests/complexity/steps.h"

namespace berth::testing {
namespace {

struct Reader {
  std::string name;
  std::function<std::string(std::size_t size)> text;
  std::function<void(const std::string& text)> read;
};

std::string repeated(std::string_view piece, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += piece;
  return out;
}

std::vector<Reader> readers() {
  using Text = std::string;
  const auto digits = [](const Text& before, const Text& after) {
    return [=](std::size_t n) { return before + repeated("7", n) + after; };
  };
  const auto quantity = [](const Text& text) {
    if (const auto parsed = model::Quantity::parse(text)) {
      EXPECT_FALSE(parsed->to_string().empty());
    }
  };
  const auto json = [](const Text& text) { (void)json::parse(text); };
  const auto yaml = [](const Text& text) { (void)json::parse_yaml(text); };
  std::vector<Reader> out;
  for (const char* suffix : {"", "n", "m", "Ki", "Ei", "e-40", "e9"}) {
    out.push_back({fmt::format("quantity 777{}", suffix), digits("", suffix), quantity});
    out.push_back({fmt::format("quantity 0.777{}", suffix), digits("0.", suffix), quantity});
    out.push_back(
        {fmt::format("quantity 1.000...7{}", suffix), [=](std::size_t n) { return "1." + Text(n, '0') + "7" + suffix; }, quantity});
  }
  out.push_back({"JSON number", digits("", ""), json});
  out.push_back({"JSON fraction", digits("0.", ""), json});
  out.push_back({"JSON exponent", digits("1e", ""), json});
  out.push_back({"JSON escapes", [](std::size_t n) { return "\"" + repeated("\\u00e9", n) + "\""; }, json});
  out.push_back({"YAML number", digits("a: ", ""), yaml});
  out.push_back({"YAML text in quotes", [](std::size_t n) { return "a: \"" + repeated("\\x41 ", n) + "\""; }, yaml});
  out.push_back({"YAML folded text", [](std::size_t n) { return "a: >\n" + repeated("  x\n", n); }, yaml});
  out.push_back({"duration", [](std::size_t n) { return repeated("1h1m", n); }, [](const Text& text) { (void)parse_duration_ns(text); }});
  out.push_back({"duration with a fraction", digits("0.", "s"), [](const Text& text) { (void)parse_duration_ns(text); }});
  out.push_back(
      {"cron", [](std::size_t n) { return repeated("1,", n) + "1 * * * *"; }, [](const Text& text) { (void)go::parse_cron(text); }});
  out.push_back({"base64", [](std::size_t n) { return repeated("QUJD", n); }, [](const Text& text) { (void)base64_decode(text); }});
  out.push_back({"time", digits("2026-01-01T00:00:00.", "Z"), [](const Text& text) { (void)parse_rfc3339(text); }});
  out.push_back({"label selector", [](std::size_t n) { return "a in (" + repeated("b,", n) + "c)"; },
                 [](const Text& text) { (void)model::Selector::parse(text); }});
  out.push_back({"label selector of many", [](std::size_t n) { return repeated("a!=b,", n) + "c"; },
                 [](const Text& text) { (void)model::Selector::parse(text); }});
  out.push_back({"field selector", [](std::size_t n) { return repeated("a\\,=b\\=,", n) + "c=d"; },
                 [](const Text& text) { (void)model::FieldSelector::parse(text); }});
  out.push_back(
      {"URL", [](std::size_t n) { return "https://h/" + repeated("%41", n); }, [](const Text& text) { (void)go::parse_url(text); }});
  out.push_back({"query",
                 [](std::size_t n) {
                   std::string text;
                   for (std::size_t i = 0; i < n; ++i) text += fmt::format("k{}=v&", i);
                   return text;
                 },
                 [](const Text& text) { (void)go::parse_query(text); }});
  return out;
}

double growth(std::uint64_t once, std::uint64_t four) {
  return static_cast<double>(four) / static_cast<double>(std::max<std::uint64_t>(once, 1));
}

TEST(ComplexityOfTexts, NoReaderCostsTheSquare) {
  for (const auto& reader : readers()) {
    const auto cost = [&](std::size_t size) {
      const auto text = reader.text(size);
      const auto before = steps();
      reader.read(text);
      return steps() - before;
    };
    (void)cost(10);
    const auto once = cost(10'000), four = cost(40'000);
    EXPECT_LT(growth(once, four), 6) << reader.name << ": " << once << ", " << four << " steps";
  }
}

custom::Schema schema_of(std::string_view text) { return custom::read_schema(*json::parse(text)); }

json::Value list_of(const json::Value& element, std::size_t count) { return json::Object{{"list", json::Array(count, element)}}; }

TEST(ComplexityOfCustomObjects, WhatIsWrongIsToldAtACostOfItsNumber) {
  const std::vector<std::pair<const char*, json::Value>> wrong = {
      {R"({"type":"object","properties":{"list":{"type":"array","items":{"type":"object","required":["a"]}}}})", json::Object()},
      {R"({"type":"object","properties":{"list":{"type":"array","items":{"type":"string","enum":["one","two","three","four"]}}}})", "x"},
      {R"({"type":"object","properties":{"list":{"type":"array","items":{"type":"object","additionalProperties":{"type":"integer"}}}}})",
       json::Object{{"a", "x"}, {"b", "x"}}},
      {R"({"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"a":{"oneOf":[{"minimum":1},{"minimum":2}]}}}}}})",
       json::Object{{"a", 0}}}};
  for (const auto& [text, element] : wrong) {
    const auto schema = schema_of(text);
    const auto cost = [&](std::size_t count) {
      const auto value = list_of(element, count);
      model::FieldErrors errors;
      const auto before = steps();
      custom::check_schema(value, schema, "", nullptr, errors);
      EXPECT_FALSE(errors.empty());
      return steps() - before;
    };
    const auto once = cost(5'000), four = cost(20'000);
    EXPECT_LT(growth(once, four), 6) << text << ": " << once << ", " << four << " steps";
  }
}

/// However many are wrong, and whatever is shown of each: an enum of 10 KB, missed 100,000 times.
TEST(ComplexityOfCustomObjects, AProductOfValuesAndWordsIsBounded) {
  std::string words;
  for (int i = 0; i < 1000; ++i) words += fmt::format(R"({}"word-{:05}")", i == 0 ? "" : ",", i);
  const auto schema = schema_of(fmt::format(R"({{"properties":{{"list":{{"items":{{"type":"string","enum":[{}]}}}}}}}})", words));
  std::string names;
  for (int i = 0; i < 1000; ++i) names += fmt::format(R"({}"name-{:05}")", i == 0 ? "" : ",", i);
  const auto needs = schema_of(fmt::format(R"({{"properties":{{"list":{{"items":{{"type":"object","required":[{}]}}}}}}}})", names));
  for (const auto& [what, element] : {std::pair(&schema, json::Value("x")), std::pair(&needs, json::Value(json::Object()))}) {
    const auto value = list_of(element, 20'000);
    model::FieldErrors errors;
    peak_bytes();
    const auto alive = peak_bytes();
    custom::check_schema(value, *what, "", nullptr, errors);
    EXPECT_LT(peak_bytes() - alive, 64U << 20);
    EXPECT_FALSE(errors.empty());
  }
}

TEST(ComplexityOfCustomObjects, DefaultsStopAtWhatMayBeStored) {
  const auto schema = schema_of(fmt::format(
      R"({{"properties":{{"list":{{"items":{{"type":"object","properties":{{"a":{{"type":"string","default":"{}"}},"b":{{"type":"object","default":{{}},"properties":{{"c":{{"type":"string","default":"d"}}}}}}}}}}}}}}}})",
      std::string(300, 'x')));
  auto few = list_of(json::Object(), 2);
  custom::set_defaults(few, schema);
  EXPECT_EQ(json::get_string(json::get_array(few, {"list"})[1], {"b", "c"}), "d");
  EXPECT_EQ(json::get_string(json::get_array(few, {"list"})[1], {"a"}).size(), 300U);
  auto many = list_of(json::Object(), 800'000);  // 2.4 MB
  peak_bytes();
  const auto alive = peak_bytes();
  custom::set_defaults(many, schema);
  EXPECT_LT(peak_bytes() - alive, 64U << 20);
  EXPECT_GT(json::text_size(many), custom::kMostDefaultBytes) << "so that it is refused";
}

}  // namespace
}  // namespace berth::testing
