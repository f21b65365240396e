#include "cli/commands.h"

#include <algorithm>
#include <cstdio>

#include "base/version.h"
#include "cli/command/configuration.h"
#include "cli/command/kubectl_words.h"
#include "cli/command/parse.h"
#include "cli/completion.h"
#include "cli/keep/keep.h"
#include "cli/planning/placement_commands.h"
#include "cli/planning/plugins.h"
#include "cli/planning/simulate.h"
#include "cli/roles/roles.h"
#include "cli/verbs/adm.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {
namespace {

int run_version(const std::vector<std::string>&) {
  fmt::print("berth {} (Kubernetes API {})\n", kBerthVersion, kKubernetesVersion);
  return 0;
}

void print_help(std::FILE* out) {
  std::fprintf(out,
               "berth places pods on nodes and keeps them well placed: a Kubernetes-compatible control plane in one binary.\n\nUsage: "
               "%s [--log-level LEVEL] [--log-format text|json] [--plugin FILE.so …] COMMAND [flags]\n",
               program_name().c_str());
  std::string group;
  for (const Command& command : commands()) {
    if (command.group != group) std::fprintf(out, "\n%s:\n", command.group.c_str());
    group = command.group;
    std::fprintf(out, "  %-12s %s\n", command.name.c_str(), command.summary.c_str());
  }
  std::fprintf(out, "\n%s COMMAND --help tells a command's flags. What is not here, kubectl does: the same kubeconfig works.\n",
               program_name().c_str());
}

/// A word that is no command: kubectl's verbs of nodes are adm's, other words of kubectl and oc say what to type, slips what was meant.
int run_unknown(const std::string& name, const std::vector<std::string>& args) {
  for (const char* verb : {"taint", "cordon", "uncordon", "drain"})
    if (name == verb) {
      std::vector<std::string> words{name};
      words.insert(words.end(), args.begin(), args.end());
      return run_adm(words);
    }
  if (const std::string instead = instead_of_command(name, args); !instead.empty()) {
    std::fprintf(stderr, "error: %s\n", instead.c_str());
    return 2;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  std::fprintf(stderr, "error: unknown %s \"%s\"%s\nRun %s --help for the commands.\n", name.starts_with('-') ? "flag" : "command",
               name.c_str(), did_you_mean(name, names).c_str(), program_name().c_str());
  return 2;
}

int refuse(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  return 2;
}

std::string& program() {
  static std::string name = "berth";
  return name;
}

}  // namespace

std::string program_name() { return program(); }
void set_program_name(std::string_view argv0) {
  // Only names that people link it to; a copy such as berth-1.2 is still berth.
  if (argv0.substr(argv0.rfind('/') + 1) == "oc") program() = "oc";
}

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {"up", "a whole cluster in one process: API server, scheduler, controllers, simulated nodes", "Run a control plane", run_up},
      {"server", "the API server alone, on its embedded store or on etcd", "Run a control plane", run_server},
      {"scheduler", "the scheduler, for this or any Kubernetes API server", "Run a control plane", run_scheduler},
      {"controllers", "the controllers: workloads, node life cycle, taint eviction, garbage collection", "Run a control plane",
       run_controllers},
      {"descheduler", "moves pods that have a better place by now: once, on a schedule, or as a plan only", "Run a control plane",
       run_descheduler},
      {"autoscaler", "adds nodes for pods without room, removes nodes without need", "Run a control plane", run_autoscaler},
      {"queues", "queues with quotas and fair shares for Jobs and pods, by Kueue's API", "Run a control plane", run_queues},
      {"node", "this machine as a node: real containers through containerd", "Run a control plane", run_node},
      {"nodes", "simulated nodes, thousands in one process", "Run a control plane", run_nodes},
      {"dashboard", "a cluster in the browser: its map, pending pods, what happens, what if", "Run a control plane", run_dashboard},
      {"webhook", "an admission webhook that gives pods tolerations and node affinity by rules", "Run a control plane", run_webhook},
      {"snapshot", "a cluster's data in one file: save, verify, restore; move between SQLite and etcd", "Keep data", run_snapshot},
      {"check", "whether a store is sound, from its structure to its objects", "Keep data", run_check},
      {"create", "create the objects of files", "Work with objects", run_create},
      {"apply", "apply the objects of files (server-side)", "Work with objects", run_apply},
      {"get", "show objects", "Work with objects", run_get},
      {"describe", "show one object in full, with its events", "Work with objects", run_describe},
      {"delete", "delete objects", "Work with objects", run_delete},
      {"label", "set or remove labels", "Work with objects", run_label},
      {"annotate", "set or remove annotations", "Work with objects", run_annotate},
      {"adm", "taint, cordon, uncordon and drain nodes, new-project, policy", "Work with objects", run_adm},
      {"new-project", "make a project (a namespace) and use it", "Who and where", run_new_project},
      {"project", "tell or change which project is used", "Who and where", run_project},
      {"projects", "list the projects", "Who and where", run_projects},
      {"login", "log in with a token, or as another user", "Who and where", run_login},
      {"whoami", "tell who you are", "Who and where", run_whoami},
      {"token", "tokens that machines join with: create, list, delete", "Who and where", run_token},
      {"explain", "why a pod is where it is, or why it is pending", "Ask about placement", run_explain},
      {"place", "where pods would go, and how many more fit", "Ask about placement", run_place},
      {"what-if", "what would happen: nodes drained, lost or added, workloads applied or scaled", "Ask about placement", run_what_if},
      {"simulate", "a cluster's days in seconds, from a scenario", "Ask about placement", run_simulate},
      {"record", "what happens to a cluster, as a file that simulate and the dashboard replay", "Ask about placement", run_record},
      {"capacity", "how many more of a pod fit, by zone and node, and what stops the next one", "Ask about placement", run_capacity},
      {"pack", "the fewest nodes for what runs, and the order of evictions that gets there", "Ask about placement", run_pack},
      {"pools", "the cheapest nodes for the pods that wait, and the nodes that are not worth their price", "Ask about placement",
       run_pools},
      {"version", "print the version", "Other", run_version},
      {"completion", "print shell completion (bash, zsh)", "Other", run_completion},
  };
  return table;
}

int main(int argc, char** argv) {
  if (argc > 0) set_program_name(argv[0]);
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  // The documents type it as a program of its own (002 §16.2.4.1): linked to berth it says what to do instead.
  constexpr std::string_view kRestart = "master-restart";
  if (const std::string_view called = argc > 0 ? argv[0] : ""; called.substr(called.rfind('/') + 1) == kRestart)
    return run_unknown(std::string(kRestart), args);
  if (const auto taken = take_log_flags(args); !taken) return refuse(taken.error());
  const auto plugins = take_plugin_flags(args);
  if (!plugins) return refuse(plugins.error());
  for (const std::string& file : *plugins)
    if (const auto loaded = load_plugins(file); !loaded) return refuse(loaded.error());
  std::string name = "--help";
  if (!args.empty()) {
    name = args.front();
    args.erase(args.begin());
  }
  if (name == "--version") name = "version";
  if (const auto late =
          std::ranges::find_if(args, [](const std::string& arg) { return arg == "--plugin" || arg.starts_with("--plugin="); });
      late != args.end())
    return refuse({ErrorCode::kInvalid, fmt::format("--plugin goes before the command: {} --plugin FILE.so {} …", program_name(), name)});
  if (name == "help" && !args.empty() && !args.front().starts_with('-')) {
    name = args.front();  // berth help COMMAND …
    args.erase(args.begin());
    args.emplace_back("--help");
  }
  if (name == "--help" || name == "-h" || name == "help") {
    print_help(stdout);
    return 0;
  }
  for (const Command& command : commands())
    if (command.name == name) return command.run(args);
  return run_unknown(name, args);
}

}  // namespace berth::cli
