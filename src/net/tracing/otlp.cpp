// OTLP's messages in protobuf's wire format: field numbers of opentelemetry-proto's trace.proto, resource.proto and common.proto.
#include "base/version.h"
#include "base/wire.h"
#include "net/tracing/tracer.h"

namespace berth::net::tracing {
namespace {

using namespace wire;

template <std::size_t Size>
std::string_view bytes_of(const std::array<std::uint8_t, Size>& id) {
  return {reinterpret_cast<const char*>(id.data()), Size};
}

void put_attribute(std::string& out, int field, std::string_view key, const std::variant<std::string, std::int64_t>& value) {
  std::string any, pair;
  if (const auto* text = std::get_if<std::string>(&value))
    append_field(any, 1, *text);
  else
    append_number(any, 3, static_cast<std::uint64_t>(std::get<std::int64_t>(value)));
  append_field(pair, 1, key);
  append_field(pair, 2, any);
  append_field(out, field, pair);
}

std::string encode_span(const Span& span) {
  constexpr std::uint64_t kError = 2;
  std::string out;
  append_field(out, 1, bytes_of(span.context.trace_id));
  append_field(out, 2, bytes_of(span.context.span_id));
  if (span.parent != decltype(span.parent){}) append_field(out, 4, bytes_of(span.parent));
  append_field(out, 5, span.name);
  append_number(out, 6, static_cast<std::uint64_t>(span.kind));
  append_fixed64(out, 7, static_cast<std::uint64_t>(span.start_ns));
  append_fixed64(out, 8, static_cast<std::uint64_t>(span.end_ns));
  for (const auto& [key, value] : span.attributes) put_attribute(out, 9, key, value);
  if (span.caused_by) {
    std::string link;
    append_field(link, 1, bytes_of(span.caused_by->trace_id));
    append_field(link, 2, bytes_of(span.caused_by->span_id));
    append_field(out, 13, link);
  }
  if (!span.error.empty()) {
    std::string status;
    append_field(status, 2, span.error);
    append_number(status, 3, kError);
    append_field(out, 15, status);
  }
  return out;
}

}  // namespace

std::string encode_otlp(std::string_view service, const std::vector<Span>& spans) {
  std::string resource, scope, of_scope, of_resource, out;
  put_attribute(resource, 1, "service.name", std::string(service));
  put_attribute(resource, 1, "service.version", std::string(kBuildVersion));
  append_field(scope, 1, "berth");
  append_field(of_scope, 1, scope);
  for (const Span& span : spans) append_field(of_scope, 2, encode_span(span));
  append_field(of_resource, 1, resource);
  append_field(of_resource, 2, of_scope);
  append_field(out, 1, of_resource);
  return out;
}

}  // namespace berth::net::tracing
