// A node's NodeResourceTopology in the API, where that has the kind: schedulers know beforehand which pods the node would refuse.
#pragma once
#include <string>

#include "base/lifeline.h"
#include "client/client.h"
#include "node/numa/topology_report.h"

namespace berth::node::agent {

/// Lives on its client's loop: every call, and the destructor.
class TopologyReporter {
 public:
  TopologyReporter(client::Client& client, const Clock& clock, std::string node_name)
      : client_(client), clock_(clock), node_name_(std::move(node_name)) {}
  /// Written where it is another than what was written last. What the server does not take is written again with the first report a minute
  /// later: the kind may be installed any time.
  void tell(numa::TopologyReport report);

 private:
  client::Client& client_;
  const Clock& clock_;
  const std::string node_name_;
  std::string told_;
  TimePoint not_before_{};
  bool has_warned_ = false;
  Lifeline lifeline_;
};

}  // namespace berth::node::agent
