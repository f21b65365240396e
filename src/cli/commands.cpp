#include "cli/commands.h"

#include <cstdio>

#include "cli/placement_commands.h"
#include "cli/roles.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {
namespace {

int run_version(const std::vector<std::string>&) {
  std::printf("berth 0.1.0 (Kubernetes API v1.32)\n");
  return 0;
}

int run_completion(const std::vector<std::string>& args) {
  const std::string shell = args.empty() ? "bash" : args[0];
  std::string names;
  for (const Command& command : commands()) names += command.name + " ";
  if (shell == "bash") {
    std::printf("# source <(berth completion bash)\n_berth() {\n  local cur=${COMP_WORDS[COMP_CWORD]}\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                "    COMPREPLY=($(compgen -W \"%s\" -- \"$cur\"))\n  else\n    local flags\n"
                "    flags=$(berth \"${COMP_WORDS[1]}\" --help 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]*' | sort -u)\n"
                "    COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n  fi\n}\ncomplete -F _berth berth\n", names.c_str());
  } else if (shell == "zsh") {
    std::printf("# source <(berth completion zsh)\nautoload -U +X bashcompinit && bashcompinit\nsource <(berth completion bash)\n");
  } else {
    std::fprintf(stderr, "error: no completion for \"%s\"; there is bash and zsh\n", shell.c_str());
    return 2;
  }
  return 0;
}

void print_help(std::FILE* out) {
  std::fprintf(out, "berth places pods on nodes and keeps them well placed: a Kubernetes-compatible control plane in one binary.\n\nUsage: berth COMMAND [flags]\n");
  std::string group;
  for (const Command& command : commands()) {
    if (command.group != group) std::fprintf(out, "\n%s:\n", command.group.c_str());
    group = command.group;
    std::fprintf(out, "  %-12s %s\n", command.name.c_str(), command.summary.c_str());
  }
  std::fprintf(out, "\nberth COMMAND --help tells a command's flags.\n");
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {"up", "a whole cluster in one process: API server, scheduler, controllers, simulated nodes", "Run a control plane", run_up},
      {"server", "the API server alone, on its embedded store", "Run a control plane", run_server},
      {"scheduler", "the scheduler, for this or any Kubernetes API server", "Run a control plane", run_scheduler},
      {"controllers", "the controllers: workloads, node life cycle, taint eviction, garbage collection", "Run a control plane", run_controllers},
      {"node", "this machine as a node: real containers through containerd", "Run a control plane", run_node},
      {"nodes", "simulated nodes, thousands in one process", "Run a control plane", run_nodes},
      {"create", "create the objects of files", "Work with objects", run_create},
      {"apply", "apply the objects of files (server-side)", "Work with objects", run_apply},
      {"get", "show objects", "Work with objects", run_get},
      {"describe", "show one object in full, with its events", "Work with objects", run_describe},
      {"delete", "delete objects", "Work with objects", run_delete},
      {"label", "set or remove labels", "Work with objects", run_label},
      {"annotate", "set or remove annotations", "Work with objects", run_annotate},
      {"adm", "taint nodes, cordon, uncordon, drain, new-project", "Work with objects", run_adm},
      {"explain", "why a pod is where it is, or why it is pending", "Ask about placement", run_explain},
      {"place", "where pods would go, and how many more fit", "Ask about placement", run_place},
      {"parity", "replay recorded decisions of kube-scheduler and kubelet", "Ask about placement", run_parity},
      {"version", "print the version", "Other", run_version},
      {"completion", "print shell completion (bash, zsh)", "Other", run_completion},
  };
  return table;
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "--help";
  if (name == "--help" || name == "-h" || name == "help") {
    print_help(stdout);
    return 0;
  }
  for (const Command& command : commands())
    if (command.name == name) return command.run(std::vector<std::string>(argv + 2, argv + argc));
  std::fprintf(stderr, "error: unknown command \"%s\"\n\n", name.c_str());
  print_help(stderr);
  return 2;
}

}  // namespace berth::cli
