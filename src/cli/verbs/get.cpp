// get.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command/parse.h"
#include "cli/command/session.h"
#include "cli/verbs/output.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {
namespace {

std::string list_query(const std::string& selector, const std::string& field_selector) {
  std::string query;
  if (!selector.empty()) query += "labelSelector=" + net::percent_encode(selector);
  if (!field_selector.empty()) query += (query.empty() ? "" : "&") + ("fieldSelector=" + net::percent_encode(field_selector));
  return query;
}

}  // namespace

// Longer than a screen: flags, what is wrong with them, then each way of showing what was found.
int run_get(const std::vector<std::string>& args) {
  CLI::App app("Shows objects as a table, or whole with -o", "berth get");
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> words;
  std::string output, selector, field_selector;
  bool everywhere = false, no_header = false, show_managed_fields = false;
  app.add_option("TYPE", words, "TYPE [NAME…] or TYPE/NAME…")->required();
  app.add_option("-o,--output", output, "wide, name, json or yaml")->check(CLI::IsMember({"wide", "name", "json", "yaml"}));
  app.add_option("-l,--selector", selector, "Only objects with these labels");
  app.add_option("--field-selector", field_selector, "Only objects with these field values");
  app.add_flag("-A,--all-namespaces", everywhere, "All namespaces");
  app.add_flag("--no-headers", no_header, "No header line");
  app.add_flag("--show-managed-fields", show_managed_fields, "With -o json and yaml: who owns which field, too");
  if (const auto code = parse_args(app, args)) return *code;
  auto targets = parse_resource_args(words);
  if (!targets) return report(targets.error());
  auto session = Session::open(flags);
  if (!session) return report(session.error());

  int code = 0;
  std::vector<json::Value> documents;
  const model::KindInfo* printed = nullptr;
  const bool several_kinds = std::ranges::any_of(*targets, [&](const ResourceName& one) { return one.kind != targets->front().kind; });
  bool found = false, in_namespaces = false;
  for (const ResourceName& target : *targets) {
    const std::string ns = target.kind->namespaced && !everywhere ? (*session)->ns() : "";
    const std::string path = client::resource_path(target.kind->gvr(), ns, target.name);
    if (output.empty() || output == "wide") {
      auto table = get_table(**session, path, target.name.empty() ? list_query(selector, field_selector) : "");
      if (!table) {
        code = report_about(**session, *target.kind, ns, target.name, table.error());
        continue;
      }
      in_namespaces = in_namespaces || !ns.empty();
      if (json::get_array(*table, {"rows"}).empty()) continue;
      found = true;
      if (printed != nullptr && printed != target.kind) std::printf("\n");
      print_table(*table, output == "wide", everywhere && target.kind->namespaced, !no_header && printed != target.kind,
                  several_kinds ? target.kind : nullptr);
      printed = target.kind;
      continue;
    }
    if (!target.name.empty()) {
      auto object = (*session)->client().get_and_wait(target.kind->gvr(), ns, target.name);
      if (!object)
        code = report_about(**session, *target.kind, ns, target.name, object.error());
      else
        documents.push_back(std::move(*object));
    } else {
      client::ListOptions options;
      options.label_selector = selector;
      options.field_selector = field_selector;
      auto page = (*session)->client().list_and_wait(target.kind->gvr(), ns, options);
      if (!page) {
        code = report(page.error());
        continue;
      }
      for (json::Value& item : page->items) {
        json::set(item, {"apiVersion"}, json::Value(target.kind->api_version()));
        json::set(item, {"kind"}, json::Value(target.kind->kind));
        documents.push_back(std::move(item));
      }
    }
  }
  if ((output.empty() || output == "wide") && !found && code == 0)
    std::fprintf(stderr, in_namespaces ? "No resources found in %s namespace.\n" : "No resources found\n", (*session)->ns().c_str());
  if (output == "name") {
    for (const json::Value& document : documents)
      if (auto kind = kind_of(document))
        std::printf("%s\n", qualified_name(**kind, json::get_string(document, {"metadata", "name"})).c_str());
  } else if (output == "json" || output == "yaml") {
    if (!show_managed_fields)
      for (json::Value& document : documents) json::erase(document, {"metadata", "managedFields"});
    const bool single = targets->size() == 1 && !targets->front().name.empty();
    if (code == 0 || !documents.empty()) print_documents(std::move(documents), output, single);
  }
  return code;
}

}  // namespace berth::cli
