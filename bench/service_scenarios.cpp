// Service addresses on a real node: what the kernel's rules for ten thousand Services cost, in a network namespace of their own.
#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <thread>

#include "bench/bench.h"
#include "node/services/kernel.h"
#include "node/services/rules.h"

namespace berth::bench {
namespace {

namespace services = node::services;

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// `count` Services of one port with two endpoints each; in round 1 the second endpoint of every one of them is another.
services::ServiceTable table_of(int count, int round) {
  services::ServiceTable out;
  for (int i = 0; i < count; ++i) {
    services::ServicePort port;
    port.name = fmt::format("shop/service-{}:http", i);
    port.protocol = "tcp";
    port.cluster_ip = fmt::format("10.{}.{}.{}", 96 + i / 65536, i / 256 % 256, i % 256);
    port.port = 80;
    const auto address = [&](int which) { return fmt::format("10.{}.{}.{}", 128 + which, i / 256 % 256, i % 256); };
    port.endpoints = {{address(0), 8080, true}, {address(1 + round), 8080, false}};
    port.local_endpoints = {port.endpoints[0]};
    out.emplace(port.name, std::move(port));
  }
  return out;
}

json::Object measure(services::Kernel& kernel, int count) {
  const services::RuleOptions options{.table = "berth-bench"};
  const auto first = table_of(count, 0), second = table_of(count, 1);
  const auto run = [&](const std::string& script, double& seconds, std::string& error) {
    const double from = thread_cpu_seconds();
    if (const auto done = kernel.run(script); !done) error = done.error().message;
    seconds += thread_cpu_seconds() - from;
  };
  std::string error;
  double made = 0, changed = 0, one = 0;
  const double start = thread_cpu_seconds();
  const std::string whole = services::whole_rules(first, options);
  made = thread_cpu_seconds() - start;
  run(whole, made, error);
  const double from = thread_cpu_seconds();
  const std::string step = services::rules_between(first, second, options);
  changed = thread_cpu_seconds() - from;
  run(step, changed, error);
  auto last = second;
  last.begin()->second.endpoints.pop_back();
  const double alone = thread_cpu_seconds();
  const std::string small = services::rules_between(second, last, options);
  one = thread_cpu_seconds() - alone;
  run(small, one, error);
  json::Object out{
      {"services", count}, {"first_cpu_seconds", made}, {"all_changed_cpu_seconds", changed}, {"one_changed_cpu_seconds", one}};
  if (!error.empty()) out["error"] = error;
  return out;
}

json::Object service_rules(const Options& options) {
  json::Object out;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) return void(out["error"] = "needs the right to make a network namespace");
    auto kernel = services::open_kernel();
    if (!kernel) return void(out["error"] = kernel.error().message);
    out = measure(**kernel, static_cast<int>(10000 * options.scale));
  }).join();
  return out;
}

const Register kServiceRules({"ServiceRules/10000",
                              "nftables for 10,000 Services of two endpoints: all made, one endpoint of each changed, one alone",
                              service_rules});

}  // namespace
}  // namespace berth::bench
