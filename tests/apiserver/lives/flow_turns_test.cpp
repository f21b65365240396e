// Flow control over time, with one worker that is let go only to take all that may be taken: who is let in, in which order it is served,
// what is refused, and what the tables and figures say after each turn. Recorded.
#include <future>

#include "apiserver/flow/controller.h"
#include "tests/support/long_life.h"

namespace berth::apiserver::flow {
namespace {

using testing::LongLife;

class Turns {
 public:
  explicit Turns(LongLife& life)
      : life_(life),
        controller_(
            {.inflight_read = 14, .inflight_mutating = 0, .workers = 1, .longest_wait = std::chrono::hours(1), .waiting_bytes = 60'000},
            registry_) {
    configure();
    let_go();
  }
  ~Turns() {
    held_.clear();
    if (release_ != nullptr) release_->set_value();
    controller_.stop();
  }
  Turns(const Turns&) = delete;

  void step() {
    switch (life_.dice.below(12)) {
      case 0:
        if (life_.dice.chance(30)) configure();
        break;
      case 1:
        set_memory();
        break;
      case 2:
        take_here();
        break;
      case 3:
      case 4:
        give_back();
        break;
      case 5:
        go_on();
        break;
      case 6:
        let_go();
        break;
      default:
        submit();
    }
  }
  /// All is over: what is left of it.
  void end() {
    controller_.set_memory(Memory::kAmple);
    for (int i = 0; i < 20; ++i) {
      held_.clear();
      let_go();
    }
    held_.clear();
    life_.tell("== the end\n" + figures(true));
  }

 private:
  static FlowSchema schema(const char* group, const char* level, FlowSchema::Distinguisher by) {
    FlowSchema out{.name = group, .uid = {}, .level = level, .precedence = 5};
    out.distinguisher = by;
    out.rules = {{{{FlowSchema::Subject::Kind::kGroup, group, {}}}, {{{"*"}, {"*"}, {"*"}, {"*"}, true}}, {}}};
    return out;
  }
  void configure() {
    const int queues = life_.dice.below(4), hand = 1 + life_.dice.below(3), length = 1 + life_.dice.below(3);
    std::vector<PriorityLevel> levels{{"plug", "", false, 1, 0, {}, 1, 1, 100}, {"workload-high", "", false, 10, 0, 50, 2, 2, 2}};
    levels.push_back({"a", "", false, 10 + 10 * life_.dice.below(3), 50, {}, queues, std::min(hand, queues), length});
    const bool has_b = life_.dice.chance(70);
    if (has_b) levels.push_back({"b", "", false, 20, 0, {}, 0, 0, 0});
    using By = FlowSchema::Distinguisher;
    controller_.configure(levels, {schema("plug", "plug", By::kNone), schema("ga", "a", By::kByUser), schema("gb", "b", By::kNone),
                                   schema("gv", "workload-high", By::kByNamespace), schema("ge", "exempt", By::kNone)});
    life_.tell(fmt::format("configured: a of {} queues, hands of {}, {} long{}", queues, hand, length, has_b ? "" : ", no b"));
    tell_levels();
  }
  void set_memory() {
    const auto memory = life_.dice.chance(70) ? Memory::kAmple : life_.dice.chance(50) ? Memory::kTight : Memory::kShort;
    controller_.set_memory(memory);
    life_.tell(fmt::format("memory {}", static_cast<int>(memory)));
  }
  Classified some_place(std::string& said) {
    static constexpr std::array<const char*, 7> kGroups = {"ga", "ga", "ga", "gb", "gv", "gn", "ge"};
    const std::string group = life_.dice.of(kGroups), name = fmt::format("u{}", life_.dice.below(5)),
                      ns = fmt::format("n{}", life_.dice.below(2));
    UserInfo user{name, "", {group}, {}};
    if (life_.dice.chance(15)) user.groups.emplace_back("system:serviceaccounts:kube-system");
    Attributes asks;
    asks.verb = life_.dice.chance(40) ? "create" : "list";
    asks.resource = "pods";
    asks.ns = ns;
    said = fmt::format("{} of {} {}s in {}{}", name, group, asks.verb, ns, user.groups.size() > 1 ? ", a controller" : "");
    return controller_.classify(user, asks);
  }
  void submit() {
    std::string said;
    Work work;
    work.where = some_place(said);
    work.cost_us = 2000 + 1000 * life_.dice.below(90);
    work.seats = life_.dice.chance(10) ? 0 : 1 + life_.dice.below(4);
    work.bytes = static_cast<std::size_t>(life_.dice.below(9)) * 1000;
    const std::string id = fmt::format("r{}", ++last_);
    const bool keeps = life_.dice.chance(60);
    const bool is_exempt = work.where.level().is_exempt;
    auto over = std::make_shared<std::promise<void>>();
    work.run = [this, where = work.where, seats = work.seats, id, keeps, is_exempt, over] {
      {
        Seats mine(controller_, where, seats);
        served_.push_back(id);
        if (keeps && !is_exempt) held_.emplace_back(id, std::move(mine));
      }
      over->set_value();
    };
    auto refused = std::make_shared<std::string>();
    auto is_shrunk = std::make_shared<bool>(false);
    // What is kept back is told a second later, or never: nobody listens then.
    work.reject = [refused = std::weak_ptr(refused)](std::string_view reason, int) {
      if (const auto mine = refused.lock()) *mine = reason;
    };
    work.shrink = [is_shrunk] { *is_shrunk = true; };
    said += fmt::format(" {}: {:.0f} us, {} seats, {} bytes", id, work.cost_us, work.seats, work.bytes);
    controller_.submit(std::move(work));
    if (is_exempt && !*is_shrunk) {
      over->get_future().wait();
      said += ", served at once";
    }
    life_.tell(fmt::format("{}{}{}", said, refused->empty() ? "" : ", refused: " + *refused, *is_shrunk ? ", kept back" : ""));
  }
  void take_here() {
    std::string said;
    const Classified where = some_place(said);
    const int seats = 1 + life_.dice.below(3);
    const double cost = life_.dice.chance(80) ? 100 : Controller::kHeavyUs;
    const bool runs = controller_.runs_here(where, cost, seats);
    const std::string id = fmt::format("r{}", ++last_);
    if (runs) held_.emplace_back(id, Seats(controller_, where, seats));
    life_.tell(fmt::format("{} {}: {} seats for {:.0f} us: {}", said, id, seats, cost, runs ? "here" : "not here"));
  }
  void give_back() {
    if (held_.empty()) return;
    const auto at = held_.begin() + life_.dice.below(held_.size());
    life_.tell(at->first + " is over");
    held_.erase(at);
  }
  /// The rest of something that has begun.
  void go_on() {
    std::string said;
    Work work;
    work.where = some_place(said);
    work.cost_us = life_.dice.below(5000);
    work.seats = 1 + life_.dice.below(2);
    const std::string id = fmt::format("r{}", ++last_);
    const bool is_exempt = work.where.level().is_exempt;
    auto over = std::make_shared<std::promise<void>>();
    work.run = [this, where = work.where, seats = work.seats, id, over] {
      {
        const Seats mine(controller_, where, seats);
        served_.push_back(id);
      }
      over->set_value();
    };
    controller_.post(std::move(work));
    if (is_exempt) over->get_future().wait();
    life_.tell(fmt::format("{} {} goes on", said, id));
  }
  /// The worker takes all that may be taken: who comes last in every order waits behind it, and holds the worker again.
  void let_go() {
    auto arrived = std::make_shared<std::promise<void>>(), go = std::make_shared<std::promise<void>>();
    Work work;
    work.where = controller_.classify({"plug", "", {"plug"}, {}}, {.verb = "list", .resource = "pods"});
    work.cost_us = 1e9;
    work.run = [this, where = work.where, arrived, go] {
      const Seats mine(controller_, where, 1);
      arrived->set_value();
      go->get_future().wait();
    };
    controller_.post(std::move(work));
    if (release_ != nullptr) release_->set_value();
    arrived->get_future().wait();
    release_ = std::move(go);
    life_.tell(fmt::format("served: {}", fmt::join(std::exchange(served_, {}), " ")));
    tell_levels();
  }
  void tell_levels() {
    life_.tell(controller_.dump_priority_levels() + controller_.dump_queues() + figures(false));
    const auto present = controller_.classify({}, {}).held;
    for (const auto& place : present->places)
      life_.tell(fmt::format("{}: {} of {} seats, {} sharers", place.config.name, place.level->seats, place.level->limit,
                             place.level->held.size()));
  }
  /// But for what time decides. Not `all`: of what there is at present, what is not zero.
  [[nodiscard]] std::string figures(bool all) const {
    std::string out;
    const std::string text = registry_.expose();
    for (std::size_t at = 0; at < text.size();) {
      const std::string line = text.substr(at, text.find('\n', at) - at);
      at += line.size() + 1;
      const auto has = [&](const char* word) { return line.find(word) != std::string::npos; };
      if (line.starts_with('#') || has("_bucket") || has("seconds") || has("demand") || has("fair_frac") || has("target")) continue;
      if (all || (has("current_") && !has("limit") && !line.ends_with(" 0"))) out += line + "\n";
    }
    return out;
  }

  LongLife& life_;
  metrics::Registry registry_;
  Controller controller_;
  std::vector<std::pair<std::string, Seats>> held_;
  std::vector<std::string> served_;  ///< Since the worker was let go.
  std::shared_ptr<std::promise<void>> release_;
  int last_ = 0;
};

TEST(FlowLives, OfTurnsAreAsRecorded) {
  LongLife life("tests/apiserver/lives/turns.txt", 75, 30'000);
  // A thread that no other test has worn out.
  std::thread([&life] {
    for (int round = 0; round < 8; ++round) {
      Turns turns(life);
      for (int i = 0; i < 250; ++i) turns.step();
      turns.end();
    }
  }).join();
  life.expect_as_recorded();
}

}  // namespace
}  // namespace berth::apiserver::flow
