// Sessions, logs and proxied requests: to the agent of the pod's node, or to the pods themselves.
#pragma once
#include "apiserver/relays/relay.h"

namespace berth::apiserver {

/// Finds where such a request goes and sends it on. Thread-safe.
class NodeProxy {
 public:
  /// All outlive this.
  NodeProxy(const Ground& ground, Responder& respond, Relays& relays, const NodeBackend& backend)
      : ground_(ground), respond_(respond), relays_(relays), backend_(backend) {}

  /// log, exec, attach, portforward, proxy of a pod, a service or a node; authorised and admitted.
  void serve(const RequestPtr& request);

 private:
  /// To the agent of the node, which may live in this process.
  void to_agent(const RequestPtr& request, const std::string& node, net::HttpRequest onward);
  /// nodes/[SCHEME:]NAME[:PORT]/proxy (pkg/registry/core/node ResourceLocation): the agent, or what else listens on a node's port.
  /// To the same place with a slash.
  void move_on(const RequestPtr& request);
  void to_port(const RequestPtr& request, net::HttpRequest onward);

  const Ground& ground_;
  Responder& respond_;
  Relays& relays_;
  const NodeBackend& backend_;  ///< May be empty.
};

}  // namespace berth::apiserver
