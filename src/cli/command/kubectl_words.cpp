#include "cli/command/kubectl_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/config_reader.h"
#include "cli/command/process.h"
#include "model/kinds.h"

namespace berth::cli {
namespace {

/// A word and what stands for it: with a sentence, or the same verb of kubectl when `instead` is empty.
struct Word {
  std::string_view word, instead;
};

constexpr Word kKubectlCommands[] = {
    {"alpha", ""},       {"api-resources", ""}, {"api-versions", ""}, {"attach", ""},       {"auth", ""},      {"autoscale", ""},
    {"certificate", ""}, {"cluster-info", ""},  {"config", ""},       {"cp", ""},           {"debug", ""},     {"diff", ""},
    {"edit", ""},        {"events", ""},        {"exec", ""},         {"expose", ""},       {"kustomize", ""}, {"logs", ""},
    {"options", ""},     {"patch", ""},         {"plugin", ""},       {"port-forward", ""}, {"proxy", ""},     {"replace", ""},
    {"rollout", ""},     {"run", ""},           {"scale", ""},        {"set", ""},          {"top", ""},       {"wait", ""},
};

/// oc's own, and what does the same with kubectl; "ARGS" stands for what was typed after the word.
constexpr Word kOcCommands[] = {
    {"cancel-build", "builds are not part of berth"},
    {"debug-node", "kubectl debug node/ARGS"},
    {"deploy", "kubectl rollout restart deployment/ARGS"},
    {"ex", "that is OpenShift's own"},
    {"export", "kubectl get ARGS -o yaml"},
    {"extract", "kubectl get ARGS -o jsonpath='{.data}'"},
    {"env", "kubectl set env ARGS"},
    {"idle", "kubectl scale --replicas=0 ARGS"},
    {"image", "there are no image streams; images are named by their registry"},
    {"import-image", "there are no image streams; images are named by their registry"},
    {"logout", "kubectl config unset current-context"},
    {"master-logs",
     "each role logs to standard error, as a unit of systemd to `journalctl -u berth-server` (berth-scheduler, berth-controllers)"},
    {"master-restart",
     "the API server, the controllers and the scheduler of `berth up` are one process: stop it (Ctrl-C) and start it with the same flags "
     "and "
     "--data-dir, all objects are kept; roles of their own are started again one by one (systemctl restart berth-server, "
     "berth-controllers, "
     "berth-scheduler). Their files (--master-config, --policy-config-file) are read at a start; --validate looks at them before"},
    {"new-app", "kubectl create deployment NAME --image=IMAGE"},
    {"new-build", "builds are not part of berth"},
    {"observe", "kubectl get ARGS --watch"},
    {"policy", "berth adm policy ARGS"},
    {"process", "there are no Templates; kubectl kustomize DIR fills manifests in"},
    {"registry", "there is no registry; images are named by theirs"},
    {"rollback", "kubectl rollout undo ARGS"},
    {"rsh", "kubectl exec -it ARGS -- sh"},
    {"rsync", "kubectl cp ARGS"},
    {"secrets", "kubectl create secret generic ARGS"},
    {"start-build", "builds are not part of berth"},
    {"status", "kubectl get all"},
    {"tag", "there are no image streams; images are named by their registry"},
    {"types", "kubectl explain"},
    {"volume", "kubectl edit ARGS"},
};

constexpr Word kAdmCommands[] = {
    {"build-chain", "builds are not part of berth"},
    {"certificate", "kubectl certificate ARGS"},
    {"diagnostics", "kubectl cluster-info dump"},
    {"groups", "groups come with a certificate or token"},
    {"inspect", "kubectl describe ARGS"},
    {"must-gather", "kubectl cluster-info dump --output-directory=DIR"},
    {"node-logs", "kubectl logs, or journalctl on the node"},
    {"pod-network", "kubectl get networkpolicies"},
    {"prune", "kubectl delete ARGS"},
    {"top", "kubectl top ARGS"},
    {"upgrade", "stop berth, put the new binary in its place, start it on the same data"},
    {"wait-for-stable-cluster", "kubectl wait --for=condition=Ready nodes --all"},
};

constexpr Word kOcTypes[] = {
    {"buildconfigs", "builds are not part of berth"},
    {"builds", "builds are not part of berth"},
    {"bc", "builds are not part of berth"},
    {"clusterversions", "`berth version` tells berth's"},
    {"deploymentconfigs", "a Deployment does the same"},
    {"dc", "a Deployment does the same"},
    {"groups", "groups come with a certificate or token"},
    {"identities", "users come with a certificate or token; `berth whoami` tells yours"},
    {"imagestreams", "images are named by their registry"},
    {"is", "images are named by their registry"},
    {"oauthclients", "users come with a certificate or token"},
    {"routes", "an Ingress is stored; nothing serves it"},
    {"route", "an Ingress is stored; nothing serves it"},
    {"scc", "a namespace's label pod-security.kubernetes.io/enforce sets what pods may ask for"},
    {"securitycontextconstraints", "a namespace's label pod-security.kubernetes.io/enforce sets what pods may ask for"},
    {"templates", "kubectl kustomize fills manifests in"},
    {"users", "users come with a certificate or token; `berth whoami` tells yours"},
};

std::string shell_words(const std::vector<std::string>& args) {
  std::string out;
  for (const std::string& arg : args) out += (out.empty() ? "" : " ") + shell_word(arg);
  return out;
}

/// A table's sentence, or the command line of it.
std::string instead(const Word& entry, std::string_view what, const std::vector<std::string>& args) {
  std::string text(entry.instead);
  if (text.empty()) text = kubectl_line(entry.word, args);
  if (const std::size_t at = text.find("ARGS"); at != std::string::npos) text.replace(at, 4, shell_words(args));
  if (text.starts_with("berth ")) return fmt::format("{} has no \"{}\"; type\n  {}", what, entry.word, text);
  if (!text.starts_with("kubectl ")) return fmt::format("{} has no \"{}\": {}", what, entry.word, text);
  return fmt::format("{} has no \"{}\". Use kubectl, the same kubeconfig works:\n  {}", what, entry.word, text);
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  // Every short word is near to some other.
  if (word.size() < 3) return {};
  const std::vector<std::string_view> views(known.begin(), known.end());
  return config::suggestion(word, views);
}

std::string kubectl_line(std::string_view verb, const std::vector<std::string>& args) {
  return fmt::format("kubectl {}{}{}", verb, args.empty() ? "" : " ", shell_words(args));
}

std::string instead_of_command(const std::string& word, const std::vector<std::string>& args) {
  for (const Word& entry : kKubectlCommands)
    if (entry.word == word) return instead(entry, "berth", args);
  for (const Word& entry : kOcCommands)
    if (entry.word == word) return instead(entry, "berth", args);
  return {};
}

std::string instead_of_adm(const std::string& word, const std::vector<std::string>& args) {
  for (const Word& entry : kAdmCommands)
    if (entry.word == word) return instead(entry, "berth adm", args);
  return {};
}

std::string instead_of_type(const std::string& plural) {
  for (const Word& entry : kOcTypes)
    if (entry.word == plural) return fmt::format("; {}", entry.instead);
  std::set<std::string> names;
  for (const model::KindInfo& kind : model::all_kinds()) names.insert(kind.plural);
  return did_you_mean(plural, {names.begin(), names.end()});
}

}  // namespace berth::cli
