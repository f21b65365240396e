// adm taint nodes, new-project, cordon, uncordon, drain.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "cli/parse.h"
#include "cli/session.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {
namespace {

using client::Call;
const client::Gvr kNodes{"", "v1", "nodes"};
const client::Gvr kPods{"", "v1", "pods"};

struct TaintChange {
  std::string key, value, effect;
  bool remove = false;
};

/// `key=value:Effect`, `key:Effect`, `key=value:Effect-`, `key:Effect-`, `key-`.
Result<TaintChange> parse_taint(std::string spec) {
  TaintChange out;
  if (spec.ends_with('-')) {
    out.remove = true;
    spec.pop_back();
  }
  const std::size_t colon = spec.find(':');
  if (colon != std::string::npos) out.effect = spec.substr(colon + 1);
  std::string head = spec.substr(0, colon);
  const std::size_t equals = head.find('=');
  out.key = head.substr(0, equals);
  if (equals != std::string::npos) out.value = head.substr(equals + 1);
  const bool known = out.effect == "NoSchedule" || out.effect == "PreferNoSchedule" || out.effect == "NoExecute";
  if (out.key.empty() || (!known && !(out.remove && out.effect.empty())))
    return invalid(fmt::format(
        "invalid taint spec: {}, must be <key>=<value>:<effect> or <key>:<effect> to add, <key>[:<effect>]- to remove; the effects are "
        "NoSchedule, PreferNoSchedule, NoExecute",
        spec));
  return out;
}

/// The node's new taint list, or why it cannot be.
Result<json::Array> changed_taints(const json::Value& node, const std::vector<TaintChange>& changes, bool overwrite) {
  json::Array taints = json::get_array(node, {"spec", "taints"});
  for (const TaintChange& change : changes) {
    const auto same = [&](const json::Value& taint) {
      return json::get_string(taint, {"key"}) == change.key &&
             (change.effect.empty() || json::get_string(taint, {"effect"}) == change.effect);
    };
    const bool found = std::any_of(taints.begin(), taints.end(), same);
    if (change.remove) {
      if (!found)
        return fail(ErrorCode::kNotFound,
                    fmt::format("taint \"{}{}{}\" not found", change.key, change.effect.empty() ? "" : ":", change.effect));
    } else if (found && !overwrite) {
      return fail(ErrorCode::kConflict, fmt::format("node {} already has {} taint(s) with same effect(s) and --overwrite is false",
                                                    json::get_string(node, {"metadata", "name"}), change.key));
    }
    json::Array kept;
    for (const json::Value& taint : taints)
      if (!same(taint)) kept.push_back(taint);
    if (!change.remove) {
      json::Object taint{{"key", change.key}, {"effect", change.effect}};
      if (!change.value.empty()) taint["value"] = change.value;
      kept.push_back(taint);
    }
    taints = std::move(kept);
  }
  return taints;
}

model::ApiResult<json::Value> merge_patch(Session& session, const std::string& name, const json::Value& patch) {
  Call call;
  call.verb = "patch";
  call.gvr = kNodes;
  call.name = name;
  call.content_type = "application/merge-patch+json";
  call.body = json::serialize(patch);
  return session.client().call_and_wait(call);
}

int run_taint(const std::vector<std::string>& args) {
  CLI::App app("Adds, replaces or removes taints of nodes", "berth adm taint nodes");
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> words;
  bool overwrite = false, all = false;
  app.add_option("args", words, "nodes NAME… KEY=VALUE:EFFECT… KEY[:EFFECT]-…")->required();
  app.add_flag("--overwrite", overwrite, "Replace a taint of the same key and effect");
  app.add_flag("--all", all, "All nodes");
  if (const auto code = parse_args(app, args)) return *code;
  std::vector<std::string> names;
  std::vector<TaintChange> changes;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i == 0 && (words[i] == "node" || words[i] == "nodes" || words[i] == "no")) continue;
    if (words[i].find(':') == std::string::npos && words[i].find('=') == std::string::npos && !words[i].ends_with('-')) {
      names.push_back(words[i]);
      continue;
    }
    auto change = parse_taint(words[i]);
    if (!change) return report(change.error());
    changes.push_back(std::move(*change));
  }
  if (changes.empty()) return report(Error{ErrorCode::kInvalid, "at least one taint update is required"});
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  if (all) {
    auto page = (*session)->client().list_and_wait(kNodes, "");
    if (!page) return report(page.error());
    for (const json::Value& node : page->items) names.emplace_back(json::get_string(node, {"metadata", "name"}));
  }
  if (names.empty()) return report(Error{ErrorCode::kInvalid, "name the nodes, or say --all"});
  int code = 0;
  for (const std::string& name : names) {
    auto node = (*session)->client().get_and_wait(kNodes, "", name);
    if (!node) {
      code = report(node.error());
      continue;
    }
    auto taints = changed_taints(*node, changes, overwrite);
    if (!taints) {
      code = report(taints.error());
      continue;
    }
    json::Value patch = {{"metadata", {{"resourceVersion", json::get_string(*node, {"metadata", "resourceVersion"})}}},
                         {"spec", json::Object()}};
    patch.at("spec").as_object()["taints"] = taints->empty() ? json::Value(nullptr) : json::Value(*taints);
    auto done = merge_patch(**session, name, patch);
    if (!done)
      code = report(done.error());
    else
      std::printf("node/%s %s\n", name.c_str(),
                  std::all_of(changes.begin(), changes.end(), [](const TaintChange& c) { return c.remove; }) ? "untainted" : "tainted");
  }
  return code;
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

int run_cordon(const std::vector<std::string>& args, bool wanted) {
  CLI::App app(wanted ? "Marks nodes unschedulable" : "Marks nodes schedulable", wanted ? "berth adm cordon" : "berth adm uncordon");
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> names;
  app.add_option("nodes", names, "Node names")->required();
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  return set_unschedulable(**session, names, wanted);
}

struct DrainFlags {
  bool ignore_daemonsets = false, delete_emptydir = false, force = false;
  int timeout_s = 0;
  std::int64_t grace = -1;
};

/// Empty: evict it. "skip": leave it. Otherwise the reason why the drain must not start.
std::string drain_objection(const json::Value& pod, const DrainFlags& flags) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return "";
  if (json::find(pod, {"metadata", "annotations", "kubernetes.io/config.mirror"}) != nullptr) return "skip";
  bool controlled = false;
  for (const json::Value& owner : json::get_array(pod, {"metadata", "ownerReferences"})) {
    if (!json::get_bool(owner, {"controller"})) continue;
    controlled = true;
    if (json::get_string(owner, {"kind"}) == "DaemonSet")
      return flags.ignore_daemonsets ? "skip" : "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)";
  }
  for (const json::Value& volume : json::get_array(pod, {"spec", "volumes"}))
    if (json::find(volume, {"emptyDir"}) != nullptr && !flags.delete_emptydir)
      return "cannot delete Pods with local storage (use --delete-emptydir-data to override)";
  if (!controlled && !flags.force) return "cannot delete Pods that declare no controller (use --force to override)";
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

int run_drain(const std::vector<std::string>& args) {
  CLI::App app("Cordons nodes and evicts their pods, honouring disruption budgets", "berth adm drain");
  ConnectionFlags connection;
  connection.add_to(app);
  DrainFlags flags;
  std::vector<std::string> names;
  app.add_option("nodes", names, "Node names")->required();
  app.add_flag("--ignore-daemonsets", flags.ignore_daemonsets, "Leave DaemonSet pods where they are");
  app.add_flag("--delete-emptydir-data,--delete-local-data", flags.delete_emptydir, "Also evict pods with emptyDir volumes");
  app.add_flag("--force", flags.force, "Also evict pods without a controller");
  app.add_option("--timeout", flags.timeout_s, "Seconds before giving up; 0: never");
  app.add_option("--grace-period", flags.grace, "Seconds to let each pod end; negative: its own");
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  if (const int code = set_unschedulable(**session, names, true)) return code;
  const SystemClock clock;
  const TimePoint deadline = flags.timeout_s > 0 ? clock.now() + std::chrono::seconds(flags.timeout_s) : TimePoint::max();
  for (const std::string& name : names) {
    client::ListOptions options;
    options.field_selector = "spec.nodeName=" + name;
    auto page = (*session)->client().list_and_wait(kPods, "", options);
    if (!page) return report(page.error());
    std::vector<const json::Value*> evicted;
    std::string objections;
    for (const json::Value& pod : page->items) {
      const std::string objection = drain_objection(pod, flags);
      if (objection.empty())
        evicted.push_back(&pod);
      else if (objection != "skip")
        objections += fmt::format("\n  {}: {}/{}", objection, json::get_string(pod, {"metadata", "namespace"}),
                                  json::get_string(pod, {"metadata", "name"}));
    }
    if (!objections.empty()) return report(Error{ErrorCode::kInvalid, fmt::format("unable to drain node \"{}\":{}", name, objections)});
    for (const json::Value* pod : evicted)
      if (const int code = evict_and_wait(**session, *pod, flags, deadline)) return code;
    std::printf("node/%s drained\n", name.c_str());
  }
  return 0;
}

int run_new_project(const std::vector<std::string>& args) {
  CLI::App app("Makes a namespace with a project node selector (openshift.io/node-selector)", "berth adm new-project");
  ConnectionFlags flags;
  flags.add_to(app);
  std::string name, node_selector, description, display_name, admin;
  app.add_option("name", name, "Project name")->required();
  auto* selector_option = app.add_option("--node-selector", node_selector,
                                         "Pods of the project go only to nodes with these labels; \"\" overrides the default");
  app.add_option("--description", description, "Description");
  app.add_option("--display-name", display_name, "Display name");
  app.add_option("--admin", admin, "User who gets the admin role in it");
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  json::Object annotations;
  if (selector_option->count() > 0) annotations["openshift.io/node-selector"] = node_selector;
  if (!description.empty()) annotations["openshift.io/description"] = description;
  if (!display_name.empty()) annotations["openshift.io/display-name"] = display_name;
  json::Value project = {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
  if (!annotations.empty()) json::set(project, {"metadata", "annotations"}, annotations);
  auto created = (*session)->client().create_and_wait({"", "v1", "namespaces"}, "", project);
  if (!created) return report(created.error());
  if (!admin.empty()) {
    const json::Value binding = {{"apiVersion", "rbac.authorization.k8s.io/v1"},
                                 {"kind", "RoleBinding"},
                                 {"metadata", {{"name", "admin"}, {"namespace", name}}},
                                 {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", "admin"}}},
                                 {"subjects", json::Array{{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", admin}}}}};
    auto bound = (*session)->client().create_and_wait({"rbac.authorization.k8s.io", "v1", "rolebindings"}, name, binding);
    if (!bound) return report(bound.error());
  }
  std::printf("Created project %s\n", name.c_str());
  return 0;
}

}  // namespace

int run_adm(const std::vector<std::string>& args) {
  const std::string verb = args.empty() ? "" : args[0];
  const std::vector<std::string> rest(args.empty() ? args.begin() : args.begin() + 1, args.end());
  if (verb == "taint") return run_taint(rest);
  if (verb == "cordon") return run_cordon(rest, true);
  if (verb == "uncordon") return run_cordon(rest, false);
  if (verb == "drain") return run_drain(rest);
  if (verb == "new-project") return run_new_project(rest);
  const bool help = verb == "--help" || verb == "-h";
  std::fprintf(help ? stdout : stderr,
               "Usage: berth adm VERB\n  taint nodes   add, replace or remove taints\n  cordon        mark nodes unschedulable\n"
               "  uncordon      mark nodes schedulable\n  drain         cordon nodes and evict their pods\n  new-project   make a "
               "namespace with a project node selector\n");
  return help ? 0 : 2;
}

}  // namespace berth::cli
