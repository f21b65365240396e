#include "apiserver/relays/html_links.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace berth::apiserver {
namespace {

constexpr std::size_t kMaxHeld = 64 * 1024;

/// Attributes that hold a URL, by tag (HTML 5, as Go's proxy knows them).
const std::map<std::string_view, std::set<std::string_view>>& link_attributes() {
  static const std::map<std::string_view, std::set<std::string_view>> all = {{"a", {"href"}},
                                                                             {"applet", {"codebase"}},
                                                                             {"area", {"href"}},
                                                                             {"audio", {"src"}},
                                                                             {"base", {"href"}},
                                                                             {"blockquote", {"cite"}},
                                                                             {"body", {"background"}},
                                                                             {"button", {"formaction"}},
                                                                             {"command", {"icon"}},
                                                                             {"del", {"cite"}},
                                                                             {"embed", {"src"}},
                                                                             {"form", {"action"}},
                                                                             {"frame", {"longdesc", "src"}},
                                                                             {"head", {"profile"}},
                                                                             {"html", {"manifest"}},
                                                                             {"iframe", {"longdesc", "src"}},
                                                                             {"img", {"longdesc", "src", "usemap"}},
                                                                             {"input", {"formaction", "src", "usemap"}},
                                                                             {"ins", {"cite"}},
                                                                             {"link", {"href"}},
                                                                             {"object", {"classid", "codebase", "data", "usemap"}},
                                                                             {"q", {"cite"}},
                                                                             {"script", {"src"}},
                                                                             {"source", {"src"}},
                                                                             {"video", {"poster", "src"}}};
  return all;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// Where the tag that begins at 0 ends ("<a b='>'>": not in quotes); npos: not yet.
std::size_t end_of_tag(std::string_view text) {
  char quote = '\0';
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (quote != '\0') {
      if (text[i] == quote) quote = '\0';
    } else if ((text[i] == '"' || text[i] == '\'') && text[i - 1] == '=') {
      quote = text[i];
    } else if (text[i] == '>') {
      return i;
    }
  }
  return std::string_view::npos;
}

std::string_view name_of_tag(std::string_view tag) {
  std::size_t end = 1;
  while (end < tag.size() && std::isalnum(static_cast<unsigned char>(tag[end])) != 0) ++end;
  return tag.substr(1, end - 1);
}

}  // namespace

std::string link_below(std::string_view url, std::string_view prefix, std::string_view far_host, std::string_view asked_host) {
  std::string_view path = url;
  if (const auto scheme = url.find("://"); url.starts_with("//") || (scheme != std::string_view::npos && scheme < url.find('/'))) {
    const auto start = url.find("//") + 2;
    const auto end = std::min(url.find_first_of("/?#", start), url.size());
    const auto host = url.substr(start, end - start);
    if (host != far_host && host != asked_host) return std::string(url);
    path = url.substr(end);
    if (host == asked_host && path.starts_with(prefix)) return std::string(url);
  }
  if (!path.starts_with('/')) return std::string(url);
  return path.starts_with(prefix) ? std::string(path) : std::string(prefix) + std::string(path);
}

std::string HtmlLinks::rewritten(std::string_view tag) {
  const std::string name = lower(name_of_tag(tag));
  if (name == "script" || name == "style") until_ = "</" + name;
  const auto found = link_attributes().find(name);
  if (found == link_attributes().end()) return std::string(tag);
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = 1 + name.size(); at < tag.size();) {
    while (at < tag.size() && (is_space(tag[at]) || tag[at] == '/')) ++at;
    const auto key_start = at;
    while (at < tag.size() && !is_space(tag[at]) && tag[at] != '=' && tag[at] != '>' && tag[at] != '/') ++at;
    const auto key = lower(tag.substr(key_start, at - key_start));
    while (at < tag.size() && is_space(tag[at])) ++at;
    if (at >= tag.size() || tag[at] != '=') {
      at = std::max(at, key_start + 1);
      continue;
    }
    ++at;
    while (at < tag.size() && is_space(tag[at])) ++at;
    const char quote = at < tag.size() && (tag[at] == '"' || tag[at] == '\'') ? tag[at] : '\0';
    if (quote != '\0') ++at;
    const auto start = at;
    while (at < tag.size() && (quote != '\0' ? tag[at] != quote : !is_space(tag[at]) && tag[at] != '>')) ++at;
    if (found->second.contains(key)) {
      out += tag.substr(done, start - done);
      out += link_below(tag.substr(start, at - start), prefix_, far_host_, asked_host_);
      done = at;
    }
    if (quote != '\0' && at < tag.size()) ++at;
  }
  return out + std::string(tag.substr(done));
}

std::string HtmlLinks::feed(std::string_view data) {
  held_ += data;
  std::string out;
  std::size_t at = 0;
  const std::string_view all = held_;
  while (at < all.size()) {
    if (!until_.empty()) {
      const auto end = all.find(until_, at);
      if (end == std::string_view::npos) break;
      out += all.substr(at, end - at);
      at = end;
      until_.clear();
      continue;
    }
    const auto open = all.find('<', at);
    if (open == std::string_view::npos) {
      out += all.substr(at);
      at = all.size();
      break;
    }
    out += all.substr(at, open - at);
    at = open;
    if (all.size() - at < 4) break;  // Perhaps a comment.
    if (all.substr(at, 4) == "<!--") {
      until_ = "-->";
      continue;
    }
    const auto end = end_of_tag(all.substr(at));
    if (end == std::string_view::npos) break;
    out += rewritten(all.substr(at, end + 1));
    at += end + 1;
  }
  // The last bytes may be the beginning of what is waited for.
  if (const auto left = all.size() - at; !until_.empty() && left > until_.size()) {
    out += all.substr(at, left - until_.size());
    at = all.size() - until_.size();
  } else if (left > kMaxHeld) {
    out += all.substr(at);
    at = all.size();
  }
  held_.erase(0, at);
  return out;
}

}  // namespace berth::apiserver
