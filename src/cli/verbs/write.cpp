// apply, label, annotate.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/parse.h"
#include "cli/session.h"
#include "cli/verbs/manifests.h"
#include "cli/verbs/output.h"
#include "cli/verbs/strict.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {
namespace {

using client::Call;
using client::PatchType;

int change_map(const std::vector<std::string>& args, const char* verb, const char* past, const char* field) {
  CLI::App app(fmt::format("Sets or removes {}s: key=value sets, key- removes", field), fmt::format("berth {}", verb));
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> words;
  bool overwrite = false, all = false;
  std::string selector;
  app.add_option("args", words, "TYPE NAME… KEY=VALUE… KEY-…")->required();
  app.add_flag("--overwrite", overwrite, "Replace values that are there");
  app.add_flag("--all", all, "All objects of the type");
  app.add_option("-l,--selector", selector, "Only objects with these labels");
  if (const auto code = parse_args(app, args)) return *code;

  std::vector<std::string> names;
  json::Object changes;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos)
      changes[word.substr(0, equals)] = word.substr(equals + 1);
    else if (word.ends_with('-') && !names.empty())
      changes[word.substr(0, word.size() - 1)] = nullptr;
    else
      names.push_back(word);
  }
  if (changes.empty()) return report(Error{ErrorCode::kInvalid, fmt::format("at least one {} update is required", field)});
  auto targets = parse_resource_args(names);
  if (!targets) return report(targets.error());
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
  const std::string_view map = std::string_view(field) == "label" ? "labels" : "annotations";
  // kubectl says "unlabeled", but of annotations "annotated" always.
  const bool only_removes = map == "labels" && std::ranges::all_of(changes, [](const auto& change) { return change.value().is_null(); });
  int code = 0;
  for (const ResourceName& target : *targets) {
    if (target.name.empty())
      return report(Error{ErrorCode::kInvalid, "one or more resources must be specified as <resource> <name> or <resource>/<name>"});
    const std::string ns = target.kind->namespaced ? (*session)->ns() : "";
    auto current = (*session)->client().get_and_wait(target.kind->gvr(), ns, target.name);
    if (!current) {
      code = report(current.error());
      continue;
    }
    bool refused = false;
    for (const auto& [key, value] : changes) {
      const json::Value* old = json::find(*current, {"metadata", map, std::string_view(key.data(), key.size())});
      if (!overwrite && old != nullptr && value.is_string() && *old != value) {
        code = report(Error{ErrorCode::kConflict, fmt::format("'{}' already has a value ({}), and --overwrite is false",
                                                              std::string_view(key.data(), key.size()), json::as_view(*old))});
        refused = true;
      }
    }
    if (refused) continue;
    json::Value patch = json::Object();
    json::ensure_object(patch, {"metadata"})[map] = changes;
    Call call;
    call.verb = "patch";
    call.gvr = target.kind->gvr();
    call.ns = ns;
    call.name = target.name;
    call.content_type = "application/merge-patch+json";
    call.body = json::serialize(patch);
    auto done = (*session)->client().call_and_wait(call);
    if (!done)
      code = report(done.error());
    else
      std::printf("%s %s\n", qualified_name(*target.kind, target.name).c_str(), (only_removes ? std::string("un") + past : past).c_str());
  }
  return code;
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
    call.query = joined_query({"fieldManager=berth", force ? "force=true" : "force=false", change.query(), validate.query()});
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
