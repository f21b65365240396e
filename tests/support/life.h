// A life: what a core says and shows while a seed leads it through its states, line by line, held against a recorded file.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/source_dir.h"

namespace berth::testing {

/// The same numbers from the same seed with every compiler and library (SplitMix64).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// 0 to n - 1; 0 where n is no more than 1.
  int below(std::size_t n) { return n <= 1 ? 0 : static_cast<int>(next() % n); }
  bool chance(int percent) { return below(100) < percent; }
  /// One of them; there must be one.
  template <typename List>
  auto& of(List&& list) {
    return *std::next(std::begin(list), below(std::size(list)));
  }

 private:
  std::uint64_t state_;
};

/// Sixteen digits that stand for a text.
inline std::string digest_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[hash >> shift & 15];
  return out;
}

/// A line that stands for the life of another seed, which nobody reads: BERTH_LIVES=FOLDER writes it there, to be compared with that of
/// another tree.
inline std::string line_of_life(const std::string& name, std::uint64_t seed, const std::string& text) {
  const std::string shown = name + " " + std::to_string(seed);
  if (const char* folder = std::getenv("BERTH_LIVES"); folder != nullptr) std::ofstream(std::string(folder) + "/" + shown) << text;
  return "the life of seed " + std::to_string(seed) + ": " + digest_of(text) + "\n";
}

/// `text` is what the file (below the source folder) says; BERTH_RECORD=1 writes it. The first difference is shown with what led to it.
inline void expect_life(const std::string& file, std::uint64_t seed, const std::string& text) {
  const std::filesystem::path path = source_dir() + "/" + file;
  if (std::getenv("BERTH_RECORD") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return;
  }
  std::ifstream in(path);
  ASSERT_TRUE(in) << path << " is not there; BERTH_RECORD=1 writes it";
  const auto lines_of = [](std::string_view all) {
    std::vector<std::string_view> out;
    for (std::size_t end; !all.empty(); all.remove_prefix(std::min(all.size(), end + 1)))
      out.push_back(all.substr(0, end = std::min(all.find('\n'), all.size())));
    return out;
  };
  const std::string recorded(std::istreambuf_iterator<char>(in), {});
  const auto then = lines_of(recorded), now = lines_of(text);
  std::size_t at = 0;
  while (at < then.size() && at < now.size() && then[at] == now[at]) ++at;
  if (at == then.size() && at == now.size()) return;
  std::string before;
  for (std::size_t i = at < 12 ? 0 : at - 12; i < at; ++i) before += "    " + std::string(then[i]) + "\n";
  const auto line = [at](const auto& lines) { return std::string(at < lines.size() ? lines[at] : "(the end)"); };
  ADD_FAILURE() << file << ":" << at + 1 << ", seed " << seed << ", after\n"
                << before << "  recorded: " << line(then) << "\n  now:      " << line(now) << "\nBERTH_RECORD=1 writes it anew.";
}

}  // namespace berth::testing
