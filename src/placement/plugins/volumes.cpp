#include "placement/plugins/volumes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/split.h"

namespace berth::placement::volumes {
namespace {

constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::string_view kBetaZone = "failure-domain.beta.kubernetes.io/zone";
constexpr std::string_view kRegion = "topology.kubernetes.io/region";
constexpr std::string_view kBetaRegion = "failure-domain.beta.kubernetes.io/region";
constexpr std::string_view kMigratedPlugins = "storage.alpha.kubernetes.io/migrated-plugins";

struct Migration {
  std::string_view plugin, driver, zone_key;
};
constexpr Migration kMigrations[] = {
    {"kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"},
    {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"},
    {"kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"},
    {"kubernetes.io/azure-disk", "disk.csi.azure.com", "topology.disk.csi.azure.com/zone"},
    {"kubernetes.io/azure-file", "file.csi.azure.com", ""},
    {"kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", ""},
    {"kubernetes.io/portworx-volume", "pxd.portworx.com", ""},
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <typename T>
const T* find_in(const Cluster::Table<T>& table, std::string_view key) {
  const auto at = table.find(key);
  return at == table.end() ? nullptr : at->second.get();
}

/// "aws://us-east-1a/vol-1" names the same volume as "vol-1"; empty when such an address has no volume in it.
std::string ebs_handle(std::string_view id) {
  constexpr std::string_view kScheme = "aws://";
  if (!id.starts_with(kScheme)) return std::string(id);
  id.remove_prefix(kScheme.size());
  id.remove_prefix(std::min(id.find('/'), id.size()));
  while (id.starts_with('/')) id.remove_prefix(1);
  while (id.ends_with('/')) id.remove_suffix(1);
  return id.starts_with("vol-") && id.find('/') == std::string_view::npos ? std::string(id) : std::string();
}

bool uses_key(const Volume& volume, std::string_view key) {
  if (!volume.node_affinity) return false;
  return std::ranges::any_of(volume.node_affinity->terms, [&](const auto& term) {
    return std::ranges::any_of(term.expressions, [&](const auto& expression) { return expression.key == key; });
  });
}

void rename_key(model::NodeSelector& selector, std::string_view from, std::string_view to) {
  selector.terms.change_each([&](auto& term) {
    for (auto& expression : term.expressions)
      if (expression.key == from) expression.key = std::string(to);
  });
}

}  // namespace

ClaimUse claim_use(const model::PodView& pod, const model::VolumeView& volume) {
  if (volume.kind == model::VolumeView::Kind::kPersistentVolumeClaim) return {true, false, volume.id};
  if (volume.kind == model::VolumeView::Kind::kEphemeral) return {true, true, pod.name() + "-" + volume.name};
  return {};
}

const Claim* find_claim(const Cluster& cluster, std::string_view ns, std::string_view name) {
  return find_in(cluster.claims(), fmt::format("{}/{}", ns, name));
}
const Volume* find_volume(const Cluster& cluster, std::string_view name) { return find_in(cluster.persistent_volumes(), name); }
const model::StorageClassView* find_class(const Cluster& cluster, std::string_view name) {
  return find_in(cluster.storage_classes(), name);
}
const model::CsiNodeView* find_csi_node(const Cluster& cluster, std::string_view node_name) {
  return find_in(cluster.csi_nodes(), node_name);
}

std::string not_found(std::string_view resource, std::string_view name) { return fmt::format("{} \"{}\" not found", resource, name); }

std::string wrong_owner(const model::PodView& pod, const Claim& claim, Era era) {
  const auto* owner = claim.meta.controller();
  if (owner != nullptr && owner->uid == pod.meta.uid) return {};
  if (era == Era::k120) return fmt::format("persistentvolumeclaim \"{}\" was not created for the pod", claim.meta.name);
  return fmt::format("PVC {}/{} was not created for pod {}/{} (pod is not owner)", claim.meta.ns, claim.meta.name, pod.ns(), pod.name());
}

std::string_view in_tree_plugin(const model::VolumeView& volume) {
  switch (volume.kind) {
    case model::VolumeView::Kind::kAwsElasticBlockStore:
      return "kubernetes.io/aws-ebs";
    case model::VolumeView::Kind::kGcePersistentDisk:
      return "kubernetes.io/gce-pd";
    case model::VolumeView::Kind::kCinder:
      return "kubernetes.io/cinder";
    case model::VolumeView::Kind::kAzureDisk:
      return "kubernetes.io/azure-disk";
    default:
      return {};
  }
}

std::string_view in_tree_plugin(const Volume& volume) {
  if (!volume.aws_volume_id.empty()) return "kubernetes.io/aws-ebs";
  if (!volume.gce_pd_name.empty()) return "kubernetes.io/gce-pd";
  if (!volume.cinder_volume_id.empty()) return "kubernetes.io/cinder";
  if (!volume.azure_disk_name.empty()) return "kubernetes.io/azure-disk";
  return {};
}

std::string_view csi_driver_of(std::string_view plugin) {
  const auto at = std::ranges::find(kMigrations, plugin, &Migration::plugin);
  return at == std::end(kMigrations) ? std::string_view() : at->driver;
}

bool is_migrated(const model::CsiNodeView* node, std::string_view plugin, Era era) {
  if (era == Era::k120 || node == nullptr || plugin.empty()) return false;
  const auto* text = node->meta.annotation(kMigratedPlugins);
  if (text == nullptr) return false;
  return std::ranges::any_of(split(*text, ','), [&](std::string_view one) { return one == plugin; });
}

bool is_counted_as_csi(const model::CsiNodeView* node, std::string_view plugin, Era era) {
  if (era == Era::k120 || node == nullptr) return false;
  return plugin == "kubernetes.io/portworx-volume" || plugin == "kubernetes.io/aws-ebs" || plugin == "kubernetes.io/gce-pd" ||
         plugin == "kubernetes.io/azure-disk" || plugin == "kubernetes.io/cinder";
}

std::string csi_handle(const model::VolumeView& volume) {
  switch (volume.kind) {
    case model::VolumeView::Kind::kAwsElasticBlockStore:
      return ebs_handle(volume.id);
    case model::VolumeView::Kind::kGcePersistentDisk:
      return fmt::format("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{}", volume.id);
    case model::VolumeView::Kind::kAzureDisk:
      return volume.disk_uri;
    default:
      return volume.id;
  }
}

std::string csi_handle(const Volume& volume) {
  if (!volume.aws_volume_id.empty()) return ebs_handle(volume.aws_volume_id);
  if (!volume.cinder_volume_id.empty()) return volume.cinder_volume_id;
  if (!volume.azure_disk_name.empty()) return volume.azure_disk_name;
  const auto* zones = volume.meta.labels.get(kZone);
  if (zones == nullptr) zones = volume.meta.labels.get(kBetaZone);
  if (zones == nullptr || zones->empty()) return fmt::format("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{}", volume.gce_pd_name);
  const auto several = zones->find("__");
  if (several == std::string::npos) return fmt::format("projects/UNSPECIFIED/zones/{}/disks/{}", *zones, volume.gce_pd_name);
  // A zone is its region plus "-x".
  const std::string first = zones->substr(0, several);
  return fmt::format("projects/UNSPECIFIED/regions/{}/disks/{}", first.substr(0, std::min(first.rfind('-'), first.size())),
                     volume.gce_pd_name);
}

bool node_affinity_holds(const Volume& volume, const model::Labels& node_labels, std::string_view migrated_plugin) {
  const auto at = std::ranges::find(kMigrations, migrated_plugin, &Migration::plugin);
  if (at == std::end(kMigrations) || at->zone_key.empty()) return !volume.node_affinity || volume.node_affinity->matches(node_labels, "");
  // The translated volume asks for the driver's own zone label, taken from its affinity or else from its labels.
  const bool is_beta =
      !uses_key(volume, kZone) &&
      (uses_key(volume, kBetaZone) || (volume.meta.labels.get(kZone) == nullptr && volume.meta.labels.get(kBetaZone) != nullptr));
  const std::string_view zone_label = is_beta ? kBetaZone : kZone;
  model::NodeSelector selector = volume.node_affinity.value_or(model::NodeSelector{});
  if (uses_key(volume, zone_label)) {
    rename_key(selector, zone_label, at->zone_key);
  } else if (const auto* label = volume.meta.labels.get(zone_label)) {
    std::set<std::string, std::less<>> zones;
    std::string_view rest = *label;
    while (true) {
      const auto end = std::min(rest.find("__"), rest.size());
      if (const auto zone = trim(rest.substr(0, end)); !zone.empty()) zones.emplace(zone);
      if (end >= rest.size()) break;
      rest.remove_prefix(end + 2);
    }
    if (!zones.empty()) {
      if (selector.terms.empty()) selector.terms.emplace_back();
      model::Requirement topology{std::string(at->zone_key), model::Requirement::Op::kIn, {zones.begin(), zones.end()}};
      selector.terms.change_each([&](auto& term) { term.expressions.push_back(topology); });
    }
  }
  if (is_beta) rename_key(selector, kBetaRegion, kRegion);
  return (!volume.node_affinity && selector.terms.empty()) || selector.matches(node_labels, "");
}

std::optional<std::set<std::string, std::less<>>> label_zones(std::string_view text) {
  std::set<std::string, std::less<>> out;
  while (true) {
    const auto end = std::min(text.find("__"), text.size());
    const auto zone = trim(text.substr(0, end));
    if (zone.empty()) return std::nullopt;
    out.emplace(zone);
    if (end >= text.size()) return out;
    text.remove_prefix(end + 2);
  }
}

bool conflict(const model::VolumeView& a, const model::VolumeView& b) {
  if (a.kind != b.kind) return false;
  const bool both_read = a.read_only && b.read_only;
  switch (a.kind) {
    case model::VolumeView::Kind::kGcePersistentDisk:
      return a.id == b.id && !both_read;
    case model::VolumeView::Kind::kAwsElasticBlockStore:
      return a.id == b.id;
    case model::VolumeView::Kind::kIscsi:
      return a.id == b.id && !both_read;
    case model::VolumeView::Kind::kRbd: {
      const bool share_monitor =
          std::ranges::any_of(a.monitors, [&](const auto& one) { return std::ranges::find(b.monitors, one) != b.monitors.end(); });
      return share_monitor && a.pool == b.pool && a.id == b.id && !both_read;
    }
    default:
      return false;
  }
}

bool is_own_claim(const PodInfo& pending, const EventChange& change, bool ephemeral_too) {
  if (change.object == nullptr || json::get_string(*change.object, {"metadata", "namespace"}) != pending.view().ns()) return false;
  const std::string_view name = json::get_string(*change.object, {"metadata", "name"});
  return std::ranges::any_of(pending.view().volumes, [&](const model::VolumeView& volume) {
    const auto use = claim_use(pending.view(), volume);
    return use.uses_claim && (ephemeral_too || !use.is_ephemeral) && use.name == name;
  });
}

bool differs(const EventChange& change, std::initializer_list<std::string_view> path) {
  const json::Value* before = json::find(*change.object_before, path);
  const json::Value* now = json::find(*change.object, path);
  return (before == nullptr) != (now == nullptr) || (before != nullptr && *before != *now);
}

}  // namespace berth::placement::volumes
