// Creations that say nothing new: what was made of one is made of the next that differs from it in its kind's free texts alone. No document
// is built for that.
//
//   body ── cut ──> free texts + the rest ──┬── known ──> what was stored then, with these texts, a name, an identity and the time in it
//                                           └── not ────> the long way; the second of a kind leaves a pattern behind
//
// A pattern is good as long as nothing has changed of what admission looked at (Circumstances).
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/admission/plugin.h"
#include "apiserver/cache/object_codec.h"
#include "apiserver/request/context.h"
#include "base/metrics.h"
#include "base/mutex.h"

namespace berth::apiserver {

/// A text with places in which something else stands each time.
class Stencil {
 public:
  enum class Blank : std::uint8_t { kText, kName, kUid, kNow, kMadeUp, kRevision };
  /// What stands in a place now, as a view of the text; `index`: which of the texts, or of what was made up.
  struct Place {
    std::string_view was;
    Blank blank = Blank::kText;
    std::size_t index = 0;
  };
  /// A text as it stands in JSON.
  static std::string quoted(std::string_view text);
  /// Nothing: the places overlap.
  static std::optional<Stencil> cut(std::string_view text, std::vector<Place> places);

  /// In JSON with their quotes, but for what stands within some: made_up and revision.
  struct Values {
    std::span<const std::string_view> texts;
    std::string name, uid, now;
    std::vector<std::string> made_up;
    std::string revision;
  };
  /// The last place for a revision is where one will stand.
  [[nodiscard]] EncodedObject fill(const Values& values) const;
  [[nodiscard]] std::size_t bytes() const { return rest_.size() + places_.size() * sizeof(At); }

 private:
  struct At {
    std::size_t offset;  ///< In rest_.
    Blank blank;
    std::size_t index;
  };
  std::string rest_;
  std::vector<At> places_;
};

/// A creation as patterns see it.
struct CutCreation {
  std::string rest;                     ///< Who asks for what, and how, and the body without the texts: all else that counts.
  std::vector<std::string_view> texts;  ///< By the kind's free texts: views of the body, quotes included; empty: part of the rest.
};
/// Nothing: creations of this kind, or asked for like this one, always go the long way.
std::optional<CutCreation> cut_creation(const Request& request);

/// Appends a part of a text that says all that counts: with its length before it, so that the parts cannot be taken for others.
void add_part(std::string& out, std::string_view part);

/// What became of a creation, for those like it.
struct CreationPattern {
  Stencil stored;
  std::optional<Stencil> shown;  ///< The answer in JSON, where what is stored is not.
  ObjectMeta meta;
  std::vector<std::pair<std::size_t, std::size_t>> selected;  ///< Which of meta.fields is which text.
  std::optional<std::size_t> name;                            ///< The text that is its name; otherwise it gets one:
  std::string generate_name;
  std::vector<std::string> made_up;  ///< What stands before the random suffix of each.
  Circumstances circumstances;
  [[nodiscard]] std::size_t bytes() const { return stored.bytes() + (shown ? shown->bytes() : 0) + sizeof *this; }
};
using PatternPtr = std::shared_ptr<const CreationPattern>;

/// A creation on the long way that may leave a pattern.
struct CreationDraft {
  std::string rest;
  std::vector<std::string> texts;
  std::optional<Circumstances> circumstances;  ///< As they were before anybody was asked; none where they cannot be told.
};

/// What is to be told of it besides, once it is to be stored.
struct MadeCreation {
  const Request& request;
  const model::KindInfo& kind;
  std::string_view generate_name;  ///< Empty: it was named by who sent it.
  const std::vector<std::string>& made_up;
  const Proposal& proposal;
  std::string_view shown;  ///< The answer, where it is not what is stored; of revision 0.
  bool has_writer = true;  ///< Its field owners, if any, are who wrote it now.
};
/// Null: it cannot be told what of it is whose.
PatternPtr pattern_of(const CreationDraft& draft, const MadeCreation& made);

/// The patterns of the present, by all else that counts of a write. Thread-safe.
template <typename Pattern>
class Patterns {
 public:
  using Ptr = std::shared_ptr<const Pattern>;
  /// `followed`: counts the writes that were made by a pattern. Outlives this.
  explicit Patterns(metrics::Counter& followed) : followed_(followed) {}
  void count_followed() { followed_.add(); }
  /// Null: none is known, or it is outdated. `is_second`: one may be left then, because such a write was seen before.
  [[nodiscard]] Ptr find(const std::string& rest, bool& is_second) {
    const auto hash = std::hash<std::string>()(rest);
    Ptr found;
    {
      const MutexLock lock(mutex_);
      auto& seen = seen_[hash % seen_.size()];
      is_second = seen == hash;
      seen = hash;
      if (const auto known = patterns_.find(rest); known != patterns_.end()) found = known->second;
    }
    return found != nullptr && found->circumstances.hold() ? found : nullptr;
  }
  void put(std::string rest, Ptr pattern) {
    const MutexLock lock(mutex_);
    const auto bytes = rest.size() + pattern->bytes();
    if (bytes_ + bytes > kMostBytes) {
      patterns_.clear();
      bytes_ = 0;
    }
    const auto [at, is_new] = patterns_.insert_or_assign(std::move(rest), std::move(pattern));
    if (is_new) bytes_ += bytes;
  }

 private:
  static constexpr std::size_t kMostBytes = 8 << 20;  ///< Of all patterns; then they are left anew.
  metrics::Counter& followed_;
  Mutex mutex_;
  std::unordered_map<std::string, Ptr> patterns_ BERTH_GUARDED_BY(mutex_);
  std::size_t bytes_ BERTH_GUARDED_BY(mutex_) = 0;
  std::array<std::size_t, 4096> seen_ BERTH_GUARDED_BY(mutex_){};  ///< Hashes of what came lately, by their last bits.
};
class CreationPatterns : public Patterns<CreationPattern> {
  using Patterns::Patterns;
};

}  // namespace berth::apiserver
