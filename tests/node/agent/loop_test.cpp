// What a node does while those whom it asks are slow: its API server answers late or never, its runtime hangs. Nothing blocks its loop.
#include <ranges>

#include "node/agent/node_pods.h"
#include "node/agent/node_reporter.h"
#include "pod_worker_fixture.h"

namespace berth::node::agent::testing {
namespace {

using namespace std::chrono_literals;

/// The API server of one node. What is held is asked and not answered until it is let go.
class SlowApi final : public net::Handler {
 public:
  std::set<std::string> held;                   ///< "GET nodes", "PATCH leases", "PATCH pods/status", …
  std::map<std::string, int> asked;             ///< As often.
  std::map<std::string, json::Value> statuses;  ///< Of pods and the node, by name, as last written.

  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    const std::vector<std::string> parts = parts_of(request.path);
    const bool is_status = parts.back() == "status";
    const std::string& name = parts[parts.size() - (is_status ? 2 : 1)];
    std::string resource;
    for (const char* one : {"nodes", "leases", "pods"})
      if (std::ranges::find(parts, one) != parts.end()) resource = one;
    const std::string word = fmt::format("{} {}{}", request.method, resource, is_status ? "/status" : "");
    if (request.method == "GET" && resource == "pods") return watch(std::move(writer));
    ++asked[word];
    auto answer = [this, name, is_status, body = request.body, writer = std::move(writer)](int code) {
      if (is_status) statuses[name] = *json::find(json::parse(body).value(), "status");
      writer->respond({.status = code, .headers = {}, .body = R"({"metadata":{"name":"real","uid":"node-uid"}})"});
    };
    if (held.contains(word)) return late_[word].push_back(std::move(answer));
    answer(200);
  }
  /// Everybody who waited for this is answered; `code` 0: with a lost connection.
  void let_go(const std::string& word, int code = 200) {
    held.erase(word);
    for (const auto& answer : std::exchange(late_[word], {})) answer(code);
  }
  /// Nobody is answered any more.
  void end() {
    late_.clear();
    watch_.reset();
  }
  void bind(const json::Value& pod) { show("ADDED", pod); }
  void show(std::string_view type, const json::Value& pod) {
    watch_->write(make_bytes(fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, json::serialize(pod))));
  }

 private:
  static std::vector<std::string> parts_of(std::string_view path) {
    std::vector<std::string> out;
    for (const auto part : std::views::split(path, '/')) out.emplace_back(part.begin(), part.end());
    return out;
  }
  void watch(std::shared_ptr<net::ResponseWriter> writer) {
    watch_ = std::move(writer);
    watch_->start_stream(200, {});
    watch_->write(make_bytes(
        R"({"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}})"
        "\n"));
  }
  std::map<std::string, std::vector<std::function<void(int)>>> late_;
  std::shared_ptr<net::ResponseWriter> watch_;
};

class AgentLoop : public PodWorkerTest {
 protected:
  AgentLoop() {
    environment_->changed = [this](const std::string& uid) {
      const std::lock_guard lock(mutex_);
      changed_pods_.push_back(uid);
      changed_.notify_all();
    };
    pods_.emplace(client_, *environment_, [](const json::Value& pod, const std::vector<json::Value>&, const json::Value* node) {
      if (node != nullptr && node->is_object()) return std::optional<Refusal>();
      const bool is_picky = json::find(pod, {"spec", "nodeSelector"}) != nullptr;
      return is_picky ? std::optional(Refusal{"NodeAffinity", "the labels do not match"}) : std::nullopt;
    });
    NodeReporterOptions options{.node_name = "real"};
    reporter_.emplace(
        client_, loop_, std::move(options), [] { return NodeFacts{}; }, [this] { pods_->start(); },
        [](const std::string&, const std::string&, const std::string&) {});
    reporter_->start();
    loop_.run_ready();
  }
  ~AgentLoop() override {
    runtime_.hold_sandbox_of("");
    reporter_.reset();
    pods_->stop();
    pods_.reset();
    api_.end();
    loop_.run_ready();
  }
  void bind(const std::string& name, std::string_view spec = "containers: [{name: c, image: 'app:1'}]", const json::Value& status = {}) {
    json::Value document = pod(spec, name);
    if (!status.is_null()) json::set(document, {"status"}, status);
    json::set(document, {"metadata", "uid"}, json::Value("uid-" + name));
    json::set(document, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
    for (const char* qos : {"besteffort", "burstable"}) {
      const std::string group = fmt::format("{}/cgroup/kubepods/{}/poduid-{}", root_, qos, name);
      fs::create_directories(group);
      for (const char* file : {"memory.max", "cpu.weight", "cpu.max"}) std::ofstream(group + "/" + file) << "max";
    }
    api_.bind(document);
    loop_.run_ready();
  }
  /// The API's pod as the node reported it, but that somebody wrote this of its readiness.
  void write_over(const std::string& name, std::string_view ready) {
    json::Value document = pod("containers: [{name: c, image: 'app:1'}]", name);
    json::set(document, {"metadata", "uid"}, json::Value("uid-" + name));
    json::set(document, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
    json::set(document, {"status"}, api_.statuses[name]);
    for (json::Value& condition : json::find(document, {"status", "conditions"})->as_array())
      if (json::get_string(condition, {"type"}) == "Ready") json::set(condition, {"status"}, json::Value(ready));
    api_.show("MODIFIED", document);
    loop_.run_ready();
  }
  [[nodiscard]] std::string readiness(const std::string& name) {
    for (const json::Value& condition : json::get_array(api_.statuses[name], {"conditions"}))
      if (json::get_string(condition, {"type"}) == "Ready") return std::string(json::get_string(condition, {"status"}));
    return "";
  }
  /// Brings what the workers say to the loop until the claim holds.
  ::testing::AssertionResult comes(const std::function<bool()>& claim) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    for (;;) {
      std::unique_lock lock(mutex_);
      const auto changed = std::exchange(changed_pods_, {});
      lock.unlock();
      for (const std::string& uid : changed) pods_->push_status(uid);
      loop_.run_ready();
      if (claim()) return ::testing::AssertionSuccess();
      if (std::chrono::steady_clock::now() > deadline) return ::testing::AssertionFailure() << fmt::format("{}", fmt::join(events(), "\n"));
      lock.lock();
      if (changed_pods_.empty()) changed_.wait_for(lock, 5ms);
    }
  }
  [[nodiscard]] bool runs(const std::string& name) { return phase(name) == "Running"; }
  [[nodiscard]] std::string phase(const std::string& name) {
    const auto at = api_.statuses.find(name);
    return at == api_.statuses.end() ? "" : std::string(json::get_string(at->second, {"phase"}));
  }

  SlowApi api_;
  VirtualLoop loop_{clock_.now()};
  client::Client client_{client::make_in_process_transport(api_, {}), &loop_, "node"};
  std::vector<std::string> changed_pods_;
  std::optional<NodePods> pods_;
  std::optional<NodeReporter> reporter_;
  int revision_ = 1;
};

TEST_F(AgentLoop, WhileNobodySaysWhatTheNodeIsItsLeaseIsRenewedAndPodsRun) {
  ASSERT_EQ(api_.asked["PATCH leases"], 1);
  api_.held = {"GET nodes"};
  loop_.run_for(60s);
  EXPECT_EQ(api_.asked["PATCH leases"], 7) << "every ten seconds, of a lease of forty";
  bind("web");
  EXPECT_TRUE(comes([&] { return runs("web"); }));
}

TEST_F(AgentLoop, ANodeThatIsNotReadReportsItsStatusWithoutWhatOthersGaveIt) {
  api_.held = {"GET nodes"};
  api_.statuses.clear();
  reporter_->report_now();
  loop_.run_ready();
  EXPECT_FALSE(api_.statuses.contains("real"));
  api_.let_go("GET nodes", 0);
  loop_.run_ready();
  EXPECT_TRUE(api_.statuses.contains("real"));
}

TEST_F(AgentLoop, ALeaseThatNobodyConfirmsIsRenewedAgainAndHoldsUpNothing) {
  api_.held = {"PATCH leases"};
  const int reported = api_.asked["PATCH nodes/status"];
  loop_.run_for(40s);
  EXPECT_EQ(api_.asked["PATCH leases"], 5);
  loop_.run_for(5min);
  EXPECT_GT(api_.asked["PATCH nodes/status"], reported);
  bind("web");
  EXPECT_TRUE(comes([&] { return runs("web"); }));
}

TEST_F(AgentLoop, WhoIsAskedAboutOnceMoreWaitsAlone) {
  api_.held = {"GET nodes"};
  bind("picky", "nodeSelector: {disk: fast}\ncontainers: [{name: c, image: 'app:1'}]");
  bind("web");
  EXPECT_TRUE(comes([&] { return runs("web"); }));
  EXPECT_EQ(phase("picky"), "");
  api_.let_go("GET nodes");
  EXPECT_TRUE(comes([&] { return runs("picky"); }));
}

TEST_F(AgentLoop, WhoIsAskedAboutInVainIsRefused) {
  api_.held = {"GET nodes"};
  bind("picky", "nodeSelector: {disk: fast}\ncontainers: [{name: c, image: 'app:1'}]");
  api_.let_go("GET nodes", 0);
  EXPECT_TRUE(comes([&] { return phase("picky") == "Failed"; }));
}

TEST_F(AgentLoop, APodWhoseSandboxIsNotMadeHoldsUpNoOther) {
  runtime_.hold_sandbox_of("stuck");
  bind("stuck");
  bind("web");
  EXPECT_TRUE(comes([&] { return runs("web"); }));
  EXPECT_NE(phase("stuck"), "Running");
  const int renewed = api_.asked["PATCH leases"];
  loop_.run_for(20s);
  EXPECT_EQ(api_.asked["PATCH leases"], renewed + 2);
  runtime_.hold_sandbox_of("");
  EXPECT_TRUE(comes([&] { return runs("stuck"); }));
}

TEST_F(AgentLoop, AStatusThatNobodyTakesIsWrittenAgainAndHoldsUpNoOther) {
  api_.held = {"PATCH pods/status"};
  bind("web");
  EXPECT_TRUE(comes([&] { return api_.asked["PATCH pods/status"] == 1; }));
  loop_.run_for(1min);
  EXPECT_TRUE(comes([&] { return json::get_string(pods_->worker("uid-web")->status(), {"phase"}) == "Running"; }));
  EXPECT_EQ(api_.asked["PATCH pods/status"], 1) << "one at a time";
  api_.let_go("PATCH pods/status", 0);
  bind("api");
  EXPECT_TRUE(comes([&] { return loop_.run_for(1s), runs("web") && runs("api"); }));
}

TEST_F(AgentLoop, WhatOthersWroteOverItsWordOfAPodIsSaidAgain) {
  bind("web");
  ASSERT_TRUE(comes([&] { return runs("web") && readiness("web") == "True"; }));
  const int before = api_.asked["PATCH pods/status"];
  write_over("web", "False");  // As a node controller does that took the node for lost.
  EXPECT_EQ(api_.asked["PATCH pods/status"], before + 1);
  EXPECT_EQ(readiness("web"), "True");
  write_over("web", "True");
  loop_.run_for(1min);
  EXPECT_EQ(api_.asked["PATCH pods/status"], before + 1) << "it stands as it was said";
  write_over("web", "Unknown");
  EXPECT_EQ(api_.asked["PATCH pods/status"], before + 2) << "each time";
}

TEST_F(AgentLoop, AnAddressOfATimeBeforeIsReplacedAndNotAddedTo) {
  const auto last_address = [&](const char* name) {
    const json::Array& told = json::get_array(api_.statuses[name], {"podIPs"});
    return told.empty() ? "" : json::serialize(told.back());
  };
  bind("web");
  ASSERT_TRUE(comes([&] { return runs("web") && readiness("web") == "True"; }));
  const std::string own = last_address("web");
  bind("same", "containers: [{name: c, image: 'app:1'}]", json::Object{{"podIPs", json::Array{*json::parse(own)}}});
  bind("other", "containers: [{name: c, image: 'app:1'}]", json::Object{{"podIPs", json::Array{json::Object{{"ip", "192.168.8.8"}}}}});
  EXPECT_TRUE(comes([&] { return runs("same") && runs("other"); }));
  EXPECT_EQ(last_address("same"), own);
  EXPECT_EQ(last_address("other"), R"({"$patch":"replace"})");
}

TEST_F(AgentLoop, WhatIsWrittenOverWhileAnAnswerIsAwaitedIsSaidAgainAfterIt) {
  bind("web");
  ASSERT_TRUE(comes([&] { return runs("web") && readiness("web") == "True"; }));
  const int before = api_.asked["PATCH pods/status"];
  api_.held = {"PATCH pods/status"};
  write_over("web", "False");
  write_over("web", "False");
  EXPECT_EQ(api_.asked["PATCH pods/status"], before + 1) << "one at a time";
  api_.let_go("PATCH pods/status");
  loop_.run_ready();
  EXPECT_EQ(api_.asked["PATCH pods/status"], before + 2);
}

}  // namespace
}  // namespace berth::node::agent::testing
