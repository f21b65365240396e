#include "dashboard/sessions.h"

#include <gtest/gtest.h>

#include "base/event_loop.h"

namespace berth::dashboard {
namespace {

using namespace std::chrono_literals;

class SessionsTest : public ::testing::Test {
 protected:
  VirtualLoop clock{TimePoint{}};
  int secrets = 0;
  std::vector<std::string> told;
  Sessions sessions{{.clock = &clock,
                     .secret = [this] { return "secret-" + std::to_string(++secrets); },
                     .on_new_token = [this](std::string token) { told.push_back(std::move(token)); }}};

  static net::HttpRequest request(std::string path, std::string cookie = {}) {
    net::HttpRequest out;
    out.method = "GET";
    out.path = std::move(path);
    out.headers.add("Host", "127.0.0.1:6480");
    if (!cookie.empty()) out.headers.add("Cookie", std::move(cookie));
    return out;
  }
  static net::HttpRequest opening(const std::string& token) {
    auto out = request("/");
    out.query = "token=" + token;
    return out;
  }
  /// 0: it is served.
  int status_of(const net::HttpRequest& asked) {
    const auto answer = sessions.judge(asked);
    return answer ? answer->status : 0;
  }
  /// Opens a session; its cookie as a browser sends it back.
  std::string open() {
    const auto answer = sessions.judge(opening(sessions.token()));
    const std::string cookie(answer->headers.get("Set-Cookie"));
    return cookie.substr(0, cookie.find(';'));
  }
};

TEST_F(SessionsTest, TokenIsExchangedOnceForACookieThatScriptsAndOtherSitesNeverHave) {
  const std::string token = sessions.token();
  const auto answer = sessions.judge(opening(token));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  const std::string cookie(answer->headers.get("Set-Cookie"));
  EXPECT_NE(cookie.find("; HttpOnly"), std::string::npos) << cookie;
  EXPECT_NE(cookie.find("; SameSite=Strict"), std::string::npos) << cookie;
  EXPECT_EQ(cookie.find(token), std::string::npos) << "the token must not live on in the cookie";
  EXPECT_EQ(status_of(request("/berth/about", cookie.substr(0, cookie.find(';')))), 0);
  EXPECT_EQ(status_of(opening(token)), 401) << "the token is void";
}

TEST_F(SessionsTest, AfterUseTheNextTokenIsToldAndOpensASessionOfItsOwn) {
  const std::string first = open();
  ASSERT_EQ(told, std::vector<std::string>{sessions.token()});
  const std::string second = open();
  EXPECT_NE(first, second);
  EXPECT_EQ(status_of(request("/", first)), 0);
  EXPECT_EQ(status_of(request("/", second)), 0);
}

TEST_F(SessionsTest, WithoutASessionNothingIsServed) {
  for (const char* path : {"/", "/app.js", "/berth/live", "/api/v1/pods"}) EXPECT_EQ(status_of(request(path)), 401) << path;
  EXPECT_EQ(status_of(request("/", "berth-dashboard=guess")), 401);
  EXPECT_EQ(status_of(request("/", "berth-dashboard=")), 401);
  EXPECT_EQ(status_of(opening("")), 401);
  EXPECT_EQ(status_of(opening("guess")), 401);
}

TEST_F(SessionsTest, CookieIsFoundAmongOthers) {
  const std::string cookie = open();
  EXPECT_EQ(status_of(request("/", "a=b; berth-dashboard=old; " + cookie + "; c=d")), 0);
}

TEST_F(SessionsTest, UsedAddressInTheBrowserThatUsedItGoesOn) {
  const std::string token = sessions.token();
  const std::string cookie = open();
  auto again = opening(token);
  again.headers.add("Cookie", cookie);
  EXPECT_EQ(status_of(again), 200);
}

TEST_F(SessionsTest, NamesThatAreNotLoopbackAreRefusedEvenWithTheCookie) {
  const std::string cookie = open();
  for (const char* host : {"evil.example", "evil.example:6480", "127.0.0.1.evil.example:6480", "localhost.evil.example",
                           "127.0.0.1:6480@evil.example", "", "127.0.0.1:", "127.0.0.2:6480", "localhost:x", "[::1]x"}) {
    auto asked = request("/berth/about", cookie);
    asked.headers.set("Host", host);
    EXPECT_EQ(status_of(asked), 403) << host;
  }
  for (const char* host : {"localhost:6480", "LOCALHOST:80", "[::1]:6480", "127.0.0.1", "localhost:9999"}) {
    auto asked = request("/berth/about", cookie);
    asked.headers.set("Host", host);
    EXPECT_EQ(status_of(asked), 0) << host;
  }
}

TEST_F(SessionsTest, OtherOriginsAreRefusedEvenWithTheCookie) {
  const std::string cookie = open();
  for (const char* origin : {"http://evil.example", "https://127.0.0.1:6480", "http://127.0.0.1:3000", "null"}) {
    auto asked = request("/berth/what-if", cookie);
    asked.method = "POST";
    asked.headers.add("Origin", origin);
    EXPECT_EQ(status_of(asked), 403) << origin;
  }
  auto own = request("/berth/what-if", cookie);
  own.headers.add("Origin", "http://127.0.0.1:6480");
  EXPECT_EQ(status_of(own), 0);
  // Another server on this machine is the same site to cookies: no Origin comes with an image, but this does.
  auto image = request("/api/v1/pods", cookie);
  image.headers.add("Sec-Fetch-Site", "same-site");
  image.headers.add("Sec-Fetch-Dest", "image");
  EXPECT_EQ(status_of(image), 403);
  auto link = request("/", cookie);
  link.headers.add("Sec-Fetch-Site", "cross-site");
  link.headers.add("Sec-Fetch-Dest", "document");
  EXPECT_EQ(status_of(link), 0) << "a link to the page shows it";
}

TEST_F(SessionsTest, UnusedSessionEnds) {
  const std::string cookie = open();
  clock.run_for(11h);
  EXPECT_EQ(status_of(request("/", cookie)), 0);
  clock.run_for(11h);
  EXPECT_EQ(status_of(request("/", cookie)), 0) << "use keeps it";
  clock.run_for(13h);
  EXPECT_EQ(status_of(request("/", cookie)), 401);
}

TEST_F(SessionsTest, ThereAreNeverManySessions) {
  const std::string first = open();
  clock.run_for(1s);
  std::string last;
  for (int i = 0; i < 64; ++i) last = open();
  EXPECT_EQ(status_of(request("/", first)), 401);
  EXPECT_EQ(status_of(request("/", last)), 0);
}

TEST_F(SessionsTest, EveryAnswerForbidsScriptsThatThePageDidNotBring) {
  for (const auto& answer : {sessions.judge(request("/")), sessions.judge(opening(sessions.token()))}) {
    ASSERT_TRUE(answer);
    const std::string policy(answer->headers.get("Content-Security-Policy"));
    EXPECT_NE(policy.find("default-src 'none'"), std::string::npos);
    EXPECT_NE(policy.find("script-src 'self'"), std::string::npos);
    EXPECT_EQ(policy.find("unsafe"), std::string::npos);
    EXPECT_EQ(answer->headers.get("X-Content-Type-Options"), "nosniff");
  }
}

TEST(RandomSecret, IsLongAndNeverTheSame) {
  EXPECT_EQ(random_secret().size(), 64U);
  EXPECT_NE(random_secret(), random_secret());
}

}  // namespace
}  // namespace berth::dashboard
