#include "apiserver/admission/type_checking.h"

#include "apiserver/admission/match_conditions.h"
#include "model/kind_hooks.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

using json::get_array;
using json::get_string;
using json::Value;
using model::TypeDef;
using model::TypeRef;

constexpr std::size_t kMostTypes = 10;
constexpr std::string_view kVariables = "kubernetes.variables";

/// The field tables of kinds as types of expressions.
class Types {
 public:
  cel::Type of(const TypeDef* type) {
    if (type == nullptr) return cel::dyn_type();
    auto name = fmt::format("object.{}", static_cast<const void*>(type));
    if (table_.contains(name)) return cel::struct_type(name);
    table_[name].name = name;
    cel::StructType made{name, {}};
    for (const auto& field : type->fields) made.fields[field.name] = of(field.ref);
    table_[name] = std::move(made);
    return cel::struct_type(name);
  }
  [[nodiscard]] const std::map<std::string, cel::StructType, std::less<>>& table() const { return table_; }

 private:
  cel::Type of(const TypeRef& ref) {
    using Kind = TypeRef::Kind;
    switch (ref.kind) {
      case Kind::kString:
      case Kind::kQuantity:
        return cel::string_type();
      case Kind::kInt32:
      case Kind::kInt64:
        return cel::int_type();
      case Kind::kDouble:
        return cel::double_type();
      case Kind::kBool:
        return cel::bool_type();
      case Kind::kTime:
      case Kind::kMicroTime:
        return cel::timestamp_type();
      case Kind::kBytes:
        return cel::bytes_type();
      case Kind::kStruct:
        return of(ref.type);
      case Kind::kList:
        return cel::list_type(ref.element == nullptr ? cel::dyn_type() : of(*ref.element));
      case Kind::kMap:
        return cel::map_type(cel::string_type(), ref.element == nullptr ? cel::dyn_type() : of(*ref.element));
      default:
        return cel::dyn_type();
    }
  }
  std::map<std::string, cel::StructType, std::less<>> table_;
};

/// The names of a rule, sorted; none where a wildcard stands among them.
std::vector<std::string> plain_names(const Value& rule, std::string_view field, std::string_view odd) {
  std::vector<std::string> out;
  for (const auto& one : get_array(rule, {field})) {
    if (!one.is_string() || json::as_view(one).find_first_of(odd) != std::string_view::npos) return {};
    out.emplace_back(json::as_view(one));
  }
  std::ranges::sort(out);
  return out;
}

std::vector<const model::KindInfo*> kinds_to_check(const Value& policy, const KindTablePtr& kinds) {
  std::vector<const model::KindInfo*> out;
  const auto find = [&](const std::string& group, const std::string& version, const std::string& plural) {
    return kinds == nullptr ? model::find_resource(group, version, plural) : kinds->find_resource(group, version, plural);
  };
  for (const auto& rule : get_array(policy, {"spec", "matchConstraints", "resourceRules"}))
    for (const auto& group : plain_names(rule, "apiGroups", "*"))
      for (const auto& version : plain_names(rule, "apiVersions", "*"))
        for (const auto& plural : plain_names(rule, "resources", "*/")) {
          const auto* kind = find(group, version, plural);
          if (kind != nullptr && std::ranges::find(out, kind) == out.end() && out.size() < kMostTypes) out.push_back(kind);
        }
  std::ranges::sort(
      out, [](const auto* a, const auto* b) { return std::tie(a->group, a->version, a->kind) < std::tie(b->group, b->version, b->kind); });
  return out;
}

/// The environment of a policy's expressions about one kind.
cel::Environment environment_for(const Value& policy, const model::KindInfo& kind, const model::KindInfo* param_kind, Types& types) {
  const bool has_params = json::find(policy, {"spec", "paramKind"}) != nullptr;
  auto out = admission_environment({has_params, true});
  const auto object = types.of(model::type_of(kind));
  const auto params = types.of(param_kind == nullptr ? nullptr : model::type_of(*param_kind));
  for (auto& variable : out.variables) {
    if (variable.name == "object" || variable.name == "oldObject") variable.type = object;
    if (variable.name == "params") variable.type = params;
  }
  out.struct_table = &types.table();
  out.variables.push_back({"variables", cel::struct_type(std::string(kVariables))});
  out.structs.push_back({std::string(kVariables), {}});
  for (const auto& variable : get_array(policy, {"spec", "variables"})) {
    const auto compiled = compile_expression(get_string(variable, {"expression"}), out, {});
    out.structs.back().fields[std::string(get_string(variable, {"name"}))] =
        compiled.program ? compiled.program->output_type() : cel::dyn_type();
  }
  return out;
}

const model::KindInfo* param_kind(const Value& policy, const KindTablePtr& kinds) {
  const auto [group, version] = split_version(get_string(policy, {"spec", "paramKind", "apiVersion"}));
  const auto name = get_string(policy, {"spec", "paramKind", "kind"});
  return kinds == nullptr ? model::find_kind(group, version, name) : kinds->find_kind(group, version, name);
}

}  // namespace

json::Array check_policy_types(const Value& policy, const KindTablePtr& kinds) {
  Types types;
  std::vector<std::pair<const model::KindInfo*, cel::Environment>> environments;
  for (const auto* kind : kinds_to_check(policy, kinds))
    environments.emplace_back(kind, environment_for(policy, *kind, param_kind(policy, kinds), types));
  json::Array out;
  const auto check = [&](std::string_view text, std::string field) {
    std::string warning;
    for (const auto& [kind, environment] : environments) {
      const auto compiled = compile_expression(text, environment, {});
      if (compiled.error.empty()) continue;
      std::string_view said = compiled.error;
      if (constexpr std::string_view kPrefix = "compilation failed: "; said.starts_with(kPrefix)) said.remove_prefix(kPrefix.size());
      warning += fmt::format("{}{}{}, Kind={}: {}\n", warning.empty() ? "" : "\n", kind->group.empty() ? "/" : "", kind->api_version(),
                             kind->kind, said);
    }
    if (!warning.empty()) out.push_back(json::Object{{"fieldRef", std::move(field)}, {"warning", std::move(warning)}});
  };
  const auto& validations = get_array(policy, {"spec", "validations"});
  for (std::size_t i = 0; i < validations.size(); ++i) {
    check(get_string(validations[i], {"expression"}), fmt::format("spec.validations[{}].expression", i));
    if (const auto message = get_string(validations[i], {"messageExpression"}); !message.empty())
      check(message, fmt::format("spec.validations[{}].messageExpression", i));
  }
  return out;
}

}  // namespace berth::apiserver
