#include "node/agent/images.h"

#include "node/agent/object_data.h"

namespace berth::node::agent {
namespace {

/// Whether the last part of a reference has a tag or digest.
std::size_t tag_position(std::string_view image) {
  const std::size_t slash = image.rfind('/');
  return image.find_first_of(":@", slash == std::string_view::npos ? 0 : slash);
}

/// One label of a host against one of a pattern, which may contain stars.
bool matches_glob(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') return matches_glob(pattern.substr(1), text) || (!text.empty() && matches_glob(pattern, text.substr(1)));
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) && matches_glob(pattern.substr(1), text.substr(1));
}

/// A registry's name in a secret, "https://index.docker.io/v1/", as host and path.
std::string normalize_registry(std::string_view key) {
  for (const std::string_view scheme : {"https://", "http://"})
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  for (const std::string_view version : {"/v1/", "/v2/", "/v1", "/v2"})
    if (key.ends_with(version)) {
      key.remove_suffix(version.size());
      break;
    }
  while (key.ends_with('/')) key.remove_suffix(1);
  const std::string_view host = key.substr(0, key.find('/'));
  if (host == "index.docker.io" || host == "registry-1.docker.io") return "docker.io" + std::string(key.substr(host.size()));
  return std::string(key);
}

/// Hosts are compared label by label, so that a star does not span a dot; paths by their beginning.
bool is_for(std::string_view registry, std::string_view repository) {
  const std::string_view pattern_host = registry.substr(0, registry.find('/')), host = repository.substr(0, repository.find('/'));
  const std::string_view path = registry.substr(pattern_host.size()), repository_path = repository.substr(host.size());
  if (std::ranges::count(pattern_host, '.') != std::ranges::count(host, '.')) return false;
  std::string_view a = pattern_host, b = host;
  while (true) {
    const std::string_view one = a.substr(0, a.find('.')), two = b.substr(0, b.find('.'));
    if (!matches_glob(one, two)) return false;
    if (one.size() == a.size() || two.size() == b.size()) break;
    a.remove_prefix(one.size() + 1);
    b.remove_prefix(two.size() + 1);
  }
  return repository_path.starts_with(path);
}

json::Object auth_config(const json::Value& entry) {
  json::Object out;
  for (const auto& [ours, theirs] : {std::pair("username", "username"), std::pair("password", "password"),
                                     std::pair("identitytoken", "identity_token"), std::pair("registrytoken", "registry_token")})
    if (const std::string_view text = json::get_string(entry, {ours}); !text.empty()) out[theirs] = text;
  if (const std::string_view packed = json::get_string(entry, {"auth"}); !packed.empty() && !out.contains("username")) {
    const std::string plain = decode_base64(packed);
    const std::size_t colon = plain.find(':');
    if (colon != std::string::npos) out["username"] = plain.substr(0, colon), out["password"] = plain.substr(colon + 1);
  }
  return out;
}

}  // namespace

std::string with_default_tag(const std::string& image) { return tag_position(image) == std::string::npos ? image + ":latest" : image; }

std::string pull_policy(const json::Value& container) {
  const std::string_view given = json::get_string(container, {"imagePullPolicy"});
  if (!given.empty()) return std::string(given);
  return with_default_tag(std::string(json::get_string(container, {"image"}))).ends_with(":latest") ? "Always" : "IfNotPresent";
}

std::string image_repository(std::string_view image) {
  const std::size_t tag = tag_position(image);
  const std::string_view name = image.substr(0, tag);
  const std::string_view first = name.substr(0, name.find('/'));
  const bool has_host = first.size() != name.size() && (first.find_first_of(".:") != std::string_view::npos || first == "localhost");
  if (has_host) return std::string(name);
  return name.find('/') == std::string_view::npos ? fmt::format("docker.io/library/{}", name) : fmt::format("docker.io/{}", name);
}

std::vector<json::Object> image_credentials(std::string_view image, const std::vector<json::Value>& secrets) {
  const std::string repository = image_repository(image);
  std::vector<std::pair<std::string, json::Object>> found;
  for (const json::Value& secret : secrets) {
    for (const std::string_view key : {".dockerconfigjson", ".dockercfg"}) {
      const std::string_view packed = json::get_string(secret, {"data", key});
      if (packed.empty()) continue;
      const auto document = json::parse(decode_base64(packed));
      if (!document) continue;
      const json::Object& entries = key == ".dockercfg" ? (document->is_object() ? document->get_object() : json::get_object(*document, {}))
                                                        : json::get_object(*document, {"auths"});
      for (const auto& [name, entry] : entries)
        if (const std::string registry = normalize_registry(name); entry.is_object() && is_for(registry, repository))
          found.emplace_back(registry, auth_config(entry));
    }
  }
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  std::vector<json::Object> out;
  for (auto& [registry, auth] : found) out.push_back(std::move(auth));
  return out;
}

std::string format_milliseconds(std::int64_t ms) {
  if (ms < 1000) return fmt::format("{}ms", ms);
  std::string seconds = fmt::format("{}.{:03}", ms / 1000 % 60, ms % 1000);
  while (seconds.ends_with('0')) seconds.pop_back();
  if (seconds.ends_with('.')) seconds.pop_back();
  return ms >= 60'000 ? fmt::format("{}m{}s", ms / 60'000, seconds) : seconds + "s";
}

}  // namespace berth::node::agent
