// Service addresses on a real node: what ten thousand Services cost from their documents to the kernel's rules, in a network namespace of
// their own.
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <thread>

#include "bench/bench.h"
#include "node/services/kernel.h"
#include "node/services/rules.h"

namespace berth::bench {
namespace {

namespace services = node::services;

/// Processor time of this thread, ours and the kernel's.
struct Spent {
  double user = 0, kernel = 0;
  static Spent now() {
    rusage use{};
    ::getrusage(RUSAGE_THREAD, &use);
    const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
    return {seconds(use.ru_utime), seconds(use.ru_stime)};
  }
};

/// Runs the whole way from documents to the kernel.
class Steps {
 public:
  Steps(services::Kernel& kernel, json::Object& out, bool has_affinity)
      : kernel_(kernel), out_(out), rules_({.table = "berth-bench"}), has_affinity_(has_affinity) {}

  /// Services `from` to `to` with the endpoints of `round`, by one transaction.
  void step(const std::string& name, int from, int to, int round) {
    std::vector<std::pair<std::string, std::string>> documents;
    documents.reserve(static_cast<std::size_t>(to - from));
    for (int i = from; i < to; ++i) documents.emplace_back(service_text(i), slice_text(i, round));
    const Spent start = Spent::now();
    for (const auto& [service, slice] : documents) take(service, slice);
    const Spent read = Spent::now();
    const std::string script = is_first_ ? rules_.whole() : rules_.step();
    const Spent written = Spent::now();
    if (const auto done = kernel_.run(script); !done) out_["error"] = done.error().message;
    const Spent end = Spent::now();
    is_first_ = false;
    out_[name + "_cpu_seconds"] = end.user + end.kernel - start.user - start.kernel;
    out_[name + "_reading_documents"] = read.user + read.kernel - start.user - start.kernel;
    out_[name + "_making_rules"] = written.user + written.kernel - read.user - read.kernel;
    out_[name + "_libnftables"] = end.user - written.user;
    out_[name + "_kernel"] = end.kernel - written.kernel;
  }

 private:
  [[nodiscard]] std::string service_text(int i) const {
    return fmt::format(
        R"({{"metadata":{{"namespace":"shop","name":"service-{0}","uid":"5b0a-{0}","resourceVersion":"{0}"}},"spec":{{"clusterIP":"{1}","clusterIPs":["{1}"],"type":"ClusterIP","selector":{{"app":"app-{0}"}},"sessionAffinity":"{2}","ports":[{{"name":"http","protocol":"TCP","port":80,"targetPort":8080}}]}}}})",
        i, fmt::format("10.{}.{}.{}", 96 + i / 65536, i / 256 % 256, i % 256), has_affinity_ ? "ClientIP" : "None");
  }
  static std::string slice_text(int i, int round) {
    const auto endpoint = [&](int which, const char* node) {
      return fmt::format(
          R"({{"addresses":["10.{}.{}.{}"],"conditions":{{"ready":true,"serving":true,"terminating":false}},"nodeName":"{}","targetRef":{{"kind":"Pod","namespace":"shop","name":"pod-{}-{}"}}}})",
          128 + which, i / 256 % 256, i % 256, node, i, which);
    };
    return fmt::format(
        R"({{"metadata":{{"namespace":"shop","name":"service-{0}-abcde","labels":{{"kubernetes.io/service-name":"service-{0}"}}}},"addressType":"IPv4","ports":[{{"name":"http","protocol":"TCP","port":8080}}],"endpoints":[{1},{2}]}})",
        i, endpoint(0, "here"), endpoint(1 + round, "there"));
  }
  void take(const std::string& service, const std::string& slice) {
    const auto service_document = json::parse(service), slice_document = json::parse(slice);
    services::ServiceTable ports;
    services::add_service(*service_document, {&*slice_document}, "here", "", ports);
    for (auto& [name, port] : ports) rules_.set(name, std::move(port));
  }

  services::Kernel& kernel_;
  json::Object& out_;
  services::Rules rules_;
  const bool has_affinity_;
  bool is_first_ = true;
};

json::Object measure(services::Kernel& kernel, int count, bool has_affinity) {
  json::Object out{{"services", count}};
  Steps steps(kernel, out, has_affinity);
  steps.step("first", 0, count, 0);
  steps.step("all_changed", 0, count, 1);
  steps.step("one_changed", 0, 1, 0);
  return out;
}

json::Object in_own_network(const Options& options, bool has_affinity) {
  json::Object out;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) return void(out["error"] = "needs the right to make a network namespace");
    auto kernel = services::open_kernel();
    if (!kernel) return void(out["error"] = kernel.error().message);
    out = measure(**kernel, static_cast<int>(10000 * options.scale), has_affinity);
  }).join();
  return out;
}

json::Object service_rules(const Options& options) { return in_own_network(options, false); }
json::Object affine_rules(const Options& options) { return in_own_network(options, true); }

const Register kServiceRules(
    {"ServiceRules/10000",
     "10,000 Services of two endpoints, from documents to nftables: all made, one endpoint of each changed, one alone", service_rules});
const Register kAffineRules({"ServiceRules/10000-affinity", "the same with session affinity ClientIP", affine_rules});

}  // namespace
}  // namespace berth::bench
