// What a real kube-apiserver 1.36 answered about definitions of custom kinds and their objects, asked here again (definitions/README.md).
// One test a story: test_apiserver --gtest_filter='*Definitions*/schema_no_type'
#include <zlib.h>

#include <algorithm>
#include <map>

#include "tests/apiserver/server_fixture.h"
#include "tests/support/source_dir.h"

namespace berth::apiserver::testing {
namespace {

using json::Value;

const std::map<std::string, Value>& stories() {
  static const std::map<std::string, Value> all = [] {
    std::map<std::string, Value> out;
    const std::string path = berth::testing::source_dir() + "/tests/apiserver/definitions/answers.jsonl.gz";
    gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr) return out;
    std::string text(1 << 16, '\0'), rest;
    for (int n = 0; (n = gzread(file, text.data(), static_cast<unsigned>(text.size()))) > 0;)
      rest.append(text, 0, static_cast<std::size_t>(n));
    gzclose(file);
    for (std::size_t at = 0; at < rest.size();) {
      const std::size_t end = std::min(rest.find('\n', at), rest.size());
      if (auto line = json::parse(std::string_view(rest).substr(at, end - at))) {
        std::string name(json::get_string(*line, {"name"}));
        out.emplace(std::move(name), std::move(*line));
      }
      at = end + 1;
    }
    return out;
  }();
  return all;
}

/// Without what differs from one server to the next.
void strip(Value& value) {
  if (auto* object = value.if_object()) {
    if (auto* metadata = json::find(value, "metadata"); metadata != nullptr && metadata->is_object())
      for (const char* field : {"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp"})
        metadata->get_object().erase(field);
    for (const char* field : {"lastTransitionTime", "storageVersionHash"}) object->erase(field);
    if (auto* details = json::find(value, "details"); details != nullptr && details->is_object()) details->get_object().erase("uid");
    for (auto& [key, member] : *object) strip(member);
  } else if (auto* list = value.if_array()) {
    for (auto& element : *list) strip(element);
  }
}

class Definitions : public ServerTest, public ::testing::WithParamInterface<std::string> {
 protected:
  void expect_refused(const Value& step, const RecordedResponse& answer) {
    const auto document = json::parse(answer.body);
    if (!document) {  // What is not an API at all is answered in plain words.
      EXPECT_EQ(answer.body, json::get_string(step, {"message"}));
      return;
    }
    const Value& body = *document;
    EXPECT_EQ(json::get_string(body, {"message"}), json::get_string(step, {"message"}));
    EXPECT_EQ(json::get_string(body, {"reason"}), json::get_string(step, {"reason"}));
    std::vector<std::string> ours, theirs;
    for (const Value& cause : json::get_array(body, {"details", "causes"})) ours.push_back(json::serialize(cause));
    for (const Value& cause : json::get_array(step, {"causes"})) theirs.push_back(json::serialize(cause));
    std::ranges::sort(ours);
    std::ranges::sort(theirs);
    EXPECT_EQ(ours, theirs);
  }

  void expect_object(const Value& step, const RecordedResponse& answer) {
    Value ours = answer.document(), theirs = *json::find(step, "object");
    strip(ours);
    strip(theirs);
    for (Value* one : {&ours, &theirs}) json::erase(*one, {"status", "conditions"});
    EXPECT_TRUE(json::equal(ours, theirs)) << "here:  " << json::serialize(ours) << "\nthere: " << json::serialize(theirs);
  }
};

TEST_P(Definitions, AreAnsweredAlike) {
  for (const Value& step : json::get_array(stories().at(GetParam()), {"steps"})) {
    SCOPED_TRACE(json::get_string(step, {"name"}));
    if (json::get_string(step, {"method"}) == "WAIT") {
      loop_.run_for(std::chrono::seconds(1));
      continue;
    }
    const Value* body = json::find(step, "body");
    const auto answer = send(std::string(json::get_string(step, {"method"})), std::string(json::get_string(step, {"path"})),
                             body == nullptr ? std::string() : json::serialize(*body),
                             std::string(json::get_string(step, {"type"}, "application/json")), {{"User-Agent", "recorder"}});
    loop_.run_for(std::chrono::milliseconds(100));
    EXPECT_EQ(answer->status, json::get_int(step, {"code"})) << answer->body;
    if (answer->status != json::get_int(step, {"code"})) continue;
    answer->status >= 400 ? expect_refused(step, *answer) : expect_object(step, *answer);
  }
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, story] : stories()) out.push_back(name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Recorded, Definitions, ::testing::ValuesIn(names()), [](const auto& info) { return info.param; });

TEST(DefinitionsPack, IsThere) { EXPECT_GT(stories().size(), 200U); }

}  // namespace
}  // namespace berth::apiserver::testing
