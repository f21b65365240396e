// By which rules a pod has local storage, and whose it is: each source its own.
#include "model/views/pod_facts.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

struct Read {
  ObjectMeta meta;
  PodFacts facts;
  explicit Read(const std::string& yaml) {
    const json::Value document = json::parse_yaml("# YAML\n" + yaml).value();  // What begins with a brace is JSON.
    meta = ObjectMeta::parse(document);
    facts = PodFacts::parse(document);
  }
  /// "descheduler autoscaler drain", those that find local storage.
  [[nodiscard]] std::string local() const {
    std::string out;
    if (has_local_storage(facts, meta, LocalStorageRule::kDescheduler)) out += "descheduler ";
    if (has_local_storage(facts, meta, LocalStorageRule::kAutoscaler)) out += "autoscaler ";
    if (has_local_storage(facts, meta, LocalStorageRule::kDrain)) out += "drain";
    return out;
  }
};

TEST(PodFacts, LocalStorageIsWhatEachSourceSays) {
  EXPECT_EQ(Read("{spec: {volumes: [{name: v, configMap: {name: c}}]}}").local(), "");
  EXPECT_EQ(Read("{spec: {volumes: [{name: v, hostPath: {path: /x}}]}}").local(), "descheduler autoscaler ");
  EXPECT_EQ(Read("{spec: {volumes: [{name: v, emptyDir: {}}]}}").local(), "descheduler autoscaler drain");
  EXPECT_EQ(Read("{spec: {volumes: [{name: v, emptyDir: {medium: Memory}}]}}").local(), "descheduler drain");
  const std::string named =
      "{metadata: {annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes: 'a,v'}}, "
      "spec: {volumes: [{name: v, emptyDir: {}}]}}";
  EXPECT_EQ(Read(named).local(), "descheduler drain");
}

TEST(PodFacts, WhoseAPodIs) {
  const auto owned = [](std::string_view kind, bool is_controller) {
    return Read(fmt::format("{{metadata: {{ownerReferences: [{{kind: {}, name: o, uid: u, controller: {}}}]}}}}", kind, is_controller))
        .meta;
  };
  EXPECT_TRUE(is_of_daemon_set(owned("DaemonSet", true)));
  EXPECT_FALSE(is_of_daemon_set(owned("DaemonSet", false)));
  EXPECT_FALSE(is_of_daemon_set(owned("Node", true)));
  EXPECT_TRUE(goes_with_its_node(owned("Node", true)));
  EXPECT_FALSE(goes_with_its_node(owned("ReplicaSet", true)));
  const ObjectMeta says = Read("{metadata: {annotations: {cluster-autoscaler.kubernetes.io/daemonset-pod: 'true'}}}").meta;
  EXPECT_TRUE(counts_as_daemon(says));
  EXPECT_FALSE(is_of_daemon_set(says));
  EXPECT_TRUE(is_static(Read("{metadata: {annotations: {kubernetes.io/config.source: file}}}").meta));
  EXPECT_FALSE(is_static(Read("{metadata: {annotations: {kubernetes.io/config.source: api}}}").meta));
}

TEST(PodFacts, OneThatHasEndedForGoodIsFinished) {
  EXPECT_TRUE(Read("{status: {phase: Failed}, spec: {restartPolicy: Always}}").facts.is_finished);
  EXPECT_TRUE(Read("{status: {phase: Succeeded}, spec: {restartPolicy: Never}}").facts.is_finished);
  EXPECT_FALSE(Read("{status: {phase: Succeeded}, spec: {restartPolicy: Always}}").facts.is_finished);
}

}  // namespace
}  // namespace berth::model
