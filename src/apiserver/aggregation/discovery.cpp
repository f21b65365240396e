// Discovery documents with the group versions of aggregated servers in them, in the order of their priorities (kube-aggregator's
// handler_apis.go, and apiserver/pkg/endpoints/discovery/aggregated).
#include "apiserver/aggregation/aggregator.h"

namespace berth::apiserver::aggregation {
namespace {

/// The registrations of groups of which at least one version is another server's.
std::map<std::string, std::vector<const Registration*>> extended_groups(const Table& table) {
  std::map<std::string, std::vector<const Registration*>> out;
  for (const auto& [key, registration] : table)
    if (registration.is_remote()) out[registration.group].push_back(&registration);
  return out;
}

int group_priority(const Table& table, std::string_view group) {
  int out = 0;
  for (const auto& [key, registration] : table)
    if (registration.group == group) out = std::max(out, registration.group_priority);
  return out;
}

void sort_versions(const Table& table, std::string_view group, std::vector<std::string>& versions) {
  const auto priority = [&](const std::string& version) {
    const auto found = table.find(std::pair(std::string(group), version));
    return found == table.end() ? 0 : found->second.version_priority;
  };
  std::ranges::stable_sort(versions, [&](const auto& a, const auto& b) {
    return priority(a) != priority(b) ? priority(a) > priority(b) : is_newer_version(a, b);
  });
}

/// Puts a group's entry where its priority says, behind those that are as high.
void insert_by_priority(const Table& table, json::Array& list, json::Object entry, std::string_view group,
                        const std::function<std::string_view(const json::Value&)>& name_of) {
  const int priority = group_priority(table, group);
  const auto at = std::ranges::find_if(list, [&](const json::Value& one) { return group_priority(table, name_of(one)) < priority; });
  list.insert(at, std::move(entry));
}

json::Object with_versions(const Table& table, const std::string& group, const json::Value* present,
                           const std::vector<const Registration*>& remote) {
  std::vector<std::string> versions;
  if (present != nullptr)
    for (const auto& one : json::get_array(*present, {"versions"})) versions.emplace_back(json::get_string(one, {"version"}));
  for (const auto* one : remote)
    if (std::ranges::find(versions, one->version) == versions.end()) versions.push_back(one->version);
  sort_versions(table, group, versions);
  json::Array list;
  for (const auto& version : versions) list.push_back(json::Object{{"groupVersion", group + "/" + version}, {"version", version}});
  json::Object out{{"name", group}, {"versions", list}, {"preferredVersion", list[0]}};
  return out;
}

json::Object response_kind(const Registration& registration, const json::Value& resource) {
  const auto own = [&](const char* field, const std::string& otherwise) {
    const auto given = json::get_string(resource, {field});
    return given.empty() ? otherwise : std::string(given);
  };
  return json::Object{{"group", own("group", registration.group)},
                      {"version", own("version", registration.version)},
                      {"kind", json::get_string(resource, {"kind"})}};
}

void copy_list(json::Object& to, const json::Value& from, const char* field) {
  if (const auto& list = json::get_array(from, {field}); !list.empty()) to[field] = list;
}

/// An APIResourceList's resources as aggregated discovery has them: subresources below their parents.
json::Object aggregated_version(const Registration& registration, const Known& known) {
  json::Array resources;
  std::map<std::string, std::size_t, std::less<>> places;
  const auto scope = [](const json::Value& resource) { return json::get_bool(resource, {"namespaced"}) ? "Namespaced" : "Cluster"; };
  for (const auto& resource : known.resources) {
    const auto name = json::get_string(resource, {"name"});
    if (name.empty() || name.find('/') != std::string_view::npos) continue;
    json::Object entry{{"resource", name},
                       {"responseKind", response_kind(registration, resource)},
                       {"scope", scope(resource)},
                       {"singularResource", json::get_string(resource, {"singularName"})},
                       {"verbs", json::get_array(resource, {"verbs"})}};
    copy_list(entry, resource, "shortNames");
    copy_list(entry, resource, "categories");
    places[std::string(name)] = resources.size();
    resources.push_back(std::move(entry));
  }
  for (const auto& resource : known.resources) {
    const auto name = json::get_string(resource, {"name"});
    const auto slash = name.find('/');
    if (slash == std::string_view::npos) continue;
    auto parent = places.find(name.substr(0, slash));
    if (parent == places.end()) {
      // Metrics of objects are subresources of what this group does not serve.
      parent = places.emplace(name.substr(0, slash), resources.size()).first;
      resources.push_back(json::Object{{"resource", parent->first},
                                       {"responseKind", json::Object{{"group", ""}, {"version", ""}, {"kind", ""}}},
                                       {"scope", scope(resource)},
                                       {"singularResource", ""},
                                       {"verbs", json::Array{}}});
    }
    auto& entry = resources[parent->second].get_object();
    if (entry.if_contains("subresources") == nullptr) entry["subresources"] = json::Array{};
    entry["subresources"].get_array().push_back(json::Object{{"subresource", name.substr(slash + 1)},
                                                             {"responseKind", response_kind(registration, resource)},
                                                             {"verbs", json::get_array(resource, {"verbs"})}});
  }
  return json::Object{
      {"version", registration.version}, {"resources", std::move(resources)}, {"freshness", known.is_current ? "Current" : "Stale"}};
}

}  // namespace

void Aggregator::add_groups(json::Value& group_list) const {
  if (!registrations_->has_remote()) return;
  const auto table = registrations_->table();
  auto& groups = group_list.at("groups").get_array();
  const auto name_of = [](const json::Value& one) { return json::get_string(one, {"name"}); };
  for (const auto& [group, remote] : extended_groups(*table)) {
    const auto found = std::ranges::find_if(groups, [&](const auto& one) { return name_of(one) == group; });
    if (found != groups.end())
      *found = with_versions(*table, group, &*found, remote);
    else
      insert_by_priority(*table, groups, with_versions(*table, group, nullptr, remote), group, name_of);
  }
}

void Aggregator::add_versions(std::string_view group, std::optional<json::Value>& group_document) const {
  if (!registrations_->has_remote()) return;
  const auto table = registrations_->table();
  const auto extended = extended_groups(*table);
  const auto found = extended.find(std::string(group));
  if (found == extended.end()) return;
  auto made = with_versions(*table, found->first, group_document ? &*group_document : nullptr, found->second);
  json::Object out{{"kind", "APIGroup"}, {"apiVersion", "v1"}};
  for (auto& field : made) out[field.key()] = std::move(field.value());
  group_document = std::move(out);
}

void Aggregator::add_aggregated(json::Value& list) const {
  if (!registrations_->has_remote()) return;
  const auto table = registrations_->table();
  const auto said = known();
  auto& items = list.at("items").get_array();
  const auto name_of = [](const json::Value& one) { return json::get_string(one, {"metadata", "name"}); };
  for (const auto& [group, remote] : extended_groups(*table)) {
    auto found = std::ranges::find_if(items, [&](const auto& one) { return name_of(one) == group; });
    if (found == items.end()) {
      insert_by_priority(
          *table, items,
          json::Object{{"metadata", json::Object{{"name", group}, {"creationTimestamp", nullptr}}}, {"versions", json::Array{}}}, group,
          name_of);
      found = std::ranges::find_if(items, [&](const auto& one) { return name_of(one) == group; });
    }
    std::map<std::string, json::Value> by_version;
    std::vector<std::string> order;
    for (const auto& one : json::get_array(*found, {"versions"})) by_version[std::string(json::get_string(one, {"version"}))] = one;
    for (const auto* one : remote) {
      const auto known_it = said.find(one->name);
      by_version[one->version] = aggregated_version(*one, known_it == said.end() ? Known() : known_it->second);
    }
    for (const auto& [version, document] : by_version) order.push_back(version);
    sort_versions(*table, group, order);
    json::Array versions;
    for (const auto& version : order) versions.push_back(std::move(by_version[version]));
    found->get_object()["versions"] = std::move(versions);
  }
}

}  // namespace berth::apiserver::aggregation
