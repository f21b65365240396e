// What schemas make of objects: tests/custom/cases/objects.yaml.
#include "custom/objects.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/yaml.h"
#include "custom/metadata.h"
#include "tests/support/source_dir.h"

namespace berth::custom {
namespace {

using json::Value;

json::Array cases() {
  std::ifstream file(berth::testing::source_dir() + "/tests/custom/cases/objects.yaml");
  std::stringstream text;
  text << file.rdbuf();
  const auto all = json::parse_yaml(text.str());
  EXPECT_TRUE(all.has_value()) << all.error().message;
  return all ? all->get_array() : json::Array();
}

std::vector<std::string> texts(const Value& one, std::string_view field) {
  std::vector<std::string> out;
  for (const auto& text : json::get_array(one, {field})) out.emplace_back(json::as_view(text));
  return out;
}

std::string written(const Value& value) { return json::serialize(value); }

TEST(CustomObjects, BecomeWhatTheirSchemaSays) {
  const auto all = cases();
  EXPECT_GT(all.size(), 8U);
  for (const auto& one : all) {
    SCOPED_TRACE(std::string(json::get_string(one, {"name"})));
    const Schema schema = read_schema(*json::find(one, "schema"));
    const auto& object = *json::find(one, "object");
    if (const auto* pruned = json::find(one, "pruned")) {
      Value made = object;
      std::vector<std::string> unknown;
      prune(made, schema, true, &unknown);
      EXPECT_TRUE(json::equal(made, *pruned)) << written(made);
      EXPECT_EQ(unknown, texts(one, "unknown"));
    }
    if (const auto* filled = json::find(one, "filled")) {
      Value made = object;
      set_defaults(made, schema);
      EXPECT_TRUE(json::equal(made, *filled)) << written(made);
      set_defaults(made, schema);
      EXPECT_TRUE(json::equal(made, *filled)) << "a second time: " << written(made);
    }
    if (json::find(one, "found") != nullptr) {
      model::FieldErrors errors;
      check_embedded(object, schema, false, "", errors);
      check_lists(object, schema, errors);
      std::vector<std::string> found;
      for (const auto& error : errors) found.push_back(error.render());
      EXPECT_EQ(found, texts(one, "found"));
    }
  }
}

TEST(CustomMetadata, IsReadAloneAndSaysWhatIsWrongWhere) {
  const auto wrong_in = [](const char* text) {
    Value metadata = *json::parse(text);
    return decode_metadata(metadata, nullptr);
  };
  const auto whole = wrong_in(R"([])");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->path, "");
  EXPECT_EQ(whole->sentence(), "json: cannot unmarshal array into Go value of type v1.ObjectMeta");
  const auto label = wrong_in(R"({"labels":{"a":1}})");
  ASSERT_TRUE(label);
  EXPECT_EQ(label->path, "labels");
  EXPECT_EQ(label->found, "number");
  EXPECT_EQ(label->wanted, "string");
  const auto owner = wrong_in(R"({"ownerReferences":[{"controller":"yes"}]})");
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->sentence(), "json: cannot unmarshal string into Go struct field OwnerReference.ownerReferences.controller of type bool");
  const auto time = wrong_in(R"({"creationTimestamp":"noon"})");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->is, model::DecodeError::Is::kOther);
  EXPECT_NE(time->said.find("parsing time"), std::string::npos) << time->said;
}

TEST(CustomMetadata, LosesWhatItDoesNotKnow) {
  Value metadata = *json::parse(R"({"name":"a","nam":"b","labels":{"x":"y"}})");
  std::vector<std::string> unknown;
  EXPECT_FALSE(decode_metadata(metadata, &unknown));
  EXPECT_EQ(unknown, std::vector<std::string>{"nam"});
  EXPECT_EQ(json::find(metadata, "nam"), nullptr);
}

}  // namespace
}  // namespace berth::custom
