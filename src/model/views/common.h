// Pieces that the typed views share: metadata, resource lists, taints, node selectors. Parsed from any JSON: what is missing or of
// another type has its zero value; nothing is defaulted on top.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/shared_pool.h"
#include "model/quantity.h"
#include "model/selector.h"

namespace berth::model {

/// Resource name to exact amount, sorted by name. Malformed quantities are left out.
using ResourceList = std::vector<std::pair<std::string, Quantity>>;
using SharedResourceList = SharedList<ResourceList::value_type>;
ResourceList parse_resource_list(const json::Value* value);
/// Null when absent.
const Quantity* find_resource(const ResourceList& list, std::string_view name);

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
  [[nodiscard]] auto parts() const { return std::tie(api_version, kind, name, uid, controller); }
};

struct ObjectMeta {
  std::string ns, name, uid;
  Labels labels;
  Labels::Pairs annotations;  ///< Sorted by key.
  SharedList<OwnerReference> owner_references;
  std::string creation_timestamp;  ///< RFC 3339 as given; empty when absent.
  bool is_deleting = false;        ///< metadata.deletionTimestamp is set.

  static ObjectMeta parse(const json::Value& object);
  /// Null when absent.
  [[nodiscard]] const std::string* annotation(std::string_view key) const;
  /// "namespace/name", or "name" for objects without a namespace.
  [[nodiscard]] std::string key() const { return ns.empty() ? name : ns + "/" + name; }
  /// The owner with controller: true; null when none (metav1.GetControllerOf).
  [[nodiscard]] const OwnerReference* controller() const;
};

struct Taint {
  std::string key, value, effect;
  std::string time_added{};  ///< RFC 3339 as given; says nothing of which taint it is.
  friend bool operator==(const Taint& a, const Taint& b) { return a.key == b.key && a.value == b.value && a.effect == b.effect; }
};

/// core/v1 Toleration. `op` is as given: "", "Equal", "Exists" (and "Lt", "Gt" of newer APIs, which match nothing here).
struct Toleration {
  std::string key, op, value, effect;
  std::optional<std::int64_t> toleration_seconds;
  /// core/v1 Toleration.ToleratesTaint: an empty effect or key (with Exists) matches all.
  [[nodiscard]] bool tolerates(const Taint& taint) const;
  friend bool operator==(const Toleration&, const Toleration&) = default;
  [[nodiscard]] auto parts() const { return std::tie(key, op, value, effect, toleration_seconds); }
};
std::vector<Toleration> parse_tolerations(const json::Array& items);
Taint parse_taint(const json::Value& item);

/// One term of a NodeSelector: all expressions and fields hold. A term without any matches nothing; one that cannot be parsed
/// (bad operator, wrong number of values) carries its errors and matches nothing (component-helpers nodeaffinity).
struct NodeSelectorTerm {
  std::vector<Requirement> expressions;
  /// On metadata.name: In or NotIn with one value each, unless `errors` says otherwise.
  std::vector<Requirement> fields;
  std::vector<std::string> errors;  ///< "matchExpressions[0].operator: Unsupported value: ..."

  static NodeSelectorTerm parse(const json::Value& term);
  [[nodiscard]] bool is_empty() const { return expressions.empty() && fields.empty() && errors.empty(); }
  [[nodiscard]] bool matches(const Labels& node_labels, std::string_view node_name) const;
  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
  [[nodiscard]] auto parts() const { return std::tie(expressions, fields, errors); }
};

/// Terms are ORed. No terms match nothing.
struct NodeSelector {
  SharedList<NodeSelectorTerm> terms;
  static NodeSelector parse(const json::Value& selector);
  [[nodiscard]] bool matches(const Labels& node_labels, std::string_view node_name) const;
  friend bool operator==(const NodeSelector&, const NodeSelector&) = default;
};

struct PreferredSchedulingTerm {
  std::int64_t weight = 0;
  NodeSelectorTerm preference;
  friend bool operator==(const PreferredSchedulingTerm&, const PreferredSchedulingTerm&) = default;
  [[nodiscard]] auto parts() const { return std::tie(weight, preference); }
};

struct NodeAffinity {
  std::optional<NodeSelector> required;
  SharedList<PreferredSchedulingTerm> preferred;
  static NodeAffinity parse(const json::Value& affinity);
  friend bool operator==(const NodeAffinity&, const NodeAffinity&) = default;
};

std::vector<std::string> parse_strings(const json::Array& items);

}  // namespace berth::model
