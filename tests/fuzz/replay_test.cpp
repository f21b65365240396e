// The fuzz targets' inputs once more, in the ordinary tests: the corpus that is kept, and changes of it by a fixed seed. `make fuzz` looks
// for new ones.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/requests.h"
#include "tests/support/source_dir.h"

#define BERTH_TARGETS(X) \
  X(cel)                 \
  X(http) X(identity) X(json) X(json_scan) X(kubeconfig) X(kubelet_config) X(patch) X(protobuf) X(request) X(selector) X(websocket) X(yaml)
#define BERTH_DECLARE(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
BERTH_TARGETS(BERTH_DECLARE)

namespace berth::fuzz {
namespace {

struct Target {
  std::string name;
  int (*run)(const std::uint8_t*, std::size_t);
};
#define BERTH_LIST(name) {#name, fuzz_##name},
const std::vector<Target> kTargets = {BERTH_TARGETS(BERTH_LIST)};

std::string running;

/// A target that finds something aborts: the input is told first.
void tell_input(int) {
  [[maybe_unused]] const auto written = ::write(2, running.data(), running.size());
  std::signal(SIGABRT, SIG_DFL);
}

void run(const Target& target, const std::string& what, const std::string& input) {
  running = fmt::format("while {} ran {}:\n{}\n", target.name, what, input.substr(0, 64 * 1024));
  target.run(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::vector<std::pair<std::string, std::string>> corpus(const std::string& target) {
  std::vector<std::pair<std::string, std::string>> out;
  const std::filesystem::path directory = std::filesystem::path(testing::source_dir()) / "tests/fuzz/corpus" / target;
  if (!std::filesystem::exists(directory)) return out;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream in(entry.path(), std::ios::binary);
    out.emplace_back(entry.path().filename(), std::string(std::istreambuf_iterator<char>(in), {}));
  }
  std::ranges::sort(out);
  return out;
}

class Corpus : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override { std::signal(SIGABRT, tell_input); }
  void TearDown() override { std::signal(SIGABRT, SIG_DFL); }
};

TEST_P(Corpus, HasNoFinding) {
  const auto inputs = corpus(GetParam().name);
  ASSERT_GE(inputs.size(), 3U) << "tests/fuzz/corpus/" << GetParam().name << " is where inputs worth keeping go";
  for (const auto& [name, input] : inputs) run(GetParam(), name, input);
}

/// Bytes changed, cut and doubled: no coverage leads the way, but every run of the tests is the same. With BERTH_FUZZ_SECONDS=N it goes on
/// for so long, and from what it made (BERTH_FUZZ_SEED=N: another way): where a build with clang is too dear.
TEST_P(Corpus, HasNoFindingNearby) {
  auto inputs = corpus(GetParam().name);
  ASSERT_FALSE(inputs.empty());
  const bool is_of_requests = GetParam().name == "request" || GetParam().name == "identity";
  const int rounds = GetParam().name == "request" ? 60 : GetParam().name == "identity" ? 80 : 1000;
  const char *seconds = std::getenv("BERTH_FUZZ_SECONDS"), *seed = std::getenv("BERTH_FUZZ_SEED");
  Random random(seed == nullptr ? 20261122 : std::strtoul(seed, nullptr, 10));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds == nullptr ? 0 : std::atoi(seconds));
  for (int i = 0; i < rounds || (seconds != nullptr && std::chrono::steady_clock::now() < end); ++i) {
    const auto [name, input] = inputs[random() % inputs.size()];
    std::string changed = input;
    if (is_of_requests) {
      auto requests = parse_requests(input);
      const auto others = parse_requests(inputs[random() % inputs.size()].second);
      if (random() % 2 == 0) cross_requests(requests, others, random);
      for (auto times = random() % 3 + 1; times > 0; --times) mutate_requests(requests, random);
      changed = print(requests);
    } else {
      for (auto times = random() % 4 + 1; times > 0 && !changed.empty(); --times) {
        const auto at = random() % changed.size();
        switch (random() % 4) {
          case 0:
            changed[at] = static_cast<char>(random());
            break;
          case 1:
            changed.erase(at, random() % 8 + 1);
            break;
          case 2:
            changed.insert(at, changed.substr(random() % changed.size(), random() % 32));
            break;
          default:
            changed[at] = "{}[]\",:\\\0\x7f\xff 019-eE.\r\n"[random() % 22];
        }
      }
    }
    run(GetParam(), fmt::format("change {} of {}", i, name), changed);
    if (seconds == nullptr || random() % 8 != 0 || changed.size() > 16 * 1024) continue;
    constexpr std::size_t kMostKept = 2000;
    if (inputs.size() < kMostKept)
      inputs.emplace_back(name, changed);
    else
      inputs[random() % inputs.size()] = {name, changed};
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, ::testing::ValuesIn(kTargets), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace berth::fuzz
