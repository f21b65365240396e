#include "client/kubeconfig.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace berth::client::test {
namespace {

namespace fs = std::filesystem;

class KubeconfigTest : public ::testing::Test {
 protected:
  KubeconfigTest() {
    std::string pattern = (fs::temp_directory_path() / "berth-kubeconfig-XXXXXX").string();
    dir = mkdtemp(pattern.data());
  }
  ~KubeconfigTest() override { fs::remove_all(dir); }

  std::string file(const std::string& name, const std::string& text) {
    const auto path = dir / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  [[nodiscard]] Result<Connection> load(const std::string& path, const std::string& context = {}) const {
    return load_kubeconfig(path, context, around);
  }
  std::string error_of(const std::string& text) {
    const auto loaded = load(file("config", text));
    return loaded ? "no error" : loaded.error().message;
  }

  fs::path dir;
  Surroundings around{.service_account_dir = "/nonexistent"};
};

constexpr std::string_view kPem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

const std::string kTwoContexts = R"(apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c
  cluster:
    server: https://c.example:6443
    certificate-authority: pki/ca.pem
    tls-server-name: kubernetes
users:
- name: u
  user:
    token: secret
- name: f
  user:
    tokenFile: token.txt
contexts:
- name: one
  context: {cluster: c, user: u, namespace: web}
- name: two
  context: {cluster: c, user: f}
)";

TEST_F(KubeconfigTest, ReadsTheCurrentOrTheNamedContext) {
  const auto path = file("config", kTwoContexts);
  file("pki/ca.pem", std::string(kPem));
  file("token.txt", "from-file\n");
  const auto one = load(path);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->http.url, "https://c.example:6443");
  EXPECT_EQ(one->http.ca_pem, kPem) << "relative to the file's folder";
  EXPECT_EQ(one->http.server_name, "kubernetes");
  EXPECT_EQ(one->bearer_token, "secret");
  EXPECT_EQ(one->ns, "web");
  const auto two = load(path, "two");
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(two->bearer_token, "from-file");
  EXPECT_EQ(two->ns, "");
}

TEST_F(KubeconfigTest, WhatIsWrittenReadsBack) {
  KubeconfigEntry entry;
  entry.server = "https://127.0.0.1:6443";
  entry.ca_pem = kPem;
  entry.certificate_pem = "certificate\n";
  entry.private_key_pem = "key!";
  entry.ns = "default";
  const auto path = (dir / "admin.conf").string();
  file("admin.conf", "old");
  ASSERT_TRUE(write_kubeconfig(path, entry));
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const auto read = load(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->http.url, entry.server);
  EXPECT_EQ(read->http.ca_pem, entry.ca_pem);
  EXPECT_EQ(read->http.certificate_pem, entry.certificate_pem);
  EXPECT_EQ(read->http.private_key_pem, entry.private_key_pem);
  EXPECT_EQ(read->user, "admin");
}

TEST_F(KubeconfigTest, SeveralFilesAreMergedAndTheFirstWins) {
  const auto first = file("a", "current-context: two\nusers:\n- name: u\n  user: {token: first}\n");
  const auto second = file("b", kTwoContexts);
  file("pki/ca.pem", std::string(kPem));
  file("token.txt", "from-file");
  around.kubeconfig = first + ":" + (dir / "missing").string() + ":" + second;
  const auto current = load("");
  ASSERT_TRUE(current) << current.error().message;
  EXPECT_EQ(current->context, "two");
  const auto one = load("", "one");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->bearer_token, "first");
}

TEST_F(KubeconfigTest, FallsBackToHomeAndThenToTheServiceAccount) {
  around.home = dir.string();
  around.service_host = "10.96.0.1";
  around.service_port = "443";
  around.service_account_dir = (dir / "sa").string();
  file("sa/token", "pod-token");
  file("sa/ca.crt", std::string(kPem));
  file("sa/namespace", "kube-system");
  const auto pod = load("");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->http.url, "https://10.96.0.1:443");
  EXPECT_EQ(pod->bearer_token, "pod-token");
  EXPECT_EQ(pod->ns, "kube-system");
  file(
      ".kube/config",
      "current-context: x\nclusters: [{name: x, cluster: {server: 'http://localhost:1'}}]\ncontexts: [{name: x, context: {cluster: x}}]\n");
  const auto home = load("");
  ASSERT_TRUE(home) << home.error().message;
  EXPECT_EQ(home->http.url, "http://localhost:1");
}

TEST_F(KubeconfigTest, AUserMayActAsAnother) {
  const std::string head =
      "current-context: x\nclusters: [{name: x, cluster: {server: 'http://localhost:1'}}]\n"
      "contexts: [{name: x, context: {cluster: x, user: u}}]\nusers: ";
  const auto loaded = load(file("config", head + "[{name: u, user: {token: t, as: alice, as-groups: [team, qa]}}]\n"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->as_user, "alice");
  EXPECT_EQ(loaded->as_groups, (std::vector<std::string>{"team", "qa"}));
  EXPECT_NE(error_of(head + "[{name: u, user: {token: t, as-groups: [team]}}]\n").find("as-groups: groups are acted as only together with"),
            std::string::npos);
}

TEST_F(KubeconfigTest, TheFileToChangeIsTheFirstOfSeveral) {
  EXPECT_EQ(kubeconfig_to_change("given", around), "given");
  around.kubeconfig = ":/a/config:/b/config";
  EXPECT_EQ(kubeconfig_to_change("", around), "/a/config");
  around.kubeconfig.clear();
  around.home = "/home/me";
  EXPECT_EQ(kubeconfig_to_change("", around), "/home/me/.kube/config");
}

TEST_F(KubeconfigTest, NothingAnywhereSaysWhereItLooked) {
  around.home = dir.string();
  const auto none = load("");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_NE(none.error().message.find(dir.string() + "/.kube/config"), std::string::npos);
}

TEST_F(KubeconfigTest, ErrorsNameFileAndField) {
  const auto with = [](const std::string& cluster, const std::string& user) {
    return fmt::format(
        "current-context: x\nclusters: [{{name: c, cluster: {{{}}}}}]\nusers: [{{name: u, user: {{{}}}}}]\ncontexts: [{{name: x, context: "
        "{{cluster: c, user: u}}}}]\n",
        cluster, user);
  };
  const auto prefix = (dir / "config").string() + ": ";
  const std::string server = "server: 'https://x'";
  EXPECT_EQ(error_of(with("", "")), prefix + "clusters[name=c].cluster.server: it is required");
  EXPECT_EQ(error_of(with("server: 'x:6443'", "")), prefix + "clusters[name=c].cluster.server: it must begin with https:// or http://");
  EXPECT_EQ(error_of(with(server + ", certificate-authority-data: '%%%'", "")),
            prefix + "clusters[name=c].cluster.certificate-authority-data: it is not valid base64");
  EXPECT_EQ(error_of(with(server + ", certificate-authority-data: 'QUJD'", "")),
            prefix + "clusters[name=c].cluster.certificate-authority-data: it holds no PEM certificate");
  EXPECT_EQ(error_of(with(server + ", certificate-authority: /nonexistent/ca", "")),
            prefix + "clusters[name=c].cluster.certificate-authority: cannot read /nonexistent/ca: No such file or directory");
  EXPECT_NE(error_of(with(server, "exec: {command: aws}")).find("users[name=u].user.exec: credential plugins are not supported"),
            std::string::npos);
  EXPECT_NE(error_of(with(server, "client-certificate-data: QUJD")).find("users[name=u].user.client-key: "), std::string::npos);
  EXPECT_EQ(error_of("contexts: []\n"), prefix + "current-context: it is not set; name a context");
  EXPECT_EQ(error_of("current-context: other\n"), prefix + "context \"other\" does not exist");
  EXPECT_EQ(error_of("clusters: {}\n"), prefix + "clusters: it must be a list");
  EXPECT_EQ(error_of("- a\n"), prefix + "it is not a kubeconfig (a mapping was expected)");
  EXPECT_NE(error_of("a: [\n").find(prefix), std::string::npos);
  const auto missing = load((dir / "none").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, (dir / "none").string() + ": No such file or directory");
}

}  // namespace
}  // namespace berth::client::test
