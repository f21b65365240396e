// OTLP's messages in protobuf's wire format: field numbers of opentelemetry-proto's trace.proto, resource.proto and common.proto.
#include "base/version.h"
#include "net/tracing/tracer.h"

namespace berth::net::tracing {
namespace {

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

void put_number(std::string& out, int field, std::uint64_t value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3);
  put_varint(out, value);
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_fixed64(std::string& out, int field, std::uint64_t value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 1);
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
}

template <std::size_t Size>
std::string_view bytes_of(const std::array<std::uint8_t, Size>& id) {
  return {reinterpret_cast<const char*>(id.data()), Size};
}

void put_attribute(std::string& out, int field, std::string_view key, const std::variant<std::string, std::int64_t>& value) {
  std::string any, pair;
  if (const auto* text = std::get_if<std::string>(&value))
    put_bytes(any, 1, *text);
  else
    put_number(any, 3, static_cast<std::uint64_t>(std::get<std::int64_t>(value)));
  put_bytes(pair, 1, key);
  put_bytes(pair, 2, any);
  put_bytes(out, field, pair);
}

std::string encode_span(const Span& span) {
  constexpr std::uint64_t kError = 2;
  std::string out;
  put_bytes(out, 1, bytes_of(span.context.trace_id));
  put_bytes(out, 2, bytes_of(span.context.span_id));
  if (span.parent != decltype(span.parent){}) put_bytes(out, 4, bytes_of(span.parent));
  put_bytes(out, 5, span.name);
  put_number(out, 6, static_cast<std::uint64_t>(span.kind));
  put_fixed64(out, 7, static_cast<std::uint64_t>(span.start_ns));
  put_fixed64(out, 8, static_cast<std::uint64_t>(span.end_ns));
  for (const auto& [key, value] : span.attributes) put_attribute(out, 9, key, value);
  if (span.caused_by) {
    std::string link;
    put_bytes(link, 1, bytes_of(span.caused_by->trace_id));
    put_bytes(link, 2, bytes_of(span.caused_by->span_id));
    put_bytes(out, 13, link);
  }
  if (!span.error.empty()) {
    std::string status;
    put_bytes(status, 2, span.error);
    put_number(status, 3, kError);
    put_bytes(out, 15, status);
  }
  return out;
}

}  // namespace

std::string encode_otlp(std::string_view service, const std::vector<Span>& spans) {
  std::string resource, scope, of_scope, of_resource, out;
  put_attribute(resource, 1, "service.name", std::string(service));
  put_attribute(resource, 1, "service.version", std::string(kBuildVersion));
  put_bytes(scope, 1, "berth");
  put_bytes(of_scope, 1, scope);
  for (const Span& span : spans) put_bytes(of_scope, 2, encode_span(span));
  put_bytes(of_resource, 1, resource);
  put_bytes(of_resource, 2, of_scope);
  put_bytes(out, 1, of_resource);
  return out;
}

}  // namespace berth::net::tracing
