// create -f: the objects of files. Objects described by flags are made in create_named.cpp.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command/parse.h"
#include "cli/verbs/create_named.h"
#include "cli/verbs/manifests.h"
#include "cli/verbs/output.h"
#include "cli/verbs/strict.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {

std::string namespace_of(const Session& session, const model::KindInfo& kind, const json::Value& document) {
  if (!kind.namespaced) return "";
  return std::string(json::get_string(document, {"metadata", "namespace"}, session.ns()));
}

int for_each_manifest(const ConnectionFlags& flags, const std::vector<std::string>& files,
                      const std::function<int(Session&, Manifest&)>& each) {
  auto manifests = read_manifests(files);
  if (!manifests) return report(manifests.error());
  if (manifests->empty()) return report(Error{ErrorCode::kInvalid, "no objects passed to create or apply"});
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  int code = 0;
  for (Manifest& manifest : *manifests) code = std::max(code, each(**session, manifest));
  return code;
}

model::ApiResult<json::Value> create_object(Session& session, const model::KindInfo& kind, const json::Value& document,
                                            const std::string& query) {
  client::Call call;
  call.verb = "create";
  call.gvr = kind.gvr();
  call.ns = namespace_of(session, kind, document);
  call.query = query;
  call.body = json::serialize(document);
  return session.client().call_and_wait(call);
}

int run_create(const std::vector<std::string>& args) {
  if (!args.empty() && !args[0].starts_with('-')) return run_create_named(args);
  CLI::App app(fmt::format("Creates the objects of files (JSON or YAML, '-' for standard input), or one by its flags:\n"
                           "berth create {} NAME …",
                           fmt::join(creatable_types(), "|")),
               "berth create");
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> files;
  ChangeFlags change;
  ValidateFlag validate;
  app.add_option("-f,--filename", files, "File or directory; may be repeated")->required();
  change.add_to(app);
  validate.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  return for_each_manifest(flags, files, [&](Session& session, Manifest& manifest) {
    if (change.is_client_run()) {
      change.print(*manifest.kind, manifest.document, "created");
      return 0;
    }
    auto created = create_object(session, *manifest.kind, manifest.document,
                                 joined_query({fmt::format("fieldManager={}", kCreator), change.query(), validate.query()}));
    if (!created) return report_in_file(manifest, created.error(), "creating");
    change.print(*manifest.kind, *created, "created");
    return 0;
  });
}

}  // namespace berth::cli
