// The long-running roles of the binary; each returns the process's exit code.
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

int run_up(const std::vector<std::string>& args);
int run_server(const std::vector<std::string>& args);
int run_scheduler(const std::vector<std::string>& args);
int run_descheduler(const std::vector<std::string>& args);
int run_controllers(const std::vector<std::string>& args);
int run_nodes(const std::vector<std::string>& args);
int run_webhook(const std::vector<std::string>& args);
int run_autoscaler(const std::vector<std::string>& args);
int run_queues(const std::vector<std::string>& args);
int run_node(const std::vector<std::string>& args);
int run_dashboard(const std::vector<std::string>& args);

}  // namespace berth::cli
