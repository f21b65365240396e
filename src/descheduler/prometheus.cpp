#include "descheduler/prometheus.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <future>
#include <limits>
#include <optional>

#include "net/client.h"

namespace berth::descheduler {
namespace {

/// Prometheus writes values as texts, so that there can be NaN and Inf.
std::optional<double> number_of(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "+Inf" || text == "Inf") return std::numeric_limits<double>::infinity();
  if (text == "-Inf") return -std::numeric_limits<double>::infinity();
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

std::string first_line(std::string_view text) { return std::string(text.substr(0, std::min(text.find('\n'), std::size_t{200}))); }

}  // namespace

Result<Amounts> usage_of_samples(const std::vector<std::pair<std::string, double>>& samples) {
  Amounts out;
  for (const auto& [node, value] : samples) {
    if (!(value >= 0 && value <= 1))
      return invalid(fmt::format("The collected metrics sample for \"{}\" has value {} outside of <0; 1> interval", node, value));
    out[node] = static_cast<std::int64_t>(value * 100);
  }
  return out;
}

Result<Amounts> usage_of_answer(const json::Value& answer) {
  if (json::get_string(answer, {"status"}) != "success")
    return invalid(fmt::format("unable to capture prometheus metrics: {}: {}", json::get_string(answer, {"errorType"}),
                               json::get_string(answer, {"error"})));
  if (const auto type = json::get_string(answer, {"data", "resultType"}); type != "vector")
    return invalid(fmt::format("expected query results to be of type \"vector\", got \"{}\" instead", type));
  std::vector<std::pair<std::string, double>> samples;
  for (const json::Value& sample : json::get_array(answer, {"data", "result"})) {
    const json::Value* instance = json::find(sample, {"metric", "instance"});
    if (instance == nullptr || !instance->is_string()) return invalid("The collected metrics sample is missing 'instance' key");
    const auto pair = json::get_array(sample, {"value"});
    const auto value = pair.size() == 2 ? number_of(json::as_view(pair[1])) : std::nullopt;
    if (!value) return invalid(fmt::format("unable to capture prometheus metrics: a sample has no value: {}", json::serialize(sample)));
    samples.emplace_back(json::as_view(*instance), *value);
  }
  return usage_of_samples(samples);
}

Result<Amounts> ask_prometheus(const PrometheusAddress& address, const std::string& query) {
  const auto failed = [&](std::string_view why) {
    return fail(ErrorCode::kUnavailable, fmt::format("unable to capture prometheus metrics: {}: {}", address.url, why));
  };
  net::ClientConfig config{.url = address.url, .ca_pem = address.ca_pem, .max_connections = 1, .timeout_ms = address.timeout_ms};
  config.max_answer_bytes = std::size_t{64} << 20;  // A sample a node or pod.
  auto client = net::HttpClient::create(std::move(config));
  if (!client) return failed(client.error().message);
  net::HttpRequest request{.method = "GET", .path = "/api/v1/query", .query = "query=" + net::percent_encode(query)};
  request.headers.add("Accept", "application/json");
  if (!address.token.empty()) request.headers.add("Authorization", "Bearer " + address.token);
  std::promise<net::HttpResponse> answered;
  (*client)->send(std::move(request), [&](net::HttpResponse response) { answered.set_value(std::move(response)); });
  const net::HttpResponse response = answered.get_future().get();
  if (response.status == 0) return failed(response.body);
  const auto answer = json::parse(response.body);
  // A mistaken query is answered 400 with the reason in the document.
  if (response.status != 200 && (!answer || json::get_string(*answer, {"status"}) != "error"))
    return failed(fmt::format("HTTP {}: {}", response.status, first_line(response.body)));
  if (!answer) return failed(fmt::format("the answer is no JSON: {}", first_line(response.body)));
  auto usage = usage_of_answer(*answer);
  if (!usage) return fail(usage.error().code, fmt::format("{} ({}, query {})", usage.error().message, address.url, query));
  return usage;
}

std::string why_not_prometheus_url(const std::string& url) {
  if (url.empty()) return "prometheus URL is required when prometheus is enabled";
  const auto wrong = [&](std::string_view what) { return fmt::format("error parsing prometheus URL: parse \"{}\": {}", url, what); };
  for (const char c : url)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return wrong("net/url: invalid control character in URL");
  const std::size_t scheme = url.find("://");
  if (scheme == 0 || url.starts_with(':')) return wrong("missing protocol scheme");
  if (scheme == std::string::npos)
    return fmt::format("error parsing prometheus URL: \"{}\" has no scheme: http:// or https:// is wanted", url);
  if (const std::string name = url.substr(0, scheme); name != "http" && name != "https")
    return fmt::format("error parsing prometheus URL: scheme \"{}\" is not known: http or https is wanted", name);
  const std::string_view authority = std::string_view(url).substr(scheme + 3, url.find_first_of("/?#", scheme + 3) - scheme - 3);
  if (authority.empty()) return fmt::format("error parsing prometheus URL: \"{}\" names no host", url);
  if (authority.find(' ') != authority.npos) return wrong("invalid character \" \" in host name");
  const std::size_t bracket = authority.rfind(']');
  if (authority.starts_with('[') && bracket == authority.npos) return wrong("missing ']' in host");
  const std::size_t colon = authority.rfind(':');
  if (colon == authority.npos || (bracket != authority.npos && colon < bracket)) return "";
  const std::string_view port = authority.substr(colon + 1);
  if (port.find_first_not_of("0123456789") != port.npos)
    return wrong(fmt::format("invalid port \"{}\" after host", authority.substr(colon)));
  return "";
}

}  // namespace berth::descheduler
