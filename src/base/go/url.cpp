#include "base/go/url.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "base/go/strings.h"
#include "base/hex.h"
#include "base/split.h"

namespace berth::go {
namespace {

enum class Part { kPath, kHost, kZone, kUser, kQuery, kFragment };

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

bool may_stand_in_host(char c) { return is_letter_or_digit(c) || is_one_of(c, "-_.~!$&'()*+,;=:[]<>\""); }
bool stays_in_path(char c) { return is_letter_or_digit(c) || is_one_of(c, "-_.~$&+,/:;=@!'()*[]"); }

/// unescape of net/url; the error is what it says behind the URL.
Expected<std::string, std::string> unescape(std::string_view text, Part part) {
  std::string out;
  out.reserve(text.size());
  const bool is_of_host = part == Part::kHost || part == Part::kZone;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '%') {
      if (is_of_host && static_cast<unsigned char>(c) < 0x80 && !may_stand_in_host(c))
        return std::unexpected(fmt::format("invalid character {} in host name", quote(std::string_view(&c, 1))));
      out += part == Part::kQuery && c == '+' ? ' ' : c;
      continue;
    }
    if (i + 2 >= text.size() || hex_digit(text[i + 1]) < 0 || hex_digit(text[i + 2]) < 0)
      return std::unexpected("invalid URL escape " + quote(text.substr(i, 3)));
    const auto byte = static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
    // Only what is no ASCII may be written so in a host; in a zone also what a name may hold.
    if (part == Part::kHost && hex_digit(text[i + 1]) < 8 && text.substr(i, 3) != "%25")
      return std::unexpected("invalid URL escape " + quote(text.substr(i, 3)));
    if (part == Part::kZone && text.substr(i, 3) != "%25" && byte != ' ' && static_cast<unsigned char>(byte) < 0x80 &&
        !may_stand_in_host(byte))
      return std::unexpected("invalid URL escape " + quote(text.substr(i, 3)));
    out += byte;
    i += 2;
  }
  return out;
}

/// Takes the scheme off, in lower case; empty: there is none.
Expected<std::string, std::string> take_scheme(std::string_view& rest) {
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) continue;
    if (is_letter_or_digit(c) || is_one_of(c, "+-.")) {
      if (i == 0) return std::string();
      continue;
    }
    if (c != ':') return std::string();
    if (i == 0) return std::unexpected("missing protocol scheme");
    auto scheme = to_lower(rest.substr(0, i));
    rest.remove_prefix(i + 1);
    return scheme;
  }
  return std::string();
}

bool is_port(std::string_view text) {
  return text.empty() || (text[0] == ':' && text.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

/// An address in brackets, with or without a zone; what stands before the bracket does not count, as in Go.
Expected<std::string, std::string> read_literal(std::string_view host, std::size_t open) {
  const auto close = host.rfind(']');
  if (close == std::string_view::npos || close < open) return std::unexpected("missing ']' in host");
  const auto port = host.substr(close + 1);
  if (!is_port(port)) return std::unexpected(fmt::format("invalid port {} after host", quote(port)));
  const auto inner = host.substr(open + 1, close - open - 1);
  const auto zone_at = std::min(inner.find("%25"), inner.size());
  auto address = unescape(inner.substr(0, zone_at), Part::kHost);
  if (!address) return address;
  const auto zone = unescape(inner.substr(zone_at), Part::kZone);
  if (!zone) return zone;
  in6_addr parsed{};
  in_addr parsed_v4{};
  if (zone->empty() && inet_pton(AF_INET, address->c_str(), &parsed_v4) == 1) return std::unexpected("invalid IP-literal");
  if (inet_pton(AF_INET6, address->c_str(), &parsed) != 1 || *zone == "%")
    return std::unexpected(fmt::format("invalid host: ParseAddr({}): unable to parse IP", quote(*address + *zone)));
  return fmt::format("[{}{}]{}", *address, *zone, port);
}

Expected<std::string, std::string> read_host(std::string_view host) {
  if (const auto open = host.rfind('['); open != std::string_view::npos) return read_literal(host, open);
  if (const auto colon = host.rfind(':'); colon != std::string_view::npos && !is_port(host.substr(colon)))
    return std::unexpected(fmt::format("invalid port {} after host", quote(host.substr(colon))));
  return unescape(host, Part::kHost);
}

/// The user's name and the host. Empty: they are in order.
std::string read_authority(std::string_view authority, Url& out) {
  const auto at = authority.rfind('@');
  auto host = read_host(at == std::string_view::npos ? authority : authority.substr(at + 1));
  if (!host) return host.error();
  out.host = std::move(*host);
  if (at == std::string_view::npos) return {};
  const auto user = authority.substr(0, at);
  const auto may_stand = [](char c) { return is_letter_or_digit(c) || is_one_of(c, "-._:~!$&'()*+,;=%@"); };
  if (!std::ranges::all_of(user, may_stand)) return "net/url: invalid userinfo";
  if (const auto decoded = unescape(user, Part::kUser); !decoded) return decoded.error();
  out.user = std::string(user);
  return {};
}

/// What is wrong with the text; empty: nothing.
std::string read(std::string_view rest, bool is_request, Url& out) {
  if (std::ranges::any_of(rest, [](unsigned char c) { return c < 0x20 || c == 0x7F; })) return "net/url: invalid control character in URL";
  if (rest.empty() && is_request) return "empty url";
  if (rest == "*") {
    out.path = out.raw_path = "*";
    return {};
  }
  auto scheme = take_scheme(rest);
  if (!scheme) return scheme.error();
  out.scheme = std::move(*scheme);
  if (const auto question = rest.find('?'); question != std::string_view::npos) {
    out.query = rest.substr(question + 1);
    rest = rest.substr(0, question);
  }
  const bool has_scheme = !out.scheme.empty();
  if (!rest.starts_with('/')) {
    if (has_scheme) {
      out.opaque = rest;
      return {};
    }
    if (is_request) return "invalid URI for request";
    if (rest.substr(0, rest.find('/')).find(':') != std::string_view::npos) return "first path segment in URL cannot contain colon";
  }
  if ((has_scheme || (!is_request && !rest.starts_with("///"))) && rest.starts_with("//")) {
    const auto authority = rest.substr(2, rest.substr(2).find('/'));
    rest.remove_prefix(2 + authority.size());
    if (auto why = read_authority(authority, out); !why.empty()) return why;
  }
  auto path = unescape(rest, Part::kPath);
  if (!path) return path.error();
  out.raw_path = rest;
  out.path = std::move(*path);
  return {};
}

Expected<Url, std::string> parsed(std::string_view text, std::string_view shown, bool is_request) {
  Url out;
  if (const auto why = read(text, is_request, out); !why.empty()) return std::unexpected(fmt::format("parse {}: {}", quote(shown), why));
  return out;
}

}  // namespace

Expected<Url, std::string> parse_url(std::string_view text) {
  const auto hash = text.find('#');
  const auto before = text.substr(0, hash);
  auto out = parsed(before, before, false);
  if (!out || hash == std::string_view::npos) return out;
  auto fragment = unescape(text.substr(hash + 1), Part::kFragment);
  if (!fragment) return std::unexpected(fmt::format("parse {}: {}", quote(text), fragment.error()));
  out->fragment = std::move(*fragment);
  return out;
}

Expected<Url, std::string> parse_request_uri(std::string_view text) { return parsed(text, text, true); }

std::string Url::hostname() const {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.rfind(':'));
}

std::string Url::port() const {
  const auto colon = host.find(':', host.starts_with('[') ? host.find(']') : 0);
  return colon == std::string::npos ? "" : host.substr(host.rfind(':') + 1);
}

std::string Url::escaped_path() const {
  if (std::ranges::all_of(raw_path, [](char c) { return c == '%' || stays_in_path(c); })) return raw_path;
  std::string out;
  for (const char c : path) {
    if (stays_in_path(c) && !is_one_of(c, "[]!'()*"))
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::vector<std::pair<std::string, std::vector<std::string>>> parse_query(std::string_view query) {
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
  std::unordered_map<std::string, std::size_t> places;
  for (const auto piece : words(query, '&')) {
    if (piece.find(';') != std::string_view::npos) continue;
    const auto equals = piece.find('=');
    auto key = unescape(piece.substr(0, equals), Part::kQuery);
    auto value = unescape(equals == std::string_view::npos ? "" : piece.substr(equals + 1), Part::kQuery);
    if (!key || !value) continue;
    const auto [place, is_new] = places.try_emplace(*key, out.size());
    if (is_new) out.emplace_back(std::move(*key), std::vector<std::string>());
    out[place->second].second.push_back(std::move(*value));
  }
  return out;
}

}  // namespace berth::go
