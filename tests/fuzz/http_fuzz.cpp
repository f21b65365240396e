// Fuzz target: the HTTP/1.1 parsers. The same bytes fed whole and byte by byte must give the same messages, and never more than the limits.
#include <cstdio>
#include <cstdlib>

#include "net/http_parser.h"

namespace {

using namespace berth::net;

constexpr ParserLimits kLimits{4096, 16384};

void check(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

/// What a stream of requests means, and whether it ends with a refusal. (Which fault is named first may depend on what has arrived.)
using Meaning = std::pair<std::string, bool>;
Meaning requests_of(std::string_view data, std::size_t step) {
  RequestParser parser(kLimits);
  std::string out, rest;
  while (!data.empty() || !rest.empty()) {
    rest.append(data.substr(0, step));
    data.remove_prefix(std::min(step, data.size()));
    std::size_t at = 0;
    while (at < rest.size()) {
      const auto consumed = parser.feed(std::string_view(rest).substr(at));
      at += consumed;
      check(parser.body_bytes() <= kLimits.max_body_bytes + step + rest.size(), "the body outgrows its limit");
      if (parser.state() == RequestParser::State::kFailed) return {out, true};
      if (parser.state() == RequestParser::State::kDone) {
        const auto request = parser.take();
        check(!request.path.empty() && (request.path[0] == '/' || request.path == "*"), "a path without a root");
        check(request.path.find('\0') == std::string::npos, "a NUL in the path");
        check(("/" + request.path + "/").find("/../") == std::string::npos, "a path that climbs");
        out += request.method + "|" + request.path + "|" + request.query + "|" + request.body + "|";
        for (const auto& [name, value] : request.headers.fields()) out += name + "=" + value + ";";
        out += parser.keep_alive() ? "k" : "c";
      } else if (consumed == 0) {
        break;
      }
    }
    rest.erase(0, at);
    if (data.empty()) break;
  }
  return {out, false};
}

std::string response_of(std::string_view data, std::size_t step) {
  ResponseParser parser(kLimits);
  parser.expect("GET");
  while (!data.empty() && parser.state() != ResponseParser::State::kDone && parser.state() != ResponseParser::State::kFailed) {
    const auto piece = data.substr(0, step);
    const auto consumed = parser.feed(piece);
    check(consumed <= piece.size(), "consumed more than there was");
    data.remove_prefix(consumed);
    if (consumed == 0) break;
  }
  parser.end_of_input();
  if (parser.state() == ResponseParser::State::kFailed) return "!" + parser.failure().message;
  return fmt::format("{} {}", parser.response().status, parser.response().body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  const std::string_view data(reinterpret_cast<const char*>(bytes), size);
  const auto whole = requests_of(data, data.size() + 1);
  const auto bytewise = requests_of(data, 1);
  check(whole == bytewise, "requests differ by how they arrive");
  check(response_of(data, data.size() + 1) == response_of(data, 1), "responses differ by how they arrive");
  (void)decode_path(data);
  (void)parse_query(data);
  if (const auto decoded = percent_decode(percent_encode(data)); !decoded || *decoded != data)
    check(false, "percent encoding does not round-trip");
  return 0;
}
