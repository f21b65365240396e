#include "cli/planning/pool_documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command/session.h"
#include "pools/documents.h"

namespace berth::cli {

Result<std::vector<json::Value>> read_pool_documents(const std::vector<std::string>& files) {
  auto manifests = read_documents(files);
  if (!manifests) return std::unexpected(manifests.error());
  std::vector<std::string> wrong;
  std::vector<json::Value> out;
  for (Manifest& manifest : *manifests) {
    json::Value document = manifest.document;
    for (const pools::Finding& one : pools::complete(document)) {
      const int line = manifest.line_of(one.path);
      wrong.push_back(fmt::format("{}{}: {}: {}", manifest.file, line > 0 ? fmt::format(":{}", line) : "", one.path, one.what));
    }
    out.push_back(std::move(document));
  }
  if (!wrong.empty()) return invalid(fmt::format("{}", fmt::join(wrong, "\n")));
  return out;
}

}  // namespace berth::cli
