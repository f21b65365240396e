// Writes that say nothing new: what was made of one is made of the next that differs from it in free texts alone. No document is built for
// that.
//
//   body (and the stored object) ── cut ──> free texts + the rest ──┬── known ──> what was stored then, with these texts in it
//                                                                   └── not ────> the long way; the second of a kind leaves a pattern
//
// Of creations the free texts are their kind's (model/kind_hooks.h), with a name, an identity and the time given anew. Of updates they are
// those of kinds/free_update_texts.h, in what is sent and in what is stored; which of them are the same is part of the rest. A pattern is
// good as long as nothing has changed of what admission looked at (Circumstances).
#pragma once
#include <array>
#include <memory>
#include <unordered_map>

#include "apiserver/admission/plugin.h"
#include "apiserver/writes/stencil.h"
#include "apiserver/writes/text_cutter.h"
#include "base/metrics.h"
#include "base/mutex.h"

namespace berth::apiserver {

struct Request;
struct WriteOperation;

/// A write as patterns see it.
struct CutWrite {
  std::string rest;                      ///< Who asks for what, and how, and all that was said but for the texts: all that counts.
  std::vector<TextCutter::Found> texts;  ///< Views of the body, of `stored` and of the time. Of a creation by the kind's free texts, empty
                                         ///< where one is part of the rest; of an update each once.
  HeldText stored;                       ///< A packed object's text is there as long as this.
};

/// A write on the long way that may leave a pattern.
struct Draft {
  struct Text {
    TextClass is;
    std::string text;
  };
  std::string rest;
  std::vector<Text> texts;
  ObjectPtr base;                                                ///< What it was an update of; null: a creation.
  std::vector<std::pair<std::string, std::string>> annotations;  ///< In the audit log, by who admitted it.
  std::optional<Circumstances> circumstances;                    ///< As they were before anybody was asked; none where they cannot be told.
};

/// What became of a write, for those like it. Texts are numbered as in the cut; behind them, of a creation, what it is given: kGiven….
struct Pattern {
  enum Given : std::uint8_t { kName, kUid, kNow, kMadeUp };  ///< Of what is made up, one behind the other.
  struct Field {
    std::string path;
    std::string text;                 ///< Where nothing else is said.
    std::optional<std::size_t> free;  ///< It is this text.
    bool is_kept = false;             ///< It is what the stored object had.
  };
  Stencil stored;
  std::optional<Stencil> shown;                                  ///< The answer in JSON, where what is stored is not.
  std::optional<model::Labels> labels;                           ///< None: those that the stored object has.
  std::vector<std::pair<std::size_t, std::size_t>> free_labels;  ///< Which of them are which of the texts.
  std::vector<Field> fields;
  std::optional<std::size_t> name;  ///< Of a creation the text that is its name; otherwise it gets one:
  std::string generate_name;
  std::vector<std::string> made_up;  ///< What stands before the random suffix of each.
  std::vector<std::pair<std::string, std::string>> annotations;
  Circumstances circumstances;
  [[nodiscard]] std::size_t bytes() const { return stored.bytes() + (shown ? shown->bytes() : 0) + sizeof *this; }
  /// What selectors see of what is made of these texts. `base`: of an update.
  void select(std::span<const std::string_view> texts, const StoredObject* base, ObjectMeta& meta) const;
};
using PatternPtr = std::shared_ptr<const Pattern>;

/// The patterns of the present, by all else that counts of a write. Thread-safe.
class Patterns {
 public:
  explicit Patterns(metrics::Registry& registry);
  /// Null: none is known, or it is outdated. `is_second`: one may be left then, because such a write was seen before.
  [[nodiscard]] PatternPtr find(const std::string& rest, bool& is_second);
  void put(std::string rest, Pattern pattern);

  metrics::Counter &creations, &updates;  ///< That were made by a pattern.

 private:
  static constexpr std::size_t kMostBytes = 16 << 20;  ///< Of all patterns; then they are left anew.
  Mutex mutex_;
  std::unordered_map<std::string, PatternPtr> patterns_ BERTH_GUARDED_BY(mutex_);
  std::size_t bytes_ BERTH_GUARDED_BY(mutex_) = 0;
  std::array<std::size_t, 8192> seen_ BERTH_GUARDED_BY(mutex_){};  ///< Hashes of what came lately, by their last bits.
};

/// Appends a part of a text that says all that counts: with its length before it, so that the parts cannot be taken for others.
void add_part(std::string& out, std::string_view part);
/// How all that counts begins: what is asked for, and how; not by whom.
std::string begin_rest(const Request& request, std::size_t body_bytes);
void add_user(std::string& rest, const UserInfo& user, std::string_view name);
/// The body of a write that patterns may serve, as JSON: it is stored, its body is not large, and of one of these types or protobuf. Empty:
/// they may not.
std::string_view text_to_cut(WriteOperation& operation, std::initializer_list<std::string_view> types);
/// The same, once it has been read.
std::string_view text_of(const WriteOperation& operation);

}  // namespace berth::apiserver
