#include "node/simulated/behaviour.h"

#include "model/quantity.h"

namespace berth::node::simulated {
namespace {

using std::chrono::milliseconds;
// A container that ends at once is still seen running: watchers and controllers of a real cluster see it so as well.
constexpr Duration kShortestRun = milliseconds(500);

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Duration> parse_seconds(std::string_view text) {
  const std::optional<double> seconds = parse_number<double>(text);
  if (!seconds || !(*seconds >= 0) || *seconds > 1e9) return std::nullopt;
  return Duration(static_cast<std::int64_t>(*seconds * 1e6));
}

std::string unquote(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

/// False when the script has a part that is not understood.
bool run_script(std::string_view script, ScriptResult& result) {
  static constexpr std::string_view kMeta = "|&<>$`(){}*?[]#\\";
  bool skip_next = false;  // The command before `&&` failed.
  while (!script.empty()) {
    const std::size_t end = script.find_first_of(";\n&");
    const std::string_view part = trim(script.substr(0, end));
    bool and_then = false;
    if (end == std::string_view::npos) {
      script = {};
    } else if (script[end] == '&') {
      if (script.substr(end, 2) != "&&") return false;
      and_then = true;
      script.remove_prefix(end + 2);
    } else {
      script.remove_prefix(end + 1);
    }
    if (part.find_first_of(kMeta) != std::string_view::npos) return false;
    const bool skipped = skip_next;
    const std::size_t space = part.find(' ');
    const std::string_view word = part.substr(0, space);
    const std::string_view rest = space == std::string_view::npos ? std::string_view{} : trim(part.substr(space));
    if (word == "exit") {
      const std::optional<int> code = rest.empty() ? std::optional(result.exit_code) : parse_number<int>(rest);
      if (!code) return false;
      if (!skipped) {
        result.exit_code = *code & 0xff;
        return true;
      }
    } else if (word == "sleep") {
      const std::optional<Duration> seconds = parse_seconds(rest.ends_with('s') ? rest.substr(0, rest.size() - 1) : rest);
      if (!seconds) return false;
      if (!skipped) result.run_for += *seconds, result.exit_code = 0;
    } else if (word == "true" || word == ":") {
      if (!skipped) result.exit_code = 0;
    } else if (word == "false") {
      if (!skipped) result.exit_code = 1;
    } else if (word == "echo") {
      if (!skipped) result.output.push_back(unquote(rest)), result.exit_code = 0;
    } else if (!word.empty()) {
      return false;
    }
    skip_next = and_then && result.exit_code != 0;
  }
  return true;
}

std::vector<std::string> read_words(const json::Value& container, std::string_view list) {
  std::vector<std::string> words;
  for (const json::Value& word : json::get_array(container, {list}))
    if (word.is_string()) words.emplace_back(json::as_view(word));
  return words;
}

std::vector<std::string> read_argv(const json::Value& container) {
  std::vector<std::string> argv = read_words(container, "command");
  for (std::string& word : read_words(container, "args")) argv.push_back(std::move(word));
  return argv;
}

/// Reads one annotation of a container: its own key first, then the pod's.
class Annotations {
 public:
  Annotations(const json::Object& all, std::vector<std::string>& problems) : all_(all), problems_(problems) {}

  [[nodiscard]] std::optional<std::string_view> text(std::string_view key, std::string_view container = {}) const {
    if (!container.empty())
      if (const json::Value* own = all_.if_contains(fmt::format("{}{}.{}", kAnnotationPrefix, key, container)); own && own->is_string())
        return json::as_view(*own);
    const json::Value* shared = all_.if_contains(fmt::format("{}{}", kAnnotationPrefix, key));
    if (shared && shared->is_string()) return json::as_view(*shared);
    return std::nullopt;
  }
  [[nodiscard]] std::optional<Duration> duration(std::string_view key, std::string_view container = {}) const {
    const auto value = text(key, container);
    if (!value) return std::nullopt;
    const std::optional<Duration> parsed = parse_go_duration(*value);
    if (parsed && *parsed >= Duration::zero()) return parsed;
    problem(key, *value, "a duration like \"1m30s\"");
    return std::nullopt;
  }
  [[nodiscard]] std::optional<int> exit_code(std::string_view key, std::string_view container) const {
    const auto value = text(key, container);
    if (!value) return std::nullopt;
    const std::optional<int> code = parse_number<int>(*value);
    if (code && *code >= 0 && *code <= 255) return code;
    problem(key, *value, "an exit code from 0 to 255");
    return std::nullopt;
  }
  void problem(std::string_view key, std::string_view value, std::string_view wanted) const {
    problems_.push_back(fmt::format("annotation {}{}: \"{}\" is not {}", kAnnotationPrefix, key, value, wanted));
  }

 private:
  const json::Object& all_;
  std::vector<std::string>& problems_;
};

std::optional<ScriptResult> read_suite_annotation(const json::Object& annotations, std::vector<std::string>& problems) {
  const json::Value* value = annotations.if_contains("kubesuite/complete");
  if (!value || !value->is_string()) return std::nullopt;
  const std::string_view text = json::as_view(*value);
  const std::size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  ScriptResult result{kShortestRun, word == "succeeded" ? 0 : 1, {}};
  std::optional<Duration> seconds = kShortestRun;
  if (colon != std::string_view::npos) seconds = parse_seconds(text.substr(colon + 1));
  if ((word != "succeeded" && word != "failed") || !seconds) {
    problems.push_back(fmt::format("annotation kubesuite/complete: \"{}\" is not succeeded|failed[:SECONDS]", text));
    return std::nullopt;
  }
  result.run_for = *seconds;
  return result;
}

std::int64_t resource_amount(const json::Value& container, std::string_view list, std::string_view name, bool milli) {
  const auto quantity = model::Quantity::parse(json::get_string(container, {"resources", list, name}));
  return !quantity || quantity->sign() < 0 ? 0 : milli ? quantity->milli_value() : quantity->value();
}

/// Usage curves of one container: by its own keys, and for the first main container by the pod's.
void read_usage(const Annotations& annotations, std::string_view name, bool is_first, ContainerBehaviour& b, PodBehaviour& behaviour) {
  for (const std::string_view key : {"cpu", "memory", "disk", "inodes", "pids"}) {
    std::optional<std::string_view> text = annotations.text(fmt::format("{}.{}", key, name));
    if (!text && is_first) text = annotations.text(key);
    if (!text) continue;
    auto curve = UsageCurve::parse(*text);
    if (curve)
      b.usage.emplace_back(std::string(key), std::move(*curve));
    else
      behaviour.problems.push_back(fmt::format("annotation {}{}: {}", kAnnotationPrefix, key, curve.error().message));
  }
  behaviour.has_usage = behaviour.has_usage || !b.usage.empty();
}

Duration initial_delay(const json::Value& container, std::string_view probe) {
  if (!json::find(container, probe)) return Duration::zero();
  return std::chrono::seconds(std::clamp<std::int64_t>(json::get_int(container, {probe, "initialDelaySeconds"}), 0, 1'000'000));
}

}  // namespace

std::optional<ScriptResult> read_command(const std::vector<std::string>& argv) {
  if (argv.empty()) return std::nullopt;
  ScriptResult result;
  std::string_view program = argv[0];
  if (const std::size_t slash = program.rfind('/'); slash != std::string_view::npos) program.remove_prefix(slash + 1);
  std::string script;
  const bool is_shell = program == "sh" || program == "bash" || program == "ash" || program == "dash";
  if (is_shell && argv.size() == 3 && argv[1] == "-c") {
    script = argv[2];
  } else if (program == "true" || program == "false" || program == "sleep" || program == "echo") {
    script = program;
    for (std::size_t i = 1; i < argv.size(); ++i) script += " " + argv[i];
  } else {
    return std::nullopt;
  }
  if (!run_script(script, result)) return std::nullopt;
  result.run_for = std::max(result.run_for, kShortestRun);
  return result;
}

PodBehaviour read_behaviour(const json::Value& pod) {
  PodBehaviour behaviour;
  const json::Object& all = json::get_object(pod, {"metadata", "annotations"});
  const Annotations annotations(all, behaviour.problems);
  behaviour.start_delay = annotations.duration("start-delay");
  behaviour.stop_after = annotations.duration("stop-after");
  behaviour.pull_fails = annotations.text("image-pull") == "fail";
  const bool may_complete =
      json::get_string(pod, {"spec", "restartPolicy"}) == "Never" || json::get_string(pod, {"spec", "restartPolicy"}) == "OnFailure";
  const std::optional<ScriptResult> suite = read_suite_annotation(all, behaviour.problems);

  std::vector<ContainerBehaviour> containers;
  const auto read_container = [&](const json::Value& container, bool is_init) {
    const std::string_view name = json::get_string(container, {"name"});
    const bool is_sidecar = is_init && json::get_string(container, {"restartPolicy"}) == "Always";
    ContainerBehaviour b;
    b.started_after = initial_delay(container, "startupProbe");
    b.ready_after = std::max(b.started_after, initial_delay(container, "readinessProbe"));
    if (is_init && !is_sidecar) {
      b.run_for = Duration::zero();
    }
    if (const auto script = read_command(read_argv(container));
        script && !(is_init && script->run_for <= kShortestRun && script->exit_code == 0)) {
      b.run_for = script->run_for;
      b.exit_code = script->exit_code;
      b.output = script->output;
    }
    if (suite && may_complete && !is_init) {
      b.run_for = suite->run_for;
      // The annotation says how it ends; which failure it is the command may know better.
      if (suite->exit_code == 0 || b.exit_code == 0) b.exit_code = suite->exit_code;
    }
    if (is_init && !is_sidecar) {
      if (const auto d = annotations.duration("init-for", name)) b.run_for = *d;
      if (const auto code = annotations.exit_code("init-exit-code", name)) b.exit_code = *code;
    } else {
      if (const auto d = annotations.duration("run-for", name); d && !is_sidecar) b.run_for = std::max(*d, Duration(1000));
      if (const auto code = annotations.exit_code("exit-code", name); code && !is_sidecar) b.exit_code = *code;
      if (const auto d = annotations.duration("ready-after", name)) b.ready_after = *d;
      if (annotations.text("ready", name) == "false") b.is_ever_ready = false;
      b.liveness_after = annotations.duration("liveness-after", name);
    }
    if (!b.run_for)
      b.role = read_role_command(json::get_string(container, {"image"}), read_words(container, "command"), read_words(container, "args"));
    b.cpu_request_milli = resource_amount(container, "requests", "cpu", true);
    b.memory_request_bytes = resource_amount(container, "requests", "memory", false);
    b.memory_limit_bytes = resource_amount(container, "limits", "memory", false);
    const bool is_first = !is_init && containers.size() == json::get_array(pod, {"spec", "initContainers"}).size();
    read_usage(annotations, name, is_first, b, behaviour);
    containers.push_back(std::move(b));
  };
  for (const json::Value& container : json::get_array(pod, {"spec", "initContainers"})) read_container(container, true);
  for (const json::Value& container : json::get_array(pod, {"spec", "containers"})) read_container(container, false);
  // What somebody looks around in runs until its command ends; annotations mean the pod's own containers.
  for (const json::Value& container : json::get_array(pod, {"spec", "ephemeralContainers"})) {
    ContainerBehaviour b;
    if (const auto script = read_command(read_argv(container))) {
      b.run_for = script->run_for;
      b.exit_code = script->exit_code;
      b.output = script->output;
    }
    containers.push_back(std::move(b));
  }
  behaviour.containers = std::move(containers);
  return behaviour;
}

}  // namespace berth::node::simulated
