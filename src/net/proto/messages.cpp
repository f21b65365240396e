#ifdef BERTH_WITH_GRPC
#include "net/proto/messages.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>

#include "net/proto/proto_text.h"

namespace berth::net::proto {
namespace {

namespace pb = google::protobuf;

class DynamicMessages final : public Messages {
 public:
  explicit DynamicMessages(const pb::FileDescriptorProto& file) : factory_(&pool_) { file_ = pool_.BuildFile(file); }
  [[nodiscard]] bool is_valid() const { return file_ != nullptr; }

  [[nodiscard]] Result<std::string> encode(const std::string& method, Side side, const json::Value& document) const override {
    auto message = make(method, side);
    if (!message) return std::unexpected(message.error());
    const auto read = pb::util::JsonStringToMessage(json::serialize(document), message->get());
    if (!read.ok()) return invalid(fmt::format("{}: {}", method, std::string(read.message())));
    return (*message)->SerializeAsString();
  }

  [[nodiscard]] Result<json::Value> decode(const std::string& method, Side side, const std::string& bytes) const override {
    auto message = make(method, side);
    if (!message) return std::unexpected(message.error());
    if (!(*message)->ParseFromString(bytes)) return invalid(fmt::format("{}: the message cannot be read", method));
    pb::util::JsonPrintOptions print;
    print.preserve_proto_field_names = true;
    print.always_print_primitive_fields = true;
    std::string text;
    if (!pb::util::MessageToJsonString(**message, &text, print).ok())
      return invalid(fmt::format("{}: the message cannot be shown", method));
    return json::parse(text);
  }

 private:
  [[nodiscard]] Result<std::unique_ptr<pb::Message>> make(const std::string& method, Side side) const {
    const std::size_t slash = std::min(method.find('/'), method.size());
    const pb::ServiceDescriptor* service = pool_.FindServiceByName(method.substr(0, slash));
    const pb::MethodDescriptor* found =
        service != nullptr ? service->FindMethodByName(method.substr(std::min(slash + 1, method.size()))) : nullptr;
    if (found == nullptr) return fail(ErrorCode::kNotFound, fmt::format("the protocol has no method {}", method));
    const pb::Descriptor* type = side == Side::kRequest ? found->input_type() : found->output_type();
    return std::unique_ptr<pb::Message>(factory_.GetPrototype(type)->New());
  }

  pb::DescriptorPool pool_;
  mutable pb::DynamicMessageFactory factory_;  ///< Thread-safe by itself.
  const pb::FileDescriptor* file_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Messages>> Messages::of(std::string_view proto) {
  pb::FileDescriptorProto file;
  file.set_name("external.proto");
  if (!read_proto(proto, file)) return invalid("the protocol's text cannot be read");
  auto out = std::make_unique<DynamicMessages>(file);
  if (!out->is_valid()) return invalid("the protocol's text names something twice, or what it does not have");
  return out;
}

}  // namespace berth::net::proto
#endif
