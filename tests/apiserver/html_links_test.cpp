#include "apiserver/relays/html_links.h"

#include <gtest/gtest.h>

namespace berth::apiserver {
namespace {

constexpr const char* kPrefix = "/api/v1/namespaces/a/pods/b/proxy";

std::string moved(std::string_view page, std::size_t piece = 0) {
  HtmlLinks links(kPrefix, "10.0.0.7:80", "localhost:8001");
  std::string out;
  if (piece == 0) piece = page.size();
  for (std::size_t at = 0; at < page.size(); at += piece) out += links.feed(page.substr(at, piece));
  return out + links.finish();
}

TEST(HtmlLinks, AbsolutePathsOfTheSameHostGoBelowTheProxy) {
  EXPECT_EQ(link_below("/x?y=1", kPrefix, "10.0.0.7:80", "h"), std::string(kPrefix) + "/x?y=1");
  EXPECT_EQ(link_below("http://10.0.0.7:80/x", kPrefix, "10.0.0.7:80", "h"), std::string(kPrefix) + "/x");
  EXPECT_EQ(link_below("x/y", kPrefix, "10.0.0.7:80", "h"), "x/y");
  EXPECT_EQ(link_below("https://example.com/x", kPrefix, "10.0.0.7:80", "h"), "https://example.com/x");
  EXPECT_EQ(link_below("//example.com/x", kPrefix, "10.0.0.7:80", "h"), "//example.com/x");
  EXPECT_EQ(link_below(std::string(kPrefix) + "/x", kPrefix, "10.0.0.7:80", "h"), std::string(kPrefix) + "/x") << "once";
}

TEST(HtmlLinks, KnowsTheAttributesThatLink) {
  const std::string below = kPrefix;
  EXPECT_EQ(moved("<a href=\"/rewriteme\">test</a>"), "<a href=\"" + below + "/rewriteme\">test</a>");
  EXPECT_EQ(moved("<IMG alt='/no' src=/i.png>"), "<IMG alt='/no' src=" + below + "/i.png>");
  EXPECT_EQ(moved("<p title=\"/no\">/no</p>"), "<p title=\"/no\">/no</p>");
  EXPECT_EQ(moved("<form action='/f' method=post><input formaction=\"/g\">"),
            "<form action='" + below + "/f' method=post><input formaction=\"" + below + "/g\">");
}

TEST(HtmlLinks, LeavesScriptsAndCommentsAlone) {
  EXPECT_EQ(moved("<script src=\"/s.js\">x = '<a href=\"/x\">';</script><!-- <a href=\"/y\"> -->"),
            "<script src=\"" + std::string(kPrefix) + "/s.js\">x = '<a href=\"/x\">';</script><!-- <a href=\"/y\"> -->");
}

TEST(HtmlLinks, DoesTheSameWhateverThePieces) {
  const std::string page =
      "<html><body><!-- c --><a class='k>' href=\"/one\">1</a> a < b <script>if (a<b) f('</a>')</script><link href=/two></body>";
  for (std::size_t piece = 1; piece < 12; ++piece) EXPECT_EQ(moved(page, piece), moved(page)) << piece;
  EXPECT_EQ(moved("tail <a hre"), "tail <a hre") << "an unfinished tag is not lost";
  EXPECT_EQ(moved("<" + std::string(200'000, 'x'), 1000).size(), 200'001U);
}

}  // namespace
}  // namespace berth::apiserver
