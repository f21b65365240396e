// Where an external provider of machines is.
#pragma once
#include <chrono>
#include <string>

#include "autoscaler/external/channel.h"
#include "base/clock.h"

namespace berth::autoscaler {

/// The file that the cluster autoscaler takes by --cloud-config: address, key, cert, cacert, grpc_timeout.
struct ExternalProviderConfig {
  external::ChannelAddress address;
  Duration timeout = std::chrono::seconds(5);  ///< Of one call.
  /// The error names file, line and field, or the file of a key or certificate that cannot be read.
  static Result<ExternalProviderConfig> load(const std::string& path);
};

}  // namespace berth::autoscaler
