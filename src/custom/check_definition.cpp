#include "custom/check_definition.h"

#include "base/go/strings.h"
#include "base/split.h"
#include "cel/opaque.h"
#include "custom/check_nodes.h"
#include "custom/definition.h"
#include "custom/metadata.h"
#include "custom/objects.h"
#include "custom/rules.h"
#include "model/go_words.h"
#include "model/internal_form.h"
#include "model/validation/validation.h"
#include "model/validation/webhook_client.h"

namespace berth::custom {
namespace {

using json::Value;
using Type = model::FieldError::Type;
using model::validation::check_dns1035_label;

constexpr std::string_view kApprovalAnnotation = "api-approved.kubernetes.io";

std::string commas(std::string sentences) {
  std::ranges::replace(sentences, '\n', ',');
  return sentences;
}

/// What is the same in all versions is told of once, as Kubernetes' internal form has it once.
struct Common {
  bool schema = true, subresources = true, columns = true, selectable = true;
};

bool same(const Value* a, const Value* b) { return a == nullptr || b == nullptr ? a == b : json::equal(*a, *b); }

Common common_of(const Value& doc) {
  Common out;
  const auto& versions = json::get_array(doc, {"spec", "versions"});
  for (const auto& version : versions) {
    const auto is_same = [&](std::string_view field) { return same(json::find(version, field), json::find(versions.front(), field)); };
    out.schema = out.schema && is_same("schema");
    out.subresources = out.subresources && is_same("subresources");
    out.columns = out.columns && is_same("additionalPrinterColumns");
    out.selectable = out.selectable && is_same("selectableFields");
  }
  return out;
}

class DefinitionCheck {
 public:
  DefinitionCheck(const Value* old, const Value& doc) : old_(old), doc_(doc), common_(common_of(doc)) {}

  model::FieldErrors run() {
    name();
    group();
    scope();
    versions();
    names();
    if (json::get_bool(doc_, {"spec", "preserveUnknownFields"}) &&
        (old_ == nullptr || !json::get_bool(*old_, {"spec", "preserveUnknownFields"})))
      add(Type::kInvalid, "spec.preserveUnknownFields", "true",
          "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead");
    if (json::get_bool(doc_, {"spec", "preserveUnknownFields"}) && has_defaults())
      add(Type::kInvalid, "spec.preserveUnknownFields", "true", "must be false in order to use defaults in the schema");
    conversion();
    if (old_ != nullptr) immutable();
    stored_versions();
    approval();
    return std::move(errors_);
  }

 private:
  void add(Type type, std::string field, std::string value, std::string detail) {
    errors_.push_back({type, std::move(field), std::move(value), std::move(detail)});
  }
  [[nodiscard]] std::string text(json::Path path) const { return std::string(json::get_string(doc_, path)); }

  void name() {
    if (old_ != nullptr) return;
    const auto wanted = fmt::format("{}.{}", text({"spec", "names", "plural"}), text({"spec", "group"}));
    for (const std::string_view field : {"generateName", "name"})
      if (const auto given = text({"metadata", field}); !given.empty() && given != wanted)
        add(Type::kInvalid, fmt::format("metadata.{}", field), model::go_quote(given), R"(must be spec.names.plural+"."+spec.group)");
  }

  [[nodiscard]] bool has_defaults() const {
    return std::ranges::any_of(json::get_array(doc_, {"spec", "versions"}), [](const Value& version) {
      const auto* schema = json::find(version, {"schema", "openAPIV3Schema"});
      return schema != nullptr && any_node(read_schema(*schema), [](const Schema& one) { return one.default_value.has_value(); });
    });
  }

  void group() {
    const auto group = text({"spec", "group"});
    if (group.empty()) return add(Type::kRequired, "spec.group", "", "");
    if (const auto why = model::validation::check_dns1123_subdomain(group); !why.empty())
      return add(Type::kInvalid, "spec.group", model::go_quote(group), commas(why));
    if (group.find('.') == std::string::npos)
      add(Type::kInvalid, "spec.group", model::go_quote(group), "should be a domain with at least one dot");
  }

  void scope() {
    const auto scope = text({"spec", "scope"});
    if (scope.empty()) return add(Type::kRequired, "spec.scope", "", "");
    if (scope != "Cluster" && scope != "Namespaced")
      add(Type::kNotSupported, "spec.scope", model::go_quote(scope), R"(supported values: "Cluster", "Namespaced")");
  }

  void versions() {
    const auto& list = json::get_array(doc_, {"spec", "versions"});
    std::set<std::string> seen;
    std::size_t stored = 0;
    bool is_unique = true;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto& version = list[i];
      const auto at = fmt::format("spec.versions[{}]", i);
      const std::string given(json::get_string(version, {"name"}));
      is_unique = seen.insert(given).second && is_unique;
      if (json::get_bool(version, {"storage"})) ++stored;
      if (json::find(version, {"schema", "openAPIV3Schema"}) == nullptr) add(Type::kRequired, at + ".schema.openAPIV3Schema", "", "");
      if (const auto why = check_dns1035_label(given); !why.empty()) add(Type::kInvalid, at + ".name", model::go_quote(given), commas(why));
      deprecation(version, at);
      if (i == 0 || !common_.schema) schema(version, common_.schema ? "spec.validation" : at + ".schema");
      if (i == 0 || !common_.subresources) subresources(version, common_.subresources ? "spec.subresources" : at + ".subresources");
      if (i == 0 || !common_.columns)
        columns(version, common_.columns ? "spec.additionalPrinterColumns" : at + ".additionalPrinterColumns");
      if (i == 0 || !common_.selectable) selectable(version, common_.selectable ? "spec.selectableFields" : at + ".selectableFields");
    }
    if (const auto first = list.empty() ? std::string_view() : json::get_string(list.front(), {"name"}); !first.empty())
      if (const auto why = check_dns1035_label(first); !why.empty())
        add(Type::kInvalid, "spec.version", model::go_quote(first), commas(why));
    const auto all = [&] { return shown_versions(); };
    if (!is_unique) add(Type::kInvalid, "spec.versions", all(), "must contain unique version names");
    if (stored != 1) add(Type::kInvalid, "spec.versions", all(), "must have exactly one version marked as storage version");
  }

  /// As Go prints the versions' structs, what all have in common left out.
  [[nodiscard]] std::string shown_versions() const {
    if (json::find(doc_, {"spec", "versions"}) == nullptr) return "null";
    std::string out;
    for (const auto& version : json::get_array(doc_, {"spec", "versions"})) {
      json::Object own = version.is_object() ? version.get_object() : json::Object();
      for (const auto& [is_common, field] :
           {std::pair(common_.schema, "schema"), std::pair(common_.subresources, "subresources"),
            std::pair(common_.columns, "additionalPrinterColumns"), std::pair(common_.selectable, "selectableFields")})
        if (is_common) own.erase(field);
      out += (out.empty() ? "" : ",") + go_form("CustomResourceDefinitionVersion", own);
    }
    return "[" + out + "]";
  }

  void deprecation(const Value& version, const std::string& at) {
    const auto* warning = json::find(version, "deprecationWarning");
    if (warning == nullptr || !warning->is_string()) return;
    const auto say = [&](std::string why) { add(Type::kInvalid, at + ".deprecationWarning", shown(*warning), std::move(why)); };
    if (!json::get_bool(version, {"deprecated"})) return say("can only be set for deprecated versions");
    const auto words = json::as_view(*warning);
    if (words.size() > 256) say("must be <= 256 characters long");
    if (words.empty()) say("must not be an empty string");
    const auto odd = std::ranges::find_if(words, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (odd != words.end())
      say(fmt::format("must only contain printable UTF-8 characters; non-printable character found at index {}", odd - words.begin()));
  }

  /// A schema that did not change was accepted: its costs are not counted again.
  [[nodiscard]] bool is_known(const Value& version) const {
    if (old_ == nullptr) return false;
    for (const auto& before : json::get_array(*old_, {"spec", "versions"}))
      if (json::get_string(before, {"name"}) == json::get_string(version, {"name"}))
        return same(json::find(before, "schema"), json::find(version, "schema"));
    return false;
  }

  void schema(const Value& version, const std::string& path) {
    const auto* document = json::find(version, {"schema", "openAPIV3Schema"});
    if (document == nullptr || is_known(version)) return;
    const auto schema = read_schema(*document);
    const auto at = path + ".openAPIV3Schema";
    if (json::find(version, {"subresources", "status"}) != nullptr) root_with_status(*document, schema, at);
    if (schema.nullable) add(Type::kForbidden, at + ".nullable", "", "nullable cannot be true at the root");
    const auto before = errors_.size();
    model::FieldErrors structural;
    if (schema.unsupported.empty()) structural = check_structural(schema, at);
    if (structural.empty() && schema.unsupported.empty()) structural = check_defaults(schema, at);
    const bool is_structural = structural.empty() && schema.unsupported.empty();
    std::ranges::move(structural, std::back_inserter(errors_));
    auto nodes = check_nodes(schema, at, is_structural);
    std::ranges::move(nodes, std::back_inserter(errors_));
    if (errors_.size() == before && !schema.unsupported.empty()) add(Type::kInvalid, at, "\"\"", schema.unsupported);
    if (errors_.size() == before)
      any_node(schema, [&](const Schema& one) {
        if (!one.unsupported.empty()) add(Type::kInvalid, at, "\"\"", one.unsupported);
        return !one.unsupported.empty();
      });
  }

  void root_with_status(const Value& document, const Schema& schema, const std::string& at) {
    static const std::set<std::string_view> kForbidden = {"id",
                                                          "$schema",
                                                          "$ref",
                                                          "nullable",
                                                          "default",
                                                          "enum",
                                                          "maxProperties",
                                                          "minProperties",
                                                          "allOf",
                                                          "oneOf",
                                                          "anyOf",
                                                          "not",
                                                          "additionalProperties",
                                                          "patternProperties",
                                                          "dependencies",
                                                          "additionalItems",
                                                          "definitions",
                                                          "x-kubernetes-embedded-resource",
                                                          "x-kubernetes-int-or-string",
                                                          "x-kubernetes-list-map-keys",
                                                          "x-kubernetes-list-type",
                                                          "x-kubernetes-map-type"};
    if (!schema.type.empty() && schema.type != "object")
      return add(Type::kInvalid, at + ".type", model::go_quote(schema.type),
                 R"(only "object" is allowed as the type at the root of the schema if the status subresource is enabled)");
    const auto is_there = [](const Value& value) {
      const auto* text = value.if_string();
      return !value.is_null() && value != Value(false) && (text == nullptr || !text->empty());
    };
    for (const auto& [key, value] : document.get_object())
      if (kForbidden.contains(std::string_view(key)) && (is_there(value) || key == "additionalProperties"))
        return add(
            Type::kInvalid, at, go_form("JSONSchemaProps", document),
            "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems "
            "MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields "
            "are "
            "allowed at the root of the schema if the status subresource is enabled");
  }

  /// As Go prints the struct.
  static std::string go_form(std::string_view type, const Value& value) {
    return model::escape_html(json::serialize(model::internal_form(fmt::format("apiextensions.v1.{}", type), &value)));
  }

  void scale_path(const Value& scale, std::string_view field, const std::string& path, std::initializer_list<std::string_view> roots,
                  bool required) {
    const std::string given(json::get_string(scale, {field}));
    const auto at = fmt::format("{}.scale.{}", path, field);
    if (given.empty()) {
      if (required) add(Type::kRequired, at, "", "");
      return;
    }
    if (given.front() != '.') return add(Type::kInvalid, at, model::go_quote(given), "must be a simple json path starting with .");
    if (std::ranges::any_of(roots, [&](std::string_view root) { return given.starts_with(root); })) return;
    add(Type::kInvalid, at, model::go_quote(given),
        roots.size() == 2 ? "should be a json path under either .spec or .status"
                          : fmt::format("should be a json path under {}", roots.begin()->substr(0, roots.begin()->size() - 1)));
  }

  void subresources(const Value& version, const std::string& path) {
    const auto* scale = json::find(version, {"subresources", "scale"});
    if (scale == nullptr) return;
    scale_path(*scale, "specReplicasPath", path, {".spec."}, true);
    scale_path(*scale, "statusReplicasPath", path, {".status."}, true);
    scale_path(*scale, "labelSelectorPath", path, {".spec.", ".status."}, false);
  }

  void columns(const Value& version, const std::string& path) {
    static constexpr std::string_view kTypes[] = {"boolean", "date", "integer", "number", "string"};
    static constexpr std::string_view kFormats[] = {"byte", "date", "date-time", "double", "float", "int32", "int64", "password"};
    const auto& list = json::get_array(version, {"additionalPrinterColumns"});
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto at = fmt::format("{}[{}]", path, i);
      const auto get = [&](std::string_view key) { return std::string(json::get_string(list[i], {key})); };
      if (get("name").empty()) add(Type::kRequired, at + ".name", "", "");
      const auto types = fmt::format("must be one of {}", fmt::join(kTypes, ","));
      if (get("type").empty()) {
        add(Type::kRequired, at + ".type", "", types);
      } else if (std::ranges::find(kTypes, get("type")) == std::end(kTypes)) {
        add(Type::kInvalid, at + ".type", model::go_quote(get("type")), types);
      }
      if (const auto format = get("format"); !format.empty() && std::ranges::find(kFormats, format) == std::end(kFormats))
        add(Type::kInvalid, at + ".format", model::go_quote(format), fmt::format("must be one of {}", fmt::join(kFormats, ",")));
      const auto json_path = get("jsonPath");
      if (json_path.empty()) {
        add(Type::kRequired, at + ".JSONPath", "", "");
      } else if (json_path.front() != '.') {
        add(Type::kInvalid, at + ".JSONPath", model::go_quote(json_path), "must be a simple json path starting with .");
      }
    }
  }

  void selectable(const Value& version, const std::string& path) {
    const auto& list = json::get_array(version, {"selectableFields"});
    if (list.empty()) return;
    const auto* document = json::find(version, {"schema", "openAPIV3Schema"});
    if (document == nullptr)
      return add(Type::kInvalid, path, "\"\"", "may only be set when `version.schema.openAPIV3Schema` is not included");
    const auto schema = read_schema(*document);
    std::set<std::string> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto at = fmt::format("{}[{}].jsonPath", path, i);
      const std::string given(json::get_string(list[i], {"jsonPath"}));
      if (given.empty()) {
        add(Type::kRequired, at, "", "");
        continue;
      }
      const auto found = resolve_field_path(given, schema, false);
      if (!found) {
        add(Type::kInvalid, at, model::go_quote(given), "is an invalid path: " + found.error());
        continue;
      }
      if (found->first == "metadata") add(Type::kInvalid, at, model::go_quote(given), "must not point to fields in metadata");
      const auto type = found->schema == nullptr ? std::string() : found->schema->type;
      if (type != "string" && type != "boolean" && type != "integer")
        add(Type::kInvalid, at, model::go_quote(given),
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.");
      if (!seen.insert(found->text).second) add(Type::kDuplicate, at, model::go_quote(given), "");
    }
    if (seen.size() > 8) add(Type::kTooMany, path, std::to_string(seen.size()), "must have at most 8 items");
  }

  void names() {
    const auto get = [&](std::string_view key) { return text({"spec", "names", key}); };
    for (const std::string_view key : {"plural", "singular", "kind", "listKind"})
      if (get(key).empty()) add(Type::kRequired, fmt::format("spec.names.{}", key), "", "");
    for (const std::string_view key : {"plural", "singular"})
      if (const auto why = check_dns1035_label(get(key)); !get(key).empty() && !why.empty())
        add(Type::kInvalid, fmt::format("spec.names.{}", key), model::go_quote(get(key)), commas(why));
    for (const std::string_view key : {"kind", "listKind"})
      if (const auto why = check_dns1035_label(go::to_lower(get(key))); !get(key).empty() && !why.empty())
        add(Type::kInvalid, fmt::format("spec.names.{}", key), model::go_quote(get(key)),
            "may have mixed case, but should otherwise match: " + commas(why));
    if (!get("kind").empty() && get("kind") == get("listKind"))
      add(Type::kInvalid, "spec.names.listKind", model::go_quote(get("listKind")), "kind and listKind may not be the same");
    for (const std::string_view key : {"shortNames", "categories"}) {
      std::size_t i = 0;
      for (const auto& one : json::get_array(doc_, {"spec", "names", key})) {
        const auto at = fmt::format("spec.names.{}[{}]", key, i++);
        if (!one.is_string()) continue;
        if (const auto why = check_dns1035_label(json::as_view(one)); !why.empty()) add(Type::kInvalid, at, shown(one), commas(why));
      }
    }
  }

  void conversion() {
    const auto strategy = text({"spec", "conversion", "strategy"});
    const auto* webhook = json::find(doc_, {"spec", "conversion", "webhook"});
    const auto* config = webhook == nullptr ? nullptr : json::find(*webhook, "clientConfig");
    const std::string at = "spec.conversion.";
    if (strategy.empty())
      add(Type::kRequired, at + "strategy", "", "");
    else if (strategy != "None" && strategy != "Webhook")
      add(Type::kNotSupported, at + "strategy", model::go_quote(strategy), R"(supported values: "None", "Webhook")");
    const auto& reviews =
        webhook == nullptr ? json::get_array(doc_, {"spec", "none"}) : json::get_array(*webhook, {"conversionReviewVersions"});
    if (strategy != "Webhook") {
      if (config != nullptr) add(Type::kForbidden, at + "webhookClientConfig", "", "should not be set when strategy is not set to Webhook");
      if (!reviews.empty())
        add(Type::kForbidden, at + "conversionReviewVersions", "", "should not be set when strategy is not set to Webhook");
      return;
    }
    if (config == nullptr) {
      add(Type::kRequired, at + "webhookClientConfig", "", "required when strategy is set to Webhook");
    } else if ((json::find(*config, "url") == nullptr) == (json::find(*config, "service") == nullptr)) {
      add(Type::kRequired, at + "webhookClientConfig", "", "exactly one of url or service is required");
    }
    if (config != nullptr) client_config(*config, at + "webhookClientConfig");
    review_versions(reviews, at + "conversionReviewVersions");
  }

  void client_config(const Value& config, const std::string& at) {
    if (const auto* url = json::find(config, "url"); url != nullptr && url->is_string()) {
      model::validation::Errors found;
      model::validation::webhook_url(json::as_view(*url), model::validation::Path("url"), found);
      for (auto& error : found.take()) add(error.type, at + "." + error.field, error.value, error.detail);
    }
    const auto* service = json::find(config, "service");
    if (service == nullptr) return;
    // Kubernetes takes the one for the other (validation.go).
    for (const auto& [field, told] : {std::pair("namespace", "name"), std::pair("name", "namespace")})
      if (json::get_string(*service, {field}).empty()) add(Type::kRequired, fmt::format("{}.service.{}", at, told), "", "");
    if (const auto port = json::get_int(*service, {"port"}, 443); port < 1 || port > 65535)
      add(Type::kInvalid, at + ".service.port", std::to_string(port), "port is not valid: must be between 1 and 65535, inclusive");
    service_path(std::string(json::get_string(*service, {"path"})), at + ".service.path");
  }

  void service_path(const std::string& path, const std::string& at) {
    if (path.empty() || path == "/") return;
    const auto say = [&](std::string why) { add(Type::kInvalid, at, model::go_quote(path), std::move(why)); };
    if (path == "//") return say("segment[0] may not be empty");
    if (!path.starts_with('/')) say("must start with a '/'");
    auto rest = std::string_view(path).substr(1);
    if (rest.ends_with('/')) rest.remove_suffix(1);
    for (int i = 0; const auto segment : split(rest, '/')) {
      if (segment.empty())
        say(fmt::format("segment[{}] may not be empty", i));
      else if (const auto why = model::validation::check_dns1123_subdomain(segment); !why.empty())
        say(fmt::format("segment[{}]: {}", i, why));
      ++i;
    }
  }

  void review_versions(const json::Array& reviews, const std::string& at) {
    if (reviews.empty()) return add(Type::kRequired, at, "", "");
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < reviews.size(); ++i) {
      const auto version = reviews[i].is_string() ? json::as_view(reviews[i]) : std::string_view();
      const auto here = fmt::format("{}[{}]", at, i);
      if (!seen.insert(version).second) {
        add(Type::kInvalid, here, model::go_quote(version), "duplicate version");
      } else if (const auto why = check_dns1035_label(version); !why.empty()) {
        add(Type::kInvalid, here, model::go_quote(version), why);
      }
    }
    if (!seen.contains("v1") && !seen.contains("v1beta1"))
      add(Type::kInvalid, at, shown(Value(reviews)), "must include at least one of v1, v1beta1");
  }

  void immutable() {
    const auto keep = [&](json::Path path, std::string field) {
      if (!same(json::find(*old_, path), json::find(doc_, path)))
        add(Type::kInvalid, std::move(field), model::go_quote(json::get_string(doc_, path)), "field is immutable");
    };
    bool is_established = false;
    for (const auto& condition : json::get_array(*old_, {"status", "conditions"}))
      if (json::get_string(condition, {"type"}) == "Established") is_established = json::get_string(condition, {"status"}) == "True";
    if (is_established) {
      keep({"spec", "scope"}, "spec.scope");
      keep({"spec", "names", "kind"}, "spec.names.kind");
    }
    keep({"spec", "group"}, "spec.group");
    keep({"spec", "names", "plural"}, "spec.names.plural");
  }

  void stored_versions() {
    const auto& stored = json::get_array(doc_, {"status", "storedVersions"});
    if (stored.empty())
      return add(Type::kInvalid, "status.storedVersions", old_ == nullptr ? "null" : "[]", "must have at least one stored version");
    std::set<std::string_view> known;
    for (const auto& version : json::get_array(doc_, {"spec", "versions"})) {
      const auto name = json::get_string(version, {"name"});
      known.insert(name);
      const bool is_remembered =
          std::ranges::any_of(stored, [&](const Value& one) { return one.is_string() && json::as_view(one) == name; });
      if (json::get_bool(version, {"storage"}) && !is_remembered)
        add(Type::kInvalid, "status.storedVersions", shown(Value(stored)), fmt::format("must have the storage version {}", name));
    }
    for (std::size_t i = 0; i < stored.size(); ++i) {
      if (!stored[i].is_string() || known.contains(json::as_view(stored[i]))) continue;
      add(Type::kInvalid, fmt::format("status.storedVersions[{}]", i), shown(stored[i]),
          fmt::format("missing from spec.versions; {0} was previously a storage version, and must remain in spec.versions until a storage "
                      "migration ensures no data remains persisted in {0} and removes {0} from status.storedVersions",
                      json::as_view(stored[i])));
    }
  }

  void approval() {
    const auto group = text({"spec", "group"});
    const auto now = approval_of(group, doc_);
    if (now.approval != Approval::kInvalid && now.approval != Approval::kMissing) return;
    if (old_ != nullptr && approval_of(group, *old_).approval == now.approval) return;
    const auto at = fmt::format("metadata.annotations[{}]", kApprovalAnnotation);
    if (now.approval == Approval::kMissing) return add(Type::kRequired, at, "", now.reason);
    add(Type::kInvalid, at, model::go_quote(text({"metadata", "annotations", kApprovalAnnotation})), now.reason);
  }

  const Value* old_;
  const Value& doc_;
  Common common_;
  model::FieldErrors errors_;
};

}  // namespace

ApprovalState approval_of(std::string_view group, const Value& definition) {
  const bool is_protected =
      group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" || group.ends_with(".kubernetes.io");
  if (!is_protected) return {};
  const auto annotation = json::get_string(definition, {"metadata", "annotations", kApprovalAnnotation});
  constexpr std::string_view kSee = "see https://github.com/kubernetes/enhancements/pull/1111";
  if (annotation.empty())
    return {Approval::kMissing, fmt::format("protected groups must have approval annotation \"{}\", {}", kApprovalAnnotation, kSee)};
  if (annotation.starts_with("unapproved")) return {Approval::kBypassed, fmt::format("not approved: {}", model::go_quote(annotation))};
  const auto url = cel::UrlValue::parse(annotation);
  if (url && !url->url.host.empty() && !url->url.scheme.empty()) return {Approval::kApproved, fmt::format("approved in {}", annotation)};
  return {
      Approval::kInvalid,
      fmt::format("protected groups must have approval annotation \"{}\" with either a URL or a reason starting with \"unapproved\", {}",
                  kApprovalAnnotation, kSee)};
}

model::FieldErrors check_definition(const Value* old, const Value& definition) { return DefinitionCheck(old, definition).run(); }

}  // namespace berth::custom
