#include "node/eviction/image_gc.h"

#include "node/eviction/go_text.h"

namespace berth::node::eviction {
namespace {

/// Several errors as Kubernetes prints them together: one alone as it is, more in brackets, the same one once.
std::string aggregate(const std::vector<std::string>& errors) {
  std::vector<std::string> distinct;
  for (const std::string& error : errors)
    if (std::ranges::find(distinct, error) == distinct.end()) distinct.push_back(error);
  return distinct.size() == 1 ? distinct[0] : fmt::format("[{}]", fmt::join(distinct, ", "));
}

}  // namespace

void ImageCollector::observe(const std::vector<Image>& images, const std::set<std::string>& used, TimePoint now) {
  std::map<std::string, Record> next;
  for (const Image& image : images) {
    Record record;
    if (const auto known = records_.find(image.id); known != records_.end())
      record = known->second;
    else if (has_observed_)
      record.first_seen = now;
    record.size_bytes = image.size_bytes;
    record.is_pinned = image.is_pinned;
    record.is_used = used.contains(image.id);
    if (record.is_used) record.last_used = now;
    next.insert_or_assign(image.id, record);
  }
  records_ = std::move(next);
  has_observed_ = true;
}

/// What may be deleted: least recently used first, then longest here, then by name.
std::vector<std::string> ImageCollector::in_order() const {
  std::vector<std::pair<std::string, const Record*>> images;
  for (const auto& [id, record] : records_)
    if (!record.is_used && !record.is_pinned) images.emplace_back(id, &record);
  std::ranges::stable_sort(images, [](const auto& a, const auto& b) {
    return a.second->last_used != b.second->last_used ? a.second->last_used < b.second->last_used
                                                      : a.second->first_seen < b.second->first_seen;
  });
  std::vector<std::string> ids;
  for (auto& [id, record] : images) ids.push_back(std::move(id));
  return ids;
}

ImageGcResult ImageCollector::collect(const FsUsage& fs, TimePoint now, const Remove& remove) {
  ImageGcResult result;
  const std::vector<std::string> left = remove_old(in_order(), now, remove, result);
  if (!result.error.empty()) return result;
  const std::uint64_t capacity = fs.capacity_bytes.value_or(0), available = std::min(fs.available_bytes.value_or(0), capacity);
  if (capacity == 0) {
    result.error = "invalid capacity 0 on image filesystem";
    result.event = {"InvalidDiskCapacity", result.error};
    return result;
  }
  // Both shares are cut to whole percents, as the kubelet's are. 128 bits: bytes times 100 may pass 2^64.
  using Wide = unsigned __int128;
  const int used_percent = 100 - static_cast<int>(static_cast<Wide>(available) * 100 / capacity);
  if (used_percent < policy_.high_threshold_percent) return result;
  const auto target =
      static_cast<std::uint64_t>(static_cast<Wide>(capacity) * static_cast<unsigned>(100 - policy_.low_threshold_percent) / 100);
  const std::uint64_t wanted = target > available ? target - available : 0;
  const std::uint64_t before = result.freed_bytes;
  free_space(left, wanted, now, remove, result);
  const std::uint64_t freed = result.freed_bytes - before;
  if (result.error.empty() && freed < wanted) {
    result.error = fmt::format(
        "Failed to garbage collect required amount of images. Attempted to free {} bytes, but only found {} bytes eligible to free.",
        wanted, freed);
    result.event = {"FreeDiskSpaceFailed", result.error};
  }
  return result;
}

ImageGcResult ImageCollector::delete_unused(TimePoint now, const Remove& remove) {
  ImageGcResult result;
  free_space(in_order(), std::numeric_limits<std::int64_t>::max(), now, remove, result);
  return result;
}

/// Returns what is left.
std::vector<std::string> ImageCollector::remove_old(std::vector<std::string> ids, TimePoint now, const Remove& remove,
                                                    ImageGcResult& result) {
  // Nobody knows when images were used before the agent began: its own age has to pass the limit first.
  if (policy_.maximum_age == Duration::zero() || now - started_ <= policy_.maximum_age) return ids;
  std::vector<std::string> left, errors;
  for (std::string& id : ids) {
    const Record& record = records_.at(id);
    if (record.last_used && now - *record.last_used <= policy_.maximum_age) {
      left.push_back(std::move(id));
      continue;
    }
    if (const auto removed = remove(id); !removed) {
      errors.push_back(removed.error().message);
      left.push_back(std::move(id));
      continue;
    }
    result.freed_bytes += record.size_bytes;
    records_.erase(id);
    result.removed.push_back(std::move(id));
  }
  if (!errors.empty())
    result.error = fmt::format("wanted to free images older than {}, encountered errors in image deletion: {}",
                               format_duration_ns(policy_.maximum_age.count() * 1000), aggregate(errors));
  return left;
}

void ImageCollector::free_space(const std::vector<std::string>& ids, std::uint64_t wanted, TimePoint now, const Remove& remove,
                                ImageGcResult& result) {
  std::vector<std::string> errors;
  std::uint64_t freed = 0;
  for (const std::string& id : ids) {
    const Record& record = records_.at(id);
    // It may have been pulled for a container that starts in a moment.
    if (record.first_seen && now - *record.first_seen < policy_.minimum_age) continue;
    if (const auto removed = remove(id); !removed) {
      errors.push_back(removed.error().message);
      continue;
    }
    freed += record.size_bytes;
    result.removed.push_back(id);
    records_.erase(id);
    if (freed >= wanted) break;
  }
  result.freed_bytes += freed;
  if (!errors.empty())
    result.error = fmt::format("wanted to free {} bytes, but freed {} bytes space with errors in image deletion: {}", wanted, freed,
                               aggregate(errors));
}

}  // namespace berth::node::eviction
