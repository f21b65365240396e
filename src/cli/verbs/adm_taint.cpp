// adm taint nodes, as kubectl's taint (pkg/cmd/taint).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <set>

#include "cli/command/parse.h"
#include "cli/verbs/adm.h"
#include "cli/verbs/nodes.h"
#include "cli/verbs/output.h"
#include "cli/verbs/taint_change.h"

namespace berth::cli {

Result<TaintChange> parse_taint(std::string spec) {
  const std::string whole = spec;
  TaintChange out;
  if (spec.ends_with('-')) {
    out.remove = true;
    spec.pop_back();
  }
  const std::size_t colon = spec.find(':');
  if (colon != std::string::npos) out.effect = spec.substr(colon + 1);
  const std::string head = spec.substr(0, colon);
  const std::size_t equals = head.find('=');
  out.key = head.substr(0, equals);
  if (equals != std::string::npos) out.value = head.substr(equals + 1);
  const bool known = out.effect == "NoSchedule" || out.effect == "PreferNoSchedule" || out.effect == "NoExecute";
  if (out.key.empty() || (!known && !(out.remove && out.effect.empty())))
    return invalid(fmt::format(
        "invalid taint spec: {}, must be <key>=<value>:<effect> or <key>:<effect> to add, <key>[:<effect>]- to remove; the effects are "
        "NoSchedule, PreferNoSchedule, NoExecute",
        whole));
  return out;
}

Result<void> check_together(const std::vector<TaintChange>& changes) {
  std::set<std::pair<std::string, std::string>> added;
  std::string both;
  for (const TaintChange& change : changes)
    if (!change.remove && !added.emplace(change.key, change.effect).second)
      return invalid(fmt::format("duplicated taints with the same key and effect: {}:{}", change.key, change.effect));
  for (const TaintChange& change : changes) {
    if (!change.remove) continue;
    const bool conflicts = std::ranges::any_of(
        added, [&](const auto& one) { return one.first == change.key && (change.effect.empty() || one.second == change.effect); });
    if (conflicts) both += fmt::format("{}{}{}{}", both.empty() ? "" : ", ", change.key, change.effect.empty() ? "" : ":", change.effect);
  }
  if (!both.empty()) return invalid("can not both modify and remove the following taint(s) in the same command: " + both);
  return {};
}

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

namespace {

/// Changes one node; when somebody else wrote it meanwhile, again on what it is then. Returns the exit code.
int taint_node(Session& session, const std::string& name, const std::vector<TaintChange>& changes, bool overwrite, const ChangeFlags& flags,
               const char* past) {
  const model::KindInfo* kind = model::find_resource("", "nodes");
  constexpr int kMostTries = 10;
  for (int tries = 1;; ++tries) {
    auto node = session.client().get_and_wait(kNodes, "", name);
    if (!node) return report(node.error());
    auto taints = changed_taints(*node, changes, overwrite);
    if (!taints) return report(taints.error());
    if (flags.is_client_run()) {
      json::set(*node, {"spec", "taints"}, json::Value(std::move(*taints)));
      flags.print(*kind, *node, past);
      return 0;
    }
    json::Value patch = {{"metadata", {{"resourceVersion", json::get_string(*node, {"metadata", "resourceVersion"})}}},
                         {"spec", json::Object()}};
    patch.at("spec").as_object()["taints"] = taints->empty() ? json::Value(nullptr) : json::Value(std::move(*taints));
    client::Call call;
    call.verb = "patch";
    call.gvr = kNodes;
    call.name = name;
    call.query = flags.query();
    call.content_type = "application/merge-patch+json";
    call.body = json::serialize(patch);
    auto done = session.client().call_and_wait(call);
    if (done) {
      flags.print(*kind, *done, past);
      return 0;
    }
    if (!done.error().is("Conflict") || tries == kMostTries) return report(done.error());
  }
}

}  // namespace

int run_taint(const std::vector<std::string>& args) {
  CLI::App app("Adds, replaces or removes taints of nodes", "berth adm taint nodes");
  ConnectionFlags connection;
  connection.add_to(app);
  std::vector<std::string> words;
  bool overwrite = false;
  NodeChoice choice;
  ChangeFlags flags;
  app.add_option("args", words, "nodes NAME… KEY=VALUE:EFFECT… KEY[:EFFECT]-…")->required();
  app.add_flag("--overwrite", overwrite, "Replace a taint of the same key and effect");
  choice.add_to(app);
  flags.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  std::vector<TaintChange> changes;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i == 0) {
      if (words[i] == "node" || words[i] == "nodes" || words[i] == "no") continue;
      return report(Error{ErrorCode::kInvalid, fmt::format("only nodes are tainted: berth adm taint nodes {} …", words[i])});
    }
    if (words[i].find(':') == std::string::npos && words[i].find('=') == std::string::npos && !words[i].ends_with('-')) {
      choice.names.push_back(words[i]);
      continue;
    }
    auto change = parse_taint(words[i]);
    if (!change) return report(change.error());
    changes.push_back(std::move(*change));
  }
  if (changes.empty()) return report(Error{ErrorCode::kInvalid, "at least one taint update is required"});
  if (auto fit = check_together(changes); !fit) return report(fit.error());
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  auto names = choice.resolve(**session);
  if (!names) return report(names.error());
  const auto removes = std::ranges::count_if(changes, [](const TaintChange& change) { return change.remove; });
  const bool only_removes = removes == std::ssize(changes);
  const char* past = overwrite || (removes > 0 && !only_removes) ? "modified" : only_removes ? "untainted" : "tainted";
  int code = 0;
  for (const std::string& name : *names) code = std::max(code, taint_node(**session, name, changes, overwrite, flags, past));
  return code;
}

}  // namespace berth::cli
