#include "node/cri/channel.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "node/cri/descriptors.h"

namespace berth::node::cri {
namespace {

namespace pb = google::protobuf;

grpc::ByteBuffer to_buffer(const pb::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

bool from_buffer(const grpc::ByteBuffer& buffer, pb::Message& message) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return false;
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return message.ParseFromString(bytes);
}

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(const pb::FileDescriptorProto& file, const std::string& socket)
      : factory_(&pool_), channel_(grpc::CreateChannel("unix://" + socket, grpc::InsecureChannelCredentials())), stub_(channel_) {
    file_ = pool_.BuildFile(file);
  }
  [[nodiscard]] bool is_valid() const { return file_ != nullptr; }

  Result<json::Value> call(const std::string& method, const json::Value& request, int timeout_ms,
                           const std::atomic<bool>* cancel) override {
    const std::size_t slash = method.find('/');
    const pb::ServiceDescriptor* service = file_->FindServiceByName(method.substr(0, slash));
    const pb::MethodDescriptor* descriptor = service ? service->FindMethodByName(method.substr(slash + 1)) : nullptr;
    if (!descriptor) return fail(ErrorCode::kInternal, "the runtime's CRI has no method " + method);
    const std::unique_ptr<pb::Message> input(factory_.GetPrototype(descriptor->input_type())->New());
    const std::unique_ptr<pb::Message> output(factory_.GetPrototype(descriptor->output_type())->New());
    pb::util::JsonParseOptions parse;
    parse.ignore_unknown_fields = true;  // Older runtimes lack newer fields.
    if (const auto status = pb::util::JsonStringToMessage(json::serialize(request), input.get(), parse); !status.ok())
      return fail(ErrorCode::kInternal, fmt::format("{}: {}", method, std::string(status.message())));

    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms));
    grpc::CompletionQueue queue;
    const auto reader = stub_.PrepareUnaryCall(&context, fmt::format("/runtime.v1.{}", method), to_buffer(*input), &queue);
    grpc::ByteBuffer answer;
    grpc::Status status;
    reader->StartCall();
    reader->Finish(&answer, &status, this);
    void* tag = nullptr;
    bool ok = false;
    while (cancel && queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + std::chrono::milliseconds(100)) ==
                         grpc::CompletionQueue::TIMEOUT) {
      if (!cancel->load()) continue;
      context.TryCancel();
      cancel = nullptr;
    }
    if (!tag) queue.Next(&tag, &ok);
    if (!status.ok()) {
      const auto code = status.error_code();
      const ErrorCode kind = code == grpc::NOT_FOUND ? ErrorCode::kNotFound
                             : code == grpc::UNAVAILABLE || code == grpc::DEADLINE_EXCEEDED || code == grpc::CANCELLED
                                 ? ErrorCode::kUnavailable
                                 : ErrorCode::kInternal;
      return fail(kind, status.error_message());
    }
    if (!from_buffer(answer, *output)) return fail(ErrorCode::kInternal, method + ": the runtime's answer cannot be read");
    pb::util::JsonPrintOptions print;
    print.preserve_proto_field_names = true;
    print.always_print_primitive_fields = true;  // The first value of an enum is the default, and means something here.
    std::string text;
    if (!pb::util::MessageToJsonString(*output, &text, print).ok())
      return fail(ErrorCode::kInternal, method + ": the runtime's answer cannot be shown");
    return json::parse(text);
  }

 private:
  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_;
  const pb::FileDescriptor* file_ = nullptr;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
};

}  // namespace

Result<std::unique_ptr<Channel>> Channel::open(const ChannelOptions& options) {
  auto bytes = find_cri_descriptor(options.runtime_binary);
  if (!bytes) return std::unexpected(bytes.error());
  pb::FileDescriptorProto file;
  file.ParseFromString(*bytes);
  // Only Go's code generator needs the imported options.
  file.clear_dependency();
  auto channel = std::make_unique<GrpcChannel>(file, options.socket);
  if (!channel->is_valid()) return fail(ErrorCode::kInternal, options.runtime_binary + ": its CRI descriptor cannot be used");
  return channel;
}

}  // namespace berth::node::cri
