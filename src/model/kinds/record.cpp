#include "model/kinds/record.h"

namespace berth::model::kinds {

Record::Record(std::string group, std::string version, std::string kind, std::string plural) {
  info_.group = info_.storage_group = std::move(group);
  info_.version = info_.storage_version = std::move(version);
  info_.kind = std::move(kind);
  info_.list_kind = info_.kind + "List";
  info_.plural = std::move(plural);
  for (const char c : info_.kind) info_.singular += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  info_.verbs = kAllVerbs;
}
Record& Record::shorts(std::vector<std::string> names) {
  info_.short_names = std::move(names);
  return *this;
}
Record& Record::categories(std::vector<std::string> names) {
  info_.categories = std::move(names);
  return *this;
}
Record& Record::singular(std::string name) {
  info_.singular = std::move(name);
  return *this;
}
Record& Record::cluster() {
  info_.namespaced = false;
  return *this;
}
Record& Record::subs(std::vector<std::string> names) {
  info_.subresources = std::move(names);
  return *this;
}
Record& Record::fields(std::vector<std::string> names) {
  info_.field_selectors = std::move(names);
  return *this;
}
Record& Record::generation() {
  info_.generation = true;
  return *this;
}
Record& Record::verbs(std::vector<std::string> names) {
  info_.verbs = std::move(names);
  return *this;
}
Record& Record::stored_as(std::string group, std::string version) {
  info_.storage_group = std::move(group);
  info_.storage_version = std::move(version);
  return *this;
}
Record& Record::not_stored() {
  info_.is_virtual = true;
  return *this;
}
Record& Record::gated_by(Feature feature) {
  gated_kinds()[info_.gvk()] = feature;
  return *this;
}
KindInfo Record::does(KindHooks hooks) { return does(share(std::move(hooks))); }
KindInfo Record::does(std::shared_ptr<const KindHooks> hooks) {
  info_.hooks = std::move(hooks);
  return std::move(info_);
}

std::map<Gvk, Feature>& gated_kinds() {
  static std::map<Gvk, Feature> all;
  return all;
}

}  // namespace berth::model::kinds

namespace berth::model {

Feature feature_of(const KindInfo& kind) {
  static const auto& all = (all_kinds(), kinds::gated_kinds());  // Complete once the kinds are there.
  const auto found = all.find(kind.gvk());
  return found == all.end() ? Feature::kNone : found->second;
}

}  // namespace berth::model
