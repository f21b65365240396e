// A load generator for any Kubernetes API server: the same binary drives berth and a real kube-apiserver in the same minute.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "bench/bench.h"
#include "client/transport.h"

namespace berth::bench {

/// A process of the berth binary beside this one, stopped (SIGTERM) and waited for by the destructor.
class Child {
 public:
  Child(std::vector<std::string> args, std::string log_path);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool alive() const;
  /// Resident MiB and used CPU seconds, from /proc.
  [[nodiscard]] double rss_mb() const;
  [[nodiscard]] double peak_rss_mb() const;
  [[nodiscard]] double cpu_seconds() const;

 private:
  pid_t pid_ = -1;
};

/// The API server under test: the one of a kubeconfig, or a `berth server` of our own on a fresh directory.
class Target {
 public:
  /// `flags` are given to a server of our own besides.
  static Result<std::unique_ptr<Target>> open(const Options& options, const std::vector<std::string>& flags = {});
  ~Target();
  [[nodiscard]] client::Transport& transport() { return *transport_; }
  [[nodiscard]] const std::string& kubeconfig() const { return kubeconfig_; }
  /// Null for a foreign server.
  [[nodiscard]] Child* server() { return server_.get(); }

 private:
  Target() = default;
  std::string directory_, kubeconfig_;
  std::unique_ptr<Child> server_;
  std::shared_ptr<client::Transport> transport_;
};

struct LoadResult {
  double seconds = 0;
  std::size_t done = 0, failed = 0;
  double p50_ms = 0, p99_ms = 0;
  std::string first_error;
};

/// Sends `count` requests made by `request(i)`, `in_flight` at a time, and waits for all answers; 2xx counts as done.
LoadResult run_load(client::Transport& transport, std::size_t count, std::size_t in_flight,
                    const std::function<net::HttpRequest(std::size_t)>& request);

net::HttpRequest post_json(std::string path, std::string body);
/// scheduler_perf's default pod and node templates.
std::string pod_json(const std::string& name, const std::string& ns);
std::string node_json(std::size_t index);

/// In what a watch's events come: client-go based clients (kubelets, schedulers, controllers) ask for protobuf, kubectl and most others for
/// JSON.
enum class WatchForm { kJson, kProtobuf };

/// Follows a watch and counts events by type without decoding objects. Every event's resourceVersion is read: `disordered` counts those
/// that are not above the one before, so that with the right number of events none is missing and none came twice.
class WatchCounter {
 public:
  WatchCounter(client::Transport& transport, std::string path, std::string query, WatchForm form = WatchForm::kJson);
  ~WatchCounter();
  std::atomic<std::size_t> added{0}, modified{0}, deleted{0}, other{0}, bound{0}, disordered{0};
  std::atomic<bool> started{false}, ended{false};

 private:
  void consume(std::string_view data);
  void consume_frames(std::string_view data);
  void look_at(std::string_view line);
  void look_at_frame(std::string_view frame);
  void count_event(std::string_view type, std::uint64_t revision, bool is_bound);
  std::uint64_t last_revision_ = 0;
  std::string partial_;
  std::unique_ptr<net::StreamHandle> stream_;
};

/// User and system time of this process.
double own_cpu_seconds();
/// Waits until `done()` or the time is up, looking every few milliseconds; false when it was.
bool wait_until(const std::function<bool()>& done, double seconds);

}  // namespace berth::bench
