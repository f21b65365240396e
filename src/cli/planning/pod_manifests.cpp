#include "cli/planning/pod_manifests.h"

#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "cli/command/session.h"
#include "cli/verbs/strict.h"
#include "model/schema.h"
#include "model/unknown_fields.h"
#include "whatif/manifests.h"

namespace berth::cli {
namespace {

/// Of an export of thousands of objects that all have the same the first say enough.
constexpr std::size_t kMostTold = 20;

std::string place_of(const Manifest& manifest, const std::string& path) {
  const int line = path.empty() ? 0 : manifest.line_of(path);
  return line > 0 ? fmt::format("{}:{}", manifest.file, line) : manifest.file;
}

/// What the API server would say of the object beyond its fields' names; an error where it could not read it at all. Names that a question
/// does without are made up.
Result<std::vector<std::string>> refusals_of(const Manifest& manifest) {
  const model::KindInfo& kind = *manifest.kind;
  json::Value document = manifest.document;
  model::DecodeReport report;
  if (const auto read = model::decode(kind, document, report); !read)
    return invalid(
        fmt::format("{}: {}: {}", place_of(manifest, read.error().place), read.error().place, read.error().status(kind).message));
  for (const char* field : {"name", "namespace"})
    if ((kind.namespaced || field != std::string_view("namespace")) && json::get_string(document, {"metadata", field}).empty())
      json::set(document, {"metadata", field}, json::Value("asked"));
  model::apply_defaults(kind, document);
  model::prepare_for_create(kind, document);
  std::vector<std::string> out;
  for (const model::FieldError& error : model::validate_create(kind, document))
    out.push_back(fmt::format("{}: the API server would refuse it: {}", place_of(manifest, error.field), error.render()));
  return out;
}

Result<std::vector<std::string>> findings_in(Manifest& manifest, std::set<std::string>& unknown_kinds) {
  const auto kind = kind_of(manifest.document);
  if (!kind) {
    const bool is_new = unknown_kinds.emplace(kind.error().message).second;
    return is_new ? std::vector{fmt::format("{}: passed over: {}", manifest.file, kind.error().message)} : std::vector<std::string>();
  }
  manifest.kind = *kind;
  std::string words;
  for (const std::string& path : model::unknown_fields(**kind, manifest.document, nullptr))
    words += fmt::format("unknown field \"{}\"\n", path);
  auto out = refusals_of(manifest);
  if (out) std::ranges::move(places_of(manifest, words), std::back_inserter(*out));
  return out;
}

}  // namespace

Result<std::vector<json::Value>> read_pod_manifests(const std::vector<std::string>& files) {
  auto manifests = read_documents(files);
  if (!manifests) return std::unexpected(manifests.error());
  std::vector<json::Value> out;
  std::vector<std::string> findings;
  std::set<std::string> unknown_kinds;
  for (Manifest& manifest : *manifests) {
    auto found = findings_in(manifest, unknown_kinds);
    if (!found) return std::unexpected(found.error());
    if (findings.size() <= kMostTold) std::ranges::move(*found, std::back_inserter(findings));
    out.push_back(std::move(manifest.document));
  }
  for (std::size_t i = 0; i < std::min(kMostTold, findings.size()); ++i) std::fprintf(stderr, "warning: %s\n", findings[i].c_str());
  if (findings.size() > kMostTold) std::fprintf(stderr, "warning: and more of these\n");
  return out;
}

void tell_unknown_priorities(const std::vector<std::string>& class_names, const placement::Cluster& cluster) {
  for (const std::string& name : std::set<std::string>(class_names.begin(), class_names.end()))
    if (const std::string unknown = whatif::unknown_priority(name, cluster); !unknown.empty())
      std::fprintf(stderr, "warning: %s\n", unknown.c_str());
}

}  // namespace berth::cli
