#include "tests/apiserver/recorded/stories.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/json.h"
#include "model/kinds.h"
#include "tests/support/source_dir.h"

namespace berth::testing {
namespace {

using json::Object;
using json::Value;
using model::KindInfo;

constexpr const char* kJson = "application/json";
constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";
constexpr const char* kPartial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

json::Array read_list(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  auto list = json::parse_yaml(text.str());
  return list && list->is_array() ? list->get_array() : json::Array();
}

std::string word(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_word)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (out.ends_with('_')) out.pop_back();
  return out.substr(0, 70);
}

std::string collection(const KindInfo& kind) {
  const std::string root = kind.group.empty() ? "/api/" + kind.version : "/apis/" + kind.group + "/" + kind.version;
  return root + (kind.namespaced ? "/namespaces/default/" : "/") + kind.plural;
}

const KindInfo* kind_of(const Value& object) {
  const std::string version(json::get_string(object, {"apiVersion"}));
  const std::size_t slash = version.find('/');
  const auto kind = json::get_string(object, {"kind"});
  return slash == std::string::npos ? model::find_kind("", version, kind)
                                    : model::find_kind(version.substr(0, slash), version.substr(slash + 1), kind);
}

Value named(Value object) {
  Object& metadata = json::ensure_object(object, {"metadata"});
  if (!metadata.contains("name") && !metadata.contains("generateName")) metadata["name"] = "x";
  return object;
}

/// Everything that is done with an object once it is there.
void live(const KindInfo& kind, const std::string& name, std::vector<StoryRequest>& out) {
  const std::string all = collection(kind), one = all + "/" + name;
  const std::string identity = R"("apiVersion":")" + kind.api_version() + R"(","kind":")" + kind.kind + R"(")";
  out.push_back({"GET", one, "", "", kJson});
  out.push_back({"GET", one, "", "", kTable});
  out.push_back({"GET", one, "", "", kPartial});
  out.push_back({"GET", all, "", "", kTable});
  out.push_back(
      {"PATCH", one, "application/merge-patch+json", R"({"metadata":{"annotations":{"recorded":"yes"},"labels":{"a":"b"}}})", kJson});
  out.push_back({"PATCH", one, "application/strategic-merge-patch+json", R"({"metadata":{"finalizers":["example.com/hold"]}})", kJson});
  out.push_back({"PATCH", one, "application/json-patch+json", R"([{"op":"add","path":"/metadata/labels","value":{"c":"d"}}])", kJson});
  out.push_back({"PATCH", one + "?fieldManager=applier", "application/apply-patch+yaml",
                 "{" + identity + R"(,"metadata":{"name":")" + name + R"(","labels":{"e":"f"}}})", kJson});
  if (kind.has_subresource("status"))
    for (const char* status : {R"({"phase":"Odd","replicas":-1,"readyReplicas":3,"observedGeneration":-2,"conditions":[{"type":"T"}]})",
                               R"({"replicas":2,"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m"}]})"})
      out.push_back({"PATCH", one + "/status", "application/merge-patch+json",
                     std::string(R"({"metadata":{"labels":{"by":"status"}},"status":)") + status + "}", kJson});
  if (kind.has_subresource("scale")) {
    out.push_back({"GET", one + "/scale", "", "", kJson});
    out.push_back({"PATCH", one + "/scale", "application/merge-patch+json", R"({"spec":{"replicas":5}})", kJson});
  }
  out.push_back({"PUT", one, kJson, "{" + identity + R"(,"metadata":{"name":")" + name + R"("}})", kJson});
  out.push_back({"GET", all + "?labelSelector=c%3Dd", "", "", kTable});
  out.push_back({"DELETE", one, "", "", kJson});
  out.push_back({"PATCH", one, "application/merge-patch+json", R"({"metadata":{"finalizers":null}})", kJson});
  out.push_back({"DELETE", one, "", "", kJson});
  out.push_back({"GET", one, "", "", kJson});
}

/// What needs no object of the kind that is in order.
Story without_objects(const KindInfo& kind) {
  const std::string all = collection(kind);
  Story out{word("kind_" + kind.group + "_" + kind.version + "_" + kind.plural), {}};
  const auto body = [&](std::string_view members) {
    return R"({"apiVersion":")" + kind.api_version() + R"(","kind":")" + kind.kind + R"(",)" + std::string(members) + "}";
  };
  auto& add = out.requests;
  add.push_back({"POST", all, kJson, body(R"("metadata":{"name":"x"})"), kJson});
  add.push_back(
      {"POST", all, kJson, body(R"("metadata":{"name":"Not A Name","labels":{"bad key":"b/d"},"annotations":{"A B":"c"}})"), kJson});
  add.push_back(
      {"POST", all, kJson, body(R"("metadata":{"generateName":"stem-","finalizers":["mine"],"ownerReferences":[{"kind":"K"}]})"), kJson});
  add.push_back(
      {"POST", all + "?fieldValidation=Strict", kJson, body(R"("metadata":{"name":"y"},"nobodyKnows":1,"spec":{"norThis":2})"), kJson});
  add.push_back({"POST", all, kJson, body(R"("metadata":{"name":"z"},"spec":7,"status":[])"), kJson});
  add.push_back({"PUT", all + "/new", kJson, body(R"("metadata":{"name":"new"})"), kJson});
  add.push_back({"GET", all, "", "", kJson});
  add.push_back({"GET", all, "", "", kTable});
  add.push_back({"GET", all + "?fieldSelector=metadata.name%3Dx", "", "", kJson});
  add.push_back({"GET", all + "?fieldSelector=nothing.like%3Dit", "", "", kJson});
  for (const auto& field : kind.field_selectors) add.push_back({"GET", all + "?fieldSelector=" + field + "%3D0", "", "", kJson});
  add.push_back({"GET", all + "/absent", "", "", kJson});
  add.push_back({"DELETE", all + "/absent", "", "", kJson});
  return out;
}

}  // namespace

std::vector<Story> make_stories() {
  const std::filesystem::path root = source_dir();
  std::vector<Story> out;
  for (const Value& object : read_list(root / "tests/apiserver/recorded/good.yaml")) {
    const KindInfo* kind = kind_of(object);
    if (kind == nullptr) continue;
    const Value whole = named(object);
    const std::string name(json::get_string(whole, {"metadata", "name"}));
    Story story{word("good_" + kind->group + "_" + kind->version + "_" + kind->kind + (name == "x" ? "" : "_" + name)), {}};
    story.requests.push_back({"POST", collection(*kind), kJson, json::serialize(whole), kJson});
    live(*kind, name, story.requests);
    out.push_back(std::move(story));
  }
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(root / "tests/model/cases"))
    if (file.path().extension() == ".yaml") files.push_back(file.path());
  std::ranges::sort(files);
  for (const auto& file : files) {
    for (const Value& one : read_list(file)) {
      const Value* object = json::find(one, "object");
      const KindInfo* kind = object == nullptr ? nullptr : kind_of(*object);
      if (kind == nullptr || kind->is_virtual) continue;
      Story story{word("case_" + file.stem().string() + "_" + std::string(json::get_string(one, {"name"}))), {}};
      const Value whole = named(*object);
      const std::string name(json::get_string(whole, {"metadata", "name"}));
      const Value* before = json::find(one, {"old", "object"});
      story.requests.push_back({"POST", collection(*kind), kJson, json::serialize(before == nullptr ? whole : named(*before)), kJson});
      if (before != nullptr) {
        const auto sub = json::get_string(one, {"subresource"});
        story.requests.push_back(
            {"PUT", collection(*kind) + "/" + name + (sub.empty() ? "" : "/" + std::string(sub)), kJson, json::serialize(whole), kJson});
      }
      story.requests.push_back({"GET", collection(*kind) + "/" + name, "", "", kJson});
      out.push_back(std::move(story));
    }
  }
  for (const KindInfo& kind : model::all_kinds())
    if (!kind.is_virtual) out.push_back(without_objects(kind));
  std::set<std::string> names;
  for (Story& story : out)
    for (int n = 2; !names.insert(story.name).second; ++n) story.name = word(story.name).substr(0, 70) + "_" + std::to_string(n);
  return out;
}

}  // namespace berth::testing
