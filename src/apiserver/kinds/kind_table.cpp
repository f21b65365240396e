#include "apiserver/kinds/kind_table.h"

#include "custom/check_definition.h"
#include "model/features.h"
#include "model/kind_hooks.h"

namespace berth::apiserver {
namespace {

std::string key_of(std::string_view group, std::string_view version, std::string_view name) {
  std::string out;
  out.reserve(group.size() + version.size() + name.size() + 2);
  out.append(group).append("/").append(version).append("/").append(name);
  return out;
}

}  // namespace

const model::KindInfo& KindTable::definitions() {
  static const model::KindInfo kKind = [] {
    auto kind = *model::find_resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    kind.hooks = std::make_shared<const model::KindHooks>(custom::definition_hooks());
    return kind;
  }();
  return kKind;
}

KindTable::KindTable(std::vector<ServedKind> custom, model::Features features) : custom_(std::move(custom)) {
  const auto& crds = definitions();
  for (const auto& kind : model::all_kinds()) {
    if (!model::has(features, model::feature_of(kind))) continue;
    const bool is_crd = kind.group == crds.group && kind.plural == crds.plural;
    kinds_.push_back(is_crd ? &crds : &kind);
  }
  std::ranges::stable_sort(custom_, [](const ServedKind& a, const ServedKind& b) {
    const auto &x = a.kind->info, &y = b.kind->info;
    if (x.group != y.group) return x.group < y.group;
    if (x.version != y.version) return custom::is_version_before(x.version, y.version);
    return x.plural < y.plural;
  });
  for (const auto& served : custom_) {
    served_.emplace(&served.kind->info, &served);
    if (served.kind->version->is_served) kinds_.push_back(&served.kind->info);
  }
  for (const auto* kind : kinds_) {
    by_resource_.emplace(key_of(kind->group, kind->version, kind->plural), kind);
    by_kind_.emplace(key_of(kind->group, kind->version, kind->kind), kind);
  }
}

const model::KindInfo* KindTable::find_resource(std::string_view group, std::string_view version, std::string_view plural) const {
  const auto found = by_resource_.find(key_of(group, version, plural));
  return found == by_resource_.end() ? nullptr : found->second;
}

const model::KindInfo* KindTable::find_kind(std::string_view group, std::string_view version, std::string_view kind) const {
  const auto found = by_kind_.find(key_of(group, version, kind));
  return found == by_kind_.end() ? nullptr : found->second;
}

std::set<std::string> KindTable::hidden_versions() const {
  std::set<std::string> out;
  for (const auto& kind : model::all_kinds()) out.insert(kind.api_version());
  for (const auto* kind : kinds_) out.erase(kind->api_version());
  return out;
}

const ServedKind* KindTable::custom(const model::KindInfo& kind) const {
  const auto found = served_.find(&kind);
  return found == served_.end() ? nullptr : found->second;
}

}  // namespace berth::apiserver
