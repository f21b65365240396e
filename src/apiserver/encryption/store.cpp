#include "apiserver/encryption/store.h"

#include <map>
#include <unordered_set>

#include "base/mutex.h"

namespace berth::apiserver::encryption {
namespace {

/// "/GROUP/PLURAL/…"
std::pair<std::string_view, std::string_view> resource_of(std::string_view key) {
  const auto first = key.find('/', 1);
  const auto second = first == std::string_view::npos ? first : key.find('/', first + 1);
  if (second == std::string_view::npos) return {};
  return {key.substr(1, first - 1), key.substr(first + 1, second - first - 1)};
}

/// "k8s:enc:aescbc:v1:NAME:"
std::string prefix_of(std::string_view stored) {
  std::size_t end = 0;
  for (int colons = 0; end < std::min<std::size_t>(stored.size(), 128) && colons < 5; ++end) colons += stored[end] == ':' ? 1 : 0;
  return std::string(stored.substr(0, end));
}

class EncryptedStore final : public store::Store {
 public:
  EncryptedStore(std::unique_ptr<store::Store> inner, Configuration configuration, std::shared_ptr<StaleKeys> stale)
      : inner_(std::move(inner)), configuration_(std::move(configuration)), stale_(std::move(stale)) {}

  [[nodiscard]] store::StoreState state() const override { return inner_->state(); }
  Result<void> compact(store::Revision revision) override { return inner_->compact(revision); }
  Result<void> probe() override { return inner_->probe(); }

  Result<void> commit(std::span<const store::Record> records, bool sync) override {
    if (configuration_.rules.empty()) return inner_->commit(records, sync);
    std::vector<store::Record> stored(records.begin(), records.end());
    for (store::Record& record : stored) {
      const ResourceRule* rule = record.value == nullptr ? nullptr : rule_of(record.key);
      if (rule == nullptr) continue;
      auto sealed = rule->providers.front()->encrypt(*record.value, record.key);
      if (!sealed) return std::unexpected(sealed.error());
      record.value = std::make_shared<const std::string>(std::move(*sealed));
    }
    auto done = inner_->commit(stored, sync);
    if (done)
      for (const store::Record& record : stored) stale_->set(record.key, false);
    return done;
  }

  Result<void> read(store::Revision after, const std::function<Result<void>(store::Record)>& each) override {
    std::map<std::string, std::string> unreadable;  // Keys whose last value does not decrypt, and why.
    const auto done = inner_->read(after, [&](store::Record record) -> Result<void> {
      unreadable.erase(record.key);
      return pass_on(std::move(record), true, unreadable, each);
    });
    return done ? tell(unreadable) : done;
  }

  Result<void> read_back(const std::function<bool(const store::RecordHead&)>& wants,
                         const std::function<Result<void>(store::Record)>& each) override {
    std::map<std::string, std::string> unreadable;
    std::unordered_set<std::string> seen;  // Of the keys that may be encrypted: what comes first of one is its last value.
    auto done = inner_->read_back(wants, [&](store::Record record) -> Result<void> {
      const bool is_last = !may_be_sealed(record) || seen.insert(record.key).second;
      return pass_on(std::move(record), is_last, unreadable, each);
    });
    if (done && configuration_.rules.empty() && !unreadable.empty()) done = leave_out_rewritten(unreadable);
    return done ? tell(unreadable) : done;
  }

 private:
  [[nodiscard]] bool may_be_sealed(const store::Record& record) const {
    return !configuration_.rules.empty() || (record.value != nullptr && record.value->starts_with(kPrefix));
  }

  /// A record in clear. One that cannot be read is passed over; if its key has no later value, it is noted.
  Result<void> pass_on(store::Record record, bool is_last, std::map<std::string, std::string>& unreadable,
                       const std::function<Result<void>(store::Record)>& each) {
    if (record.value == nullptr) {
      if (is_last) stale_->set(record.key, false);
      return each(std::move(record));
    }
    if (!may_be_sealed(record)) return each(std::move(record));
    auto plain = open(record);
    if (!plain) {
      if (is_last) unreadable[record.key] = plain.error().message;
      return {};
    }
    if (is_last) stale_->set(record.key, plain->is_stale);
    if (plain->value != *record.value) record.value = std::make_shared<const std::string>(std::move(plain->value));
    return each(std::move(record));
  }

  /// Without rules nobody notes the keys of what is plain: which of these were written so since shows a second look.
  Result<void> leave_out_rewritten(std::map<std::string, std::string>& unreadable) {
    std::unordered_set<std::string> seen;
    return inner_->read_back(
        [&](const store::RecordHead& head) {
          const std::string key(head.key);
          return unreadable.contains(key) && seen.insert(key).second;
        },
        [&](const store::Record& record) -> Result<void> {
          if (!may_be_sealed(record)) unreadable.erase(record.key);
          return {};
        });
  }
  [[nodiscard]] Result<void> tell(const std::map<std::string, std::string>& unreadable) const {
    if (unreadable.empty()) return {};
    const auto& [key, why] = *unreadable.begin();
    const std::string others = unreadable.size() == 1 ? "" : fmt::format(" (and {} other objects)", unreadable.size() - 1);
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}{} cannot be read: {}. {}; nothing was changed", name_of(key), others, why, opening_advice(configuration_)));
  }

  [[nodiscard]] const ResourceRule* rule_of(std::string_view key) const {
    const auto [group, plural] = resource_of(key);
    return configuration_.rule_of(group, plural);
  }
  [[nodiscard]] Result<Plain> open(const store::Record& record) const {
    const auto [group, plural] = resource_of(record.key);
    return open_value(configuration_, group, plural, *record.value, record.key);
  }
  static std::string name_of(std::string_view key) {
    const auto [group, plural] = resource_of(key);
    std::string_view rest = key.substr(std::min(key.size(), group.size() + plural.size() + 3));
    if (rest.starts_with('/')) rest.remove_prefix(1);
    return fmt::format("{} {}", plural, rest);
  }
  std::unique_ptr<store::Store> inner_;
  const Configuration configuration_;
  std::shared_ptr<StaleKeys> stale_;
};

}  // namespace

bool StaleKeys::contains(std::string_view key) const {
  const MutexLock lock(mutex_);
  return keys_.contains(key) || (covers_ && !fresh_.contains(key) && covers_(key));
}

void StaleKeys::set(std::string_view key, bool is_stale) {
  const MutexLock lock(mutex_);
  if (covers_ && !is_stale && covers_(key)) fresh_.emplace(key);
  if (is_stale) {
    keys_.emplace(key);
  } else if (!keys_.empty()) {
    if (const auto found = keys_.find(key); found != keys_.end()) keys_.erase(found);
  }
}

void StaleKeys::set_all(std::function<bool(std::string_view key)> covers) {
  const MutexLock lock(mutex_);
  covers_ = std::move(covers);
  fresh_.clear();
}

std::size_t StaleKeys::size() const {
  const MutexLock lock(mutex_);
  return keys_.size();
}

Result<Plain> open_value(const Configuration& configuration, std::string_view group, std::string_view plural, std::string_view stored,
                         std::string_view context) {
  const ResourceRule* rule = configuration.rule_of(group, plural);
  if (rule == nullptr) {
    // Of a resource that is no longer to be encrypted: whoever can reads it, and the next update writes it plain.
    if (!stored.starts_with(kPrefix)) return Plain{std::string(stored), false};
    for (const ResourceRule& one : configuration.rules)
      for (const auto& provider : one.providers)
        if (provider->wrote(stored)) {
          auto plain = provider->decrypt(stored, context);
          if (plain) plain->is_stale = true;
          return plain;
        }
    return fail(ErrorCode::kCorrupt, fmt::format("it is encrypted ({}…)", prefix_of(stored)));
  }
  for (std::size_t i = 0; i < rule->providers.size(); ++i) {
    if (!rule->providers[i]->wrote(stored)) continue;
    auto plain = rule->providers[i]->decrypt(stored, context);
    if (plain) plain->is_stale = plain->is_stale || i != 0;
    return plain;
  }
  return fail(ErrorCode::kCorrupt, stored.starts_with(kPrefix)
                                       ? fmt::format("it is encrypted by a provider that is not there ({}…)", prefix_of(stored))
                                       : "it is stored as it is, and no identity provider is there (add `- identity: {}` as the last one)");
}

std::string opening_advice(const Configuration& configuration) {
  return configuration.file.empty()
             ? "Start with --encryption-provider-config FILE, the file that it was written with"
             : fmt::format("Put the key, or the provider, back into {} (behind the first one: the first writes, all of them read)",
                           configuration.file);
}

std::unique_ptr<store::Store> encrypt_store(std::unique_ptr<store::Store> inner, Configuration configuration,
                                            std::shared_ptr<StaleKeys> stale) {
  return std::make_unique<EncryptedStore>(std::move(inner), std::move(configuration), std::move(stale));
}

}  // namespace berth::apiserver::encryption
