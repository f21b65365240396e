// HTTP/1.1 messages as bytes, and what is read of them, word for word (messages_told.txt beside this). The first line of a case says whose
// they are: "request", or "response METHOD" ("closed" where the connection ends after it). The lines that follow end with CR LF; \r, \n,
// \t, \0 and \e stand for such a byte, and \ at the end of a line for no line end. However the bytes arrive, they say the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "net/http_parser.h"
#include "tests/support/told.h"

namespace berth::net {
namespace {

constexpr ParserLimits kLimits{.max_header_bytes = 160, .max_body_bytes = 40};

std::string bytes_of(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      out += "\r\n";
    } else if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
    } else {
      const char which = text[++i];
      if (which != '\n') out += which == 'r' ? '\r' : which == 'n' ? '\n' : which == 't' ? '\t' : which == '0' ? '\0' : '\x1b';
    }
  }
  return out;
}

std::string shown(const Headers& headers, std::string_view body) {
  std::string out;
  for (const auto& [name, value] : headers.fields()) out += fmt::format("  {}: [{}]\n", name, value);
  return out + (body.empty() ? "" : fmt::format("  body [{}]\n", body));
}

/// Feeds the bytes in pieces that end at the places given.
template <typename Parser, typename Done>
void feed(Parser& parser, std::string_view data, const std::vector<std::size_t>& ends, Done done) {
  std::size_t at = 0;
  for (const std::size_t end : ends)
    while (at < end) {
      const std::size_t used = parser.feed(data.substr(at, end - at));
      at += used;
      if (parser.state() == Parser::State::kFailed) return;
      if (parser.state() == Parser::State::kDone) {
        if (!done()) return;
      } else {
        ASSERT_GT(used, 0U);
      }
    }
}

std::string requests(std::string_view data, const std::vector<std::size_t>& ends) {
  RequestParser parser(kLimits);
  std::string out;
  feed(parser, data, ends, [&] {
    const bool keeps = parser.keep_alive(), goes_on = parser.expects_continue(), is_old = parser.is_http_1_0();
    const HttpRequest request = parser.take();
    out += fmt::format("{} [{}] [{}]{}{}{}\n", request.method, request.path, request.query, keeps ? "" : ", closes",
                       goes_on ? ", wants to be told to go on" : "", is_old ? ", HTTP/1.0" : "");
    out += shown(request.headers, request.body);
    return true;
  });
  if (parser.state() == RequestParser::State::kFailed)
    return out + fmt::format("{} {}\n", parser.failure().status, parser.failure().message);
  return out + (parser.is_idle() ? "" : parser.state() == RequestParser::State::kBody ? "more of the body\n" : "more of the header\n");
}

std::string response(std::string_view data, const std::vector<std::size_t>& ends, std::string_view method, bool closes) {
  ResponseParser parser(kLimits);
  parser.expect(method);
  feed(parser, data, ends, [] { return false; });
  if (closes && parser.state() != ResponseParser::State::kFailed) parser.end_of_input();
  if (parser.state() == ResponseParser::State::kFailed) return parser.failure().message + "\n";
  std::string out = parser.state() == ResponseParser::State::kDone   ? ""
                    : parser.state() == ResponseParser::State::kBody ? "more of the body\n"
                                                                     : "more of the header\n";
  return out + fmt::format("{}{}\n", parser.response().status, parser.keep_alive() ? "" : ", closes") +
         shown(parser.response().headers, parser.response().body);
}

std::string told(const std::string& text) {
  const std::size_t line = text.find('\n');
  const std::string first = text.substr(0, line), data = bytes_of(std::string_view(text).substr(line + 1));
  const auto read = [&](const std::vector<std::size_t>& ends) {
    if (first == "request") return requests(data, ends);
    const bool closes = first.ends_with(" closed");
    const std::string method = first.substr(9, first.find(' ', 9) - 9);
    return response(data, ends, method, closes);
  };
  const std::string whole = read({data.size()});
  std::vector<std::size_t> each;
  for (std::size_t i = 1; i <= data.size(); ++i) {
    each.push_back(i);
    EXPECT_EQ(read({i, data.size()}), whole) << text << "in two, after " << i;
  }
  EXPECT_EQ(read(each), whole) << text << "byte by byte";
  return whole;
}

TEST(HttpMessages, WhatIsReadOfEachIsWrittenDown) { testing::expect_told("tests/net/messages_told.txt", told); }

}  // namespace
}  // namespace berth::net
