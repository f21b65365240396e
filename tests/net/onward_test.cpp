#include "net/onward.h"

#include <gtest/gtest.h>

#include <set>

namespace berth::net::test {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

HttpRequest with_fields(const Fields& fields, std::string body) {
  HttpRequest request;
  request.method = "GET";
  request.body = std::move(body);
  for (const auto& [name, value] : fields) request.headers.add(name, value);
  return request;
}

const Fields kEverything = {{"Accept", "text/plain"},
                            {"Authorization", "Bearer t"},
                            {"Impersonate-User", "u"},
                            {"connection", "X-Named, te"},
                            {"Connection", "Range"},
                            {"X-Named", "1"},
                            {"Range", "bytes=1-"},
                            {"TE", "trailers"},
                            {"transfer-encoding", "chunked"},
                            {"Content-Length", "5"},
                            {"Content-Type", "a/b"},
                            {"Expect", "100-continue"},
                            {"Proxy-Authorization", "p"},
                            {"Accept-Encoding", "gzip"},
                            {"X-Own", "1"},
                            {"X-Remote-User", "admin"},
                            {"If-None-Match", "e"},
                            {"Upgrade", "h2c"},
                            {"HTTP2-Settings", "AAMAAABk"},
                            {"Keep-Alive", "5"},
                            {"X-Stream-Protocol-Version", "v4"}};

std::set<std::string> names_after(Onward to, const std::string& body) {
  std::set<std::string> names;
  const auto onward = onward_request(with_fields(kEverything, body), to);
  for (const auto& [name, value] : onward.headers.fields()) names.insert(name);
  return names;
}

TEST(Onward, OnlyWhatIsMeantForTheFarEndPasses) {
  using Names = std::set<std::string>;
  EXPECT_EQ(names_after(Onward::kSession, "hello"), (Names{"Accept", "X-Stream-Protocol-Version"}));
  EXPECT_EQ(names_after(Onward::kNode, "hello"), (Names{"Accept", "Content-Type", "If-None-Match", "X-Stream-Protocol-Version"}));
  EXPECT_EQ(names_after(Onward::kNode, ""), (Names{"Accept", "If-None-Match", "X-Stream-Protocol-Version"}));
  EXPECT_EQ(names_after(Onward::kWorkload, "hello"),
            (Names{"Accept", "Content-Type", "If-None-Match", "X-Own", "X-Remote-User", "X-Stream-Protocol-Version"}));
}

/// A loop over them is how answers are rewritten: what it reads must outlive the headers that nobody else holds.
TEST(Onward, ATokenAmongProtocolsGoesNoFurther) {
  const std::string token = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
  for (const auto to : {Onward::kSession, Onward::kNode, Onward::kWorkload}) {
    const auto request = with_fields({{"Connection", "Upgrade"},
                                      {"Upgrade", "websocket"},
                                      {"sec-websocket-protocol", token + ",v5.channel.k8s.io , v4.channel.k8s.io"},
                                      {"Sec-WebSocket-Protocol", token}},
                                     "");
    const auto onward = onward_request(request, to);
    EXPECT_EQ(onward.headers.get("Sec-WebSocket-Protocol"), "v5.channel.k8s.io, v4.channel.k8s.io");
    for (const auto& [name, value] : onward.headers.fields()) EXPECT_EQ(value.find("bearer"), std::string::npos) << name;
  }
}

TEST(Onward, HeadersBackAreWholeInALoop) {
  const Fields said = {{"Access-Control-Allow-Headers", "DNT,X-Mx-ReqToken,Keep-Alive,User-Agent,X-Requested-With"},
                       {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
                       {"Cache-Control", "private"},
                       {"Content-Type", "text/html; charset=utf-8"},
                       {"Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT"}};
  const auto answer = with_fields(said, "").headers;
  static_assert(!std::is_reference_v<decltype(headers_back(answer).fields())>);
  Headers rewritten;
  for (const auto& [name, value] : headers_back(answer).fields()) rewritten.add(name, value);
  EXPECT_EQ(rewritten.fields(), said);
}

TEST(Onward, ABodyPassesWhereOneBelongs) {
  const auto plain = with_fields({}, "hello");
  const auto upgrade = with_fields({{"Connection", "keep-alive"}, {"Connection", "upgrade"}, {"Upgrade", "SPDY/3.1"}}, "hello");
  for (const auto to : {Onward::kSession, Onward::kNode, Onward::kWorkload}) {
    EXPECT_EQ(onward_request(plain, to).body, to == Onward::kSession ? "" : "hello");
    const auto asked = onward_request(upgrade, to);
    EXPECT_EQ(asked.body, "");
    EXPECT_EQ(asked.headers.fields(), (Fields{{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}}));
  }
}

TEST(Onward, AnUpgradeIsAskedForByBothFields) {
  EXPECT_FALSE(asks_for_upgrade(with_fields({{"Upgrade", "SPDY/3.1"}}, "").headers));
  EXPECT_FALSE(asks_for_upgrade(with_fields({{"Connection", "Upgrade"}}, "").headers));
  EXPECT_TRUE(asks_for_upgrade(with_fields({{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}}, "").headers));
}

}  // namespace
}  // namespace berth::net::test
