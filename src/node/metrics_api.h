// metrics.k8s.io/v1beta1 (what metrics-server is elsewhere): use of nodes and pods, asked of the nodes' Summary API through the node proxy
// when somebody wants to know, and kept for a few seconds. Real and simulated nodes alike.
#pragma once
#include <memory>
#include <string>

#include "client/transport.h"
#include "net/http.h"

namespace berth::node {

/// Mount with ApiServer::mount_group_version("metrics.k8s.io", "v1beta1", …) before serving. Owns a thread.
class MetricsApi final : public net::Handler {
 public:
  MetricsApi();
  ~MetricsApi() override;
  /// How it reaches the API server; requests before that are answered 503. The transport must outlive the last request (see stop).
  void connect(std::shared_ptr<client::Transport> transport);
  /// No request to the API server is made after this; later questions are answered 503.
  void stop();
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::node
