#include <gtest/gtest.h>

#include "base/go/url.h"

namespace berth::go {
namespace {

std::string error_of(std::string_view text) {
  const auto url = parse_url(text);
  return url ? std::string() : url.error();
}

TEST(GoUrl, SaysWhatIsWrongInGosWords) {
  EXPECT_EQ(error_of("https://[::1"), R"(parse "https://[::1": missing ']' in host)");
  EXPECT_EQ(error_of("https://[::1]x/"), R"(parse "https://[::1]x/": invalid port "x" after host)");
  EXPECT_EQ(error_of("https://[x]/"), R"(parse "https://[x]/": invalid host: ParseAddr("x"): unable to parse IP)");
  EXPECT_EQ(error_of("https://[10.0.0.1]/"), R"(parse "https://[10.0.0.1]/": invalid IP-literal)");
  EXPECT_EQ(error_of("https://h:80x/"), R"(parse "https://h:80x/": invalid port ":80x" after host)");
  EXPECT_EQ(error_of("https://a b/"), R"(parse "https://a b/": invalid character " " in host name)");
  EXPECT_EQ(error_of("https://h/%zz"), R"(parse "https://h/%zz": invalid URL escape "%zz")");
  EXPECT_EQ(error_of("https://h%41/"), R"(parse "https://h%41/": invalid URL escape "%41")");
  EXPECT_EQ(error_of("https://h/\n"), R"(parse "https://h/\n": net/url: invalid control character in URL)");
  EXPECT_EQ(error_of("https://u ser@h/"), R"(parse "https://u ser@h/": net/url: invalid userinfo)");
  EXPECT_EQ(error_of("://h"), R"(parse "://h": missing protocol scheme)");
  EXPECT_EQ(error_of("a:b/c"), "");
  EXPECT_EQ(error_of("1a:b/c"), R"(parse "1a:b/c": first path segment in URL cannot contain colon)");
}

TEST(GoUrl, TakesApart) {
  const auto url = parse_url("HTTPS://me:secret@[fe80::1%25eth0]:8443/a%20b?x=1#y");
  ASSERT_TRUE(url) << url.error();
  EXPECT_EQ(url->scheme, "https");
  EXPECT_EQ(url->user, "me:secret");
  EXPECT_EQ(url->host, "[fe80::1%eth0]:8443");
  EXPECT_EQ(url->hostname(), "fe80::1%eth0");
  EXPECT_EQ(url->port(), "8443");
  EXPECT_EQ(url->path, "/a b");
  EXPECT_EQ(url->escaped_path(), "/a%20b");
  EXPECT_EQ(url->query, "x=1");
  EXPECT_EQ(url->fragment, "y");
  EXPECT_EQ(parse_url("/only/a/path")->host, "");
  EXPECT_EQ(parse_url("mailto:x@y")->opaque, "x@y");
}

TEST(GoUrl, ReadsQueries) {
  const auto values = parse_query("b=2&a=1&b=x+y&bad=%z&c;d=1&e");
  ASSERT_EQ(values.size(), 3U);
  EXPECT_EQ(values[0].first, "b");
  EXPECT_EQ(values[0].second, (std::vector<std::string>{"2", "x y"}));
  EXPECT_EQ(values[1].first, "a");
  EXPECT_EQ(values[2].first, "e");
}

}  // namespace
}  // namespace berth::go
