// delete.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "cli/command/parse.h"
#include "cli/command/session.h"
#include "cli/verbs/manifests.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {
namespace {

using client::Call;

struct Target {
  const model::KindInfo* kind = nullptr;
  std::string ns, name;
  std::string uid;  ///< Of the object that was deleted.
};

struct DeleteFlags {
  std::string cascade = "background", selector, timeout = "0s";
  std::int64_t grace = -1;
  bool ignores_missing = false, all = false, everywhere = false, now = false, force = false, dry_run = false;
  std::string wait = "true";

  void add_to(CLI::App& app) {
    app.add_option("--cascade", cascade, "background, foreground or orphan")->check(CLI::IsMember({"background", "foreground", "orphan"}));
    app.add_option("--grace-period", grace, "Seconds to let it end; negative: its own");
    app.add_flag("--now", now, "The same as --grace-period=1");
    app.add_flag("--force", force, "With --grace-period=0: gone at once, whatever its node does");
    app.add_option("--wait", wait, "Until it is gone, its finalizers included")
        ->capture_default_str()
        ->check(CLI::IsMember({"true", "false"}));
    app.add_option("--timeout", timeout, "Of the wait, such as 60s; 0s: as long as it takes")->capture_default_str();
    app.add_option("-l,--selector", selector, "Only objects with these labels");
    app.add_flag("--all", all, "All objects of the type in the namespace");
    app.add_flag("-A,--all-namespaces", everywhere, "Of all namespaces");
    app.add_flag("--ignore-not-found", ignores_missing, "A missing object is no error");
    app.add_flag("--dry-run", dry_run, "The server checks it and changes nothing");
  }
};

Result<std::vector<Target>> targets_of(Session& session, const std::vector<std::string>& files, const std::vector<std::string>& words,
                                       const DeleteFlags& flags) {
  std::vector<Target> out;
  if (!files.empty()) {
    auto manifests = read_manifests(files);
    if (!manifests) return std::unexpected(manifests.error());
    for (const Manifest& one : *manifests)
      out.push_back({one.kind, namespace_of(session, *one.kind, one.document),
                     std::string(json::get_string(one.document, {"metadata", "name"})), ""});
    return out;
  }
  auto named = parse_resource_args(words);
  if (!named) return std::unexpected(named.error());
  for (const ResourceName& one : *named) {
    const std::string ns = one.kind->namespaced && !flags.everywhere ? session.ns() : "";
    if (!one.name.empty()) {
      out.push_back({one.kind, ns, one.name, ""});
      continue;
    }
    if (flags.selector.empty() && !flags.all) return invalid("resource(s) were provided, but no name or label selector was specified");
    client::ListOptions options;
    options.label_selector = flags.selector;
    auto page = session.client().list_and_wait(one.kind->gvr(), ns, options);
    if (!page) return fail(ErrorCode::kUnavailable, page.error().message);
    for (const json::Value& item : page->items)
      out.push_back({one.kind, std::string(json::get_string(item, {"metadata", "namespace"})),
                     std::string(json::get_string(item, {"metadata", "name"})), ""});
  }
  return out;
}

/// Deletes one; its uid is noted. A value: the exit code of a failure.
std::optional<int> delete_one(Session& session, Target& target, const DeleteFlags& flags) {
  json::Value options = {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  options.get_object()["propagationPolicy"] = flags.cascade == "orphan"       ? "Orphan"
                                              : flags.cascade == "foreground" ? "Foreground"
                                                                              : "Background";
  if (flags.grace >= 0 || flags.now) options.get_object()["gracePeriodSeconds"] = flags.now ? 1 : flags.grace;
  if (flags.dry_run) options.get_object()["dryRun"] = json::Array{"All"};
  Call call;
  call.verb = "delete";
  call.gvr = target.kind->gvr();
  call.ns = target.ns;
  call.name = target.name;
  call.body = json::serialize(options);
  auto deleted = session.client().call_and_wait(call);
  if (!deleted) {
    if (flags.ignores_missing && deleted.error().is("NotFound")) return std::nullopt;
    return report_about(session, *target.kind, target.ns, target.name, deleted.error());
  }
  target.uid = json::get_string(*deleted, {"metadata", "uid"});
  if (target.uid.empty()) target.uid = json::get_string(*deleted, {"details", "uid"});
  std::printf("%s \"%s\" %s%s\n", (target.kind->singular + (target.kind->group.empty() ? "" : "." + target.kind->group)).c_str(),
              target.name.c_str(), flags.force ? "force deleted" : "deleted", flags.dry_run ? " (server dry run)" : "");
  std::fflush(stdout);
  return std::nullopt;
}

/// Until the object is gone, or another one has its name.
bool wait_until_gone(Session& session, const Target& target, TimePoint deadline) {
  const SystemClock clock;
  Duration pause = std::chrono::milliseconds(50);
  while (true) {
    auto now = session.client().get_and_wait(target.kind->gvr(), target.ns, target.name);
    if (!now && now.error().is("NotFound")) return true;
    if (!now && now.error().code == 403) {
      std::fprintf(stderr, "warning: it may not be waited for: %s\n", now.error().message.c_str());
      return true;
    }
    if (now && json::get_string(*now, {"metadata", "uid"}) != target.uid) return true;
    if (clock.now() > deadline) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min<Duration>(pause * 2, std::chrono::seconds(1));
  }
}

}  // namespace

int run_delete(const std::vector<std::string>& args) {
  CLI::App app("Deletes objects by name, selector or file, and waits until they are gone", "berth delete");
  ConnectionFlags connection;
  connection.add_to(app);
  std::vector<std::string> files, words;
  DeleteFlags flags;
  app.add_option("-f,--filename", files, "File or directory; may be repeated");
  app.add_option("args", words, "TYPE NAME… or TYPE/NAME…");
  flags.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  const auto timeout = parse_go_duration(flags.timeout);
  if (!timeout) return report(Error{ErrorCode::kInvalid, fmt::format("--timeout {}: not a duration such as 60s", flags.timeout)});
  if (flags.now && flags.grace >= 0) return report(Error{ErrorCode::kInvalid, "--now and --grace-period cannot be specified together"});
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  auto targets = targets_of(**session, files, words, flags);
  if (!targets) return report(targets.error());
  if (targets->empty() && !flags.ignores_missing) std::fprintf(stderr, "No resources found\n");
  int code = 0;
  for (Target& target : *targets) code = std::max(code, delete_one(**session, target, flags).value_or(0));
  if (flags.wait == "false" || flags.dry_run) return code;
  const TimePoint deadline = *timeout > Duration::zero() ? SystemClock().now() + *timeout : TimePoint::max();
  for (const Target& target : *targets)
    if (!target.uid.empty() && !wait_until_gone(**session, target, deadline))
      code = report(
          Error{ErrorCode::kUnavailable, fmt::format("timed out waiting for the condition on {}/{}", target.kind->plural, target.name)});
  return code;
}

}  // namespace berth::cli
