// What a simulated node answers on the kubelet's paths: honest about being simulated.
#pragma once
#include <string>

#include "net/http.h"
#include "node/simulated/fleet.h"

namespace berth::node::simulated {

/// Answers /containerLogs/NS/POD/CONTAINER, /stats/summary, /healthz, and /exec by a small shell in memory; 501 for attach and
/// port-forward (nothing runs that could answer), 404 for the rest.
void answer_kubelet_request(const Fleet& fleet, const std::string& node, const net::HttpRequest& request, net::ResponseWriter& writer,
                            TimePoint now);

}  // namespace berth::node::simulated
