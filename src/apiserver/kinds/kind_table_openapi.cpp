// OpenAPI documents of all kinds of a table: the API's own, made once, with the custom ones put in.
#include "apiserver/kinds/kind_table.h"
#include "base/mutex.h"
#include "custom/open_api.h"
#include "model/published/openapi.h"

namespace berth::apiserver {
namespace {

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

/// What every object refers to.
const json::Object& shared_schemas() {
  static const json::Object kSchemas = [] {
    json::Object out;
    const auto core = json::parse(*model::openapi_v3("", "v1"));
    if (!core) return out;
    for (const auto& [name, schema] : json::get_object(*core, {"components", "schemas"}))
      if (std::string_view(name).starts_with("io.k8s.apimachinery.")) out.emplace(name, schema);
    return out;
  }();
  return kSchemas;
}

/// Takes a group's version out of OpenAPI's second form: its paths, and the kinds themselves, by which clients find them.
void hide_version(std::string_view group_version, json::Object& definitions, json::Object& paths) {
  const auto prefix = fmt::format("/apis/{}/", group_version);
  const auto is_of_version = [&](const json::Value& schema) {
    const json::Array& kinds = json::get_array(schema, {"x-kubernetes-group-version-kind"});
    return kinds.size() == 1 &&
           fmt::format("{}/{}", json::get_string(kinds[0], {"group"}), json::get_string(kinds[0], {"version"})) == group_version;
  };
  std::vector<std::string> gone;
  for (const auto& [path, operations] : paths)
    if (std::string_view(path).starts_with(prefix)) gone.emplace_back(path);
  for (const std::string& path : gone) paths.erase(path);
  gone.clear();
  for (const auto& [name, schema] : definitions)
    if (is_of_version(schema)) gone.emplace_back(name);
  for (const std::string& name : gone) definitions.erase(name);
}

}  // namespace

Bytes KindTable::openapi_v3(std::string_view group, std::string_view version) const {
  if (hidden_versions().contains(fmt::format("{}/{}", group, version))) return nullptr;
  if (auto own = model::openapi_v3(group, version); own != nullptr) return own;
  const auto is_in = [&](const auto& served) {
    const auto& info = served.kind->info;
    return info.group == group && info.version == version && served.kind->version->is_served;
  };
  // Who asks for what is not there leaves nothing behind.
  if (std::ranges::none_of(custom_, is_in)) return nullptr;
  const MutexLock lock(documents_mutex_);
  auto& made = documents_[std::string(group) + "/" + std::string(version)];
  if (made != nullptr) return made;
  json::Object schemas = shared_schemas(), paths;
  for (const auto& served : custom_)
    if (is_in(served)) custom::add_openapi(*served.kind, true, schemas, paths);
  made = make_bytes(json::serialize(json::Object{{"openapi", "3.0.0"},
                                                 {"info", json::Object{{"title", "Kubernetes CRD Swagger"}, {"version", "v0.1.0"}}},
                                                 {"paths", std::move(paths)},
                                                 {"components", json::Object{{"schemas", std::move(schemas)}}}}));
  return made;
}

Bytes KindTable::openapi_v3_index() const {
  const auto hidden = hidden_versions();
  if (custom_.empty() && hidden.empty()) return model::openapi_v3_index();
  std::set<std::pair<std::string, std::string>> versions;
  for (const auto& served : custom_)
    if (served.kind->version->is_served) versions.emplace(served.kind->info.group, served.kind->info.version);
  auto index = json::parse(*model::openapi_v3_index());
  if (!index) return model::openapi_v3_index();
  auto& paths = json::ensure_object(*index, {"paths"});
  for (const std::string& one : hidden) paths.erase("apis/" + one);
  for (const auto& [group, version] : versions)
    if (const auto document = openapi_v3(group, version); document != nullptr)
      paths[fmt::format("apis/{}/{}", group, version)] =
          json::Object{{"serverRelativeURL", fmt::format("/openapi/v3/apis/{}/{}?hash={:016X}", group, version, hash_of(*document))}};
  return make_bytes(json::serialize(*index));
}

Bytes KindTable::openapi_v2() const {
  const auto hidden = hidden_versions();
  if (custom_.empty() && hidden.empty()) return model::openapi_v2();
  const MutexLock lock(documents_mutex_);
  auto& made = documents_["v2"];
  if (made != nullptr) return made;
  auto document = json::parse(*model::openapi_v2());
  if (!document) return model::openapi_v2();
  auto& definitions = json::ensure_object(*document, {"definitions"});
  for (const std::string& one : hidden) hide_version(one, definitions, json::ensure_object(*document, {"paths"}));
  for (const auto& served : custom_)
    if (served.kind->version->is_served) custom::add_openapi(*served.kind, false, definitions, json::ensure_object(*document, {"paths"}));
  made = make_bytes(json::serialize(*document));
  return made;
}

}  // namespace berth::apiserver
