// Constructors of all admission plugins; one plugin a file of its own. Each may fail on its configuration.
#pragma once
#include "apiserver/admission/plugin.h"

namespace berth::apiserver {

using PluginPtr = std::unique_ptr<AdmissionPlugin>;
using PluginResult = Result<PluginPtr>;

PluginResult make_namespace_lifecycle(const AdmissionContext& context);
PluginResult make_node_env(const AdmissionContext& context);
PluginResult make_limit_ranger(const AdmissionContext& context);
PluginResult make_service_account(const AdmissionContext& context);
PluginResult make_node_restriction(const AdmissionContext& context);
PluginResult make_taint_nodes_by_condition(const AdmissionContext& context);
PluginResult make_always_pull_images(const AdmissionContext& context);
PluginResult make_pod_node_selector(const AdmissionContext& context);
PluginResult make_pod_security(const AdmissionContext& context);
PluginResult make_pod_topology_labels(const AdmissionContext& context);
PluginResult make_pod_group_workload_exists(const AdmissionContext& context);
PluginResult make_pod_group_protection(const AdmissionContext& context);
PluginResult make_job_validation(const AdmissionContext& context);
PluginResult make_priority(const AdmissionContext& context);
PluginResult make_default_toleration_seconds(const AdmissionContext& context);
PluginResult make_pod_toleration_restriction(const AdmissionContext& context);
PluginResult make_extended_resource_toleration(const AdmissionContext& context);
PluginResult make_default_storage_class(const AdmissionContext& context);
PluginResult make_storage_object_in_use_protection(const AdmissionContext& context);
PluginResult make_persistent_volume_claim_resize(const AdmissionContext& context);
PluginResult make_runtime_class(const AdmissionContext& context);
PluginResult make_certificate_approval(const AdmissionContext& context);
PluginResult make_certificate_signing(const AdmissionContext& context);
PluginResult make_certificate_subject_restriction(const AdmissionContext& context);
PluginResult make_default_ingress_class(const AdmissionContext& context);
PluginResult make_deny_service_external_ips(const AdmissionContext& context);
PluginResult make_node_declared_features(const AdmissionContext& context);
PluginResult make_pod_resize(const AdmissionContext& context);
PluginResult make_pod_node_constraints(const AdmissionContext& context);
PluginResult make_mutating_policy(const AdmissionContext& context);
PluginResult make_mutating_webhook(const AdmissionContext& context);
PluginResult make_validating_policy(const AdmissionContext& context);
PluginResult make_validating_webhook(const AdmissionContext& context);
PluginResult make_resource_quota(const AdmissionContext& context);

}  // namespace berth::apiserver
