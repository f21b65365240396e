// The whole server under kill -9 (SPEC A5; issue 2 "Kill test"): a child process serves HTTPS on a data directory, writes are in flight and
// a watch is open when it is killed; its successor must have every acknowledged write, and the watch resumed must have missed and doubled
// nothing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <future>

#include "cli/roles/server_role.h"
#include "net/client.h"
#include "security/pki.h"
#include "tests/store/store_fixture.h"

namespace berth {
namespace {

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr std::size_t kInFlight = 32;

/// A server in a child process.
struct Child {
  pid_t pid = -1;
  std::string url;

  static Child start(const std::string& data_dir) {
    int ends[2];
    if (::pipe(ends) != 0) return {};
    Child child;
    child.pid = ::fork();
    if (child.pid == 0) {
      cli::ServerFlags flags;
      flags.data_dir = data_dir;
      flags.listen = "127.0.0.1:0";
      cli::Findings findings;
      auto role = cli::ServerRole::start(flags, flags.plan(findings), {});
      std::string text = role ? (*role)->url() : "!" + role.error().message;
      if (::write(ends[1], text.data(), text.size()) < 0) ::_exit(3);
      ::close(ends[1]);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char buffer[1024];
    for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) child.url.append(buffer, static_cast<std::size_t>(n));
    ::close(ends[0]);
    EXPECT_TRUE(child.url.starts_with("https://")) << child.url;
    return child;
  }
  void kill() {
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
  }
};

/// What writers and watcher know, over all rounds.
struct Known {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::int64_t> acknowledged;  ///< Name to resourceVersion.
  std::map<std::string, std::int64_t> watched;
  std::int64_t last_watched = 0;
  std::string rest, error;
  std::size_t in_flight = 0;

  void take_events(std::string_view data) {
    std::lock_guard lock(mutex);
    rest.append(data);
    for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
      auto event = json::parse(std::string_view(rest).substr(0, end));
      if (!event) {
        error = "malformed event";
        continue;
      }
      auto revision = std::stoll("0" + std::string(json::get_string(*event, {"object", "metadata", "resourceVersion"})));
      if (json::get_string(*event, {"type"}) == "ERROR") error = json::serialize(*event);
      if (revision <= last_watched) error = fmt::format("revision {} after {}", revision, last_watched);
      last_watched = revision;
      if (json::get_string(*event, {"type"}) != "ADDED") continue;
      std::string name(json::get_string(*event, {"object", "metadata", "name"}));
      if (!watched.emplace(name, revision).second) error = name + " was added twice";
    }
    changed.notify_all();
  }
};

std::unique_ptr<net::HttpClient> connect(const Child& child, const std::string& data_dir) {
  SystemClock clock;
  auto pki = security::Pki::open({.directory = data_dir + "/pki"}, clock.now());
  EXPECT_TRUE(pki.has_value());
  auto admin = pki->admin(clock.now());
  net::ClientConfig config;
  config.url = child.url;
  config.ca_pem = pki->ca_certificate_pem();
  config.certificate_pem = admin->certificate_pem;
  config.private_key_pem = admin->private_key_pem;
  auto client = net::HttpClient::create(std::move(config));
  EXPECT_TRUE(client.has_value());
  return std::move(*client);
}

net::HttpResponse get(net::HttpClient& client, const std::string& path, const std::string& query = {}) {
  net::HttpRequest request;
  request.method = "GET";
  request.path = path;
  request.query = query;
  std::promise<net::HttpResponse> answer;
  client.send(std::move(request), [&](net::HttpResponse response) { answer.set_value(std::move(response)); });
  return answer.get_future().get();
}

void create(net::HttpClient& client, Known& known, const std::string& name) {
  net::HttpRequest request;
  request.method = "POST";
  request.path = kMaps;
  request.headers.add("Content-Type", "application/json");
  request.body = fmt::format(R"({{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{}"}},"data":{{"k":"{}"}}}})", name,
                             std::string(500, 'v'));
  client.send(std::move(request), [&known, name](net::HttpResponse response) {
    std::lock_guard lock(known.mutex);
    if (response.status == 201) {
      auto body = json::parse(response.body);
      known.acknowledged[name] = std::stoll("0" + std::string(json::get_string(*body, {"metadata", "resourceVersion"})));
    }
    --known.in_flight;
    known.changed.notify_all();
  });
}

void compare(net::HttpClient& client, Known& known) {
  auto list = get(client, kMaps);
  ASSERT_EQ(list.status, 200) << list.body;
  auto document = json::parse(list.body);
  ASSERT_TRUE(document.has_value());
  std::map<std::string, std::int64_t> stored;
  for (const auto& item : json::get_array(*document, {"items"})) {
    std::string name(json::get_string(item, {"metadata", "name"}));
    if (!name.starts_with("kill-")) continue;
    stored[name] = std::stoll(std::string(json::get_string(item, {"metadata", "resourceVersion"})));
    EXPECT_EQ(json::get_string(item, {"data", "k"}).size(), 500U);
  }
  std::unique_lock lock(known.mutex);
  for (const auto& [name, revision] : known.acknowledged) EXPECT_EQ(stored[name], revision) << name << " was acknowledged";
  // Resumed where it ended, the watch comes to the same state.
  bool caught_up = known.changed.wait_for(lock, std::chrono::seconds(20), [&] { return known.watched.size() >= stored.size(); });
  EXPECT_TRUE(caught_up) << known.watched.size() << " of " << stored.size();
  EXPECT_EQ(known.watched, stored);
  EXPECT_EQ(known.error, "");
}

void kill_round(const std::string& data_dir, Known& known, unsigned seed) {
  Child child = Child::start(data_dir);
  ASSERT_TRUE(child.url.starts_with("https://"));
  {
    auto client = connect(child, data_dir);
    if (known.last_watched == 0) {
      auto list = json::parse(get(*client, kMaps).body);
      known.last_watched = std::stoll("0" + std::string(json::get_string(*list, {"metadata", "resourceVersion"})));
    }
    net::HttpRequest request;
    request.method = "GET";
    request.path = kMaps;
    request.query = fmt::format("watch=true&resourceVersion={}", known.last_watched);
    known.rest.clear();
    auto stream = client->stream(std::move(request), {.on_header = [](int, const net::Headers&) {},
                                                      .on_data = [&](std::string_view data) { known.take_events(data); },
                                                      .on_end = [](std::string) {}});
    compare(*client, known);
    std::mt19937 random(seed);
    std::size_t wanted = known.acknowledged.size() + 20 + random() % 100;
    std::unique_lock lock(known.mutex);
    for (std::size_t i = 0; known.acknowledged.size() < wanted && i < 2000; ++i) {
      known.changed.wait(lock, [&] { return known.in_flight < kInFlight; });
      ++known.in_flight;
      lock.unlock();
      create(*client, known, fmt::format("kill-{}-{}", seed, i));
      lock.lock();
    }
    lock.unlock();
    child.kill();
    lock.lock();
    known.changed.wait(lock, [&] { return known.in_flight == 0; });
  }
}

/// BERTH_KILL_ROUNDS sets the number of rounds (`make kill-test`: 200).
TEST(KillServer, NothingAcknowledgedIsLostAndWatchesResume) {
  const char* rounds_text = std::getenv("BERTH_KILL_ROUNDS");
  unsigned rounds = rounds_text != nullptr ? static_cast<unsigned>(std::atoi(rounds_text)) : 3;
  store::TemporaryDirectory directory;
  std::string data_dir = directory.file("data");
  Known known;
  for (unsigned round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) kill_round(data_dir, known, round);
  Child child = Child::start(data_dir);
  {
    auto client = connect(child, data_dir);
    net::HttpRequest request;
    request.method = "GET";
    request.path = kMaps;
    request.query = fmt::format("watch=true&resourceVersion={}", known.last_watched);
    known.rest.clear();
    auto stream = client->stream(std::move(request), {.on_header = [](int, const net::Headers&) {},
                                                      .on_data = [&](std::string_view data) { known.take_events(data); },
                                                      .on_end = [](std::string) {}});
    compare(*client, known);
  }
  child.kill();
  EXPECT_GE(known.acknowledged.size(), rounds * 20U);
}

}  // namespace
}  // namespace berth
