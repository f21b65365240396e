// Finds free texts in JSON, in one pass.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/free_update_texts.h"

namespace berth::apiserver {

/// Immutable, so one static cutter serves all threads.
class TextCutter {
 public:
  explicit TextCutter(const FreeUpdateTexts& texts);
  TextCutter(const TextCutter&) = delete;
  TextCutter& operator=(const TextCutter&) = delete;

  struct Found {
    TextClass is;
    std::string_view text;  ///< A view of the whole, without the quotes; of what is kept or a number, all of it.
    std::size_t place = 0;  ///< Among the places; of a key 0.
  };
  /// Appends the texts to `found` in their order and, if given, all else to `rest`: what differs in nothing but the texts gives the same
  /// rest. False: it is malformed, or something in it cannot be told from a free text.
  bool cut(std::string_view json, std::vector<Found>& found, std::string* rest) const;

 private:
  struct Step {
    std::string key;                                ///< "*": any.
    const FreeUpdateTexts::Place* place = nullptr;  ///< Of texts_.
    bool has_owners = false;                        ///< fieldsV1.
    std::vector<Step> below;
  };
  struct Cut;
  Step& step_at(std::string_view path);
  static const Step* step_to(const Step& from, std::string_view key);
  static bool walk(const char*& at, const char* end, const Step& step, Cut& out);
  static bool take(std::string_view raw, const Step& step, Cut& out);
  static bool take_keys(std::string_view fields, Cut& out);

  const std::vector<FreeUpdateTexts::Place> places_;
  Step root_;
  struct Key {
    std::string begin, end;
    TextClass is;
  };
  std::vector<Key> keys_;
};

}  // namespace berth::apiserver
