// An etcd that contradicts itself, answers without end or by the megabyte: the store says so within its time, and nothing ends the process.
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "net/grpc.h"
#include "store/shared.h"
#include "tests/support/usage.h"

namespace berth::store::testing {
namespace {

using berth::test::comes_true;

// The few messages of etcdserverpb that are said here, as bytes (src/store/etcd/rpc.proto).
std::string number(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string field(int id, std::uint64_t value) { return number(static_cast<std::uint64_t>(id) << 3) + number(value); }
std::string field(int id, const std::string& bytes) {
  return number(static_cast<std::uint64_t>(id) << 3 | 2) + number(bytes.size()) + bytes;
}
std::string header(std::uint64_t revision) { return field(1, field(3, revision)); }
std::string key_value(const std::string& key, const std::string& value, std::uint64_t revision = 5) {
  return field(1, key) + field(2, revision) + field(3, revision) + field(4, std::uint64_t{1}) + field(5, value);
}
std::string range(const std::vector<std::string>& kvs, bool more) {
  std::string out = header(10);
  for (const std::string& kv : kvs) out += field(2, kv);
  return out + field(3, std::uint64_t{more});
}

class HostileEtcd : public ::testing::Test {
 protected:
  using Answers = std::function<net::GrpcAnswer(const std::string& method, const std::string& request)>;
  void SetUp() override {
    auto started = net::GrpcService::start({}, [this](const std::string& method, const std::string& request) -> net::GrpcAnswer {
      if (method.starts_with("/etcdserverpb.Maintenance/")) return header(10);
      ++asked;
      const std::lock_guard lock(mutex_);
      return answers_ ? answers_(method, request) : net::GrpcAnswer(header(10));
    });
    if (!started) GTEST_SKIP() << "built without gRPC";
    service_ = std::move(*started);
    EtcdOptions options;
    options.servers = {fmt::format("http://127.0.0.1:{}", service_->port())};
    options.most_answer_bytes = 1U << 20;
    auto store = open_etcd_store(options);
    if (!store && store.error().message.contains("built without etcd")) GTEST_SKIP() << "built without etcd";
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
  }
  void say(Answers answers) {
    const std::lock_guard lock(mutex_);
    answers_ = std::move(answers);
  }
  /// What a write comes to while the store is closed, once etcd was asked so often.
  WriteAnswer write_and_close(int times) {
    std::promise<WriteAnswer> answer;
    auto future = answer.get_future();
    store_->write({"/registry/a", make_bytes("{}"), 0, {}}, [&](WriteAnswer given) { answer.set_value(std::move(given)); });
    EXPECT_TRUE(comes_true([&] { return asked >= times; }));
    store_.reset();
    return future.get();
  }

  std::atomic<int> asked{0};
  std::mutex mutex_;
  Answers answers_;
  std::unique_ptr<net::GrpcService> service_;
  std::unique_ptr<SharedStore> store_;
};

TEST_F(HostileEtcd, TransactionsThatShowNothingEndNoProcess) {
  say([](const std::string& method, const std::string&) -> net::GrpcAnswer {
    if (method.ends_with("/LeaseGrant")) return header(10) + field(2, std::uint64_t{7}) + field(3, std::uint64_t{60});
    return header(10);  // Not succeeded, and no key.
  });
  EXPECT_FALSE(store_->take_compaction_turn(3, 9)->is_mine);
  const auto answer = write_and_close(4);
  EXPECT_EQ(answer.verdict, WriteVerdict::kRejected);
  EXPECT_NE(answer.message.find("it neither grants a lease nor keeps a key on one"), std::string::npos) << answer.message;
}

TEST_F(HostileEtcd, LeasesThatAreNoneAreNotAskedForWithoutEnd) {
  say([](const std::string&, const std::string&) -> net::GrpcAnswer { return header(10); });
  const auto answer = write_and_close(3);
  EXPECT_EQ(answer.verdict, WriteVerdict::kRejected);
  EXPECT_NE(answer.message.find("it neither grants a lease"), std::string::npos) << answer.message;
}

/// Its transactions fail though all they compare holds: asked again with pauses, not as fast as it answers.
TEST_F(HostileEtcd, AWriteThatIsRefusedForNothingIsTriedWithPauses) {
  std::atomic<int> version{0};
  say([&](const std::string& method, const std::string& request) -> net::GrpcAnswer {
    if (method.ends_with("/LeaseGrant")) return header(10) + field(2, std::uint64_t{7}) + field(3, std::uint64_t{60});
    if (request.contains("/registry/a")) return header(10);
    ++version;
    return header(10) + field(2, std::uint64_t{1});  // The fence is raised.
  });
  const auto start = std::chrono::steady_clock::now();
  const auto answer = write_and_close(30);
  EXPECT_EQ(answer.verdict, WriteVerdict::kRejected);
  EXPECT_NE(answer.message.find("refuses a write though it holds what the write expects"), std::string::npos) << answer.message;
  EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
}

TEST_F(HostileEtcd, ReadingEndsThoughPagesDoNot) {
  const auto error_of = [&](Answers answers) {
    say(std::move(answers));
    std::size_t taken = 0;
    const auto read = store_->read([&](SharedRecord) -> Result<void> {
      ++taken;
      return {};
    });
    EXPECT_FALSE(read);
    EXPECT_LT(taken, 10U);
    return read ? std::string() : read.error().message;
  };
  EXPECT_NE(error_of([](auto&, auto&) {
              return net::GrpcAnswer(range({key_value("/registry/a", "{}")}, true));
            }).find(R"(asked for what is below /registry/, it answers "/registry/a" behind "/registry/a")"),
            std::string::npos);
  EXPECT_NE(error_of([](auto&, auto&) { return net::GrpcAnswer(range({key_value("/elsewhere/a", "{}")}, false)); }).find("/elsewhere/a"),
            std::string::npos);
  EXPECT_NE(error_of([](auto&, auto&) {
              return net::GrpcAnswer(range({key_value("/registry/b", "{}"), key_value("/registry/a", "{}")}, false));
            }).find(R"("/registry/a" behind "/registry/b")"),
            std::string::npos);
  EXPECT_NE(error_of([](auto&, auto&) {
              return net::GrpcAnswer(range({key_value("/registry/b", std::string(3U << 20, 'x'))}, false));
            }).find("larger than max"),
            std::string::npos);
}

/// Pages that are larger than what is taken at once are asked for in smaller ones.
TEST_F(HostileEtcd, LargePagesAreReadInSmallerOnes) {
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) keys.push_back(fmt::format("/registry/{:02}", i));
  say([&](const std::string&, const std::string& request) -> net::GrpcAnswer {
    // RangeRequest: key 1, range_end 2, limit 3; the limit is what is behind the prefix's end.
    std::vector<std::string> page;
    std::size_t from = 0;
    const auto key_size = static_cast<std::size_t>(request[1]);
    const std::string key = request.substr(2, key_size);
    const std::size_t limit_at = 2 + key_size + 2 + static_cast<std::size_t>(request[2 + key_size + 1]) + 1;
    std::size_t limit = static_cast<unsigned char>(request[limit_at]) & 0x7f;
    if ((static_cast<unsigned char>(request[limit_at]) & 0x80) != 0)
      limit += static_cast<std::size_t>(static_cast<unsigned char>(request[limit_at + 1])) << 7;
    while (from < keys.size() && keys[from] < key) ++from;
    for (std::size_t i = from; i < keys.size() && page.size() < limit; ++i) page.push_back(key_value(keys[i], std::string(100'000, 'x')));
    return range(page, from + page.size() < keys.size());
  });
  std::vector<std::string> read_keys;
  const auto read = store_->read([&](SharedRecord record) -> Result<void> {
    read_keys.push_back(record.key);
    return {};
  });
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read_keys, keys);
}

}  // namespace
}  // namespace berth::store::testing
