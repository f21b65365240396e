// describe.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/clock.h"
#include "cli/command/parse.h"
#include "cli/command/session.h"
#include "cli/verbs/describe_text.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {
namespace {

/// What the text needs beside the object; what cannot be read is left out.
DescribeContext context_of(client::Client& client, const model::KindInfo& kind, const json::Value& object) {
  DescribeContext context;
  context.now = SystemClock().now();
  // A node's events are written by its name: kubelets do not know their node's uid.
  const std::string uid(json::get_string(object, {"metadata", "uid"})), name(json::get_string(object, {"metadata", "name"}));
  client::ListOptions about;
  about.field_selector = kind.kind == "Node" ? fmt::format("involvedObject.kind=Node,involvedObject.name={}", name)
                                             : fmt::format("involvedObject.uid={}", uid);
  if (auto page = client.list_and_wait({"", "v1", "events"},
                                       kind.namespaced ? std::string(json::get_string(object, {"metadata", "namespace"})) : "", about))
    context.events = std::move(page->items);
  if (kind.kind != "Node") return context;
  client::ListOptions here;
  here.field_selector = "spec.nodeName=" + name;
  if (auto page = client.list_and_wait({"", "v1", "pods"}, "", here)) context.pods = std::move(page->items);
  return context;
}

}  // namespace

int run_describe(const std::vector<std::string>& args) {
  CLI::App app("Shows objects in full, with their events", "berth describe");
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> words;
  std::string selector;
  app.add_option("TYPE", words, "TYPE [NAME…] or TYPE/NAME…")->required();
  app.add_option("-l,--selector", selector, "Only objects with these labels");
  if (const auto code = parse_args(app, args)) return *code;
  auto targets = parse_resource_args(words);
  if (!targets) return report(targets.error());
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  client::Client& client = (*session)->client();
  int code = 0;
  bool first = true;
  for (const ResourceName& target : *targets) {
    const std::string ns = target.kind->namespaced ? (*session)->ns() : "";
    std::vector<json::Value> objects;
    if (target.name.empty()) {
      client::ListOptions options;
      options.label_selector = selector;
      auto page = client.list_and_wait(target.kind->gvr(), ns, options);
      if (!page) return report(page.error());
      objects = std::move(page->items);
    } else if (auto object = client.get_and_wait(target.kind->gvr(), ns, target.name)) {
      objects.push_back(std::move(*object));
    } else {
      code = report_about(**session, *target.kind, ns, target.name, object.error());
    }
    for (const json::Value& object : objects) {
      const std::string text = (first ? "" : "\n\n") + describe(*target.kind, object, context_of(client, *target.kind, object));
      std::fwrite(text.data(), 1, text.size(), stdout);
      first = false;
    }
  }
  return code;
}

}  // namespace berth::cli
