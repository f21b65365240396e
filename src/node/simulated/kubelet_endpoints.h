// What a simulated node answers on the kubelet's paths: honest about being simulated.
#pragma once
#include <string>

#include "net/http.h"
#include "node/simulated/exec_sessions.h"
#include "node/simulated/fleet.h"

namespace berth::node::simulated {

/// Answers /containerLogs/NS/POD/CONTAINER, /stats/summary and /healthz; exec, attach and port-forward over WebSocket by `sessions`, with
/// 501 over anything else (no process runs that could answer); 404 for the rest.
void answer_kubelet_request(const Fleet& fleet, ExecSessions& sessions, const std::string& node, const net::HttpRequest& request,
                            net::ResponseWriter& writer, TimePoint now);

}  // namespace berth::node::simulated
