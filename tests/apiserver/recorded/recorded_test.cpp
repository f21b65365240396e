// Answers that were recorded are given again, byte by byte (README.md here). One test a story:
//   test_apiserver --gtest_filter='*Recorded*/good_apps_v1_Deployment'
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include "model/features.h"
#include "tests/apiserver/recorded/stories.h"
#include "tests/apiserver/server_fixture.h"
#include "tests/support/source_dir.h"

namespace berth::apiserver::testing {
namespace {

using berth::testing::Story;
using berth::testing::StoryRequest;
using json::Object;
using json::Value;

std::string pack_path() { return berth::testing::source_dir() + "/tests/apiserver/recorded/answers.jsonl.gz"; }

struct Recording {
  Story story;
  std::vector<std::string> answers;  ///< "201 BODY", in the order of the requests.
};

Value to_json(const Recording& recording) {
  json::Array requests, answers;
  for (const StoryRequest& one : recording.story.requests)
    requests.push_back(Object{{"method", one.method}, {"path", one.path}, {"type", one.type}, {"body", one.body}, {"accept", one.accept}});
  for (const std::string& one : recording.answers) answers.emplace_back(one);
  return Object{{"name", recording.story.name}, {"requests", std::move(requests)}, {"answers", std::move(answers)}};
}

Recording from_json(const Value& line) {
  const auto text = [](const Value& of, std::string_view key) { return std::string(json::get_string(of, {key})); };
  Recording out{{text(line, "name"), {}}, {}};
  for (const Value& one : json::get_array(line, {"requests"}))
    out.story.requests.push_back({text(one, "method"), text(one, "path"), text(one, "type"), text(one, "body"), text(one, "accept")});
  for (const Value& one : json::get_array(line, {"answers"})) out.answers.emplace_back(json::as_view(one));
  return out;
}

/// By name; empty where there is no pack.
const std::map<std::string, Recording>& recordings() {
  static const std::map<std::string, Recording> all = [] {
    std::map<std::string, Recording> out;
    gzFile file = gzopen(pack_path().c_str(), "rb");
    if (file == nullptr) return out;
    std::string text(1 << 16, '\0'), rest;
    for (int n = 0; (n = gzread(file, text.data(), static_cast<unsigned>(text.size()))) > 0;)
      rest.append(text, 0, static_cast<std::size_t>(n));
    gzclose(file);
    for (std::size_t at = 0; at < rest.size();) {
      const std::size_t end = std::min(rest.find('\n', at), rest.size());
      if (const auto line = json::parse(std::string_view(rest).substr(at, end - at))) {
        Recording one = from_json(*line);
        out.emplace(one.story.name, std::move(one));
      }
      at = end + 1;
    }
    return out;
  }();
  return all;
}

/// Identities that are drawn, revisions, which tell how much a server wrote before it was asked.
std::string masked(std::string text) {
  static const std::regex kUid("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
  static const std::regex kRevision(R"re("resourceVersion":"[0-9]+")re");
  return std::regex_replace(std::regex_replace(text, kUid, "UID"), kRevision, R"("resourceVersion":"N")");
}

class RecordedTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.features = model::preferred_features();
    start(std::move(options));
  }
  std::vector<std::string> play(const Story& story) {
    std::vector<std::string> out;
    for (const StoryRequest& one : story.requests) {
      const auto answer = send(one.method, one.path, one.body, one.type.empty() ? "application/json" : one.type,
                               {{"Accept", one.accept}, {"User-Agent", "recorder"}});
      out.push_back(fmt::format("{} {}", answer->status, masked(answer->body)));
    }
    return out;
  }
};

class Recorded : public RecordedTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(Recorded, IsAnsweredAlike) {
  const Recording& recording = recordings().at(GetParam());
  const auto answers = play(recording.story);
  ASSERT_EQ(answers.size(), recording.answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const StoryRequest& request = recording.story.requests[i];
    EXPECT_EQ(answers[i], recording.answers[i]) << request.method << " " << request.path << "\n" << request.body;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, recording] : recordings()) out.push_back(name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Recorded, Recorded, ::testing::ValuesIn(names()), [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Recorded);

/// No story is lost, none asks otherwise; new ones are named until they are recorded. BERTH_RECORD=1 writes the pack anew.
TEST_F(RecordedTest, EveryStoryIsThere) {
  const auto stories = berth::testing::make_stories();
  if (std::getenv("BERTH_RECORD") != nullptr) {
    gzFile file = gzopen(pack_path().c_str(), "wb9");
    ASSERT_NE(file, nullptr);
    for (const Story& story : stories) {
      ServerOptions options;
      options.features = model::preferred_features();
      start(std::move(options));
      const std::string line = json::serialize(to_json({story, play(story)})) + "\n";
      ASSERT_EQ(gzwrite(file, line.data(), static_cast<unsigned>(line.size())), static_cast<int>(line.size()));
    }
    ASSERT_EQ(gzclose(file), Z_OK);
    GTEST_SKIP() << stories.size() << " stories recorded; run again to see that they are told alike";
  }
  EXPECT_GT(stories.size(), 300U);
  std::set<std::string> told;
  for (const Story& story : stories) {
    told.insert(story.name);
    const auto found = recordings().find(story.name);
    if (found == recordings().end()) {
      fmt::print("{} is not recorded yet: BERTH_RECORD=1 test_apiserver --gtest_filter='RecordedTest.*'\n", story.name);
      continue;
    }
    EXPECT_EQ(json::serialize(*json::find(to_json({story, {}}), "requests")),
              json::serialize(*json::find(to_json({found->second.story, {}}), "requests")))
        << story.name << " asks otherwise than what is recorded";
  }
  for (const auto& [name, recording] : recordings()) EXPECT_TRUE(told.contains(name)) << name << " is recorded and told no more";
}

}  // namespace
}  // namespace berth::apiserver::testing
