// The hooks of a custom kind: everything that the API server does with its objects goes by the schema.
#include "base/dotted.h"
#include "base/go/strings.h"
#include "custom/apply_types.h"
#include "custom/column_texts.h"
#include "custom/definition.h"
#include "custom/metadata.h"
#include "custom/objects.h"
#include "custom/rules.h"
#include "custom/validate.h"
#include "model/go_words.h"
#include "model/kind_hooks.h"
#include "model/tables/tables.h"
#include "model/validation/validation.h"

namespace berth::custom {
namespace {

using json::Value;
using Type = model::FieldError::Type;

/// `drops_nulls`: those that the schema forbids; what is applied keeps them, and is refused for them.
Expected<void, model::DecodeError> decode(const CustomKind& kind, Value& doc, model::DecodeReport& report, bool drops_nulls) {
  auto* object = doc.if_object();
  if (object == nullptr)
    return std::unexpected(model::DecodeError{.said = "json: cannot unmarshal into Go value of type map[string]interface {}"});
  const auto& schema = *kind.version->schema;
  if (auto* metadata = object->if_contains("metadata")) {
    std::vector<std::string> unknown;
    if (auto wrong = decode_metadata(*metadata, &unknown)) return std::unexpected(std::move(*wrong));
    for (auto& field : unknown) report.unknown_fields.push_back("metadata." + field);
  }
  if (!kind.definition->preserves_unknown) {
    std::vector<std::string> unknown;
    prune(doc, schema, true, &unknown);
    std::ranges::move(unknown, std::back_inserter(report.unknown_fields));
    if (drops_nulls) drop_nulls(doc, schema);
  }
  std::vector<std::string> embedded;
  if (auto error = coerce_embedded(doc, schema, "", false, &embedded)) return std::unexpected(model::DecodeError{.said = error->render()});
  std::ranges::move(embedded, std::back_inserter(report.unknown_fields));
  report.is_dropped = true;
  return {};
}

/// Everything but metadata and what has a door of its own.
bool is_changed(const Value& old, const Value& doc, bool has_status) {
  const auto rest = [has_status](const Value& v) {
    auto copy = v.get_object();
    copy.erase("metadata");
    if (has_status) copy.erase("status");
    return Value(std::move(copy));
  };
  return !json::equal(rest(old), rest(doc));
}

void copy_member(const Value& from, Value& to, std::string_view key) {
  if (const auto* value = json::find(from, key)) {
    to.get_object()[key] = *value;
  } else {
    to.get_object().erase(key);
  }
}

bool merge_update(bool has_status, const Value& old, Value& doc, std::string_view subresource) {
  if (!has_status || (!subresource.empty() && subresource != "status")) return true;
  if (subresource.empty()) {
    copy_member(old, doc, "status");
    return true;
  }
  // A status update moves the status, and who owns its fields.
  Value kept = old;
  copy_member(doc, kept, "status");
  auto& metadata = json::ensure_object(kept, {"metadata"});
  for (const std::string_view field : {"managedFields", "resourceVersion"}) {
    const auto* value = json::find(doc, {"metadata", field});
    if (value != nullptr) {
      metadata[field] = *value;
    } else {
      metadata.erase(field);
    }
  }
  doc = std::move(kept);
  return true;
}

/// Go's %T of a decoded value.
std::string_view go_type(const Value& value) {
  if (value.is_null()) return "<nil>";
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  if (value.is_array()) return "[]interface {}";
  if (value.is_object()) return "map[string]interface {}";
  return value.is_double() ? "float64" : "int64";
}

void check_replicas(const Value& doc, const std::string& path, model::FieldErrors& errors) {
  const Value* value = &doc;
  for (const auto name : json::dotted_names(path)) {
    if (!value->is_object()) {
      errors.push_back({Type::kInvalid, path, "0",
                        fmt::format("{} accessor error: {} is of the type {}, expected map[string]interface{{}}", path,
                                    model::go_value(*value), go_type(*value))});
      return;
    }
    value = json::find(*value, name);
    if (value == nullptr) return;
  }
  if (!value->is_int64()) {
    errors.push_back({Type::kInvalid, path, "0",
                      fmt::format("{} accessor error: {} is of the type {}, expected int64", path,
                                  value->is_string() ? std::string(json::as_view(*value)) : json::serialize(*value), go_type(*value))});
  } else if (value->get_int64() < 0) {
    errors.push_back({Type::kInvalid, path, shown(*value), "should be a non-negative integer"});
  } else if (value->get_int64() > INT32_MAX) {
    errors.push_back({Type::kInvalid, path, shown(*value), "should be less than or equal to 2147483647"});
  }
}

void check_scale(const CustomKind& kind, const Value& doc, bool is_status, model::FieldErrors& errors) {
  const auto& scale = kind.version->scale;
  if (!scale) return;
  if (!is_status) check_replicas(doc, scale->spec_replicas, errors);
  check_replicas(doc, scale->status_replicas, errors);
  if (scale->label_selector.empty()) return;
  const auto* selector = json::find_dotted(doc, scale->label_selector);
  if (selector != nullptr && !selector->is_string())
    errors.push_back({Type::kInvalid, scale->label_selector, "\"\"",
                      fmt::format("{} accessor error: {} is not a string", scale->label_selector, json::serialize(*selector))});
}

constexpr std::string_view kUnchecked =
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/// Rules of the schema, unless what was found already forbids to ask them.
void check_rules(const CustomKind& kind, const Value& doc, const Value* old, Correlated* correlated, model::FieldErrors& errors) {
  if (kind.rules == nullptr) return;
  if (blocks_rules(errors)) {
    errors.push_back({Type::kInvalid, "<nil>", "null", std::string(kUnchecked)});
    return;
  }
  RuleTree::Outcome outcome;
  kind.rules->check(doc, old, correlated, "", outcome);
  std::ranges::move(outcome.errors, std::back_inserter(errors));
}

model::FieldErrors check_create(const CustomKind& kind, const Value& doc) {
  model::FieldErrors errors;
  const auto& schema = *kind.version->schema;
  check_schema(doc, schema, "", nullptr, errors);
  check_scale(kind, doc, false, errors);
  check_embedded(doc, schema, false, "", errors);
  check_lists(doc, schema, errors);
  check_rules(kind, doc, nullptr, nullptr, errors);
  return errors;
}

model::FieldErrors check_update(const CustomKind& kind, const Value& old, const Value& doc, bool is_status) {
  model::FieldErrors errors;
  const auto& schema = *kind.version->schema;
  Correlated correlated(doc, old, schema);
  if (!is_status) {
    check_schema(doc, schema, "", &correlated, errors);
  } else if (const auto* status = json::find(doc, "status"); status != nullptr) {
    if (const auto* below = schema.property("status")) check_schema(*status, *below, "status", correlated.key("status"), errors);
  }
  check_scale(kind, doc, is_status, errors);
  if (!is_status) check_embedded(doc, schema, false, "", errors);
  model::FieldErrors lists, before;
  check_lists(doc, schema, lists);
  if (!lists.empty()) check_lists(old, schema, before);
  if (before.empty()) std::ranges::move(lists, std::back_inserter(errors));
  check_rules(kind, doc, &old, &correlated, errors);
  return errors;
}

std::vector<std::string> finalizers_of(const Value* doc) {
  std::vector<std::string> out;
  if (doc == nullptr) return out;
  for (const auto& one : json::get_array(*doc, {"metadata", "finalizers"}))
    if (one.is_string()) out.emplace_back(json::as_view(one));
  std::ranges::sort(out);
  return out;
}

void warn(const CustomKind& kind, const Value* old, const Value& doc, std::vector<std::string>& sentences) {
  const auto before = finalizers_of(old);
  for (const auto& name : finalizers_of(&doc)) {
    if (std::ranges::binary_search(before, name) || name.find('/') != std::string::npos) continue;
    if (name == "orphan" || name == "foregroundDeletion" || name == "kubernetes") continue;
    sentences.push_back(
        fmt::format("metadata.finalizers: \"{}\": prefer a domain-qualified finalizer name{} to avoid accidental conflicts with other "
                    "finalizer writers",
                    name, name.find('.') != std::string::npos ? " including a path (/)" : ""));
  }
  if (old == nullptr || kind.rules == nullptr) return;
  Correlated correlated(doc, *old, *kind.version->schema);
  RuleTree::Outcome outcome;
  kind.rules->check(doc, old, &correlated, "", outcome);
  std::ranges::move(outcome.warnings, std::back_inserter(sentences));
}

/// A column's path with what to make of its value.
struct Cell {
  std::string type;
  std::optional<JsonPath> path;
};

Value cell_of(const Cell& cell, const Value& object, TimePoint now) {
  if (!cell.path) return nullptr;
  const auto found = cell.path->find(object);
  if (found.empty() || found.front()->is_null()) return nullptr;
  const auto& value = *found.front();
  if (cell.type == "string") return value.is_string() ? value : Value(json::serialize(value));
  if (cell.type == "integer") {
    if (value.is_int64()) return value;
    return value.is_number() ? Value(static_cast<std::int64_t>(value.to_number<double>())) : Value(nullptr);
  }
  if (cell.type == "number") return value.is_number() ? value : Value(nullptr);
  if (cell.type == "boolean") return value.is_bool() ? value : Value(nullptr);
  if (cell.type != "date" || !value.is_string()) return nullptr;
  if (!parse_rfc3339(json::as_view(value))) return "<invalid>";
  return Value(model::human_age(json::as_view(value), now));
}

model::Printer make_printer(const Version& version) {
  auto columns = version.columns;
  if (columns.empty()) columns.push_back({"Age", "date", "", std::string(kCreationText), ".metadata.creationTimestamp", 0});
  model::Printer out;
  out.columns.push_back({"Name", 0, "string", "name", std::string(kNameText)});
  auto cells = std::make_shared<std::vector<Cell>>();
  for (const auto& column : columns) {
    const auto text = column.description.empty()
                          ? fmt::format("Custom resource definition column (in JSONPath format): {}", column.json_path)
                          : column.description;
    out.columns.push_back({column.name, static_cast<int>(column.priority), column.type, column.format, text});
    auto path = JsonPath::parse(column.json_path);
    cells->push_back({column.type, path ? std::optional(std::move(*path)) : std::nullopt});
  }
  out.cells = [cells](const Value& object, TimePoint now) {
    json::Array row{Value(json::get_string(object, {"metadata", "name"}))};
    for (const auto& cell : *cells) row.push_back(cell_of(cell, object, now));
    return row;
  };
  return out;
}

std::string deprecation_of(const Definition& definition, const Version& version) {
  if (!version.is_deprecated) return {};
  if (version.deprecation_warning) return *version.deprecation_warning;
  auto out = fmt::format("{}/{} {} is deprecated", definition.group, version.name, definition.names.kind);
  // A newer stable version, or any served one that is not deprecated.
  const Version* better = nullptr;
  for (const auto& one : definition.versions)
    if (one.is_served && !one.is_deprecated && is_version_before(one.name, version.name) &&
        (better == nullptr || is_version_before(one.name, better->name)))
      better = &one;
  if (better != nullptr) out += fmt::format("; use {}/{} {}", definition.group, better->name, definition.names.kind);
  return out;
}

/// Takes out what the schema does not know.
void prune_all(const Definition& definition, const Schema& schema, Value& doc) {
  if (definition.preserves_unknown) return;
  prune(doc, schema, true, nullptr);
  drop_nulls(doc, schema);
}

model::Form make_form(const std::shared_ptr<CustomKind>& kind) {
  const auto* self = kind.get();
  model::Form form;
  form.type = apply_type(*kind->version->schema, kind->definition->preserves_unknown);
  form.decode = [self](Value& doc, model::DecodeReport& report, bool fills) { return decode(*self, doc, report, fills); };
  form.fill_always_written = [](Value&) {};
  form.unknown_fields = [](const Value&, const Value*) { return std::vector<std::string>(); };
  form.drop_unknown_fields = [](Value&, const Value*) {};
  form.defaults = [self](json::Object& doc) {
    Value whole = std::move(doc);
    set_defaults(whole, *self->version->schema);
    doc = std::move(whole.get_object());
  };
  // What is stored is read by the schema of the version that wrote it, as that stands now; another version then shows what it knows.
  const auto has_embedded = [](const Version& one) { return any_node(*one.schema, [](const Schema& node) { return node.is_embedded; }); };
  const bool coerces = std::ranges::any_of(kind->definition->versions, has_embedded);
  form.from_storage = [self, coerces](Value& doc) {
    const auto written = json::get_string(doc, {"apiVersion"});
    const auto& versions = self->definition->versions;
    const auto writer = std::ranges::find_if(
        versions, [&](const Version& one) { return written.ends_with(one.name) && written == self->definition->group + "/" + one.name; });
    const auto& schema = writer == versions.end() ? *self->version->schema : *writer->schema;
    prune_all(*self->definition, schema, doc);
    set_defaults(doc, schema);
    if (coerces) coerce_embedded(doc, schema, "", true, nullptr);
    if (&schema != self->version->schema.get()) prune_all(*self->definition, *self->version->schema, doc);
  };
  form.to_storage = [self](Value& doc) {
    const auto* stored = self->definition->stored_version();
    if (stored == nullptr) return;
    prune_all(*self->definition, *stored->schema, doc);
    set_defaults(doc, *stored->schema);
  };
  return form;
}

model::Strategy make_strategy(const CustomKind& kind) {
  const bool has_status = kind.version->has_status;
  model::Strategy strategy;
  strategy.keeps_given_status = !has_status;
  strategy.prepare_create = [has_status](Value& doc) {
    if (has_status) json::erase(doc, {"status"});
    json::set(doc, {"metadata", "generation"}, 1);
  };
  strategy.merge_update = [has_status](const Value& old, Value& doc, std::string_view subresource, std::string_view) {
    return merge_update(has_status, old, doc, subresource);
  };
  strategy.is_new_generation = [has_status](const Value& old, const Value& doc, std::string_view) {
    return is_changed(old, doc, has_status);
  };
  return strategy;
}

model::Rules make_rules(const CustomKind* self, std::string_view deprecation) {
  model::Rules rules;
  rules.has_foreign_finalizers = true;
  rules.deprecation = deprecation;
  const auto report = [](model::FieldErrors found, model::validation::Errors& errors) {
    for (auto& error : found) errors.add(std::move(error));
  };
  rules.create = [self, report](const Value& doc, model::validation::Errors& errors) { report(check_create(*self, doc), errors); };
  rules.update = [self, report](const Value& old, const Value& doc, std::string_view, model::validation::Errors& errors) {
    report(check_update(*self, old, doc, false), errors);
  };
  rules.status = [self, report](const Value& old, const Value& doc, model::validation::Errors& errors) {
    report(check_update(*self, old, doc, true), errors);
  };
  rules.warnings = [self](const Value* old, const Value& doc, std::vector<std::string>& sentences) { warn(*self, old, doc, sentences); };
  return rules;
}

/// Everything but the pointers between the kinds of one definition.
std::shared_ptr<CustomKind> make_kind(const std::shared_ptr<const Definition>& definition, const Version& version, bool is_terminating) {
  auto kind = std::make_shared<CustomKind>();
  kind->definition = definition;
  kind->version = &version;
  kind->rules = RuleTree::compile(*version.schema, true);
  auto& info = kind->info;
  const auto& names = definition->accepted;
  info.group = info.storage_group = definition->group;
  info.version = version.name;
  info.kind = names.kind;
  info.list_kind = names.list_kind;
  info.plural = names.plural;
  info.singular = names.singular;
  info.short_names = names.short_names;
  info.categories = names.categories;
  info.namespaced = definition->is_namespaced;
  info.generation = true;
  if (version.is_served) {
    info.verbs = {"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"};
    if (is_terminating) info.verbs = {"delete", "deletecollection", "get", "list", "watch"};
  }
  if (version.has_status) info.subresources.emplace_back("status");
  if (version.scale) info.subresources.emplace_back("scale");
  for (const auto& path : version.selectable) {
    auto parsed = JsonPath::parse(path);
    if (!parsed) continue;
    const auto name = path.starts_with('.') ? path.substr(1) : path;
    kind->selectable.emplace_back(name, std::move(*parsed));
  }
  return kind;
}

}  // namespace

std::vector<std::shared_ptr<const CustomKind>> make_kinds(const std::shared_ptr<const Definition>& definition, bool is_terminating) {
  std::vector<std::shared_ptr<CustomKind>> made;
  const auto* stored = definition->stored_version();
  for (const auto& version : definition->versions)
    if (version.is_served || version.is_stored) made.push_back(make_kind(definition, version, is_terminating));
  std::ranges::stable_sort(made, [](const auto& a, const auto& b) { return is_version_before(a->version->name, b->version->name); });
  std::shared_ptr<CustomKind> storage;
  for (const auto& kind : made)
    if (kind->version == stored) storage = kind;
  std::vector<std::shared_ptr<const CustomKind>> out;
  for (const auto& kind : made) {
    kind->info.storage_version = stored == nullptr ? kind->info.version : stored->name;
    if (storage != nullptr && storage != kind) kind->info.stored = &storage->info;
    auto hooks = model::KindHooks::all_default();
    const auto* self = kind.get();
    hooks.form = make_form(kind);
    hooks.strategy = make_strategy(*kind);
    kind->deprecation = deprecation_of(*definition, *kind->version);
    hooks.rules = make_rules(self, kind->deprecation);
    hooks.printer = make_printer(*kind->version);
    if (const auto& scale = kind->version->scale) {
      const auto bare = [](const std::string& path) { return path.starts_with('.') ? path.substr(1) : path; };
      hooks.scale = model::Scale{bare(scale->spec_replicas), bare(scale->status_replicas), bare(scale->label_selector),
                                 model::Scale::Selector::kText, 0};
    }
    hooks.life = model::Life{.update_needs_revision = true};
    kind->info.hooks = std::make_shared<const model::KindHooks>(std::move(hooks));
    kind->storage = storage == kind ? nullptr : storage;
    out.push_back(kind);
  }
  return out;
}

}  // namespace berth::custom
