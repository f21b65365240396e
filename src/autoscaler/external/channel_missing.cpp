#ifndef BERTH_WITH_GRPC
#include "autoscaler/external/channel.h"
#include "autoscaler/external/service.h"

namespace berth::autoscaler::external {
namespace {

constexpr const char* kMissing = "this berth was built without gRPC: install libgrpc++-dev and libprotobuf-dev and build again";

}  // namespace

Result<std::unique_ptr<Channel>> Channel::open(const ChannelAddress&, std::string_view) { return fail(ErrorCode::kUnavailable, kMissing); }

Result<std::unique_ptr<Service>> Service::start(const ServiceOptions&, std::string_view, Answer) {
  return fail(ErrorCode::kUnavailable, kMissing);
}

}  // namespace berth::autoscaler::external
#endif
