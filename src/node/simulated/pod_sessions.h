// exec into a simulated pod: a WebSocket at whose other end a small shell in memory answers (pod_shell.h).
#pragma once
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/http.h"

namespace berth::node::simulated {

/// Who is asked: worlds are kept by uid and container, those of the 256 pods asked last.
struct ExecTarget {
  std::string pod_uid, pod, ns, container;
};

/// Answers a kubelet's /exec (parameters input, output, error, tty, command) by v5, v4 or plain channel.k8s.io; 400 with a Status for other
/// protocols.
void answer_exec(const ExecTarget& target, const net::HttpRequest& request, net::ResponseWriter& writer, TimePoint now);

}  // namespace berth::node::simulated
