// What CDI devices come to where the runtime's CRI does not know them.
#include "node/devices/cdi.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace berth::node::devices {
namespace {

constexpr const char* kSpec = R"({"cdiVersion":"0.6.0","kind":"example.com/gpu","containerEdits":{"env":["DRIVER=1"]},"devices":[
  {"name":"a","containerEdits":{"env":["A=x=y"],"deviceNodes":[{"path":"/dev/a","hostPath":"/dev/null","permissions":"rw"},{"path":"/dev/b"}],
   "mounts":[{"hostPath":"/lib/a","containerPath":"/opt/a","options":["ro","bind"]}]}},
  {"name":"b","containerEdits":{"env":["B=2"]}},
  {"name":"hooked","containerEdits":{"hooks":[{"hookName":"createContainer","path":"/bin/true"}]}}]})";

std::vector<json::Value> specs(std::initializer_list<std::string> texts) {
  std::vector<json::Value> out;
  for (const std::string& text : texts) out.push_back(*json::parse(text));
  return out;
}

TEST(Cdi, VariablesNodesAndMountsOfADeviceAndOnceThoseOfItsSpecification) {
  const auto grant = cdi_edits(specs({kSpec}), {"example.com/gpu=a", "example.com/gpu=b"});
  ASSERT_TRUE(grant) << grant.error().message;
  EXPECT_EQ(grant->environment, (std::map<std::string, std::string>{{"A", "x=y"}, {"B", "2"}, {"DRIVER", "1"}}));
  EXPECT_EQ(json::serialize(json::Value(grant->devices)), R"([{"container_path":"/dev/a","host_path":"/dev/null","permissions":"rw"},)"
                                                          R"({"container_path":"/dev/b","host_path":"/dev/b","permissions":"rwm"}])");
  EXPECT_EQ(json::serialize(json::Value(grant->mounts)), R"([{"container_path":"/opt/a","host_path":"/lib/a","read_only":true}])");
}

TEST(Cdi, WhatCannotBeSaidIsNotLeftOut) {
  EXPECT_EQ(cdi_edits(specs({kSpec}), {"example.com/gpu=hooked"}).error().message,
            "CDI device example.com/gpu=hooked wants hooks, which this container runtime cannot be told of: its CRI has no CDI devices");
  EXPECT_EQ(cdi_edits(specs({kSpec}), {"example.com/gpu=z"}).error().message,
            "unresolvable CDI device example.com/gpu=z: no specification in /etc/cdi or /var/run/cdi has it");
  EXPECT_FALSE(cdi_edits(specs({kSpec}), {"gpu"}));
}

TEST(Cdi, WhatALaterFolderSaysCounts) {
  char pattern[] = "/tmp/berth-cdi.XXXXXX";
  const std::string root = ::mkdtemp(pattern);
  std::filesystem::create_directories(root + "/etc");
  std::filesystem::create_directories(root + "/run");
  std::ofstream(root + "/etc/gpu.json") << kSpec;
  std::ofstream(root + "/run/gpu.yaml") << "kind: example.com/gpu\ndevices:\n- name: b\n  containerEdits: {env: [B=3]}\n";
  std::ofstream(root + "/run/broken.json") << "{";
  std::ofstream(root + "/run/notes.txt") << "kind: example.com/nic";
  const std::vector<std::string> folders = {root + "/etc", root + "/nowhere", root + "/run"};
  const auto read = read_cdi_specs(folders);
  EXPECT_EQ(read.size(), 2U);
  EXPECT_EQ(cdi_edits(read, {"example.com/gpu=b"})->environment.at("B"), "3");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace berth::node::devices
