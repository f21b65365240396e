// A life (life.h) that is longer than what anybody reads: its first lines stand in the file as they are, of the others a digest a block.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "tests/support/life.h"

namespace berth::testing {

/// BERTH_LIVES=FOLDER writes all lines there: where a digest differs, those of two trees are compared with diff.
class LongLife {
 public:
  /// `file`: below the source folder. `readable`: so many bytes stand in it as they are.
  LongLife(std::string file, std::uint64_t seed, std::size_t readable = 24'000)
      : dice(seed), file_(std::move(file)), seed_(seed), readable_(readable) {}

  Dice dice;

  void tell(std::string line) { lines_.push_back(std::move(line)); }
  /// The last lines, for what a judge finds.
  [[nodiscard]] std::string last(std::size_t count = 12) const {
    std::string out = fmt::format("{}, seed {}, line {}:\n", file_, seed_, lines_.size());
    for (std::size_t i = lines_.size() - std::min(lines_.size(), count); i < lines_.size(); ++i) out += "  " + lines_[i] + "\n";
    return out;
  }
  void expect_as_recorded() const {
    if (const char* folder = std::getenv("BERTH_LIVES"); folder != nullptr) {
      std::string name = file_;
      std::ranges::replace(name, '/', '_');
      std::ofstream out(std::string(folder) + "/" + name);
      for (const std::string& line : lines_) out << line << '\n';
    }
    constexpr std::size_t kLinesOfADigest = 200;
    std::string text;
    std::size_t i = 0;
    for (; i < lines_.size() && text.size() < readable_; ++i) text += lines_[i] + "\n";
    while (i < lines_.size()) {
      const std::size_t begin = i, end = std::min(i + kLinesOfADigest, lines_.size());
      std::string block;
      for (; i < end; ++i) block += lines_[i] + "\n";
      text += fmt::format("lines {} to {}: {}\n", begin + 1, end, digest_of(block));
    }
    expect_life(file_, seed_, text);
  }

 private:
  std::string file_;
  std::uint64_t seed_;
  std::size_t readable_;
  std::vector<std::string> lines_;
};

}  // namespace berth::testing
