#include "cli/command/session.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "base/config_reader.h"
#include "base/go/strings.h"
#include "base/split.h"
#include "cli/command/kubectl_words.h"
#include "cli/command/manifest_text.h"
#include "client/hooked_transport.h"
#include "client/kubeconfig.h"

namespace berth::cli {
namespace {

Result<std::string> read_file(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::kNotFound, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> files_below(const std::string& path) {
  std::error_code error;
  if (path == "-" || !std::filesystem::is_directory(path, error)) return {path};
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string extension = entry.path().extension();
    if (extension == ".yaml" || extension == ".yml" || extension == ".json") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string cell_text(const json::Value& cell) {
  if (cell.is_string()) return std::string(json::as_view(cell));
  if (cell.is_null()) return "<none>";
  return json::serialize(cell);
}

/// What the server warns of (RFC 7234's Warning: 299 - "text"), on standard error as kubectl shows it; each text once.
void show_warnings(const net::Headers& headers, std::set<std::string>& shown) {
  for (const auto& [name, value] : headers.fields()) {
    if (go::to_lower(name) != "warning") continue;
    const std::size_t open = value.find('"'), close = value.rfind('"');
    if (open == std::string::npos || close <= open) continue;
    std::string text;
    for (std::size_t i = open + 1; i < close; ++i) {
      if (value[i] == '\\' && i + 1 < close) ++i;
      text += value[i];
    }
    if (shown.insert(text).second) std::fprintf(stderr, "Warning: %s\n", text.c_str());
  }
}

}  // namespace

void ConnectionFlags::add_to(CLI::App& app) {
  app.add_option("--kubeconfig", kubeconfig, "Path of the kubeconfig (default: $KUBECONFIG, then ~/.kube/config)");
  app.add_option("--context", context, "The kubeconfig context to use");
  app.add_option("-n,--namespace", ns, "Namespace (default: the context's, then \"default\")");
}

Result<std::unique_ptr<Session>> Session::open(const ConnectionFlags& flags) {
  auto config = client::load_kubeconfig(flags.kubeconfig, flags.context);
  if (!config) return std::unexpected(config.error());
  auto transport = client::transport_for(*config);
  if (!transport) return std::unexpected(transport.error());
  // Answers come on the transport's thread, one after the other.
  transport = client::with_hooks(
      std::move(*transport),
      {{}, [shown = std::make_shared<std::set<std::string>>()](int, const net::Headers& headers) { show_warnings(headers, *shown); }});
  const std::string ns = !flags.ns.empty() ? flags.ns : !config->ns.empty() ? config->ns : "default";
  return std::unique_ptr<Session>(new Session(std::move(*transport), std::move(*config), ns));
}

Result<const model::KindInfo*> resolve_resource(const std::string& word) {
  // What OpenShift calls a project is a namespace.
  const std::string said = go::to_lower(word), wanted = said == "project" || said == "projects" ? "namespaces" : said;
  const std::string plural = wanted.substr(0, wanted.find('.'));
  const std::string group = wanted.find('.') == std::string::npos ? "" : wanted.substr(wanted.find('.') + 1);
  for (const model::KindInfo& kind : model::all_kinds()) {
    if (!kind.has_verb("get") && !kind.has_verb("list")) continue;
    if (!group.empty() && kind.group != group && kind.version + "." + kind.group != group) continue;
    const bool is_short = std::find(kind.short_names.begin(), kind.short_names.end(), plural) != kind.short_names.end();
    if (plural == kind.plural || plural == kind.singular || plural == go::to_lower(kind.kind) || is_short) {
      const model::KindInfo* preferred = group.empty() ? model::find_resource(kind.group, kind.plural) : &kind;
      return preferred != nullptr ? preferred : &kind;
    }
  }
  return invalid(fmt::format("the server doesn't have a resource type \"{}\"{}", word, instead_of_type(plural)));
}

Result<std::vector<ResourceName>> parse_resource_args(const std::vector<std::string>& args) {
  std::vector<ResourceName> out;
  if (args.empty()) return invalid("you must specify the type of resource, for example: pods, or deployment/web");
  if (args[0].find('/') != std::string::npos) {
    for (const std::string& arg : args) {
      const std::size_t slash = arg.find('/');
      if (slash == std::string::npos || slash + 1 == arg.size())
        return invalid(fmt::format("\"{}\": there is no need to mix TYPE and TYPE/NAME; give TYPE/NAME throughout", arg));
      auto kind = resolve_resource(arg.substr(0, slash));
      if (!kind) return std::unexpected(kind.error());
      out.push_back({*kind, arg.substr(slash + 1)});
    }
    return out;
  }
  for (const auto type : split(args[0], ',')) {
    const std::string word(type);
    if (go::to_lower(word) == "all" && args.size() == 1) {
      for (const model::KindInfo& one : model::all_kinds())
        if (std::ranges::find(one.categories, "all") != one.categories.end() && model::find_resource(one.group, one.plural) == &one)
          out.push_back({&one, ""});
      continue;
    }
    auto kind = resolve_resource(word);
    if (!kind) return std::unexpected(kind.error());
    if (args.size() == 1) out.push_back({*kind, ""});
    for (std::size_t i = 1; i < args.size(); ++i) out.push_back({*kind, args[i]});
  }
  return out;
}

Result<std::vector<Manifest>> read_documents(const std::vector<std::string>& files) {
  std::vector<Manifest> out;
  for (const std::string& given : files)
    for (const std::string& path : files_below(given)) {
      auto text = read_file(path);
      if (!text) return std::unexpected(text.error());
      auto read = read_manifest_text(*text);
      if (!read) return invalid(fmt::format("{}: {}", path, read.error().message));
      for (const std::string& change : read->changes) fmt::print(stderr, "warning: {}: {}\n", path, change);
      const auto source = std::make_shared<const std::string>(std::move(read->text));
      for (std::size_t number = 0; number < read->documents.size(); ++number) {
        json::Value& document = read->documents[number];
        const std::string_view kind = json::get_string(document, {"kind"});
        if (kind.ends_with("List") && json::find(document, {"items"}) != nullptr) {
          const json::Array& items = json::get_array(document, {"items"});
          for (std::size_t i = 0; i < items.size(); ++i)
            out.push_back({path, items[i], nullptr, source, number, fmt::format("items[{}]", i)});
        } else {
          out.push_back({path, std::move(document), nullptr, source, number, ""});
        }
      }
    }
  return out;
}

Result<std::vector<Manifest>> read_manifests(const std::vector<std::string>& files) {
  auto out = read_documents(files);
  if (!out) return out;
  for (Manifest& manifest : *out) {
    auto kind = kind_of(manifest.document);
    if (!kind) return invalid(fmt::format("{}: {}", manifest.file, kind.error().message));
    manifest.kind = *kind;
  }
  return out;
}

int Manifest::line_of(const std::string& path) const {
  if (text == nullptr) return 0;
  return config::line_finder(*text, number)(within.empty() ? path : within + "." + path);
}

namespace {

/// `; did you mean "Pod"?`, "; it is in apps/v1"; nothing for a kind that nobody knows.
std::string kind_meant(const std::string& kind, const std::string& api_version) {
  const std::string said = go::to_lower(kind);
  const model::KindInfo* same_word = nullptr;
  std::vector<std::string> names;
  for (const model::KindInfo& one : model::all_kinds()) {
    if (one.api_version() == api_version) names.push_back(one.kind);
    if (go::to_lower(one.kind) != said && one.plural != said) continue;
    if (same_word == nullptr || one.api_version() == api_version) same_word = &one;
  }
  if (same_word == nullptr) return did_you_mean(kind, names);
  if (same_word->api_version() == api_version) return fmt::format("; did you mean \"{}\"?", same_word->kind);
  return fmt::format("; did you mean \"{}\" in version \"{}\"?", same_word->kind, same_word->api_version());
}

}  // namespace

Result<const model::KindInfo*> kind_of(const json::Value& document) {
  const std::string api_version(json::get_string(document, {"apiVersion"}));
  const std::string kind(json::get_string(document, {"kind"}));
  if (api_version.empty()) return invalid("apiVersion not set");
  if (kind.empty()) return invalid("kind not set");
  const std::size_t slash = api_version.find('/');
  const std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
  const std::string version = slash == std::string::npos ? api_version : api_version.substr(slash + 1);
  const model::KindInfo* info = model::find_kind(group, version, kind);
  if (info == nullptr)
    return invalid(fmt::format("no matches for kind \"{}\" in version \"{}\"{}", kind, api_version, kind_meant(kind, api_version)));
  return info;
}

void print_table(const json::Value& table, bool wide, bool with_namespace, bool with_header, const model::KindInfo* named) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::size_t> columns;
  std::vector<std::string> header;
  if (with_namespace) header.push_back("NAMESPACE");
  const json::Array& definitions = json::get_array(table, {"columnDefinitions"});
  for (std::size_t i = 0; i < definitions.size(); ++i) {
    if (!wide && json::get_int(definitions[i], {"priority"}) != 0) continue;
    columns.push_back(i);
    std::string name(json::get_string(definitions[i], {"name"}));
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    header.push_back(name);
  }
  if (with_header) lines.push_back(header);
  for (const json::Value& row : json::get_array(table, {"rows"})) {
    std::vector<std::string> line;
    if (with_namespace) line.emplace_back(json::get_string(row, {"object", "metadata", "namespace"}));
    const json::Array& cells = json::get_array(row, {"cells"});
    for (const std::size_t column : columns) line.push_back(column < cells.size() ? cell_text(cells[column]) : "");
    if (named != nullptr && !columns.empty()) line[with_namespace ? 1 : 0] = qualified_name(*named, line[with_namespace ? 1 : 0]);
    lines.push_back(std::move(line));
  }
  std::vector<std::size_t> widths(header.size(), 0);
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], display_width(line[i]));
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      text += line[i];
      if (i + 1 < line.size()) text.append(widths[i] - display_width(line[i]) + 3, ' ');
    }
    std::printf("%s\n", text.c_str());
  }
}

int report(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  return 1;
}

int report(const model::ApiStatus& status) {
  if (status.code == 0)
    std::fprintf(stderr, "error: the server could not be reached: %s\n", status.message.c_str());
  else
    std::fprintf(stderr, "Error from server (%s): %s\n", status.reason.empty() ? "Unknown" : status.reason.c_str(), status.message.c_str());
  return 1;
}

int report_about(Session& session, const model::KindInfo& kind, const std::string& ns, const std::string& name,
                 const model::ApiStatus& status) {
  if (!status.is("NotFound") || !kind.namespaced || ns.empty()) return report(status);
  model::ApiStatus told = status;
  told.message += fmt::format(" in namespace \"{}\"", ns);
  client::ListOptions everywhere;
  everywhere.field_selector = "metadata.name=" + name;
  everywhere.limit = 10;
  if (const auto page = session.client().list_and_wait(kind.gvr(), "", everywhere); page && !page->items.empty()) {
    std::string where;
    for (const json::Value& one : page->items)
      where += fmt::format("{}-n {}", where.empty() ? "" : " or ", json::get_string(one, {"metadata", "namespace"}));
    told.message += "; there is one with " + where;
  }
  return report(told);
}

std::string qualified_name(const model::KindInfo& kind, std::string_view name) {
  return kind.singular + (kind.group.empty() ? "" : "." + kind.group) + "/" + std::string(name);
}

}  // namespace berth::cli
