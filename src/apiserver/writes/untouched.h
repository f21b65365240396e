// What a write of an object's status leaves as it is: bytes, until somebody asks for them.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/ground/proposals.h"

namespace berth::apiserver {

/// The spec and the field owners of a stored object whose status is written. The documents of that write lack both; what is stored in the
/// end is put together of their members and of these bytes. Who wants to see the objects as they are has them filled in first.
class Untouched {
 public:
  /// Takes the object apart: `rest` becomes the document of what is left. Nothing: the bytes are not of that form, and are to be read
  /// whole.
  static std::optional<Untouched> take(ObjectPtr base, json::Value& rest);

  /// Puts aside what `sent`, the object as it would be, has in these places: of a whole object that somebody sent, and of defaults.
  void set_aside(json::Value& sent, bool is_kept);

  /// The write is prepared: from here on the spec is as stored, whatever was sent.
  void settle() {
    sent_spec_.reset();
    is_sent_ = false;
  }

  /// metadata.managedFields as they are stored, a list in JSON; empty: there are none.
  [[nodiscard]] std::string_view owners_before() const { return owners_at_.text; }
  /// As they will be stored; those before unless set.
  [[nodiscard]] std::string_view owners() const { return owners_ ? std::string_view(*owners_) : owners_at_.text; }
  void set_owners(std::string owners) { owners_ = std::move(owners); }

  /// The stored object in front of the write, given what take() left of it.
  void fill_before(json::Value& rest) const;
  /// The object as it would be. Until settle() with the spec that was sent, if any was; what is stored is read and defaulted as
  /// everything that a write gets to see.
  void fill_after(const model::KindInfo& kind, json::Value& rest) const;

  /// Proposes the object as it will be; `rest` is of the stored version.
  [[nodiscard]] Proposal proposal(const Ground& ground, const model::KindInfo& stored, const json::Value& rest) const;

 private:
  ObjectPtr base_;
  HeldText text_;                   ///< Its bytes.
  KeptMember spec_at_, owners_at_;  ///< Views of them.
  std::optional<std::string> owners_;
  std::optional<json::Value> sent_spec_;
  bool is_sent_ = false;  ///< The spec is what was sent, even where nothing was.
};

}  // namespace berth::apiserver
