// What placement and the node controllers read of a Node, parsed once per revision.
#pragma once
#include <memory>

#include "model/views/common.h"

namespace berth::model {

struct NodeImage {
  std::vector<std::string> names;
  std::int64_t size_bytes = 0;
  [[nodiscard]] auto parts() const { return std::tie(names, size_bytes); }
};

struct NodeCondition {
  std::string type, status, reason;
  std::string last_transition{};  ///< RFC 3339 as given.
  [[nodiscard]] auto parts() const { return std::tie(type, status, reason, last_transition); }
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
  SharedResourceList allocatable, capacity;
  SharedList<NodeCondition> conditions;
  SharedList<NodeImage> images;
  SharedList<std::string> declared_features;  ///< status.declaredFeatures
  std::vector<AvoidedController> avoided_controllers;

  static NodeView parse(const json::Value& node);
  [[nodiscard]] const std::string& name() const { return meta.name; }
  [[nodiscard]] const Labels& labels() const { return meta.labels; }
};
using NodeViewPtr = std::shared_ptr<const NodeView>;

}  // namespace berth::model
