// The life of a fleet of simulated nodes: pods that start, end, crash and are deleted, nodes that die and come back, a server that refuses
// and loses answers, and processes that begin anew. What is written stands in fleet.txt beside this (BERTH_RECORD=1 writes it anew); what
// must hold of it is judged by plain code.
#include "node/simulated/fleet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/life.h"

namespace berth::node::simulated {
namespace {

using namespace std::chrono_literals;
using testing::Dice;

const TimePoint kStart = *parse_rfc3339("2026-01-01T00:00:00Z");
constexpr int kNodes = 3, kPods = 8;

class Life {
 public:
  Life(std::uint64_t seed, FleetOptions options) : dice_(seed), options_(std::move(options)), fleet_(std::make_unique<Fleet>(options_)) {
    for (int i = 0; i < kNodes; ++i) fleet_->add_node({fmt::format("node-{}", i + 1), "zone-a", "region-1", i, {}}, now_);
  }

  std::string run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      act();
      let_pass(std::chrono::milliseconds(dice_.chance(70) ? 50 * dice_.below(60) : 1000 * dice_.below(90)));
      if (!dice_.chance(20)) answer(dice_.below(4));
    }
    rest();
    empty();
    return text_;
  }

 private:
  struct Object {
    json::Value document;
    bool is_news = false;
  };

  void say(const std::string& line) { text_ += fmt::format("{} {}\n", format_go_duration(now_ - kStart), line); }

  // Users.

  void act() {
    switch (dice_.below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return make_pod();
      case 4:
      case 5:
        return delete_pod();
      case 6:
        return kill_node();
      case 7:
        return show();
      case 8:
        if (dice_.chance(25)) begin_anew();
        return;
      default:
        return show();
    }
  }
  void make_pod() {
    const std::string name = fmt::format("p{}", dice_.below(kPods));
    if (pods_.contains(name)) return;
    constexpr std::array<const char*, 3> kPolicies = {"Always", "OnFailure", "Never"};
    json::Value pod = json::Object{
        {"metadata", json::Object{{"namespace", "default"}, {"name", name}, {"uid", fmt::format("{}-{}", name, ++uids_)}}},
        {"spec", json::Object{{"nodeName", fmt::format("node-{}", 1 + dice_.below(kNodes))}, {"restartPolicy", dice_.of(kPolicies)}}},
        {"status", json::Object{{"phase", "Pending"}}}};
    json::Array containers{json::Object{{"name", "c"}, {"image", "i"}}};
    if (dice_.chance(25)) containers.push_back(json::Object{{"name", "d"}, {"image", "i"}, {"command", json::Array{"sleep", "5"}}});
    json::set(pod, {"spec", "containers"}, std::move(containers));
    if (dice_.chance(25))
      json::set(pod, {"spec", "initContainers"},
                json::Array{json::Object{{"name", "i"}, {"image", "i"}, {"command", json::Array{dice_.chance(70) ? "true" : "false"}}},
                            json::Object{{"name", "s"}, {"image", "i"}, {"restartPolicy", "Always"}}});
    if (dice_.chance(10)) json::set(pod, {"spec", "hostNetwork"}, json::Value(true));
    if (dice_.chance(10)) json::set(pod, {"spec", "activeDeadlineSeconds"}, json::Value(20 + dice_.below(40)));
    if (dice_.chance(15)) json::set(pod, {"metadata", "finalizers"}, json::Array{"example.com/keep"});
    const std::map<const char*, const char*> kBehaviours = {
        {"start-delay", "3s"},     {"run-for", "7s"},      {"exit-code", "3"},       {"ready-after", "2s"},   {"ready", "false"},
        {"stop-after", "4s"},      {"image-pull", "fail"}, {"liveness-after", "9s"}, {"started-after", "1s"}, {"run-for.d", "2m"},
        {"ready-after.c", "soon"}, {"init-for", "3s"},     {"init-exit-code", "2"}};
    for (const auto& [key, value] : kBehaviours)
      if (dice_.chance(15)) json::set(pod, {"metadata", "annotations", fmt::format("{}{}", kAnnotationPrefix, key)}, json::Value(value));
    say("new " + json::serialize(pod));
    pods_[name] = {std::move(pod), true};
  }
  void delete_pod() {
    if (pods_.empty()) return;
    Object& pod = std::next(pods_.begin(), dice_.below(pods_.size()))->second;
    if (json::find(pod.document, {"metadata", "deletionTimestamp"}) != nullptr) return drop_finalizers(pod);
    const int grace = dice_.chance(30) ? 0 : 30;
    say(fmt::format("delete {} within {} s", json::get_string(pod.document, {"metadata", "uid"}), grace));
    json::set(pod.document, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(now_ + std::chrono::seconds(grace))));
    json::set(pod.document, {"metadata", "deletionGracePeriodSeconds"}, json::Value(grace));
    pod.is_news = true;
  }
  void drop_finalizers(Object& pod) {
    if (!json::erase(pod.document, {"metadata", "finalizers"})) return;
    const std::string name(json::get_string(pod.document, {"metadata", "name"}));
    if (ended_.contains(std::string(json::get_string(pod.document, {"metadata", "uid"})))) return gone(name);
    pod.is_news = true;
  }
  void kill_node() {
    if (nodes_.empty()) return;
    auto& [name, node] = *std::next(nodes_.begin(), dice_.below(nodes_.size()));
    const bool dies = json::get_string(node.document, {"metadata", "annotations", kDeadAnnotation}) != "true";
    if (dies && !dice_.chance(30)) return;
    json::set(node.document, {"metadata", "annotations", kDeadAnnotation}, json::Value(dies ? "true" : "false"));
    say(fmt::format("{} {}", name, dies ? "dies" : "comes back"));
    node.is_news = true;
  }
  /// The watch shows what has changed, or only some of it.
  void show() {
    for (auto& [name, node] : nodes_)
      if (node.is_news && !dice_.chance(20)) {
        node.is_news = false;
        fleet_->observe_node(node.document, now_);
      }
    for (auto& [name, pod] : pods_)
      if (pod.is_news && !dice_.chance(20)) {
        pod.is_news = false;
        fleet_->observe_pod(pod.document, now_);
      }
    send();
  }
  /// Another process takes the fleet over: it knows what the server has.
  void begin_anew() {
    say("begins anew");
    open_.clear();
    fleet_ = std::make_unique<Fleet>(options_);
    for (auto& [name, node] : nodes_) {
      node.is_news = false;
      EXPECT_TRUE(fleet_->adopt_node(node.document, {}, now_)) << name;
      fleet_->observe_node(node.document, now_);
    }
    for (int i = 0; i < kNodes; ++i)
      if (const std::string name = fmt::format("node-{}", i + 1); !nodes_.contains(name))
        fleet_->add_node({name, "zone-a", "region-1", i, {}}, now_);
    // As whoever shows a fleet what was there before has to.
    for (const bool has_address : {true, false})
      for (auto& [name, pod] : pods_) {
        if (json::get_string(pod.document, {"status", "podIP"}).empty() == has_address) continue;
        pod.is_news = false;
        fleet_->observe_pod(pod.document, now_);
      }
    send();
  }

  // The fleet and its server.

  void let_pass(Duration time) {
    const TimePoint until = now_ + time;
    for (auto next = fleet_->next_wake(); next && *next <= until; next = fleet_->next_wake()) {
      now_ = std::max(now_, *next);
      fleet_->advance(now_);
      send();
    }
    now_ = until;
    fleet_->advance(now_);
    send();
  }
  void send() {
    while (auto write = fleet_->next_write(now_)) {
      if (write->kind == Write::Kind::kEvent) {
        say(fmt::format("  event {}", write->body));
        continue;
      }
      for (const Write& other : open_)
        EXPECT_FALSE(other.name == write->name && other.uid == write->uid) << write->name << " has two writes under way\n" << text_;
      open_.push_back(std::move(*write));
    }
  }
  void answer(int count) {
    for (; count >= 0 && !open_.empty(); --count) {
      const auto at = open_.begin() + dice_.below(open_.size());
      const Write write = std::move(*at);
      open_.erase(at);
      const int luck = is_quiet_ ? 100 : dice_.below(100);
      WriteOutcome outcome = luck < 6 ? WriteOutcome{0, "", ""} : carry_out(write);
      if (luck >= 6 && luck < 12) outcome = {dice_.chance(50) ? 0 : 500, "", ""};
      say(fmt::format("  {} {} {}{}: {}", kKinds.at(static_cast<std::size_t>(write.kind)), write.name, write.body, luck < 6 ? " lost" : "",
                      outcome.code));
      fleet_->finish_write(write, outcome, now_);
      send();
    }
  }
  WriteOutcome carry_out(const Write& write) {
    const auto body = json::parse(write.body.empty() ? "{}" : write.body);
    switch (write.kind) {
      case Write::Kind::kCreateNode: {
        if (nodes_.contains(write.name)) return {409, "", ""};
        Object& made = nodes_[write.name] = {*body, true};
        json::set(made.document, {"metadata", "uid"}, json::Value("uid-" + write.name));
        return {201, "uid-" + write.name, "1"};
      }
      case Write::Kind::kPodStatus:
        return take_status(write, *body);
      case Write::Kind::kDeletePod: {
        const auto found = pods_.find(write.name);
        if (found == pods_.end()) return {404, "", ""};
        if (json::get_string(found->second.document, {"metadata", "uid"}) != write.uid) return {409, "", ""};
        EXPECT_NE(json::find(found->second.document, {"metadata", "deletionTimestamp"}), nullptr)
            << write.uid << " is deleted by its node alone";
        ended_.insert(write.uid);
        if (json::find(found->second.document, {"metadata", "finalizers"}) == nullptr) gone(write.name);
        return {200, write.uid, "1"};
      }
      default:
        return {200, "", "1"};
    }
  }
  WriteOutcome take_status(const Write& write, const json::Value& body) {
    const auto found = pods_.find(write.name);
    if (found == pods_.end()) return {404, "", ""};
    json::Value& pod = found->second.document;
    if (json::get_string(pod, {"metadata", "uid"}) != write.uid) return {409, "", ""};
    judge_status(write.uid, *json::find(pod, "status"), *json::find(body, "status"));
    judge_address(write.uid, pod, json::get_string(body, {"status", "podIP"}));
    pod.get_object()["status"] = *json::find(body, "status");
    found->second.is_news = true;
    return {200, write.uid, "1"};
  }
  void gone(const std::string& name) {
    const std::string uid(json::get_string(pods_.at(name).document, {"metadata", "uid"}));
    pods_.erase(name);
    say("gone " + uid);
    fleet_->forget_pod(uid);
  }

  // Judges.

  void judge_status(const std::string& uid, const json::Value& before, const json::Value& after) {
    const auto phase = [](const json::Value& status) { return json::get_string(status, {"phase"}); };
    const bool has_ended = phase(before) == "Succeeded" || phase(before) == "Failed";
    EXPECT_TRUE(!has_ended || phase(before) == phase(after)) << uid << " had ended\n" << text_;
    EXPECT_FALSE(phase(before) == "Running" && phase(after) == "Pending") << uid << " had begun\n" << text_;
    for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
      const auto &then = json::get_array(before, {list}), &now = json::get_array(after, {list});
      for (std::size_t i = 0; i < std::min(then.size(), now.size()); ++i)
        EXPECT_LE(json::get_int(then[i], {"restartCount"}), json::get_int(now[i], {"restartCount"})) << uid << "\n" << text_;
    }
    const std::string was(json::get_string(before, {"podIP"})), is(json::get_string(after, {"podIP"}));
    EXPECT_TRUE(was.empty() || was == is) << uid << " moves from " << was << " to " << is << "\n" << text_;
  }
  /// No other pod that is there has the address, unless it is their node's.
  void judge_address(const std::string& uid, const json::Value& pod, std::string_view address) {
    if (address.empty() || json::get_bool(pod, {"spec", "hostNetwork"})) return;
    for (const auto& [name, other] : pods_) {
      const auto of = json::get_string(other.document, {"metadata", "uid"});
      EXPECT_TRUE(of == uid || json::get_string(other.document, {"status", "podIP"}) != address)
          << uid << " and " << of << " have " << address << "\n"
          << text_;
    }
  }
  /// Nothing fails any more, and all nodes live.
  void rest() {
    is_quiet_ = true;
    for (auto& [name, node] : nodes_) {
      json::set(node.document, {"metadata", "annotations", kDeadAnnotation}, json::Value("false"));
      node.is_news = true;
    }
    for (int i = 0; i < 120; ++i) {
      let_pass(5s);
      show();
      answer(100);
    }
    EXPECT_EQ(fleet_->ready_count(), static_cast<std::size_t>(kNodes));
    for (const auto& [name, pod] : pods_) {
      const std::string uid(json::get_string(pod.document, {"metadata", "uid"}));
      const bool is_deleted = json::find(pod.document, {"metadata", "deletionTimestamp"}) != nullptr;
      EXPECT_TRUE(!is_deleted || ended_.contains(uid)) << uid << " does not go\n" << text_;
      const PodSimulation* sim = fleet_->find_pod(uid);
      ASSERT_NE(sim, nullptr) << uid;
      if (is_deleted) continue;
      EXPECT_EQ(to_string(sim->phase()), json::get_string(pod.document, {"status", "phase"})) << uid << "\n" << text_;
    }
  }
  void empty() {
    for (auto& [name, pod] : pods_) {
      json::erase(pod.document, {"metadata", "finalizers"});
      json::set(pod.document, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(now_)));
      json::set(pod.document, {"metadata", "deletionGracePeriodSeconds"}, json::Value(0));
      pod.is_news = true;
    }
    ended_.clear();
    for (int i = 0; i < 60 && !pods_.empty(); ++i) {
      for (auto& [name, pod] : pods_) pod.is_news = true;
      show();
      let_pass(5s);
      answer(100);
    }
    EXPECT_TRUE(pods_.empty()) << pods_.begin()->first << " does not go\n" << text_;
    EXPECT_EQ(fleet_->pod_count(), 0U);
    for (const std::string& name : fleet_->node_names()) fleet_->remove_node(name);
    EXPECT_EQ(fleet_->ready_count(), 0U);
    EXPECT_EQ(fleet_->next_wake(), std::nullopt);
    EXPECT_FALSE(fleet_->next_write(now_).has_value());
  }

  static constexpr std::array<const char*, 8> kKinds = {"create node", "label node", "status of node", "create lease",
                                                        "renew lease", "status of",  "delete",         "event"};
  Dice dice_;
  FleetOptions options_;
  TimePoint now_ = kStart;
  std::unique_ptr<Fleet> fleet_;
  std::vector<Write> open_;
  std::map<std::string, Object> nodes_, pods_;
  std::set<std::string> ended_;  ///< Uids whose node has deleted them.
  int uids_ = 0;
  bool is_quiet_ = false;
  std::string text_;
};

FleetOptions seldom() {
  FleetOptions out;
  out.lease_period = 5min;
  out.status_period = 20min;
  out.events = FleetOptions::Events::kAll;
  return out;
}

TEST(FleetLives, PodsOfAllKinds) {
  const std::string text = Life(1, seldom()).run(110);
  if (!HasFailure()) testing::expect_life("tests/node/lives/fleet.txt", 1, text);
  const char* seeds = std::getenv("BERTH_SEEDS");
  for (std::uint64_t seed = 2; seed < 2 + (seeds != nullptr ? std::stoull(seeds) : 30) && !HasFailure(); ++seed) {
    FleetOptions options = seldom();
    options.steady_heartbeats = seed % 2 == 0;
    (void)Life(seed, options).run(200);
  }
}

}  // namespace
}  // namespace berth::node::simulated
