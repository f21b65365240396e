// OpenAPI documents of all kinds of a table: the API's own, made once, with the custom ones put in.
#include "apiserver/kinds/kind_table.h"
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

}  // namespace

Bytes KindTable::openapi_v3(std::string_view group, std::string_view version) const {
  if (auto own = model::openapi_v3(group, version); own != nullptr) return own;
  const auto is_in = [&](const auto& served) {
    const auto& info = served.kind->info;
    return info.group == group && info.version == version && served.kind->version->is_served;
  };
  // Who asks for what is not there leaves nothing behind.
  if (std::ranges::none_of(custom_, is_in)) return nullptr;
  const std::lock_guard lock(documents_mutex_);
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
  if (custom_.empty()) return model::openapi_v3_index();
  std::set<std::pair<std::string, std::string>> versions;
  for (const auto& served : custom_)
    if (served.kind->version->is_served) versions.emplace(served.kind->info.group, served.kind->info.version);
  auto index = json::parse(*model::openapi_v3_index());
  if (!index) return model::openapi_v3_index();
  auto& paths = json::ensure_object(*index, {"paths"});
  for (const auto& [group, version] : versions)
    if (const auto document = openapi_v3(group, version); document != nullptr)
      paths[fmt::format("apis/{}/{}", group, version)] =
          json::Object{{"serverRelativeURL", fmt::format("/openapi/v3/apis/{}/{}?hash={:016X}", group, version, hash_of(*document))}};
  return make_bytes(json::serialize(*index));
}

Bytes KindTable::openapi_v2() const {
  if (custom_.empty()) return model::openapi_v2();
  const std::lock_guard lock(documents_mutex_);
  auto& made = documents_["v2"];
  if (made != nullptr) return made;
  auto document = json::parse(*model::openapi_v2());
  if (!document) return model::openapi_v2();
  auto& definitions = json::ensure_object(*document, {"definitions"});
  for (const auto& served : custom_)
    if (served.kind->version->is_served) custom::add_openapi(*served.kind, false, definitions, json::ensure_object(*document, {"paths"}));
  made = make_bytes(json::serialize(*document));
  return made;
}

}  // namespace berth::apiserver
