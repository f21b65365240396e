// apply, label, annotate.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command/parse.h"
#include "cli/command/session.h"
#include "cli/verbs/manifests.h"
#include "cli/verbs/output.h"
#include "cli/verbs/strict.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {
namespace {

using client::Call;

/// What `label` and `annotate` are told to do.
struct MapChange {
  std::string_view map;  ///< "labels" or "annotations"
  json::Object changes;  ///< Null: the key goes.
  bool overwrite = false;
  std::string past;  ///< "labeled"
  ChangeFlags flags;

  /// Sorts the words: key=value, key-, and what is left names the objects.
  std::vector<std::string> take(const std::vector<std::string>& words) {
    std::vector<std::string> names;
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      if (equals != std::string::npos)
        changes[word.substr(0, equals)] = word.substr(equals + 1);
      else if (word.ends_with('-') && !names.empty())
        changes[word.substr(0, word.size() - 1)] = nullptr;
      else
        names.push_back(word);
    }
    return names;
  }
  /// The object as the change leaves it.
  [[nodiscard]] json::Value applied_to(json::Value object) const {
    for (const auto& [key, value] : changes) {
      const std::string_view name(key.data(), key.size());
      if (value.is_null())
        json::erase(object, {"metadata", map, name});
      else
        json::ensure_object(object, {"metadata", map})[name] = value;
    }
    return object;
  }
};

/// Changes one object. Returns the exit code.
int change_one(Session& session, const ResourceName& target, const MapChange& change) {
  if (target.name.empty())
    return report(Error{ErrorCode::kInvalid, "one or more resources must be specified as <resource> <name> or <resource>/<name>"});
  const std::string ns = target.kind->namespaced ? session.ns() : "";
  auto current = session.client().get_and_wait(target.kind->gvr(), ns, target.name);
  if (!current) return report_about(session, *target.kind, ns, target.name, current.error());
  int code = 0;
  for (const auto& [key, value] : change.changes) {
    const std::string_view name(key.data(), key.size());
    const json::Value* old = json::find(*current, {"metadata", change.map, name});
    if (!change.overwrite && old != nullptr && value.is_string() && *old != value)
      code = report(
          Error{ErrorCode::kConflict, fmt::format("'{}' already has a value ({}), and --overwrite is false", name, json::as_view(*old))});
  }
  if (code != 0) return code;
  if (change.flags.is_client_run()) {
    change.flags.print(*target.kind, change.applied_to(std::move(*current)), change.past);
    return 0;
  }
  json::Value patch = json::Object();
  json::ensure_object(patch, {"metadata"})[change.map] = change.changes;
  Call call;
  call.verb = "patch";
  call.gvr = target.kind->gvr();
  call.ns = ns;
  call.name = target.name;
  call.query = change.flags.query();
  call.content_type = "application/merge-patch+json";
  call.body = json::serialize(patch);
  auto done = session.client().call_and_wait(call);
  if (!done) return report(done.error());
  change.flags.print(*target.kind, *done, change.past);
  return 0;
}

int change_map(const std::vector<std::string>& args, const char* verb, const char* past, const char* field) {
  CLI::App app(fmt::format("Sets or removes {}s: key=value sets, key- removes", field), fmt::format("berth {}", verb));
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> words;
  bool all = false;
  std::string selector;
  MapChange change{std::string_view(field) == "label" ? "labels" : "annotations", {}, false, past, {}};
  app.add_option("args", words, "TYPE NAME… KEY=VALUE… KEY-…")->required();
  app.add_flag("--overwrite", change.overwrite, "Replace values that are there");
  app.add_flag("--all", all, "All objects of the type");
  app.add_option("-l,--selector", selector, "Only objects with these labels");
  change.flags.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;

  auto targets = parse_resource_args(change.take(words));
  if (change.changes.empty()) return report(Error{ErrorCode::kInvalid, fmt::format("at least one {} update is required", field)});
  if (!targets) return report(targets.error());
  // kubectl says "unlabeled", but of annotations "annotated" always.
  if (change.map == "labels" && std::ranges::all_of(change.changes, [](const auto& one) { return one.value().is_null(); }))
    change.past = "un" + change.past;
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  if (all || !selector.empty()) {
    const model::KindInfo* kind = targets->front().kind;
    client::ListOptions options;
    options.label_selector = selector;
    auto page = (*session)->client().list_and_wait(kind->gvr(), kind->namespaced ? (*session)->ns() : "", options);
    if (!page) return report(page.error());
    targets->clear();
    for (const json::Value& item : page->items) targets->push_back({kind, std::string(json::get_string(item, {"metadata", "name"}))});
  }
  int code = 0;
  for (const ResourceName& target : *targets) code = std::max(code, change_one(**session, target, change));
  return code;
}

/// What `berth create` wrote is the applier's from its first apply on: what it does not say any more goes then, and nobody conflicts with
/// himself. Objects that are not there, or were made otherwise, stay as they are.
model::ApiResult<void> take_over_creation(Session& session, const Call& applied) {
  const auto found = session.client().get_and_wait(applied.gvr, applied.ns, applied.name);
  if (!found) return {};  // The apply says what is wrong.
  json::Array entries = json::get_array(*found, {"metadata", "managedFields"});
  const auto is_of = [](const json::Value& entry, std::string_view manager, std::string_view operation) {
    return json::get_string(entry, {"manager"}) == manager && json::get_string(entry, {"operation"}) == operation &&
           json::get_string(entry, {"subresource"}).empty();
  };
  const auto created = std::ranges::find_if(entries, [&](const json::Value& one) { return is_of(one, kCreator, "Update"); });
  if (created == entries.end() || std::ranges::any_of(entries, [&](const json::Value& one) { return is_of(one, kApplier, "Apply"); }))
    return {};
  created->get_object()["manager"] = kApplier;
  created->get_object()["operation"] = "Apply";
  Call call{.verb = "patch", .gvr = applied.gvr, .ns = applied.ns, .name = applied.name};
  call.content_type = "application/merge-patch+json";
  call.body =
      json::serialize(json::Object{{"metadata", json::Object{{"resourceVersion", json::get_string(*found, {"metadata", "resourceVersion"})},
                                                             {"managedFields", std::move(entries)}}}});
  call.query = fmt::format("fieldManager={}", kCreator);
  if (auto done = session.client().call_and_wait(call); !done && !done.error().is("Conflict")) return std::unexpected(done.error());
  return {};
}

}  // namespace

int run_apply(const std::vector<std::string>& args) {
  CLI::App app("Applies the objects of files by server-side apply", "berth apply");
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> files;
  bool force = false;
  ChangeFlags change;
  ValidateFlag validate;
  app.add_option("-f,--filename", files, "File or directory; may be repeated")->required();
  app.add_flag("--force-conflicts", force, "Take over fields that others own");
  change.add_to(app);
  validate.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  return for_each_manifest(flags, files, [&](Session& session, Manifest& manifest) {
    if (change.is_client_run()) {
      change.print(*manifest.kind, manifest.document, "serverside-applied");
      return 0;
    }
    Call call;
    call.verb = "patch";
    call.gvr = manifest.kind->gvr();
    call.ns = namespace_of(session, *manifest.kind, manifest.document);
    call.name = json::get_string(manifest.document, {"metadata", "name"});
    if (auto taken = change.dry_run == "server" ? model::ApiResult<void>() : take_over_creation(session, call); !taken)
      return report_in_file(manifest, taken.error(), "applying");
    call.query =
        joined_query({fmt::format("fieldManager={}", kApplier), force ? "force=true" : "force=false", change.query(), validate.query()});
    call.content_type = "application/apply-patch+yaml";
    call.body = json::serialize(manifest.document);
    auto applied = session.client().call_and_wait(call);
    if (!applied) return report_in_file(manifest, applied.error(), "applying");
    change.print(*manifest.kind, *applied, "serverside-applied");
    return 0;
  });
}

int run_label(const std::vector<std::string>& args) { return change_map(args, "label", "labeled", "label"); }
int run_annotate(const std::vector<std::string>& args) { return change_map(args, "annotate", "annotated", "annotation"); }

}  // namespace berth::cli
