#include "node/cri/channel.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>

#include "net/grpc.h"
#include "node/cri/descriptors.h"

namespace berth::node::cri {
namespace {

namespace pb = google::protobuf;

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(const pb::FileDescriptorProto& file, std::unique_ptr<net::GrpcCalls> calls) : factory_(&pool_), calls_(std::move(calls)) {
    file_ = pool_.BuildFile(file);
  }
  [[nodiscard]] bool is_valid() const { return file_ != nullptr; }

  CallAnswer call(const std::string& method, const json::Value& request, int timeout_ms, const std::atomic<bool>* cancel) override {
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

    const auto answer = calls_->call("/runtime.v1." + method, input->SerializeAsString(), timeout_ms, cancel);
    if (!answer) {
      const auto& failure = answer.error();
      const ErrorCode code = failure.is(net::GrpcCode::kNotFound) ? ErrorCode::kNotFound
                             : failure.is_unanswered()            ? ErrorCode::kUnavailable
                                                                  : ErrorCode::kInternal;
      return std::unexpected(CallFailure({code, failure.message}, failure.is(net::GrpcCode::kDeadlineExceeded)));
    }
    if (!output->ParseFromString(*answer)) return fail(ErrorCode::kInternal, method + ": the runtime's answer cannot be read");
    pb::util::JsonPrintOptions print;
    print.preserve_proto_field_names = true;
    print.always_print_primitive_fields = true;  // The first value of an enum is the default, and means something here.
    std::string text;
    if (!pb::util::MessageToJsonString(*output, &text, print).ok())
      return fail(ErrorCode::kInternal, method + ": the runtime's answer cannot be shown");
    return json::parse(text);
  }

  [[nodiscard]] bool has_field(const std::string& message, const std::string& field) const override {
    const pb::Descriptor* found = file_->FindMessageTypeByName(message);
    return found != nullptr && found->FindFieldByName(field) != nullptr;
  }

 private:
  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_;
  const pb::FileDescriptor* file_ = nullptr;
  std::unique_ptr<net::GrpcCalls> calls_;
};

}  // namespace

Result<std::unique_ptr<Channel>> Channel::open(const ChannelOptions& options) {
  auto bytes = find_cri_descriptor(options.runtime_binary);
  if (!bytes) return std::unexpected(bytes.error());
  pb::FileDescriptorProto file;
  file.ParseFromString(*bytes);
  // Only Go's code generator needs the imported options.
  file.clear_dependency();
  auto calls = net::GrpcCalls::open({.target = "unix://" + options.socket});
  if (!calls) return std::unexpected(calls.error());
  auto channel = std::make_unique<GrpcChannel>(file, std::move(*calls));
  if (!channel->is_valid()) return fail(ErrorCode::kInternal, options.runtime_binary + ": its CRI descriptor cannot be used");
  return channel;
}

}  // namespace berth::node::cri
