// The kinds, group by group; each one's record stands in kinds/<group>.
#include "model/kinds.h"

#include <algorithm>

namespace berth::model {
namespace kinds {

std::vector<KindInfo> core_group();
std::vector<KindInfo> admissionregistration_group();
std::vector<KindInfo> apiextensions_group();
std::vector<KindInfo> apiregistration_group();
std::vector<KindInfo> apps_group();
std::vector<KindInfo> authentication_group();
std::vector<KindInfo> authorization_group();
std::vector<KindInfo> autoscaling_group();
std::vector<KindInfo> batch_group();
std::vector<KindInfo> certificates_group();
std::vector<KindInfo> coordination_group();
std::vector<KindInfo> discovery_group();
std::vector<KindInfo> events_group();
std::vector<KindInfo> flowcontrol_group();
std::vector<KindInfo> networking_group();
std::vector<KindInfo> node_group();
std::vector<KindInfo> policy_group();
std::vector<KindInfo> rbac_group();
std::vector<KindInfo> resource_group();
std::vector<KindInfo> scheduling_group();
std::vector<KindInfo> storage_group();
std::vector<KindInfo> metrics_group();
std::vector<KindInfo> machine_group();
std::vector<KindInfo> openshift_autoscaling_group();
std::vector<KindInfo> autoscaling_x_group();

}  // namespace kinds

namespace {

/// In the order of discovery. Its elements point to one another: it is moved, never copied.
std::vector<KindInfo> make_all() {
  std::vector<KindInfo> all;
  for (const auto group : {kinds::core_group,          kinds::admissionregistration_group,
                           kinds::apiextensions_group, kinds::apiregistration_group,
                           kinds::apps_group,          kinds::authentication_group,
                           kinds::authorization_group, kinds::autoscaling_group,
                           kinds::batch_group,         kinds::certificates_group,
                           kinds::coordination_group,  kinds::discovery_group,
                           kinds::events_group,        kinds::flowcontrol_group,
                           kinds::networking_group,    kinds::node_group,
                           kinds::policy_group,        kinds::rbac_group,
                           kinds::resource_group,      kinds::scheduling_group,
                           kinds::storage_group,       kinds::metrics_group,
                           kinds::machine_group,       kinds::openshift_autoscaling_group,
                           kinds::autoscaling_x_group})
    for (KindInfo& kind : group()) all.push_back(std::move(kind));
  for (KindInfo& kind : all) {
    if (kind.group == kind.storage_group && kind.version == kind.storage_version) continue;
    for (const KindInfo& other : all)
      if (other.plural == kind.plural && other.version == kind.storage_version && other.group == kind.storage_group) kind.stored = &other;
  }
  return all;
}

}  // namespace

bool KindInfo::has_subresource(std::string_view name) const {
  return std::find(subresources.begin(), subresources.end(), name) != subresources.end();
}
bool KindInfo::has_verb(std::string_view name) const { return std::find(verbs.begin(), verbs.end(), name) != verbs.end(); }

const std::vector<KindInfo>& all_kinds() {
  static const std::vector<KindInfo> kinds = make_all();
  return kinds;
}

const KindInfo* find_kind(std::string_view group, std::string_view version, std::string_view kind) {
  for (const KindInfo& info : all_kinds())
    if (info.kind == kind && info.version == version && info.group == group) return &info;
  return nullptr;
}

const KindInfo* find_resource(std::string_view group, std::string_view version, std::string_view plural) {
  for (const KindInfo& info : all_kinds())
    if (info.plural == plural && info.version == version && info.group == group) return &info;
  return nullptr;
}

const KindInfo* find_resource(std::string_view group, std::string_view plural) {
  for (const KindInfo& info : all_kinds())
    if (info.plural == plural && info.group == group) return &info;
  return nullptr;
}

}  // namespace berth::model
