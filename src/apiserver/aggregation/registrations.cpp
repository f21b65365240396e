#include "apiserver/aggregation/registrations.h"

#include "apiserver/cache/follow.h"
#include "apiserver/cache/object_codec.h"
#include "base/base64.h"
#include "base/mutex.h"

namespace berth::apiserver::aggregation {

Registration read_registration(const StoredObject& object) {
  const auto document = decode_object(object);
  Registration out;
  out.name = object.meta.name;
  out.group = json::get_string(document, {"spec", "group"});
  out.version = json::get_string(document, {"spec", "version"});
  out.group_priority = static_cast<int>(json::get_int(document, {"spec", "groupPriorityMinimum"}));
  out.version_priority = static_cast<int>(json::get_int(document, {"spec", "versionPriority"}));
  out.service_ns = json::get_string(document, {"spec", "service", "namespace"});
  out.service_name = json::get_string(document, {"spec", "service", "name"});
  out.service_port = static_cast<int>(json::get_int(document, {"spec", "service", "port"}, 443));
  out.ca_pem = base64_decode(json::get_string(document, {"spec", "caBundle"})).value_or("");
  out.is_insecure = json::get_bool(document, {"spec", "insecureSkipTLSVerify"});
  for (const auto& condition : json::get_array(document, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == "Available") {
      out.status = json::get_string(condition, {"status"});
      out.reason = json::get_string(condition, {"reason"});
      out.message = json::get_string(condition, {"message"});
    }
  out.revision = object.revision;
  return out;
}

struct Registrations::State {
  explicit State(std::function<void()> told) : changed(std::move(told)) {}

  void take(const WatchEvent& event) {
    auto registration = read_registration(*event.object);
    const auto key = std::pair(registration.group, registration.version);
    {
      const MutexLock lock(mutex);
      auto next = std::make_shared<Table>(*table);
      if (event.type == WatchEventType::kDeleted)
        next->erase(key);
      else
        next->insert_or_assign(key, std::move(registration));
      has_remote = std::ranges::any_of(*next, [](const auto& entry) { return entry.second.is_remote(); });
      table = std::move(next);
    }
    changed();
  }

  const std::function<void()> changed;
  mutable Mutex mutex;
  std::shared_ptr<const Table> table BERTH_GUARDED_BY(mutex) = std::make_shared<const Table>();
  std::atomic<bool> has_remote{false};
};

Registrations::Registrations(ObjectCache& cache, std::function<void()> changed) : state_(std::make_shared<State>(std::move(changed))) {
  const auto take = [this](const WatchEvent& event) { state_->take(event); };
  watch_ = follow(cache, make_prefix("apiregistration.k8s.io", "apiservices"), take);
}

Registrations::~Registrations() = default;

std::shared_ptr<const Table> Registrations::table() const {
  const MutexLock lock(state_->mutex);
  return state_->table;
}

bool Registrations::has_remote() const { return state_->has_remote; }

std::optional<Registration> Registrations::remote(std::string_view group, std::string_view version) const {
  if (!has_remote()) return std::nullopt;
  const auto all = table();
  const auto found = all->find(std::pair(std::string(group), std::string(version)));
  if (found == all->end() || !found->second.is_remote()) return std::nullopt;
  return found->second;
}

namespace {

struct VersionRank {
  int stage = 0, major = 0, minor = 0;  ///< Stage: 3 without, 2 beta, 1 alpha, 0 anything else.
  friend auto operator<=>(const VersionRank&, const VersionRank&) = default;
};

VersionRank rank_of(std::string_view text) {
  VersionRank out;
  const char* at = text.data() + 1;
  const char* end = text.data() + text.size();
  if (!text.starts_with('v')) return {};
  const auto major = std::from_chars(at, end, out.major);
  if (major.ec != std::errc()) return {};
  const std::string_view rest(major.ptr, end);
  if (rest.empty()) return {3, out.major, 0};
  for (const auto& [word, stage] : {std::pair(std::string_view("beta"), 2), std::pair(std::string_view("alpha"), 1)}) {
    if (!rest.starts_with(word)) continue;
    const auto minor = std::from_chars(rest.data() + word.size(), end, out.minor);
    if (minor.ec == std::errc() && minor.ptr == end) return {stage, out.major, out.minor};
  }
  return {};
}

}  // namespace

bool is_newer_version(std::string_view a, std::string_view b) {
  const auto left = rank_of(a), right = rank_of(b);
  return left != right ? left > right : a < b;
}

}  // namespace berth::apiserver::aggregation
