// Texts and what is said of each, word for word, in a file: a case is a text, a line "=>", the answer, and a line "----".
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/source_dir.h"

namespace berth::testing {

/// Each text of the file (below the source folder) has its answer. BERTH_RECORD=1 writes the answers anew.
inline void expect_told(const std::string& file, const std::function<std::string(const std::string& text)>& told) {
  const std::string path = source_dir() + "/" + file;
  const bool records = std::getenv("BERTH_RECORD") != nullptr;
  std::ifstream in(path);
  const std::string all(std::istreambuf_iterator<char>(in), {});
  ASSERT_FALSE(all.empty()) << path;
  std::string anew;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = all.find("\n----\n", at);
    ASSERT_NE(end, std::string::npos) << path << ": a case ends with ----";
    const std::string one = all.substr(at, end + 1 - at);
    at = end + 6;
    const std::size_t answer = one.find("=>\n");
    ASSERT_TRUE(records || answer != std::string::npos) << one;
    const std::string text = one.substr(0, answer), now = told(text);
    anew += text + "=>\n" + now + "----\n";
    if (!records) {
      EXPECT_EQ(now, one.substr(answer + 3)) << text;
    }
  }
  if (records) std::ofstream(path) << anew;
}

/// The words after the line "flags:" of a text, "--NAME=VALUE" or "--NAME" a line; the text ends before it.
inline std::vector<std::pair<std::string, std::optional<std::string>>> take_flags(std::string& text) {
  std::vector<std::pair<std::string, std::optional<std::string>>> out;
  const std::size_t at = text.starts_with("flags:\n") ? 0 : text.find("\nflags:\n");
  if (at == std::string::npos) return out;
  std::string rest = text.substr(text.find("flags:\n", at) + 7);
  text.resize(at);
  while (!rest.empty()) {
    const std::string line = rest.substr(0, rest.find('\n'));
    rest.erase(0, line.size() + 1);
    const std::size_t sign = line.find('=');
    out.emplace_back(line.substr(2, sign == std::string::npos ? sign : sign - 2),
                     sign == std::string::npos ? std::nullopt : std::optional(line.substr(sign + 1)));
  }
  return out;
}

}  // namespace berth::testing
