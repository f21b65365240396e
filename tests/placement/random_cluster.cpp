#include "tests/placement/random_cluster.h"

#include <cstdio>
#include <cstdlib>

namespace berth::placement::testing {
namespace {

using model::Labels;
using model::Quantity;
using model::Requirement;
using model::Selector;

constexpr const char* kApps[] = {"web", "db", "cache"};
constexpr const char* kTiers[] = {"gold", "silver"};
constexpr const char* kNamespaces[] = {"default", "team-a", "team-b"};
constexpr const char* kImages[] = {"app:v1", "big:latest", "tiny:1"};

}  // namespace

FrameworkPtr framework_of(Profile profile) {
  auto out = Framework::create(std::move(profile));
  if (!out) {
    std::fprintf(stderr, "%s\n", out.error().message.c_str());
    std::abort();
  }
  return *out;
}

FrameworkPtr default_framework(Era era) { return framework_of(default_profile(era)); }

Labels RandomWorld::pod_labels() {
  std::vector<std::pair<std::string, std::string>> out;
  if (chance(85)) out.emplace_back("app", kApps[below(3)]);
  if (chance(40)) out.emplace_back("tier", kTiers[below(2)]);
  return Labels(std::move(out));
}

Selector RandomWorld::selector() {
  if (chance(10)) return Selector::everything();
  if (chance(5)) return Selector::nothing();
  std::vector<Requirement> out;
  out.push_back({"app", chance(80) ? Requirement::Op::kIn : Requirement::Op::kNotIn, {kApps[below(3)]}});
  if (chance(20)) out.push_back({"tier", Requirement::Op::kExists, {}});
  return Selector(std::move(out));
}

model::PodAffinityTerm RandomWorld::affinity_term() {
  model::PodAffinityTerm out;
  out.selector = selector();
  constexpr const char* kKeys[] = {"kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack", "absent"};
  out.topology_key = kKeys[below(chance(10) ? 4 : 3)];
  if (chance(25)) out.namespaces = {kNamespaces[below(3)]};
  if (chance(15)) out.namespace_selector = chance(50) ? Selector::everything() : Selector({{"env", Requirement::Op::kIn, {"prod"}}});
  return out;
}

model::NodeViewPtr RandomWorld::node(const std::string& name) {
  auto out = std::make_shared<model::NodeView>();
  out->meta.name = name;
  std::vector<std::pair<std::string, std::string>> labels;
  labels.emplace_back("kubernetes.io/hostname", unique_hostnames ? name : "host" + std::to_string(below(5)));
  if (chance(90)) labels.emplace_back("topology.kubernetes.io/zone", "z" + std::to_string(below(zones)));
  if (chance(70)) labels.emplace_back("rack", "r" + std::to_string(below(4)));
  if (chance(50)) labels.emplace_back("disk", chance(50) ? "ssd" : "hdd");
  out->meta.labels = Labels(std::move(labels));
  out->unschedulable = chance(5);
  if (chance(15)) out->taints.push_back({"dedicated", chance(50) ? "a" : "b", chance(50) ? "NoSchedule" : "PreferNoSchedule"});
  if (chance(15)) out->taints.push_back({"spot", "", chance(30) ? "NoExecute" : "PreferNoSchedule"});
  out->allocatable = {{"cpu", Quantity::from_milli(500 * (1 + below(8)))},
                      {"example.com/gpu", Quantity::from_value(below(3))},
                      {"memory", Quantity::from_value((1LL + below(8)) << 30)},
                      {"pods", Quantity::from_value(chance(80) ? 110 : 3)}};
  for (const char* image : kImages)
    if (chance(30)) out->images.push_back({{image}, (10 + below(900)) * 1'000'000LL});
  return out;
}

model::PodViewPtr RandomWorld::pod(const std::string& name) {
  auto out = std::make_shared<model::PodView>();
  out->meta.name = name;
  out->meta.ns = kNamespaces[below(3)];
  out->meta.labels = pod_labels();
  out->meta.is_deleting = chance(3);
  out->scheduler_name = "default-scheduler";
  out->priority = chance(20) ? below(3) * 10 : 0;
  model::ContainerView container;
  container.name = "c";
  container.image = kImages[below(3)];
  if (chance(85)) container.requests.emplace_back("cpu", Quantity::from_milli(50 * (1 + below(8))));
  if (chance(10)) container.requests.emplace_back("example.com/gpu", Quantity::from_value(1));
  if (chance(85)) container.requests.emplace_back("memory", Quantity::from_value((1LL + below(6)) << 27));
  if (chance(10)) container.host_ports.push_back({8000 + below(2), "TCP", chance(70) ? "" : "10.0.0.1"});
  out->containers.push_back(std::move(container));
  if (chance(15)) out->node_selector.emplace_back("disk", chance(50) ? "ssd" : "hdd");
  if (chance(10)) {
    model::NodeSelectorTerm term;
    term.expressions.push_back({"rack", chance(50) ? Requirement::Op::kIn : Requirement::Op::kNotIn, {"r1"}});
    out->node_affinity.required = model::NodeSelector{{term}};
  }
  if (chance(3)) {
    model::NodeSelectorTerm term;
    term.fields.push_back({"metadata.name", Requirement::Op::kIn, {"n" + std::to_string(below(12))}});
    out->node_affinity.required = model::NodeSelector{{term}};
  }
  for (int i = below(3); i > 1; --i) {
    model::NodeSelectorTerm term;
    term.expressions.push_back({"topology.kubernetes.io/zone", Requirement::Op::kIn, {"z" + std::to_string(below(zones))}});
    out->node_affinity.preferred.push_back({1 + below(100), term});
  }
  if (chance(20)) out->tolerations.push_back({"dedicated", "Exists", "", "", {}});
  if (chance(10)) out->tolerations.push_back({"spot", "Equal", "", chance(50) ? "" : "NoExecute", {}});
  if (chance(12)) out->required_affinity.push_back(affinity_term());
  if (chance(4)) out->required_affinity.push_back(affinity_term());
  if (chance(12)) out->required_anti_affinity.push_back(affinity_term());
  if (chance(15)) out->preferred_affinity.push_back({1 + below(100), affinity_term()});
  if (chance(15)) out->preferred_anti_affinity.push_back({1 + below(100), affinity_term()});
  for (int i = chance(30) ? 1 + below(2) : 0; i > 0; --i) {
    model::TopologySpreadConstraint constraint;
    constexpr const char* kKeys[] = {"kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"};
    constraint.topology_key = kKeys[below(3)];
    constraint.max_skew = 1 + below(3);
    constraint.is_hard = chance(50);
    constraint.selector = selector();
    if (chance(15)) constraint.min_domains = 1 + below(5);
    constraint.honor_affinity = chance(80);
    constraint.honor_taints = chance(20);
    if (chance(15)) constraint.match_label_keys = {"tier"};
    out->spread_constraints.push_back(std::move(constraint));
  }
  for (int i = volumes && chance(50) ? 1 + below(2) : 0; i > 0; --i) out->volumes.push_back(volume());
  store(*out);
  return out;
}

void RandomWorld::store(model::PodView& pod) {
  const std::string name = pod.meta.name;
  switch (below(5)) {
    case 0:
      return;
    case 1:
      pod = stored_.bare(std::move(pod), name);
      break;
    case 2:
      pod = stored_.of_job(std::move(pod), "job" + std::to_string(below(100)));
      break;
    default:
      pod = stored_.of_deployment(std::move(pod), kApps[below(3)]);
  }
  pod.meta.name = name;
}

/// Of the Deployments that pods are of: one for each app in each namespace.
void RandomWorld::change_replica_sets(Cluster& cluster) {
  const std::string app = kApps[below(3)];
  model::PodView written;
  written.meta.ns = kNamespaces[below(3)];
  if (chance(60)) written.meta.labels = Labels(std::vector<std::pair<std::string, std::string>>{{"app", app}});
  const json::Value set = stored_.replica_set(written, app);
  if (chance(30)) {
    cluster.remove("ReplicaSet", written.meta.ns, std::string(json::get_string(set, {"metadata", "name"})));
  } else {
    cluster.upsert(set);
  }
}

model::VolumeView RandomWorld::volume() {
  using Kind = model::VolumeView::Kind;
  model::VolumeView out;
  out.name = "data";
  if (chance(65)) {
    out.kind = Kind::kPersistentVolumeClaim;
    out.id = "claim" + std::to_string(below(6));
  } else if (chance(60)) {
    out.kind = chance(50) ? Kind::kGcePersistentDisk : Kind::kAwsElasticBlockStore;
    out.id = "disk" + std::to_string(below(3));
    out.read_only = chance(30);
  }
  return out;
}

/// Claims, volumes, classes and what nodes attach: bound and unbound, here and elsewhere, gone and back.
void RandomWorld::change_storage(Cluster& cluster) {
  const std::string which = std::to_string(below(6));
  switch (below(4)) {
    case 0: {
      if (chance(10)) {
        cluster.remove("PersistentVolume", "", "volume" + which);
        return;
      }
      auto made = std::make_shared<model::PersistentVolumeView>();
      made->meta.name = "volume" + which;
      if (chance(30))
        made->meta.labels =
            Labels(std::vector<std::pair<std::string, std::string>>{{"topology.kubernetes.io/zone", "z" + std::to_string(below(zones))}});
      made->storage_class = "late";
      made->capacity = Quantity::from_value((1LL + below(3)) << 30);
      made->access_modes = {"ReadWriteOnce", "ReadWriteOncePod"};
      made->phase = "Available";
      if (chance(50)) {
        model::NodeSelectorTerm term;
        term.expressions.push_back({"topology.kubernetes.io/zone", Requirement::Op::kIn, {"z" + std::to_string(below(zones))}});
        made->node_affinity = model::NodeSelector{{term}};
      }
      if (chance(50)) {
        made->csi_driver = "csi.example.com";
        made->csi_handle = made->meta.name;
      }
      cluster.upsert(std::shared_ptr<const model::PersistentVolumeView>(std::move(made)));
      return;
    }
    case 1: {
      const std::string ns = kNamespaces[below(3)];
      if (chance(10)) {
        cluster.remove("PersistentVolumeClaim", ns, "claim" + which);
        return;
      }
      auto made = std::make_shared<model::PersistentVolumeClaimView>();
      made->meta.ns = ns;
      made->meta.name = made->meta.uid = "claim" + which;
      made->storage_class = chance(85) ? "late" : "missing";
      made->access_modes = {chance(25) ? "ReadWriteOncePod" : "ReadWriteOnce"};
      made->request = Quantity::from_value((1LL + below(3)) << 30);
      if (chance(60)) {
        made->volume_name = "volume" + std::to_string(below(6));
        made->meta.annotations = {{"pv.kubernetes.io/bind-completed", "yes"}};
        made->phase = "Bound";
      }
      cluster.upsert(std::shared_ptr<const model::PersistentVolumeClaimView>(std::move(made)));
      return;
    }
    case 2: {
      json::Value made = {{"kind", "StorageClass"},
                          {"metadata", {{"name", "late"}}},
                          {"provisioner", chance(50) ? "csi.example.com" : "kubernetes.io/no-provisioner"},
                          {"volumeBindingMode", chance(85) ? "WaitForFirstConsumer" : "Immediate"}};
      cluster.upsert(made);
      return;
    }
    default: {
      auto made = std::make_shared<model::CsiNodeView>();
      made->meta.name = "n" + std::to_string(below(8));
      made->drivers = {{"csi.example.com", made->meta.name, below(3), {}}};
      cluster.upsert(std::shared_ptr<const model::CsiNodeView>(std::move(made)));
    }
  }
}

void RandomWorld::change_objects(Cluster& cluster) {
  if (volumes && chance(60)) return change_storage(cluster);
  if (chance(25)) return change_replica_sets(cluster);
  if (chance(60)) {
    const std::string ns = kNamespaces[below(3)];
    const std::string name = "svc" + std::to_string(below(3));
    if (chance(30)) {
      cluster.remove("Service", ns, name);
      return;
    }
    auto service = std::make_shared<model::ServiceView>();
    service->meta.ns = ns;
    service->meta.name = name;
    service->selector = Selector({{"app", Requirement::Op::kIn, {kApps[below(3)]}}});
    service->has_selector = true;
    cluster.upsert(std::move(service));
    return;
  }
  auto ns = std::make_shared<model::NamespaceView>();
  ns->meta.name = kNamespaces[below(3)];
  ns->meta.labels = Labels(std::vector<std::pair<std::string, std::string>>{{"env", chance(50) ? "prod" : "dev"}});
  cluster.upsert(std::move(ns));
}

}  // namespace berth::placement::testing
