#include "tests/world/story.h"

#include <fmt/format.h>

#include <array>

#include "simulator/random.h"

namespace berth::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using What = Fault::What;

constexpr std::array<const char*, static_cast<std::size_t>(What::kCount)> kWords = {"kill server",
                                                                                    "cut etcd from server",
                                                                                    "lose etcd's answers to server",
                                                                                    "lose requests to etcd of server",
                                                                                    "lag the watch of server",
                                                                                    "slow etcd for server",
                                                                                    "no leader",
                                                                                    "etcd's disk is full",
                                                                                    "compact",
                                                                                    "turn etcd's clock",
                                                                                    "cut the wire of",
                                                                                    "lose answers to",
                                                                                    "lose requests of",
                                                                                    "slow the wire of",
                                                                                    "kill component",
                                                                                    "stop component",
                                                                                    "stop server",
                                                                                    "turn the clocks",
                                                                                    "node dies",
                                                                                    "upgrade from server",
                                                                                    "scale",
                                                                                    "delete a pod",
                                                                                    "make gang",
                                                                                    "end gang",
                                                                                    "act on subject"};

/// A third of what happens is what users do to the subjects, who are many.
What draw(simulator::Random& random) {
  constexpr auto kOthers = static_cast<std::uint64_t>(What::kSubject);
  return random.below(3) == 0 ? What::kSubject : static_cast<What>(random.below(kOthers));
}

}  // namespace

std::string words(const Fault& fault) {
  return fmt::format("at {:>8.3f} s for {:>7.3f} s: {} {} ({:.2f})", static_cast<double>(fault.at.count()) / 1e6,
                     static_cast<double>(fault.lasts.count()) / 1e6, kWords[static_cast<std::size_t>(fault.what)], fault.which,
                     fault.share);
}

std::vector<Fault> story(std::uint64_t seed, int faults) {
  simulator::Random random(seed, "story");
  std::vector<Fault> out;
  Duration at = seconds(20);
  for (int i = 0; i < faults; ++i) {
    at += milliseconds(random.below(1000));
    Fault fault;
    fault.what = draw(random);
    fault.at = at;
    fault.lasts = milliseconds(random.below(random.below(4) == 0 ? 40'000 : 4000));
    fault.which = random.below(1000);
    fault.share = random.uniform();
    // Until its silence is noticed, and its pods are told to go.
    if (fault.what == What::kNodeDies) fault.lasts = seconds(30) + milliseconds(static_cast<int>(fault.share * 90'000));
    out.push_back(fault);
  }
  return out;
}

}  // namespace berth::world
