// Which CSI volumes are staged on a node and published to which pods, and what is to be asked of their drivers next (kubelet's volume
// manager, as far as CSI goes): the core, which talks to nobody.
//
//   a pod wants it        staged                published
//   (nothing) ──stage──▶ staged ──publish──▶ the pod has it ──(expand, publish again)──┐
//       ▲                   │                     │  ▲────────────────────────────────┘
//       └──────unstage──────┘◀─────unpublish──────┘ the pod is over
//
// Where a driver gave no answer nothing is known: what may be there is asked for again while it is wanted, and given back when it is not.
// Of one volume one thing at a time is asked; who fails is asked again with backoff, and a driver that is not there is not asked at all.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace berth::node::csi {

/// The pause after a failure, doubled with each further one (goroutinemap's exponential backoff).
inline constexpr std::chrono::milliseconds kFirstPause{500};
inline constexpr std::chrono::seconds kMostPause{122};

/// That a pod is to have a volume.
struct Want {
  std::string pod;             ///< Its uid.
  std::string volume, driver;  ///< The volume: "DRIVER^HANDLE".
  bool is_persistent = true;   ///< False: one that lives and dies with its pod.
  bool is_staged_first = false;
  bool is_exclusive = false;                ///< ReadWriteOncePod.
  std::optional<Duration> republish_every;  ///< The driver wants to be asked again and again (requiresRepublish).
  std::int64_t expand_to_bytes = 0;         ///< 0: it is as large as it shall be.
};

enum class Outcome {
  kDone,
  kRefused,  ///< An answer: it is not done.
  kUnknown   ///< No answer, or one that does not say: it may be done, or under way.
};

/// Single-threaded; the shell's lock is around it.
class VolumeLedger {
 public:
  struct Effect {
    enum class Kind { kStage, kPublish, kExpand, kUnpublish, kUnstage } kind = Kind::kStage;
    std::string volume, pod;  ///< The pod: of kPublish, kExpand and kUnpublish.
    friend bool operator==(const Effect&, const Effect&) = default;
  };
  using Effects = std::vector<Effect>;

  // What an earlier process left. Nothing of it is given back before settle().
  void found_staged(const std::string& volume, const std::string& driver);
  void found_published(const std::string& volume, const std::string& driver, const std::string& pod, bool is_persistent, bool is_mounted);
  /// These are the pods that there are: what was found of others is given back.
  [[nodiscard]] Effects settle(const std::set<std::string>& pods, TimePoint now);

  /// Safe to repeat. The error: another pod has it, and it is for one alone.
  [[nodiscard]] Result<Effects> want(const Want& want, TimePoint now);
  /// The pod needs none of its volumes any more.
  [[nodiscard]] Effects release(const std::string& pod, TimePoint now);
  [[nodiscard]] Effects done(const Effect& effect, Outcome outcome, const std::string& error, TimePoint now);
  /// A driver came: what waits for it is asked at once. Or went.
  [[nodiscard]] Effects driver_came(const std::string& driver, TimePoint now);
  void driver_went(const std::string& driver) { drivers_.erase(driver); }
  /// Time has passed.
  [[nodiscard]] Effects tick(TimePoint now);

  struct State {
    enum class Kind { kReady, kUnderWay, kFailed } kind = Kind::kReady;
    std::string error;  ///< Of kFailed: why it is not ready; it is tried again.
  };
  /// Whether a pod has a volume.
  [[nodiscard]] State published(const std::string& volume, const std::string& pod) const;
  /// kReady: none of its volumes is left at the pod.
  [[nodiscard]] State released(const std::string& pod) const;
  /// Persistent volumes of which something is here, or is to be.
  [[nodiscard]] std::vector<std::string> in_use() const;

 private:
  enum class Presence { kNone, kMaybe, kThere };
  struct Retry {
    int failures = 0;
    TimePoint not_before{};
    std::string error;
    void fail(std::string why, TimePoint now);
  };
  struct Publication {
    bool is_wanted = false;
    bool is_asked_for = false;  ///< By its pod, in this process.
    bool was_found = false, is_mounted = false;
    Presence presence = Presence::kNone;
    std::optional<Duration> republish_every;
    TimePoint published_at{};
    Retry retry;
  };
  struct Volume {
    std::string driver;
    bool is_persistent = true, is_staged_first = false, was_found = false;
    Presence stage = Presence::kNone;
    Retry stage_retry, expand_retry;
    std::int64_t expand_to = 0, expanded_to = 0;
    std::map<std::string, Publication> pods;
    std::optional<Effect> under_way;
  };
  [[nodiscard]] std::optional<Effect> next(const std::string& key, Volume& volume, TimePoint now);
  [[nodiscard]] static std::optional<Effect> next_wanted(const std::string& key, Volume& volume, TimePoint now);
  void go_on(const std::string& key, TimePoint now, Effects& out);
  static void stage_done(Volume& volume, const Effect& effect, Outcome outcome, const std::string& error, TimePoint now);
  static void publication_done(Publication& publication, const Effect& effect, Outcome outcome, const std::string& error, TimePoint now);
  [[nodiscard]] State waiting(const Volume& volume, const std::string& error) const;

  std::map<std::string, Volume> volumes_;
  std::set<std::string> drivers_;
  bool is_settled_ = false;
};

}  // namespace berth::node::csi
