// The subcommands that answer questions about placement.
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

int run_explain(const std::vector<std::string>& args);
int run_place(const std::vector<std::string>& args);
int run_what_if(const std::vector<std::string>& args);
int run_capacity(const std::vector<std::string>& args);
int run_pack(const std::vector<std::string>& args);
int run_pools(const std::vector<std::string>& args);

}  // namespace berth::cli
