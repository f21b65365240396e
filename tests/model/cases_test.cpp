// Runs tests/model/cases/*.yaml: objects, and what defaulting and validation make of them. The cases' format is told in cases/README.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "model/schema.h"
#include "model/service_strategy.h"
#include "tests/support/source_dir.h"

namespace berth::model {
namespace {

using json::Value;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void merge_into(Value& target, const Value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target.emplace_object();
  for (const auto& [key, value] : patch.get_object()) merge_into(target.get_object()[key], value);
}

/// The case's object: given whole, or as changes to the spec (`pod`) and first container (`container`) of a small pod.
Value object_of(const Value& wanted) {
  if (const Value* whole = json::find(wanted, "object")) return *whole;
  Value pod =
      json::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})").value();
  if (const Value* container = json::find(wanted, "container")) merge_into(pod.at("spec").at("containers").at(0), *container);
  if (const Value* spec = json::find(wanted, "pod")) merge_into(pod.at("spec"), *spec);
  return pod;
}

const KindInfo& kind_of(const Value& object) {
  const std::string version(json::get_string(object, {"apiVersion"}));
  const std::size_t slash = version.find('/');
  const KindInfo* kind = slash == std::string::npos
                             ? find_kind("", version, json::get_string(object, {"kind"}))
                             : find_kind(version.substr(0, slash), version.substr(slash + 1), json::get_string(object, {"kind"}));
  EXPECT_NE(kind, nullptr) << json::serialize(object);
  return *kind;
}

/// Decoded and defaulted as the server does before it validates.
Value prepared(const KindInfo& kind, Value object) {
  Value& metadata = object.get_object()["metadata"];
  if (!metadata.is_object()) metadata.emplace_object();
  if (!metadata.get_object().contains("name")) metadata.get_object()["name"] = "x";
  if (kind.namespaced && !metadata.get_object().contains("namespace")) metadata.get_object()["namespace"] = "default";
  DecodeReport report;
  const auto decoded = decode(kind, object, report);
  EXPECT_TRUE(decoded.has_value()) << decoded.error().sentence();
  apply_defaults(kind, object);
  if (kind.kind == "Service") prepare_service(object);
  // A Job finds its pods by what its creation puts there.
  if (kind.kind == "Job" && json::find(object, {"spec", "selector"}) == nullptr) {
    const Value* status = json::find(object, "status");
    const Value kept = status == nullptr ? Value(json::Object()) : *status;
    json::set(object, {"metadata", "uid"}, "u");
    prepare_for_create(kind, object);
    object.get_object()["status"] = kept;
  }
  return object;
}

/// `want` is contained in `have`: objects by member, everything else whole; null means absent.
void expect_contains(const Value& have, const Value& want, const std::string& where) {
  if (!want.is_object()) {
    EXPECT_TRUE(json::equal(have, want)) << where << ": " << json::serialize(have) << " is not " << json::serialize(want);
    return;
  }
  for (const auto& [key, value] : want.get_object()) {
    const std::string at = where + "." + std::string(key);
    const Value* found = json::find(have, std::string_view(key.data(), key.size()));
    if (value.is_null())
      EXPECT_EQ(found, nullptr) << at << ": " << (found == nullptr ? "" : json::serialize(*found));
    else if (found == nullptr)
      ADD_FAILURE() << at << " is missing in " << json::serialize(have);
    else
      expect_contains(*found, value, at);
  }
}

void expect_errors(const FieldErrors& errors, const json::Array& wanted) {
  std::vector<std::string> texts;
  for (const FieldError& error : errors) texts.push_back(error.render());
  const std::string all = fmt::format("{}", fmt::join(texts, "\n"));
  EXPECT_EQ(texts.size(), wanted.size()) << all;
  for (const Value& one : wanted) {
    const std::string text(json::as_view(one));
    EXPECT_TRUE(std::any_of(texts.begin(), texts.end(), [&](const std::string& have) { return have.starts_with(text); }))
        << "no finding starts with\n"
        << text << "\nbut\n"
        << all;
  }
}

void run_case(const Value& wanted) {
  Value raw = object_of(wanted);
  const KindInfo& kind = kind_of(raw);
  const Value object = prepared(kind, raw);
  if (const Value* defaults = json::find(wanted, "defaults")) {
    expect_contains(object, *defaults, "object");
    Value again = object;
    apply_defaults(kind, again);
    EXPECT_TRUE(json::equal(object, again)) << "defaulting twice is not defaulting once";
  }
  const json::Array& errors = json::get_array(wanted, {"errors"});
  if (const Value* before = json::find(wanted, "old"))
    expect_errors(validate_update(kind, prepared(kind, object_of(*before)), object, json::get_string(wanted, {"subresource"})), errors);
  else
    expect_errors(validate_create(kind, object), errors);
}

TEST(Cases, All) {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(berth::testing::source_dir()) / "tests/model/cases")) {
    if (file.path().extension() != ".yaml") continue;
    const auto cases = json::parse_yaml(read_file(file.path()));
    ASSERT_TRUE(cases.has_value()) << file.path() << ": " << cases.error().message;
    ASSERT_TRUE(cases->is_array()) << file.path();
    for (const Value& one : cases->get_array()) {
      SCOPED_TRACE(file.path().filename().string() + ": " + std::string(json::get_string(one, {"name"})));
      run_case(one);
      ++count;
    }
  }
  EXPECT_GT(count, 100U);
}

}  // namespace
}  // namespace berth::model
