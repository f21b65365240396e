// How the text of an object is made of another's without building a document: what stands in some places is cut out, and something else put
// there each time that another like it comes (alike.h).
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "apiserver/cache/object_codec.h"

namespace berth::apiserver {

/// A text with places in which something else stands each time.
class Stencil {
 public:
  static constexpr auto kRevision = static_cast<std::size_t>(-1);
  struct Place {
    std::string_view was;  ///< What stands there now, as a view of the text. Nothing: a place between two characters.
    std::size_t text = 0;  ///< Which of the texts will; or kRevision.
  };
  /// Places at one point are filled in their order. Nothing: some overlap.
  static std::optional<Stencil> cut(std::string_view text, std::vector<Place> places);

  /// The last place for a revision is where one will stand, if none is given.
  [[nodiscard]] EncodedObject fill(std::span<const std::string_view> texts, std::string_view revision = {}) const;
  [[nodiscard]] std::size_t bytes() const { return rest_.size() + places_.size() * sizeof(At); }

 private:
  struct At {
    std::size_t offset;  ///< In rest_.
    std::size_t text;
  };
  std::string rest_;
  std::vector<At> places_;
};

}  // namespace berth::apiserver
