// Volumes of a running pod: tokens that are renewed, files that get the pod's group.
#include <sys/stat.h>

#include "pod_worker_fixture.h"

namespace berth::node::agent::testing {
namespace {

/// An API server that gives tokens of ten minutes, one after the other.
class Tokens : public ::testing::Test {
 protected:
  Result<std::string> get() {
    const auto token = cache_.get(source_, request_, clock_.now());
    if (!token) return std::unexpected(token.error());
    return token->text;
  }
  /// What the volume holds from now on.
  std::string token() {
    const auto text = get();
    return text ? *text : text.error().message;
  }

  TestClock clock_;
  TokenCache cache_;
  TokenRequest request_{"default", "default", "vault", "p", "uid-1", 600};
  bool is_away_ = false;
  int asked_ = 0;
  TokenSource source_ = [this](const TokenRequest& request) -> Result<Token> {
    EXPECT_EQ(request.audience, "vault");
    if (is_away_) return fail(ErrorCode::kUnavailable, "away");
    return Token{fmt::format("token-{}", ++asked_), clock_.now() + std::chrono::seconds(request.expiration_seconds)};
  };
};

TEST_F(Tokens, AreRenewedUnderARunningPodAfterFourFifthsOfTheirLife) {
  EXPECT_EQ(token(), "token-1");
  clock_.advance(std::chrono::seconds(479));
  EXPECT_EQ(token(), "token-1");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(token(), "token-2");
  clock_.advance(std::chrono::seconds(479));
  EXPECT_EQ(token(), "token-2");
  EXPECT_EQ(asked_, 2);
}

TEST_F(Tokens, AreRenewedEveryDayHoweverLongTheyLive) {
  request_.expiration_seconds = 30L * 24 * 3600;
  EXPECT_EQ(token(), "token-1");
  clock_.advance(std::chrono::hours(23));
  EXPECT_EQ(token(), "token-1");
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(token(), "token-2");
}

TEST_F(Tokens, AreKeptWhileNobodyGivesAnotherAndTheyAreGood) {
  EXPECT_EQ(token(), "token-1");
  is_away_ = true;
  clock_.advance(std::chrono::seconds(599));
  EXPECT_EQ(token(), "token-1");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(token(), "away");
  is_away_ = false;
  EXPECT_EQ(token(), "token-2");
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
    start(pod(
        fmt::format("{{securityContext: {{fsGroup: {}{}}}, containers: [{{name: c, image: 'app:1', volumeMounts: [{{name: d, mountPath: "
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
