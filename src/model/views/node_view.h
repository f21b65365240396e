// What placement and the node controllers read of a Node, parsed once per revision.
#pragma once
#include <memory>

#include "model/views/common.h"

namespace berth::model {

struct NodeImage {
  std::vector<std::string> names;
  std::int64_t size_bytes = 0;
};

struct NodeCondition {
  std::string type, status, reason;
  std::string last_transition{};  ///< RFC 3339 as given.
};

/// The annotation scheduler.alpha.kubernetes.io/preferAvoidPods: controllers whose pods are better kept away.
struct AvoidedController {
  std::string kind, uid;
};

struct NodeView {
  ObjectMeta meta;
  bool unschedulable = false;
  std::vector<Taint> taints;
  std::string provider_id;  ///< spec.providerID
  ResourceList allocatable, capacity;
  std::vector<NodeCondition> conditions;
  std::vector<NodeImage> images;
  std::vector<std::string> declared_features;  ///< status.declaredFeatures
  std::vector<AvoidedController> avoided_controllers;

  static NodeView parse(const json::Value& node);
  [[nodiscard]] const std::string& name() const { return meta.name; }
  [[nodiscard]] const Labels& labels() const { return meta.labels; }
};
using NodeViewPtr = std::shared_ptr<const NodeView>;

}  // namespace berth::model
