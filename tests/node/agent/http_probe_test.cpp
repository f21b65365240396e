// HTTP probes: which redirects are followed, and where they lead.
#include "node/agent/http_probe.h"

#include <gtest/gtest.h>

#include "fake_runtime.h"
#include "net/server.h"
#include "node/agent/probes.h"

namespace berth::node::agent {
namespace {

/// Answers each path by a table: a status, or a redirect.
class Site : public net::Handler {
 public:
  Site() {
    auto started = net::Server::start({}, *this);
    server_ = std::move(*started);
  }
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    const std::string path = request.path;
    net::HttpResponse response;
    if (const auto it = redirects.find(path); it != redirects.end()) {
      response.status = 302;
      response.headers.set("Location", it->second);
      response.body = "moved";
    } else {
      response.status = path == "/well" ? 200 : 404;
    }
    writer->respond(std::move(response));
  }
  [[nodiscard]] HttpAnswer probe(const std::string& path) { return follow_http({false, "127.0.0.1", server_->port(), path}, {}, 5000); }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  std::map<std::string, std::string> redirects;

 private:
  std::unique_ptr<net::Server> server_;
};

TEST(HttpProbe, FollowsRedirectsThatStayWithThePod) {
  Site site;
  site.redirects = {{"/a", "/b"}, {"/b", fmt::format("http://127.0.0.1:{}/well", site.port())}, {"/gone", "nowhere"}};
  EXPECT_EQ(site.probe("/well").status, 200);
  EXPECT_EQ(site.probe("/a").status, 200);
  EXPECT_EQ(site.probe("/gone").status, 404) << "where it leads decides, not that it leads";
}

TEST(HttpProbe, ARedirectToSomebodyElseIsTheAnswer) {
  Site site;
  site.redirects = {{"/out", "http://localhost.example/well"}, {"/mail", "mailto:x@y"}};
  EXPECT_EQ(site.probe("/out").status, 302);
  EXPECT_EQ(site.probe("/mail").status, 302);
}

TEST(HttpProbe, ARedirectToSomebodyElseIsASuccessWithAWarning) {
  Site site;
  site.redirects = {{"/out", "http://localhost.example/well"}};
  testing::FakeRuntime runtime;
  const ProbeTarget target{runtime, "c", "127.0.0.1", json::Object{}};
  const auto get = [&](const char* path) {
    return run_probe(
        json::Object{{"httpGet", json::Object{{"path", path}, {"port", static_cast<std::int64_t>(site.port())}}}, {"timeoutSeconds", 5}},
        target);
  };
  const auto told = get("/out");
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->is_warning);
  EXPECT_EQ(told->text, "Probe terminated redirects, Response body: moved");
  EXPECT_FALSE(get("/well").has_value());
  EXPECT_FALSE(get("/gone")->is_warning);
}

TEST(HttpProbe, ACircleEndsAfterTenRedirects) {
  Site site;
  site.redirects = {{"/round", "/round"}};
  const HttpAnswer answer = site.probe("/round");
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.error, "stopped after 10 redirects");
}

TEST(HttpProbe, LocationsAreResolvedAgainstWhereTheyWereSeen) {
  const HttpPlace place{false, "10.0.0.1", 8080, "/a/b?c=d"};
  const auto to = [&](const char* location) {
    const auto next = place.resolve(location);
    return next ? next->url() : "none";
  };
  EXPECT_EQ(to("x"), "http://10.0.0.1:8080/a/x");
  EXPECT_EQ(to("/x?y=z"), "http://10.0.0.1:8080/x?y=z");
  EXPECT_EQ(to("?y"), "http://10.0.0.1:8080/a/b?y");
  EXPECT_EQ(to("//h/x"), "http://h:80/x");
  EXPECT_EQ(to("https://[fd00::1]/x#part"), "https://[fd00::1]:443/x");
  EXPECT_EQ(to("https://me:secret@h:99"), "https://h:99/");
  EXPECT_EQ(to("ftp://h/x"), "none");
  EXPECT_EQ(to("http://h:99999999999/"), "none");
}

}  // namespace
}  // namespace berth::node::agent
