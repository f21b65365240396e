#include "cli/verbs/output.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <future>
#include <map>

namespace berth::cli {
namespace {

constexpr const char* kTableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// Objects sorted by key, as kubectl prints them.
json::Value sorted(const json::Value& value) {
  if (value.is_array()) {
    json::Array out;
    for (const json::Value& element : value.get_array()) out.push_back(sorted(element));
    return out;
  }
  if (!value.is_object()) return value;
  std::map<std::string_view, const json::Value*> members;
  for (const auto& [key, member] : value.get_object()) members.emplace(std::string_view(key.data(), key.size()), &member);
  json::Object out;
  for (const auto& [key, member] : members) out[key] = sorted(*member);
  return out;
}

}  // namespace

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

void print_documents(std::vector<json::Value> documents, const std::string& output, bool single) {
  json::Value shown;
  if (single && documents.size() == 1)
    shown = std::move(documents[0]);
  else
    shown = {{"apiVersion", "v1"},
             {"items", json::Array(documents.begin(), documents.end())},
             {"kind", "List"},
             {"metadata", {{"resourceVersion", ""}}}};
  const std::string text = output == "json" ? json::serialize_pretty(sorted(shown)) : json::to_yaml(shown);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void ChangeFlags::add_to(CLI::App& app) {
  app.add_option("--dry-run", dry_run, "client: only print what would be sent; server: the server checks it and changes nothing")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "client", "server"}));
  app.add_option("-o,--output", output, "Print the object: json, yaml or name")->check(CLI::IsMember({"json", "yaml", "name"}));
}

void ChangeFlags::print(const model::KindInfo& kind, const json::Value& object, std::string_view past) const {
  const std::string name = qualified_name(kind, json::get_string(object, {"metadata", "name"}));
  if (output == "name") {
    std::printf("%s\n", name.c_str());
  } else if (!output.empty()) {
    json::Value shown = object;
    json::erase(shown, {"metadata", "managedFields"});
    print_documents({std::move(shown)}, output, true);
  } else {
    const char* how = dry_run == "client" ? " (dry run)" : dry_run == "server" ? " (server dry run)" : "";
    std::printf("%s %.*s%s\n", name.c_str(), static_cast<int>(past.size()), past.data(), how);
  }
}

std::string joined_query(std::initializer_list<std::string> parts) {
  std::string out;
  for (const std::string& part : parts)
    if (!part.empty()) out += (out.empty() ? "" : "&") + part;
  return out;
}

}  // namespace berth::cli
