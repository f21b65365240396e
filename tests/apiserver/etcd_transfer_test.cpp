// Whole clusters from SQLite to etcd and back (docs/etcd.md "Moving").
#include <gtest/gtest.h>

#include <filesystem>

#include "apiserver/etcd/transfer.h"
#include "model/protobuf/protobuf.h"
#include "tests/support/etcd_process.h"

namespace berth::apiserver::etcd {
namespace {

namespace fs = std::filesystem;

class Transfer : public testing::Test {
 protected:
  void SetUp() override {
    if (testing_support::etcd_program().empty()) GTEST_SKIP() << "etcd-server is not installed";
    std::string pattern = (fs::temp_directory_path() / "berth-transfer-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    etcd_ = std::make_unique<testing_support::EtcdProcess>();
    store::EtcdOptions options;
    options.servers = {etcd_->url()};
    store_ = *store::open_etcd_store(options);
  }
  void TearDown() override {
    store_.reset();
    std::error_code none;
    if (!directory_.empty()) fs::remove_all(directory_, none);
  }
  std::string file(const std::string& name) const { return directory_ + "/" + name; }

  /// A snapshot of an SQLite store with so many config maps and one custom object.
  std::string sqlite_snapshot(int count) {
    auto made = store::open_sqlite_store({file("store.db"), true});
    std::vector<store::Record> records;
    const auto add = [&](std::string key, std::string value) {
      const auto revision = static_cast<store::Revision>(records.size() + 1);
      records.push_back({revision, revision, 0, std::move(key), make_bytes(std::move(value))});
    };
    for (int i = 0; i < count; ++i)
      add(make_key("", "configmaps", "default", fmt::format("c{}", i)),
          fmt::format(
              R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c{0}","namespace":"default","uid":"u{0}","resourceVersion":"{0}"}},"data":{{"n":"{0}"}}}})",
              i));
    add(make_key("example.com", "widgets", "default", "w"),
        R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"default","uid":"w","resourceVersion":"9"},"spec":{"size":3}})");
    EXPECT_TRUE((*made)->commit(records, true).has_value());
    made->reset();
    EXPECT_TRUE(store::save_sqlite_snapshot(file("store.db"), file("own"), {"now", "test", {}}).has_value());
    return file("own");
  }

  std::string directory_;
  std::unique_ptr<testing_support::EtcdProcess> etcd_;
  std::shared_ptr<store::SharedStore> store_;
  SystemClock clock_;
  StoredForm form_{FormOptions{}};
};

TEST_F(Transfer, ToEtcdAndBackLosesNothing) {
  const auto there = fill_etcd(sqlite_snapshot(250), store_, form_, clock_, {});
  ASSERT_TRUE(there.has_value()) << there.error().message;
  EXPECT_EQ(there->objects, 251);
  const auto map = store_->find("/registry/configmaps/default/c7", false);
  ASSERT_TRUE(map.has_value() && map->size() == 1);
  EXPECT_TRUE(map->front().value->starts_with(std::string_view("k8s\0", 4)));
  EXPECT_TRUE(expect_no_mark(*store_, "/registry").has_value());
  const auto saved = store::save_shared_snapshot(*store_, "/registry", file("shared"), {"now", "test", {}}, belongs_to_servers);
  ASSERT_TRUE(saved.has_value()) << saved.error().message;
  EXPECT_EQ(saved->objects, 251);
  const auto back = fill_sqlite(file("shared"), file("back.db"), form_, 1000, {});
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->objects, 251);
  std::map<std::string, std::string> live;
  const auto state = store::scan_sqlite_store(file("back.db"), [&](store::Record record) -> Result<void> {
    live[record.key] = *record.value;
    return {};
  });
  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->compacted_revision, std::max<store::Revision>(saved->revision, 251) + 1000);
  ASSERT_EQ(live.size(), 251U);
  const auto seven = json::parse(live[make_key("", "configmaps", "default", "c7")]);
  ASSERT_TRUE(seven.has_value());
  EXPECT_EQ(json::get_string(*seven, {"data", "n"}), "7");
  EXPECT_EQ(json::get_string(*seven, {"metadata", "uid"}), "u7");
  EXPECT_NE(live[make_key("example.com", "widgets", "default", "w")].find(R"("size":3)"), std::string::npos);
}

TEST_F(Transfer, APrefixThatHoldsAClusterIsRefusedAndUntouched) {
  ASSERT_EQ(store_->write_and_wait({"/registry/pods/default/p", make_bytes("{}"), 0, {}}).verdict, store::WriteVerdict::kDone);
  const auto refused = fill_etcd(sqlite_snapshot(1), store_, form_, clock_, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("holds a cluster below /registry already"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(store_->find("/registry/configmaps/", true)->empty());
}

TEST_F(Transfer, HalfARestoreIsNoCluster) {
  ASSERT_EQ(store_->write_and_wait({"/registry/berth.dev/restoring", make_bytes("{}"), 0, {}}).verdict, store::WriteVerdict::kDone);
  const auto marked = expect_no_mark(*store_, "/registry");
  ASSERT_FALSE(marked.has_value());
  EXPECT_NE(marked.error().message.find("half a cluster"), std::string::npos) << marked.error().message;
  EXPECT_FALSE(fill_etcd(sqlite_snapshot(1), store_, form_, clock_, {}).has_value());
}

TEST_F(Transfer, KindsThatAreNotKnownAreNotLeftBehindInSilence) {
  ASSERT_EQ(store_->write_and_wait({"/registry/gizmos/default/g", make_bytes("k8s…"), 0, {}}).verdict, store::WriteVerdict::kDone);
  ASSERT_TRUE(store::save_shared_snapshot(*store_, "/registry", file("shared"), {"now", "test", {}}, belongs_to_servers).has_value());
  const auto refused = fill_sqlite(file("shared"), file("back.db"), form_, 0, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("1 /gizmos/"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(fs::exists(file("back.db")));
  TransferOptions leaving;
  leaving.leaves_unknown = true;
  EXPECT_TRUE(fill_sqlite(file("shared"), file("back.db"), form_, 0, leaving).has_value());
}

TEST_F(Transfer, AnEtcdsSnapshotGoesBackByteForByte) {
  const std::string bytes("k8s\0\x01\xff", 6);
  ASSERT_EQ(store_->write_and_wait({"/registry/gizmos/default/g", make_bytes(std::string(bytes)), 0, {}}).verdict,
            store::WriteVerdict::kDone);
  ASSERT_TRUE(store::save_shared_snapshot(*store_, "/registry", file("shared"), {"now", "test", {}}, belongs_to_servers).has_value());
  ASSERT_EQ(store_->write_and_wait({"/registry/gizmos/default/g", nullptr, std::nullopt, {}}).verdict, store::WriteVerdict::kDone);
  const auto restored = fill_etcd(file("shared"), store_, form_, clock_, {});
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(*store_->find("/registry/gizmos/default/g", false)->front().value, bytes);
}

}  // namespace
}  // namespace berth::apiserver::etcd
