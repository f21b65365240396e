// Threads for what must wait before it is known who asks and whether he may: services of others, or very many rules.
//
// Everybody who waits for one thing (an issuer, a webhook, one user's rules) has half of the threads at most, and among them those who ask
// take turns; who has threads leaves as many free as he has. So what hangs keeps nobody who waits for something else, and who asks a lot
// keeps nobody else who asks, or who in the end need not.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/event_loop.h"

namespace berth::apiserver {

struct AskerLimits {
  int threads = 2;
  std::size_t most_waiting = 4096, most_of_one = 512;  ///< Of all, and of one who asks.
  std::chrono::milliseconds longest_wait{15'000};      ///< Before it begins.
};

/// Thread-safe. The destructor waits for tasks that run; what waits is dropped.
class Askers {
 public:
  struct Job {
    std::string whom, who;  ///< What is waited for, and who asks.
    Task run;
    Task refuse;  ///< It waited too long.
  };
  explicit Askers(const AskerLimits& limits);
  ~Askers() { stop(); }
  Askers(const Askers&) = delete;
  Askers& operator=(const Askers&) = delete;
  /// False: there are too many already; nothing was kept.
  [[nodiscard]] bool post(Job job);
  /// Whether the calling thread is one of any such: it may wait.
  [[nodiscard]] static bool is_one();
  /// Idempotent.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Job job;
    Clock::time_point until;
  };
  struct Line {
    std::string who;
    std::deque<Waiting> jobs;
  };
  struct Service {
    std::list<Line> lines;  ///< The next one whose turn it is first.
    std::unordered_map<std::string, std::list<Line>::iterator> by_who;
    int running = 0;
    std::unordered_map<std::string, int> running_of;  ///< By who asks, where there are any.
  };
  using Services = std::unordered_map<std::string, Service>;
  void run();
  // These require the mutex.
  [[nodiscard]] std::list<Line>::iterator next_line(Service& service) const;  ///< Who may have a thread; the end: nobody.
  Services::iterator next_service();                                          ///< Whose turn it is.
  static Waiting take(Service& service, std::list<Line>::iterator line);
  Services::iterator forget_if_idle(Services::iterator at);  ///< The next one.
  void refuse_late(std::unique_lock<std::mutex>& lock);

  const AskerLimits limits_;
  const int most_of_service_;  ///< Threads.
  std::mutex mutex_;
  std::condition_variable wake_;
  Services services_;
  std::deque<std::string> turns_;  ///< Of services, by name.
  std::size_t waiting_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace berth::apiserver
