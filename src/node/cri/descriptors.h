// Finding protocol descriptors inside a Go binary.
#pragma once
#include <string>

#include "base/error.h"

namespace berth::node::cri {

/// The serialised FileDescriptorProto of CRI's runtime.v1 that `binary` carries (gzip-compressed, as Go's protobuf libraries embed it).
/// kNotFound when there is none.
Result<std::string> find_cri_descriptor(const std::string& binary);

}  // namespace berth::node::cri
