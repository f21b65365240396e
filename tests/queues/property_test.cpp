// Whatever happens: no quota is exceeded, cohorts give what they have and no more, nobody waits for ever, and all comes back.
#include <fmt/format.h>

#include <random>

#include "queues/documents.h"
#include "queues/quota_tree.h"
#include "tests/queues/world.h"

namespace berth::queues::testing {
namespace {

using json::Value;

/// A cluster of three queues in a cohort and one alone, and what users do to it.
class Chaos {
 public:
  Chaos(std::uint32_t seed, bool fair) : random_(seed), fair_(fair), world_(Settings{.fair_sharing = fair}) {
    for (const char* flavor : {"x", "z"}) world_.flavor(Value(flavor));
    for (int priority : {0, 10, 20})
      world_.put(Kind::kWorkloadPriorityClass, yaml(fmt::format("{{metadata: {{name: p{0}}}, value: {0}}}", priority)));
    for (const char* name : {"a", "b", "c", "alone"}) write_queue(name);
    world_.settle();
  }
  World& world() { return world_; }
  void act() {
    switch (draw(10)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const std::string job = fmt::format("j{}", ++jobs_);
        live_.push_back(job);
        world_.job(yaml(fmt::format("{{name: {}, queue: {}, cpu: {}, pods: {}, class: p{}}}", job, queue_name(), 1 + draw(3), 1 + draw(2),
                                    draw(3) * 10)));
        break;
      }
      case 4:
      case 5:
        if (const std::string job = take(); !job.empty()) world_.finish_job(job);
        break;
      case 6:
        if (const std::string job = take(); !job.empty()) world_.remove({Kind::kJob, "default", job});
        break;
      case 7:
        write_queue(queue_name());
        break;
      case 8:
        if (!live_.empty()) world_.patch({Kind::kJob, "default", live_[draw(live_.size())]}, yaml("{spec: {suspend: true}}"));
        break;
      default:
        world_.now += std::chrono::seconds(1);
        if (draw(4) == 0) world_.restart(Settings{.fair_sharing = fair_});
        if (draw(4) == 0) world_.pods_stay = !world_.pods_stay;
    }
    world_.settle();
  }
  void end_all() {
    world_.pods_stay = false;
    while (!live_.empty()) world_.remove({Kind::kJob, "default", take()});
    world_.settle();
  }
  std::map<std::string, std::int64_t> quota;  ///< Of both flavors, by queue.

 private:
  std::size_t draw(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }
  std::string queue_name() { return std::vector<std::string>{"a", "b", "c", "alone"}[draw(4)]; }
  std::string take() {
    if (live_.empty()) return {};
    const std::size_t i = draw(live_.size());
    std::string out = live_[i];
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
    return out;
  }
  void write_queue(const std::string& name) {
    const std::string cohort = name == "alone" ? "" : "cohort: all,";
    const char* policies[] = {"Never", "LowerPriority", "Any"};
    const char* own[] = {"Never", "LowerPriority", "LowerOrNewerEqualPriority"};
    quota[name] = static_cast<std::int64_t>(4 + draw(4));
    world_.queue(
        yaml(fmt::format("{{name: {0}, {1} quota: {{x: {{cpu: {2}}}, z: {{cpu: {2}}}}}, spec: {{queueingStrategy: {3}, preemption: "
                         "{{withinClusterQueue: {4}, reclaimWithinCohort: {5}}}}}}}",
                         name, cohort, quota[name], draw(2) == 0 ? "StrictFIFO" : "BestEffortFIFO", own[draw(3)],
                         name == "alone" ? "Never" : policies[draw(3)])));
  }
  std::mt19937 random_;
  bool fair_ = false;
  World world_;
  std::vector<std::string> live_;
  int jobs_ = 0;
};

std::map<std::string, FlavorAmounts> used(const World& world) {
  std::map<std::string, FlavorAmounts> out;
  for (const Workload& workload : world.workloads())
    if (workload.has_reservation() && !workload.is("Finished"))
      for (const auto& [what, amount] : workload.usage()) out[*workload.admitted_by][what] += amount;
  return out;
}

std::int64_t sum(const World& world, const std::set<std::string>& queues, const std::string& flavor) {
  std::int64_t out = 0;
  for (const auto& [queue, amounts] : used(world))
    if (queues.contains(queue))
      for (const auto& [what, amount] : amounts) out += what.flavor == flavor ? amount : 0;
  return out;
}

void check_sums(Chaos& chaos, const std::map<std::string, FlavorAmounts>& before) {
  const World& world = chaos.world();
  for (const char* flavor : {"x", "z"}) {
    // A quota that was lowered evicts nobody: then nothing more is given, that is all.
    const auto grew = [&](const std::set<std::string>& queues) {
      std::int64_t was = 0;
      for (const auto& [queue, amounts] : before)
        if (queues.contains(queue))
          for (const auto& [what, amount] : amounts) was += what.flavor == flavor ? amount : 0;
      return sum(world, queues, flavor) > was;
    };
    if (grew({"a", "b", "c"})) {
      EXPECT_LE(sum(world, {"a", "b", "c"}, flavor), 1000 * (chaos.quota["a"] + chaos.quota["b"] + chaos.quota["c"]));
    }
    if (grew({"alone"})) {
      EXPECT_LE(sum(world, {"alone"}, flavor), 1000 * chaos.quota["alone"]);
    }
  }
  // Whoever runs has quota.
  for (const auto& [key, job] : world.objects) {
    if (key.kind != Kind::kJob || json::get_bool(job, {"spec", "suspend"}) || !json::get_array(job, {"status", "conditions"}).empty())
      continue;
    const Value* workload = world.workload_of(key.name);
    ASSERT_NE(workload, nullptr) << key.name;
    EXPECT_TRUE(Workload::parse(*workload).has_reservation()) << key.name;
  }
}

/// Nobody waits for whom there is room, in the order in which they may be looked at.
void check_nobody_waits_in_vain(Chaos& chaos) {
  World& world = chaos.world();
  std::map<std::string, std::vector<const Value*>> waiting;
  for (const auto& [key, document] : world.objects) {
    if (key.kind != Kind::kWorkload) continue;
    const Workload workload = Workload::parse(document);
    if (workload.is_active && !workload.has_reservation() && !workload.is("Finished") && workload.queue == "alone")
      waiting["alone"].push_back(&document);
  }
  const auto spec = *world.find({Kind::kClusterQueue, "", "alone"});
  const bool is_strict = ClusterQueue::parse(spec).is_strict;
  std::vector<Workload> ordered;
  for (const Value* one : waiting["alone"]) ordered.push_back(Workload::parse(*one));
  if (ordered.empty() || is_strict) return;
  for (const Workload& one : ordered) {
    const std::int64_t wanted = one.totals()[0].at("cpu");
    for (const char* flavor : {"x", "z"})
      EXPECT_GT(sum(world, {"alone"}, flavor) + wanted, 1000 * chaos.quota["alone"])
          << one.name << " waits, and flavor " << flavor << " has room";
  }
}

class QueueProperties : public ::testing::TestWithParam<int> {};

TEST_P(QueueProperties, HoldWhateverHappens) {
  for (int round = 0; round < 8; ++round) {
    const auto seed = static_cast<std::uint32_t>(GetParam() * 100 + round);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Chaos chaos(seed, GetParam() % 2 == 1);
    for (int i = 0; i < 60 && !HasFailure(); ++i) {
      const auto before = used(chaos.world());
      chaos.act();
      check_sums(chaos, before);
      if (!chaos.world().pods_stay) check_nobody_waits_in_vain(chaos);
    }
    chaos.end_all();
    EXPECT_TRUE(used(chaos.world()).empty());
    for (const auto& figures : chaos.world().core.figures()) {
      EXPECT_EQ(figures.reserving + figures.pending_active + figures.pending_inadmissible, 0) << figures.queue;
      for (const auto& resource : figures.resources) EXPECT_EQ(resource.reserved, 0) << figures.queue;
    }
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, QueueProperties, ::testing::Range(0, 4));

TEST(QueueOrder, NobodyStarvesInAStrictQueue) {
  World world;
  world.flavor(Value("x"));
  world.queue(yaml("{name: a, quota: {x: {cpu: 4}}, spec: {queueingStrategy: StrictFIFO}}"));
  world.job(yaml("{name: large, queue: a, cpu: 4}"));
  world.job(yaml("{name: s0, queue: a, cpu: 1}"));
  world.settle();
  world.job(yaml("{name: wanted, queue: a, cpu: 4}"));
  world.settle();
  world.finish_job("large");
  world.settle();
  // Small ones come and go; each is behind the one that waits.
  for (int i = 1; i < 20; ++i) {
    world.now += std::chrono::seconds(1);
    world.job(yaml(fmt::format("{{name: s{}, queue: a, cpu: 1}}", i)));
    world.settle();
    const Value* wanted = world.workload_of("wanted");
    EXPECT_EQ(Workload::parse(*wanted).has_reservation(), i > 1) << i;
    if (i == 1) world.finish_job("s0");
    world.settle();
  }
}

TEST(QuotaTrees, SumsDoNotDependOnTheOrder) {
  std::map<std::string, ClusterQueue> queues;
  std::map<std::string, Cohort> cohorts;
  const auto quota = [](Amount nominal, std::optional<Amount> lent) {
    return Quotas{{{"x", "cpu"}, {.nominal = nominal, .lending_limit = lent}}};
  };
  queues["a"] = {.name = "a", .cohort = "low", .quotas = quota(10, 4)};
  queues["b"] = {.name = "b", .cohort = "low", .quotas = quota(6, {})};
  cohorts["low"] = {.name = "low", .parent = "high", .quotas = quota(2, 3)};
  cohorts["high"] = {.name = "high", .quotas = quota(5, {})};
  const FlavorResource cpu{"x", "cpu"};
  std::mt19937 random(7);
  QuotaTree tree(queues, cohorts);
  std::vector<std::pair<std::string, Amount>> held;
  for (int i = 0; i < 2000; ++i) {
    if (held.empty() || random() % 2 == 0) {
      held.emplace_back(random() % 2 == 0 ? "a" : "b", static_cast<Amount>(random() % 5));
      tree.add(tree.queue(held.back().first), {{cpu, held.back().second}});
    } else {
      std::swap(held[random() % held.size()], held.back());
      tree.remove(tree.queue(held.back().first), {{cpu, held.back().second}});
      held.pop_back();
    }
    QuotaTree fresh(queues, cohorts);
    for (const auto& [queue, amount] : held) fresh.add(fresh.queue(queue), {{cpu, amount}});
    for (const char* queue : {"a", "b"}) {
      ASSERT_EQ(tree.available(tree.queue(queue), cpu), fresh.available(fresh.queue(queue), cpu)) << i;
      ASSERT_EQ(tree.share(tree.queue(queue)), fresh.share(fresh.queue(queue))) << i;
    }
  }
}

TEST(QueueNames, AreKueues) {
  EXPECT_EQ(workload_name("Job", "batch", "sample-job", "1d24ec5c-0b5b-4a8e-8a3a-6f1a1e2f7e0e").substr(0, 15), "job-sample-job-");
  EXPECT_EQ(workload_name("Job", "batch", std::string(300, 'a'), "u").size(), 253u);
}

}  // namespace
}  // namespace berth::queues::testing
