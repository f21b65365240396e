// etcd snapshots: tests/model/etcd_snapshot.db was saved by etcdctl 3.4; nodes, pods, a ReplicaSet and a Deployment as protobuf, a
// Namespace as JSON, a deleted key, a value of another program, one that is encrypted, one of a kind that nobody knows.
#include "model/etcd_snapshot.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/source_dir.h"

namespace berth::model {
namespace {

std::string snapshot() {
  std::ifstream in(std::filesystem::path(berth::testing::source_dir()) / "tests/model/etcd_snapshot.db", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(EtcdSnapshot, HasThePresentStateOfEveryObject) {
  const std::string bytes = snapshot();
  ASSERT_TRUE(is_etcd_snapshot(bytes));
  std::map<std::string, std::vector<json::Value>> found;
  const auto notes = read_etcd_snapshot(
      bytes, [&](json::Value object) { found[std::string(json::get_string(object, {"kind"}))].push_back(std::move(object)); });
  ASSERT_TRUE(notes) << notes.error().message;
  EXPECT_EQ(found["Node"].size(), 2U);
  EXPECT_EQ(found["Pod"].size(), 4U) << "a deleted key came back, or one was lost";
  EXPECT_EQ(found["Deployment"].size(), 1U);
  EXPECT_EQ(found["ReplicaSet"].size(), 1U);
  EXPECT_EQ(found["Namespace"].size(), 1U);
  EXPECT_TRUE(json::get_bool(found["Node"].front(), {"spec", "unschedulable"}));
  EXPECT_EQ(json::get_int(found["Deployment"].front(), {"spec", "replicas"}), 2);
  EXPECT_EQ(json::get_string(found["Deployment"].front(), {"apiVersion"}), "apps/v1");
  EXPECT_FALSE(json::get_string(found["Pod"].front(), {"metadata", "resourceVersion"}).empty());
  EXPECT_EQ(notes->encrypted, 1U);
  EXPECT_EQ(notes->others, 1U);
  EXPECT_EQ(notes->unknown, std::vector<std::string>{"snap/v1x Snapshot"});
  EXPECT_EQ(sentences_of(*notes).size(), 2U);
}

TEST(EtcdSnapshot, OneThatIsCutOffIsSaidToBe) {
  const std::string bytes = snapshot();
  for (const std::size_t size : {std::size_t{5000}, std::size_t{30000}, bytes.size() - 5000}) {
    const auto read = read_etcd_snapshot(std::string_view(bytes).substr(0, size), [](const json::Value&) {});
    ASSERT_FALSE(read) << size;
    EXPECT_NE(read.error().message.find("cut off"), std::string::npos) << read.error().message;
  }
  EXPECT_FALSE(is_etcd_snapshot("kind: List"));
  EXPECT_FALSE(is_etcd_snapshot(""));
}

TEST(EtcdSnapshot, DamageIsAnErrorOrLeavesObjectsOut) {
  const std::string bytes = snapshot();
  for (std::size_t at = 0; at < bytes.size(); at += 61) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    std::size_t objects = 0;
    (void)read_etcd_snapshot(damaged, [&](const json::Value&) { ++objects; });
    EXPECT_LE(objects, 12U) << at;
  }
}

}  // namespace
}  // namespace berth::model
