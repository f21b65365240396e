#include "tests/world/builds.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"

namespace berth::world {
namespace {

using apiserver::etcd::FormOptions;

struct Build {
  bool writes_protobuf;
  bool stores_older_versions;
  std::string_view others;   ///< The first writes.
  std::string_view secrets;  ///< Comma-separated, the first writes.
};

constexpr std::array<Build, kBuilds> kAll{{
    {false, true, "identity,w", "identity,k1"},
    {true, false, "identity,w", "k1,identity"},
    {true, false, "w,identity", "k1,k2"},
    {true, false, "w,identity", "k2,k1"},
    {false, false, "identity,w", "k2,identity"},
    {false, false, "identity,w", "identity,k2"},
}};
constexpr Build kReader{true, false, "identity,w", "identity,k1,k2"};

/// What of these kinds the first build writes is in an older version.
constexpr std::array<std::array<std::string_view, 2>, 4> kOlder{{
    {R"({"apiVersion":"policy/v1",)", R"({"apiVersion":"policy/v1beta1",)"},
    {R"({"apiVersion":"coordination.k8s.io/v1",)", R"({"apiVersion":"coordination.k8s.io/v1beta1",)"},
    {R"({"apiVersion":"scheduling.k8s.io/v1",)", R"({"apiVersion":"scheduling.k8s.io/v1beta1",)"},
    {R"({"apiVersion":"rbac.authorization.k8s.io/v1",)", R"({"apiVersion":"rbac.authorization.k8s.io/v1beta1",)"},
}};

std::string providers(std::string_view names) {
  static const std::map<std::string_view, std::string_view> kKinds = {{"w", "aesgcm"}, {"k1", "aescbc"}, {"k2", "secretbox"}};
  std::string out;
  while (!names.empty()) {
    const auto comma = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, comma);
    names.remove_prefix(std::min(comma + 1, names.size()));
    if (name == "identity")
      out += "  - identity: {}\n";
    else
      // 32 bytes, as secretbox wants them; what they are is nobody's matter.
      out += fmt::format("  - {}:\n      keys:\n      - name: {}\n        secret: {}MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg=\n",
                         kKinds.at(name), name,
                         name == "w"    ? "YWFh"
                         : name == "k1" ? "YmJi"
                                        : "Y2Nj");
  }
  return out;
}

FormOptions form_of(const Build& build) {
  const std::string text = fmt::format(
      "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
      "- resources: [secrets]\n  providers:\n{}- resources: ['*.*']\n  providers:\n{}",
      providers(build.secrets), providers(build.others));
  auto parsed = apiserver::encryption::parse_configuration(text, "encryption.yaml");
  BERTH_CHECK(parsed.has_value(), "the configuration of a build: {}", text);
  FormOptions form;
  form.writes_protobuf = build.writes_protobuf;
  form.encryption = std::move(*parsed);
  return form;
}

Bytes replaced(const Bytes& value, std::size_t from, std::size_t to) {
  if (value == nullptr) return value;
  for (const auto& pair : kOlder)
    if (value->starts_with(pair[from])) return make_bytes(std::string(pair[to]) + value->substr(pair[from].size()));
  return value;
}

const apiserver::encryption::ResourceRule& secrets_of(std::size_t build) {
  static const auto kForms = [] {
    std::array<FormOptions, kBuilds> forms;
    for (std::size_t i = 0; i < kBuilds; ++i) forms[i] = form_of(kAll[i]);
    return forms;
  }();
  return *kForms[build].encryption.rule_of("", "secrets");
}

}  // namespace

FormOptions form_of(std::size_t build, std::shared_ptr<apiserver::encryption::StaleKeys> stale) {
  FormOptions form = form_of(kAll[build]);
  form.stale = std::move(stale);
  return form;
}

const apiserver::etcd::StoredForm& all_forms() {
  static const apiserver::etcd::StoredForm kForm(form_of(kReader));
  return kForm;
}

Bytes as_stored_by(std::size_t build, const Bytes& value) { return kAll[build].stores_older_versions ? replaced(value, 0, 1) : value; }

Bytes as_read_by(std::size_t build, const Bytes& value) { return kAll[build].stores_older_versions ? replaced(value, 1, 0) : value; }

bool opens_secret(std::size_t build, std::string_view stored) {
  return std::ranges::any_of(secrets_of(build).providers, [&](const auto& provider) { return provider->wrote(stored); });
}

bool writes_secret_so(std::size_t build, std::string_view stored) { return secrets_of(build).providers.front()->wrote(stored); }

}  // namespace berth::world
