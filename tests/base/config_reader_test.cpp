// The one reader of configuration files: what is wrong is told with its place, and what is known and unread is told too.
#include "base/config_reader.h"

#include <gtest/gtest.h>

#include "base/config_arguments.h"

namespace berth::config {
namespace {

struct Server {
  std::string name;
  std::int64_t size = 0;
  std::vector<std::string> notes;
};

Result<Server> read_server(std::string_view text, bool as_kubernetes = false) {
  Server out;
  std::vector<std::string> notes;
  const auto read = read_text(text, {.file = "f.yaml", .as_kubernetes = as_kubernetes, .notes = &notes}, [&](const Reader& root) {
    out = {};
    if (!root.expect_object()) return;
    root.only({"kind", "apiVersion", "name", "size", "color", "memory.available", "labels"}, Refusal::kOfBerth);
    constexpr std::string_view kKinds[] = {"Server"}, kVersions[] = {"v1"};
    root.expect_kind(kKinds, kVersions);
    out.name = root.string("name");
    out.size = root.integer("size", 0);
    static_cast<void>(root.string("memory.available"));
    static_cast<void>(root.strings("labels"));
  });
  if (!read) return std::unexpected(read.error());
  out.notes = notes;
  return out;
}

std::string error_of(std::string_view text) {
  const auto read = read_server(text);
  return read ? "(accepted)" : read.error().message;
}

TEST(ConfigReader, ProblemsAreToldAllAtOnceWithFileLineAndWhatIsMeant) {
  EXPECT_EQ(error_of("kind: Serer\nname: a\nsze: 3\nsize: big\n"),
            "f.yaml:3: sze: unknown field \"sze\"; did you mean \"size\"?\n"
            "f.yaml:1: kind: must be Server, is \"Serer\"\n"
            "f.yaml:4: size: must be an integer, not a string");
}

TEST(ConfigReader, AKeyThatStandsTwiceIsRefused) {
  EXPECT_EQ(error_of("name: a\nsize: 1\nname: b\n"), "f.yaml:3: name: stands here a second time");
  EXPECT_EQ(error_of("{\"name\": \"a\",\n\t\"name\": \"b\"}"), "f.yaml:2: name: stands here a second time");
}

TEST(ConfigReader, AReplayTakesWhatKubernetesTakes) {
  const auto read = read_server("name: a\nsze: 3\nname: b\n", true);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->name, "b");
  ASSERT_EQ(read->notes.size(), 2u);
  EXPECT_NE(read->notes[1].find("did you mean \"size\"?"), std::string::npos);
}

TEST(ConfigReader, WhatIsDeclaredAndReadByNobodyIsToldOnce) {
  const auto read = read_server("name: a\ncolor:\n  red: 1\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->notes, std::vector<std::string>{"f.yaml: known, and without effect here: color (line 2)"});
}

TEST(ConfigReader, TheLineOfAKeyWithDotsIsFound) {
  EXPECT_EQ(error_of("name: a\n\nmemory.available: 3\n"), "f.yaml:3: memory.available: must be a string, not a number");
}

TEST(ConfigReader, DocumentsOfAStreamKeepTheirLines) {
  const auto documents = split_documents("# head\n---\na: 1\n---\n\n---\nb: 2\n");
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(line_finder(documents[0])("a"), 3);
  EXPECT_EQ(line_finder(documents[1])("b"), 7);
  const auto odd = split_documents("---x: 1\n--- {b: 2}\n---\tc\n");
  ASSERT_EQ(odd.size(), 3u);  // Dashes without a blank are a key's own; what stands behind the mark belongs to the document.
  EXPECT_EQ(odd[0], "---x: 1\n");
  EXPECT_EQ(odd[1], "\n {b: 2}\n");
}

TEST(Arguments, AreReadInEveryFormThatTheDocumentsWrite) {
  for (const char* text : {"a: {disablePreemption: [\"false\"]}", "a: {disablePreemption: false}", "a: disablePreemption=false",
                           "a:\n- disablePreemption=false", "a: {--disablePreemption: ['false']}"}) {
    Arguments out;
    const auto read = read_text(text, {.file = "m.yaml"}, [&](const Reader& root) { out = read_arguments(root.field("a")); });
    ASSERT_TRUE(read) << text << read.error().message;
    ASSERT_TRUE(out.contains("disablePreemption")) << text;
    EXPECT_EQ(out["disablePreemption"].values, std::vector<std::string>{"false"}) << text;
    EXPECT_TRUE(out["disablePreemption"].place.starts_with("m.yaml:")) << out["disablePreemption"].place;
  }
  const auto wrong = read_text("a: disablePreemption", {.file = "m.yaml"}, [](const Reader& root) { read_arguments(root.field("a")); });
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "m.yaml:1: a: \"disablePreemption\" is not NAME=VALUE, nor a map of names to lists of values");
}

}  // namespace
}  // namespace berth::config
