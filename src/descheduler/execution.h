// A cycle as it is carried out: what is asked of the server next, and what its answers change (SPEC G4). Pure: who asks is the shell.
//
//   planned ──due──▶ on its way ──answered──▶ gone
//      ▲                            └───────▶ refused: no more is asked for until all that is on its way is answered, then planned again
#pragma once
#include <vector>

#include "descheduler/cycle.h"

namespace berth::descheduler {

/// Single-threaded. Policy, snapshot and profiles must stay. At most `most_in_flight` steps are on their way, and a step that counts on
/// others alone; each is answered once.
class Execution {
 public:
  /// The error: a priority class that the policy names is not there.
  static Result<Execution> begin(const Policy& policy, const Snapshot& snapshot, const placement::Profiles& profiles, CycleOptions options,
                                 std::size_t most_in_flight = 16);

  /// To be asked for now; none while answers are waited for, and none when it is over.
  std::vector<Step> due();
  void answered(const Step& step, Answer answer);
  /// No more is asked for (the leadership is lost, the process ends): what is on its way is still answered.
  void stop() { is_stopped_ = true; }
  [[nodiscard]] bool is_over() const;
  /// Of a cycle that is over: what was asked for and what came of it, and why the rest stays.
  [[nodiscard]] CycleResult result() &&;

 private:
  Execution(const Policy& policy, const Snapshot& snapshot, const placement::Profiles& profiles, CycleOptions options,
            std::size_t most_in_flight);
  Result<void> plan();

  const Policy* policy_;
  const Snapshot* snapshot_;
  const placement::Profiles* profiles_;
  CycleOptions options_;
  std::size_t most_in_flight_;
  Known known_;
  Plan plan_;
  std::size_t next_ = 0;  ///< Of the plan's steps.
  std::size_t in_flight_ = 0;
  bool is_refused_ = false;  ///< Since the plan was made: what follows counts on what did not happen.
  bool is_stopped_ = false;
  std::vector<double> seconds_;  ///< Of the runs, over all plans.
};

}  // namespace berth::descheduler
