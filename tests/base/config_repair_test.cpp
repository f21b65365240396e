// A user's text is read as every other YAML reader reads it. What the OpenShift documents print and is no YAML is read as they mean it, and
// every change is told.
#include "base/config_repair.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "base/config_reader.h"

namespace berth::config {
namespace {

using Lines = std::vector<std::string>;

struct Shelf {
  std::string name;
  std::int64_t size = 0;
  bool is_open = false;
  Lines labels, notes;
};

Result<Shelf> read_shelf(std::string_view text) {
  Shelf out;
  Lines notes;
  const auto read = read_text(text, {.file = "f.yaml", .notes = &notes}, [&](const Reader& root) {
    out = {};
    if (!root.expect_object()) return;
    root.only({"name", "size", "open", "labels"}, Refusal::kOfBerth);
    out.name = root.string("name");
    out.size = root.integer("size", 0);
    out.is_open = root.boolean("open", false);
    out.labels = root.strings("labels");
  });
  if (!read) return std::unexpected(read.error());
  out.notes = notes;
  return out;
}

std::string error_of(std::string_view text) {
  const auto read = read_shelf(text);
  return read ? "(accepted)" : read.error().message;
}

Lines notes_of(std::string_view text) {
  const auto read = read_shelf(text);
  return read ? read->notes : Lines{read.error().message};
}

TEST(ConfigRepair, CalloutsAreTakenInEveryFormOfTheDocuments) {
  for (const char* text : {"name: \"a\" 1\nsize: 3 2\n", "name: \"a\" <1>\nsize: 3 <2>\n", "name: \"a\" (1)\nsize: 3 (2)\n",
                           "    ...\nname: \"a\"\nsize: 3\n    ...\n", "....\nname: a\nsize: 3\n....\n", "name: a\n...\nsize: 3\n...\n",
                           "name: \"a\" # <1>\nsize: 3 # <2>\n", "name: \"a\"\nlabels: 1\n- b 2\nsize: 3 3\n"}) {
    const auto read = read_shelf(text);
    ASSERT_TRUE(read) << text << read.error().message;
    EXPECT_EQ(read->name, "a") << text;
    EXPECT_EQ(read->size, 3) << text;
  }
}

TEST(ConfigRepair, EveryChangeIsTold) {
  EXPECT_EQ(notes_of("....\nname: \"a\" 1\nsize: 3 2\n"),
            (Lines{"f.yaml: line 1: \"....\" is left out", "f.yaml: line 2: read without the callout \"1\"",
                   "f.yaml: line 3: read without the callout \"2\""}));
  EXPECT_EQ(notes_of("name: \"a\"\n  size: 3\n"), (Lines{"f.yaml: line 2: read as if it stood as deep as line 1"}));
  EXPECT_EQ(notes_of("name: a\nlabels\n  - b\n"), (Lines{"f.yaml: line 2: \"labels\" is read as \"labels:\""}));
  EXPECT_EQ(notes_of("name: a\nsize: 3\n"), Lines());
}

TEST(ConfigRepair, OfATextThatParsesOnlyWhatCannotStandThereLosesItsCallout) {
  const auto read = read_shelf("name: my shelf 1\nopen: false 1\nlabels:\n- row 1\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->name, "my shelf 1");
  EXPECT_EQ(read->labels, Lines{"row 1"});
  EXPECT_FALSE(read->is_open);
  EXPECT_EQ(read->notes, (Lines{"f.yaml: line 2: read without the callout \"1\""}));
  EXPECT_EQ(error_of("open: false 7\n"), "f.yaml:1: open: must be true or false, not a string");      // Callouts count up from 1.
  EXPECT_EQ(error_of("open: \"false 1\"\n"), "f.yaml:1: open: must be true or false, not a string");  // In quotes it is the user's own.
  EXPECT_EQ(error_of("size: 3 1\nopen: never 2\n"),
            "f.yaml:1: size: must be an integer, not a string\nf.yaml:2: open: must be true or false, not a string");
}

TEST(ConfigRepair, AnErrorIsToldWhereTheUsersTextIsWrong) {
  EXPECT_EQ(error_of("name: \"a\" 1\nsze: 3 2\n"),
            "f.yaml: invalid YAML at line 1, column 11: did not find expected key\n"
            "f.yaml:2: sze: unknown field \"sze\"; did you mean \"size\"?");
  EXPECT_EQ(error_of("name: a\nsize: 3\n   labels: [\n"),
            "f.yaml: invalid YAML at line 3, column 10: mapping values are not allowed in this context");
  Lines notes;
  const auto stream = parse_stream("kind: Pod\nspec:\n  replicas: 3\n    paused: true\n", notes);
  ASSERT_FALSE(stream);  // kubectl refuses it as well.
  EXPECT_EQ(stream.error().message, "invalid YAML at line 4, column 11: mapping values are not allowed in this context");
  EXPECT_EQ(notes, Lines());
}

TEST(ConfigRepair, WhoeverCannotBeToldGetsNoChange) {
  EXPECT_FALSE(read_text("name: \"a\" 1\n", {.file = "f.yaml"}, [](const Reader& root) { root.skip(); }));
}

TEST(ConfigRepair, ANumberOfTheTextsOwnStaysBesideACallout) {
  // The last line is no YAML, so that the text is read without callouts; the other numbers are its own.
  for (const std::string own :
       {"seconds: 60\n- key: b", "seconds: 1\n- key: b", "command: sleep 2", "args: [a] # 1", "text: |\n    sleep 1"}) {
    const std::string text = fmt::format("kind: Pod\nspec:\n- key: a\n  {}\nlast: \"a\"", own);
    Lines notes;
    const auto read = parse_stream(text + " <1>\n", notes);
    ASSERT_TRUE(read) << text << read.error().message;
    EXPECT_TRUE(json::equal(read->at(0), json::parse_yaml(text).value())) << json::serialize(read->at(0));
    EXPECT_EQ(notes.size(), 1u) << text;
  }
}

TEST(ConfigRepair, ManifestsOfTheDocumentsAreReadAsMeant) {
  Lines notes;
  const auto priority = parse_stream(
      "kind: PriorityClass\nmetadata:\n  name: high-priority 1\nvalue: 1000000 2\nglobalDefault: false 3\ndescription: \"For service 5.\" "
      "4\n",
      notes);
  ASSERT_TRUE(priority) << priority.error().message;
  EXPECT_EQ(
      json::serialize(priority->at(0)),
      R"({"kind":"PriorityClass","metadata":{"name":"high-priority"},"value":1000000,"globalDefault":false,"description":"For service 5."})");
  EXPECT_EQ(notes.size(), 4u);
  const auto project = parse_stream(
      "kind: Namespace\nmetadata\n  name: ns1\n  annotations:\n    scheduler.alpha.kubernetes.io/node-selector: env=test 1\nspec: "
      "{},\nstatus: {}\n",
      notes);
  ASSERT_TRUE(project) << project.error().message;
  EXPECT_EQ(json::get_string(project->at(0), {"metadata", "annotations", "scheduler.alpha.kubernetes.io/node-selector"}), "env=test");
  EXPECT_EQ(notes.size(), 7u);
  const auto job = parse_stream(
      "kind: Job\nspec:\n  volumes: 1\n  - name: v\n  command:\n  - \"sh\"\n  - |\n    ...\n    sleep 1\n    run /policy.yaml 2\n", notes);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(json::get_array(job->at(0), {"spec", "command"}).at(1), "...\nsleep 1\nrun /policy.yaml\n");
}

// Texts with all that was once taken for a callout, and the values that they say.

class Texts {
 public:
  explicit Texts(unsigned seed) : random_(seed) {}

  std::pair<std::string, json::Value> document() {
    out_.clear();
    json::Value value = map(0);
    return {out_, std::move(value)};
  }

 private:
  unsigned below(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random_); }
  std::string key() {
    constexpr const char* kKeys[] = {"name",   "tolerationSeconds", "value", "kind", "schedulerName", "key", "args", "weight", "spec",
                                     "enabled"};
    return kKeys[below(std::size(kKeys))];
  }

  /// `  - a: 1`: what follows a dash begins on its line.
  void begin(std::size_t indent) {
    if (!is_behind_dash_) out_ += std::string(indent, ' ');
    is_behind_dash_ = false;
    if (below(9) == 0 && out_.ends_with('\n')) out_ += fmt::format("# <{}>\n{}", below(9), std::string(indent, ' '));
  }

  json::Value map(std::size_t indent) {
    json::Object out;
    for (unsigned count = 1 + below(4); out.size() < count;) {
      const std::string name = key();
      if (out.contains(name)) continue;
      begin(indent);
      out_ += name + ":";
      out[name] = value(indent);
    }
    return out;
  }

  json::Value list(std::size_t indent) {
    json::Array out;
    for (unsigned i = 0, count = 1 + below(3); i < count; ++i) {
      out_ += std::string(indent, ' ') + "-";
      if (below(3) == 0) {
        out_ += " ";
        is_behind_dash_ = true;
        out.push_back(map(indent + 2));
      } else {
        out.push_back(scalar(indent));
      }
    }
    return out;
  }

  json::Value value(std::size_t indent) {
    if (indent < 12 && below(4) == 0) {
      out_ += "\n";
      return map(indent + 2);
    }
    if (indent < 12 && below(4) == 0) {
      out_ += "\n";
      return list(indent + (below(2) == 0 ? 2 : 0));  // Also at the key's own depth.
    }
    return scalar(indent);
  }

  json::Value scalar(std::size_t indent) {
    const unsigned number = 1 + below(99);
    const std::string remark = below(4) == 0 ? fmt::format(" # {}", number) : "";
    switch (below(8)) {
      case 0:
      case 1:
        out_ += fmt::format(" {}{}\n", number, remark);
        return json::Value(static_cast<std::int64_t>(number));
      case 2:
        out_ += fmt::format(" true{}\n", remark);
        return json::Value(true);
      case 3:
        out_ += fmt::format(" word {}\n", number);
        return json::Value(fmt::format("word {}", number));
      case 4:
        out_ += fmt::format(" {} {}\n", 1000 + number, number);
        return json::Value(fmt::format("{} {}", 1000 + number, number));
      case 5:
        out_ += fmt::format(" \"quoted {}\"{}\n", number, remark);
        return json::Value(fmt::format("quoted {}", number));
      case 6: {
        const std::string pad(indent + 2, ' ');
        out_ += fmt::format(" |\n{}...\n{}line {}\n{}key: {}\n", pad, pad, number, pad, number);
        return json::Value(fmt::format("...\nline {}\nkey: {}\n", number, number));
      }
      default:
        out_ += fmt::format(" a ({})\n", number);
        return json::Value(fmt::format("a ({})", number));
    }
  }

  std::mt19937 random_;
  std::string out_;
  bool is_behind_dash_ = false;
};

TEST(ConfigRepair, WhateverParsesIsReadAsEveryOtherReaderReadsIt) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Texts texts(seed);
    std::string text;
    std::vector<json::Value> wanted;
    for (unsigned i = 0; i <= seed % 3; ++i) {
      auto [one, value] = texts.document();
      text += (i == 0 ? "" : i == 1 ? "---\n" : "...\n---\n") + one;
      wanted.push_back(std::move(value));
    }
    Lines notes;
    const auto read = parse_stream(text, notes);
    ASSERT_TRUE(read) << text << read.error().message;
    ASSERT_EQ(read->size(), wanted.size()) << text;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      ASSERT_TRUE(json::equal(read->at(i), wanted[i])) << text << json::serialize(read->at(i)) << "\nwanted\n"
                                                       << json::serialize(wanted[i]);
    ASSERT_EQ(notes, Lines()) << text;
    if (wanted.size() > 1) continue;
    json::Value root;
    ASSERT_TRUE(read_text(text, {.notes = &notes}, [&](const Reader& reader) { root = *reader.value(); })) << text;
    ASSERT_TRUE(json::equal(root, wanted[0])) << text;
    ASSERT_EQ(notes, Lines()) << text;
  }
}

}  // namespace
}  // namespace berth::config
