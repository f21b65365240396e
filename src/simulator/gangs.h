// Jobs whose pods are of use together alone, as their user sees them: they work from the moment at which enough of them run, however they
// came to run. What stood before that held its room for nothing.
//
//   arrives --> enough run --> works for its length --> done
//      ^            |               |
//      |            v               v
//      +-- patience is over, or a member is lost: all of it comes anew
#pragma once
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lifeline.h"
#include "simulator/census.h"
#include "simulator/scenario.h"

namespace berth::simulator {

class Story;

/// Of the gangs of one queue, or of all.
struct GangCount {
  std::int64_t arrived = 0, started = 0, finished = 0;
  std::int64_t anew = 0;  ///< How often one gave up, or lost a member, and came again.
  /// Seconds from arrival to the first start, or to the end for those that wait still.
  std::vector<float> waits;
  std::array<double, kResources> held{}, worked{};  ///< Requests times seconds: while partners were missing; while all was there.

  void add(const GangCount& other);
  /// GPUs where they have some, else CPU.
  [[nodiscard]] Resource counted() const { return held[kGpu] + worked[kGpu] > 0 ? kGpu : kCpu; }
  /// Of what they held, in percent.
  [[nodiscard]] double held_percent() const;
  [[nodiscard]] double wait_mean() const;
  /// share: 0.5 for the median.
  [[nodiscard]] double wait_at(double share) const;
};

/// On the loop's thread. The story must outlive it.
class Gangs {
 public:
  Gangs(Story& story, GangPolicy policy);
  ~Gangs();
  Gangs(const Gangs&) = delete;
  Gangs& operator=(const Gangs&) = delete;

  /// So many pods like `pod` come, as one, and want to work for `length`.
  void arrive(const Workload& workload, const std::string& ns, const std::string& name, json::Value pod, std::int64_t size,
              Duration length);
  /// Called while a change is published; acts after it.
  void see(PodStage stage, std::string_view ns, std::string_view name, const Amounts& requests);
  /// By queue, up to now; gangs without one are under their workload's name. Empty: no gang ever came.
  [[nodiscard]] std::map<std::string, GangCount> counts() const;

 private:
  struct Gang;
  using GangPtr = std::shared_ptr<Gang>;
  void create_pods(const GangPtr& gang);
  void act(PodStage stage, const GangPtr& gang, const std::string& pod, const Amounts& requests);
  void start(Gang& gang);
  void run_out(const Gang& gang, const std::string& pod);
  void come_anew(const GangPtr& gang);
  void finish(const GangPtr& gang);
  /// What the members of this attempt have held and worked until now is counted.
  void account(Gang& gang, GangCount& into) const;

  Story& story_;
  GangPolicy policy_;
  std::map<std::string, GangCount> counts_;          ///< Of attempts that are over, and of arrivals.
  std::unordered_map<std::string, GangPtr> of_pod_;  ///< By "namespace/name": those of attempts under way.
  std::map<std::string, GangPtr> under_way_;         ///< By "namespace/name".
  Lifeline lifeline_;
};

}  // namespace berth::simulator
