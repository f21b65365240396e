#include "net/http.h"

#include <algorithm>

#include "base/hex.h"
#include "base/split.h"
#include "net/http_parser.h"

namespace berth::net {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out.push_back(plus_is_space && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return out;
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool has_token(std::string_view list, std::string_view token) {
  const auto is_it = [&](std::string_view item) { return equal_ignoring_case(trim(item), token); };
  return std::ranges::any_of(split(list, ','), is_it);
}

void Headers::set(std::string_view name, std::string value) {
  auto same = [&](const auto& field) { return equal_ignoring_case(field.first, name); };
  const auto first = std::find_if(fields_.begin(), fields_.end(), same);
  if (first == fields_.end()) {
    fields_.emplace_back(std::string(name), std::move(value));
    return;
  }
  first->second = std::move(value);
  fields_.erase(std::remove_if(first + 1, fields_.end(), same), fields_.end());
}

std::string_view Headers::get(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

// Longer than a screen: a table, a line a status.
std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Entity";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto item : words(query, '&')) {
    const auto equals = item.find('=');
    const auto key = item.substr(0, equals);
    const auto value = equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1);
    // A broken escape is kept as it came: refusing it is the reader's decision, who knows what the parameter means.
    out.emplace_back(decode(key, true).value_or(std::string(key)), decode(value, true).value_or(std::string(value)));
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    const bool plain =
        (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || (u >= '0' && u <= '9') || u == '-' || u == '_' || u == '.' || u == '~';
    if (plain) {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(kHex[u >> 4]);
      out.push_back(kHex[u & 15]);
    }
  }
  return out;
}

std::optional<std::string> percent_decode(std::string_view text) { return decode(text, false); }

std::optional<std::string> decode_path(std::string_view raw) {
  if (raw.empty() || raw.front() != '/') return std::nullopt;
  std::vector<std::string> segments;
  bool slash_at_end = false;
  while (!raw.empty()) {
    raw.remove_prefix(1);
    const auto end = raw.find('/');
    auto segment = decode(raw.substr(0, end), false);
    raw.remove_prefix(end == std::string_view::npos ? raw.size() : end);
    // A slash or NUL that appears only by decoding would move the boundary between segments (a name that climbs into another
    // resource's path after authorisation looked at it): there is no Kubernetes object of such a name.
    if (!segment || segment->find('\0') != std::string::npos || segment->find('/') != std::string::npos) return std::nullopt;
    const bool is_last = raw.empty();
    if (*segment == ".") {
      slash_at_end = is_last;
    } else if (*segment == "..") {
      if (segments.empty()) return std::nullopt;
      segments.pop_back();
      slash_at_end = is_last;
    } else if (segment->empty()) {
      slash_at_end = is_last;
    } else {
      segments.push_back(std::move(*segment));
      slash_at_end = false;
    }
  }
  std::string out;
  for (const auto& segment : segments) out.append("/").append(segment);
  if (out.empty() || slash_at_end) out.push_back('/');
  return out;
}

}  // namespace berth::net
