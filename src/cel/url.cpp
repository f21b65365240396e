// url() and its functions (apiserver/pkg/cel/library/urls.go over Go's net/url).
#include "cel/functions.h"
#include "cel/opaque.h"
#include "cel/text.h"

namespace berth::cel {
namespace {

bool is_hex_digit(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
int hex_digit_value(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 ? c - '0' : (c | 0x20) - 'a' + 10; }

/// The text with %XX resolved; nullopt with a broken escape (set in `broken`).
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space, std::string* broken = nullptr) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size() + 0 || !is_hex_digit(text[i + 1]) || !is_hex_digit(text[i + 2])) {
        if (broken != nullptr) *broken = text.substr(i, 3);
        return std::nullopt;
      }
      out += static_cast<char>(hex_digit_value(text[i + 1]) * 16 + hex_digit_value(text[i + 2]));
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

bool stays_in_path(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-_.~$&+,/:;=@!'()*[]").find(c) != std::string_view::npos;
}

/// url.EscapedPath: the given form when it is a valid encoding, else our own.
std::string escaped_path(std::string_view raw) {
  bool is_valid = true;
  for (std::size_t i = 0; i < raw.size() && is_valid; ++i) is_valid = raw[i] == '%' || stays_in_path(raw[i]);
  if (is_valid) return std::string(raw);
  std::string out;
  for (const char c : percent_decode(raw, false).value_or("")) {
    if (stays_in_path(c) && c != '[' && c != ']' && std::string_view("!'()*").find(c) == std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string scheme_of(std::string_view& rest, std::string& error) {
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) continue;
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.') {
      if (i == 0) return {};
      continue;
    }
    if (c != ':') return {};
    if (i == 0) {
      error = "missing protocol scheme";
      return {};
    }
    std::string scheme(rest.substr(0, i));
    for (auto& x : scheme) x = static_cast<char>(std::tolower(static_cast<unsigned char>(x)));
    rest.remove_prefix(i + 1);
    return scheme;
  }
  return {};
}

std::string check_host(std::string_view host) {
  const auto port_is_valid = [](std::string_view port) {
    return port.empty() || (port[0] == ':' && port.find_first_not_of("0123456789", 1) == std::string_view::npos);
  };
  if (host.starts_with('[')) {
    const auto end = host.rfind(']');
    if (end == std::string_view::npos) return "missing ']' in host";
    if (!port_is_valid(host.substr(end + 1))) return fmt::format("invalid port {} after host", go::quote(host.substr(end + 1)));
    return {};
  }
  if (const auto colon = host.rfind(':'); colon != std::string_view::npos && !port_is_valid(host.substr(colon)))
    return fmt::format("invalid port {} after host", go::quote(host.substr(colon)));
  for (const char c : host)
    if (c == ' ' || c == '<' || c == '>' || c == '"' || c == '\\' || c == '^' || c == '`' || c == '{' || c == '|' || c == '}')
      return fmt::format("invalid character {} in host name", go::quote(std::string(1, c)));
  return {};
}

Value get(const Args& a, std::string (*read)(const UrlValue&)) { return Value::string(read(*as_opaque<UrlValue>(a[0]))); }

Value get_query(const Args& a) {
  std::vector<std::pair<std::string, std::vector<Value>>> found;
  std::string_view rest = as_opaque<UrlValue>(a[0])->query;
  while (!rest.empty()) {
    const auto piece = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), piece.size() + 1));
    if (piece.empty() || piece.find(';') != std::string_view::npos) continue;
    const auto equals = piece.find('=');
    auto key = percent_decode(piece.substr(0, equals), true);
    auto value = percent_decode(equals == std::string_view::npos ? "" : piece.substr(equals + 1), true);
    if (!key || !value) continue;
    auto it = std::find_if(found.begin(), found.end(), [&](const auto& entry) { return entry.first == *key; });
    if (it == found.end()) it = found.insert(found.end(), {*key, {}});
    it->second.push_back(Value::string(std::move(*value)));
  }
  std::vector<std::pair<std::string, Value>> entries;
  for (auto& [key, values] : found) entries.emplace_back(key, Value::list(std::move(values)));
  return Value::map(std::move(entries));
}

}  // namespace

Expected<UrlValue, std::string> UrlValue::parse(std::string_view text) {
  const auto wrong = [&](const std::string& why) { return std::unexpected(fmt::format("parse {}: {}", go::quote(text), why)); };
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return wrong("net/url: invalid control character in URL");
  if (text.empty()) return wrong("empty url");
  UrlValue out;
  out.text = text;
  if (text == "*") return out;
  auto rest = text;
  std::string error;
  out.scheme = scheme_of(rest, error);
  if (!error.empty()) return wrong(error);
  // ParseRequestURI knows no fragments; Parse, which comes second, takes them off.
  const bool has_scheme = !out.scheme.empty();
  if (!rest.starts_with('/')) {
    if (has_scheme) {
      out.query = rest.substr(std::min(rest.size(), rest.find('?')) + (rest.find('?') != std::string_view::npos));
      return out;
    }
    return wrong("invalid URI for request");
  }
  if (const auto hash = rest.find('#'); hash != std::string_view::npos) rest = rest.substr(0, hash);
  if (const auto question = rest.find('?'); question != std::string_view::npos) {
    out.query = rest.substr(question + 1);
    rest = rest.substr(0, question);
  }
  if ((has_scheme || !rest.starts_with("///")) && rest.starts_with("//")) {
    auto authority = rest.substr(2, rest.substr(2).find('/'));
    rest.remove_prefix(2 + authority.size());
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) authority.remove_prefix(at + 1);
    if (auto why = check_host(authority); !why.empty()) return wrong(why);
    std::string broken;
    const auto host = percent_decode(authority, false, &broken);
    if (!host) return wrong("invalid URL escape " + go::quote(broken));
    out.host = *host;
  }
  std::string broken;
  if (!percent_decode(rest, false, &broken)) return wrong("invalid URL escape " + go::quote(broken));
  out.escaped_path = cel::escaped_path(rest);
  return out;
}

std::string UrlValue::hostname() const {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.rfind(':') == std::string::npos ? host.size() : host.rfind(':'));
}
std::string UrlValue::port() const {
  const auto start = host.starts_with('[') ? host.find(']') : 0;
  const auto colon = host.find(':', start == std::string::npos ? 0 : start);
  return colon == std::string::npos ? "" : host.substr(host.rfind(':') + 1);
}

void add_url(Registry& r) {
  r.add("url", "string_to_url", "(string): URL", [](const Args& a) {
    auto url = UrlValue::parse(a[0].text());
    if (!url) return Value::error("URL parse error during conversion from string: " + url.error());
    return Value::opaque(std::make_shared<const UrlValue>(std::move(*url)));
  });
  r.add("getScheme", "url_get_scheme", "URL.(): string", [](const Args& a) { return get(a, [](const UrlValue& u) { return u.scheme; }); });
  r.add("getHost", "url_get_host", "URL.(): string", [](const Args& a) { return get(a, [](const UrlValue& u) { return u.host; }); });
  r.add("getHostname", "url_get_hostname", "URL.(): string",
        [](const Args& a) { return get(a, [](const UrlValue& u) { return u.hostname(); }); });
  r.add("getPort", "url_get_port", "URL.(): string", [](const Args& a) { return get(a, [](const UrlValue& u) { return u.port(); }); });
  r.add("getEscapedPath", "url_get_escaped_path", "URL.(): string",
        [](const Args& a) { return get(a, [](const UrlValue& u) { return u.escaped_path; }); });
  r.add("getQuery", "url_get_query", "URL.(): map(string, list(string))", get_query);
  r.add("isURL", "is_url_string", "(string): bool", [](const Args& a) { return Value::boolean(UrlValue::parse(a[0].text()).has_value()); });
}

}  // namespace berth::cel
