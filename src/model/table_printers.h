// The cells of every kind's table row, and what several kinds show. Within src/model only.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace berth::model::tables {

json::Value name_of(const json::Value& o);
json::Value age_of(const json::Value& o, TimePoint now);
json::Value or_none(std::string_view text);
json::Value or_unset(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator = ",");
/// "a=b,c=d"; "<none>" for an empty map.
std::string map_text(const json::Object& map);
/// A metav1.LabelSelector as kubectl prints it.
std::string selector_text(const json::Value& object, json::Path path);
std::pair<std::string, std::string> containers_and_images(const json::Array& containers);
std::string array_text(const json::Array& array);

json::Array pod_cells(const json::Value& o, TimePoint now);
json::Array node_cells(const json::Value& o, TimePoint now);
json::Array namespace_cells(const json::Value& o, TimePoint now);
json::Array config_map_cells(const json::Value& o, TimePoint now);
json::Array secret_cells(const json::Value& o, TimePoint now);
json::Array service_account_cells(const json::Value& o, TimePoint now);
json::Array service_cells(const json::Value& o, TimePoint now);
json::Array endpoints_cells(const json::Value& o, TimePoint now);
json::Array endpoint_slice_cells(const json::Value& o, TimePoint now);
json::Array replication_controller_cells(const json::Value& o, TimePoint now);
json::Array event_cells(const json::Value& o, TimePoint now);
json::Array limit_range_cells(const json::Value& o, TimePoint now);
json::Array resource_quota_cells(const json::Value& o, TimePoint now);
json::Array volume_cells(const json::Value& o, TimePoint now);
json::Array claim_cells(const json::Value& o, TimePoint now);
json::Array deployment_cells(const json::Value& o, TimePoint now);
json::Array replica_set_cells(const json::Value& o, TimePoint now);
json::Array stateful_set_cells(const json::Value& o, TimePoint now);
json::Array daemon_set_cells(const json::Value& o, TimePoint now);
json::Array job_cells(const json::Value& o, TimePoint now);
json::Array cron_job_cells(const json::Value& o, TimePoint now);
json::Array budget_cells(const json::Value& o, TimePoint now);
json::Array hpa_cells(const json::Value& o, TimePoint now);
json::Array hpa_v1_cells(const json::Value& o, TimePoint now);
json::Array priority_class_cells(const json::Value& o, TimePoint now);
json::Array storage_class_cells(const json::Value& o, TimePoint now);
json::Array volume_attributes_class_cells(const json::Value& o, TimePoint now);
json::Array csi_node_cells(const json::Value& o, TimePoint now);
json::Array csi_driver_cells(const json::Value& o, TimePoint now);
json::Array certificate_request_cells(const json::Value& o, TimePoint now);
json::Array lease_cells(const json::Value& o, TimePoint now);
json::Array role_cells(const json::Value& o, TimePoint now);
json::Array binding_cells(const json::Value& o, TimePoint now);
json::Array webhook_cells(const json::Value& o, TimePoint now);
json::Array policy_cells(const json::Value& o, TimePoint now);
json::Array policy_binding_cells(const json::Value& o, TimePoint now);
json::Array revision_cells(const json::Value& o, TimePoint now);
json::Array ingress_cells(const json::Value& o, TimePoint now);
json::Array network_policy_cells(const json::Value& o, TimePoint now);
json::Array runtime_class_cells(const json::Value& o, TimePoint now);
json::Array api_service_cells(const json::Value& o, TimePoint now);
json::Array machine_cells(const json::Value& o, TimePoint now);
json::Array machine_set_cells(const json::Value& o, TimePoint now);
json::Array machine_autoscaler_cells(const json::Value& o, TimePoint now);
json::Array pod_template_cells(const json::Value& o, TimePoint now);
json::Array attachment_cells(const json::Value& o, TimePoint now);
json::Array ingress_class_cells(const json::Value& o, TimePoint now);
json::Array resource_claim_cells(const json::Value& o, TimePoint now);
json::Array resource_slice_cells(const json::Value& o, TimePoint now);
json::Array flow_schema_cells(const json::Value& o, TimePoint now);
json::Array priority_level_cells(const json::Value& o, TimePoint now);
json::Array plain_cells(const json::Value& o, TimePoint now);

}  // namespace berth::model::tables
