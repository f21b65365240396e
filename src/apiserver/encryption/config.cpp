#include "apiserver/encryption/config.h"

#include <array>
#include <set>

#include "base/base64.h"
#include "base/clock.h"
#include "base/config_reader.h"

namespace berth::apiserver::encryption {
namespace {

constexpr std::array<std::string_view, 5> kProviders = {"aesgcm", "aescbc", "secretbox", "identity", "kms"};

bool is_length(std::string_view provider, std::size_t bytes) {
  return provider == "secretbox" ? bytes == 32 : bytes == 16 || bytes == 24 || bytes == 32;
}

std::vector<Key> read_keys(const config::Reader& from, std::string_view provider) {
  std::vector<Key> out;
  std::set<std::string> names;
  from.only({"keys"});
  const auto entries = from.field("keys").items();
  if (entries.empty()) from.problem("keys", "missing; at least one entry with name and secret");
  for (const config::Reader& entry : entries) {
    if (!entry.expect_object()) continue;
    entry.only({"name", "secret"});
    const std::string name = entry.string("name"), text = entry.string("secret");
    if (name.empty()) entry.problem("name", "missing");
    if (name.find(':') != std::string::npos)
      entry.problem("name", fmt::format("\"{}\" must not have a colon: it stands before what is stored", name));
    if (!name.empty() && !names.insert(name).second) entry.problem("name", fmt::format("\"{}\" is there twice", name));
    if (text.empty()) {
      entry.problem("secret", "missing; a random key in base64: head -c 32 /dev/urandom | base64");
      continue;
    }
    const auto secret = base64_decode(text);
    if (!secret)
      entry.problem("secret", "is not base64");
    else if (!is_length(provider, secret->size()))
      entry.problem("secret", fmt::format("has {} bytes; {} takes {} (head -c 32 /dev/urandom | base64)", secret->size(), provider,
                                          provider == "secretbox" ? "32" : "16, 24 or 32"));
    else
      out.push_back({name, *secret});
  }
  return out;
}

std::shared_ptr<KmsProvider> read_kms(const config::Reader& from, const std::vector<std::shared_ptr<KmsProvider>>& others) {
  from.only({"apiVersion", "name", "endpoint", "timeout", "cachesize"});
  KmsOptions options;
  options.name = from.string("name");
  options.endpoint = from.string("endpoint");
  const std::string version = from.string("apiVersion"), timeout = from.string("timeout");
  const std::size_t before = others.size();
  bool is_good = true;
  const auto wrong = [&](const char* field, const std::string& why) {
    from.problem(field, why);
    is_good = false;
  };
  if (version != "v2")
    wrong("apiVersion",
          version.empty() || version == "v1"
              ? "KMS v1 is off in Kubernetes since 1.29, and not here: write apiVersion: v2, and give a service that speaks it"
              : fmt::format("\"{}\" is unknown; v2 is meant", version));
  if (from.has("cachesize")) wrong("cachesize", "belongs to v1; v2 has no cache to be sized");
  if (options.name.empty()) wrong("name", "missing; it stands before what is stored");
  if (options.name.find(':') != std::string::npos)
    wrong("name", fmt::format("\"{}\" must not have a colon: it stands before what is stored", options.name));
  for (std::size_t i = 0; i < before; ++i)
    if (others[i]->name() == options.name)
      wrong("name", fmt::format("\"{}\" is there twice: every kms provider has its own", options.name));
  if (!options.endpoint.starts_with("unix:///"))
    wrong("endpoint", fmt::format("\"{}\" is no socket on this machine: unix:///PATH", options.endpoint));
  if (!timeout.empty()) {
    const auto read = parse_go_duration(timeout);
    if (!read || *read <= Duration::zero())
      wrong("timeout", fmt::format("\"{}\" is not a duration above zero", timeout));
    else
      options.timeout = *read;
  }
  return is_good ? make_kms(std::move(options)) : nullptr;
}

std::shared_ptr<const Provider> read_provider(const config::Reader& from, std::vector<std::shared_ptr<KmsProvider>>& key_services) {
  if (!from.expect_object()) return nullptr;
  from.only(kProviders);
  std::string given;
  for (const std::string_view name : kProviders) {
    if (from.value()->get_object().if_contains(name) == nullptr) continue;
    if (!given.empty()) {
      from.problem(fmt::format("{} and {} stand in one entry: give each its own", given, name));
      return nullptr;
    }
    given = name;
  }
  if (given.empty()) {
    from.problem(fmt::format("names no provider; one of {}", fmt::join(kProviders, ", ")));
    return nullptr;
  }
  const config::Reader provider = from.field(given);
  if (given == "identity") return make_identity();
  if (given == "kms") {
    auto made = read_kms(provider, key_services);
    if (made != nullptr) key_services.push_back(made);
    return made;
  }
  auto keys = read_keys(provider, given);
  if (keys.empty()) return nullptr;
  return given == "aesgcm"   ? make_aesgcm(std::move(keys))
         : given == "aescbc" ? make_aescbc(std::move(keys))
                             : make_secretbox(std::move(keys));
}

void check_resource(const config::Reader& from, std::string_view name, std::set<std::string, std::less<>>& seen) {
  const auto star = name.find('*');
  if (name.empty() || name == "*" || (star != std::string_view::npos && (star != 0 || !name.starts_with("*."))) ||
      (name.find('*', 2) != std::string_view::npos && name != "*.*"))
    from.problem(
        fmt::format("\"{}\" is no resource; write \"secrets\", \"deployments.apps\", \"*.apps\" for a group, \"*.\" for the core one, "
                    "\"*.*\" for all",
                    name));
  if (name.find('/') != std::string_view::npos) from.problem(fmt::format("\"{}\": subresources are not stored by themselves", name));
  if (name == "events" || name == "events.events.k8s.io") return;
  if (!seen.insert(std::string(name)).second) from.problem(fmt::format("\"{}\" is there twice: only the first would count", name));
}

}  // namespace

const ResourceRule* Configuration::rule_of(std::string_view group, std::string_view plural) const {
  const std::string name = group.empty() ? std::string(plural) : fmt::format("{}.{}", plural, group);
  const std::string wildcard = fmt::format("*.{}", group);
  for (const ResourceRule& rule : rules)
    for (const std::string& resource : rule.resources)
      if (resource == name || resource == wildcard || resource == "*.*") return &rule;
  return nullptr;
}

Result<void> Configuration::start_key_services() const {
  for (const auto& service : key_services)
    if (auto started = service->start(); !started) return started;
  return {};
}

std::function<bool(std::string_view)> Configuration::written_by(const KmsProvider& service) const {
  Configuration names;
  std::vector<bool> is_its;
  for (const ResourceRule& rule : rules) {
    names.rules.push_back({rule.resources, {}});
    is_its.push_back(rule.providers.front().get() == &service);
  }
  return [names = std::move(names), is_its = std::move(is_its)](std::string_view key) {
    const auto first = key.find('/', 1);
    const auto second = first == std::string_view::npos ? first : key.find('/', first + 1);
    if (second == std::string_view::npos) return false;
    const ResourceRule* rule = names.rule_of(key.substr(1, first - 1), key.substr(first + 1, second - first - 1));
    return rule != nullptr && is_its[static_cast<std::size_t>(rule - names.rules.data())];
  };
}

std::string Configuration::trouble_with(std::string_view group, std::string_view plural) const {
  if (key_services.empty()) return {};
  const ResourceRule* rule = rule_of(group, plural);
  if (rule == nullptr) return {};
  for (const auto& service : key_services)
    if (rule->providers.front() == service) return service->trouble();
  return {};
}

Result<Configuration> parse_configuration(std::string_view text, const std::string& file) {
  Configuration out;
  const auto read = config::read_text(text, {.file = file}, [&](const config::Reader& root) {
    out = {};
    out.file = file;
    if (!root.expect_object()) return;
    static constexpr std::array<std::string_view, 1> kKinds = {"EncryptionConfiguration"}, kVersions = {"apiserver.config.k8s.io/v1"};
    root.only({"apiVersion", "kind", "resources"});
    root.expect_kind(kKinds, kVersions);
    for (const char* field : {"apiVersion", "kind"})
      if (!root.has(field))
        root.problem(field, "missing; the file begins with apiVersion: apiserver.config.k8s.io/v1 and kind: EncryptionConfiguration");
    std::set<std::string, std::less<>> seen;
    const auto entries = root.field("resources").items();
    if (entries.empty()) root.problem("resources", "missing; at least one entry with resources and providers");
    for (const config::Reader& entry : entries) {
      if (!entry.expect_object()) continue;
      entry.only({"resources", "providers"});
      ResourceRule rule;
      rule.resources = entry.strings("resources");
      if (rule.resources.empty()) entry.problem("resources", "missing; which resources are meant");
      std::size_t i = 0;
      for (const config::Reader& item : entry.field("resources").items())
        if (i < rule.resources.size()) check_resource(item, rule.resources[i++], seen);
      const auto providers = entry.field("providers").items();
      if (providers.empty()) entry.problem("providers", "missing; the first writes, all of them read");
      for (const config::Reader& item : providers)
        if (auto provider = read_provider(item, out.key_services)) rule.providers.push_back(std::move(provider));
      out.rules.push_back(std::move(rule));
    }
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

}  // namespace berth::apiserver::encryption
