// `berth completion`: what a shell offers for a word that is being typed, names of the cluster's objects among it.
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

int run_completion(const std::vector<std::string>& args);

}  // namespace berth::cli
