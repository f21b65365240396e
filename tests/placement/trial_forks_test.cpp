// Forks of forks of a trial, changed, asked and dropped in random order: each decides as if it had been built by itself from the same
// history.
#include <gtest/gtest.h>

#include <algorithm>

#include "placement/attempt.h"
#include "tests/placement/decision_check.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

struct Setting {
  std::uint64_t seed;
  Era era = Era::k136;
  int nodes = 8;
  bool unique_hostnames = true, nominations = false, lazy = false, volumes = false;
  int attempts = 4;  ///< Of a hundred steps.
};

using Step = std::function<void(Trial&)>;

/// A trial and all that was done to it.
struct Line {
  Trial trial;
  std::vector<Step> history;
};

std::string describe(const Decision& decision, Era era) {
  if (decision.outcome == Decision::Outcome::kScheduled)
    return fmt::format("{} {} {} {} {}", decision.node_name, decision.score, decision.feasible_nodes, decision.tied_nodes,
                       decision.nominated_first);
  return decision.diagnosis == nullptr ? "error " + decision.error
                                       : fit_error_message(*decision.diagnosis, era, std::to_string(decision.diagnosis->resolvable_nodes));
}

class Forks {
 public:
  explicit Forks(const Setting& setting) : setting_(setting), world_(setting.seed), framework_(default_framework(setting.era)) {
    world_.unique_hostnames = setting.unique_hostnames;
    world_.volumes = setting.volumes;
    options_.engine.tie_break = EngineOptions::TieBreak::kFirstByName;
    if (setting.lazy) options_.engine.lazy_ranking_nodes = 1;
    lines_.push_back({Trial(base_, framework_, options_), {}});
    for (int i = 0; i < setting.nodes; ++i) {
      const auto node = world_.node("n" + std::to_string(i));
      apply(lines_[0], [node](Trial& trial) { trial.cluster().upsert_node(node); });
    }
    for (int i = 0; i < 8; ++i) {
      auto kind = std::make_shared<model::PodView>(*world_.pod("kind"));
      kind->priority = i % 4;
      kinds_.push_back(std::move(kind));
    }
  }

  void run(int steps) {
    for (step_ = 0; step_ < steps && !::testing::Test::HasFatalFailure(); ++step_) {
      const auto at = static_cast<std::size_t>(world_.below(static_cast<int>(lines_.size())));
      const int what = world_.below(100);
      if (what < 12 && lines_.size() < 6) {
        lines_.push_back({lines_[at].trial.fork(), lines_[at].history});
      } else if (what < 20 && lines_.size() > 1) {
        lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (what < 20 + setting_.attempts) {
        attempt(lines_[at], 0);
      } else if (what < 36 + setting_.attempts) {
        change(lines_[at]);
      } else {
        ask(lines_[at]);
      }
    }
    for (Line& line : lines_) ask(line);
  }

  [[nodiscard]] int victims_found() const { return victims_found_; }

 private:
  static void apply(Line& line, Step step) {
    step(line.trial);
    line.history.push_back(std::move(step));
  }

  /// Things done and taken back, or kept, with attempts within.
  void attempt(Line& line, int depth) {
    const std::vector<Step> history = line.history;
    const std::string before = content(line.trial.cluster());
    {
      Attempt attempt_here(line.trial);
      for (int i = 0; i < 5 && !::testing::Test::HasFatalFailure(); ++i) {
        const int what = world_.below(100);
        if (what < 15 && depth < 2)
          attempt(line, depth + 1);
        else if (what < 60)
          change(line);
        else
          ask(line);
      }
      if (world_.chance(30)) return attempt_here.keep();
    }
    line.history = history;
    ASSERT_EQ(content(line.trial.cluster()), before) << "seed " << setting_.seed << " step " << step_;
  }

  /// Nodes with their pods in order, and who waits for them.
  static std::string content(const Cluster& cluster) {
    std::string out;
    for (const NodeInfo* node : cluster.nodes()) {
      out += fmt::format("{} {} {} {}:", node->name, fmt::ptr(node->node.get()), node->requested.cpu_milli,
                         cluster.find_node(node->name) == node);
      for (const auto& pod : node->pods) out += fmt::format(" {}@{}", pod->key, cluster.pod_node(pod->key) == node->index);
      for (const auto& pod : cluster.nominated(node->index)) out += " (" + pod->key + ")";
      out += "\n";
    }
    return out + fmt::format("{} nodes {} pods {} claims {} services", cluster.node_count(), cluster.pod_count(), cluster.claims().size(),
                             cluster.services().size());
  }

  void change(Line& line) {
    const int what = world_.below(10);
    const std::string node_name = "n" + std::to_string(world_.below(setting_.nodes + 3));
    if (what < 2) {
      apply(line, [node_name](Trial& trial) { trial.cluster().remove_node(node_name); });
    } else if (what < 5) {
      apply(line, [node = world_.node(node_name)](Trial& trial) { trial.cluster().upsert_node(node); });
    } else if (what < 7) {
      // The objects are drawn as the change is made: from the same place whenever it is made again.
      apply(line, [world = world_](Trial& trial) {
        RandomWorld copy = world;
        copy.change_objects(trial.cluster());
      });
      (void)world_.random()();
    } else {
      apply(line, [key = fmt::format("default/p{}", world_.below(step_ + 1))](Trial& trial) { trial.cluster().remove_pod(key); });
    }
  }

  void ask(Line& line) {
    auto view = std::make_shared<model::PodView>(*kinds_[static_cast<std::size_t>(world_.below(8))]);
    view->meta.name = "p" + std::to_string(step_);
    const PodInfoPtr pod = PodInfo::make(view, setting_.era);
    if (setting_.nominations && world_.chance(10)) {
      const std::string on = "n" + std::to_string(world_.below(setting_.nodes));
      apply(line, [pod, on](Trial& trial) { trial.cluster().nominate(pod, on); });
      return;
    }
    const auto [decision, best] = line.trial.best(pod);
    const std::string wrong = difference(line.trial.cluster(), *framework_, *pod, decision, true);
    ASSERT_EQ(wrong, "") << "seed " << setting_.seed << " step " << step_;
    check_nodes(line, pod, best);
    if (decision.outcome == Decision::Outcome::kUnschedulable) check_victims(line, pod);
    if (world_.chance(25)) {
      Cluster cluster(setting_.era);
      Trial fresh(cluster, framework_, options_);
      for (const Step& step : line.history) step(fresh);
      ASSERT_EQ(describe(fresh.decide(pod), setting_.era), describe(decision, setting_.era))
          << "seed " << setting_.seed << " step " << step_;
    }
    if (decision.outcome != Decision::Outcome::kScheduled || world_.chance(20)) return;
    // By name: which slot a node has depends on what was taken back.
    apply(line, [pod, name = std::string(decision.node_name)](Trial& trial) {
      if (const NodeInfo* node = trial.cluster().find_node(name)) (void)trial.reserve(pod, node->index);
    });
  }

  /// The best nodes, and what is said of one of them all, against the plain form.
  void check_nodes(Line& line, const PodInfoPtr& pod, const std::vector<NodeIndex>& best) {
    const Cluster& cluster = line.trial.cluster();
    const Evaluation plain = evaluate(*framework_, cluster, *pod);
    if (!plain.errors.empty()) return;
    ASSERT_EQ(best, plain.tied) << "seed " << setting_.seed << " step " << step_;
    const auto all = cluster.nodes();
    const NodeIndex node = all[static_cast<std::size_t>(world_.below(static_cast<int>(all.size())))]->index;
    const Status got = line.trial.fits(pod, node);
    ASSERT_EQ(got.is_success(), std::ranges::any_of(plain.feasible, [&](const auto& one) { return one.node == node; }))
        << "seed " << setting_.seed << " step " << step_ << " " << got.message();
    // Nodes that PreFilter left out are not listed where others fit.
    std::string expected = plain.pre_filter.is_success() ? got.message() : plain.pre_filter.message();
    for (const auto& one : plain.rejected)
      if (one.node == node) expected = one.status.message();
    ASSERT_EQ(got.message(), expected) << "seed " << setting_.seed << " step " << step_;
  }

  /// Who would have to go, against the plain form.
  void check_victims(Line& line, const PodInfoPtr& pod) {
    const Cluster& cluster = line.trial.cluster();
    const auto plain = run_post_filter(framework_, cluster, pod, evaluate(*framework_, cluster, *pod));
    const auto got = line.trial.victims_for(pod);
    ASSERT_EQ(got.status.message(), plain.status.message()) << "seed " << setting_.seed << " step " << step_;
    ASSERT_EQ(got.tied, plain.tied) << "seed " << setting_.seed << " step " << step_;
    if (plain.choice() == nullptr) return;
    ASSERT_EQ(got.choice()->victims, plain.choice()->victims) << "seed " << setting_.seed << " step " << step_;
    ++victims_found_;
  }

  Setting setting_;
  RandomWorld world_;
  FrameworkPtr framework_;
  TrialOptions options_;
  Cluster base_{setting_.era};
  std::vector<Line> lines_;
  std::vector<model::PodViewPtr> kinds_;
  int step_ = 0;
  int victims_found_ = 0;
};

/// Returns how often evicting helped.
int run(const Setting& setting, int steps) {
  Forks forks(setting);
  forks.run(steps);
  return forks.victims_found();
}

TEST(TrialForks, DecideAsIfBuiltByThemselvesIn136) {
  int victims_found = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) victims_found += run({.seed = seed}, 200);
  EXPECT_GT(victims_found, 20);
}

TEST(TrialForks, DecideAsIfBuiltByThemselvesIn120) {
  for (std::uint64_t seed = 101; seed <= 115; ++seed) run({.seed = seed, .era = Era::k120}, 200);
}

TEST(TrialForks, WhereHostnamesAreShared) {
  for (std::uint64_t seed = 201; seed <= 210; ++seed) run({.seed = seed, .unique_hostnames = false}, 200);
}

TEST(TrialForks, WithNominations) {
  for (std::uint64_t seed = 301; seed <= 310; ++seed) run({.seed = seed, .nominations = true}, 200);
}

TEST(TrialForks, WithVolumes) {
  for (std::uint64_t seed = 401; seed <= 410; ++seed) run({.seed = seed, .volumes = true}, 200);
}

/// One after the other on the same lines, as single losses are tried: what was looked at in one is looked at again, and nothing else.
TEST(TrialForks, WithManyAttempts) {
  for (std::uint64_t seed = 601; seed <= 612; ++seed) run({.seed = seed, .volumes = seed % 2 == 0, .attempts = 45}, 150);
}

/// Several pages of each column, so that forks share some and own others.
TEST(TrialForks, OfClustersOfManyPages) {
  for (std::uint64_t seed = 501; seed <= 502; ++seed) run({.seed = seed, .nodes = 2300, .lazy = seed % 2 == 0}, 60);
}

}  // namespace
}  // namespace berth::placement::testing
