// All objects of one resource, kept parsed, for what admission asks on every request (PriorityClasses, LimitRanges, quotas, webhooks).
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apiserver/cache/object_cache.h"
#include "base/json.h"

namespace berth::apiserver {

/// Follows the cache by a watch of its own: after a write's callback has run, the mirror has it. Documents are parsed when first asked for.
/// Thread-safe. Must be destroyed before its cache.
class Mirror {
 public:
  using Document = std::shared_ptr<const json::Value>;
  Mirror(ObjectCache& cache, std::string_view storage_group, std::string_view plural);
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  /// Null when there is none.
  [[nodiscard]] Document get(std::string_view ns, std::string_view name) const;
  /// In order of name; of one namespace, or of all when empty (cluster-scoped resources have an empty namespace).
  [[nodiscard]] std::vector<Document> list(std::string_view ns = {}) const;
  [[nodiscard]] bool empty() const;
  /// As list(ns).empty(), of a namespace.
  [[nodiscard]] bool empty(std::string_view ns) const;
  /// Rises with every change.
  [[nodiscard]] std::uint64_t generation() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace berth::apiserver
