#include "apiserver/cache/label_pool.h"

#include <unordered_map>
#include <unordered_set>

#include "base/mutex.h"
#include "model/label_hash.h"

namespace berth::apiserver {

std::shared_ptr<const model::Labels> share_labels(const model::Labels& labels) {
  static const auto empty = std::make_shared<const model::Labels>();
  static auto* pool = new SharedPool<model::Labels, model::LabelsHash>;
  return labels.empty() ? empty : pool->share(labels);
}

const std::string* intern_field_path(std::string_view path) {
  thread_local std::unordered_map<std::string_view, const std::string*> known;
  if (auto found = known.find(path); found != known.end()) return found->second;
  static auto* mutex = new Mutex;
  static auto* paths = new std::unordered_set<std::string>;
  MutexLock lock(*mutex);
  const std::string* interned = &*paths->emplace(path).first;
  known.emplace(*interned, interned);
  return interned;
}

}  // namespace berth::apiserver
