// Gangs in what-ifs: all of one comes back or none, and the answer says which runs and which waits.
#include "tests/whatif/dump.h"

namespace berth::whatif::testing {
namespace {

const char* const kMember = "schedulingGroup: {podGroupName: g}";

/// A gang of three workers of 3 cpus, each on a node of 4; `more` of the PodGroup's spec.
Dump three_workers(const std::string& more = "") {
  Dump dump;
  dump.node("a1", "a").node("a2", "a").node("b1", "b");
  dump.yaml(
      fmt::format("{{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {{namespace: shop, name: g, uid: g}}, spec: "
                  "{{schedulingPolicy: {{gang: {{minCount: 3}}}}{}}}}}",
                  more));
  dump.deployment("work", "3", {{"a1"}, {"a2"}, {"b1"}}, kMember);
  return dump;
}
std::string gang_of(const json::Value& answer) {
  std::string out;
  for (const json::Value& one : json::get_array(answer, {"gangs"}))
    out += fmt::format("{} of {}: {} → {}, {} wait: {};", json::get_string(one, {"gang"}), json::get_int(one, {"needed"}),
                       json::get_int(one, {"runningBefore"}), json::get_int(one, {"running"}), json::get_int(one, {"waiting"}),
                       json::get_string(one, {"verdict"}));
  return out;
}

TEST(Gangs, ALostNodeStopsAGangThatFindsNoPlace) {
  const json::Value answer = three_workers().ask("{changes: [{fail: a1}]}");
  EXPECT_EQ(gang_of(answer), "shop/g of 3: 3 → 2, 1 wait: waits;");
  const std::string message(json::get_string(json::get_array(answer, {"pending"})[0], {"message"}));
  EXPECT_TRUE(
      message.starts_with("gang shop/g waits as a whole: it needs 3 pods at once, 2 stand, and of the 1 that wait 0 would have a "
                          "place: 0/3 nodes are available"))
      << message;
  EXPECT_NE(to_text(answer).find("waits: 2 stand for nothing"), std::string::npos) << to_text(answer);
}

TEST(Gangs, AGroupThatIsAppliedCounts) {
  Dump dump;
  dump.node("a1", "a").deployment("work", "3", {{""}, {""}}, kMember);
  const json::Value answer = dump.ask(
      "{changes: [{apply: {apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {namespace: shop, name: g}, spec: "
      "{schedulingPolicy: {gang: {minCount: 3}}}}}, {scale: shop/work, replicas: 3}]}");
  EXPECT_EQ(json::serialize(answer).find("left out"), std::string::npos) << json::serialize(answer);
}

TEST(Gangs, ItComesBackWholeWhereThereIsRoom) {
  Dump dump = three_workers();
  dump.node("b2", "b");
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(moves(answer), Words{"work-1-0 a1>b2"});
  EXPECT_EQ(gang_of(answer), "shop/g of 3: 3 → 3, 0 wait: runs;");
}

TEST(Gangs, MembersStayInTheDomainOfTheOthers) {
  Dump dump;
  dump.node("a1", "a").node("a2", "a").node("b1", "b", "8");
  dump.yaml(
      "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {namespace: shop, name: g, uid: g}, spec: {schedulingPolicy: "
      "{gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: topology.kubernetes.io/zone}]}}}");
  dump.deployment("work", "3", {{"a1"}, {"a2"}}, kMember);
  EXPECT_EQ(gang_of(dump.ask("{changes: [{drain: a1}]}")), "shop/g of 2: 2 → 1, 1 wait: waits;");
  EXPECT_EQ(gang_of(dump.ask("{changes: [{drain: a1}, {drain: a2}]}")), "shop/g of 2: 2 → 2, 0 wait: runs;")
      << "once nobody holds zone a, both go to zone b";
}

TEST(Gangs, OneThatWaitsGetsNoHalfOfARoom) {
  Dump dump = three_workers();
  dump.yaml(
      "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {namespace: shop, name: h, uid: h}, spec: "
      "{schedulingPolicy: {gang: {minCount: 2}}}}");
  dump.deployment("more", "3", {{""}, {""}}, "schedulingGroup: {podGroupName: h}");
  EXPECT_EQ(gang_of(dump.ask("{changes: [{add: a1, count: 1}]}")), "shop/h of 2: 0 → 0, 2 wait: waits;");
  EXPECT_EQ(gang_of(dump.ask("{changes: [{add: a1, count: 2}]}")), "shop/h of 2: 0 → 2, 0 wait: runs;");
}

TEST(Gangs, CapacityInGangs) {
  Dump dump;
  dump.node("a1", "a").node("a2", "a").node("a3", "a").node("b1", "b").node("b2", "b");
  const std::string pod =
      "{apiVersion: v1, kind: Pod, metadata: {name: w, namespace: shop}, spec: {containers: [{name: c, image: x, "
      "resources: {requests: {cpu: 2}}}]}}";
  json::Value answer = dump.ask("{capacity: {pod: " + pod + ", gang: 4}}");
  EXPECT_EQ(json::get_int(answer, {"capacity", "total"}), 2) << "ten places";
  EXPECT_NE(to_text(answer).find("The cluster can schedule 2 gang(s) of 4 of the pod shop/w."), std::string::npos) << to_text(answer);
  EXPECT_TRUE(
      json::get_string(answer, {"capacity", "reason"}).starts_with("Unschedulable: of the next gang's 4 pods 2 would have a place"));
  answer = dump.ask("{capacity: {pod: " + pod + ", gang: 3, topology: topology.kubernetes.io/zone}}");
  EXPECT_EQ(json::get_int(answer, {"capacity", "total"}), 3) << "two in zone a, one in zone b";
}

}  // namespace
}  // namespace berth::whatif::testing
