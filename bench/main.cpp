#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <regex>

#include "bench/bench.h"

namespace berth::bench {

std::vector<Scenario>& scenarios() {
  static std::vector<Scenario> all;
  return all;
}

double now_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double rss_mb() {
  std::ifstream statm("/proc/self/statm");
  long total = 0, resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

namespace {

int run_one(const Scenario& scenario, const Options& options, bool as_json) {
  const double start = now_seconds();
  json::Object measured = scenario.run(options);
  json::Object line{{"name", scenario.name}};
  const double seconds = measured.contains("seconds") ? measured["seconds"].to_number<double>() : now_seconds() - start;
  line["seconds"] = seconds;
  if (measured.contains("pods") && seconds > 0 && !measured.contains("pods_per_s"))
    line["pods_per_s"] = std::round(measured["pods"].to_number<double>() / seconds);
  for (const auto& [key, value] : measured) line[key] = value;
  if (!line.contains("peak_rss_mb")) line["peak_rss_mb"] = std::round(peak_rss_mb());
  if (as_json) {
    std::printf("%s\n", json::serialize(line).c_str());
  } else {
    std::printf("%s: %s\n", scenario.name.c_str(), scenario.summary.c_str());
    for (const auto& [key, value] : line)
      if (key != "name") std::printf("  %-24s %s\n", std::string(key).c_str(), json::serialize(value).c_str());
  }
  std::fflush(stdout);
  return line.contains("error") ? 1 : 0;
}

int usage() {
  std::fprintf(stderr,
               "Usage: berth-bench --list | NAME… [--json] [--kubeconfig FILE] [--scale X] [--seed N]\n"
               "NAME may be a regular expression that matches whole names. Every run is a process of its own for true memory figures: give "
               "one NAME.\n");
  return 2;
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  using namespace berth::bench;
  Options options;
  bool as_json = false, list = false;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--json")
      as_json = true;
    else if (arg == "--list")
      list = true;
    else if (arg == "--kubeconfig" && has_value)
      options.kubeconfig = argv[++i];
    else if (arg == "--scale" && has_value)
      options.scale = std::atof(argv[++i]);
    else if (arg == "--seed" && has_value)
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (arg.starts_with("--"))
      return usage();
    else
      names.push_back(arg);
  }
  std::sort(scenarios().begin(), scenarios().end(), [](const Scenario& a, const Scenario& b) { return a.name < b.name; });
  if (list) {
    for (const Scenario& scenario : scenarios()) std::printf("%-44s %s\n", scenario.name.c_str(), scenario.summary.c_str());
    return 0;
  }
  if (names.empty()) return usage();
  int code = 0;
  for (const std::string& name : names) {
    bool found = false;
    for (const Scenario& scenario : scenarios()) {
      if (scenario.name != name && !std::regex_match(scenario.name, std::regex(name))) continue;
      found = true;
      code = std::max(code, run_one(scenario, options, as_json));
    }
    if (!found) {
      std::fprintf(stderr, "berth-bench: no scenario is named \"%s\"; --list shows all\n", name.c_str());
      code = 2;
    }
  }
  return code;
}
