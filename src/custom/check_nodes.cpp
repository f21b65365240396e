#include "custom/check_nodes.h"

#include "custom/metadata.h"
#include "custom/objects.h"
#include "custom/rules.h"
#include "custom/validate.h"
#include "model/go_words.h"
#include "model/internal_form.h"

namespace berth::custom {
namespace {

using json::Value;
using Type = model::FieldError::Type;

std::uint64_t product(std::uint64_t cost, std::uint64_t times) {
  if (cost == 0) return 0;
  return UINT64_MAX / cost < times ? UINT64_MAX : cost * times;
}

std::string over_budget(std::string_view what, std::uint64_t cost, std::uint64_t limit) {
  const double factor = static_cast<double>(cost) / static_cast<double>(limit);
  const auto text = factor > 100.0 ? std::string("more than 100x")
                    : factor < 1.5 ? fmt::format("{:f}x", factor)
                                   : fmt::format("{:.1f}x", factor);
  return fmt::format(
      "{} exceeds budget by factor of {} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, "
      "and "
      "strings are declared)",
      what, text);
}

/// As Go prints the rule's struct.
std::string shown_rule(const Rule& rule) {
  json::Object out{{"Rule", rule.rule}, {"Message", rule.message},      {"MessageExpression", rule.message_expression},
                   {"Reason", nullptr}, {"FieldPath", rule.field_path}, {"OptionalOldSelf", nullptr}};
  if (rule.reason) out["Reason"] = *rule.reason;
  if (rule.optional_old_self) out["OptionalOldSelf"] = *rule.optional_old_self;
  return model::escape_html(json::serialize(out));
}

/// The state that goes down the tree.
struct Where {
  std::string path;
  bool is_root = false, in_metadata = false, checks_rules = false;
  bool forbids_defaults = false;
  std::string defaults_reason;
  std::string uncorrelated;  ///< The list above whose elements have no old value; empty: none.
  const Declared* declared = nullptr;
  std::optional<std::uint64_t> cardinality = 1;  ///< How often the node can be there; nothing: no bound.
};

std::optional<std::uint64_t> most_elements(const Schema& schema) {
  const auto bound = [](const std::optional<std::int64_t>& most) {
    return most ? std::optional(static_cast<std::uint64_t>(std::max<std::int64_t>(*most, 0))) : std::nullopt;
  };
  if (schema.type == "object") return schema.additional_allowed ? bound(schema.max_properties) : std::optional<std::uint64_t>(1);
  if (schema.type == "array") return bound(schema.max_items);
  return 1;
}

class Nodes {
 public:
  Nodes(model::FieldErrors& errors, const Declarations& declarations) : errors_(errors), declarations_(declarations) {}

  void node(const Schema& schema, const Where& at) {
    const auto before = errors_.size();
    fields(schema, at);
    children(schema, at);
    lists(schema, at.path);
    rule_texts(schema, at.path);
    // Rules are compiled where everything else is in order.
    if (errors_.size() == before && at.checks_rules && at.declared != nullptr && !schema.rules.empty()) rules(schema, at);
  }

  void total(const std::string& path) {
    if (total_ <= kSchemaCostLimit) return;
    std::ranges::stable_sort(expensive_, std::ranges::greater(), [](const auto& one) { return one.second; });
    if (expensive_.size() > 4) expensive_.resize(4);
    for (const auto& [where, cost] : expensive_)
      add(Type::kForbidden, where, "", "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema");
    add(Type::kForbidden, path, "",
        over_budget("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", total_, kSchemaCostLimit));
  }
  void append_rule_errors() { std::ranges::move(rule_errors_, std::back_inserter(errors_)); }

 private:
  void add(Type type, std::string field, std::string value, std::string detail) {
    errors_.push_back({type, std::move(field), std::move(value), std::move(detail)});
  }

  void fields(const Schema& schema, const Where& at) {
    static constexpr std::string_view kTypes[] = {"array", "boolean", "integer", "number", "object", "string"};
    if (!schema.type.empty() && std::ranges::find(kTypes, schema.type) == std::end(kTypes))
      add(Type::kNotSupported, at.path + ".type", model::go_quote(schema.type),
          R"(supported values: "array", "boolean", "integer", "number", "object", "string")");
    if (schema.default_value && at.forbids_defaults)
      add(Type::kForbidden, at.path + ".default", "", "must not be set" + (at.defaults_reason.empty() ? "" : " " + at.defaults_reason));
    for (const auto& field : schema.forbidden) add(Type::kForbidden, at.path + "." + field, "", field + " is not supported");
    if (schema.type == "null") add(Type::kForbidden, at.path + ".type", "", "type cannot be set to null, use nullable as an alternative");
    if (!schema.item_list.empty()) add(Type::kForbidden, at.path + ".items", "", "items must be a schema object and not an array");
    if (at.in_metadata && schema.is_embedded)
      add(Type::kForbidden, at.path + ".x-kubernetes-embedded-resource", "", "must not be used inside of resource meta");
    if (schema.unique_items)
      add(Type::kForbidden, at.path + ".uniqueItems", "",
          "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
    if (schema.additional_allowed && !schema.properties.empty() && (!*schema.additional_allowed || schema.additional != nullptr))
      add(Type::kForbidden, at.path + ".additionalProperties", "", "additionalProperties and properties are mutual exclusive");
    if (schema.refuses_unknown)
      add(Type::kInvalid, at.path + ".x-kubernetes-preserve-unknown-fields", "false", "must be true or undefined");
  }

  Where below(const Schema& schema, const Where& at, std::string path, const Declared* declared) const {
    Where out = at;
    out.path = std::move(path);
    out.is_root = false;
    out.declared = declared;
    const auto most = most_elements(schema);
    out.cardinality = at.cardinality && most ? std::optional(product(*at.cardinality, *most)) : std::nullopt;
    return out;
  }

  void children(const Schema& schema, const Where& at) {
    const auto* declared = at.declared;
    if (schema.additional != nullptr) {
      auto where = below(schema, at, at.path + ".additionalProperties", declared == nullptr ? nullptr : declared->element.get());
      if (at.in_metadata) {
        where.forbids_defaults = true;
        where.defaults_reason = "inside additionalProperties applying to object metadata";
      }
      node(*schema.additional, where);
    }
    for (const auto& [name, one] : schema.properties) {
      const auto found = declared == nullptr ? decltype(declared->properties.end())() : declared->properties.find(name);
      auto where = below(schema, at, fmt::format("{}.properties[{}]", at.path, name),
                         declared == nullptr || found == declared->properties.end() ? nullptr : &found->second);
      if ((at.is_root || schema.is_embedded) && (name == "metadata" || name == "kind" || name == "apiVersion")) {
        where.in_metadata = true;
        if (at.is_root) {
          where.forbids_defaults = true;
          where.defaults_reason = "in top-level " + name;
        }
      }
      node(one, where);
    }
    auto without_rules = at;
    without_rules.checks_rules = false;
    without_rules.is_root = false;
    const auto inner = [&](const Schema& one, std::string path) {
      without_rules.path = std::move(path);
      node(one, without_rules);
    };
    if (schema.negated != nullptr) inner(*schema.negated, at.path + ".not");
    for (const auto& [list, word] :
         {std::pair(&schema.all_of, "allOf"), std::pair(&schema.one_of, "oneOf"), std::pair(&schema.any_of, "anyOf")})
      for (std::size_t i = 0; i < list->size(); ++i) inner((*list)[i], fmt::format("{}.{}[{}]", at.path, word, i));
    if (schema.items != nullptr) {
      auto where = below(schema, at, at.path + ".items", declared == nullptr ? nullptr : declared->element.get());
      if (schema.list_type != "map" && where.uncorrelated.empty()) where.uncorrelated = at.path;
      node(*schema.items, where);
    }
  }

  void lists(const Schema& schema, const std::string& path) {
    const auto need_type = [&](std::string_view type, std::string_view extension) {
      const auto detail = fmt::format("must be {} if {} is specified", type, extension);
      if (schema.type.empty()) {
        add(Type::kRequired, path + ".type", "", detail);
      } else {
        add(Type::kInvalid, path + ".type", model::go_quote(schema.type), detail);
      }
    };
    if (schema.map_type && schema.type != "object") need_type("object", "x-kubernetes-map-type");
    if (schema.map_type && *schema.map_type != "atomic" && *schema.map_type != "granular")
      add(Type::kNotSupported, path + ".x-kubernetes-map-type", model::go_quote(*schema.map_type),
          R"(supported values: "atomic", "granular")");
    if (schema.list_type && schema.type != "array") {
      need_type("array", "x-kubernetes-list-type");
    } else if (schema.list_type == "set" && schema.items != nullptr) {
      const auto& items = *schema.items;
      if (items.type == "array" && items.list_type && *items.list_type != "atomic")
        add(Type::kInvalid, path + ".items.x-kubernetes-list-type", model::go_quote(*items.list_type),
            "must be atomic as item of a list with x-kubernetes-list-type=set");
      if (items.type == "object" && items.map_type != "atomic")
        add(Type::kInvalid, path + ".items.x-kubernetes-map-type", items.list_type ? model::go_quote(*items.list_type) : "null",
            "must be atomic as item of a list with x-kubernetes-list-type=set");
    }
    if (schema.list_type && *schema.list_type != "atomic" && *schema.list_type != "set" && *schema.list_type != "map")
      add(Type::kNotSupported, path + ".x-kubernetes-list-type", model::go_quote(*schema.list_type),
          R"(supported values: "atomic", "set", "map")");
    if (!schema.list_map_keys.empty() && schema.list_type != "map") {
      const std::string detail = "must be map if x-kubernetes-list-map-keys is non-empty";
      if (!schema.list_type) {
        add(Type::kRequired, path + ".x-kubernetes-list-type", "", detail);
      } else {
        add(Type::kInvalid, path + ".x-kubernetes-list-type", model::go_quote(*schema.list_type), detail);
      }
    }
    if (schema.list_type == "map") map_list(schema, path);
    if ((schema.list_type == "map" || schema.list_type == "set") && schema.items != nullptr) keys(schema, path);
  }

  void map_list(const Schema& schema, const std::string& path) {
    if (schema.list_map_keys.empty())
      add(Type::kRequired, path + ".x-kubernetes-list-map-keys", "", "must not be empty if x-kubernetes-list-type is map");
    if (schema.items == nullptr && schema.item_list.empty())
      add(Type::kRequired, path + ".items", "", "must have a schema if x-kubernetes-list-type is map");
    if (schema.items == nullptr) return;
    if (schema.items->type != "object")
      return add(Type::kInvalid, path + ".items.type", model::go_quote(schema.items->type),
                 "must be object if parent array's x-kubernetes-list-type is map");
    const auto all = shown(Value(json::Array(schema.list_map_keys.begin(), schema.list_map_keys.end())));
    std::vector<std::string_view> seen;
    for (const auto& key : schema.list_map_keys) {
      const auto* property = schema.items->property(key);
      if (property == nullptr) {
        add(Type::kInvalid, path + ".x-kubernetes-list-map-keys", all, "entries must all be names of item properties");
      } else if (property->type == "array" || property->type == "object") {
        add(Type::kInvalid, fmt::format("{}.items.properties[{}].type", path, key), model::go_quote(schema.items->type),
            "must be a scalar type if parent array's x-kubernetes-list-type is map");
      }
      if (std::ranges::find(seen, key) != seen.end())
        add(Type::kInvalid, path + ".x-kubernetes-list-map-keys", all, "must not contain duplicate entries");
      seen.push_back(key);
    }
  }

  void keys(const Schema& schema, const std::string& path) {
    const auto& items = *schema.items;
    if (items.nullable)
      add(Type::kForbidden, path + ".items.nullable", "", "cannot be nullable when x-kubernetes-list-type is " + *schema.list_type);
    if (schema.list_type != "map") return;
    for (const auto& key : schema.list_map_keys) {
      const auto* property = items.property(key);
      if (property == nullptr) continue;
      const auto at = fmt::format("{}.items.properties[{}]", path, key);
      if (std::ranges::find(items.required, key) == items.required.end() && !property->default_value)
        add(Type::kRequired, at + ".default", "",
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property");
      if (property->nullable)
        add(Type::kForbidden, at + ".nullable", "", "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
    }
  }

  void rule_texts(const Schema& schema, const std::string& path) {
    const auto is_blank = [](std::string_view text) { return text.find_first_not_of(" \t\n\r\v\f") == std::string_view::npos; };
    const auto breaks = [&](std::string_view text) {
      const auto first = text.find_first_not_of(" \t\n\r\v\f"), last = text.find_last_not_of(" \t\n\r\v\f");
      return first != std::string_view::npos && text.substr(first, last - first + 1).find_first_of("\n\r") != std::string_view::npos;
    };
    for (std::size_t i = 0; i < schema.rules.size(); ++i) {
      const auto& rule = schema.rules[i];
      const auto at = fmt::format("{}.x-kubernetes-validations[{}]", path, i);
      if (is_blank(rule.rule)) {
        add(Type::kRequired, at + ".rule", "", "rule is not specified");
      } else if (!rule.message.empty() && is_blank(rule.message)) {
        add(Type::kInvalid, at + ".message", model::go_quote(rule.message), "must be non-empty if specified");
      } else if (breaks(rule.message)) {
        add(Type::kInvalid, at + ".message", model::go_quote(rule.message), "must not contain line breaks");
      } else if (breaks(rule.rule) && is_blank(rule.message)) {
        add(Type::kRequired, at + ".message", "", "message must be specified if rule contains line breaks");
      }
      if (!rule.message_expression.empty() && is_blank(rule.message_expression))
        add(Type::kRequired, at + ".messageExpression", "", "messageExpression must be non-empty if specified");
      static constexpr std::string_view kReasons[] = {"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid",
                                                      "FieldValueRequired"};
      if (rule.reason && std::ranges::find(kReasons, *rule.reason) == std::end(kReasons))
        add(Type::kNotSupported, at + ".reason", model::go_quote(*rule.reason),
            R"(supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")");
      if (rule.field_path.empty()) continue;
      if (is_blank(rule.field_path))
        add(Type::kInvalid, at + ".fieldPath", model::go_quote(rule.field_path), "must be non-empty if specified");
      if (rule.field_path.find_first_of("\n\r") != std::string::npos)
        add(Type::kInvalid, at + ".fieldPath", model::go_quote(rule.field_path), "must not contain line breaks");
      if (!resolve_field_path(rule.field_path, schema))
        add(Type::kInvalid, at + ".fieldPath", model::go_quote(rule.field_path), "must be a valid path");
    }
  }

  void rules(const Schema& schema, const Where& at) {
    const auto compiled = compile_rules(schema, *at.declared, declarations_);
    for (std::size_t i = 0; i < compiled.size(); ++i) {
      const auto& rule = compiled[i];
      const auto path = fmt::format("{}.x-kubernetes-validations[{}]", at.path, i);
      const auto say = [&](Type type, std::string_view field, std::string value, std::string detail) {
        rule_errors_.push_back({type, fmt::format("{}.{}", path, field), std::move(value), std::move(detail)});
      };
      const auto cost = product(rule.max_cost, at.cardinality.value_or(rule.max_cardinality));
      if (cost > kRuleCostLimit) say(Type::kForbidden, "rule", "", over_budget("estimated rule cost", cost, kRuleCostLimit));
      observe(path + ".rule", cost);
      if (!rule.error.empty()) say(Type::kInvalid, "rule", shown_rule(*rule.rule), rule.error);
      if (!rule.message_error.empty()) {
        say(Type::kInvalid, "messageExpression", shown_rule(*rule.rule), rule.message_error);
      } else if (rule.message) {
        if (rule.message_max_cost > kRuleCostLimit)
          say(Type::kForbidden, "messageExpression", "",
              over_budget("estimated messageExpression cost", rule.message_max_cost, kRuleCostLimit));
        observe(path + ".messageExpression", rule.message_max_cost);
      }
      if (rule.uses_old_self && !at.uncorrelated.empty()) {
        say(Type::kInvalid, "rule", model::go_quote(rule.rule->rule),
            fmt::format("oldSelf cannot be used on the uncorrelatable portion of the schema within {}", at.uncorrelated));
      } else if (!rule.uses_old_self && rule.rule->optional_old_self) {
        say(Type::kInvalid, "optionalOldSelf", *rule.rule->optional_old_self ? "true" : "false",
            "may not be set if oldSelf is not used in rule");
      }
    }
  }

  void observe(std::string path, std::uint64_t cost) {
    total_ = UINT64_MAX - total_ < cost ? UINT64_MAX : total_ + cost;
    if (cost >= kSchemaCostLimit / 100) expensive_.emplace_back(std::move(path), cost);
  }

  model::FieldErrors& errors_;
  const Declarations& declarations_;
  model::FieldErrors rule_errors_;
  std::uint64_t total_ = 0;
  std::vector<std::pair<std::string, std::uint64_t>> expensive_;
};

/// The default values of a schema, each checked by its own part of it.
class Defaults {
 public:
  explicit Defaults(model::FieldErrors& errors) : errors_(errors) {}

  void root(const Schema& schema, const std::string& path) {
    resource_ = &schema;
    node(schema, path, true, false);
  }

 private:
  void node(const Schema& schema, const std::string& path, bool is_resource, bool in_metadata) {
    const auto* outer = resource_;
    auto above = std::exchange(steps_, is_resource ? std::vector<std::string>() : steps_);
    if (is_resource) resource_ = &schema;
    if (schema.default_value) in_metadata ? metadata(schema, path + ".default") : plain(schema, path + ".default", is_resource);
    if (schema.items != nullptr) below(*schema.items, path + ".items", "[0]", in_metadata && !is_resource);
    for (const auto& [name, one] : schema.properties) {
      const bool is_meta = name == "metadata" || name == "apiVersion" || name == "kind";
      below(one, fmt::format("{}.properties[{}]", path, name), name, is_resource ? is_meta : in_metadata);
    }
    resource_ = outer;
    steps_ = std::move(above);
  }
  void below(const Schema& schema, const std::string& path, std::string step, bool in_metadata) {
    steps_.push_back(std::move(step));
    node(schema, path, schema.is_embedded, schema.is_embedded ? false : in_metadata);
    steps_.pop_back();
  }

  void add(std::string at, const Schema& schema, std::string why) {
    errors_.push_back({Type::kInvalid, std::move(at), shown(*schema.default_value), std::move(why)});
  }

  /// Inside apiVersion, kind or metadata: a resource with nothing but the value there has to be one.
  void metadata(const Schema& schema, const std::string& at) {
    Value object = *schema.default_value;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step)
      object = *step == "[0]" ? Value(json::Array{std::move(object)}) : Value(json::Object{{*step, std::move(object)}});
    auto& members = object.get_object();
    if (!members.contains("apiVersion")) members["apiVersion"] = "validation/v1";
    if (!members.contains("kind")) members["kind"] = "Validation";
    const std::string why = "must result in valid metadata: ";
    if (const auto error = coerce_embedded(object, *resource_, "", false, nullptr, true)) return add(at, schema, why + error->render());
    model::FieldErrors found;
    check_embedded(object, *resource_, true, "", found);
    if (found.empty()) return values(schema, at);
    std::string all;
    for (const auto& error : found) all += (all.empty() ? "" : ", ") + error.render();
    add(at, schema, why + (found.size() > 1 ? "[" + all + "]" : all));
  }

  void plain(const Schema& schema, const std::string& at, bool is_resource) {
    auto pruned = *schema.default_value;
    prune(pruned, schema, schema.is_embedded, nullptr);
    if (!json::equal(pruned, *schema.default_value)) add(at, schema, "must not have unknown fields");
    auto coerced = *schema.default_value;
    if (auto error = coerce_embedded(coerced, schema, at, false, nullptr, is_resource)) return errors_.push_back(std::move(*error));
    model::FieldErrors found;
    check_embedded(*schema.default_value, schema, is_resource, at, found);
    if (found.empty()) return values(schema, at);
    std::ranges::move(found, std::back_inserter(errors_));
  }

  void values(const Schema& schema, const std::string& at) {
    model::FieldErrors found;
    check_schema(*schema.default_value, schema, at, nullptr, found, true);
    if (found.empty())
      if (const auto rules = RuleTree::compile(schema, false)) {
        RuleTree::Outcome outcome;
        rules->check(*schema.default_value, &*schema.default_value, nullptr, at, outcome);
        found = std::move(outcome.errors);
      }
    std::ranges::move(found, std::back_inserter(errors_));
  }

  model::FieldErrors& errors_;
  const Schema* resource_ = nullptr;  ///< The root, or the embedded resource that the node is in.
  std::vector<std::string> steps_;    ///< From there down.
};

}  // namespace

model::FieldErrors check_nodes(const Schema& schema, const std::string& path, bool checks_rules) {
  model::FieldErrors errors;
  const bool has_rules = checks_rules && any_node(schema, [](const Schema& one) { return !one.rules.empty(); });
  const auto declarations = has_rules ? declare(schema, true) : Declarations();
  Nodes nodes(errors, declarations);
  Where root;
  root.path = path;
  root.is_root = true;
  root.checks_rules = has_rules;
  root.declared = declarations.root ? &*declarations.root : nullptr;
  nodes.node(schema, root);
  nodes.append_rule_errors();
  nodes.total(path);
  return errors;
}

model::FieldErrors check_defaults(const Schema& schema, const std::string& path) {
  model::FieldErrors errors;
  if (any_node(schema, [](const Schema& one) { return one.default_value.has_value(); })) Defaults(errors).root(schema, path);
  return errors;
}

}  // namespace berth::custom
