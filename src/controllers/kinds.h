// The kinds that controllers work with, as pointers into the table of kinds (model/kinds.h): cheap to compare and to use as map keys.
#pragma once
#include "model/kinds.h"

namespace berth::controllers {

using Kind = const model::KindInfo*;

/// Every member points to a registered kind.
struct Kinds {
  Kind pod, node, namespace_, event, config_map, secret, service, service_account, endpoints, replication_controller, resource_quota;
  Kind persistent_volume, persistent_volume_claim, lease, endpoint_slice, ip_address, service_cidr;
  Kind replica_set, deployment, stateful_set, daemon_set, controller_revision, job, cron_job;
  Kind pod_disruption_budget, horizontal_pod_autoscaler, storage_class, volume_attributes_class, cluster_role;
  Kind csi_driver, volume_attachment;
  Kind resource_claim, resource_claim_template, resource_slice, device_class, device_taint_rule;
  Kind certificate_signing_request, subject_access_review;
  Kind pod_group, workload;
  Kind machine, machine_set, machine_autoscaler;
};
const Kinds& kinds();

/// The kinds whose objects can have owners and dependents: stored once (one entry per storage place), listable, watchable, deletable; no
/// Events.
const std::vector<Kind>& collectable_kinds();
/// The preferred one of the API's own kinds for an owner reference's or scale target's apiVersion and kind (any known version of the
/// group); null when unknown. Custom kinds: Cache::find_reference.
Kind kind_of_reference(std::string_view api_version, std::string_view kind);

}  // namespace berth::controllers
