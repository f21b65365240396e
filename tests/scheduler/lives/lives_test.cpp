// Lives of the scheduler's core (life.h), one a subject; what each is told and says stands in NAME.txt beside this. Record anew with
// BERTH_RECORD=1, and read what differs as a user would.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/scheduler/lives/life.h"

namespace berth::scheduler::lives {
namespace {

using placement::default_profile;
using placement::Era;
using placement::Profile;

/// What happens in every life.
std::vector<std::pair<int, Life::Act>> with(std::vector<std::pair<int, Life::Act>> more) {
  const std::vector<std::pair<int, Life::Act>> always = {{10, &Life::make_pod}, {24, &Life::answer},   {24, &Life::show},
                                                         {6, &Life::pass_time}, {5, &Life::run_nodes}, {4, &Life::delete_pod},
                                                         {3, &Life::make_node}, {2, &Life::edit_node}, {1, &Life::delete_node}};
  more.insert(more.end(), always.begin(), always.end());
  return more;
}

Profile permitting() {
  Profile out = default_profile(Era::k136);
  out.permit = {{"Doorman", 0}};
  return out;
}

/// The recorded life, and thirty others, of which a digest is recorded. BERTH_SEEDS: so many are judged, beyond the thirty alone.
void play(const char* name, Life::Subject subject) {
  constexpr std::uint64_t kRecorded = 30;
  const std::uint64_t first = subject.seed;
  std::string text = Life(subject).run();
  const char* seeds = std::getenv("BERTH_SEEDS");
  const std::uint64_t more = seeds != nullptr ? std::stoull(seeds) : kRecorded;
  for (std::uint64_t seed = 1; seed <= more && !::testing::Test::HasFailure(); ++seed) {
    subject.seed = 1000 * first + seed;
    const std::string other = Life(subject).run();
    if (seed <= kRecorded) text += testing::line_of_life(name, subject.seed, other);
  }
  if (!::testing::Test::HasFailure() && more >= kRecorded)
    testing::expect_life(fmt::format("tests/scheduler/lives/{}.txt", name), first, text);
}

void asks_for(json::Value& pod, const char* resource) {
  json::Value& container = json::find(pod, {"spec", "containers"})->get_array()[0];
  json::set(container, {"resources", "requests", resource}, json::Value("1"));
  json::set(container, {"resources", "limits", resource}, json::Value("1"));
}

Life::Subject binding() {
  return {.seed = 1,
          .profiles = {default_profile(Era::k136)},
          .random_ties = true,
          .max_bindings_in_flight = 3,
          .faults = 40,
          .acts = with({{5, &Life::edit_pod},
                        {5, &Life::edit_placed_pod},
                        {2, &Life::open_gate},
                        {1, &Life::bind_elsewhere},
                        {1, &Life::nominate_elsewhere},
                        {2, &Life::change_leader}})};
}

Life::Subject preemption() {
  Profile second = default_profile(Era::k136);
  second.scheduler_name = "second";
  second.args.preemption.budgets_are_hard = true;
  return {.seed = 2,
          .profiles = {default_profile(Era::k136), second},
          .faults = 20,
          .dress =
              [](Life& life, json::Value& pod) {
                json::set(pod, {"spec", "priority"}, json::Value(10 * life.dice.below(4)));
              },
          .acts = with({{8, &Life::make_pod},
                        {3, &Life::make_budget},
                        {2, &Life::edit_pod},
                        {2, &Life::nominate_elsewhere},
                        {1, &Life::edit_placed_pod},
                        {1, &Life::change_leader}})};
}

Life::Subject groups() {
  GroupOptions options;
  options.reservation_after = std::chrono::seconds(40);
  options.reservation_for = std::chrono::seconds(200);
  options.most_reservations = 2;
  return {.seed = 3,
          .profiles = {default_profile(Era::k136)},
          .groups = options,
          .serves_groups = true,
          .faults = 12,
          .dress =
              [](Life& life, json::Value& pod) {
                if (life.dice.chance(75))
                  json::set(pod, {"spec", "schedulingGroup", "podGroupName"}, json::Value(fmt::format("g{}", life.dice.below(3))));
                if (life.dice.chance(25)) json::set(pod, {"spec", "activeDeadlineSeconds"}, json::Value(20 + 40 * life.dice.below(10)));
              },
          .acts = with({{8, &Life::make_group},
                        {8, &Life::make_pod},
                        {1, &Life::delete_group},
                        {4, &Life::pass_time},
                        {1, &Life::make_budget},
                        {1, &Life::edit_pod},
                        {1, &Life::change_leader}})};
}

Life::Subject permit() {
  return {.seed = 4,
          .profiles = {permitting()},
          .serves_groups = true,
          .faults = 15,
          .dress =
              [](Life& life, json::Value& pod) {
                constexpr std::array<const char*, 8> kDoors = {"wait", "wait", "long", "long", "shut", "broken", "opens", "clears"};
                if (life.dice.chance(70)) json::set(pod, {"metadata", "labels", "door"}, json::Value(life.dice.of(kDoors)));
                if (life.dice.chance(15)) json::set(pod, {"spec", "schedulingGroup", "podGroupName"}, json::Value("g0"));
              },
          .acts = with({{3, &Life::make_pod},
                        {3, &Life::edit_pod},
                        {1, &Life::make_group},
                        {1, &Life::bind_elsewhere},
                        {1, &Life::change_leader},
                        {3, &Life::pass_time}})};
}

Life::Subject extenders() {
  return {.seed = 5,
          .profiles = {default_profile(Era::k136)},
          .serves_groups = true,
          .extenders = true,
          .faults = 15,
          .dress =
              [](Life& life, json::Value& pod) {
                if (life.dice.chance(50)) asks_for(pod, "example.com/fpga");
                if (life.dice.chance(25)) asks_for(pod, "example.com/nic");
                if (life.dice.chance(25))
                  json::set(pod, {"spec", "schedulingGroup", "podGroupName"}, json::Value(fmt::format("g{}", life.dice.below(2))));
              },
          .acts = with(
              {{12, &Life::make_pod}, {3, &Life::make_group}, {1, &Life::delete_group}, {3, &Life::edit_pod}, {1, &Life::change_leader}})};
}

/// Gangs of which extenders are asked, on little room, in domains that come and go.
Life::Subject asked_gangs() {
  return {.seed = 10,
          .steps = 700,
          .profiles = {default_profile(Era::k136)},
          .serves_groups = true,
          .extenders = true,
          .faults = 8,
          .dress =
              [](Life& life, json::Value& pod) {
                if (life.dice.chance(60)) asks_for(pod, "example.com/fpga");
                if (life.dice.chance(85))
                  json::set(pod, {"spec", "schedulingGroup", "podGroupName"}, json::Value(fmt::format("g{}", life.dice.below(3))));
              },
          .acts = with({{20, &Life::make_pod}, {6, &Life::make_group}, {10, &Life::answer}, {10, &Life::show}, {8, &Life::run_nodes}})};
}

Life::Subject volumes() {
  return {.seed = 6,
          .profiles = {default_profile(Era::k136)},
          .faults = 15,
          .dress =
              [](Life& life, json::Value& pod) {
                if (!life.dice.chance(80)) return;
                json::Array volumes;
                for (int i = 1 + life.dice.below(2); i > 0; --i)
                  volumes.push_back(
                      json::Object{{"name", fmt::format("v{}", i)},
                                   {"persistentVolumeClaim", json::Object{{"claimName", fmt::format("c{}", life.dice.below(4))}}}});
                json::set(pod, {"spec", "volumes"}, std::move(volumes));
              },
          .acts = with({{8, &Life::make_storage}, {6, &Life::provision}, {1, &Life::change_leader}, {6, &Life::answer}})};
}

Life::Subject devices() {
  return {.seed = 7,
          .profiles = {default_profile(Era::k136)},
          .serves_groups = true,
          .faults = 15,
          .dress =
              [](Life& life, json::Value& pod) {
                if (life.dice.chance(30)) return asks_for(pod, "d.example.com/gpu");
                if (!life.dice.chance(80)) return;
                json::Object entry{{"name", "x"}};
                entry["resourceClaimName"] = fmt::format("rc{}", life.dice.below(3));
                json::set(pod, {"spec", "resourceClaims"}, json::Array{std::move(entry)});
              },
          .acts = with(
              {{8, &Life::make_devices}, {6, &Life::tend_devices}, {1, &Life::change_leader}, {6, &Life::answer}, {2, &Life::edit_pod}})};
}

Life::Subject old_release() {
  return {.seed = 8,
          .profiles = {default_profile(Era::k120)},
          .faults = 25,
          .dress =
              [](Life& life, json::Value& pod) {
                if (life.dice.chance(25))
                  json::set(
                      pod, {"spec", "volumes"},
                      json::Array{json::Object{
                          {"name", "v"}, {"persistentVolumeClaim", json::Object{{"claimName", fmt::format("c{}", life.dice.below(4))}}}}});
              },
          .acts = with({{6, &Life::make_pod},
                        {3, &Life::make_storage},
                        {3, &Life::provision},
                        {2, &Life::make_budget},
                        {2, &Life::make_neighbours},
                        {2, &Life::edit_pod},
                        {1, &Life::change_leader}})};
}

/// All of it at once: what one subject does meets what another began.
Life::Subject together() {
  Profile second = default_profile(Era::k136);
  second.scheduler_name = "second";
  second.args.preemption.budgets_are_hard = true;
  return {.seed = 9,
          .steps = 600,
          .profiles = {permitting(), second},
          .serves_groups = true,
          .extenders = true,
          .faults = 20,
          .dress =
              [](Life& life, json::Value& pod) {
                for (const auto& subject : {preemption(), groups(), permit(), extenders(), volumes(), devices()})
                  if (life.dice.chance(35)) subject.dress(life, pod);
              },
          .acts = with({{10, &Life::make_pod},
                        {4, &Life::edit_pod},
                        {4, &Life::edit_placed_pod},
                        {2, &Life::open_gate},
                        {1, &Life::bind_elsewhere},
                        {2, &Life::make_budget},
                        {1, &Life::nominate_elsewhere},
                        {4, &Life::make_group},
                        {1, &Life::delete_group},
                        {4, &Life::make_storage},
                        {3, &Life::provision},
                        {4, &Life::make_devices},
                        {3, &Life::tend_devices},
                        {2, &Life::change_leader},
                        {6, &Life::answer},
                        {3, &Life::pass_time}})};
}

TEST(SchedulerLives, Binding) { play("binding", binding()); }
TEST(SchedulerLives, Preemption) { play("preemption", preemption()); }
TEST(SchedulerLives, Groups) { play("groups", groups()); }
TEST(SchedulerLives, Permit) {
  register_doorman();
  play("permit", permit());
}
TEST(SchedulerLives, Extenders) { play("extenders", extenders()); }
TEST(SchedulerLives, AskedGangs) { play("asked_gangs", asked_gangs()); }
TEST(SchedulerLives, Volumes) { play("volumes", volumes()); }
TEST(SchedulerLives, Devices) { play("devices", devices()); }
TEST(SchedulerLives, OldRelease) { play("old_release", old_release()); }
TEST(SchedulerLives, Together) {
  register_doorman();
  play("together", together());
}

}  // namespace
}  // namespace berth::scheduler::lives
