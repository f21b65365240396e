#ifndef BERTH_WITH_CRI
#include "node/cri/channel.h"

namespace berth::node::cri {

Result<std::unique_ptr<Channel>> Channel::open(const ChannelOptions&) {
  return fail(ErrorCode::kUnavailable, "this berth was built without gRPC: install libgrpc++-dev and libprotobuf-dev and build again");
}

}  // namespace berth::node::cri
#endif
