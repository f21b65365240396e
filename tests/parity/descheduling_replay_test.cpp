// Recorded cycles are counted as right only when this build evicts the same pods.
#include "parity/descheduling.h"
#include "tests/descheduler/world.h"

namespace berth::descheduler::test {
namespace {

/// Two pods of 2026-01-01 on n1, of which the older goes by PodLifeTime.
json::Value recording(std::string_view expected) {
  json::Value out = yaml(R"(
id: two-pods
now: '2026-01-02T12:00:00Z'
policy:
  apiVersion: descheduler/v1alpha2
  kind: DeschedulerPolicy
  profiles:
  - name: p
    pluginConfig: [{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 86400}}, {name: DefaultEvictor, args: {}}]
    plugins: {deschedule: {enabled: [PodLifeTime]}}
objects:
  nodes:
  - {apiVersion: v1, kind: Node, metadata: {name: n1}}
  - {apiVersion: v1, kind: Node, metadata: {name: n2}}
  pods:
  - {apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: old, uid: u1, creationTimestamp: '2026-01-01T00:00:00Z',
     ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: w}]}, spec: {nodeName: n1, containers: [{name: c, image: a}]},
     status: {phase: Running}}
  - {apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: young, uid: u2, creationTimestamp: '2026-01-02T11:00:00Z',
     ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: w}]}, spec: {nodeName: n1, containers: [{name: c, image: a}]},
     status: {phase: Running}}
)");
  json::set(out, {"expected"}, yaml(expected));
  return out;
}

constexpr std::string_view kOld =
    "{order: exact, failed: [], evicted: [{namespace: shop, name: old, node: n1, profile: p, strategy: PodLifeTime}]}";

TEST(Replay, ARecordedCycleIsDecidedAlike) {
  EXPECT_EQ(replay_descheduler(recording(kOld)), Names{});
  EXPECT_EQ(replay_descheduler(recording("{order: counts, counts: {total: 1, byOwner: {shop ReplicaSet/web: 1}}, always: [shop/old]}")),
            Names{});
}

TEST(Replay, AnotherAnswerIsNoticed) {
  EXPECT_FALSE(replay_descheduler(recording("{order: any, evicted: [], failed: []}")).empty());
  EXPECT_FALSE(replay_descheduler(recording("{order: counts, counts: {total: 2}, sometimes: [shop/old]}")).empty());
  EXPECT_FALSE(replay_descheduler(recording("{order: counts, counts: {byNode: {n2: 1}}, sometimes: [shop/old]}")).empty());
  EXPECT_FALSE(replay_descheduler(recording("{order: counts, counts: {total: 1}, always: [shop/young], sometimes: [shop/old]}")).empty());
  EXPECT_FALSE(replay_descheduler(recording("{order: counts, counts: {total: 1}, sometimes: [shop/young]}")).empty());
  EXPECT_FALSE(replay_descheduler(recording("{policyError: it is refused}")).empty());
  json::Value file = recording(kOld);
  json::set(file, {"refuse"}, json::Array{"shop/old"});
  EXPECT_FALSE(replay_descheduler(file).empty());
  json::set(file, {"expected"}, yaml("{order: exact, evicted: [], failed: [{namespace: shop, name: old, node: n1, message: too late}]}"));
  EXPECT_EQ(replay_descheduler(file), Names{});
}

TEST(Replay, TheWalkInOrderOfNamesIsAcceptedToo) {
  json::Value file = recording("{order: any, evicted: [], failed: []}");
  json::set(file, {"canonical"}, yaml(kOld));
  EXPECT_EQ(replay_descheduler(file), Names{});
}

TEST(Replay, ThatAPolicyIsRefusedCountsAndNotTheWords) {
  json::Value file = recording("{policyError: words of another}");
  json::set(file, {"policy", "profiles"}, yaml("[{name: p, pluginConfig: [{name: NoSuchPlugin}]}]"));
  EXPECT_EQ(replay_descheduler(file), Names{});
  json::set(file, {"expected"}, yaml("{order: exact, evicted: [], failed: []}"));
  EXPECT_EQ(replay_descheduler(file).size(), 1U);
}

TEST(Replay, OnlyRecordedCyclesAreTaken) {
  EXPECT_FALSE(is_descheduler_vector(json::Value("text")));
  EXPECT_EQ(replay_descheduler(json::Object{{"policy", json::Object{}}}).size(), 1U);
}

}  // namespace
}  // namespace berth::descheduler::test
