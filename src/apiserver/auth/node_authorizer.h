// What the user system:node:NAME may do: what its pods need, and its own objects (plugin/pkg/auth/authorizer/node).
#pragma once
#include <optional>
#include <string>

#include "apiserver/auth/interfaces.h"
#include "apiserver/auth/rbac_rules.h"
#include "apiserver/cache/object_cache.h"

namespace berth::apiserver::auth {

/// The node's name when the user is one: system:node:NAME in the group system:nodes.
std::optional<std::string> node_name_of(const UserInfo& user);

/// Thread-safe. Whether an object belongs to a node's pods is looked up when it is asked for: the cost is that of looking at the pods of
/// one namespace, and of parsing those of the node that may refer to it.
class NodeAuthorizer {
 public:
  explicit NodeAuthorizer(const ObjectCache& cache);
  /// Not allowed is no refusal: other authorizers are asked then. `reason` says what was missing. nullopt: it takes longer than a moment,
  /// and must not.
  [[nodiscard]] std::optional<Authorizer::Decision> authorize(const std::string& node, const Attributes& attributes,
                                                              bool may_take_long) const;

 private:
  struct Effort {
    bool may_take_long = false, gave_up = false;
  };
  [[nodiscard]] Authorizer::Decision decide(const std::string& node, const Attributes& attributes, Effort& effort) const;
  [[nodiscard]] Authorizer::Decision read_for_pods(const std::string& node, const Attributes& attributes, Effort& effort) const;
  [[nodiscard]] Authorizer::Decision volume(const std::string& node, const Attributes& attributes, Effort& effort) const;
  [[nodiscard]] Authorizer::Decision own_object(const std::string& node, const Attributes& attributes, std::string_view what) const;
  [[nodiscard]] Authorizer::Decision node_object(const std::string& node, const Attributes& attributes) const;
  [[nodiscard]] Authorizer::Decision pod(const std::string& node, const Attributes& attributes) const;
  [[nodiscard]] Authorizer::Decision resource_slice(const std::string& node, const Attributes& attributes) const;
  /// The name service of berth's nodes: its Service, where there is none yet, and the node's own part of it.
  [[nodiscard]] static bool is_name_service(const std::string& node, const Attributes& attributes);
  [[nodiscard]] Authorizer::Decision by_rules(const Attributes& attributes) const;
  /// Does a pod on the node, in the namespace, refer to that secret, configmap, persistentvolumeclaim or serviceaccount?
  [[nodiscard]] bool is_referred_to(const std::string& node, std::string_view ns, std::string_view resource, std::string_view name,
                                    Effort& effort) const;
  /// Does a pod on the node use the claim that the PersistentVolume is bound to?
  [[nodiscard]] bool is_claimed(const std::string& node, const json::Value& volume, Effort& effort) const;
  /// Is it a secret that such a PersistentVolume names for the node's own calls?
  [[nodiscard]] bool is_secret_of_volume(const std::string& node, std::string_view ns, std::string_view name, Effort& effort) const;
  /// Gives up where there are too many to look at in a moment.
  [[nodiscard]] bool takes_long(const WatchFilter& filter, Effort& effort) const;

  const ObjectCache& cache_;
  std::vector<PolicyRule> rules_;
};

}  // namespace berth::apiserver::auth
