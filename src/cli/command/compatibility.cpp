#include "cli/command/compatibility.h"

#include <CLI/CLI.hpp>

#include "node/eviction/policies.h"

namespace berth::cli {

void Compatibility::add_to(CLI::App& app, const std::string& acts_on) {
  app.add_option(
         "--compatibility", word_,
         acts_on + ": as the documents say (documents, or 1.20) or as today's Kubernetes does (today, or 1.36); docs/differences.md")
      ->check(CLI::IsMember({"documents", "1.20", "today", "1.36"}));
}

std::optional<placement::Era> Compatibility::era() const {
  if (word_.empty()) return std::nullopt;
  return follows_documents() ? placement::Era::k120 : placement::Era::k136;
}

void Compatibility::apply(node::eviction::KubeletSettings& settings) const {
  if (follows_documents()) node::eviction::follow_documents(settings);
}

}  // namespace berth::cli
