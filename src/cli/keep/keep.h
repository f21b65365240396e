// Commands about a cluster's data as such: snapshots and checks (docs/operations.md).
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

int run_snapshot(const std::vector<std::string>& args);
int run_check(const std::vector<std::string>& args);

}  // namespace berth::cli
