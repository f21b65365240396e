// Why a document is not of its kind: what stands where, and what is wanted there.
#pragma once
#include <string>

#include "model/api_status.h"
#include "model/kinds.h"

namespace berth::model {

/// A value: whoever speaks of it puts it in his own words.
struct DecodeError {
  enum class Is {
    kType,    ///< Of another type: `found` stands at `path`, where `wanted` is to be.
    kBase64,  ///< A text that is to be base64: `said`.
    kOther,   ///< What a type's own decoder says of it: `said`.
  };
  Is is = Is::kOther;
  std::string said = {};
  std::string owner = {};   ///< Go's name of the struct whose field it is ("PodSpec"); empty: the document as a whole.
  std::string path = {};    ///< From the root, without indices and keys ("spec.containers.image").
  std::string place = {};   ///< The same with them ("spec.containers[0].image"), whatever is wrong.
  std::string found = {};   ///< "string", "object"; "number 5" where a whole number is wanted.
  std::string wanted = {};  ///< Go's name of the type.

  /// As encoding/json says it: "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32".
  [[nodiscard]] std::string sentence() const;
  /// 400: what is said of a whole object of the kind.
  [[nodiscard]] ApiStatus status(const KindInfo& kind) const;
};

/// 400 around a reason why a document cannot be read as an object of the kind.
ApiStatus unreadable(const KindInfo& kind, std::string_view why);

}  // namespace berth::model
