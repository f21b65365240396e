// No step of the pipeline costs more than n log n in the bytes of a request, and none keeps more than a multiple of them: documents of one,
// two and four times the size, through the whole server, counted in steps and in bytes (issue "nobody hurts the server": by kind, not by
// case).
#include "tests/apiserver/server_fixture.h"
#include "tests/complexity/documents.h"
#include "tests/complexity/steps.h"

namespace berth::apiserver::testing {
namespace {

using berth::testing::Adversary;

struct Cost {
  std::uint64_t steps = 0, bytes = 0;
  std::size_t sent = 0;
  int status = 0;
};

class Complexity : public ServerTest {
 protected:
  void prepare() {
    start({});
    const std::string labels = R"({"metadata":{"labels":{"pod-security.kubernetes.io/warn":"restricted"}}})";
    EXPECT_EQ(patch("/api/v1/namespaces/default", labels)->status, 200);
    create("/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"default"}})");
  }

  Cost cost_of(const Adversary& adversary, std::size_t size) {
    if (!adversary.changes_nothing || !is_ready_) prepare();
    is_ready_ = adversary.changes_nothing;
    const auto requests = adversary.requests(size);
    Cost cost;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto& one = requests[i];
      net::HttpRequest request;
      request.method = one.method;
      const auto question = one.path.find('?');
      request.path = one.path.substr(0, question);
      if (question != std::string::npos) request.query = one.path.substr(question + 1);
      if (one.method == "GET")
        request.headers.add("Accept", one.content_type == "as=Table" ? "application/json;as=Table;v=v1;g=meta.k8s.io" : one.content_type);
      else
        request.headers.add("Content-Type", one.content_type);
      request.body = one.body;
      cost.sent += one.body.size();
      auto response = std::make_shared<RecordedResponse>();
      const auto before = berth::testing::steps();
      berth::testing::peak_bytes();
      const auto alive = berth::testing::peak_bytes();
      server_->handle(std::move(request), response);
      cost.steps = berth::testing::steps() - before;
      cost.bytes = berth::testing::peak_bytes() - alive;
      cost.status = response->status;
      EXPECT_NE(response->status, 0) << adversary.name;
    }
    return cost;
  }

  /// Four times the size may cost six times as much: n log n with room, far from the sixteen of a square.
  void expect_modest(const Adversary& adversary, std::size_t size) {
    const auto once = cost_of(adversary, size), twice = cost_of(adversary, 2 * size), four = cost_of(adversary, 4 * size);
    const auto growth = [](std::uint64_t a, std::uint64_t b) {
      return static_cast<double>(b) / static_cast<double>(std::max<std::uint64_t>(a, 1));
    };
    EXPECT_LT(growth(once.steps, four.steps), 6)
        << adversary.name << ": " << once.steps << ", " << twice.steps << ", " << four.steps << " steps, status " << four.status;
    EXPECT_LT(growth(once.bytes, four.bytes), 6)
        << adversary.name << ": " << once.bytes << ", " << four.bytes << " bytes, status " << four.status;
    EXPECT_LT(four.bytes, 400 * four.sent + (64U << 20)) << adversary.name;
    if (std::getenv("BERTH_COMPLEXITY_SHOW") != nullptr)
      fmt::print("{:6.2f} {:6.2f} {:12} {:12} {:9} {} {}\n", growth(once.steps, four.steps), growth(once.bytes, four.bytes), four.steps,
                 four.bytes, four.sent, four.status, adversary.name);
  }

  bool is_ready_ = false;

  static std::size_t size_or(std::size_t fallback) {
    const char* text = std::getenv("BERTH_COMPLEXITY_SIZE");
    return text == nullptr ? fallback : static_cast<std::size_t>(std::atoi(text));
  }
};

TEST_F(Complexity, AdversarialDocumentsCostNoMoreThanTheirSize) {
  for (const auto& adversary : berth::testing::adversaries()) expect_modest(adversary, size_or(300));
}

TEST_F(Complexity, EveryListOfEveryKindCostsNoMoreThanItsLength) {
  for (const auto& adversary : berth::testing::lengthened_kinds()) expect_modest(adversary, size_or(120));
}

}  // namespace
}  // namespace berth::apiserver::testing
