// The engine over a controller that wants what the dice say, and a server that answers late, in another order, not at all or with errors.
#include "controllers/engine.h"

#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using berth::testing::LongLife;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// What all share.
struct Stage {
  Stage() : life("tests/controllers/lives/engine.txt", 60, 30'000) {}
  LongLife life;
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  std::map<std::string, int> in_flight;              ///< Writes not answered yet, by key.
  std::map<std::string, std::int64_t> must_be_seen;  ///< By key: a revision that a write of its got.
  std::map<std::string, TimePoint> written_at;
  std::int64_t seen = 0;  ///< Revision of the maps that the engine was shown.
  bool is_calm = false;
  [[nodiscard]] std::string at() const {
    return fmt::format("{:.3f}", std::chrono::duration<double>(loop.now() - *parse_rfc3339("2026-01-05T10:00:00Z")).count());
  }
  void tell(const std::string& text) { life.tell(at() + " " + text); }
};

class Scripted final : public Controller {
 public:
  Scripted(Stage& stage, std::string name, bool retries_slowly) : stage_(stage), name_(std::move(name)), slow_(retries_slowly) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().config_map}; }
  [[nodiscard]] int concurrency() const override { return 2; }
  [[nodiscard]] Duration retry_base() const override { return slow_ ? Duration(seconds(1)) : Duration{0}; }
  [[nodiscard]] Duration retry_most() const override { return slow_ ? Duration(seconds(4)) : Duration{0}; }
  void on_start(const Cache&, TimePoint, KeySink& sink) override { sink.add("start"); }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    sink.add(event.object().name());
    if (event.object().name() == "a") sink.add("later", milliseconds(700));
    if (event.object().name() == "b") sink.add("later", milliseconds(300));
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache&) override {
    const std::string mine = name_ + " " + key;
    if (stage_.in_flight[mine] != 0) ADD_FAILURE() << stage_.life.last() << mine << " is looked at twice at once";
    if (const auto must = stage_.must_be_seen.find(mine); must != stage_.must_be_seen.end()) {
      if (must->second > stage_.seen && now < stage_.written_at[mine] + minutes(5))
        ADD_FAILURE() << stage_.life.last() << mine << " is looked at before it sees revision " << must->second;
      stage_.must_be_seen.erase(must);
    }
    Plan plan;
    auto& dice = stage_.life.dice;
    if (!stage_.is_calm) fill(plan, mine, dice);
    std::string said = fmt::format("{}: {} writes, {} bytes", mine, plan.writes.size(), plan.bytes);
    if (plan.requeue_after) said += " again in " + format_go_duration(*plan.requeue_after);
    if (plan.cooldown > Duration{0}) said += " pause " + format_go_duration(plan.cooldown);
    if (plan.error) said += " error";
    stage_.tell(said);
    return plan;
  }
  void on_result(const std::string& key, const Write& write, const ApiResult<json::Value>& result, TimePoint) override {
    stage_.tell(fmt::format("  {} {} hears of {}: {}", name_, key, write.name, result ? "done" : std::to_string(result.error().code)));
  }

 private:
  void fill(Plan& plan, const std::string& mine, berth::testing::Dice& dice) {
    if (dice.chance(8)) throw std::runtime_error("odd document");
    const int writes = dice.chance(60) ? dice.below(5) : 0;
    for (int i = 0; i < writes; ++i) {
      Write write;
      write.verb = static_cast<Write::Verb>(std::array{0, 0, 2, 3, 4}[static_cast<std::size_t>(dice.below(5))]);
      write.kind = kinds().config_map;
      write.ns = "default";
      write.name = fmt::format("{}{}", static_cast<char>('a' + dice.below(4)), "");
      write.uid = write.verb == Write::Verb::kDelete ? "u-" + write.name : "";
      write.stage = dice.below(2);
      write.slow_start = write.verb == Write::Verb::kCreate && dice.chance(60);
      write.may_fail = dice.chance(20);
      write.tag = mine;
      if (dice.chance(50)) write.on_success = EventNote{.reason = "Made", .message = "made {}"};
      if (dice.chance(50)) write.on_failure = EventNote{.reason = "Failed", .message = "failed: {}"};
      plan.add(std::move(write), static_cast<std::size_t>(dice.below(3)) * 400);
    }
    if (dice.chance(20)) plan.requeue_after = milliseconds(dice.below(3) * 500);
    if (dice.chance(20)) plan.cooldown = milliseconds(dice.below(3) * 250);
    if (dice.chance(10)) plan.error = "wrong";
    if (dice.chance(10)) plan.enqueue.push_back("other");
    if (dice.chance(10)) plan.events.push_back(EventNote{.reason = "Said", .message = "so"});
    if (dice.chance(2)) plan.bytes = Plan::kMostBytes;
  }
  Stage& stage_;
  std::string name_;
  bool slow_;
};

class LateApi final : public Api {
 public:
  explicit LateApi(Stage& stage) : stage_(stage) {}
  Engine* engine = nullptr;
  int answered = 0, sent = 0;

  void send(const Write& write, std::function<void(ApiResult<json::Value>)> done) override {
    ++sent;
    ++stage_.in_flight[write.tag];
    stage_.tell(fmt::format("  sent {} {} stage {}{} by {}", static_cast<int>(write.verb), write.name, write.stage,
                            write.slow_start ? " slowly" : "", write.tag));
    const Duration late = stage_.is_calm ? Duration{0} : Duration(milliseconds(stage_.life.dice.below(4) * 40));
    stage_.loop.schedule_after(late, [this, write, done = std::move(done)] {
      ++answered;
      --stage_.in_flight[write.tag];
      done(serve(write));
    });
  }
  void note(std::string_view controller, const EventNote& note) override {
    stage_.tell(fmt::format("  {} says {}: {}", controller, note.reason, note.message));
  }

 private:
  ApiResult<json::Value> serve(const Write& write) {
    auto& dice = stage_.life.dice;
    if (!stage_.is_calm && dice.chance(25)) {
      ApiStatus status = model::internal_error("broken");
      switch (dice.below(4)) {
        case 0:
          status = model::too_many_requests("no room", 1 + dice.below(3));
          break;
        case 1:
          status = model::forbidden("", "configmaps", write.name, "it is going");
          status.causes.push_back({"NamespaceTerminating", "", ""});
          break;
        case 2:
          status = model::not_found("", "configmaps", write.name);
          break;
        default:
          break;
      }
      return std::unexpected(status);
    }
    if (write.verb == Write::Verb::kGet) return json::Value(json::Object{});
    const std::int64_t revision = ++revision_;
    json::Value document = yaml(
        fmt::format("{{metadata: {{name: {}, namespace: default, uid: u-{}, resourceVersion: '{}'}}}}", write.name, write.name, revision));
    if (write.verb != Write::Verb::kDelete) {
      auto& must = stage_.must_be_seen[write.tag];
      must = std::max(must, revision);
      stage_.written_at[write.tag] = stage_.loop.now();
    }
    // The watch is late, too; now and then very.
    const Duration late = stage_.is_calm ? Duration{0} : dice.chance(3) ? Duration(minutes(6)) : Duration(milliseconds(dice.below(5) * 60));
    pending_.emplace_back(document, write.verb == Write::Verb::kDelete);
    stage_.loop.schedule_after(late, [this] { show(); });
    return document;
  }
  /// In the order of revisions, whatever the delays.
  void show() {
    if (pending_.empty()) return;
    const auto [document, is_delete] = pending_.front();
    pending_.pop_front();
    const auto object = std::make_shared<Object>(document);
    stage_.seen = object->revision();
    engine->observe(kinds().config_map, object, is_delete);
  }
  Stage& stage_;
  std::int64_t revision_ = 100;
  std::deque<std::pair<json::Value, bool>> pending_;
};

TEST(EngineLives, AreAsRecorded) {
  Stage stage;
  LateApi api(stage);
  EngineOptions options;
  options.writes_in_flight = 3;
  options.bytes_in_flight = 9'000;
  options.backoff_max = seconds(30);
  metrics::Registry registry;
  auto engine = std::make_unique<Engine>(stage.loop, api, options, &registry);
  api.engine = engine.get();
  engine->add(std::make_unique<Scripted>(stage, "quick", false));
  engine->add(std::make_unique<Scripted>(stage, "slow", true));
  engine->observe(kinds().config_map,
                  std::make_shared<Object>(yaml("{metadata: {name: a, namespace: default, uid: u-a, resourceVersion: '5'}}")), false);
  engine->start();
  for (int i = 0; i < 500; ++i) {
    const std::string name(1, static_cast<char>('a' + stage.life.dice.below(5)));
    if (stage.life.dice.chance(40)) {
      stage.tell(fmt::format("somebody touches {}", name));
      // Of a revision that the maps had long ago: a change of somebody else's, told late.
      engine->observe(kinds().config_map,
                      std::make_shared<Object>(yaml(fmt::format(
                          "{{metadata: {{name: {}, namespace: default, uid: u-{}, resourceVersion: '{}'}}}}", name, name, 10 + i % 80))),
                      stage.life.dice.chance(20));
    }
    stage.loop.run_for(milliseconds(stage.life.dice.below(6) * 100));
    if (engine->is_idle()) {
      EXPECT_EQ(engine->bytes_in_flight(), 0U) << stage.life.last();
    }
  }
  stage.is_calm = true;
  stage.tell("calm");
  stage.loop.run_for(minutes(30));
  EXPECT_TRUE(engine->is_idle()) << stage.life.last();
  EXPECT_EQ(engine->bytes_in_flight(), 0U);
  EXPECT_EQ(api.answered, api.sent) << "each write is answered once";
  engine->stop();
  const int sent = api.sent;
  engine->observe(kinds().config_map,
                  std::make_shared<Object>(yaml("{metadata: {name: a, namespace: default, uid: u-a, resourceVersion: '99999'}}")), false);
  stage.loop.run_for(minutes(1));
  EXPECT_EQ(api.sent, sent) << "who has stopped does nothing";
  stage.tell(fmt::format("{} steps", engine->steps()));
  stage.life.expect_as_recorded();
}

}  // namespace
}  // namespace berth::controllers::lives
