// x-kubernetes-validations: rules in the Common Expression Language at the nodes of a schema
// (apiextensions-apiserver/pkg/apiserver/schema/cel; apiserver/pkg/cel/common). Pure.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cel/cel.h"
#include "custom/correlate.h"
#include "custom/schema.h"
#include "model/api_status.h"

namespace berth::custom {

/// Kubernetes' RuntimeCELCostBudget: for all rules of one object.
inline constexpr std::int64_t kRulesCostBudget = 10'000'000;
/// StaticEstimatedCostLimit, StaticEstimatedCRDCostLimit.
inline constexpr std::uint64_t kRuleCostLimit = 10'000'000, kSchemaCostLimit = 100'000'000;

/// A schema node as rules see it; nothing where they do not see it.
struct Declared {
  cel::Type type;
  std::int64_t min_size = 0;                                ///< Bytes of the smallest JSON of such a value.
  std::map<std::string, Declared, std::less<>> properties;  ///< By the name in JSON; those that are seen.
  std::unique_ptr<Declared> element;                        ///< Of a list or a map.
};
/// The types of a whole schema.
struct Declarations {
  std::optional<Declared> root;
  std::map<std::string, cel::StructType, std::less<>> structs;
};
/// `is_resource`: apiVersion, kind and metadata's names are seen at the root.
Declarations declare(const Schema& schema, bool is_resource);

/// A property's name as an identifier of the language ("a-b" is "a__dash__b"); nullopt: it has none.
std::optional<std::string> escape_name(std::string_view name);
std::optional<std::string> unescape_name(std::string_view name);

/// A value read by its schema. Borrows both. An error value where it does not fit.
cel::Value to_cel(const json::Value& value, const Schema& schema);
/// The same of a whole resource, whose apiVersion, kind and metadata are always seen.
cel::Value root_to_cel(const json::Value& value, const Schema& schema);

struct CompiledRule {
  const Rule* rule = nullptr;
  std::optional<cel::Program> program, message;
  std::string error, message_error;  ///< Why they are none.
  bool uses_old_self = false;
  std::uint64_t max_cost = 0, message_max_cost = 0;
  std::uint64_t max_cardinality = 0;  ///< How often data of the node's smallest size fits into a request.
  std::string field_path;             ///< Normalised; empty: none.
};
/// The rules of one node alone; `declared`: its type.
std::vector<CompiledRule> compile_rules(const Schema& schema, const Declared& declared, const Declarations& declarations);

/// The nodes of a schema that have rules, and those above them.
class RuleTree {
 public:
  /// Null: there are no rules. Borrows the schema.
  static std::unique_ptr<const RuleTree> compile(const Schema& schema, bool is_resource);
  ~RuleTree();

  struct Outcome {
    model::FieldErrors errors;
    std::vector<std::string> warnings;       ///< Findings that are forgiven, as the place did not change.
    std::int64_t budget = kRulesCostBudget;  ///< What is left; negative: used up.
  };
  /// `before`: null at creation. `correlated`: of the two, null at creation.
  void check(const json::Value& value, const json::Value* before, Correlated* correlated, const std::string& path, Outcome& outcome) const;

 private:
  struct Node;
  struct Run;
  RuleTree() = default;
  std::unique_ptr<Node> root_;
};

/// A path of field names and keys below a schema (".spec.x", "['a-b'].c"): as field.Path prints it, and the schema there; or what is wrong.
struct FieldPath {
  std::string text;
  std::string first;  ///< The first name.
  const Schema* schema = nullptr;
};
Expected<FieldPath, std::string> resolve_field_path(std::string_view path, const Schema& schema, bool allows_brackets = true);

}  // namespace berth::custom
