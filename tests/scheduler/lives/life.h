// A scheduler's core among users, nodes and a server that does not always answer, led by a seed: what it wants done and what it holds is
// written down after each step, and judged by plain code.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/core.h"
#include "tests/scheduler/lives/server.h"
#include "tests/support/life.h"

namespace berth::scheduler::lives {

struct HandClock final : Clock {
  TimePoint time{std::chrono::hours(500'000)};
  [[nodiscard]] TimePoint now() const override { return time; }
};

class Life {
 public:
  using Act = void (Life::*)();
  /// What a life is about: who does what how often, and in what world.
  struct Subject {
    std::uint64_t seed = 0;
    std::size_t steps = 480;
    std::vector<placement::Profile> profiles{};
    GroupOptions groups{};
    bool serves_groups = false, extenders = false, budgets_are_hard = false, random_ties = false;
    std::size_t max_bindings_in_flight = 512;
    int faults = 25;  ///< Of a hundred requests, so many are not simply carried out.
    /// Adds to a new pod what the subject is about.
    std::function<void(Life&, json::Value& pod)> dress{};
    std::vector<std::pair<int, Act>> acts{};
  };

  explicit Life(Subject subject);
  /// All of it: the steps, then rest without faults, then an emptied world. What was written down.
  std::string run();

  // Acts of users and others: users.cpp.
  void make_pod();
  void edit_pod();
  void edit_placed_pod();
  void open_gate();
  void bind_elsewhere();
  void nominate_elsewhere();
  void delete_pod();
  void run_nodes();  ///< What kubelets do: start, end, take away what is marked.
  void make_node();
  void edit_node();
  void delete_node();
  void make_budget();
  void make_group();
  void delete_group();
  void make_storage();
  void provision();
  void make_devices();
  void tend_devices();
  void make_neighbours();  ///< Services and namespaces.
  // Of the world: life.cpp.
  void answer();
  void show();
  void pass_time();
  void change_leader();

  testing::Dice dice;
  Server server;
  const Subject subject;

 private:
  struct Question {
    Ask id;
    std::string what;
    std::variant<client::Call, AskForNode, AskForVictims, AskToBind> of;
    std::shared_ptr<placement::Trial> fork{};  ///< The cluster as it was asked about.
  };
  static constexpr Ask kTurns = 0;  ///< Among what is posted: turns may come.

  void take(Request& request);
  void take(const Report& report);
  void take(const WakeAt& wake);
  void take(const CancelWake& wake);
  void take(const Later& later);
  void take(const TakeTurns&);
  void take(AskForNode& question);
  void take(AskForVictims& question);
  void take(AskToBind& question);
  void ask(Ask id, std::string what, decltype(Question::of) of);
  void answer_question(std::size_t which, bool is_quiet);
  Result<std::string> extender_says(std::size_t extender, const std::string& verb, const std::string& body);
  void show_of(const std::string& resource, bool skips);
  void run_posted();
  void pass(Duration time);
  void come_to_rest();
  void empty_the_world();

  void say(std::string line) { text_ += line + "\n"; }
  void step(const std::string& what);  ///< The line that the following effects come of.
  void end_step();
  [[nodiscard]] std::string shown(TimePoint at) const;
  [[nodiscard]] std::string shown(const Tracked& pod) const;
  std::string metrics() const;

  // judges.cpp
  void judge();
  void judge_pods();
  void judge_indexes();
  void judge_groups();
  void judge_gauges();
  void judge_new_places();
  void judge_against_fresh_engine();
  void judge_rest();
  void judge_groups_at_rest();
  void expect_nothing_left();
  void wrong(const std::string& what);

  // users.cpp
  [[nodiscard]] std::string some(const std::string& resource);
  void edit(const std::string& resource, const std::string& name, const std::function<void(json::Value&)>& change);

  HandClock clock_;
  std::unique_ptr<Core> core_;
  std::vector<Question> open_;
  std::map<Ask, TimePoint> timers_;
  std::deque<Ask> posted_;
  bool turns_posted_ = false, is_restful_ = false;
  std::size_t waits_for_nobody_ = 0;  ///< Of open_.
  std::string text_;
  std::map<std::string, std::string> last_shown_;  ///< By uid.
  std::string last_queue_;
  std::map<std::string, std::string> last_held_;  ///< Node by uid.
  std::set<std::string> bound_;                   ///< Uids for which the server took a binding.
  std::size_t steps_ = 0, wrongs_ = 0;
  int groups_made_ = 0;
};

/// Lives' own Permit plugin, by the label "door": "wait", "long", "shut" (rejected), "broken" (an error), "opens" and "clears" (all that
/// wait are allowed, or rejected).
void register_doorman();

}  // namespace berth::scheduler::lives
