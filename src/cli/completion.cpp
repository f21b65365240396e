#include "cli/completion.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <set>

#include "cli/command/commands.h"
#include "cli/command/parse.h"
#include "cli/verbs/adm.h"
#include "cli/verbs/create_named.h"
#include "model/kinds.h"

namespace berth::cli {
namespace {

/// A bash function; zsh takes the same one through bashcompinit. Flags come from --help and names from the cluster, so that neither is
/// ever out of date.
constexpr const char* kScript = R"sh(_@P@_names() { # _@P@_names TYPE: of the objects in the cluster and namespace that the line speaks of
  local i from=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -n|--namespace|--kubeconfig|--context)
        [ "${COMP_WORDS[i+1]}" = = ] && from+=("${COMP_WORDS[i]}=${COMP_WORDS[i+2]}") || from+=("${COMP_WORDS[i]}" "${COMP_WORDS[i+1]}") ;;
    esac
  done
  timeout 3 @P@ get "$1" "${from[@]}" -o name 2>/dev/null | sed 's,^[^/]*/,,'
}
_@P@() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words= second= i plain=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "@COMMANDS@" -- "$cur"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -n|--namespace|--kubeconfig|--context|-o|--output|-l|--selector|-f|--filename|--cluster) [ "${COMP_WORDS[i+1]}" = = ] && i=$((i + 1)); i=$((i + 1)) ;;
      -*|=) ;;
      *) plain+=("${COMP_WORDS[i]}") ;;
    esac
  done
  case $command in adm|create) second=${plain[0]} ;; esac
  case $cur in -*)
    COMPREPLY=($(compgen -W "$(@P@ "$command" $second --help 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]*' | sort -u)" -- "$cur"))
    return ;;
  esac
  case $before in
    -n|--namespace) words=$(_@P@_names namespaces) ;;
    --drain|--fail|--remove|--cordon|--uncordon) words=$(_@P@_names nodes) ;;
    -o|--output) words="json yaml name wide text html" ;;
    -f|--filename|--file|--config|--kubeconfig|--cluster|--pod|--pods) ;;
    *) case $command-${#plain[@]} in
         get-0|describe-0|delete-0|label-0|annotate-0)
           case $cur in
             */*) words=$(_@P@_names "${cur%%/*}" | sed "s,^,${cur%%/*}/,") ;;
             *) words="@TYPES@" ;;
           esac ;;
         get-*|describe-*|delete-*|label-*|annotate-*|explain-1) words=$(_@P@_names "${plain[0]}") ;;
         project-0) words=$(_@P@_names namespaces) ;;
@CASES@         adm-*)
           case $second-${#plain[@]} in
             taint-1) words=nodes ;;
             cordon-*|uncordon-*|drain-*|manage-node-*|taint-*) words=$(_@P@_names nodes) ;;
           esac ;;
       esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  [ -n "$words" ] || COMPREPLY=($(compgen -f -- "$cur"))
}
complete -F _@P@ @P@
)sh";

/// Commands whose next word is one of a few.
std::vector<std::pair<std::string, std::string>> next_words() {
  std::vector<std::string> verbs;
  for (const AdmVerb& verb : adm_verbs()) verbs.push_back(verb.name);
  return {{"adm", fmt::format("{}", fmt::join(verbs, " "))},
          {"create", fmt::format("{}", fmt::join(creatable_types(), " "))},
          {"completion", "bash zsh"},
          {"token", "create list delete"},
          {"node", "join reset"},
          {"snapshot", "save verify restore move"},
          {"explain", "pod node"}};
}

std::string types_shown() {
  std::set<std::string> types;
  for (const model::KindInfo& kind : model::all_kinds())
    if (kind.has_verb("list")) types.insert(kind.plural);
  return fmt::format("{}", fmt::join(types, " "));
}

void replace_all(std::string& text, std::string_view mark, const std::string& with) {
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + with.size()))
    text.replace(at, mark.size(), with);
}

}  // namespace

int run_completion(const std::vector<std::string>& args) {
  CLI::App app("Prints shell completion: source <(berth completion bash), or zsh", "berth completion");
  std::string shell = "bash";
  app.add_option("shell", shell, "bash or zsh")->capture_default_str()->check(CLI::IsMember({"bash", "zsh"}));
  if (const auto code = parse_args(app, args)) return *code;
  std::string names, cases, text = kScript;
  for (const Command& command : commands()) names += (names.empty() ? "" : " ") + command.name;
  for (const auto& [command, words] : next_words()) cases += fmt::format("         {}-0) words=\"{}\" ;;\n", command, words);
  replace_all(text, "@COMMANDS@", names);
  replace_all(text, "@CASES@", cases);
  replace_all(text, "@TYPES@", types_shown());
  replace_all(text, "@P@", program_name());
  std::printf("# source <(%s completion %s)\n", program_name().c_str(), shell.c_str());
  if (shell == "zsh") std::printf("autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n");
  std::printf("%s", text.c_str());
  return 0;
}

}  // namespace berth::cli
