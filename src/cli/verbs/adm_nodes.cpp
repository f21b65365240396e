// adm cordon, uncordon, drain, manage-node.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "cli/command/parse.h"
#include "cli/command/session.h"
#include "cli/verbs/adm.h"
#include "cli/verbs/nodes.h"
#include "cli/verbs/output.h"
#include "model/views/pod_facts.h"

namespace berth::cli {
namespace {

using client::Call;
const client::Gvr kPods{"", "v1", "pods"};

model::ApiResult<json::Value> merge_patch(Session& session, const std::string& name, const json::Value& patch) {
  Call call;
  call.verb = "patch";
  call.gvr = kNodes;
  call.name = name;
  call.content_type = "application/merge-patch+json";
  call.body = json::serialize(patch);
  return session.client().call_and_wait(call);
}

int set_unschedulable(Session& session, const std::vector<std::string>& names, bool wanted) {
  int code = 0;
  for (const std::string& name : names) {
    auto node = session.client().get_and_wait(kNodes, "", name);
    if (!node) {
      code = report(node.error());
      continue;
    }
    const char* word = wanted ? "cordoned" : "uncordoned";
    if (json::get_bool(*node, {"spec", "unschedulable"}) == wanted) {
      std::printf("node/%s already %s\n", name.c_str(), word);
      continue;
    }
    json::Value patch = {{"spec", {{"unschedulable", nullptr}}}};
    if (wanted) json::set(patch, {"spec", "unschedulable"}, true);
    auto done = merge_patch(session, name, patch);
    if (!done)
      code = report(done.error());
    else
      std::printf("node/%s %s\n", name.c_str(), word);
  }
  return code;
}

int run_set_unschedulable(const std::vector<std::string>& args, bool wanted) {
  CLI::App app(wanted ? "Marks nodes unschedulable" : "Marks nodes schedulable", wanted ? "berth adm cordon" : "berth adm uncordon");
  ConnectionFlags flags;
  flags.add_to(app);
  NodeChoice choice;
  app.add_option("nodes", choice.names, "Node names");
  choice.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  auto names = choice.resolve(**session);
  return names ? set_unschedulable(**session, *names, wanted) : report(names.error());
}

struct DrainFlags {
  bool ignore_daemonsets = false, delete_emptydir = false, force = false;
  std::string timeout = "0s", pod_selector;
  std::int64_t grace = -1;

  /// When to give up. A bare number means seconds.
  [[nodiscard]] Result<TimePoint> deadline() const {
    const bool is_number = !timeout.empty() && timeout.find_first_not_of("0123456789") == std::string::npos;
    const auto given = parse_go_duration(is_number ? timeout + "s" : timeout);
    if (!given) return invalid(fmt::format("--timeout {}: not a duration such as 60s or 5m", timeout));
    return *given > Duration::zero() ? SystemClock().now() + *given : TimePoint::max();
  }
};

/// Empty: evict it. "skip": leave it. Otherwise the reason why the drain must not start.
std::string drain_objection(const json::Value& pod, const DrainFlags& flags) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return "";
  const auto meta = model::ObjectMeta::parse(pod);
  if (model::is_mirror(meta)) return "skip";
  if (model::is_of_daemon_set(meta))
    return flags.ignore_daemonsets ? "skip" : "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)";
  if (!flags.delete_emptydir && model::has_local_storage(model::PodFacts::parse(pod), meta, model::LocalStorageRule::kDrain))
    return "cannot delete Pods with local storage (use --delete-emptydir-data to override)";
  if (meta.controller() == nullptr && !flags.force) return "cannot delete Pods that declare no controller (use --force to override)";
  return "";
}

/// Evicts one pod, again while its budget refuses, and waits until it is gone.
int evict_and_wait(Session& session, const json::Value& pod, const DrainFlags& flags, TimePoint deadline) {
  const SystemClock clock;
  const std::string ns(json::get_string(pod, {"metadata", "namespace"})), name(json::get_string(pod, {"metadata", "name"}));
  const std::string_view uid = json::get_string(pod, {"metadata", "uid"});
  json::Value eviction = {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", name}, {"namespace", ns}}}};
  if (flags.grace >= 0) json::set(eviction, {"deleteOptions", "gracePeriodSeconds"}, flags.grace);
  Call call;
  call.verb = "create";
  call.gvr = kPods;
  call.ns = ns;
  call.name = name;
  call.subresource = "eviction";
  call.body = json::serialize(eviction);
  std::printf("evicting pod %s/%s\n", ns.c_str(), name.c_str());
  while (true) {
    auto done = session.client().call_and_wait(call);
    if (done || done.error().is("NotFound")) break;
    if (!done.error().is("TooManyRequests")) return report(done.error());
    std::fprintf(stderr, "error when evicting pods/\"%s\" -n \"%s\" (will retry after 5s): %s\n", name.c_str(), ns.c_str(),
                 done.error().message.c_str());
    if (clock.now() > deadline) return report(Error{ErrorCode::kUnavailable, "the time is up; the node stays cordoned"});
    std::this_thread::sleep_for(std::chrono::seconds(5));
  }
  while (true) {
    auto now = session.client().get_and_wait(kPods, ns, name);
    if (!now && now.error().is("NotFound")) break;
    if (now && json::get_string(*now, {"metadata", "uid"}) != uid) break;
    if (clock.now() > deadline)
      return report(Error{ErrorCode::kUnavailable, fmt::format("pod {}/{} is still there and the time is up", ns, name)});
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  std::printf("pod/%s evicted\n", name.c_str());
  return 0;
}

/// The node's pods that go, in the server's order; the error names those that must not.
Result<std::vector<json::Value>> pods_to_evict(Session& session, const std::string& node, const DrainFlags& flags) {
  client::ListOptions options;
  options.field_selector = "spec.nodeName=" + node;
  options.label_selector = flags.pod_selector;
  auto page = session.client().list_and_wait(kPods, "", options);
  if (!page) return fail(ErrorCode::kUnavailable, page.error().message);
  std::vector<json::Value> out;
  std::string objections;
  for (json::Value& pod : page->items) {
    const std::string objection = drain_objection(pod, flags);
    if (objection.empty())
      out.push_back(std::move(pod));
    else if (objection != "skip")
      objections += fmt::format("\n  {}: {}/{}", objection, json::get_string(pod, {"metadata", "namespace"}),
                                json::get_string(pod, {"metadata", "name"}));
  }
  if (!objections.empty()) return invalid(fmt::format("unable to drain node \"{}\":{}", node, objections));
  return out;
}

/// Evicts what must go from the nodes, one after the other.
int empty_nodes(Session& session, const std::vector<std::string>& names, const DrainFlags& flags, const char* past) {
  auto deadline = flags.deadline();
  if (!deadline) return report(deadline.error());
  for (const std::string& name : names) {
    auto pods = pods_to_evict(session, name, flags);
    if (!pods) return report(pods.error());
    for (const json::Value& pod : *pods)
      if (const int code = evict_and_wait(session, pod, flags, *deadline)) return code;
    std::printf("node/%s %s\n", name.c_str(), past);
  }
  return 0;
}

void list_pods(Session& session, const std::string& node, const std::string& pod_selector) {
  std::printf("\nListing matched pods on node: %s\n\n", node.c_str());
  std::string query = "fieldSelector=" + net::percent_encode("spec.nodeName=" + node);
  if (!pod_selector.empty()) query += "&labelSelector=" + net::percent_encode(pod_selector);
  auto table = get_table(session, client::resource_path(kPods, ""), query);
  if (!table)
    (void)report(table.error());
  else
    print_table(*table, false, true, true);
}

}  // namespace

int run_cordon(const std::vector<std::string>& args) { return run_set_unschedulable(args, true); }
int run_uncordon(const std::vector<std::string>& args) { return run_set_unschedulable(args, false); }

int run_drain(const std::vector<std::string>& args) {
  CLI::App app("Cordons nodes and evicts their pods, honouring disruption budgets", "berth adm drain");
  ConnectionFlags connection;
  connection.add_to(app);
  DrainFlags flags;
  NodeChoice choice;
  app.add_option("nodes", choice.names, "Node names");
  choice.add_to(app);
  app.add_option("--pod-selector", flags.pod_selector, "Only pods with these labels");
  app.add_flag("--ignore-daemonsets", flags.ignore_daemonsets, "Leave DaemonSet pods where they are");
  app.add_flag("--delete-emptydir-data,--delete-local-data", flags.delete_emptydir, "Also evict pods with emptyDir volumes");
  app.add_flag("--force", flags.force, "Also evict pods without a controller");
  app.add_option("--timeout", flags.timeout, "Give up after this long, such as 60s; 0s: never")->capture_default_str();
  app.add_option("--grace-period", flags.grace, "Seconds to let each pod end; negative: its own");
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  auto names = choice.resolve(**session);
  if (!names) return report(names.error());
  if (const int code = set_unschedulable(**session, *names, true)) return code;
  return empty_nodes(**session, *names, flags, "drained");
}

int run_manage_node(const std::vector<std::string>& args) {
  CLI::App app(
      "Lists nodes' pods, evacuates them, or marks nodes schedulable or not (OpenShift 3's manage-node; cordon, uncordon and drain do the\n"
      "same)",
      "berth adm manage-node");
  ConnectionFlags connection;
  connection.add_to(app);
  DrainFlags flags;
  flags.ignore_daemonsets = flags.delete_emptydir = true;
  NodeChoice choice;
  std::string schedulable;
  bool lists_pods = false, evacuates = false, dry_run = false;
  app.add_option("nodes", choice.names, "Node names");
  choice.add_to(app);
  app.add_flag("--list-pods", lists_pods, "Show the pods of each node");
  app.add_flag("--evacuate", evacuates, "Evict the pods of each node, which must be unschedulable");
  app.add_option("--schedulable", schedulable, "true or false")->check(CLI::IsMember({"true", "false"}));
  app.add_option("--pod-selector", flags.pod_selector, "Only pods with these labels");
  app.add_flag("--dry-run", dry_run, "With --evacuate: only show the pods that would go");
  app.add_flag("--force", flags.force, "With --evacuate: also pods that no controller makes anew");
  app.add_option("--grace-period", flags.grace, "Seconds to let each pod end; negative: its own");
  if (const auto code = parse_args(app, args)) return *code;
  if (!lists_pods && !evacuates && schedulable.empty())
    return report(Error{ErrorCode::kInvalid, "say what to do: --list-pods, --evacuate or --schedulable=true|false"});
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  auto names = choice.resolve(**session);
  if (!names) return report(names.error());
  if (!schedulable.empty())
    if (const int code = set_unschedulable(**session, *names, schedulable == "false")) return code;
  if (lists_pods)
    for (const std::string& name : *names) list_pods(**session, name, flags.pod_selector);
  if (!evacuates) return 0;
  for (const std::string& name : *names) {
    auto node = (*session)->client().get_and_wait(kNodes, "", name);
    if (!node) return report(node.error());
    if (!dry_run && !json::get_bool(*node, {"spec", "unschedulable"}))
      return report(Error{ErrorCode::kInvalid, fmt::format("Node '{0}' must be unschedulable in order to perform evacuation.\nYou can mark "
                                                           "the node unschedulable with 'berth adm manage-node {0} --schedulable=false'",
                                                           name)});
    if (!dry_run) continue;
    auto pods = pods_to_evict(**session, name, flags);
    if (!pods) return report(pods.error());
    for (const json::Value& pod : *pods)
      std::printf("pod/%s of namespace %s would be evicted from %s\n", std::string(json::get_string(pod, {"metadata", "name"})).c_str(),
                  std::string(json::get_string(pod, {"metadata", "namespace"})).c_str(), name.c_str());
  }
  return dry_run ? 0 : empty_nodes(**session, *names, flags, "evacuated");
}

}  // namespace berth::cli
