// The text of a .proto, as far as our own texts of protocols go, read into a descriptor: what protoc does at build time, at run time.
#pragma once
#include <google/protobuf/descriptor.pb.h>

#include <string_view>

namespace berth::net::proto {

/// proto3: a package, services with unary methods and such as answer by a stream, messages with scalar, message, repeated and map fields,
/// enums within messages. False for anything else.
bool read_proto(std::string_view text, google::protobuf::FileDescriptorProto& out);

}  // namespace berth::net::proto
