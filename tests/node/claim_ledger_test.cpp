// Which claims are prepared for whom, over time.
#include "node/devices/claim_ledger.h"

#include <gtest/gtest.h>

namespace berth::node::devices {
namespace {

ClaimUse claim(const std::string& name, std::set<std::string> drivers = {"gpu"}, const std::string& uid = "") {
  return {{"default", name, uid.empty() ? "uid-" + name : uid}, std::move(drivers)};
}

/// Every claim of the call, each with one CDI device.
json::Value all_prepared(const ClaimCall& call) {
  json::Object claims;
  for (const ClaimId& id : call.claims)
    claims[id.uid] = *json::parse(
        fmt::format(R"({{"devices":[{{"pool_name":"p","device_name":"d-{0}","request_names":["r"],"cdi_device_ids":["{1}/x={0}"]}}]}})",
                    id.name, call.driver));
  return json::Object{{"claims", std::move(claims)}};
}

json::Value said(const std::string& claims) { return *json::parse(fmt::format(R"({{"claims":{}}})", claims)); }

std::string words(const std::vector<ClaimCall>& calls) {
  std::string out;
  for (const ClaimCall& call : calls) {
    out += call.driver + ":";
    for (const ClaimId& id : call.claims) out += " " + id.name;
    out += ";";
  }
  return out;
}

/// Asks all drivers, who do as they are asked.
void prepare(ClaimLedger& ledger, const std::string& pod, const std::vector<ClaimUse>& claims) {
  const auto calls = ledger.use(pod, claims);
  ASSERT_TRUE(calls);
  for (const ClaimCall& call : *calls) ASSERT_TRUE(ledger.prepared(call, all_prepared(call)));
}

TEST(ClaimLedger, EachDriverIsAskedOnceForAllClaimsOfAPod) {
  ClaimLedger ledger;
  const auto calls = ledger.use("p", {claim("a"), claim("b", {"gpu", "nic"})});
  ASSERT_TRUE(calls);
  EXPECT_EQ(words(*calls), "gpu: a b;nic: b;");
  EXPECT_FALSE(ledger.find("default", "b")->is_prepared());
  for (const ClaimCall& call : *calls) EXPECT_TRUE(ledger.prepared(call, all_prepared(call)));
  EXPECT_TRUE(ledger.find("default", "b")->is_prepared());
  EXPECT_EQ(words(*ledger.use("p", {claim("a"), claim("b", {"gpu", "nic"})})), "") << "done again there is nothing to do";
}

TEST(ClaimLedger, AClaimOfSeveralPodsIsPreparedWithTheFirstAndTakenBackWithTheLast) {
  ClaimLedger ledger;
  prepare(ledger, "p", {claim("shared")});
  EXPECT_EQ(words(*ledger.use("q", {claim("shared")})), "");
  EXPECT_EQ(words(ledger.release("p")), "");
  EXPECT_EQ(words(ledger.release("p")), "") << "released it is none of its any more";
  const auto calls = ledger.release("q");
  EXPECT_EQ(words(calls), "gpu: shared;");
  EXPECT_EQ(words(ledger.release("q")), "gpu: shared;") << "until the driver has answered";
  ASSERT_TRUE(ledger.unprepared(calls[0], said(R"({"uid-shared":{}})")));
  EXPECT_EQ(ledger.find("default", "shared"), nullptr);
  EXPECT_EQ(words(ledger.release("q")), "");
  EXPECT_EQ(words(*ledger.use("r", {claim("shared")})), "gpu: shared;") << "who comes later has it prepared anew";
}

TEST(ClaimLedger, ADriverThatFailsPassesOverOrLiesIsAskedAgain) {
  ClaimLedger ledger;
  const ClaimCall call = ledger.use("p", {claim("a"), claim("b")})->front();
  const auto fails = [&](const std::string& claims) {
    const auto taken = ledger.prepared(call, said(claims));
    return taken ? "" : taken.error().message;
  };
  EXPECT_EQ(fails(R"({"uid-a":{"error":"no power"},"uid-b":{}})"), "NodePrepareResources failed for ResourceClaim a: no power");
  EXPECT_EQ(words(*ledger.use("p", {claim("a"), claim("b")})), "gpu: a;") << "b is prepared, and a alone asked for";
  EXPECT_EQ(fails(R"({"uid-b":{}})"), "NodePrepareResources skipped 1 ResourceClaims");
  EXPECT_EQ(fails(R"({"uid-z":{}})"), "NodePrepareResources returned result for unknown claim UID uid-z");
  EXPECT_FALSE(ledger.find("default", "a")->is_prepared());
  const ClaimCall back = ledger.release("p").front();
  const auto refused = ledger.unprepared(back, said(R"({"uid-a":{},"uid-b":{"error":"in use"}})"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "NodeUnprepareResources failed for ResourceClaim b: in use");
  EXPECT_EQ(words(ledger.release("p")), "gpu: b;");
}

TEST(ClaimLedger, WhatWasAskedForAndNeverAnsweredIsTakenBackToo) {
  ClaimLedger ledger;
  (void)ledger.use("p", {claim("a", {"gpu", "nic"})});
  EXPECT_EQ(words(ledger.release("p")), "gpu: a;nic: a;");
}

TEST(ClaimLedger, AClaimMadeAnewWaitsForTheOldOneOfItsName) {
  ClaimLedger ledger;
  prepare(ledger, "p", {claim("a")});
  const auto refused = ledger.use("q", {claim("b"), claim("a", {"gpu"}, "uid-2")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "old ResourceClaim with same name a and different UID uid-a still exists (previous pod force-deleted?!)");
  EXPECT_EQ(ledger.find("default", "b"), nullptr) << "nothing has changed";
  const ClaimCall call = ledger.release("p").front();
  ASSERT_TRUE(ledger.unprepared(call, said(R"({"uid-a":{}})")));
  EXPECT_TRUE(ledger.use("q", {claim("a", {"gpu"}, "uid-2")}));
}

TEST(ClaimLedger, AClaimThatIsTakenBackFromOneDriverIsPreparedThereAnew) {
  ClaimLedger ledger;
  prepare(ledger, "p", {claim("a", {"gpu", "nic"})});
  const auto calls = ledger.release("p");
  ASSERT_TRUE(ledger.unprepared(calls[0], said(R"({"uid-a":{}})")));
  EXPECT_EQ(words(*ledger.use("q", {claim("a", {"gpu", "nic"})})), "gpu: a;");
}

TEST(ClaimLedger, TheNextProcessKnowsWhatThisOneKnew) {
  ClaimLedger before;
  prepare(before, "p", {claim("a")});
  prepare(before, "q", {claim("a"), claim("b")});
  (void)before.use("r", {claim("c")});
  const json::Value checkpoint = *json::parse(json::serialize(before.checkpoint("boot-1")));
  ClaimLedger after;
  ASSERT_TRUE(after.restore(checkpoint, "boot-1"));
  EXPECT_TRUE(json::equal(after.checkpoint("boot-1"), checkpoint));
  EXPECT_EQ(words(*after.use("s", {claim("a"), claim("c")})), "gpu: c;");
  EXPECT_EQ(after.others_than({"p", "s"}), (std::set<std::string>{"q", "r"}));
  EXPECT_EQ(words(after.release("q")), "gpu: b;");
  EXPECT_EQ(after.users("gpu", "p", "d-a"), (std::set<std::string>{"p", "s"}));
}

TEST(ClaimLedger, AMachineStartedAnewHasEverythingPreparedAnew) {
  ClaimLedger before, after;
  prepare(before, "p", {claim("a")});
  ASSERT_TRUE(after.restore(before.checkpoint("boot-1"), "boot-2"));
  EXPECT_EQ(words(*after.use("p", {claim("a")})), "gpu: a;");
  EXPECT_FALSE(ClaimLedger().restore(*json::parse(R"({"devices":[]})"), "boot-1"));
}

TEST(ClaimLedger, AContainerGetsTheDevicesOfTheRequestsThatItNames) {
  const ClaimLedger::Device one{"p", "d", "", {"gpu"}, {}}, all{"p", "d", "", {}, {}};
  EXPECT_TRUE(serves(one, ""));
  EXPECT_TRUE(serves(one, "gpu"));
  EXPECT_TRUE(serves(one, "gpu/small")) << "an alternative of the request";
  EXPECT_FALSE(serves(one, "nic"));
  EXPECT_TRUE(serves(all, "nic"));
}

}  // namespace
}  // namespace berth::node::devices
