// A part of a stored object, as a document; the rest stays bytes.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/cache/object_codec.h"

namespace berth::apiserver {

enum class Take : std::uint8_t {
  kNot,
  kWhole,
  kMembers,  ///< Each of its own members is asked about; of metadata always so.
};
/// Which members belong to the part. `parent`: "" for those of the object itself, else its name.
using Choice = Take (*)(std::string_view parent, std::string_view key);

/// Writes that have to do with a few members of an object read, change and write no others. Immutable, but for the owners.
class ObjectPart {
 public:
  ObjectPart(ObjectPtr of, Choice choice);

  [[nodiscard]] json::Value document() const;
  /// The bytes of what is not taken: "spec", or a member of metadata; empty where there is none.
  [[nodiscard]] std::string_view rest(std::string_view parent, std::string_view key) const;
  /// Takes out of a document what is of the rest.
  void leave(json::Value& document) const;

  /// metadata.managedFields, where they are of the rest: a list in JSON, empty where there are none. As they will be written.
  [[nodiscard]] std::string_view owners() const { return owners_ ? std::string_view(*owners_) : rest("metadata", "managedFields"); }
  void set_owners(std::string owners) { owners_ = std::move(owners); }

  /// The object with what has become of the part: members stay in their places, new ones stand behind the others.
  [[nodiscard]] EncodedObject encode(const json::Value& part) const;
  /// What selectors see of it. `stored`: the kind, in the stored version.
  [[nodiscard]] ObjectMeta meta(const model::KindInfo& stored, const json::Value& part) const;

 private:
  struct Member {
    std::string_view raw_key, text;  ///< Views of text_.
    Take take;
    std::vector<Member> below;
    [[nodiscard]] std::string_view key() const { return raw_key.substr(1, raw_key.size() - 2); }
  };
  [[nodiscard]] std::vector<Member> read(std::string_view object, std::string_view parent) const;
  static void copy_taken(const std::vector<Member>& members, std::string& out);
  void write(const std::vector<Member>& members, std::string_view parent, const json::Object& now, EncodedObject& out) const;

  ObjectPtr of_;
  HeldText text_;
  Choice choice_;
  std::vector<Member> members_;
  std::optional<std::string> owners_;
};

}  // namespace berth::apiserver
