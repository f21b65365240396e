// Which revisions of a node say no more than that it lives.
#include "client/heartbeats.h"

#include <gtest/gtest.h>

namespace berth::client {
namespace {

const std::string kNode =
    R"({"metadata":{"name":"n1","uid":"u1","resourceVersion":"99","labels":{"zone":"a","time":"day","lastHeartbeatTime":"x"},"annotations":{"note":"\"time\":\"1\""},)"
    R"("managedFields":[{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-11-29T14:00:00Z","fieldsType":"FieldsV1"}]},)"
    R"("spec":{"taints":[{"key":"k","effect":"NoSchedule","timeAdded":"2026-11-29T14:00:00Z"}]},"status":{"conditions":[)"
    R"({"type":"Ready","status":"True","lastHeartbeatTime":"2026-11-29T14:00:00Z","lastTransitionTime":"2026-11-29T13:00:00Z"},)"
    R"({"type":"DiskPressure","status":"False","lastHeartbeatTime":"2026-11-29T14:00:00Z"}],"capacity":{"cpu":"4"}}})";

/// kNode with `from` replaced by `to` wherever it stands.
std::string with(std::string_view from, std::string_view to, std::string text = kNode) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  EXPECT_NE(text, kNode);
  return text;
}
bool is_heartbeat(const std::string& before, const std::string& after) { return client::is_heartbeat(Object(before), Object(after)); }

TEST(Heartbeats, TimesAndTheRevisionAloneAreOne) {
  EXPECT_TRUE(is_heartbeat(kNode, kNode));
  const std::string later = with(R"("lastHeartbeatTime":"2026-11-29T14:00)", R"("lastHeartbeatTime":"2026-11-29T14:05)");
  EXPECT_TRUE(is_heartbeat(kNode, later));
  const std::string revised = with(R"("resourceVersion":"99")", R"("resourceVersion":"100")", later);
  EXPECT_TRUE(is_heartbeat(kNode, revised)) << "revisions have several lengths";
  EXPECT_TRUE(is_heartbeat(revised, kNode));
  const std::string managed = with(R"(,"time":"2026-11-29T14:00:00Z")", R"(,"time":"2026-11-29T14:05:00Z")", revised);
  EXPECT_TRUE(is_heartbeat(kNode, managed));
}

TEST(Heartbeats, WhateverElseChangesIsMore) {
  const std::vector<std::pair<std::string_view, std::string_view>> changes = {
      {R"("status":"True")", R"("status":"Unknown")"},
      {R"("status":"False")", R"("status":"Falsy")"},
      {R"("lastTransitionTime":"2026-11-29T13:)", R"("lastTransitionTime":"2026-11-29T14:)"},
      {R"("timeAdded":"2026-11-29T14:00)", R"("timeAdded":"2026-11-29T14:05)"},
      {R"("cpu":"4")", R"("cpu":"8")"},
      {R"("cpu":"4")", R"("cpu":"4","pods":"1")"},
      {R"("zone":"a")", R"("zone":"b")"},
      {R"("time":"day")", R"("time":"night")"},
      {R"("lastHeartbeatTime":"x")", R"("lastHeartbeatTime":"y")"},
      {R"("note":"\"time\":\"1\"")", R"("note":"\"time\":\"2\"")"},
      {R"("uid":"u1")", R"("uid":"u2")"},
      {R"("uid":"u1")", R"("uid":"u1","deletionTimestamp":"2026-11-29T14:00:00Z")"},
      {R"("manager":"kubelet")", R"("manager":"kubectl")"},
      {R"("effect":"NoSchedule")", R"("effect":"NoExecute")"},
  };
  for (const auto& [from, to] : changes) {
    const std::string changed = with(from, to);
    EXPECT_FALSE(is_heartbeat(kNode, changed)) << to;
    EXPECT_FALSE(is_heartbeat(changed, kNode)) << to;
    // Nor beside a heartbeat, wherever the two stand.
    const std::string both = with(R"("lastHeartbeatTime":"2026-11-29T14:00)", R"("lastHeartbeatTime":"2026-11-29T14:05)", changed);
    EXPECT_FALSE(is_heartbeat(kNode, both)) << to;
  }
}

}  // namespace
}  // namespace berth::client
