// Addresses and node ports of Services that several API servers on one etcd give away at the same moment.
#include "apiserver/etcd/range_claims.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/etcd_process.h"

namespace berth::apiserver::etcd {
namespace {

class RangeClaimsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (testing_support::etcd_program().empty()) GTEST_SKIP() << "etcd-server is not installed";
    etcd_ = std::make_unique<testing_support::EtcdProcess>();
    for (int i = 0; i < 3; ++i) servers_.push_back(open());
  }
  std::unique_ptr<ServiceClaims> open() {
    store::EtcdOptions options;
    options.servers = {etcd_->url()};
    auto store = store::open_etcd_store(options);
    EXPECT_TRUE(store.has_value()) << store.error().message;
    RangeOptions range;
    range.prefix = "/registry";
    range.service_cidr = "10.96.0.0/24";
    auto claims = open_range_claims(std::shared_ptr<store::SharedStore>(std::move(*store)), range);
    EXPECT_TRUE(claims.has_value()) << claims.error().message;
    return std::move(*claims);
  }
  bool is_free(Claimed what, std::uint32_t index) {
    const auto claimed = servers_[0]->claim(what, index, {"default", "probe"});
    EXPECT_TRUE(claimed.has_value()) << claimed.error().message;
    if (claimed && *claimed) servers_[0]->release(what, index);
    return claimed && claimed->has_value();
  }
  std::unique_ptr<testing_support::EtcdProcess> etcd_;
  std::vector<std::unique_ptr<ServiceClaims>> servers_;
};

TEST_F(RangeClaimsTest, ThreeServersGiveNothingTwice) {
  constexpr int kEach = 15;
  for (const Claimed what : {Claimed::kAddress, Claimed::kPort}) {
    std::mutex mutex;
    std::multiset<std::uint32_t> given;
    std::vector<std::thread> threads;
    for (const auto& server : servers_)
      threads.emplace_back([&, claims = server.get()] {
        for (int i = 0; i < kEach; ++i) {
          const auto claimed = claims->claim(what, std::nullopt, {"default", "web"});
          ASSERT_TRUE(claimed.has_value()) << claimed.error().message;
          ASSERT_TRUE(claimed->has_value());
          const std::lock_guard lock(mutex);
          given.insert(**claimed);
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(given.size(), 3U * kEach);
    EXPECT_EQ(std::set(given.begin(), given.end()).size(), 3U * kEach);
  }
}

TEST_F(RangeClaimsTest, WhatNoServiceHoldsIsFreeInTheEnd) {
  for (const Claimed what : {Claimed::kAddress, Claimed::kPort}) {
    for (const std::uint32_t index : {20U, 21U}) ASSERT_TRUE(servers_[1]->claim(what, index, {"default", "web"})->has_value());
    // Twice is not enough: it may belong to a Service that is on its way.
    for (int i = 0; i < 2; ++i) servers_[2]->repair(what, {20});
    EXPECT_FALSE(is_free(what, 21));
    servers_[2]->repair(what, {20});
    EXPECT_TRUE(is_free(what, 21));
    EXPECT_FALSE(is_free(what, 20));
  }
}

TEST_F(RangeClaimsTest, WhoAppearsBetweenKeepsIt) {
  ASSERT_TRUE(servers_[1]->claim(Claimed::kPort, 30, {"default", "web"})->has_value());
  for (const bool is_held : {false, false, true, false, false}) {
    servers_[2]->repair(Claimed::kPort, is_held ? std::set<std::uint32_t>{30} : std::set<std::uint32_t>{});
    EXPECT_FALSE(is_free(Claimed::kPort, 30));
  }
}

}  // namespace
}  // namespace berth::apiserver::etcd
