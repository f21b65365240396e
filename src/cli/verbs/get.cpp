// get and describe.
#include <cstdio>
#include <future>

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "cli/parse.h"
#include "cli/session.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {
namespace {

constexpr const char* kTableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// A GET that asks for a Table; blocking.
model::ApiResult<json::Value> get_table(Session& session, const std::string& path, const std::string& query) {
  net::HttpRequest request;
  request.method = "GET";
  request.path = path;
  request.query = query;
  request.headers.add("Accept", kTableAccept);
  std::promise<net::HttpResponse> answer;
  session.client().transport()->send(std::move(request), [&](net::HttpResponse response) { answer.set_value(std::move(response)); });
  const net::HttpResponse response = answer.get_future().get();
  if (response.status < 200 || response.status > 299) return std::unexpected(model::ApiStatus::from_json(response.status, response.body));
  auto table = json::parse(response.body);
  if (!table) return std::unexpected(model::internal_error(table.error().message));
  return std::move(*table);
}

std::string list_query(const std::string& selector, const std::string& field_selector) {
  std::string query;
  if (!selector.empty()) query += "labelSelector=" + net::percent_encode(selector);
  if (!field_selector.empty()) query += (query.empty() ? "" : "&") + ("fieldSelector=" + net::percent_encode(field_selector));
  return query;
}

void print_documents(std::vector<json::Value> documents, const std::string& output, bool single) {
  json::Value shown;
  if (single && documents.size() == 1) shown = std::move(documents[0]);
  else shown = {{"apiVersion", "v1"}, {"items", json::Array(documents.begin(), documents.end())}, {"kind", "List"}, {"metadata", {{"resourceVersion", ""}}}};
  const std::string text = output == "json" ? json::serialize_pretty(shown) : json::to_yaml(shown);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// One line "Key:   value" or a nested block, as describe's shape is.
void print_field(const std::string& name, const json::Value& value, int indent) {
  const std::string pad(static_cast<std::size_t>(indent), ' ');
  if (value.is_object() || value.is_array()) {
    const std::string yaml = json::to_yaml(value);
    std::printf("%s%s:\n", pad.c_str(), name.c_str());
    for (std::size_t start = 0; start < yaml.size();) {
      const std::size_t end = yaml.find('\n', start);
      std::printf("%s  %s\n", pad.c_str(), yaml.substr(start, end - start).c_str());
      start = end + 1;
    }
  } else {
    std::printf("%s%-20s %s\n", pad.c_str(), (name + ":").c_str(), value.is_string() ? std::string(json::as_view(value)).c_str() : json::serialize(value).c_str());
  }
}

void print_map(const std::string& name, const json::Object& map) {
  if (map.empty()) {
    std::printf("%-20s <none>\n", (name + ":").c_str());
    return;
  }
  bool first = true;
  for (const auto& [key, value] : map) {
    std::printf("%-20s %s=%s\n", first ? (name + ":").c_str() : "", std::string(key).c_str(), value.is_string() ? std::string(json::as_view(value)).c_str() : json::serialize(value).c_str());
    first = false;
  }
}

void print_events(Session& session, const json::Value& object) {
  client::ListOptions options;
  options.field_selector = fmt::format("involvedObject.uid={}", json::get_string(object, {"metadata", "uid"}));
  const std::string ns(json::get_string(object, {"metadata", "namespace"}));
  auto page = session.client().list_and_wait({"", "v1", "events"}, ns, options);
  if (!page || page->items.empty()) {
    std::printf("Events:              <none>\n");
    return;
  }
  json::Value table = {{"columnDefinitions", json::Array()}, {"rows", json::Array()}};
  for (const char* column : {"Type", "Reason", "Age", "From", "Message"}) table.at("columnDefinitions").as_array().push_back(json::Object{{"name", column}, {"priority", 0}});
  const TimePoint now = SystemClock().now();
  for (const json::Value& event : page->items) {
    const auto last = parse_rfc3339(json::get_string(event, {"lastTimestamp"}, json::get_string(event, {"eventTime"})));
    const std::string age = last ? format_go_duration(std::chrono::floor<std::chrono::seconds>(now - *last)) : "<unknown>";
    std::string_view source = json::get_string(event, {"source", "component"}, json::get_string(event, {"reportingComponent"}));
    table.at("rows").as_array().push_back(json::Object{{"cells", json::Array{json::get_string(event, {"type"}), json::get_string(event, {"reason"}), age, source, json::get_string(event, {"message"})}}});
  }
  std::printf("Events:\n");
  print_table(table, false, false, true);
}

}  // namespace

int run_get(const std::vector<std::string>& args) {
  CLI::App app("Shows objects as a table, or whole with -o", "berth get");
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> words;
  std::string output, selector, field_selector;
  bool everywhere = false, no_header = false;
  app.add_option("args", words, "TYPE [NAME…] or TYPE/NAME…")->required();
  app.add_option("-o,--output", output, "wide, name, json or yaml")->check(CLI::IsMember({"wide", "name", "json", "yaml"}));
  app.add_option("-l,--selector", selector, "Only objects with these labels");
  app.add_option("--field-selector", field_selector, "Only objects with these field values");
  app.add_flag("-A,--all-namespaces", everywhere, "All namespaces");
  app.add_flag("--no-headers", no_header, "No header line");
  if (const auto code = parse_args(app, args)) return *code;
  auto targets = parse_resource_args(words);
  if (!targets) return report(targets.error());
  auto session = Session::open(flags);
  if (!session) return report(session.error());

  int code = 0;
  std::vector<json::Value> documents;
  const model::KindInfo* printed = nullptr;
  for (const ResourceName& target : *targets) {
    const std::string ns = target.kind->namespaced && !everywhere ? (*session)->ns() : "";
    const std::string path = client::resource_path(target.kind->gvr(), ns, target.name);
    if (output.empty() || output == "wide") {
      auto table = get_table(**session, path, target.name.empty() ? list_query(selector, field_selector) : "");
      if (!table) {
        code = report(table.error());
        continue;
      }
      if (json::get_array(*table, {"rows"}).empty()) {
        std::fprintf(stderr, target.kind->namespaced && !everywhere ? "No resources found in %s namespace.\n" : "No resources found\n", ns.c_str());
        continue;
      }
      if (printed != nullptr && printed != target.kind) std::printf("\n");
      print_table(*table, output == "wide", everywhere && target.kind->namespaced, !no_header && printed != target.kind);
      printed = target.kind;
      continue;
    }
    if (!target.name.empty()) {
      auto object = (*session)->client().get_and_wait(target.kind->gvr(), ns, target.name);
      if (!object) code = report(object.error());
      else documents.push_back(std::move(*object));
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
  if (output == "name") {
    for (const json::Value& document : documents)
      if (auto kind = kind_of(document)) std::printf("%s\n", qualified_name(**kind, json::get_string(document, {"metadata", "name"})).c_str());
  } else if (output == "json" || output == "yaml") {
    const bool single = targets->size() == 1 && !targets->front().name.empty();
    if (code == 0 || !documents.empty()) print_documents(std::move(documents), output, single);
  }
  return code;
}

int run_describe(const std::vector<std::string>& args) {
  CLI::App app("Shows one object in full, with its events", "berth describe");
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> words;
  app.add_option("args", words, "TYPE NAME or TYPE/NAME")->required();
  if (const auto code = parse_args(app, args)) return *code;
  auto targets = parse_resource_args(words);
  if (!targets) return report(targets.error());
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  int code = 0;
  for (const ResourceName& target : *targets) {
    const std::string ns = target.kind->namespaced ? (*session)->ns() : "";
    std::vector<json::Value> objects;
    if (target.name.empty()) {
      auto page = (*session)->client().list_and_wait(target.kind->gvr(), ns);
      if (!page) return report(page.error());
      objects = std::move(page->items);
    } else {
      auto object = (*session)->client().get_and_wait(target.kind->gvr(), ns, target.name);
      if (!object) {
        code = report(object.error());
        continue;
      }
      objects.push_back(std::move(*object));
    }
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const json::Value& object = objects[i];
      if (i > 0) std::printf("\n\n");
      std::printf("%-20s %s\n", "Name:", std::string(json::get_string(object, {"metadata", "name"})).c_str());
      if (target.kind->namespaced) std::printf("%-20s %s\n", "Namespace:", std::string(json::get_string(object, {"metadata", "namespace"})).c_str());
      print_map("Labels", json::get_object(object, {"metadata", "labels"}));
      print_map("Annotations", json::get_object(object, {"metadata", "annotations"}));
      std::printf("%-20s %s\n", "CreationTimestamp:", std::string(json::get_string(object, {"metadata", "creationTimestamp"})).c_str());
      for (const auto& [key, value] : object.get_object())
        if (key != "metadata" && key != "apiVersion" && key != "kind") print_field(std::string(key), value, 0);
      print_events(**session, object);
    }
  }
  return code;
}

}  // namespace berth::cli
