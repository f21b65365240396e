// Writes whose answers are lost on the way back, while others go on writing: each is told what became of it, and happens once.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "tests/store/any_store.h"

namespace berth::store {
namespace {

/// Between a store and its etcd. While it is deaf, what etcd answers goes nowhere, and a connection that lost something loses all that
/// follows too, as with TCP: nobody hears the end of an answer whose beginning is lost. Then all connections are ended.
class Relay {
 public:
  explicit Relay(int target) : target_(target) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listener_, 16);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    stopping_ = true;
    thread_.join();
    ::close(listener_);
  }
  Relay(const Relay&) = delete;
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void become_deaf() { is_deaf_ = true; }
  void heal() {
    ends_all_ = true;
    is_deaf_ = false;
  }

 private:
  struct Pair {
    int client, server;
    bool has_lost;
  };
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
  void accept() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(target_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(client);
      ::close(server);
      return;
    }
    pairs_.push_back({client, server, false});
  }
  /// False: one side has ended.
  bool pass(int from, int to, bool swallows) {
    std::array<char, 65536> buffer;
    const auto size = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size <= 0) return false;
    for (ssize_t sent = 0; !swallows && sent < size;) {
      const auto more = ::send(to, buffer.data() + sent, static_cast<std::size_t>(size - sent), MSG_NOSIGNAL);
      if (more <= 0) return false;
      sent += more;
    }
    return true;
  }
  void end(std::size_t i) {
    ::close(pairs_[i].client);
    ::close(pairs_[i].server);
    pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void run() {
    while (!stopping_) {
      if (ends_all_.exchange(false))
        while (!pairs_.empty()) end(0);
      std::vector<pollfd> fds{{listener_, POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        fds.push_back({pair.client, POLLIN, 0});
        fds.push_back({pair.server, POLLIN, 0});
      }
      ::poll(fds.data(), fds.size(), 10);
      for (std::size_t i = pairs_.size(); i-- > 0;) {
        const bool client_speaks = fds[1 + 2 * i].revents != 0, server_speaks = fds[2 + 2 * i].revents != 0;
        Pair& pair = pairs_[i];
        if (server_speaks && is_deaf_) pair.has_lost = true;
        if ((client_speaks && !pass(pair.client, pair.server, false)) || (server_speaks && !pass(pair.server, pair.client, pair.has_lost)))
          end(i);
      }
      if (fds[0].revents != 0) accept();
    }
    while (!pairs_.empty()) end(0);
  }

  const int target_;
  int listener_ = -1, port_ = 0;
  std::vector<Pair> pairs_;
  std::atomic<bool> is_deaf_{false}, ends_all_{false}, stopping_{false};
  std::thread thread_;
};

constexpr const char* kKey = "/registry/pods/a/p";

class LostAnswers : public testing::Test {
 protected:
  void SetUp() override {
    if (testing_support::etcd_program().empty()) GTEST_SKIP() << "etcd-server is not installed";
    others_ = std::make_unique<EtcdAny>();
    relay_ = std::make_unique<Relay>(std::stoi(others_->process().url().substr(std::string("http://127.0.0.1:").size())));
    EtcdOptions options;
    options.servers = {relay_->url()};
    auto opened = open_etcd_store(options);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    store_ = std::move(*opened);
    start_ = *others_->put("/registry/start", "", 0);
    store_->follow(start_, hearer_);
    // Its first write makes what all later ones compare.
    ASSERT_EQ(store_->write_and_wait({"/registry/first", make_bytes("1"), 0, {}}).verdict, WriteVerdict::kDone);
  }
  void TearDown() override { store_.reset(); }

  /// Sends the write, and lets `meanwhile` go on once it has happened; its answer comes after that.
  WriteAnswer lose_answer(SharedWrite write, const std::function<bool()>& has_happened, const std::function<void()>& meanwhile) {
    relay_->become_deaf();
    std::promise<WriteAnswer> answer;
    store_->write(std::move(write), [&](WriteAnswer given) { answer.set_value(std::move(given)); });
    for (int tries = 0; tries < 20'000 && !has_happened(); ++tries) ::poll(nullptr, 0, 1);
    EXPECT_TRUE(has_happened());
    meanwhile();
    relay_->heal();
    return answer.get_future().get();
  }
  /// A machine that takes more than kWriteSeconds to connect anew may not know; it never says anything wrong.
  static void expect_done(const WriteAnswer& answer, Revision revision) {
    if (answer.verdict == WriteVerdict::kUnknown) GTEST_SKIP() << "this machine is too slow: " << answer.message;
    EXPECT_EQ(answer.verdict, WriteVerdict::kDone) << answer.message;
    EXPECT_EQ(answer.revision, revision);
  }
  std::optional<std::pair<std::string, Revision>> present() {
    auto live = others_->live();
    const auto found = live.find(kKey);
    return found == live.end() ? std::nullopt : std::optional(found->second);
  }
  bool holds(const std::string& value) {
    const auto now = present();
    return now && now->first == value;
  }

  std::unique_ptr<EtcdAny> others_;
  std::unique_ptr<Relay> relay_;
  Hearer hearer_;
  std::unique_ptr<SharedStore> store_;
  Revision start_ = 0;
};

TEST_F(LostAnswers, ACreationThatSomebodyDeletedIsNotMadeAgain) {
  Revision made = 0;
  const auto answer = lose_answer(
      {kKey, make_bytes("ours"), 0, {}}, [&] { return holds("ours"); },
      [&] {
        made = present()->second;
        ASSERT_TRUE(others_->remove(kKey, made));
      });
  EXPECT_FALSE(present().has_value());
  expect_done(answer, made);
}

TEST_F(LostAnswers, AnUpdateThatSomebodyOverwroteIsDone) {
  const auto first = *others_->put(kKey, "1", 0);
  Revision made = 0;
  const auto answer = lose_answer(
      {kKey, make_bytes("ours"), first, {}}, [&] { return holds("ours"); },
      [&] {
        made = present()->second;
        ASSERT_TRUE(others_->put(kKey, "3", made));
      });
  EXPECT_TRUE(holds("3"));
  expect_done(answer, made);
}

TEST_F(LostAnswers, ADeletionIsOnesOwnThoughTheKeyIsThereAgain) {
  const auto first = *others_->put(kKey, "1", 0);
  const auto answer = lose_answer(
      {kKey, nullptr, std::nullopt, {}}, [&] { return !present(); }, [&] { ASSERT_TRUE(others_->put(kKey, "new", 0)); });
  EXPECT_TRUE(holds("new"));
  expect_done(answer, first + 1);
}

/// The write does not get to etcd: somebody else's is first.
TEST_F(LostAnswers, AnothersDeletionIsNotOnesOwn) {
  const auto first = *others_->put(kKey, "1", 0);
  others_->process().pause();
  std::promise<WriteAnswer> answer;
  store_->write({kKey, nullptr, first, {}}, [&](WriteAnswer given) { answer.set_value(std::move(given)); });
  relay_->heal();  // Ends the connection; etcd may have the request or not.
  others_->process().resume();
  const auto theirs = others_->remove(kKey, first);
  const auto given = answer.get_future().get();
  // One of the two has deleted it.
  const bool is_ours = given.verdict == WriteVerdict::kDone;
  EXPECT_TRUE(given.verdict == WriteVerdict::kUnknown || is_ours != theirs.has_value()) << given.message;
}

TEST(FullEtcd, StillDeletes) {
  if (testing_support::etcd_program().empty()) GTEST_SKIP() << "etcd-server is not installed";
  EtcdAny etcd({"--quota-backend-bytes", "3000000"});
  const auto first = etcd.put(kKey, "1", 0);
  std::optional<Revision> written = first;
  for (int i = 0; i < 1000 && written; ++i) {  // It looks at its size each time it syncs.
    const auto answer = etcd.store().write_and_wait({"/registry/fill" + std::to_string(i), make_bytes(std::string(700'000, 'x')), 0, {}});
    written = answer.verdict == WriteVerdict::kDone ? std::optional(answer.revision) : std::nullopt;
  }
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(etcd.store().write_and_wait({"/registry/one-more", make_bytes("1"), 0, {}}).verdict, WriteVerdict::kRejected);
  EXPECT_TRUE(etcd.remove(kKey, first).has_value());
}

}  // namespace
}  // namespace berth::store
