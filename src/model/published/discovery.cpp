#include "model/published/discovery.h"

#include <fmt/format.h>

#include <map>

#include "model/kinds.h"
#include "model/subresources.h"

namespace berth::model {
namespace {

using json::Array;
using json::Object;
using json::Value;

struct GroupVersions {
  std::string group;
  std::vector<std::string> versions;  ///< Preferred first.
};

/// Groups but the core one, in the order of the table.
std::vector<GroupVersions> groups(const Kinds& kinds) {
  std::vector<GroupVersions> out;
  for (const KindInfo* one : kinds) {
    const KindInfo& kind = *one;
    if (kind.group.empty()) continue;
    auto found = std::find_if(out.begin(), out.end(), [&](const GroupVersions& g) { return g.group == kind.group; });
    if (found == out.end()) found = out.insert(out.end(), {kind.group, {}});
    if (std::find(found->versions.begin(), found->versions.end(), kind.version) == found->versions.end())
      found->versions.push_back(kind.version);
  }
  // Kubernetes' own priorities: clients take the first group that knows a name.
  static const std::vector<std::string_view> kOrder = {"apiregistration.k8s.io",
                                                       "apps",
                                                       "events.k8s.io",
                                                       "authentication.k8s.io",
                                                       "authorization.k8s.io",
                                                       "autoscaling",
                                                       "batch",
                                                       "certificates.k8s.io",
                                                       "networking.k8s.io",
                                                       "policy",
                                                       "rbac.authorization.k8s.io",
                                                       "storage.k8s.io",
                                                       "admissionregistration.k8s.io",
                                                       "apiextensions.k8s.io",
                                                       "scheduling.k8s.io",
                                                       "coordination.k8s.io",
                                                       "node.k8s.io",
                                                       "discovery.k8s.io",
                                                       "resource.k8s.io",
                                                       "flowcontrol.apiserver.k8s.io"};
  std::ranges::stable_sort(out, {}, [](const GroupVersions& group) { return std::ranges::find(kOrder, group.group) - kOrder.begin(); });
  return out;
}

Object group_object(const GroupVersions& group, bool with_type) {
  Array versions;
  for (const std::string& version : group.versions)
    versions.push_back({{"groupVersion", group.group + "/" + version}, {"version", version}});
  Object out;
  if (with_type) out = {{"kind", "APIGroup"}, {"apiVersion", "v1"}};
  out["name"] = group.group;
  out["versions"] = versions;
  out["preferredVersion"] = versions[0];
  return out;
}

Array strings(const std::vector<std::string>& list) { return Array(list.begin(), list.end()); }

}  // namespace

json::Value discovery_core_versions(std::string_view server_address) {
  return {{"kind", "APIVersions"},
          {"versions", {"v1"}},
          {"serverAddressByClientCIDRs", Array{Object{{"clientCIDR", "0.0.0.0/0"}, {"serverAddress", server_address}}}}};
}

json::Value discovery_groups(const Kinds& kinds) {
  Array list;
  for (const GroupVersions& group : groups(kinds)) list.push_back(group_object(group, false));
  return Object{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(list)}};
}

std::optional<json::Value> discovery_group(const Kinds& kinds, std::string_view name) {
  for (const GroupVersions& group : groups(kinds))
    if (group.group == name) return group_object(group, true);
  return std::nullopt;
}

std::optional<json::Value> discovery_resources(const Kinds& kinds, std::string_view group, std::string_view version) {
  Array resources;
  for (const KindInfo* one : kinds) {
    const KindInfo& kind = *one;
    if (kind.group != group || kind.version != version) continue;
    Object entry{{"name", kind.plural},
                 {"singularName", kind.singular},
                 {"namespaced", kind.namespaced},
                 {"kind", kind.kind},
                 {"verbs", strings(kind.verbs)}};
    if (!kind.short_names.empty()) entry["shortNames"] = strings(kind.short_names);
    if (!kind.categories.empty()) entry["categories"] = strings(kind.categories);
    resources.push_back(std::move(entry));
    for (const std::string& name : kind.subresources) {
      const Subresource sub = subresource_of(kind, name);
      Object one{{"name", kind.plural + "/" + name}, {"singularName", ""}, {"namespaced", kind.namespaced}};
      if (!sub.version.empty()) {
        one["group"] = sub.group;
        one["version"] = sub.version;
      }
      one["kind"] = sub.kind;
      one["verbs"] = strings(sub.verbs);
      resources.push_back(std::move(one));
    }
  }
  if (resources.empty()) return std::nullopt;
  const std::string group_version = group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
  Object out{{"kind", "APIResourceList"}};
  if (!group.empty()) out["apiVersion"] = "v1";
  out["groupVersion"] = group_version;
  out["resources"] = std::move(resources);
  return out;
}

json::Value discovery_aggregated(const Kinds& kinds, bool core, std::string_view api_version) {
  const auto response_kind = [](const std::string& group, const std::string& version, const std::string& kind) {
    return Object{{"group", group}, {"version", version}, {"kind", kind}};
  };
  const auto version_object = [&](const std::string& group, const std::string& version) {
    Array resources;
    for (const KindInfo* one : kinds) {
      const KindInfo& kind = *one;
      if (kind.group != group || kind.version != version) continue;
      Object entry{{"resource", kind.plural},
                   {"responseKind", response_kind(group, version, kind.kind)},
                   {"scope", kind.namespaced ? "Namespaced" : "Cluster"},
                   {"singularResource", kind.singular},
                   {"verbs", strings(kind.verbs)}};
      if (!kind.short_names.empty()) entry["shortNames"] = strings(kind.short_names);
      if (!kind.categories.empty()) entry["categories"] = strings(kind.categories);
      Array subs;
      for (const std::string& name : kind.subresources) {
        const Subresource sub = subresource_of(kind, name);
        subs.push_back(Object{
            {"subresource", name},
            {"responseKind", response_kind(sub.version.empty() ? group : sub.group, sub.version.empty() ? version : sub.version, sub.kind)},
            {"verbs", strings(sub.verbs)}});
      }
      if (!subs.empty()) entry["subresources"] = std::move(subs);
      resources.push_back(std::move(entry));
    }
    return Object{{"version", version}, {"resources", std::move(resources)}, {"freshness", "Current"}};
  };
  Array items;
  if (core) {
    items.push_back(Object{{"metadata", Object{{"creationTimestamp", nullptr}}}, {"versions", Array{version_object("", "v1")}}});
  } else {
    for (const GroupVersions& group : groups(kinds)) {
      Array versions;
      for (const std::string& version : group.versions) versions.push_back(version_object(group.group, version));
      items.push_back(
          Object{{"metadata", Object{{"name", group.group}, {"creationTimestamp", nullptr}}}, {"versions", std::move(versions)}});
    }
  }
  return Object{{"kind", "APIGroupDiscoveryList"},
                {"apiVersion", fmt::format("apidiscovery.k8s.io/{}", api_version)},
                {"metadata", Object()},
                {"items", std::move(items)}};
}

}  // namespace berth::model
