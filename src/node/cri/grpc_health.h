// The gRPC health protocol (grpc.health.v1), for gRPC probes.
#pragma once
#include <optional>
#include <string>

namespace berth::node::cri {

/// Asks `address` (host:port, without TLS) after a service's health: nullopt when it is SERVING, otherwise what a kubelet's event says.
/// Blocks up to `timeout_ms`.
[[nodiscard]] std::optional<std::string> check_grpc_health(const std::string& address, const std::string& service, int timeout_ms);

/// The serialised HealthCheckRequest, and the status number of a HealthCheckResponse (-1: not readable).
[[nodiscard]] std::string health_request(const std::string& service);
[[nodiscard]] int health_status(const std::string& response);

}  // namespace berth::node::cri
