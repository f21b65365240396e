// A provider of machines that speaks the autoscaler project's external gRPC protocol (SPEC H6).
#pragma once
#include <memory>
#include <string>

#include "autoscaler/external/external_config.h"
#include "autoscaler/provider.h"
#include "base/event_loop.h"

namespace berth::autoscaler {

class ClusterCache;

/// Calls from a thread of its own; `cache` must outlive it. The error: built without gRPC.
Result<std::shared_ptr<Provider>> connect_external_provider(const ExternalProviderConfig& config, EventLoop& loop,
                                                            const ClusterCache& cache);
/// The same over a channel that is there.
std::shared_ptr<Provider> make_external_provider(std::unique_ptr<external::Channel> channel, Duration timeout, EventLoop& loop,
                                                 const ClusterCache& cache);

}  // namespace berth::autoscaler
