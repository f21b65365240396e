// The few messages of key management in protobuf's wire format: strings, bytes, maps of them, one number.
#include "apiserver/encryption/kms.h"
#include "base/wire.h"

namespace berth::apiserver::encryption {
namespace {

void put_text(std::string& out, int field, std::string_view text) {
  if (!text.empty()) wire::append_field(out, field, text);
}

void put_map(std::string& out, int field, const std::map<std::string, std::string>& map) {
  for (const auto& [key, value] : map) {
    std::string entry;
    put_text(entry, 1, key);
    put_text(entry, 2, value);
    wire::append_field(out, field, entry);
  }
}

/// Calls `text` for strings, bytes and messages, `number` for varints; what nobody knows is passed over. False: this is no message.
bool read_fields(std::string_view bytes, const std::function<void(int, std::string_view)>& text,
                 const std::function<void(int, std::uint64_t)>& number = {}) try {
  wire::Field field;
  for (wire::Reader reader(bytes); reader.next(field);) {
    if (field.bytes.data() != nullptr)
      text(field.number, field.bytes);
    else if (number)
      number(field.number, field.varint);
  }
  return true;
} catch (const wire::Malformed&) {
  return false;
}

void read_entry(std::string_view bytes, std::map<std::string, std::string>& into) {
  std::string key, value;
  if (read_fields(bytes, [&](int field, std::string_view text) { (field == 1 ? key : value) = text; })) into[key] = value;
}

std::unexpected<Error> no_message(const char* what) { return fail(ErrorCode::kCorrupt, fmt::format("it is no {} of KMS v2", what)); }

}  // namespace

std::string encode_encrypted_object(const EncryptedObject& object) {
  std::string out;
  put_text(out, 1, object.data);
  put_text(out, 2, object.key_id);
  put_text(out, 3, object.encrypted_seed);
  put_map(out, 4, object.annotations);
  if (object.type != 0) wire::append_number(out, 5, static_cast<std::uint64_t>(object.type));
  return out;
}

Result<EncryptedObject> decode_encrypted_object(std::string_view bytes) {
  EncryptedObject out;
  out.type = 0;
  const bool is_read = read_fields(
      bytes,
      [&](int field, std::string_view text) {
        if (field == 1) out.data = text;
        if (field == 2) out.key_id = text;
        if (field == 3) out.encrypted_seed = text;
        if (field == 4) read_entry(text, out.annotations);
      },
      [&](int field, std::uint64_t number) {
        if (field == 5) out.type = static_cast<std::int64_t>(number);
      });
  if (!is_read || out.data.empty() || out.key_id.empty() || out.encrypted_seed.empty()) return no_message("EncryptedObject");
  return out;
}

std::string encode_kms_status(const KmsStatus& status) {
  std::string out;
  put_text(out, 1, status.version);
  put_text(out, 2, status.healthz);
  put_text(out, 3, status.key_id);
  return out;
}

Result<KmsStatus> decode_kms_status(std::string_view bytes) {
  KmsStatus out;
  if (!read_fields(bytes, [&](int field, std::string_view text) {
        if (field >= 1 && field <= 3) (field == 1 ? out.version : field == 2 ? out.healthz : out.key_id) = text;
      }))
    return no_message("StatusResponse");
  return out;
}

std::string encode_kms_encrypted(const KmsEncrypted& encrypted) {
  std::string out;
  put_text(out, 1, encrypted.ciphertext);
  put_text(out, 2, encrypted.key_id);
  put_map(out, 3, encrypted.annotations);
  return out;
}

Result<KmsEncrypted> decode_kms_encrypted(std::string_view bytes) {
  KmsEncrypted out;
  if (!read_fields(bytes, [&](int field, std::string_view text) {
        if (field == 1) out.ciphertext = text;
        if (field == 2) out.key_id = text;
        if (field == 3) read_entry(text, out.annotations);
      }))
    return no_message("EncryptResponse");
  return out;
}

std::string encode_kms_bytes(std::string_view first, std::string_view uid) {
  std::string out;
  put_text(out, 1, first);
  put_text(out, 2, uid);
  return out;
}

Result<std::string> decode_kms_bytes(std::string_view bytes) {
  std::string out;
  if (!read_fields(bytes, [&](int field, std::string_view text) {
        if (field == 1) out = text;
      }))
    return no_message("message");
  return out;
}

std::string encode_kms_decrypt(const KmsDecrypt& request) {
  std::string out;
  put_text(out, 1, request.ciphertext);
  put_text(out, 2, request.uid);
  put_text(out, 3, request.key_id);
  put_map(out, 4, request.annotations);
  return out;
}

Result<KmsDecrypt> decode_kms_decrypt(std::string_view bytes) {
  KmsDecrypt out;
  if (!read_fields(bytes, [&](int field, std::string_view text) {
        if (field == 1) out.ciphertext = text;
        if (field == 2) out.uid = text;
        if (field == 3) out.key_id = text;
        if (field == 4) read_entry(text, out.annotations);
      }))
    return no_message("DecryptRequest");
  return out;
}

}  // namespace berth::apiserver::encryption
