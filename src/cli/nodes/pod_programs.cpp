#include "cli/nodes/pod_programs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "cli/command/process.h"
#include "client/client.h"
#include "node/agent/object_data.h"

namespace berth::cli {
namespace {

namespace fs = std::filesystem;
using node::simulated::ProgramOrder;
using node::simulated::RoleCommand;
using Mounts = std::vector<std::pair<std::string, std::string>>;

/// A pod's author is not this machine's owner: what is not listed is refused, and files are the pod's own.
struct AllowedFlag {
  std::string_view name;
  bool is_file = false;
};
constexpr std::array<AllowedFlag, 8> kDeschedulerFlags = {{{"--policy-config-file", true},
                                                           {"--config", true},
                                                           {"--dry-run"},
                                                           {"--descheduling-interval"},
                                                           {"--placement-check"},
                                                           {"--output"},
                                                           {"-o"},
                                                           {"--validate"}}};
constexpr std::array<AllowedFlag, 9> kSchedulerFlags = {{{"--policy-config-file", true},
                                                         {"--config", true},
                                                         {"--scheduler-name"},
                                                         {"--seed"},
                                                         {"--hard-disruption-budgets"},
                                                         {"--gangs-as-kubernetes"},
                                                         {"--gang-reservation-after"},
                                                         {"--gang-reservation-for"},
                                                         {"--validate"}}};
constexpr std::array<AllowedFlag, 3> kCommonFlags = {{{"--compatibility"}, {"-v"}, {"--v"}}};

const AllowedFlag* find_allowed_flag(std::string_view role, std::string_view name) {
  const auto in = [name](auto& list) -> const AllowedFlag* {
    const auto found = std::ranges::find(list, name, &AllowedFlag::name);
    return found == list.end() ? nullptr : &*found;
  };
  static constexpr AllowedFlag kElection{"--leader-elect"};
  if (name.starts_with("--leader-elect") || name == "--no-leader-elect") return &kElection;
  if (const AllowedFlag* common = in(kCommonFlags)) return common;
  return role == "descheduler" ? in(kDeschedulerFlags) : in(kSchedulerFlags);
}

/// Where a path of the pod lies here; empty: nowhere.
std::string map_path(const std::string& path, const Mounts& mounts) {
  const auto clean = fs::path(path).lexically_normal().string();
  const std::pair<std::string, std::string>* best = nullptr;
  for (const auto& mount : mounts) {
    const bool is_in = clean == mount.first || clean.starts_with(mount.first + "/");
    if (is_in && (best == nullptr || mount.first.size() > best->first.size())) best = &mount;
  }
  return best == nullptr ? std::string() : best->second + clean.substr(best->first.size());
}

bool is_callout(const std::string& word) {
  return !word.empty() && word.size() <= 2 && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

Result<void> write_files(const std::string& directory, const std::map<std::string, std::string>& files) {
  for (const auto& [name, content] : files) {
    const fs::path path = fs::path(directory) / fs::path(name).relative_path().lexically_normal();
    if (std::ranges::find(path, fs::path("..")) != path.end()) return invalid(fmt::format("{}: not a path within a volume", name));
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << content;
    if (!out.flush()) return fail(ErrorCode::kUnavailable, fmt::format("{} cannot be written", path.string()));
  }
  return {};
}

/// A volume's keys under the names that `items` gives them; without items all of them.
Result<std::map<std::string, std::string>> pick_items(const std::map<std::string, std::string>& data, const json::Array& items) {
  if (items.empty()) return data;
  std::map<std::string, std::string> out;
  for (const json::Value& item : items) {
    const auto found = data.find(std::string(json::get_string(item, {"key"})));
    if (found == data.end())
      return fail(ErrorCode::kNotFound, fmt::format("references non-existent key: {}", json::get_string(item, {"key"})));
    out[std::string(json::get_string(item, {"path"}))] = found->second;
  }
  return out;
}

struct ProgramRun {
  ProgramOrder order;
  Mutex mutex;
  pid_t child BERTH_GUARDED_BY(mutex) = -1;
  bool is_stopping BERTH_GUARDED_BY(mutex) = false, is_over BERTH_GUARDED_BY(mutex) = false;
  std::thread thread;
};

class PodPrograms final : public node::simulated::ProgramRunner {
 public:
  explicit PodPrograms(PodProgramsOptions options) : options_(std::move(options)) {
    std::error_code error;
    fs::remove_all(options_.directory, error);  // Left by a process that was killed.
  }
  ~PodPrograms() override {
    for (auto& [id, run] : runs_) end(*run);
    for (auto& [id, run] : runs_) run->thread.join();
  }

  void start(const ProgramOrder& order, json::Value pod, std::function<void(std::string)> wrote, std::function<void(int)> ended) override {
    const MutexLock lock(mutex_);
    std::erase_if(runs_, [](auto& entry) {
      const MutexLock inner(entry.second->mutex);
      if (!entry.second->is_over) return false;
      entry.second->thread.join();  // Saying so was the last thing it did.
      return true;
    });
    auto run = std::make_shared<ProgramRun>();
    run->order = order;
    runs_[key(order)] = run;
    run->thread = std::thread([this, run, pod = std::move(pod), wrote = std::move(wrote), ended = std::move(ended)] {
      const int code = execute(*run, pod, wrote);
      ended(code);
      const MutexLock inner(run->mutex);
      run->is_over = true;
    });
  }
  void stop(const ProgramOrder& order) override {
    const MutexLock lock(mutex_);
    if (const auto found = runs_.find(key(order)); found != runs_.end()) end(*found->second);
  }

 private:
  static std::string key(const ProgramOrder& order) { return order.uid + "/" + order.container_id; }
  static void end(ProgramRun& run) {
    const MutexLock lock(run.mutex);
    run.is_stopping = true;
    if (run.child > 0) ::kill(run.child, SIGTERM);
  }

  int execute(ProgramRun& run, const json::Value& pod, const std::function<void(std::string)>& wrote) {
    const std::string directory = fmt::format("{}/{}-{}", options_.directory, run.order.uid, run.order.container);
    std::vector<std::string> notes;
    const auto words = prepare(run.order, pod, directory, notes);
    for (const std::string& note : notes) wrote(fmt::format("warning: {}\n", note));
    int code = 2;
    if (words)
      code = run_process(run, *words, directory, wrote);
    else
      wrote(fmt::format("error: {}\n", words.error().message));
    std::error_code error;
    fs::remove_all(directory, error);
    return code;
  }

  Result<std::vector<std::string>> prepare(const ProgramOrder& order, const json::Value& pod, const std::string& directory,
                                           std::vector<std::string>& notes) {
    for (const std::string& one : {options_.directory, directory})
      if (auto made = make_private_directory(one); !made) return std::unexpected(made.error());
    client::Client client(options_.transport, nullptr, "berth-nodes");
    auto mounts = mount_volumes(client, order, pod, directory);
    if (!mounts) return std::unexpected(mounts.error());
    auto words = program_arguments(order.command, *mounts, notes);
    if (!words) return words;
    const auto token = token_of(client, order, std::string(json::get_string(pod, {"spec", "serviceAccountName"})));
    if (!token) return std::unexpected(token.error());
    client::KubeconfigEntry entry = options_.server;
    entry.user = "pod";
    entry.token = *token;
    entry.ns = order.ns;
    const std::string kubeconfig = directory + "/kubeconfig";
    if (auto written = client::write_kubeconfig(kubeconfig, entry); !written) return std::unexpected(written.error());
    words->insert(words->end(), {"--kubeconfig", kubeconfig});
    return words;
  }

  Result<Mounts> mount_volumes(client::Client& client, const ProgramOrder& order, const json::Value& pod, const std::string& directory) {
    const auto lookup = [&client](const char* resource) {
      return [&client, resource](const std::string& ns, const std::string& name) -> Result<json::Value> {
        auto object = client.get_and_wait({"", "v1", resource}, ns, name);
        if (object) return std::move(*object);
        return fail(object.error().code == 404 ? ErrorCode::kNotFound : ErrorCode::kUnavailable, object.error().message);
      };
    };
    node::agent::ObjectSource objects;
    objects.config_map = lookup("configmaps");
    objects.secret = lookup("secrets");
    Mounts mounts;
    const json::Value* container = nullptr;
    for (const char* list : {"initContainers", "containers"})
      for (const json::Value& one : json::get_array(pod, {"spec", list}))
        if (json::get_string(one, {"name"}) == order.container_name) container = &one;
    if (container == nullptr) return mounts;
    for (const json::Value& mount : json::get_array(*container, {"volumeMounts"})) {
      const std::string_view name = json::get_string(mount, {"name"});
      const std::string place = fmt::format("{}/volume-{}", directory, mounts.size());
      fs::create_directories(place);
      for (const json::Value& volume : json::get_array(pod, {"spec", "volumes"})) {
        if (json::get_string(volume, {"name"}) != name) continue;
        const auto files = files_of(volume, order.ns, objects);
        if (!files)
          return fail(files.error().code, fmt::format("MountVolume.SetUp failed for volume \"{}\" : {}", name, files.error().message));
        if (auto written = write_files(place, *files); !written) return std::unexpected(written.error());
      }
      std::string path(json::get_string(mount, {"mountPath"}));
      while (path.size() > 1 && path.back() == '/') path.pop_back();
      const std::string sub_path(json::get_string(mount, {"subPath"}));
      mounts.emplace_back(fs::path(path).lexically_normal().string(), sub_path.empty() ? place : place + "/" + sub_path);
    }
    return mounts;
  }

  /// ConfigMaps and Secrets; other volumes are empty directories.
  static Result<std::map<std::string, std::string>> files_of(const json::Value& volume, const std::string& ns,
                                                             const node::agent::ObjectSource& objects) {
    for (const auto& [kind, source, name] : {std::tuple(node::agent::ObjectKind::kConfigMap, "configMap", "name"),
                                             std::tuple(node::agent::ObjectKind::kSecret, "secret", "secretName")}) {
      const json::Value* wanted = json::find(volume, source);
      if (wanted == nullptr) continue;
      const auto data = node::agent::object_data(ns, std::string(json::get_string(*wanted, {name})), kind, objects);
      if (data) return pick_items(*data, json::get_array(*wanted, {"items"}));
      if (data.error().code == ErrorCode::kNotFound && json::get_bool(*wanted, {"optional"})) return std::map<std::string, std::string>{};
      return std::unexpected(data.error());
    }
    return std::map<std::string, std::string>{};
  }

  /// Bound to the pod: it is worth nothing once the pod is gone.
  static Result<std::string> token_of(client::Client& client, const ProgramOrder& order, const std::string& account) {
    constexpr std::int64_t kYear = 365 * 24 * 3600;
    client::Call call{
        .verb = "create", .gvr = {"", "v1", "serviceaccounts"}, .ns = order.ns, .name = account.empty() ? "default" : account};
    call.subresource = "token";
    call.body = json::serialize(json::Object{
        {"apiVersion", "authentication.k8s.io/v1"},
        {"kind", "TokenRequest"},
        {"spec",
         json::Object{{"expirationSeconds", kYear},
                      {"boundObjectRef", json::Object{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", order.pod}, {"uid", order.uid}}}}}});
    const auto answer = client.call_and_wait(std::move(call));
    if (!answer) return fail(ErrorCode::kUnavailable, answer.error().message);
    return std::string(json::get_string(*answer, {"status", "token"}));
  }

  int run_process(ProgramRun& run, const std::vector<std::string>& words, const std::string& directory,
                  const std::function<void(std::string)>& wrote) {
    int pipe_ends[2];
    if (::pipe2(pipe_ends, O_CLOEXEC) != 0) {
      wrote(fmt::format("error: {}\n", std::strerror(errno)));
      return 2;
    }
    std::string program = "berth";
    std::vector<char*> arguments{program.data()};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::string path = "PATH=/usr/bin:/bin", home = "HOME=" + directory;
    char* environment[] = {path.data(), home.data(), nullptr};
    const pid_t parent = ::getpid();
    pid_t child = -1;
    {
      const MutexLock lock(run.mutex);
      if (!run.is_stopping) run.child = child = ::fork();
      if (child == 0) become(pipe_ends[1], parent, directory.c_str(), arguments.data(), environment);
    }
    ::close(pipe_ends[1]);
    if (child > 0) read_output(run, pipe_ends[0], wrote);
    ::close(pipe_ends[0]);
    if (child <= 0) return 143;
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    // Collected where nobody can send it a signal meanwhile: from then on its number may be another process's.
    const MutexLock lock(run.mutex);
    run.child = -1;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  /// Until the program has closed its output. One that does not end in time after it was asked to is killed.
  static void read_output(ProgramRun& run, int from, const std::function<void(std::string)>& wrote) {
    constexpr int kSecondsToStop = 10;
    int seconds_asked = 0;
    char buffer[4096];
    for (;;) {
      pollfd ready{from, POLLIN, 0};
      const int events = ::poll(&ready, 1, 1000);
      if (events == 0) {
        const MutexLock lock(run.mutex);
        if (run.is_stopping && ++seconds_asked == kSecondsToStop) ::kill(run.child, SIGKILL);
        continue;
      }
      const ssize_t n = ::read(from, buffer, sizeof buffer);
      if (n > 0) wrote(std::string(buffer, static_cast<std::size_t>(n)));
      if (n == 0 || (n < 0 && errno != EINTR)) return;
    }
  }

  /// In the child, where only calls that are safe after a fork of a process with threads are allowed.
  [[noreturn]] static void become(int out, pid_t parent, const char* directory, char** arguments, char** environment) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(143);
    ::dup2(out, 1);
    ::dup2(out, 2);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, 0);
    ::close_range(3, ~0U, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    ::setpgid(0, 0);
    if (::chdir(directory) == 0) ::execve("/proc/self/exe", arguments, environment);
    ::_exit(127);
  }

  PodProgramsOptions options_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<ProgramRun>> runs_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::vector<std::string>> program_arguments(const RoleCommand& command, const Mounts& mounts, std::vector<std::string>& notes) {
  std::vector<std::string> out{command.role};
  const AllowedFlag* open_flag = nullptr;  // Waits for its value, or had none.
  const auto take_value = [&](const AllowedFlag& flag, const std::string& value) -> Result<std::string> {
    if (!flag.is_file) return value;
    std::string here = map_path(value, mounts);
    if (here.empty()) return invalid(fmt::format("{} {}: no volume of the container is mounted there", flag.name, value));
    return here;
  };
  for (std::size_t i = 0; i < command.args.size(); ++i) {
    const std::string& word = command.args[i];
    if (!word.starts_with('-')) {
      // The document prints a callout number behind the command.
      if (open_flag == nullptr && is_callout(word) && i + 1 == command.args.size()) {
        notes.push_back(fmt::format("the command is read without the callout \"{}\" at its end", word));
        continue;
      }
      if (open_flag == nullptr) return invalid(fmt::format("\"{}\": no flag of berth {}", word, command.role));
      auto value = take_value(*open_flag, word);
      if (!value) return std::unexpected(value.error());
      out.push_back(std::move(*value));
      open_flag = nullptr;
      continue;
    }
    const std::size_t equals = word.find('=');
    const AllowedFlag* flag = find_allowed_flag(command.role, word.substr(0, equals));
    if (flag == nullptr)
      return invalid(fmt::format("{}: not a flag that a pod on a simulated node may give berth {}", word.substr(0, equals), command.role));
    out.push_back(word.substr(0, equals));
    open_flag = flag;
    if (equals == std::string::npos) continue;
    auto value = take_value(*flag, word.substr(equals + 1));
    if (!value) return std::unexpected(value.error());
    out.back() += "=" + *value;
    open_flag = nullptr;
  }
  out.emplace_back(command.role == "descheduler" ? "--disable-metrics" : "--secure-port=0");
  return out;
}

std::shared_ptr<node::simulated::ProgramRunner> make_pod_programs(PodProgramsOptions options) {
  return std::make_shared<PodPrograms>(std::move(options));
}

}  // namespace berth::cli
