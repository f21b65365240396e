// The few messages of key management in protobuf's wire format: strings, bytes, maps of them, one number.
#include "apiserver/encryption/kms.h"
#include "base/wire.h"

namespace berth::apiserver::encryption {
namespace {

using Map = std::map<std::string, std::string>;
using Entry = std::pair<std::string, std::string>;
struct OneText {
  std::string text;
};

/// Calls `each` with the number and the member of every field.
template <typename Message, typename Each>
void each_field(Message& of, Each each) {
  using Is = std::remove_const_t<Message>;
  if constexpr (std::is_same_v<Is, Entry>) {
    each(1, of.first), each(2, of.second);
  } else if constexpr (std::is_same_v<Is, OneText>) {
    each(1, of.text);
  } else if constexpr (std::is_same_v<Is, EncryptedObject>) {
    each(1, of.data), each(2, of.key_id), each(3, of.encrypted_seed), each(4, of.annotations), each(5, of.type);
  } else if constexpr (std::is_same_v<Is, KmsStatus>) {
    each(1, of.version), each(2, of.healthz), each(3, of.key_id);
  } else if constexpr (std::is_same_v<Is, KmsEncrypted>) {
    each(1, of.ciphertext), each(2, of.key_id), each(3, of.annotations);
  } else {
    static_assert(std::is_same_v<Is, KmsDecrypt>);
    each(1, of.ciphertext), each(2, of.uid), each(3, of.key_id), each(4, of.annotations);
  }
}

template <typename Message>
std::string encode(const Message& message);

void put(std::string& out, int field, const std::string& text) {
  if (!text.empty()) wire::append_field(out, field, text);
}
void put(std::string& out, int field, std::int64_t number) {
  if (number != 0) wire::append_number(out, field, static_cast<std::uint64_t>(number));
}
void put(std::string& out, int field, const Map& map) {
  for (const auto& [key, value] : map) wire::append_field(out, field, encode(Entry(key, value)));
}

template <typename Message>
std::string encode(const Message& message) {
  std::string out;
  each_field(message, [&](int field, const auto& member) { put(out, field, member); });
  return out;
}

template <typename Message>
bool read(std::string_view bytes, Message& into);

void take(const wire::Field& field, std::string& text) {
  if (field.bytes.data() != nullptr) text = field.bytes;
}
void take(const wire::Field& field, std::int64_t& number) {
  if (field.bytes.data() == nullptr) number = static_cast<std::int64_t>(field.varint);
}
void take(const wire::Field& field, Map& map) {
  Entry entry;
  if (field.bytes.data() != nullptr && read(field.bytes, entry)) map.insert_or_assign(std::move(entry.first), std::move(entry.second));
}

/// What nobody knows is passed over. False: this is no message.
template <typename Message>
bool read(std::string_view bytes, Message& into) try {
  wire::Field field;
  for (wire::Reader reader(bytes); reader.next(field);)
    each_field(into, [&](int number, auto& member) {
      if (number == field.number) take(field, member);
    });
  return true;
} catch (const wire::Malformed&) {
  return false;
}

std::unexpected<Error> no_message(const char* what) { return fail(ErrorCode::kCorrupt, fmt::format("it is no {} of KMS v2", what)); }

template <typename Message>
Result<Message> decode(std::string_view bytes, const char* what) {
  Message out;
  if (!read(bytes, out)) return no_message(what);
  return out;
}

}  // namespace

std::string encode_encrypted_object(const EncryptedObject& object) { return encode(object); }

Result<EncryptedObject> decode_encrypted_object(std::string_view bytes) {
  EncryptedObject out{.type = 0};
  if (!read(bytes, out) || out.data.empty() || out.key_id.empty() || out.encrypted_seed.empty()) return no_message("EncryptedObject");
  return out;
}

std::string encode_kms_status(const KmsStatus& status) { return encode(status); }
Result<KmsStatus> decode_kms_status(std::string_view bytes) { return decode<KmsStatus>(bytes, "StatusResponse"); }

std::string encode_kms_encrypted(const KmsEncrypted& encrypted) { return encode(encrypted); }
Result<KmsEncrypted> decode_kms_encrypted(std::string_view bytes) { return decode<KmsEncrypted>(bytes, "EncryptResponse"); }

std::string encode_kms_bytes(std::string_view first, std::string_view uid) { return encode(Entry(first, uid)); }
Result<std::string> decode_kms_bytes(std::string_view bytes) {
  auto one = decode<OneText>(bytes, "message");
  if (!one) return std::unexpected(std::move(one.error()));
  return std::move(one->text);
}

std::string encode_kms_decrypt(const KmsDecrypt& request) { return encode(request); }
Result<KmsDecrypt> decode_kms_decrypt(std::string_view bytes) { return decode<KmsDecrypt>(bytes, "DecryptRequest"); }

}  // namespace berth::apiserver::encryption
