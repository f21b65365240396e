// Volumes by a driver over its socket: what is asked, what is written beside them, and what the next process makes of it.
#include "node/csi/csi_volumes.h"

#ifdef BERTH_WITH_CRI
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/yaml.h"
#include "net/grpc.h"
#include "net/proto/messages.h"
#include "node/csi/csi_protocol.h"
#include "node/plugins/plugin_watcher.h"

namespace berth::node::csi {
namespace {

using net::proto::Messages;
namespace fs = std::filesystem;

json::Value yaml(std::string_view text) { return *json::parse_yaml("---\n" + std::string(text)); }

class CsiVolumesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fmt::format("{}/berth-csi-{}", testing::TempDir(), ::getpid());
    fs::remove_all(root_);
    fs::create_directories(root_ + "/pods");
    start_driver();
    start();
  }
  void TearDown() override {
    volumes_.reset();
    driver_.reset();
    fs::remove_all(root_);
  }
  void start_driver() {
    driver_ =
        *net::GrpcService::start({.address = "unix://" + root_ + "/csi.sock"},
                                 [this](const std::string& method, const std::string& bytes) { return answer(method.substr(1), bytes); });
  }
  net::GrpcAnswer answer(const std::string& method, const std::string& bytes) {
    const std::string name = method.substr(method.find('/') + 1);
    const auto request = *messages_->decode(method, Messages::Side::kRequest, bytes);
    const std::lock_guard lock(mutex_);
    if (!name.starts_with("NodeGet")) asked_.push_back(name);
    more_.notify_all();
    last_[name] = request;
    if (const auto error = errors_.find(name); error != errors_.end()) return std::unexpected(net::GrpcFailure{error->second, "no"});
    const auto said = said_.find(name);
    return *messages_->encode(method, Messages::Side::kAnswer, yaml(said == said_.end() ? "{}" : said->second));
  }
  void start() {
    volumes_.reset();
    CsiOptions options{.root = root_, .node = "n"};
    options.api = [this](client::Call call) { return api(call); };
    options.changed = [](const std::string&) {};
    options.event = [this](const json::Value&, const std::string&, const std::string& reason, const std::string&) {
      const std::lock_guard lock(mutex_);
      events_.push_back(reason);
    };
    volumes_ = *CsiVolumes::start(clock_, std::move(options));
  }
  Result<json::Value> api(const client::Call& call) {
    const std::lock_guard lock(mutex_);
    const std::string key = call.gvr.resource + "/" + call.name;
    if (call.verb != "get") {
      writes_[call.gvr.resource] = *json::parse(call.body);
      return json::Value(json::Object{});
    }
    const auto found = objects_.find(key);
    if (found == objects_.end()) return fail(ErrorCode::kNotFound, key);
    return found->second;
  }
  Result<void> register_driver() { return volumes_->handler().register_plugin(plugin_, go_on_); }
  Result<agent::PlacedVolume> place() {
    PodVolume volume{pod_, "v"};
    volume.persistent_volume = &volume_;
    volume.claim = &claim_;
    return volumes_->place(volume, go_on_);
  }
  /// What the driver answers that with from now on; 0: it does it.
  void set_error(const std::string& name, int code) {
    const std::lock_guard lock(mutex_);
    errors_[name] = code;
    if (code == 0) errors_.erase(name);
  }
  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }
  /// Until the driver has been asked for that.
  bool wait_for(const std::string& name) {
    std::unique_lock lock(mutex_);
    return more_.wait_for(lock, std::chrono::seconds(20), [&] { return std::ranges::find(asked_, name) != asked_.end(); });
  }

  std::string root_;
  SystemClock clock_;
  const std::atomic<bool> go_on_{false};
  std::unique_ptr<Messages> messages_ = *Messages::of(kCsiProtocol);
  std::unique_ptr<net::GrpcService> driver_;
  std::unique_ptr<CsiVolumes> volumes_;
  plugins::PluginInfo plugin_{"CSIPlugin", "d", "", {"1.0.0"}, "/reg"};
  json::Value pod_ = yaml("{metadata: {name: p, namespace: ns, uid: u}, spec: {}}");
  json::Value volume_ = yaml("{metadata: {name: pv}, spec: {capacity: {storage: 1Gi}, csi: {driver: d, volumeHandle: h}}}");
  json::Value claim_ = yaml("{metadata: {name: c, namespace: ns}, spec: {volumeName: pv}, status: {capacity: {storage: 1Gi}}}");

  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::string> asked_, events_;
  std::map<std::string, json::Value> last_, writes_;
  std::map<std::string, int> errors_;
  std::map<std::string, std::string> said_{
      {"NodeGetCapabilities",
       "{capabilities: [{rpc: {type: STAGE_UNSTAGE_VOLUME}}, {rpc: {type: EXPAND_VOLUME}}, {rpc: {type: GET_VOLUME_STATS}}]}"},
      {"NodeGetInfo", "{node_id: id, max_volumes_per_node: 4}"},
      {"NodeGetVolumeStats",
       "{usage: [{total: 100, used: 40, available: 60, unit: BYTES}, {total: 9, used: 2, available: 7, unit: INODES}]}"}};
  std::map<std::string, json::Value> objects_{{"nodes/n", yaml("{metadata: {name: n, uid: nu}}")},
                                              {"csidrivers/d", yaml("{spec: {attachRequired: false}}")},
                                              {"persistentvolumeclaims/c", claim_},
                                              {"persistentvolumes/pv", volume_}};
};

using Calls = std::vector<std::string>;

TEST_F(CsiVolumesTest, ADriverIsPutIntoTheClusterAndOfAnOtherVersionRefused) {
  plugin_.endpoint = root_ + "/csi.sock";
  plugin_.versions = {"0.3.0"};
  EXPECT_EQ(register_driver().error().message, "CSI driver d: none of the versions [0.3.0] is supported: this node speaks 1.x");
  plugin_.versions = {"0.3.0", "1.2.0"};
  ASSERT_TRUE(register_driver());
  EXPECT_EQ(json::serialize(*json::find(writes_["csinodes"], {"spec", "drivers"})),
            R"([{"name":"d","nodeID":"id","topologyKeys":[],"allocatable":{"count":4}}])");
  auto other = plugin_;
  other.socket = "/other";
  other.versions = {"1.1.0"};
  EXPECT_EQ(volumes_->handler().register_plugin(other, go_on_).error().message,
            "CSI driver d is registered already with a higher version: 1.2");
  volumes_->handler().deregister_plugin(other);
  EXPECT_TRUE(place()) << "the one that is registered is there still";
}

TEST_F(CsiVolumesTest, AVolumeComesAndGoesWithItsRecords) {
  plugin_.endpoint = root_ + "/csi.sock";
  EXPECT_EQ(place().error().message,
            "MountVolume.SetUp failed for volume \"pv\" : driver name d not found in the list of registered CSI drivers");
  ASSERT_TRUE(register_driver());
  const auto placed = place();
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->host_path, root_ + "/pods/u/volumes/kubernetes.io~csi/pv/mount");
  EXPECT_EQ(asked(), (Calls{"NodeStageVolume", "NodePublishVolume"}));
  EXPECT_TRUE(fs::exists(root_ + "/pods/u/volumes/kubernetes.io~csi/pv/vol_data.json"));
  EXPECT_EQ(volumes_->in_use(), std::vector<std::string>{"kubernetes.io/csi/d^h"});
  ASSERT_TRUE(place());
  EXPECT_EQ(asked(), Calls{}) << "it has it";
  ASSERT_TRUE(volumes_->release("u", go_on_));
  volumes_->settle({});
  EXPECT_TRUE(wait_for("NodeUnstageVolume"));
  EXPECT_EQ(asked(), (Calls{"NodeUnpublishVolume", "NodeUnstageVolume"}));
  while (!volumes_->in_use().empty()) std::this_thread::yield();
  EXPECT_FALSE(fs::exists(root_ + "/pods/u/volumes/kubernetes.io~csi/pv"));
  EXPECT_TRUE(find_volumes(root_).empty());
}

TEST_F(CsiVolumesTest, TheNextProcessFindsWhatIsThere) {
  plugin_.endpoint = root_ + "/csi.sock";
  ASSERT_TRUE(register_driver());
  ASSERT_TRUE(place());
  start();
  EXPECT_EQ(find_volumes(root_).size(), 2U);
  ASSERT_TRUE(register_driver());
  asked();
  ASSERT_TRUE(place());
  EXPECT_EQ(asked(), (Calls{"NodeStageVolume", "NodePublishVolume"})) << "what is done already is done at once";
  start();
  volumes_->settle({"another"});
  asked();
  ASSERT_TRUE(register_driver());
  EXPECT_TRUE(wait_for("NodeUnstageVolume"));
  EXPECT_EQ(asked(), (Calls{"NodeUnpublishVolume", "NodeUnstageVolume"})) << "the pod went meanwhile";
}

TEST_F(CsiVolumesTest, WhatIsRefusedLeavesNothingAndWhatIsNotAnsweredItsRecord) {
  plugin_.endpoint = root_ + "/csi.sock";
  ASSERT_TRUE(register_driver());
  set_error("NodeStageVolume", 13);
  EXPECT_EQ(place().error().message, "MountVolume.MountDevice failed for volume \"pv\" : rpc error: code = Internal desc = no");
  EXPECT_TRUE(find_volumes(root_).empty());
  set_error("NodeStageVolume", 14);
  while (!place().error().message.ends_with("code = Unavailable desc = no")) std::this_thread::yield();
  EXPECT_EQ(find_volumes(root_).size(), 1U) << "it may be staged";
}

TEST_F(CsiVolumesTest, GrowsAndTellsItsFigures) {
  plugin_.endpoint = root_ + "/csi.sock";
  ASSERT_TRUE(register_driver());
  ASSERT_TRUE(place());
  json::set(volume_, {"spec", "capacity", "storage"}, json::Value("2Gi"));
  {
    const std::lock_guard lock(mutex_);
    objects_["persistentvolumes/pv"] = volume_;
  }
  ASSERT_TRUE(place());
  EXPECT_TRUE(wait_for("NodeExpandVolume"));
  EXPECT_EQ(json::get_string(last_["NodeExpandVolume"], {"capacity_range", "required_bytes"}), "2147483648");
  std::vector<VolumeFigures> figures;
  while ((figures = volumes_->figures("u")).empty()) std::this_thread::yield();
  EXPECT_EQ(figures[0].claim_name, "c");
  EXPECT_EQ(figures[0].usage.available_bytes, 60U);
  EXPECT_EQ(figures[0].usage.inodes_used, 2U);
  const auto is_told = [this] {
    const std::lock_guard lock(mutex_);
    return !events_.empty();
  };
  while (!is_told()) std::this_thread::yield();
  volumes_.reset();
  EXPECT_EQ(events_, std::vector<std::string>{"FileSystemResizeSuccessful"});
  EXPECT_EQ(json::get_string(writes_["persistentvolumeclaims"], {"status", "capacity", "storage"}), "2Gi");
}

TEST_F(CsiVolumesTest, WhoIsCalledOffDoesNotWait) {
  plugin_.endpoint = root_ + "/csi.sock";
  ASSERT_TRUE(register_driver());
  ASSERT_TRUE(place());
  set_error("NodeUnpublishVolume", 13);
  EXPECT_EQ(volumes_->release("u", go_on_).error().message,
            "UnmountVolume.TearDown failed for volume \"pv\" : rpc error: code = Internal desc = no");
  const std::atomic<bool> is_off{true};
  EXPECT_FALSE(volumes_->release("u", is_off));
  set_error("NodeUnpublishVolume", 0);
  while (!volumes_->release("u", go_on_)) std::this_thread::yield();
}

}  // namespace
}  // namespace berth::node::csi
#endif
