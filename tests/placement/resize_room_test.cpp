// Whether a resize has room where the pod is, and after whose going.
#include "placement/resize_room.h"

#include <gtest/gtest.h>

#include "placement/explain.h"

namespace berth::placement {
namespace {

PodInfoPtr pod(const std::string& name, const std::string& cpu, int priority = 0, const std::string& granted = "",
               const std::string& more = "") {
  std::string status;
  if (!granted.empty())
    status = fmt::format(
        "status: {{containerStatuses: [{{name: c, allocatedResources: {{cpu: '{0}'}}, resources: {{requests: {{cpu: '{0}'}}}}}}]}}",
        granted);
  const auto document = json::parse_yaml(fmt::format(R"(
metadata: {{name: {}, namespace: default, uid: {}}}
spec: {{nodeName: a1, priority: {}, {} containers: [{{name: c, resources: {{requests: {{cpu: '{}'}}}}}}]}}
{}
)",
                                                     name, name, priority, more, cpu, status));
  return PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(*document)), Era::k136);
}

class ResizeRoomTest : public ::testing::Test {
 protected:
  ResizeRoomTest() {
    cluster_.upsert(*json::parse_yaml("kind: Node\nmetadata: {name: a1}\nstatus: {allocatable: {cpu: '8', memory: 8Gi, pods: '10'}}"));
  }
  std::string say(const PodInfoPtr& of) {
    const auto room = room_for_resize(cluster_, *of);
    return room ? words_of(*room) : "";
  }
  PodInfoPtr add(PodInfoPtr one) {
    cluster_.upsert_pod(one);
    return one;
  }
  Cluster cluster_;
};

TEST_F(ResizeRoomTest, APodThatHasWhatItAsksForIsNotAboutToBeResized) {
  EXPECT_EQ(say(add(pod("a", "2"))), "");
  EXPECT_EQ(say(add(pod("b", "2", 0, "2"))), "");
  EXPECT_EQ(say(pod("elsewhere", "2", 0, "1")), "") << "it has no node";
}

TEST_F(ResizeRoomTest, ItWouldFitAfterTheLeastImportantOnesThatAreEnough) {
  add(pod("high", "2", 100));
  add(pod("low", "1"));
  add(pod("middle", "2", 50));
  add(pod("tiny", "100m", -1));
  const auto asks = add(pod("asks", "4", 0, "2"));
  EXPECT_EQ(say(asks),
            "Its resize waits on a1 for cpu: 1.1 more (asks 4, free 2.9 of 8); it would fit after default/tiny (priority -1), "
            "default/low (priority 0) are gone");
  cluster_.remove_pod("default/tiny");
  EXPECT_EQ(say(asks), "Its resize waits on a1 for cpu: 1 more (asks 4, free 3 of 8); it would fit after default/low (priority 0) is gone");
  cluster_.remove_pod("default/low");
  EXPECT_EQ(say(asks), "Its resize has room on a1");
}

TEST_F(ResizeRoomTest, OneThatIsNotNeededStays) {
  add(pod("first", "1", 0));
  add(pod("second", "3", 1));
  const auto asks = add(pod("asks", "7", 0, "2"));
  EXPECT_EQ(say(asks),
            "Its resize waits on a1 for cpu: 3 more (asks 7, free 4 of 8); it would fit after default/second (priority 1) is gone");
}

TEST_F(ResizeRoomTest, OthersCountAsTheNodeHasGrantedThem) {
  add(pod("waits", "6", 0, "1"));
  EXPECT_EQ(say(add(pod("asks", "4", 0, "2"))), "Its resize has room on a1");
}

TEST_F(ResizeRoomTest, MoreThanTheNodeHasNeverFits) {
  add(pod("other", "1"));
  const auto asks = add(pod("asks", "9", 0, "2"));
  EXPECT_EQ(say(asks), "Its resize never has room on a1: cpu (asks 9, the node has 8)");
  const auto room = room_for_resize(cluster_, *asks);
  EXPECT_TRUE(room->after.empty());
}

TEST_F(ResizeRoomTest, APodsOwnAmountsCountInsteadOfItsContainers) {
  const auto document = json::parse_yaml(R"(
metadata: {name: whole, namespace: default, uid: whole}
spec: {nodeName: a1, resources: {requests: {cpu: '6'}}, containers: [{name: c, resources: {requests: {cpu: '1'}}}]}
status: {resources: {requests: {cpu: '2'}}, allocatedResources: {cpu: '2'}}
)");
  const auto whole = add(PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(*document)), Era::k136));
  add(pod("other", "4"));
  EXPECT_EQ(say(whole),
            "Its resize waits on a1 for cpu: 2 more (asks 6, free 4 of 8); it would fit after default/other (priority 0) is gone");
}

TEST_F(ResizeRoomTest, ExplainTellsOfIt) {
  add(pod("other", "5"));
  const auto asks = add(pod("asks", "4", 0, "2"));
  const Explanation explanation = explain(*Framework::create(default_profile(Era::k136)), cluster_, asks);
  ASSERT_TRUE(explanation.resize);
  EXPECT_NE(to_text(explanation, false).find("Its resize waits on a1 for cpu: 1 more"), std::string::npos);
  EXPECT_EQ(json::get_string(to_json(explanation), {"resize", "node"}), "a1");
}

}  // namespace
}  // namespace berth::placement
