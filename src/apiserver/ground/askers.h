// Threads for what must wait before it is known who asks and whether he may: services of others, or very many rules.
//
// Everybody who waits for one thing (an issuer, a webhook, one user's rules) has half of the threads at most, and among them those who ask
// take turns; who has threads leaves as many free as he has. So what hangs keeps nobody who waits for something else, and who asks a lot
// keeps nobody else who asks, or who in the end need not.
#pragma once
#include <chrono>
#include <deque>
#include <list>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/event_loop.h"
#include "base/mutex.h"

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
  [[nodiscard]] std::list<Line>::iterator next_line(Service& service) const
      BERTH_REQUIRES(mutex_);                                ///< Who may have a thread; the end: nobody.
  Services::iterator next_service() BERTH_REQUIRES(mutex_);  ///< Whose turn it is.
  static Waiting take(Service& service, std::list<Line>::iterator line);
  Services::iterator forget_if_idle(Services::iterator at) BERTH_REQUIRES(mutex_);  ///< The next one.
  void refuse_late() BERTH_REQUIRES(mutex_);

  const AskerLimits limits_;
  const int most_of_service_;  ///< Threads.
  Mutex mutex_;
  CondVar wake_;
  Services services_ BERTH_GUARDED_BY(mutex_);
  std::deque<std::string> turns_ BERTH_GUARDED_BY(mutex_);  ///< Of services, by name.
  std::size_t waiting_ BERTH_GUARDED_BY(mutex_) = 0;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace berth::apiserver
