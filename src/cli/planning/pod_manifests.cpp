#include "cli/planning/pod_manifests.h"

#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "cli/command/session.h"
#include "cli/verbs/strict.h"
#include "model/unknown_fields.h"

namespace berth::cli {
namespace {

/// Of an export of thousands of objects that all have the same the first say enough.
constexpr std::size_t kMostTold = 20;

std::vector<std::string> findings_in(Manifest& manifest, std::set<std::string>& unknown_kinds) {
  const auto kind = kind_of(manifest.document);
  if (!kind) {
    const bool is_new = unknown_kinds.emplace(kind.error().message).second;
    return is_new ? std::vector{fmt::format("{}: passed over: {}", manifest.file, kind.error().message)} : std::vector<std::string>();
  }
  manifest.kind = *kind;
  std::string words;
  for (const std::string& path : model::unknown_fields(**kind, manifest.document, nullptr))
    words += fmt::format("unknown field \"{}\"\n", path);
  return places_of(manifest, words);
}

}  // namespace

Result<std::vector<json::Value>> read_pod_manifests(const std::vector<std::string>& files) {
  auto manifests = read_documents(files);
  if (!manifests) return std::unexpected(manifests.error());
  std::vector<json::Value> out;
  std::vector<std::string> findings;
  std::set<std::string> unknown_kinds;
  for (Manifest& manifest : *manifests) {
    if (findings.size() <= kMostTold)
      for (std::string& one : findings_in(manifest, unknown_kinds)) findings.push_back(std::move(one));
    out.push_back(std::move(manifest.document));
  }
  for (std::size_t i = 0; i < std::min(kMostTold, findings.size()); ++i) std::fprintf(stderr, "warning: %s\n", findings[i].c_str());
  if (findings.size() > kMostTold) std::fprintf(stderr, "warning: and more of these\n");
  return out;
}

}  // namespace berth::cli
