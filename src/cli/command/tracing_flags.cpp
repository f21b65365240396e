#include "cli/command/tracing_flags.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "base/config_reader.h"
#include "net/tracing/tracer.h"

namespace berth::cli {

void TracingFlags::add_to(CLI::App& app) {
  app.add_option(
      "--tracing-config-file", config_file,
      "TracingConfiguration: the OpenTelemetry collector (OTLP over gRPC) that gets traces of requests, and how many in a million");
}

std::shared_ptr<const net::tracing::TracerOptions> TracingFlags::plan(const std::string& service, Findings& findings) const {
  if (config_file.empty()) return nullptr;
  const auto text = findings.take(config::read_whole_file(config_file));
  if (!text) return nullptr;
  auto options = findings.take(parse_tracing_configuration(*text, config_file));
  if (!options) return nullptr;
  options->service = service;
  return std::make_shared<const net::tracing::TracerOptions>(std::move(*options));
}

Result<net::tracing::TracerOptions> parse_tracing_configuration(std::string_view text, const std::string& file) {
  net::tracing::TracerOptions out;
  const auto read = config::read_text(text, {.file = file}, [&](const config::Reader& root) {
    out = {};
    if (!root.expect_object()) return;
    static constexpr std::array<std::string_view, 1> kKinds = {"TracingConfiguration"};
    static constexpr std::array<std::string_view, 3> kVersions = {"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1",
                                                                  "apiserver.config.k8s.io/v1alpha1"};
    root.only({"apiVersion", "kind", "endpoint", "samplingRatePerMillion"});
    root.expect_kind(kKinds, kVersions);
    for (const char* field : {"apiVersion", "kind"})
      if (!root.has(field))
        root.problem(field, "missing; the file begins with apiVersion: apiserver.config.k8s.io/v1beta1 and kind: TracingConfiguration");
    out.sampling_rate_per_million = root.integer("samplingRatePerMillion", 0);
    if (out.sampling_rate_per_million < 0) root.problem("samplingRatePerMillion", "must not be negative");
    if (out.sampling_rate_per_million > 1'000'000) root.problem("samplingRatePerMillion", "must not be above one million");
    out.endpoint = root.string("endpoint", out.endpoint);
    const auto colon = out.endpoint.rfind(':');
    const auto digits = colon == std::string::npos ? std::string_view() : std::string_view(out.endpoint).substr(colon + 1);
    int port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    const bool is_port = error == std::errc() && end == digits.data() + digits.size() && port > 0 && port < 65536;
    if (colon == 0 || !is_port || out.endpoint.find("//") != std::string::npos)
      root.problem("endpoint", "must be HOST:PORT of a collector's OTLP gRPC port, without scheme, such as localhost:4317");
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

}  // namespace berth::cli
