#include "net/debug_pages.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "base/mutex.h"
#include "net/pprof.h"

/// jemalloc's, where it is linked.
extern "C" int mallctl(const char* name, void* old, std::size_t* old_size, void* fresh, std::size_t fresh_size) __attribute__((weak));

namespace berth::net {
namespace {

constexpr std::string_view kPprof = "/debug/pprof";
constexpr int kMaxSeconds = 300;
constexpr int kDefaultSeconds = 30;  // net/http/pprof's

void answer(ResponseWriter& writer, int status, std::string body, std::string_view type = "text/plain; charset=utf-8") {
  HttpResponse response;
  response.status = status;
  response.headers.add("Content-Type", std::string(type));
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.headers.add("Cache-Control", "no-cache, private");
  response.body = std::move(body);
  writer.respond(std::move(response));
}

std::string heap_figures() {
  if (mallctl == nullptr) return "no figures: the allocator of this build keeps none\n";
  std::uint64_t epoch = 1;
  std::size_t size = sizeof epoch;
  mallctl("epoch", &epoch, &size, &epoch, size);
  std::string out = "# bytes, by jemalloc\n";
  for (const char* name : {"stats.allocated", "stats.active", "stats.metadata", "stats.resident", "stats.mapped", "stats.retained"}) {
    std::size_t value = 0, value_size = sizeof value;
    if (mallctl(name, &value, &value_size, nullptr, 0) == 0) fmt::format_to(std::back_inserter(out), "{:<10} {}\n", name + 6, value);
  }
  return out;
}

/// What is held, by who asked for it, as jeprof reads it. Nothing where nobody samples it.
std::optional<std::string> heap_profile() {
  bool samples = false;
  std::size_t size = sizeof samples;
  if (mallctl == nullptr || mallctl("opt.prof", &samples, &size, nullptr, 0) != 0 || !samples) return std::nullopt;
  std::string path = (std::filesystem::temp_directory_path() / "berth-heap-XXXXXX").string();
  const int file = ::mkstemp(path.data());
  if (file < 0) return std::nullopt;
  ::close(file);
  const char* name = path.c_str();
  const bool is_written = mallctl("prof.dump", nullptr, nullptr, static_cast<void*>(&name), sizeof name) == 0;
  std::ifstream in(path, std::ios::binary);
  std::string out{std::istreambuf_iterator<char>(in), {}};
  ::unlink(path.c_str());
  return is_written ? std::optional(std::move(out)) : std::nullopt;
}

/// A line a thread: id, state, seconds of processor time, name.
std::string thread_list() {
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::string out = "#    tid state  cpu s name\n";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    const auto open = stat.find('('), close = stat.rfind(')');
    if (close == std::string::npos) continue;
    std::istringstream fields(stat.substr(close + 2));
    std::string state, skipped;
    fields >> state;
    for (int i = 0; i < 10; ++i) fields >> skipped;
    double user = 0, system = 0;
    fields >> user >> system;
    fmt::format_to(std::back_inserter(out), "{:>8} {:>5} {:>6.2f} {}\n", entry.path().filename().string(), state, (user + system) / ticks,
                   stat.substr(open + 1, close - open - 1));
  }
  return out;
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string zpage_head(const std::string& component, std::string_view page) {
  return fmt::format(
      "{} {}\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging "
      "purposes only.\n\n",
      component, page);
}

class DebugPages final : public Handler {
 public:
  explicit DebugPages(DebugFacts facts) : facts_(std::move(facts)), started_(std::chrono::system_clock::now()) {}
  ~DebugPages() override {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    stop_.notify_all();
    if (profiler_.joinable()) profiler_.join();
  }

  void handle(HttpRequest request, std::shared_ptr<ResponseWriter> writer) override {
    if (request.method != "GET" && request.method != "HEAD") return answer(*writer, 405, "405 method not allowed\n");
    const std::string_view path = request.path;
    if (path == "/flagz") return answer(*writer, 200, flags());
    if (path == "/statusz") return answer(*writer, 200, status());
    if (!path.starts_with(kPprof)) return answer(*writer, 404, "404 page not found\n");
    if (!facts_.profiling) return answer(*writer, 404, "404 page not found (--profiling=false)\n");
    auto page = path.substr(kPprof.size());
    while (page.starts_with('/')) page.remove_prefix(1);
    if (page.empty()) return answer(*writer, 200, index());
    if (page == "cmdline") return answer(*writer, 200, command_line());
    if (page == "heap") return answer(*writer, 200, heap_figures());
    if (page == "allocations") return allocations(*writer);
    if (page == "threads") return answer(*writer, 200, thread_list());
    if (page == "profile") return profile(request, std::move(writer));
    answer(*writer, 404, fmt::format("Unknown profile: {}. There is no Go runtime here; {} lists what there is.\n", page, kPprof));
  }

 private:
  static void allocations(ResponseWriter& writer) {
    auto profile = heap_profile();
    if (profile) return answer(writer, 200, std::move(*profile), "application/octet-stream");
    answer(writer, 404, "nobody samples what is held: start berth with MALLOC_CONF=prof:true,lg_prof_sample:17 in its environment\n");
  }

  [[nodiscard]] std::string index() const {
    return fmt::format(
        "{0}\n\n"
        "{0}/profile?seconds=N   processor time, sampled for N seconds (30; at most 300): go tool pprof reads it\n"
        "{0}/profile?format=folded   the same as folded stacks, for flame graphs\n"
        "{0}/heap      what the allocator holds\n"
        "{0}/allocations   what is held by whom, sampled, for jeprof: berth started with MALLOC_CONF=prof:true,lg_prof_sample:17\n"
        "{0}/threads   threads and their processor time\n"
        "{0}/cmdline   the command line, words ended by NUL\n",
        kPprof);
  }

  [[nodiscard]] std::string flags() const {
    auto out = zpage_head(facts_.component, "flagz");
    for (const auto& [name, value] : facts_.flags) fmt::format_to(std::back_inserter(out), "{}={}\n", name, value);
    return out;
  }

  [[nodiscard]] std::string status() const {
    auto out = zpage_head(facts_.component, "statusz");
    const auto up = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() - started_).count();
    const auto at = std::chrono::system_clock::to_time_t(started_);
    std::tm utc{};
    gmtime_r(&at, &utc);
    std::array<char, 64> text;
    std::strftime(text.data(), text.size(), "%a %b %e %H:%M:%S UTC %Y", &utc);
    fmt::format_to(std::back_inserter(out), "Started: {}\nUp: {} hr {:02} min {:02} sec\nBinary version: {}\nEmulation version: {}\n",
                   text.data(), up / 3600, up / 60 % 60, up % 60, facts_.version, facts_.emulated);
    out += "Paths:";
    for (const auto& path : facts_.paths) out.append(" ").append(path);
    return out += "\n";
  }

  void profile(const HttpRequest& request, std::shared_ptr<ResponseWriter> writer) {
    int seconds = kDefaultSeconds;
    bool folded = false;
    for (const auto& [key, value] : parse_query(request.query)) {
      if (key == "seconds") {
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
        if (error != std::errc() || end != value.data() + value.size() || seconds < 1 || seconds > kMaxSeconds)
          return answer(*writer, 400, fmt::format("seconds: \"{}\" is not a number from 1 to {}\n", value, kMaxSeconds));
      }
      if (key == "format") {
        if (value != "folded" && value != "pprof") return answer(*writer, 400, "format: pprof or folded\n");
        folded = value == "folded";
      }
    }
    const MutexLock lock(mutex_);
    auto sampler = busy_ || stopping_ ? nullptr : CpuSampler::start();
    if (sampler == nullptr) return answer(*writer, 500, "Could not enable CPU profiling: cpu profiling already in use\n");
    busy_ = true;
    if (profiler_.joinable()) profiler_.join();
    profiler_ = std::thread([this, seconds, folded, sampler = std::move(sampler), writer = std::move(writer)]() mutable {
      sample(*sampler, seconds);
      const auto taken = sampler->finish();
      sampler.reset();
      {
        // Whoever has the answer may ask for the next one.
        const MutexLock done(mutex_);
        busy_ = false;
      }
      const auto symbols = Symbols::load();
      if (folded)
        answer(*writer, 200, folded_stacks(taken, symbols));
      else
        answer(*writer, 200, pprof_of(taken, symbols, std::chrono::system_clock::now().time_since_epoch()), "application/octet-stream");
    });
  }

  void sample(CpuSampler& sampler, int seconds) {
    MutexLock lock(mutex_);
    for (int i = 0; i < seconds && !stopping_; ++i) {
      stop_.wait_for(mutex_, std::chrono::seconds(1), [this]() BERTH_REQUIRES(mutex_) { return stopping_; });
      sampler.look_for_threads();
    }
  }

  const DebugFacts facts_;
  const std::chrono::system_clock::time_point started_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false, busy_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread profiler_;
};

}  // namespace

bool is_debug_page(std::string_view path) {
  return path == "/flagz" || path == "/statusz" || path == kPprof || path.starts_with(std::string(kPprof) + "/");
}

std::shared_ptr<Handler> make_debug_pages(DebugFacts facts) { return std::make_shared<DebugPages>(std::move(facts)); }

}  // namespace berth::net
