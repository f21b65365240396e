#include "simulator/checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "cel/cel.h"

namespace berth::simulator {
namespace {

constexpr std::array<std::string_view, 13> kNames = {"nodes", "pods", "pending", "requested", "used",      "evictions", "moved",
                                                     "quiet", "cost", "wait",    "time",      "workloads", "broken"};

cel::Environment environment() {
  cel::Environment out;
  for (const std::string_view name : kNames) out.variables.push_back({std::string(name), cel::dyn_type()});
  return out;
}

/// The names that an expression uses, with their values: what a failure shows.
std::string values_of(const std::string& expression, const json::Value& sample) {
  std::string out;
  for (const std::string_view name : kNames) {
    if (expression.find(name) == std::string::npos) continue;
    if (const json::Value* value = json::find(sample, name))
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, json::serialize(*value));
  }
  return out;
}

}  // namespace

std::string check_problem(const std::string& expression) {
  const auto program = cel::compile(expression, environment());
  if (program) return {};
  std::string out =
      fmt::format("\"{}\": {}", expression, program.error().issues.empty() ? program.error().text : program.error().issues.front().message);
  return out + fmt::format(" (names: {})", fmt::join(kNames, ", "));
}

struct Checker::Compiled {
  Check check;
  cel::Program program;
  bool has_failed = false, is_done = false;
};

Checker::Checker(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    auto program = cel::compile(check.expression, environment());
    if (program) checks_.push_back(std::make_unique<Compiled>(check, std::move(*program), false, false));
  }
}
Checker::~Checker() = default;

bool Checker::wants_invariants() const {
  return std::ranges::any_of(checks_, [](const auto& one) { return one->check.expression.find("broken") != std::string::npos; });
}

std::vector<Duration> Checker::wanted_times() const {
  std::vector<Duration> out;
  for (const auto& one : checks_)
    if (one->check.when == Check::When::kAt) out.push_back(one->check.at);
  return out;
}

void Checker::look(const json::Value& sample, Duration now, bool is_end) {
  for (const auto& one : checks_) {
    const Check& check = one->check;
    if (check.when == Check::When::kEnd && is_end) evaluate(*one, sample, now);
    if (check.when == Check::When::kAlways && now >= check.after) evaluate(*one, sample, now);
    if (check.when == Check::When::kAt && now >= check.at && !std::exchange(one->is_done, true)) evaluate(*one, sample, now);
  }
}

void Checker::evaluate(Compiled& one, const json::Value& sample, Duration now) {
  if (one.has_failed) return;
  cel::Bindings bindings;
  for (const std::string_view name : kNames)
    if (const json::Value* value = json::find(sample, name)) bindings.set(std::string(name), cel::Value::borrowed_json(*value));
  const cel::Evaluation result = one.program.evaluate(bindings);
  if (result.value && result.value->is_true()) return;
  one.has_failed = true;
  std::string why = !result.value                                     ? result.value.error().message
                    : result.value->kind() == cel::Value::Kind::kBool ? values_of(one.check.expression, sample)
                                                                      : std::string("the expression is neither true nor false");
  failures_.push_back({one.check.name, now, fmt::format("{} ({})", one.check.expression, why)});
}

}  // namespace berth::simulator
