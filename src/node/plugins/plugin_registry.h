// Which sockets of a directory are plugins that registered (kubelet's pkg/kubelet/pluginmanager): the core, which talks to nobody.
//
//             a socket is there          its plugin is accepted
//   (unknown) ────────────────▶ trying ──────────────────────────▶ registered
//                               ▲    │ no answer, refused             │ it is gone, or another is in its place
//                               └────┘ again, with backoff            ▼
//                                 ▲ another is in its place       deregistering ──▶ (unknown)
//                                 └───────────────────────────────────┘
//
// One thing at a time is done with a path; what happens to it meanwhile is seen to afterwards.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"

namespace berth::node::plugins {

/// The pause after a failure, doubled with each further one (goroutinemap's exponential backoff).
inline constexpr std::chrono::milliseconds kFirstRetry{500};
inline constexpr std::chrono::seconds kMostRetry{122};

/// A file, as far as it is this one and no other in its place.
struct SocketIdentity {
  std::uint64_t device = 0, inode = 0;
  std::int64_t changed_ns = 0;
  auto operator<=>(const SocketIdentity&) const = default;
};

/// Single-threaded; the shell's lock is around it.
class PluginRegistry {
 public:
  using Sockets = std::map<std::string, SocketIdentity>;  ///< By path.
  struct Effect {
    enum class Kind { kRegister, kDeregister } kind = Kind::kRegister;
    std::string path;
    std::uint64_t life = 0;  ///< Which of those that were at this path, one after the other.
    friend bool operator==(const Effect&, const Effect&) = default;
  };
  using Effects = std::vector<Effect>;

  /// All the sockets that are there now. Also to be called when only time has passed.
  [[nodiscard]] Effects look(const Sockets& there, TimePoint now);
  /// An effect was carried out. `is_accepted`: of kRegister, that the plugin's handler took it.
  [[nodiscard]] Effects done(const Effect& effect, bool is_accepted, TimePoint now);
  [[nodiscard]] bool is_registered(const std::string& path) const;

 private:
  struct Entry {
    bool is_there = false, is_busy = false;
    SocketIdentity identity;
    std::uint64_t life = 0, registered_life = 0;  ///< 0: none is registered.
    int failures = 0;
    TimePoint not_before{};
  };
  static void step(const std::string& path, Entry& entry, TimePoint now, Effects& out);
  std::map<std::string, Entry> entries_;
};

}  // namespace berth::node::plugins
