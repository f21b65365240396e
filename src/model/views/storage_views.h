// Views of the storage objects that the volume plugins read.
#pragma once
#include <memory>

#include "model/views/common.h"

namespace berth::model {

struct PersistentVolumeView {
  ObjectMeta meta;
  std::string storage_class;
  /// volume.beta.kubernetes.io/storage-class when the annotation is there, else spec.storageClassName (GetPersistentVolumeClass).
  [[nodiscard]] const std::string& class_name() const;
  Quantity capacity;  ///< spec.capacity.storage
  std::vector<std::string> access_modes;
  std::string volume_mode, phase;
  bool has_claim_ref = false;
  std::string claim_namespace, claim_name, claim_uid;
  std::optional<NodeSelector> node_affinity;
  // The source, as far as the limit and restriction plugins tell them apart; empty when of another kind.
  std::string csi_driver, csi_handle, gce_pd_name, aws_volume_id, azure_disk_name, cinder_volume_id;
  bool is_local = false;
  std::string attributes_class;  ///< spec.volumeAttributesClassName
  static PersistentVolumeView parse(const json::Value& object);
};

struct PersistentVolumeClaimView {
  ObjectMeta meta;
  std::optional<std::string> storage_class;
  /// volume.beta.kubernetes.io/storage-class when there, else spec.storageClassName, else empty (GetPersistentVolumeClaimClass).
  [[nodiscard]] std::string class_name() const;
  std::string volume_name, volume_mode, phase;
  std::string attributes_class;  ///< spec.volumeAttributesClassName
  std::vector<std::string> access_modes;
  Quantity request;  ///< spec.resources.requests.storage
  std::optional<Selector> selector;
  std::string selector_error;
  static PersistentVolumeClaimView parse(const json::Value& object);
};

struct StorageClassView {
  ObjectMeta meta;
  std::string provisioner;
  bool wait_for_first_consumer = false;
  bool has_binding_mode = false;
  /// allowedTopologies: terms ORed, expressions (key in values) ANDed.
  std::vector<std::vector<std::pair<std::string, std::vector<std::string>>>> allowed_topologies;
  static StorageClassView parse(const json::Value& object);
};

struct CsiNodeDriver {
  std::string name, node_id;
  std::optional<std::int64_t> count;  ///< allocatable.count
  std::vector<std::string> topology_keys;
};

struct CsiNodeView {
  ObjectMeta meta;
  std::vector<CsiNodeDriver> drivers;
  static CsiNodeView parse(const json::Value& object);
};

struct CsiDriverView {
  ObjectMeta meta;
  bool storage_capacity = false;
  bool attach_required = true;
  static CsiDriverView parse(const json::Value& object);
};

struct VolumeAttachmentView {
  ObjectMeta meta;
  std::string attacher, node_name;
  std::string volume_name;  ///< spec.source.persistentVolumeName; empty for an inline volume.
  static VolumeAttachmentView parse(const json::Value& object);
};

struct CsiStorageCapacityView {
  ObjectMeta meta;
  std::string storage_class;
  std::optional<Selector> node_topology;  ///< Absent: no node.
  std::optional<Quantity> capacity, maximum_volume_size;
  static CsiStorageCapacityView parse(const json::Value& object);
};

}  // namespace berth::model
