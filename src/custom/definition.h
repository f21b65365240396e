// A CustomResourceDefinition read from its document, and the kinds that it makes.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "custom/json_path.h"
#include "custom/schema.h"
#include "model/kinds.h"

namespace berth::custom {

class RuleTree;

struct Names {
  std::string plural, singular, kind, list_kind;
  std::vector<std::string> short_names, categories;
  friend bool operator==(const Names&, const Names&) = default;
};

struct ScalePaths {
  std::string spec_replicas, status_replicas, label_selector;
};

struct PrinterColumn {
  std::string name, type, format, description, json_path;
  std::int64_t priority = 0;
};

struct Version {
  std::string name;
  bool is_served = false, is_stored = false, is_deprecated = false;
  std::optional<std::string> deprecation_warning;
  bool has_status = false;
  std::optional<ScalePaths> scale;
  std::vector<PrinterColumn> columns;
  std::vector<std::string> selectable;   ///< JSON paths.
  std::shared_ptr<const Schema> schema;  ///< Never null: without one everything is unknown.
  json::Value schema_document;           ///< openAPIV3Schema as it stands; null without one.
};

struct Webhook {
  json::Value client_config;
  std::vector<std::string> review_versions;
};

struct Definition {
  std::string name, group;
  bool is_namespaced = true, preserves_unknown = false;
  Names names, accepted;
  std::vector<Version> versions;
  std::optional<Webhook> conversion;  ///< Nothing: strategy None.
  std::int64_t generation = 0;
  bool is_established = false;
  [[nodiscard]] const Version* stored_version() const;
};

Names read_names(const json::Value& names);
/// A document that passed decoding; schemas are read once, here.
std::shared_ptr<const Definition> read_definition(const json::Value& document);

/// One version of a definition as a kind that the API server serves: names, hooks with the schema behind them.
struct CustomKind {
  model::KindInfo info;
  std::shared_ptr<const Definition> definition;
  const Version* version = nullptr;
  std::shared_ptr<const RuleTree> rules;
  std::shared_ptr<const CustomKind> storage;                 ///< The stored version's, which info.stored points to; null: this one.
  std::string deprecation;                                   ///< What every request is told; empty: nothing.
  std::vector<std::pair<std::string, JsonPath>> selectable;  ///< By the name in selectors ("spec.color").
};

/// All served versions, and the stored one whether served or not; the first is preferred (kube-aware version order). Those that are not
/// served have no verbs. `is_terminating`: no object is made any more.
std::vector<std::shared_ptr<const CustomKind>> make_kinds(const std::shared_ptr<const Definition>& definition, bool is_terminating);

/// "v2", "v1", "v1beta2", "v1alpha1", "foo": whether a stands before b (apimachinery/pkg/version).
bool is_version_before(std::string_view a, std::string_view b);

}  // namespace berth::custom
