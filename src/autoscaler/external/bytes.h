// gRPC's buffers as strings.
#pragma once
#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

namespace berth::autoscaler::external {

inline grpc::ByteBuffer to_buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

inline std::string from_buffer(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string out;
  if (buffer.Dump(&slices).ok())
    for (const grpc::Slice& one : slices) out.append(reinterpret_cast<const char*>(one.begin()), one.size());
  return out;
}

}  // namespace berth::autoscaler::external
