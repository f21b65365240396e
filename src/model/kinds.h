// The table of API kinds: names, scope, verbs, subresources. One entry a resource and version (SPEC A3).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace berth::model {

struct Gvk {
  std::string group, version, kind;
  friend auto operator<=>(const Gvk&, const Gvk&) = default;
  [[nodiscard]] std::string api_version() const { return group.empty() ? version : group + "/" + version; }
};

struct Gvr {
  std::string group, version, resource;
  friend auto operator<=>(const Gvr&, const Gvr&) = default;
};

struct KindHooks;

/// A kind in one version: its names, and, behind `hooks`, what it does of its own (kind_hooks.h). Those of all_kinds() live as long as the
/// process; a server that has more of them (custom kinds) keeps each alive as long as something points to it.
struct KindInfo {
  std::string group, version, kind, list_kind;
  std::string plural, singular;
  std::vector<std::string> short_names, categories;
  bool namespaced = true;
  std::vector<std::string> verbs;         ///< create delete deletecollection get list patch update watch
  std::vector<std::string> subresources;  ///< "status", "scale", "binding", "eviction", "log", "token", …
  /// Where objects of this kind are stored: the group of the storage version. autoscaling/v1 and v2 HPAs, core and events.k8s.io Events
  /// share one place; the others equal `group`.
  std::string storage_group;
  std::string storage_version;
  std::vector<std::string> field_selectors;  ///< Beyond metadata.name and metadata.namespace.
  bool generation = false;                   ///< metadata.generation counts spec changes.
  bool is_virtual = false;                   ///< Created, never stored (reviews, metrics).
  const KindInfo* stored = nullptr;          ///< The version that is stored; null: this one.
  std::shared_ptr<const KindHooks> hooks;    ///< Null: does nothing of its own.

  [[nodiscard]] Gvk gvk() const { return {group, version, kind}; }
  [[nodiscard]] Gvr gvr() const { return {group, version, plural}; }
  [[nodiscard]] std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  [[nodiscard]] const KindInfo& storage() const { return stored == nullptr ? *this : *stored; }
  [[nodiscard]] bool has_subresource(std::string_view name) const;
  [[nodiscard]] bool has_verb(std::string_view name) const;
};

/// The API's own kinds, fixed for the life of the process, in discovery order. Kinds that come and go are the API server's to know of.
const std::vector<KindInfo>& all_kinds();
/// Null when it is none of all_kinds().
const KindInfo* find_kind(std::string_view group, std::string_view version, std::string_view kind);
const KindInfo* find_resource(std::string_view group, std::string_view version, std::string_view plural);
/// The preferred version of a group's resource; null when unknown.
const KindInfo* find_resource(std::string_view group, std::string_view plural);

}  // namespace berth::model
