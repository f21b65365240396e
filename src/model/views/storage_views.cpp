#include "model/views/storage_views.h"

#include "model/views/json_text.h"
namespace berth::model {
namespace {

constexpr std::string_view kBetaClassAnnotation = "volume.beta.kubernetes.io/storage-class";

std::optional<Quantity> quantity_at(const json::Value& object, std::string_view key) {
  const auto* value = json::find(object, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return Quantity::from_value(value->get_int64());
  if (!value->is_string()) return std::nullopt;
  return Quantity::parse(json::as_view(*value));
}

}  // namespace

const std::string& PersistentVolumeView::class_name() const {
  const auto* annotated = meta.annotation(kBetaClassAnnotation);
  return annotated != nullptr ? *annotated : storage_class;
}

PersistentVolumeView PersistentVolumeView::parse(const json::Value& object) {
  PersistentVolumeView out;
  out.meta = ObjectMeta::parse(object);
  out.phase = string_at(object, {"status", "phase"});
  const auto* spec = json::find(object, "spec");
  if (spec == nullptr) return out;
  out.storage_class = string_at(*spec, {"storageClassName"});
  const auto capacity = parse_resource_list(json::find(*spec, "capacity"));
  if (const auto* storage = find_resource(capacity, "storage")) out.capacity = *storage;
  out.access_modes = parse_strings(json::get_array(*spec, {"accessModes"}));
  out.volume_mode = string_at(*spec, {"volumeMode"});
  if (const auto* claim = json::find(*spec, "claimRef"); claim != nullptr && claim->is_object()) {
    out.has_claim_ref = true;
    out.claim_namespace = string_at(*claim, {"namespace"});
    out.claim_name = string_at(*claim, {"name"});
    out.claim_uid = string_at(*claim, {"uid"});
  }
  if (const auto* required = json::find(*spec, {"nodeAffinity", "required"})) out.node_affinity = NodeSelector::parse(*required);
  out.csi_driver = string_at(*spec, {"csi", "driver"});
  out.csi_handle = string_at(*spec, {"csi", "volumeHandle"});
  out.gce_pd_name = string_at(*spec, {"gcePersistentDisk", "pdName"});
  out.aws_volume_id = string_at(*spec, {"awsElasticBlockStore", "volumeID"});
  out.azure_disk_name = string_at(*spec, {"azureDisk", "diskName"});
  out.cinder_volume_id = string_at(*spec, {"cinder", "volumeID"});
  out.is_local = json::find(*spec, "local") != nullptr;
  out.attributes_class = string_at(*spec, {"volumeAttributesClassName"});
  return out;
}

std::string PersistentVolumeClaimView::class_name() const {
  const auto* annotated = meta.annotation(kBetaClassAnnotation);
  return annotated != nullptr ? *annotated : storage_class.value_or("");
}

PersistentVolumeClaimView PersistentVolumeClaimView::parse(const json::Value& object) {
  PersistentVolumeClaimView out;
  out.meta = ObjectMeta::parse(object);
  out.phase = string_at(object, {"status", "phase"});
  const auto* spec = json::find(object, "spec");
  if (spec == nullptr) return out;
  if (json::find(*spec, "storageClassName") != nullptr) out.storage_class = string_at(*spec, {"storageClassName"});
  out.volume_name = string_at(*spec, {"volumeName"});
  out.attributes_class = string_at(*spec, {"volumeAttributesClassName"});
  out.volume_mode = string_at(*spec, {"volumeMode"});
  out.access_modes = parse_strings(json::get_array(*spec, {"accessModes"}));
  const auto requests = parse_resource_list(json::find(*spec, {"resources", "requests"}));
  if (const auto* storage = find_resource(requests, "storage")) out.request = *storage;
  if (const auto* selector = json::find(*spec, "selector")) {
    if (auto parsed = Selector::from_label_selector(selector)) {
      out.selector = std::move(*parsed);
    } else {
      out.selector = Selector::nothing();
      out.selector_error = parsed.error().message;
    }
  }
  return out;
}

StorageClassView StorageClassView::parse(const json::Value& object) {
  StorageClassView out;
  out.meta = ObjectMeta::parse(object);
  out.provisioner = string_at(object, {"provisioner"});
  const auto mode = json::get_string(object, {"volumeBindingMode"});
  out.has_binding_mode = !mode.empty();
  out.wait_for_first_consumer = mode == "WaitForFirstConsumer";
  for (const auto& term : json::get_array(object, {"allowedTopologies"})) {
    auto& expressions = out.allowed_topologies.emplace_back();
    for (const auto& item : json::get_array(term, {"matchLabelExpressions"}))
      expressions.emplace_back(string_at(item, {"key"}), parse_strings(json::get_array(item, {"values"})));
  }
  return out;
}

CsiNodeView CsiNodeView::parse(const json::Value& object) {
  CsiNodeView out;
  out.meta = ObjectMeta::parse(object);
  for (const auto& item : json::get_array(object, {"spec", "drivers"})) {
    CsiNodeDriver one;
    one.name = string_at(item, {"name"});
    one.node_id = string_at(item, {"nodeID"});
    if (json::find(item, {"allocatable", "count"}) != nullptr) one.count = json::get_int(item, {"allocatable", "count"});
    one.topology_keys = parse_strings(json::get_array(item, {"topologyKeys"}));
    out.drivers.push_back(std::move(one));
  }
  return out;
}

CsiDriverView CsiDriverView::parse(const json::Value& object) {
  CsiDriverView out;
  out.meta = ObjectMeta::parse(object);
  out.storage_capacity = json::get_bool(object, {"spec", "storageCapacity"});
  out.attach_required = json::get_bool(object, {"spec", "attachRequired"}, true);
  return out;
}

VolumeAttachmentView VolumeAttachmentView::parse(const json::Value& object) {
  VolumeAttachmentView out;
  out.meta = ObjectMeta::parse(object);
  out.attacher = string_at(object, {"spec", "attacher"});
  out.node_name = string_at(object, {"spec", "nodeName"});
  out.volume_name = string_at(object, {"spec", "source", "persistentVolumeName"});
  return out;
}

CsiStorageCapacityView CsiStorageCapacityView::parse(const json::Value& object) {
  CsiStorageCapacityView out;
  out.meta = ObjectMeta::parse(object);
  out.storage_class = string_at(object, {"storageClassName"});
  if (const auto* topology = json::find(object, "nodeTopology")) {
    auto parsed = Selector::from_label_selector(topology);
    out.node_topology = parsed ? std::move(*parsed) : Selector::nothing();
  }
  out.capacity = quantity_at(object, "capacity");
  out.maximum_volume_size = quantity_at(object, "maximumVolumeSize");
  return out;
}

}  // namespace berth::model
