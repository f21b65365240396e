// --tracing-config-file: where traces go and how many of them (kube-apiserver's flag and file).
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "cli/command/findings.h"

namespace CLI {
class App;
}
namespace berth::net::tracing {
struct TracerOptions;
}

namespace berth::cli {

struct TracingFlags {
  std::string config_file;
  void add_to(CLI::App& app);
  /// Reads the file; null without one, or when it is wrong.
  [[nodiscard]] std::shared_ptr<const net::tracing::TracerOptions> plan(const std::string& service, Findings& findings) const;
};

/// TracingConfiguration (apiserver.config.k8s.io v1, v1beta1, v1alpha1). The error lists all that is wrong, with line and path.
Result<net::tracing::TracerOptions> parse_tracing_configuration(std::string_view text, const std::string& file);

}  // namespace berth::cli
