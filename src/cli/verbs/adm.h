// The verbs of `adm`. Each takes the words after its own.
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

int run_taint(const std::vector<std::string>& args);
int run_cordon(const std::vector<std::string>& args);
int run_uncordon(const std::vector<std::string>& args);
int run_drain(const std::vector<std::string>& args);
int run_manage_node(const std::vector<std::string>& args);  ///< OpenShift 3's: --list-pods, --evacuate, --schedulable.
int run_adm_new_project(const std::vector<std::string>& args);
int run_policy(const std::vector<std::string>& args);  ///< add-role-to-user and its siblings.

int run_adm_kubeconfig(const std::vector<std::string>& args);
int run_adm_revoke(const std::vector<std::string>& args);
int run_adm_rotate(const std::vector<std::string>& args);

struct AdmVerb {
  std::string name, summary;
  int (*run)(const std::vector<std::string>& args);
};
const std::vector<AdmVerb>& adm_verbs();
/// The verbs of `adm policy`, in help order.
std::vector<std::string> policy_verbs();

}  // namespace berth::cli
