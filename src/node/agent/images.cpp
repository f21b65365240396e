#include "node/agent/images.h"

#include "base/split.h"
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

std::optional<std::string> wrong_image_reference(std::string_view image) {
  static constexpr const char* kInvalid = "invalid reference format";
  const auto lower = [](unsigned char c) { return std::islower(c) != 0 || std::isdigit(c) != 0; };
  if (image.size() == 64 && std::ranges::all_of(image, [](unsigned char c) { return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f'); }))
    return fmt::format("invalid repository name ({}), cannot specify 64-byte hexadecimal strings", image);
  const std::size_t slash = image.find('/');
  std::string_view host = slash == std::string_view::npos ? std::string_view() : image.substr(0, slash);
  // A first part in upper case cannot be a repository's: it is a host.
  const bool has_host = !host.empty() && (host.find_first_of(".:") != std::string_view::npos || host == "localhost" ||
                                          std::ranges::any_of(host, [](unsigned char c) { return std::isupper(c) != 0; }));
  std::string rest(has_host ? image.substr(slash + 1) : image);
  if (!has_host && rest.find('/') == std::string::npos) rest = "library/" + rest;
  const std::string path = rest.substr(0, rest.find(':'));
  if (std::ranges::any_of(path, [](unsigned char c) { return std::isupper(c) != 0; }))
    return fmt::format("{}: repository name ({}) must be lowercase", kInvalid, path);
  if (has_host && std::ranges::any_of(host, [](unsigned char c) {
        return !std::isalnum(c) && std::string_view(".-:[]").find(static_cast<char>(c)) == std::string_view::npos;
      }))
    return kInvalid;
  std::string_view name = rest, tag, digest;
  if (const std::size_t at = name.find('@'); at != std::string_view::npos) digest = name.substr(at + 1), name = name.substr(0, at);
  if (digest.empty() && rest.find('@') != std::string::npos) return kInvalid;
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
    tag = name.substr(colon + 1), name = name.substr(0, colon);
    if (tag.empty() || tag.size() > 128 || tag[0] == '.' || tag[0] == '-' ||
        !std::ranges::all_of(tag, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-'; }))
      return kInvalid;
  }
  if (!digest.empty()) {
    const std::size_t colon = digest.find(':');
    if (colon == std::string_view::npos || colon == 0 || digest.size() - colon - 1 < 32 ||
        !std::ranges::all_of(digest.substr(colon + 1), [](unsigned char c) { return std::isxdigit(c) != 0; }))
      return kInvalid;
  }
  // Components of letters and digits, with single separators (".", "_", "__", dashes) between them.
  for (const std::string_view part : split(name, '/')) {
    if (part.empty() || !lower(static_cast<unsigned char>(part.front())) || !lower(static_cast<unsigned char>(part.back())))
      return kInvalid;
    for (std::size_t i = 0; i < part.size();) {
      std::size_t end = i;
      while (end < part.size() && !lower(static_cast<unsigned char>(part[end]))) ++end;
      const std::string_view separator = part.substr(i, end - i);
      const bool is_well = separator.empty() || separator == "." || separator == "_" || separator == "__" ||
                           separator.find_first_not_of('-') == std::string_view::npos;
      if (!is_well) return kInvalid;
      i = std::max(end, i + 1);
    }
  }
  return std::nullopt;
}

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

std::string canonical_image(std::string_view image) {
  const std::string whole = with_default_tag(std::string(image));
  return image_repository(whole) + whole.substr(tag_position(whole));
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
