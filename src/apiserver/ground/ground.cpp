#include "apiserver/ground/ground.h"

#include "base/mutex.h"

namespace berth::apiserver {

WorkerPool::WorkerPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

void WorkerPool::stop() {
  std::deque<Task> dropped;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    dropped.swap(queue_);
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::post(Task task) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void WorkerPool::run() {
  MutexLock lock(mutex_);
  while (true) {
    wake_.wait(mutex_, [this]() BERTH_REQUIRES(mutex_) { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    auto task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

NameSource::NameSource(std::uint64_t seed)
    : random_(seed != 0 ? seed : (std::uint64_t{std::random_device{}()} << 32 | std::random_device{}())) {}

std::uint64_t NameSource::next() {
  const MutexLock lock(mutex_);
  return random_();
}

std::string NameSource::suffix() {
  static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  auto bits = next();
  std::string out;
  for (int i = 0; i < 5; ++i) {
    out += kAlphabet[bits % kAlphabet.size()];
    bits /= kAlphabet.size();
  }
  return out;
}

std::string NameSource::uid() {
  const auto high = next();
  return uuid_of(high, next());
}

std::string uuid_of(std::uint64_t high, std::uint64_t low) {
  high = (high & 0xffffffffffff0fffULL) | 0x4000;
  low = (low & 0x3fffffffffffffffULL) | 0x8000000000000000ULL;
  std::string out(36, '-');
  for (std::size_t digit = 0, at = 0; digit < 32; ++digit, ++at) {
    if (digit == 8 || digit == 12 || digit == 16 || digit == 20) ++at;
    const auto bits = digit < 16 ? high : low;
    out[at] = "0123456789abcdef"[bits >> (60 - 4 * (digit % 16)) & 15];
  }
  return out;
}

Ground::Ground(GroundOptions& given)
    : options(given),
      cache(std::move(given.cache)),
      loop(*options.loop),
      registry(options.metrics ? options.metrics : std::make_shared<metrics::Registry>()),
      names(options.seed) {
  if (options.single_threaded) return;
  workers = std::make_unique<WorkerPool>(2);
  askers = std::make_unique<Askers>(AskerLimits{.threads = options.asking_threads});
}

Ground::~Ground() = default;

void Ground::offload(Task task) {
  if (workers != nullptr) {
    workers->post(std::move(task));
  } else {
    task();
  }
}

void Ground::defer(Task task) {
  if (workers != nullptr) {
    workers->post(std::move(task));
  } else {
    loop.post(std::move(task));
  }
}

Mirror& Ground::mirror(std::string_view group, std::string_view plural) {
  const MutexLock lock(mirrors_mutex_);
  auto& slot = mirrors_[{std::string(group), std::string(plural)}];
  if (slot == nullptr) slot = std::make_unique<Mirror>(*cache, group, plural);
  return *slot;
}

void Ground::close() {
  {
    const MutexLock lock(mirrors_mutex_);
    mirrors_.clear();
  }
  cache->end();
  cache.reset();
}

}  // namespace berth::apiserver
