// Updates that say nothing new: what was made of one is made of the next that differs from it, in what is sent and in what is stored, in
// free texts alone (kinds/free_update_texts.h). As creations by pattern (stencil.h), with the stored object as part of what is asked:
//
//   body, stored object ── cut ──> free texts + the rest + which texts are the same ──┬── known ──> what was stored then, with these texts
//                                                                                    └── not ────> the long way
#pragma once
#include "apiserver/writes/stencil.h"
#include "apiserver/writes/text_cutter.h"

namespace berth::apiserver {

/// An update as patterns see it.
struct CutUpdate {
  std::string rest;                      ///< All that counts, which of the texts are the same included.
  std::vector<TextCutter::Found> texts;  ///< Each once: views of the body, of the stored object and of the time.
  HeldText stored;                       ///< A packed object's text is there as long as this.
};

/// What became of an update, for those like it.
struct UpdatePattern {
  struct Field {
    std::string path;
    std::string text;                 ///< Where nothing else is said.
    std::optional<std::size_t> free;  ///< It is this text.
    bool is_kept = false;             ///< It is what the stored object had.
  };
  Stencil stored;
  model::Labels labels;
  std::vector<Field> fields;
  Circumstances circumstances;
  [[nodiscard]] std::size_t bytes() const { return stored.bytes() + sizeof *this; }
};
class UpdatePatterns : public Patterns<UpdatePattern> {
  using Patterns::Patterns;
};

/// An update on the long way that may leave a pattern.
struct UpdateDraft {
  struct Text {
    TextClass is;
    std::string text;
  };
  std::string rest;
  std::vector<Text> texts;
  ObjectPtr base;                              ///< What it was an update of.
  std::optional<Circumstances> circumstances;  ///< As they were before anybody was asked; none where they cannot be told.
};

}  // namespace berth::apiserver
