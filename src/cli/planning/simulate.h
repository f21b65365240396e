// berth simulate and berth record.
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

int run_simulate(const std::vector<std::string>& args);
int run_record(const std::vector<std::string>& args);

}  // namespace berth::cli
