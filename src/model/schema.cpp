#include "model/schema.h"

#include <deque>
#include <map>
#include <set>

#include "base/split.h"
#include "model/features.h"
#include "model/kind_hooks.h"
#include "model/schema_text.h"

namespace berth::model {
namespace {

using Kind = TypeRef::Kind;

/// The types of one API group, as a line "@package" of its schema file says; most need none.
struct Package {
  std::string openapi;     ///< What stands for the package's name in OpenAPI; empty: "io.k8s.api.NAME".
  bool is_custom = false;  ///< Its types keep what they were given: custom resources elsewhere, or of a server of their own.
};

/// "autoscaling.openshift" of "autoscaling.openshift.v1.ClusterAutoscaler".
std::string_view package_name(std::string_view type) {
  type = type.substr(0, type.rfind('.'));
  return type.substr(0, type.rfind('.'));
}

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
    mark_holders_of_off_fields();
  }
  const TypeDef* find(std::string_view name) const {
    const auto found = types_.find(name);
    return found == types_.end() ? nullptr : &found->second;
  }
  const std::vector<const TypeDef*>& ordered() const { return ordered_; }

  /// Null where nothing is said of it.
  const Package* package(std::string_view name) const {
    const auto found = packages_.find(name);
    return found == packages_.end() ? nullptr : &found->second;
  }
  /// The package of a group's types: its first word, where nothing else is said.
  std::string package_of(std::string_view group) const {
    if (const auto found = package_of_group_.find(group); found != package_of_group_.end()) return found->second;
    return group.empty() ? "core" : std::string(group.substr(0, group.find('.')));
  }

  /// Of a field that is off.
  Feature gate(const TypeDef& type, const FieldDef& field) const {
    const auto found = gates_.find({type.name, field.name});
    return found == gates_.end() ? Feature::kNone : found->second;
  }

 private:
  void read(std::string_view text) {
    TypeDef* type = nullptr;
    for (const auto line : words(text, '\n')) {
      if (line.starts_with("@package ")) {
        read_package(line.substr(9));
      } else if (line[0] != ' ') {
        type = &types_[std::string(line)];
        type->name = line;
      } else if (line == "  @atomic") {
        type->is_atomic = true;
      } else if (line.starts_with("  @embeds ")) {
        type->embeds = line.substr(10);
      } else if (line == "  @custom") {
        custom_types_.insert(type->name);
      } else {
        gate_ = {};
        type->fields.push_back(read_field(line.substr(2)));
        if (!gate_.empty()) gates_.emplace(std::pair(type->name, type->fields.back().name), *feature_named(gate_));
      }
    }
  }

  void read_package(std::string_view line) {
    Package* package = nullptr;
    std::string_view name;
    for (const auto word : words(line)) {
      if (package == nullptr)
        package = &packages_[std::string(name = word)];
      else if (word.starts_with("group="))
        package_of_group_[std::string(word.substr(6))] = name;
      else if (word.starts_with("openapi="))
        package->openapi = word.substr(8);
      else
        package->is_custom |= word == "custom";
    }
  }

  bool is_custom(const std::string& type) const {
    const Package* its = package(package_name(type));
    return (its != nullptr && its->is_custom) || custom_types_.contains(type);
  }
  void mark_zeros() {
    for (auto& [name, type] : types_)
      for (FieldDef& field : type.fields) {
        const Kind kind = field.ref.kind;
        field.omits_zero = !is_custom(name) && kind != Kind::kAny && kind != Kind::kStruct && kind != Kind::kQuantity &&
                           kind != Kind::kTime && kind != Kind::kMicroTime && kind != Kind::kIntOrString;
      }
    for (const Fact& fact : read_facts(zeros_texts()))
      if (const auto type = types_.find(fact.of.front()); type != types_.end())
        for (const auto word : fact.words) mark_kept(type->second, word);
  }

  /// Types may contain themselves: asked again until nothing is found any more.
  void mark_holders_of_off_fields() {
    for (bool is_new = true; is_new;) {
      is_new = false;
      for (auto& [name, type] : types_) {
        if (type.holds_off_fields) continue;
        type.holds_off_fields =
            std::ranges::any_of(type.fields, [&](const FieldDef& field) { return field.is_off || field.ref.holds_off_fields(); });
        is_new |= type.holds_off_fields;
      }
    }
  }

  /// What is written although it is zero.
  void mark_kept(TypeDef& type, std::string_view word) {
    const bool as_null = word.ends_with("!!"), always = word.ends_with('!');
    word = word.substr(0, word.find('!'));
    for (FieldDef& field : type.fields) {
      if (field.name != word) continue;
      field.omits_zero = false;
      field.is_always_written = always;
      field.is_pointer = as_null;
      if (always) type.always_written.push_back(&field);
    }
  }

  FieldDef read_field(std::string_view line) {
    FieldDef field;
    bool list_given = false;
    for (std::size_t word = 0; const auto text : words(line)) {
      if (++word == 1)
        field.name = text;
      else if (word == 2)
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
        field.list_keys = words(text.substr(9), ',').list<std::string>();
      } else if (text == "off" || text.starts_with("off=")) {
        field.is_off = true;
        if (text.size() > 4) gate_ = text.substr(4);
      } else if (text == "map=atomic")
        field.is_atomic = true;
      else if (text == "map=granular")
        field.is_granular = true;
      else if (text.starts_with('#')) {
        for (const auto number : words(text.substr(1), '.')) field.proto.push_back(std::atoi(std::string(number).c_str()));
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
    if (const auto slash = text.rfind('/'); slash != std::string_view::npos && text.find_first_of("]}", slash) == std::string_view::npos) {
      ref.named = text.substr(slash + 1);
      text = text.substr(0, slash);
    }
    if (text.starts_with('[') || text.starts_with('{')) {
      ref.kind = text[0] == '[' ? Kind::kList : Kind::kMap;
      ref.element = &elements_.emplace_back(read_type(text.substr(1, text.size() - 2)));
    } else if (const auto scalar = kScalars.find(text); scalar != kScalars.end()) {
      ref.kind = scalar->second;
    } else if (const auto bar = text.find('|'); bar != std::string_view::npos) {
      ref.either = text.starts_with("bool") ? TypeRef::Either::kBool : TypeRef::Either::kList;
      ref.type = &types_[std::string(text.substr(bar + 1))];
    } else {
      ref.kind = Kind::kStruct;
      ref.type = &types_[std::string(text)];  // May be read later; a node of a map stays where it is.
    }
    return ref;
  }

  std::string_view gate_;                                         ///< Of the field that is being read.
  std::map<std::pair<std::string, std::string>, Feature> gates_;  ///< By type and field.
  std::map<std::string, TypeDef, std::less<>> types_;
  std::map<std::string, Package, std::less<>> packages_;
  std::map<std::string, std::string, std::less<>> package_of_group_;
  std::set<std::string> custom_types_;
  std::deque<TypeRef> elements_;
  std::vector<const TypeDef*> ordered_;
};

const Tables& tables() {
  static const Tables all;
  return all;
}

}  // namespace

std::string TypeRef::go_name() const {
  if (!named.empty()) return std::string(named);
  switch (kind) {
    case Kind::kString:
      return "string";
    case Kind::kBytes:
      return "[]uint8";
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

Feature feature_of(const TypeDef& type, const FieldDef& field) { return tables().gate(type, field); }

bool TypeRef::holds_off_fields() const {
  const TypeRef* ref = this;
  while (ref->element != nullptr) ref = ref->element;
  return ref->type != nullptr && ref->type->holds_off_fields;
}

const FieldDef* TypeDef::field(std::string_view field_name) const {
  const auto found = by_name.find(field_name);
  return found == by_name.end() ? nullptr : found->second;
}

std::string TypeDef::openapi_name() const {
  const std::string_view its_package = package_name(name);
  const Package* known = tables().package(its_package);
  return known == nullptr || known->openapi.empty() ? "io.k8s.api." + name : known->openapi + name.substr(its_package.size());
}

const TypeDef* find_type(std::string_view name) { return tables().find(name); }
const std::vector<const TypeDef*>& all_types() { return tables().ordered(); }

bool is_unstructured(const KindInfo& kind) {
  return kind.hooks != nullptr && !kind.hooks->form.is_default() && kind.hooks->form->type != nullptr;
}

const TypeDef* type_of(const KindInfo& kind) {
  static const auto by_kind = [] {
    std::map<Gvk, const TypeDef*> out;
    for (const KindInfo& info : all_kinds()) {
      const TypeDef* type = find_type(tables().package_of(info.group) + "." + info.version + "." + info.kind);
      if (type == nullptr)
        type = find_type(tables().package_of(info.group) + "." + info.storage_version + "." + info.kind);  // A beta with the same fields.
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
