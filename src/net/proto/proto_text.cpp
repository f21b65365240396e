#ifdef BERTH_WITH_GRPC
#include "net/proto/proto_text.h"

#include <cctype>
#include <charconv>
#include <string>
#include <vector>

namespace berth::net::proto {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::FieldDescriptorProto;

class ProtoText {
 public:
  explicit ProtoText(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
      std::size_t end = at + 1;
      if (std::isspace(static_cast<unsigned char>(text[at])) == 0) {
        if (is_word(text[at]))
          while (end < text.size() && is_word(text[end])) ++end;
        if (text[at] == '"') end = text.find('"', end) + 1;
        words_.push_back(text.substr(at, end - at));
      }
      at = end;
    }
  }

  bool file(google::protobuf::FileDescriptorProto& out) {
    out.set_syntax("proto3");
    while (at_ < words_.size() && ok_) {
      const std::string_view word = next();
      if (word == "syntax") {
        expect("=");
        ok_ &= next() == "\"proto3\"";
        expect(";");
      } else if (word == "package") {
        out.set_package(std::string(next()));
        expect(";");
      } else if (word == "message") {
        message(*out.add_message_type());
      } else if (word == "service") {
        service(*out.add_service());
      } else {
        ok_ = false;
      }
    }
    return ok_;
  }

 private:
  std::string_view next() {
    if (at_ < words_.size()) return words_[at_++];
    ok_ = false;
    return {};
  }
  [[nodiscard]] std::string_view ahead() const { return at_ < words_.size() ? words_[at_] : std::string_view(); }
  void expect(std::string_view word) { ok_ &= next() == word; }
  int number() {
    int out = 0;
    const std::string_view text = next();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    ok_ &= error == std::errc() && end == text.data() + text.size();
    return out;
  }

  void service(google::protobuf::ServiceDescriptorProto& out) {
    out.set_name(std::string(next()));
    expect("{");
    while (ok_ && ahead() == "rpc") {
      expect("rpc");
      auto& method = *out.add_method();
      method.set_name(std::string(next()));
      expect("(");
      method.set_input_type(std::string(next()));
      expect(")");
      expect("returns");
      expect("(");
      if (ahead() == "stream") {
        expect("stream");
        method.set_server_streaming(true);
      }
      method.set_output_type(std::string(next()));
      expect(")");
      expect(";");
    }
    expect("}");
  }

  void message(DescriptorProto& out) {
    out.set_name(std::string(next()));
    expect("{");
    while (ok_ && ahead() != "}") {
      if (ahead() == "enum")
        enumeration(*out.add_enum_type());
      else
        field(out);
    }
    expect("}");
  }

  void enumeration(google::protobuf::EnumDescriptorProto& out) {
    expect("enum");
    out.set_name(std::string(next()));
    expect("{");
    while (ok_ && ahead() != "}") {
      auto& value = *out.add_value();
      value.set_name(std::string(next()));
      expect("=");
      value.set_number(number());
      expect(";");
    }
    expect("}");
  }

  void field(DescriptorProto& owner) {
    std::string_view type = next();
    const bool is_repeated = type == "repeated", is_map = type == "map";
    if (is_repeated) type = next();
    std::string_view key, value;
    if (is_map) {
      expect("<");
      key = next();
      expect(",");
      value = next();
      expect(">");
    }
    const std::string name(next());
    expect("=");
    const int at = number();
    expect(";");
    if (!ok_) return;
    std::string entry;
    if (is_map) {
      // What `map` stands for: repeated messages of a key and a value.
      for (bool begins = true; const char c : name + "Entry") {
        if (c != '_') entry += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
        begins = c == '_';
      }
      DescriptorProto& made = *owner.add_nested_type();
      made.set_name(entry);
      made.mutable_options()->set_map_entry(true);
      fill(*made.add_field(), "key", 1, key, false);
      fill(*made.add_field(), "value", 2, value, false);
      type = entry;
    }
    fill(*owner.add_field(), name, at, type, is_repeated || is_map);
  }

  static void fill(FieldDescriptorProto& out, const std::string& name, int number, std::string_view type, bool is_repeated) {
    out.set_name(name);
    out.set_number(number);
    out.set_label(is_repeated ? FieldDescriptorProto::LABEL_REPEATED : FieldDescriptorProto::LABEL_OPTIONAL);
    if (type == "string")
      out.set_type(FieldDescriptorProto::TYPE_STRING);
    else if (type == "bytes")
      out.set_type(FieldDescriptorProto::TYPE_BYTES);
    else if (type == "int32")
      out.set_type(FieldDescriptorProto::TYPE_INT32);
    else if (type == "int64")
      out.set_type(FieldDescriptorProto::TYPE_INT64);
    else if (type == "double")
      out.set_type(FieldDescriptorProto::TYPE_DOUBLE);
    else if (type == "bool")
      out.set_type(FieldDescriptorProto::TYPE_BOOL);
    else
      out.set_type_name(std::string(type));  // A message or an enum: found out when the file is built.
  }

  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

bool read_proto(std::string_view text, google::protobuf::FileDescriptorProto& out) { return ProtoText(text).file(out); }

}  // namespace berth::net::proto
#endif
