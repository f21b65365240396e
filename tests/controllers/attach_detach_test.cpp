// VolumeAttachments over time: made, refused, given back, waited for, given up.
#include "controllers/services.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

class AttachDetachTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api.engine.add(make_attach_detach_controller());
    api.engine.start();
    put_node("n1");
    put_node("n2");
    put_volume("ReadWriteOnce");
    api.put(kinds().persistent_volume_claim, yaml("metadata: {name: c, uid: c}\nspec: {volumeName: v}\n"));
  }
  void settle(Duration time = seconds(5)) { loop.run_for(time); }
  void put_node(const std::string& name, std::string_view status = "", std::string_view spec = "") {
    api.put(kinds().node,
            yaml(fmt::format("metadata: {{name: {}, annotations: {{volumes.kubernetes.io/controller-managed-attach-detach: \"true\"}}}}\n"
                             "spec: {{{}}}\nstatus: {{conditions: [{{type: Ready, status: \"{}\"}}]{}}}\n",
                             name, spec, status.starts_with("down") ? "Unknown" : "True",
                             status.ends_with("used") ? ", volumesInUse: [kubernetes.io/csi/d^h]" : "")));
  }
  void put_volume(std::string_view modes) {
    api.put(
        kinds().persistent_volume,
        yaml(fmt::format("metadata: {{name: v}}\nspec: {{accessModes: [{}], csi: {{driver: d, volumeHandle: h}}, claimRef: {{namespace: "
                         "default, name: c, uid: c}}}}\n",
                         modes)));
  }
  void put_pod(const std::string& name, const std::string& node, std::string_view phase = "Running") {
    api.put(kinds().pod, yaml(fmt::format("metadata: {{name: {}}}\nspec: {{nodeName: \"{}\", volumes: [{{name: a, persistentVolumeClaim: "
                                          "{{claimName: c}}}}]}}\nstatus: {{phase: {}}}\n",
                                          name, node, phase)));
  }
  std::vector<json::Value> attachments() { return api.all(kinds().volume_attachment); }
  /// The attacher at work.
  void answer(std::string_view status) {
    for (json::Value one : attachments()) {
      json::set(one, {"status"}, yaml(status));
      api.put(kinds().volume_attachment, std::move(one));
    }
    settle();
  }
  std::string told(const std::string& node) {
    return json::serialize(json::Value(json::get_array(api.get(kinds().node, node), {"status", "volumesAttached"})));
  }

  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
};

TEST_F(AttachDetachTest, WhatOthersAttachedIsTheirs) {
  for (const char* name : {"csi-by-hand", "attachment", "snapshotter-8e3bb36fda804646cae96ea9b03b4b77d9b692e45ea0ddda23cccc30a6b1c3fe",
                           "xxx-8e3bb36fda804646cae96ea9b03b4b77d9b692e45ea0ddda23cccc30a6b1c3fe"})
    api.put(kinds().volume_attachment,
            yaml(fmt::format("metadata: {{name: {}}}\nspec: {{attacher: d, nodeName: n1, source: {{persistentVolumeName: v}}}}\nstatus: "
                             "{{attached: true}}\n",
                             name)));
  api.put(kinds().volume_attachment,
          yaml("metadata: {name: csi-8e3bb36fda804646cae96ea9b03b4b77d9b692e45ea0ddda23cccc30a6b1c3fe}\nspec: {attacher: d, nodeName: n1, "
               "source: {persistentVolumeName: v}}\nstatus: {attached: true}\n"));
  put_pod("p", "n1");
  settle();
  api.erase(kinds().pod, "default", "p");
  settle(minutes(10));
  EXPECT_EQ(attachments().size(), 4U) << "its own goes";
  for (const json::Value& one : attachments())
    EXPECT_NE(json::get_string(one, {"metadata", "name"}), "csi-8e3bb36fda804646cae96ea9b03b4b77d9b692e45ea0ddda23cccc30a6b1c3fe");
}

TEST_F(AttachDetachTest, ANamesakeThatTheWatchShowsAtOnceHasVolumesOfItsOwn) {
  const auto put_plain = [&] { api.put(kinds().pod, yaml("metadata: {name: p}\nspec: {nodeName: n1}\nstatus: {phase: Running}\n")); };
  put_pod("p", "n1");
  settle();
  EXPECT_EQ(attachments().size(), 1U);
  put_plain();
  settle();
  EXPECT_EQ(attachments().size(), 0U);
  put_pod("p", "n1");
  settle();
  EXPECT_EQ(attachments().size(), 1U);
}

TEST_F(AttachDetachTest, EachAttachmentIsTold) {
  const auto told = [&] {
    return std::ranges::count(api.events, "SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume \"v\"");
  };
  for (int round = 1; round <= 2; ++round) {
    put_pod("p", "n1");
    settle();
    answer("{attached: true}");
    EXPECT_EQ(told(), round);
    answer("{attached: true}");
    EXPECT_EQ(told(), round) << "once";
    api.erase(kinds().pod, "default", "p");
    settle();
    EXPECT_EQ(attachments().size(), 0U);
  }
}

TEST_F(AttachDetachTest, AVolumeIsAttachedToTheNodeOfItsPodsAndDetachedWhenTheNodeHasUnmountedIt) {
  put_pod("waits", "");
  settle();
  EXPECT_TRUE(attachments().empty()) << "it has no node";
  put_pod("p", "n1");
  settle();
  ASSERT_EQ(attachments().size(), 1U);
  EXPECT_EQ(json::get_string(attachments()[0], {"metadata", "name"}),
            "csi-8e3bb36fda804646cae96ea9b03b4b77d9b692e45ea0ddda23cccc30a6b1c3fe");
  EXPECT_EQ(json::get_string(attachments()[0], {"spec", "attacher"}), "d");
  EXPECT_EQ(json::get_string(attachments()[0], {"spec", "source", "persistentVolumeName"}), "v");
  answer("{attachError: {message: no room}}");
  EXPECT_TRUE(api.saw("FailedAttachVolume: AttachVolume.Attach failed for volume \"v\" : no room"));
  EXPECT_EQ(told("n1"), "[]");
  answer("{attached: true}");
  EXPECT_TRUE(api.saw("SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume \"v\""));
  EXPECT_EQ(told("n1"), R"([{"name":"kubernetes.io/csi/d^h","devicePath":""}])");
  put_node("n1", "used");
  put_pod("p", "n1", "Succeeded");
  settle(minutes(30));
  EXPECT_EQ(attachments().size(), 1U) << "a node that is ready says when it has unmounted";
  put_pod("q", "n1");
  settle();
  put_node("n1");
  settle();
  EXPECT_EQ(attachments().size(), 1U) << "another pod has it";
  api.erase(kinds().pod, "default", "q");
  settle();
  EXPECT_TRUE(attachments().empty());
  EXPECT_EQ(told("n1"), "[]");
}

TEST_F(AttachDetachTest, ANodeThatIsDownIsWaitedForAndOneOutOfServiceIsNot) {
  put_pod("p", "n1");
  settle();
  answer("{attached: true}");
  put_node("n1", "down, used");
  api.erase(kinds().pod, "default", "p");
  settle(minutes(5));
  EXPECT_EQ(attachments().size(), 1U);
  settle(minutes(2));
  EXPECT_TRUE(attachments().empty());

  put_pod("p", "n1");
  settle();
  answer("{attached: true}");
  put_node("n1", "down, used", "taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]");
  api.erase(kinds().pod, "default", "p");
  settle();
  EXPECT_TRUE(attachments().empty());
}

TEST_F(AttachDetachTest, OneNodeAtATimeHasIt) {
  put_pod("p", "n1");
  settle();
  put_pod("q", "n2");
  settle();
  EXPECT_EQ(attachments().size(), 1U);
  EXPECT_TRUE(api.saw(
      "FailedAttachVolume: Multi-Attach error for volume \"v\" Volume is already exclusively attached to one node and can't be attached to "
      "another"));
  api.erase(kinds().pod, "default", "p");
  settle();
  ASSERT_EQ(attachments().size(), 1U);
  EXPECT_EQ(json::get_string(attachments()[0], {"spec", "nodeName"}), "n2");
}

TEST_F(AttachDetachTest, WhatIsWantedAgainIsWaitedForAnew) {
  put_pod("p", "n1");
  settle();
  answer("{attached: true}");
  put_node("n1", "down, used");
  for (int i = 0; i < 2; ++i) {
    put_pod("p", "n1");
    settle();
    api.erase(kinds().pod, "default", "p");
    settle(minutes(4));
    EXPECT_EQ(attachments().size(), 1U) << i;
  }
  settle(minutes(3));
  EXPECT_TRUE(attachments().empty());
}

TEST_F(AttachDetachTest, EachTimeIsToldOnce) {
  const auto told_of = [&](std::string_view what) {
    return std::ranges::count_if(api.events, [&](const std::string& event) { return event.starts_with(what); });
  };
  for (int time = 1; time <= 2; ++time) {
    put_pod("p", "n1");
    settle();
    answer("{attached: true}");
    answer("{attached: true}");
    EXPECT_EQ(told_of("SuccessfulAttachVolume"), time);
    put_pod("q", "n2");
    settle(minutes(1));
    EXPECT_EQ(told_of("FailedAttachVolume: Multi-Attach"), time);
    api.erase(kinds().pod, "default", "q");
    settle();
    put_pod("q", "n2");
    settle(minutes(1));
    EXPECT_EQ(told_of("FailedAttachVolume: Multi-Attach"), time + 1) << "it waits a second time";
    api.events.erase(std::ranges::find_if(api.events, [](const std::string& event) { return event.starts_with("FailedAttachVolume"); }));
    api.erase(kinds().pod, "default", "q");
    api.erase(kinds().pod, "default", "p");
    settle();
    EXPECT_TRUE(attachments().empty());
  }
}

TEST_F(AttachDetachTest, OneThatIsSharedIsOnSeveral) {
  put_volume("ReadWriteMany");
  put_pod("p", "n1");
  put_pod("q", "n2");
  settle();
  EXPECT_EQ(attachments().size(), 2U);
}

TEST_F(AttachDetachTest, WhoNeedsNoAttacherAndNodesThatAttachThemselvesAreLeftAlone) {
  api.put(kinds().csi_driver, yaml("metadata: {name: d}\nspec: {attachRequired: false}\n"));
  put_pod("p", "n1");
  settle();
  EXPECT_TRUE(attachments().empty());
  api.put(kinds().csi_driver, yaml("metadata: {name: d}\nspec: {attachRequired: true}\n"));
  settle();
  EXPECT_EQ(attachments().size(), 1U);
  api.put(kinds().node, yaml("metadata: {name: n3}\n"));
  put_volume("ReadWriteMany");
  put_pod("q", "n3");
  settle();
  EXPECT_EQ(attachments().size(), 1U);
}

TEST_F(AttachDetachTest, WhatIsThereAtTheStartIsTakenOverAndOthersOnesAreNotTouched) {
  api.put(kinds().volume_attachment,
          yaml("metadata: {name: mine}\nspec: {attacher: d, nodeName: n1, source: {persistentVolumeName: v}}\n"));
  settle();
  EXPECT_EQ(attachments().size(), 1U);
  api.put(kinds().volume_attachment, yaml("metadata: {name: csi-8e3bb36fda804646cae96ea9b03b4b77d9b692e45ea0ddda23cccc30a6b1c3fe}\n"
                                          "spec: {attacher: d, nodeName: gone, source: {persistentVolumeName: v}}\n"));
  settle();
  EXPECT_EQ(attachments().size(), 1U) << "its node is gone";
}

TEST(VolumeExpander, WhatTheBuiltInProvisionerMadeGrowsHere) {
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
  api.engine.add(make_volume_expander());
  api.engine.start();
  api.put(kinds().persistent_volume,
          yaml("metadata: {name: v, annotations: {pv.kubernetes.io/provisioned-by: berth.dev/local}}\n"
               "spec: {capacity: {storage: 1Gi}, hostPath: {path: /v}, claimRef: {namespace: default, name: c}}\n"));
  const auto claim = [&](const char* wanted, const char* has) {
    api.put(kinds().persistent_volume_claim,
            yaml(fmt::format("metadata: {{name: c}}\nspec: {{volumeName: v, resources: {{requests: {{storage: {}}}}}}}\nstatus: {{phase: "
                             "Bound, capacity: {{storage: {}}}}}\n",
                             wanted, has)));
    loop.run_for(std::chrono::seconds(5));
    return fmt::format("{} {}", json::get_string(api.get(kinds().persistent_volume, "v"), {"spec", "capacity", "storage"}),
                       json::get_string(api.get(kinds().persistent_volume_claim, "c"), {"status", "capacity", "storage"}));
  };
  EXPECT_EQ(claim("1Gi", "1Gi"), "1Gi 1Gi");
  EXPECT_TRUE(api.events.empty());
  EXPECT_EQ(claim("2Gi", "1Gi"), "2Gi 2Gi");
  EXPECT_EQ(claim("3Gi", "2Gi"), "3Gi 3Gi");
  EXPECT_EQ(claim("4Gi", "3Gi"), "4Gi 4Gi");
  EXPECT_EQ(std::ranges::count(api.events, "VolumeResizeSuccessful: Resize volume succeeded"), 3);
}

TEST(VolumeExpander, SaysOnceASizeWhoHasToDoIt) {
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
  api.engine.add(make_volume_expander());
  api.engine.start();
  api.put(kinds().persistent_volume, yaml("metadata: {name: v}\nspec: {csi: {driver: d, volumeHandle: h}}\n"));
  const auto put = [&](const char* wanted) {
    api.put(kinds().persistent_volume_claim,
            yaml(fmt::format(
                "metadata: {{name: c}}\nspec: {{volumeName: v, resources: {{requests: {{storage: {}}}}}}}\nstatus: {{phase: Bound, "
                "capacity: {{storage: 1Gi}}}}\n",
                wanted)));
    loop.run_for(seconds(5));
  };
  put("1Gi");
  EXPECT_TRUE(api.events.empty());
  put("2Gi");
  put("2Gi");
  EXPECT_EQ(api.events, std::vector<std::string>{"ExternalExpanding: waiting for an external controller to expand this PVC"});
  put("3Gi");
  EXPECT_EQ(api.events.size(), 2U);
}

}  // namespace
}  // namespace berth::controllers
