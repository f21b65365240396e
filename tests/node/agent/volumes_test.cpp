// Volumes of a running pod: tokens that are renewed, files that get the pod's group.
#include <sys/stat.h>

#include "pod_worker_fixture.h"

namespace berth::node::agent::testing {
namespace {

constexpr const char* kWithToken =
    "{containers: [{name: c, image: i, volumeMounts: [{name: t, mountPath: /t}]}], volumes: [{name: t, projected: {sources: "
    "[{serviceAccountToken: {path: token, expirationSeconds: 600, audience: vault}}]}}]}";

class VolumesTest : public PodWorkerTest {
 protected:
  VolumesTest() {
    environment_->tokens = [this](const TokenRequest& request) -> Result<Token> {
      const std::lock_guard lock(mutex_);
      refused_ += is_away_ ? 1 : 0;
      if (is_away_) return fail(ErrorCode::kUnavailable, "away");
      EXPECT_EQ(request.audience, "vault");
      EXPECT_EQ(request.expiration_seconds, 600);
      return Token{fmt::format("token-{}", ++asked_), clock_.now() + std::chrono::minutes(10)};
    };
  }
  [[nodiscard]] std::string token() const {
    std::ifstream file(root_ + "/pods/uid-1/volumes/kubernetes.io~projected/t/token");
    std::string text;
    file >> text;
    return text;
  }
  void set_away(bool is_away) {
    const std::lock_guard lock(mutex_);
    is_away_ = is_away;
  }
  int asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  int refused() {
    const std::lock_guard lock(mutex_);
    return refused_;
  }

  bool is_away_ = false;
  int asked_ = 0, refused_ = 0;
};

TEST_F(VolumesTest, ATokenOfARunningPodIsRenewedAfterFourFifthsOfItsLife) {
  start(pod(kWithToken));
  ASSERT_TRUE(eventually_phase("Running"));
  EXPECT_EQ(token(), "token-1");
  pass(std::chrono::minutes(7));
  pass(std::chrono::seconds(59));
  pass(std::chrono::minutes(2));
  EXPECT_TRUE(eventually([&] { return token() == "token-2"; })) << token();
  EXPECT_EQ(asked(), 2) << "no sooner, and once";
  EXPECT_EQ(container_field(0, {"state", "running", "startedAt"}).empty(), false) << "the container goes on";
}

TEST_F(VolumesTest, ATokenIsKeptWhileNobodyGivesAnother) {
  start(pod(kWithToken));
  ASSERT_TRUE(eventually_phase("Running"));
  set_away(true);
  pass(std::chrono::minutes(9));
  EXPECT_TRUE(eventually([&] { return refused() > 0; }));
  EXPECT_EQ(token(), "token-1");
  set_away(false);
  pass(std::chrono::minutes(2));
  EXPECT_TRUE(eventually([&] { return token() == "token-2"; })) << token();
}

/// A claim's volume whose root is the group's already, and a file in it that is not.
class GroupOfVolumes : public PodWorkerTest {
 protected:
  GroupOfVolumes() : data_(root_ + "/data"), group_(::getegid()) {
    fs::create_directories(data_);
    std::ofstream(data_ + "/file") << "x";
    ::chmod((data_ + "/file").c_str(), 0600);
    environment_->objects.claim = [](const std::string&, const std::string&) -> Result<json::Value> {
      return json::parse(R"({"metadata":{"uid":"c"},"spec":{"volumeName":"v"},"status":{"phase":"Bound"}})");
    };
    environment_->objects.persistent_volume = [this](const std::string&) -> Result<json::Value> {
      return json::parse(fmt::format(R"({{"spec":{{"claimRef":{{"uid":"c"}},"local":{{"path":"{}"}}}}}})", data_));
    };
  }
  void run(std::string_view policy) {
    start(
        pod(fmt::format("{{securityContext: {{fsGroup: {}{}}}, containers: [{{name: c, image: i, volumeMounts: [{{name: d, mountPath: "
                        "/d}}]}}], volumes: [{{name: d, persistentVolumeClaim: {{claimName: c}}}}]}}",
                        group_, policy)));
    ASSERT_TRUE(eventually_phase("Running"));
  }
  [[nodiscard]] mode_t mode(const std::string& path) const {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  std::string data_;
  gid_t group_;
};

TEST_F(GroupOfVolumes, IsGivenToAllThatIsInThem) {
  run("");
  EXPECT_EQ(mode(data_) & 02770, 02770U);
  EXPECT_EQ(mode(data_ + "/file") & 0060, 0060U);
}

TEST_F(GroupOfVolumes, OnRootMismatchLeavesAVolumeAloneWhoseRootIsTheGroups) {
  ::chmod(data_.c_str(), 02770);
  run(", fsGroupChangePolicy: OnRootMismatch");
  EXPECT_EQ(mode(data_ + "/file"), 0600U) << "nobody walked it";
}

TEST_F(GroupOfVolumes, OnRootMismatchWalksAVolumeWhoseRootIsNot) {
  ::chmod(data_.c_str(), 0700);
  run(", fsGroupChangePolicy: OnRootMismatch");
  EXPECT_EQ(mode(data_ + "/file") & 0060, 0060U);
  EXPECT_EQ(mode(data_) & 02770, 02770U);
}

}  // namespace
}  // namespace berth::node::agent::testing
