// The expander grpc: somebody else chooses among the groups (the autoscaler project's expander/grpcplugin).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autoscaler/external/channel.h"

namespace berth::autoscaler {
struct ExpansionOption;
}

namespace berth::autoscaler::external {

/// BestOptionsRequest. Pods and nodes with what the scheduler goes by: names, labels, requests, taints, amounts.
json::Value best_options_request(const std::vector<ExpansionOption>& options);
/// The groups of a BestOptionsResponse.
std::vector<std::string> groups_of_answer(const json::Value& answer);

/// `url`: host:port; with `ca_pem` by TLS. Calls block for five seconds at most.
Result<std::function<Result<std::vector<std::string>>(const std::vector<ExpansionOption>&)>> connect_expander(const std::string& url,
                                                                                                              const std::string& ca_pem);

}  // namespace berth::autoscaler::external
