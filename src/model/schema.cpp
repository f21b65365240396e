#include "model/schema.h"

#include <deque>
#include <map>

#include "model/kind_hooks.h"
#include "model/schema_text.h"

namespace berth::model {
namespace {

using Kind = TypeRef::Kind;

/// All types, built once from the embedded tables.
class Tables {
 public:
  Tables() {
    for (const std::string_view text : schema_texts()) read(text);
    for (auto& [name, type] : types_) {
      for (const FieldDef& field : type.fields) type.by_name.emplace(field.name, &field);
      ordered_.push_back(&type);
    }
    mark_zeros();
  }
  const TypeDef* find(std::string_view name) const {
    const auto found = types_.find(name);
    return found == types_.end() ? nullptr : &found->second;
  }
  const std::vector<const TypeDef*>& ordered() const { return ordered_; }

 private:
  void read(std::string_view text) {
    TypeDef* type = nullptr;
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = std::min(text.find('\n', start), text.size());
      const std::string_view line = text.substr(start, end - start);
      start = end + 1;
      if (line.empty()) continue;
      if (line[0] != ' ') {
        type = &types_[std::string(line)];
        type->name = line;
      } else if (line == "  @atomic") {
        type->is_atomic = true;
      } else {
        type->fields.push_back(read_field(line.substr(2)));
      }
    }
  }

  /// Kinds that are custom resources elsewhere keep what they were given, as those do; so do metrics, which have a server of their own.
  static bool is_custom(std::string_view type) {
    return type.starts_with("autoscaling.openshift.") || type.starts_with("machine.") || type.starts_with("metrics.") ||
           type.starts_with("meta.v1.Status");
  }
  void mark_zeros() {
    for (auto& [name, type] : types_)
      for (FieldDef& field : type.fields) {
        const Kind kind = field.ref.kind;
        field.omits_zero = !is_custom(name) && kind != Kind::kAny && kind != Kind::kStruct && kind != Kind::kQuantity &&
                           kind != Kind::kTime && kind != Kind::kMicroTime && kind != Kind::kIntOrString;
      }
    TypeDef* type = nullptr;
    const std::string_view text = kept_zeros();
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = std::min(text.find_first_of(" \n", start), text.size());
      std::string_view word = text.substr(start, end - start);
      start = end + 1;
      if (word.empty()) continue;
      if (word.ends_with(':')) {
        const auto found = types_.find(word.substr(0, word.size() - 1));
        type = found == types_.end() ? nullptr : &found->second;
      } else if (type != nullptr) {
        const bool as_null = word.ends_with("!!"), always = word.ends_with('!');
        word = word.substr(0, word.find('!'));
        for (FieldDef& field : type->fields) {
          if (field.name != word) continue;
          field.omits_zero = false;
          field.is_always_written = always;
          field.is_pointer = as_null;
          if (always) type->always_written.push_back(&field);
        }
      }
    }
  }

  FieldDef read_field(std::string_view line) {
    FieldDef field;
    bool list_given = false;
    for (std::size_t start = 0, word = 0; start < line.size(); ++word) {
      const std::size_t end = std::min(line.find(' ', start), line.size());
      const std::string_view text = line.substr(start, end - start);
      start = end + 1;
      if (word == 0)
        field.name = text;
      else if (word == 1)
        field.ref = read_type(text);
      else if (text == "required")
        field.required = true;
      else if (text.starts_with("patch=")) {
        field.patch_merge = text.find("merge") != std::string_view::npos;
        field.patch_retain_keys = text.find("retainKeys") != std::string_view::npos;
        field.patch_replace = text.find("replace") != std::string_view::npos;
      } else if (text.starts_with("key="))
        field.patch_merge_key = text.substr(4);
      else if (text == "list=set")
        field.list_type = FieldDef::ListType::kSet, list_given = true;
      else if (text == "list=atomic")
        list_given = true;
      else if (text.starts_with("list=map:")) {
        list_given = true;
        field.list_type = FieldDef::ListType::kMap;
        for (std::size_t at = 9; at < text.size();) {
          const std::size_t comma = std::min(text.find(',', at), text.size());
          field.list_keys.emplace_back(text.substr(at, comma - at));
          at = comma + 1;
        }
      } else if (text == "off")
        field.is_off = true;
      else if (text == "map=atomic")
        field.is_atomic = true;
      else if (text.starts_with('#')) {
        for (std::size_t at = 1; at < text.size();) {
          const std::size_t dot = std::min(text.find('.', at), text.size());
          field.proto.push_back(std::atoi(std::string(text.substr(at, dot - at)).c_str()));
          at = dot + 1;
        }
      }
    }
    // Lists that strategic merge patches merge are merged by server-side apply as well (kube-openapi's conversion).
    if (!list_given && field.patch_merge && field.ref.kind == Kind::kList) {
      field.list_type = field.patch_merge_key.empty() ? FieldDef::ListType::kSet : FieldDef::ListType::kMap;
      if (!field.patch_merge_key.empty()) field.list_keys = {field.patch_merge_key};
    }
    return field;
  }

  TypeRef read_type(std::string_view text) {
    static const std::map<std::string_view, Kind> kScalars = {{"any", Kind::kAny},
                                                              {"string", Kind::kString},
                                                              {"int32", Kind::kInt32},
                                                              {"int64", Kind::kInt64},
                                                              {"double", Kind::kDouble},
                                                              {"bool", Kind::kBool},
                                                              {"quantity", Kind::kQuantity},
                                                              {"time", Kind::kTime},
                                                              {"microtime", Kind::kMicroTime},
                                                              {"bytes", Kind::kBytes},
                                                              {"intorstring", Kind::kIntOrString}};
    TypeRef ref;
    if (text.starts_with('[') || text.starts_with('{')) {
      ref.kind = text[0] == '[' ? Kind::kList : Kind::kMap;
      ref.element = &elements_.emplace_back(read_type(text.substr(1, text.size() - 2)));
    } else if (const auto scalar = kScalars.find(text); scalar != kScalars.end()) {
      ref.kind = scalar->second;
    } else if (text.starts_with("any:")) {
      // Looked into where it is an object: a schema, or a boolean.
      ref.type = &types_[std::string(text.substr(4))];
    } else {
      ref.kind = Kind::kStruct;
      ref.type = &types_[std::string(text)];  // May be read later; a node of a map stays where it is.
    }
    return ref;
  }

  std::map<std::string, TypeDef, std::less<>> types_;
  std::deque<TypeRef> elements_;
  std::vector<const TypeDef*> ordered_;
};

const Tables& tables() {
  static const Tables all;
  return all;
}

/// The package part of a kind's type name.
std::string package_of(const KindInfo& kind) {
  static const std::map<std::string_view, std::string_view> kShort = {{"", "core"},
                                                                      {"admissionregistration.k8s.io", "admissionregistration"},
                                                                      {"apiregistration.k8s.io", "apiregistration"},
                                                                      {"apiextensions.k8s.io", "apiextensions"},
                                                                      {"authentication.k8s.io", "authentication"},
                                                                      {"authorization.k8s.io", "authorization"},
                                                                      {"certificates.k8s.io", "certificates"},
                                                                      {"coordination.k8s.io", "coordination"},
                                                                      {"discovery.k8s.io", "discovery"},
                                                                      {"events.k8s.io", "events"},
                                                                      {"flowcontrol.apiserver.k8s.io", "flowcontrol"},
                                                                      {"networking.k8s.io", "networking"},
                                                                      {"node.k8s.io", "node"},
                                                                      {"rbac.authorization.k8s.io", "rbac"},
                                                                      {"resource.k8s.io", "resource"},
                                                                      {"scheduling.k8s.io", "scheduling"},
                                                                      {"storage.k8s.io", "storage"},
                                                                      {"metrics.k8s.io", "metrics"},
                                                                      {"machine.openshift.io", "machine"},
                                                                      {"autoscaling.openshift.io", "autoscaling.openshift"}};
  const auto found = kShort.find(kind.group);
  return found == kShort.end() ? kind.group : std::string(found->second);
}

}  // namespace

std::string TypeRef::go_name() const {
  switch (kind) {
    case Kind::kString:
    case Kind::kBytes:
      return "string";
    case Kind::kInt32:
      return "int32";
    case Kind::kInt64:
      return "int64";
    case Kind::kDouble:
      return "float64";
    case Kind::kBool:
      return "bool";
    case Kind::kQuantity:
      return "resource.Quantity";
    case Kind::kTime:
      return "v1.Time";
    case Kind::kMicroTime:
      return "v1.MicroTime";
    case Kind::kIntOrString:
      return "intstr.IntOrString";
    case Kind::kStruct: {
      const std::size_t dot = type->name.rfind('.', type->name.rfind('.') - 1);
      return type->name.substr(dot == std::string::npos ? type->name.find('.') + 1 : dot + 1);
    }
    case Kind::kList:
      return "[]" + element->go_name();
    case Kind::kMap:
      return element->kind == Kind::kQuantity ? "v1.ResourceList" : "map[string]" + element->go_name();
    case Kind::kAny:
      break;
  }
  return "interface {}";
}

const FieldDef* TypeDef::field(std::string_view field_name) const {
  const auto found = by_name.find(field_name);
  return found == by_name.end() ? nullptr : found->second;
}

std::string TypeDef::openapi_name() const {
  if (name.starts_with("meta.v1.")) return "io.k8s.apimachinery.pkg.apis." + name;
  if (name.starts_with("apiextensions.")) return "io.k8s.apiextensions-apiserver.pkg.apis." + name;
  if (name.starts_with("apiregistration.")) return "io.k8s.kube-aggregator.pkg.apis." + name;
  if (name.starts_with("machine.")) return "io.openshift." + name;
  if (name.starts_with("autoscaling.openshift."))
    return "io.openshift.autoscaling." + name.substr(std::string_view("autoscaling.openshift.").size());
  if (name.starts_with("metrics.")) return "io.k8s.metrics.pkg.apis." + name;
  return "io.k8s.api." + name;
}

const TypeDef* find_type(std::string_view name) { return tables().find(name); }
const std::vector<const TypeDef*>& all_types() { return tables().ordered(); }

const TypeDef* type_of(const KindInfo& kind) {
  static const auto by_kind = [] {
    std::map<Gvk, const TypeDef*> out;
    for (const KindInfo& info : all_kinds()) {
      const TypeDef* type = find_type(package_of(info) + "." + info.version + "." + info.kind);
      if (type == nullptr)
        type = find_type(package_of(info) + "." + info.storage_version + "." + info.kind);  // A beta with the same fields.
      out[info.gvk()] = type;
    }
    return out;
  }();
  if (kind.hooks != nullptr && !kind.hooks->form.is_default() && kind.hooks->form->type != nullptr) return kind.hooks->form->type.get();
  const auto found = by_kind.find(kind.gvk());
  if (found == by_kind.end()) return nullptr;  // Of run time, without a table.
  assert(found != by_kind.end() && found->second != nullptr);
  return found->second;
}

}  // namespace berth::model
