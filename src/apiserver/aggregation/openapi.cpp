// OpenAPI documents with those of aggregated servers merged in (kube-aggregator/pkg/controllers/openapi, openapiv3).
#include "apiserver/aggregation/aggregator.h"
#include "apiserver/openapi/openapi_protobuf.h"
#include "base/mutex.h"

namespace berth::apiserver::aggregation {
namespace {

constexpr std::string_view kReference = "#/definitions/";

void rename_references(json::Value& value, const std::map<std::string, std::string, std::less<>>& names) {
  if (auto* list = value.if_array()) {
    for (auto& item : *list) rename_references(item, names);
    return;
  }
  auto* object = value.if_object();
  if (object == nullptr) return;
  for (auto& field : *object) {
    if (field.key() == "$ref" && field.value().is_string()) {
      const auto target = json::as_view(field.value());
      if (!target.starts_with(kReference)) continue;
      if (const auto found = names.find(target.substr(kReference.size())); found != names.end())
        field.value() = std::string(kReference) + found->second;
    } else {
      rename_references(field.value(), names);
    }
  }
}

/// The paths of one group version, and every definition: one of another content under the same name gets a name of its own.
void merge(json::Value& into, json::Value from, const std::string& prefix) {
  auto& definitions = json::ensure_object(into, {"definitions"});
  std::map<std::string, std::string, std::less<>> renamed;
  if (auto* added = json::find(from, "definitions"); added != nullptr && added->is_object()) {
    for (const auto& field : added->get_object()) {
      const auto* present = definitions.if_contains(field.key());
      if (present == nullptr || json::equal(*present, field.value())) continue;
      std::string name;
      for (int i = 2; name.empty() || definitions.contains(name); ++i) name = fmt::format("{}_v{}", std::string_view(field.key()), i);
      renamed.emplace(std::string(field.key()), name);
    }
  }
  if (!renamed.empty()) rename_references(from, renamed);
  if (auto* added = json::find(from, "definitions"); added != nullptr && added->is_object()) {
    for (auto& field : added->get_object()) {
      const auto other = renamed.find(std::string_view(field.key()));
      const std::string name = other == renamed.end() ? std::string(field.key()) : other->second;
      if (!definitions.contains(name)) definitions[name] = std::move(field.value());
    }
  }
  auto& paths = json::ensure_object(into, {"paths"});
  if (auto* added = json::find(from, "paths"); added != nullptr && added->is_object())
    for (auto& field : added->get_object())
      if (const std::string_view path = field.key(); path == prefix || path.starts_with(prefix + "/"))
        paths[path] = std::move(field.value());
}

}  // namespace

Bytes Aggregator::openapi_v2(const Bytes& own) {
  if (!registrations_->has_remote()) return own;
  const auto table = registrations_->table();
  std::uint64_t generation = 0;
  std::map<std::string, Known> said;
  {
    const MutexLock lock(mutex_);
    generation = generation_;
    said = known_;
  }
  const MutexLock lock(merged_mutex_);
  if (merged_.text != nullptr && merged_.own == own && merged_.generation == generation) return merged_.text;
  auto document = json::parse(*own);
  if (!document) return own;
  bool is_changed = false;
  for (const auto& [key, registration] : *table) {
    const auto found = registration.is_remote() ? said.find(registration.name) : said.end();
    if (found == said.end() || found->second.openapi_v2 == nullptr) continue;
    auto added = json::parse(*found->second.openapi_v2);
    if (!added) continue;
    is_changed = true;
    merge(*document, std::move(*added), fmt::format("/apis/{}/{}", registration.group, registration.version));
  }
  merged_ = {generation, own, is_changed ? make_bytes(json::serialize(*document)) : own, nullptr};
  return merged_.text;
}

Bytes Aggregator::openapi_v2_protobuf(const Bytes& own, const std::function<Bytes()>& own_encoded) {
  const auto text = openapi_v2(own);
  if (text == own) return own_encoded();
  const MutexLock lock(merged_mutex_);
  if (merged_.text == text && merged_.protobuf != nullptr) return merged_.protobuf;
  const auto document = json::parse(*text);
  auto encoded = make_bytes(document ? encode_openapi_protobuf(*document) : std::string());
  if (merged_.text == text) merged_.protobuf = encoded;
  return encoded;
}

Bytes Aggregator::openapi_v3_index(const Bytes& own) const {
  if (!registrations_->has_remote()) return own;
  auto document = json::parse(*own);
  if (!document) return own;
  const auto table = registrations_->table();
  const auto said = known();
  auto& paths = json::ensure_object(*document, {"paths"});
  for (const auto& [key, registration] : *table) {
    if (!registration.is_remote()) continue;
    const auto path = fmt::format("apis/{}/{}", registration.group, registration.version);
    paths.erase(path);
    if (const auto found = said.find(registration.name); found != said.end() && !found->second.v3_url.empty())
      paths[path] = json::Object{{"serverRelativeURL", found->second.v3_url}};
  }
  return make_bytes(json::serialize(*document));
}

}  // namespace berth::apiserver::aggregation
