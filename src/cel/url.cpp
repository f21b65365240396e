// url() and its functions (apiserver/pkg/cel/library/urls.go over Go's net/url).
#include "cel/functions.h"
#include "cel/opaque.h"

namespace berth::cel {
namespace {

Value get(const Args& a, std::string (*read)(const UrlValue&)) { return Value::string(read(*as_opaque<UrlValue>(a[0]))); }

Value get_query(const Args& a) {
  std::vector<std::pair<std::string, Value>> entries;
  for (auto& [key, texts] : go::parse_query(as_opaque<UrlValue>(a[0])->url.query)) {
    std::vector<Value> values;
    for (auto& text : texts) values.push_back(Value::string(std::move(text)));
    entries.emplace_back(key, Value::list(std::move(values)));
  }
  return Value::map(std::move(entries));
}

}  // namespace

Expected<UrlValue, std::string> UrlValue::parse(std::string_view text) {
  // ParseRequestURI knows no fragments; Parse, which comes second, takes them off.
  if (auto request = go::parse_request_uri(text); !request) return std::unexpected(std::move(request.error()));
  auto url = go::parse_url(text);
  if (!url) return std::unexpected(std::move(url.error()));
  UrlValue out;
  out.text = text;
  out.url = std::move(*url);
  return out;
}

void add_url(Registry& r) {
  r.add("url", "string_to_url", "(string): URL", [](const Args& a) {
    auto url = UrlValue::parse(a[0].text());
    if (!url) return Value::error("URL parse error during conversion from string: " + url.error());
    return Value::opaque(std::make_shared<const UrlValue>(std::move(*url)));
  });
  r.add("getScheme", "url_get_scheme", "URL.(): string",
        [](const Args& a) { return get(a, [](const UrlValue& u) { return u.url.scheme; }); });
  r.add("getHost", "url_get_host", "URL.(): string", [](const Args& a) { return get(a, [](const UrlValue& u) { return u.url.host; }); });
  r.add("getHostname", "url_get_hostname", "URL.(): string",
        [](const Args& a) { return get(a, [](const UrlValue& u) { return u.url.hostname(); }); });
  r.add("getPort", "url_get_port", "URL.(): string", [](const Args& a) { return get(a, [](const UrlValue& u) { return u.url.port(); }); });
  r.add("getEscapedPath", "url_get_escaped_path", "URL.(): string",
        [](const Args& a) { return get(a, [](const UrlValue& u) { return u.url.escaped_path(); }); });
  r.add("getQuery", "url_get_query", "URL.(): map(string, list(string))", get_query);
  r.add("isURL", "is_url_string", "(string): bool", [](const Args& a) { return Value::boolean(UrlValue::parse(a[0].text()).has_value()); });
}

}  // namespace berth::cel
