// Bootstrap tokens over time: cluster-info carries the signatures of those that sign, and those that are over go.
#include "controllers/certificates.h"
#include "security/bootstrap_token.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

class BootstrapTokens : public ::testing::Test {
 protected:
  BootstrapTokens() {
    world.api.engine.add(make_token_cleaner_controller());
    world.api.engine.add(make_bootstrap_signer_controller());
    world.api.engine.start();
    token.id = "abcdef";
    token.secret = "0123456789abcdef";
    token.signs = true;
  }
  void settle(Duration time = seconds(1)) { world.loop.run_for(time); }
  void put_token() { world.api.put(kinds().secret, security::make_bootstrap_secret(token)); }
  void put_info(const char* kubeconfig) {
    json::Value info =
        yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-info, namespace: kube-public}, data: {other: kept}}");
    if (!signatures().empty()) info = world.api.objects.at(kInfo);
    json::set(info, {"data", "kubeconfig"}, kubeconfig);
    world.api.put(kinds().config_map, info);
  }
  std::map<std::string, std::string> signatures() const {
    std::map<std::string, std::string> out;
    const auto found = world.api.objects.find(kInfo);
    if (found == world.api.objects.end()) return out;
    for (const auto& [key, value] : json::get_object(found->second, {"data"}))
      if (std::string_view(key.data(), key.size()).starts_with("jws-kubeconfig-")) out[std::string(key)] = json::as_view(value);
    return out;
  }
  [[nodiscard]] std::map<std::string, std::string> of(const char* kubeconfig) const {
    return {{"jws-kubeconfig-abcdef", security::detached_signature(kubeconfig, {token.id, token.secret})}};
  }
  const std::tuple<Kind, std::string, std::string> kInfo{kinds().config_map, "kube-public", "cluster-info"};
  World world;
  security::BootstrapToken token;
};

TEST_F(BootstrapTokens, SignClusterInfoOnceAndAnewWhenEitherChanges) {
  put_info("config 1");
  settle();
  EXPECT_TRUE(signatures().empty());
  put_token();
  settle();
  EXPECT_EQ(signatures(), of("config 1"));
  const int writes = world.api.writes;
  settle(minutes(5));
  put_token();
  settle();
  EXPECT_EQ(world.api.writes, writes) << "what is right is not written again";
  put_info("config 2");
  settle();
  EXPECT_EQ(signatures(), of("config 2"));
  EXPECT_EQ(json::get_string(world.api.objects.at(kInfo), {"data", "other"}), "kept");
  token.secret = "fedcba9876543210";
  put_token();
  settle();
  EXPECT_EQ(signatures(), of("config 2"));
}

TEST_F(BootstrapTokens, ThatSignNoMoreLeaveNoSignature) {
  put_info("config");
  put_token();
  settle();
  ASSERT_EQ(signatures().size(), 1U);
  token.signs = false;
  put_token();
  settle();
  EXPECT_TRUE(signatures().empty());
  token.signs = true;
  put_token();
  settle();
  ASSERT_EQ(signatures().size(), 1U);
  world.api.erase(kinds().secret, "kube-system", "bootstrap-token-abcdef");
  settle();
  EXPECT_TRUE(signatures().empty());
  token.extra_groups = {"system:masters"};
  put_token();
  settle();
  EXPECT_TRUE(signatures().empty()) << "one that is good for nothing signs nothing";
}

TEST_F(BootstrapTokens, GoWhenTheyAreOver) {
  put_info("config");
  token.expiration = world.loop.now() + minutes(10);
  put_token();
  settle(minutes(9));
  EXPECT_EQ(signatures().size(), 1U);
  settle(minutes(2));
  EXPECT_TRUE(world.api.all(kinds().secret).empty());
  EXPECT_TRUE(signatures().empty());
  // One without an end stays; what is no token is nobody's business.
  token.expiration.reset();
  put_token();
  world.api.put(kinds().secret,
                yaml("{apiVersion: v1, kind: Secret, metadata: {name: bootstrap-token-zzzzzz, namespace: kube-system}, type: "
                     "Opaque, data: {expiration: MjAyMC0wMS0wMVQwMDowMDowMFo=}}"));
  settle(std::chrono::hours(240));
  EXPECT_EQ(world.api.all(kinds().secret).size(), 2U);
}

}  // namespace
}  // namespace berth::controllers
