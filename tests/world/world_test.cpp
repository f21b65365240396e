// Worlds in which everything breaks, from a seed; and everything comes right.
//
//   BERTH_WORLD_SEEDS=1000 BERTH_WORLD_FIRST=1 BERTH_WORLD_FAULTS=300 test_world --gtest_filter='World.*'
//
// A seed that fails is tried again with fewer and fewer faults, and the fewest that still fail are told as a story. How to add a judge, or
// look at a seed: docs/testing.md.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "tests/world/judges.h"

namespace berth::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// What breaks says so, again and again; BERTH_WORLD_LOG=1 shows it.
void hush() {
  log::set_level(log::Level::kError);
  if (setting("BERTH_WORLD_LOG", 0) == 0 && std::freopen("/dev/null", "w", stderr) == nullptr) ADD_FAILURE() << "no /dev/null";
}

const std::map<std::string, int> kDeployments = {{"web", 6}, {"api", 3}};
/// Beside the Deployments all of them fit at rest, whoever stands where.
constexpr int kGangs = 3, kGangSize = 3;
constexpr const char* kUsers[] = {"ann", "ben", "cleo"};

/// One thing that goes wrong, or that somebody does, and for how long.
struct Fault {
  enum class What {
    kKillServer,
    kCutEtcd,
    kLoseEtcdAnswers,
    kLoseEtcdRequests,
    kLagWatch,
    kSlowEtcd,
    kNoLeader,
    kFullDisk,
    kCompact,
    kCutWire,
    kLoseAnswers,
    kLoseRequests,
    kSlowWire,
    kKillComponent,
    kScale,
    kDeletePod,
    kService,
    kGang,
    kEndGang,
    kCount
  };
  What what = What::kKillServer;
  Duration at{}, lasts{};
  std::uint64_t which = 0;
  double share = 0;
};

std::string words(const Fault& fault) {
  static constexpr const char* kWords[] = {"kill server",
                                           "cut etcd from server",
                                           "lose etcd's answers to server",
                                           "lose requests to etcd of server",
                                           "lag the watch of server",
                                           "slow etcd for server",
                                           "no leader",
                                           "etcd's disk is full",
                                           "compact",
                                           "cut the wire of",
                                           "lose answers to",
                                           "lose requests of",
                                           "slow the wire of",
                                           "kill component",
                                           "scale",
                                           "delete a pod",
                                           "make or delete a service",
                                           "make gang",
                                           "end gang"};
  return fmt::format("at {:>8.3f} s for {:>7.3f} s: {} {} ({:.2f})", static_cast<double>(fault.at.count()) / 1e6,
                     static_cast<double>(fault.lasts.count()) / 1e6, kWords[static_cast<int>(fault.what)], fault.which, fault.share);
}

std::vector<Fault> story(std::uint64_t seed, int faults) {
  simulator::Random random(seed, "story");
  std::vector<Fault> out;
  Duration at = seconds(20);
  for (int i = 0; i < faults; ++i) {
    at += milliseconds(random.below(1500));
    Fault fault;
    fault.what = static_cast<Fault::What>(random.below(static_cast<std::uint64_t>(Fault::What::kCount)));
    fault.at = at;
    fault.lasts = milliseconds(random.below(random.below(4) == 0 ? 40'000 : 4000));
    fault.which = random.below(1000);
    fault.share = random.uniform();
    out.push_back(fault);
  }
  return out;
}

/// One run of a story, to its judgement.
class Telling {
 public:
  Telling(std::uint64_t seed, const std::vector<Fault>& faults) : seed_(seed), world_(seed, 4), ledger_(world_) {
    operator_ = std::make_unique<client::Client>(world_.process("operator").wire, &world_.loop(), "operator");
    for (const auto& [name, replicas] : kDeployments) want(name, replicas);
    for (const char* user : kUsers) users_.push_back(std::make_unique<RegisterUser>(world_, ledger_, user, seed));
    for (const char* name : {"watcher-1", "watcher-2"}) watchers_.push_back(std::make_unique<RegisterWatcher>(world_, name));
    Duration end = seconds(20);
    for (const Fault& fault : faults) {
      world_.loop().schedule_after(fault.at, [this, fault] { begin(fault); });
      world_.loop().schedule_after(fault.at + fault.lasts, [this, fault] { this->end(fault); });
      end = std::max(end, fault.at + fault.lasts);
    }
    world_.loop().run_for(end + seconds(1));
    heal();
  }

  Findings findings() {
    Findings all = world_.wrongs;
    const auto add = [&](const char* judge, const Findings& more) {
      for (const auto& one : more) all.push_back(fmt::format("{}: {}", judge, one));
    };
    add("registers", judge_registers(ledger_, world_.etcd()));
    for (const auto& watcher : watchers_) add("watch", judge_watch(*watcher, world_.etcd()));
    add("history", judge_history(world_.etcd()));
    add("rest", judge_rest(world_, kDeployments));
    return all;
  }
  /// A number that is the same whenever everything went the same way.
  [[nodiscard]] std::size_t fingerprint() {
    std::size_t sum = 0;
    for (const auto& record : world_.etcd().whole_history())
      sum = sum * 1'000'003 + std::hash<std::string>()(fmt::format("{}{}{}", record.key, record.revision, record.value == nullptr));
    return sum;
  }
  [[nodiscard]] std::size_t acts() const { return ledger_.acts().size(); }
  [[nodiscard]] std::size_t acknowledged() const {
    return static_cast<std::size_t>(std::ranges::count(ledger_.acts(), Act::Outcome::kDone, &Act::outcome));
  }

 private:
  /// A Deployment with so many replicas: tried until it is.
  void want(const std::string& name, int replicas) {
    json::Value labels = json::Object{{"app", name}};
    json::Value requests = json::Object{{"cpu", "500m"}};
    json::Value container = json::Object{{"name", "c"}, {"image", "nginx"}, {"resources", json::Object{{"requests", std::move(requests)}}}};
    json::Value spec = json::Object{
        {"replicas", replicas},
        {"selector", json::Object{{"matchLabels", labels}}},
        {"template",
         json::Object{{"metadata", json::Object{{"labels", labels}}},
                      {"spec", json::Object{{"terminationGracePeriodSeconds", 1}, {"containers", json::Array{std::move(container)}}}}}}};
    json::Value object = json::Object{
        {"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"metadata", json::Object{{"name", name}}}, {"spec", std::move(spec)}};
    operator_->patch({"apps", "v1", "deployments"}, "default", name, client::PatchType::kApply, object,
                     [this, name, replicas](client::ApiResult<json::Value> answer) {
                       if (!answer) world_.loop().schedule_after(seconds(1), [this, name, replicas] { want(name, replicas); });
                     });
  }

  EtcdLink& link(const Fault& fault) { return *world_.server(fault.which % kServers).etcd; }
  Wire& wire(const Fault& fault) { return *world_.processes()[fault.which % world_.processes().size()]->wire; }
  static const char* component(const Fault& fault) { return World::kComponents[fault.which % World::kComponents.size()]; }

  void begin(const Fault& fault) {
    using What = Fault::What;
    switch (fault.what) {
      case What::kKillServer:
        return world_.kill_server(fault.which % kServers);
      case What::kCutEtcd:
        link(fault).is_cut = true;
        return;
      case What::kLoseEtcdAnswers:
        link(fault).loses_answers = fault.share / 2;
        return;
      case What::kLoseEtcdRequests:
        link(fault).loses_requests = fault.share;
        return;
      case What::kLagWatch:
        link(fault).watch_lag = milliseconds(static_cast<int>(fault.share * 3000));
        return;
      case What::kSlowEtcd:
        link(fault).most_delay = milliseconds(1 + static_cast<int>(fault.share * 1500));
        return;
      case What::kNoLeader:
        world_.etcd().has_leader = false;
        return;
      case What::kFullDisk:
        world_.etcd().is_full = true;
        return;
      case What::kCompact:
        return world_.etcd().compact(world_.etcd().revision() - static_cast<store::Revision>(fault.share * 50));
      case What::kCutWire:
        return wire(fault).cut();
      case What::kLoseAnswers:
        wire(fault).loses_answers = fault.share;
        return;
      case What::kLoseRequests:
        wire(fault).loses_requests = fault.share;
        return;
      case What::kSlowWire:
        wire(fault).most_delay = milliseconds(1 + static_cast<int>(fault.share * 1500));
        return;
      case What::kKillComponent:
        return world_.kill(component(fault));
      case What::kScale:
        return scale(fault);
      case What::kDeletePod:
        return delete_pod(fault);
      case What::kService:
        return service(fault);
      case What::kGang:
        return make_gang(fault);
      case What::kEndGang:
        return end_gang(fault);
      case What::kCount:
        return;
    }
  }
  /// What is not for a moment only is put right.
  void end(const Fault& fault) {
    using What = Fault::What;
    EtcdLink& link = this->link(fault);
    switch (fault.what) {
      case What::kKillServer:
        return world_.start_server(fault.which % kServers);
      case What::kCutEtcd:
        link.is_cut = false;
        return;
      case What::kLoseEtcdAnswers:
        link.loses_answers = 0;
        return;
      case What::kLoseEtcdRequests:
        link.loses_requests = 0;
        return;
      case What::kLagWatch:
        link.watch_lag = {};
        return;
      case What::kSlowEtcd:
        link.most_delay = milliseconds(3);
        return;
      case What::kNoLeader:
        world_.etcd().has_leader = true;
        return;
      case What::kFullDisk:
        world_.etcd().is_full = false;
        return;
      case What::kCutWire:
        return wire(fault).heal();
      case What::kLoseAnswers:
        wire(fault).loses_answers = 0;
        return;
      case What::kLoseRequests:
        wire(fault).loses_requests = 0;
        return;
      case What::kSlowWire:
        wire(fault).most_delay = milliseconds(2);
        return;
      case What::kKillComponent:
        return world_.start(component(fault));
      default:
        return;
    }
  }

  void scale(const Fault& fault) {
    const std::string name = fault.which % 2 == 0 ? "web" : "api";
    const json::Value body = json::Object{{"spec", json::Object{{"replicas", static_cast<int>(fault.share * 9)}}}};
    operator_->patch({"apps", "v1", "deployments"}, "default", name, client::PatchType::kMerge, body, [](const auto&) {});
  }
  void delete_pod(const Fault& fault) {
    std::vector<std::string> pods;
    for (auto at = world_.etcd().items().lower_bound("/registry/pods/default/"); at != world_.etcd().items().end(); ++at) {
      if (!at->first.starts_with("/registry/pods/default/")) break;
      pods.push_back(at->first.substr(std::string("/registry/pods/default/").size()));
    }
    if (!pods.empty()) operator_->remove({"", "v1", "pods"}, "default", pods[fault.which % pods.size()], {}, [](const auto&) {});
  }
  void service(const Fault& fault) {
    const std::string name = fmt::format("s{}", fault.which % 8);
    if (fault.share < 0.4) return operator_->remove({"", "v1", "services"}, "default", name, {}, [](const auto&) {});
    operator_->create({"", "v1", "services"}, "default",
                      json::Object{{"apiVersion", "v1"},
                                   {"kind", "Service"},
                                   {"metadata", json::Object{{"name", name}}},
                                   {"spec", json::Object{{"ports", json::Array{json::Object{{"port", 80}}}}}}},
                      [](const auto&) {});
  }

  /// Three pods that are of use together alone. The group may come before them, between them or after them.
  void make_gang(const Fault& fault) {
    const std::string gang = fmt::format("gang-{}", fault.which % kGangs);
    const auto place = static_cast<int>(fault.share * (kGangSize + 1));
    for (int i = 0; i <= kGangSize; ++i) {
      if (i == place)
        operator_->create({"scheduling.k8s.io", "v1alpha2", "podgroups"}, "default", gang_group(gang), [](const auto&) {});
      else
        operator_->create({"", "v1", "pods"}, "default", gang_pod(gang, i < place ? i : i - 1), [](const auto&) {});
    }
  }
  static json::Value gang_group(const std::string& gang) {
    return json::Object{{"apiVersion", "scheduling.k8s.io/v1alpha2"},
                        {"kind", "PodGroup"},
                        {"metadata", json::Object{{"name", gang}}},
                        {"spec", json::Object{{"schedulingPolicy", json::Object{{"gang", json::Object{{"minCount", kGangSize}}}}}}}};
  }
  static json::Value gang_pod(const std::string& gang, int number) {
    json::Value container =
        json::Object{{"name", "c"}, {"image", "nginx"}, {"resources", json::Object{{"requests", json::Object{{"cpu", "1"}}}}}};
    return json::Object{{"apiVersion", "v1"},
                        {"kind", "Pod"},
                        {"metadata", json::Object{{"name", fmt::format("{}-{}", gang, number)}, {"labels", json::Object{{"gang", gang}}}}},
                        {"spec", json::Object{{"terminationGracePeriodSeconds", 1},
                                              {"schedulingGroup", json::Object{{"podGroupName", gang}}},
                                              {"containers", json::Array{std::move(container)}}}}};
  }
  void end_gang(const Fault& fault) {
    const std::string gang = fmt::format("gang-{}", fault.which % kGangs);
    operator_->remove({"scheduling.k8s.io", "v1alpha2", "podgroups"}, "default", gang, {}, [](const auto&) {});
    for (int i = 0; i < kGangSize; ++i)
      operator_->remove({"", "v1", "pods"}, "default", fmt::format("{}-{}", gang, i), {}, [](const auto&) {});
  }

  void heal() {
    for (auto& user : users_) user->stop();
    world_.etcd().has_leader = true;
    world_.etcd().is_full = false;
    for (auto& process : world_.processes()) {
      process->wire->heal();
      process->wire->loses_answers = process->wire->loses_requests = 0;
      process->wire->most_delay = milliseconds(2);
    }
    for (std::size_t i = 0; i < kServers; ++i) {
      EtcdLink& link = *world_.server(i).etcd;
      link.is_cut = false;
      link.loses_answers = link.loses_requests = 0;
      link.watch_lag = {};
      link.most_delay = milliseconds(3);
      world_.start_server(i);
    }
    for (const char* name : World::kComponents) world_.start(name);
    for (const auto& [name, replicas] : kDeployments) want(name, replicas);
    world_.loop().run_for(std::chrono::minutes(6));
  }

  std::uint64_t seed_;
  World world_;
  Ledger ledger_;
  std::unique_ptr<client::Client> operator_;
  std::vector<std::unique_ptr<RegisterUser>> users_;
  std::vector<std::unique_ptr<RegisterWatcher>> watchers_;
};

/// The fewest of the faults that still make it fail: halves, quarters, … are left out as long as it does.
std::vector<Fault> shrink(std::uint64_t seed, std::vector<Fault> faults) {
  int tries = 0;
  for (std::size_t piece = faults.size() / 2; piece > 0 && tries < 200; piece /= 2)
    for (std::size_t from = 0; from < faults.size() && tries < 200;) {
      std::vector<Fault> fewer = faults;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(from),
                  fewer.begin() + static_cast<std::ptrdiff_t>(std::min(from + piece, fewer.size())));
      ++tries;
      if (Telling(seed, fewer).findings().empty())
        from += piece;
      else
        faults = std::move(fewer);
    }
  return faults;
}

TEST(World, ComesRight) {
  hush();
  const int first = setting("BERTH_WORLD_FIRST", 1), seeds = setting("BERTH_WORLD_SEEDS", 5), faults = setting("BERTH_WORLD_FAULTS", 60);
  const bool shrinks = setting("BERTH_WORLD_SHRINK", 1) != 0;
  std::size_t acts = 0, acknowledged = 0;
  const std::clock_t begun = std::clock();
  int told = 0;
  for (int seed = first; seed < first + seeds; ++seed) {
    const auto story = world::story(static_cast<std::uint64_t>(seed), faults);
    Telling run(static_cast<std::uint64_t>(seed), story);
    acts += run.acts();
    acknowledged += run.acknowledged();
    const Findings findings = run.findings();
    told += faults;
    if (findings.empty()) continue;
    std::string text = fmt::format("BERTH_WORLD_FIRST={} BERTH_WORLD_SEEDS=1 BERTH_WORLD_FAULTS={}\n", seed, faults);
    for (std::size_t i = 0; i < std::min<std::size_t>(findings.size(), 10); ++i) text += "  " + findings[i] + "\n";
    if (shrinks) {
      const auto fewest = shrink(static_cast<std::uint64_t>(seed), story);
      text += fmt::format("the same of {} faults:\n", fewest.size());
      for (const Fault& fault : fewest) text += "  " + words(fault) + "\n";
      for (const auto& one : Telling(static_cast<std::uint64_t>(seed), fewest).findings()) text += "    " + one + "\n";
    }
    ADD_FAILURE() << text;
    if (shrinks) break;
  }
  const double spent = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  fmt::print("{} faults in {:.1f} s of processor time ({:.0f} a second), {} of {} acts acknowledged\n", told, spent,
             told / std::max(spent, 0.001), acknowledged, acts);
  EXPECT_GT(acknowledged, acts / 4) << "the stories tell nothing";
}

TEST(World, IsAFunctionOfItsSeed) {
  hush();
  const auto story = world::story(7, 40);
  Telling one(7, story), other(7, story);
  EXPECT_EQ(one.fingerprint(), other.fingerprint());
}

}  // namespace
}  // namespace berth::world
