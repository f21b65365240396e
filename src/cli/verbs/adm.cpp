// adm: the table of its verbs.
#include "cli/verbs/adm.h"

#include <algorithm>
#include <cstdio>

#include "cli/command/kubectl_words.h"
#include "cli/command/parse.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {

const std::vector<AdmVerb>& adm_verbs() {
  static const std::vector<AdmVerb> table = {
      {"taint", "add, replace or remove taints of nodes", run_taint},
      {"cordon", "mark nodes unschedulable", run_cordon},
      {"uncordon", "mark nodes schedulable", run_uncordon},
      {"drain", "cordon nodes and evict their pods", run_drain},
      {"manage-node", "list or evacuate nodes' pods, mark nodes schedulable or not", run_manage_node},
      {"new-project", "make a namespace with a project node selector", run_adm_new_project},
      {"kubeconfig", "make a kubeconfig for a user and groups, for as long as is said", run_adm_kubeconfig},
      {"revoke", "refuse client certificates before they end", run_adm_revoke},
      {"rotate", "exchange the cluster's authority or the key that signs tokens", run_adm_rotate},
      {"policy", "give roles to users, groups and accounts, and take them away", run_policy},
  };
  return table;
}

int run_adm(const std::vector<std::string>& args) {
  const std::string verb = args.empty() ? "" : args[0];
  const std::vector<std::string> rest(args.empty() ? args.begin() : args.begin() + 1, args.end());
  const auto found = std::ranges::find(adm_verbs(), verb, &AdmVerb::name);
  if (found != adm_verbs().end()) return found->run(rest);
  const bool help = verb == "--help" || verb == "-h";
  std::FILE* out = help ? stdout : stderr;
  if (!help && !verb.empty()) {
    std::vector<std::string> names;
    for (const AdmVerb& one : adm_verbs()) names.push_back(one.name);
    const std::string instead = instead_of_adm(verb, rest);
    if (!instead.empty())
      std::fprintf(stderr, "error: %s\n", instead.c_str());
    else
      std::fprintf(stderr, "error: unknown %s \"%s\" for \"%s adm\"%s\n", verb.starts_with('-') ? "flag" : "command", verb.c_str(),
                   program_name().c_str(), did_you_mean(verb, names).c_str());
    return 2;
  }
  std::fprintf(out, "Usage: %s adm VERB\n", program_name().c_str());
  for (const AdmVerb& one : adm_verbs()) std::fprintf(out, "  %-13s %s\n", one.name.c_str(), one.summary.c_str());
  return help ? 0 : 2;
}

}  // namespace berth::cli
