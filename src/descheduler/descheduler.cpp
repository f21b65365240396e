#include "descheduler/descheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/base64.h"
#include "base/config_reader.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/version.h"
#include "client/list_all.h"
#include "descheduler/prometheus.h"
#include "placement/cluster_kinds.h"

namespace berth::descheduler {
namespace {

constexpr std::string_view kName = "sigs.k8s.io/descheduler";
constexpr std::string_view kEventController = "sigs.k8s.io.descheduler";
const model::Gvr kPods{"", "v1", "pods"};
const model::Gvr kEvents{"events.k8s.io", "v1", "events"};

const std::vector<double> kLoopBounds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500};
const std::vector<double> kStrategyBounds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100};

double monotonic_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void count_removal(metrics::Registry& registry, const Removal& removal) {
  const std::string strategy(strategy_name(removal.strategy));
  if (removal.outcome == Outcome::kNoBetterPlace) {
    registry
        .counter("berth_descheduler_no_better_place_total", "Pods that a strategy chose and the placement engine knew no better place for.",
                 {{"strategy", strategy}, {"profile", removal.profile}})
        .add();
    return;
  }
  const metrics::Labels labels = {{"result", std::string(result_label(removal.outcome))},
                                  {"strategy", strategy},
                                  {"profile", removal.profile},
                                  {"namespace", removal.pod->view().ns()},
                                  {"node", removal.pod->node()}};
  const std::string help =
      "Number of total evicted pods, by the result, by the strategy, by the namespace, by the node name. 'error' result means a pod could "
      "not be evicted";
  for (const char* name : {"descheduler_pods_evicted", "descheduler_pods_evicted_total"}) registry.counter(name, help, labels).add();
}

Answer answer_of(const model::ApiResult<json::Value>& answer, bool is_plan) {
  if (answer) return {Outcome::kEvicted, ""};
  const model::ApiStatus& error = answer.error();
  if (error.code == 429) return {Outcome::kProtected, error.message};
  // Who may only look may still plan.
  if (is_plan && (error.code == 403 || error.code == 401)) return {Outcome::kEvicted, ""};
  return {Outcome::kFailed, error.message};
}

const std::string kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

std::string read_file_or_nothing(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

Result<Snapshot> read_snapshot(client::Client& client, placement::Era era, bool with_metrics, std::vector<std::string>& warnings,
                               ReadObjects& known) {
  Snapshot out(era);
  std::vector<std::string> refused;
  for (const placement::ClusterResource& one : placement::kClusterResources) {
    const auto group = one.group, plural = one.plural;
    const auto read =
        plural == "pods"    ? client::list_all_texts(client, group, plural, [&](std::string_view text) { out.add(known.pod(text, era)); })
        : plural == "nodes" ? client::list_all_texts(client, group, plural, [&](std::string_view text) { out.add(known.node(text)); })
                            : client::list_all(client, group, plural, [&](const json::Value& item) { out.add(item); });
    if (read) continue;
    if (plural == "nodes" || plural == "pods")
      return fail(ErrorCode::kUnavailable, fmt::format("listing {}: {}", plural, read.error().message));
    if (read.error().code == 403)
      refused.emplace_back(plural);
    else if (read.error().code != 404)
      warnings.push_back(fmt::format("listing {}: {}", plural, read.error().message));
  }
  if (!refused.empty())
    warnings.push_back(
        fmt::format("not allowed to list {}: places are judged without them, so that fewer pods may be evicted", fmt::join(refused, ", ")));
  if (with_metrics) {
    for (const char* plural : {"nodes", "pods"}) {
      auto page = client.list_and_wait({"metrics.k8s.io", "v1beta1", plural}, "");
      if (!page) return fail(ErrorCode::kUnavailable, fmt::format("listing {}.metrics.k8s.io: {}", plural, page.error().message));
      for (const json::Value& item : page->items) out.add_usage(item);
    }
  }
  out.finish();
  known.forget_others();
  return out;
}

Descheduler::Descheduler(std::shared_ptr<client::Transport> transport, DeschedulerOptions options,
                         std::shared_ptr<metrics::Registry> metrics)
    : client_(std::move(transport), nullptr, "berth-descheduler"), options_(std::move(options)), metrics_(std::move(metrics)) {
  metrics_->gauge("descheduler_build_info", "Build info about descheduler", {{"DeschedulerVersion", std::string(kBuildVersion)}}).set(1);
}

Result<CycleResult> Descheduler::run_once() {
  const double start = monotonic_seconds();
  std::vector<std::string> warnings;
  auto snapshot = read_snapshot(client_, options_.era, options_.policy.needs_metrics(), warnings, known_);
  for (const std::string& warning : warnings)
    if (warned_.insert(warning).second) log::warning("descheduler", "{}", warning);
  if (!snapshot) return std::unexpected(snapshot.error());
  // One reading says little: new ones count a tenth, as in metricscollector.go.
  for (auto& [node, usage] : snapshot->node_usage) {
    if (const auto before = smoothed_usage_.find(node); before != smoothed_usage_.end())
      for (auto& [name, amount] : usage)
        amount = std::llround(0.9 * static_cast<double>(before->second[name]) + 0.1 * static_cast<double>(amount));
  }
  smoothed_usage_ = snapshot->node_usage;
  ask_for_usage(*snapshot);

  memory_.look_at(*snapshot, now());
  auto cycle = Execution::begin(options_.policy, *snapshot, options_.profiles, options_for(*snapshot), options_.most_in_flight);
  if (!cycle) return std::unexpected(cycle.error());
  CycleResult result = execute(std::move(*cycle));
  tell(result);
  for (const char* name : {"descheduler_descheduler_loop_duration_seconds", "descheduler_loop_duration_seconds"})
    metrics_->histogram(name, "Time taken to complete a full descheduling cycle", kLoopBounds).observe(monotonic_seconds() - start);
  return result;
}

CycleOptions Descheduler::options_for(const Snapshot& snapshot) {
  CycleOptions out;
  out.now = now();
  for (const auto& [key, pod] : snapshot.pods)
    if (memory_.is_moved(*pod)) out.moved.insert(pod->view().meta.uid);
  out.nodes_are_coming = options_.policy.makes_room() && nodes_are_coming();
  out.check = options_.check;
  out.lists_everyone = options_.lists_everyone;
  // On a dry run the API counts nothing, and nobody's room is kept.
  out.keeps_rooms = !options_.dry_run;
  out.stopwatch = monotonic_seconds;
  return out;
}

CycleResult Descheduler::execute(Execution cycle) {
  struct Answers {
    Mutex mutex;
    CondVar come;
    std::deque<std::pair<Step, Answer>> all BERTH_GUARDED_BY(mutex);
  };
  // Answers come from the transport's thread.
  const auto answers = std::make_shared<Answers>();
  const auto ask = [&](Step step) {
    const bool is_plan = options_.dry_run;
    client::Call call = call_for(step);
    client_.call(std::move(call), [answers, is_plan, step = std::move(step)](const model::ApiResult<json::Value>& answer) {
      const MutexLock lock(answers->mutex);
      answers->all.emplace_back(step, answer_of(answer, is_plan));
      answers->come.notify_one();
    });
  };
  while (!cycle.is_over()) {
    for (Step& step : cycle.due()) ask(std::move(step));
    if (cycle.is_over()) break;
    std::deque<std::pair<Step, Answer>> come;
    {
      MutexLock lock(answers->mutex);
      answers->come.wait(answers->mutex, [&]() BERTH_REQUIRES(answers->mutex) { return !answers->all.empty(); });
      come = std::exchange(answers->all, {});
    }
    for (auto& [step, answer] : come) cycle.answered(step, std::move(answer));
    if (is_stopped_) cycle.stop();
  }
  return std::move(cycle).result();
}

bool Descheduler::nodes_are_coming() {
  // Who may not read it, or has no autoscaler, makes room. One that died in the middle is not waited for.
  constexpr Duration kLongestSilence = std::chrono::minutes(5);
  const auto map = client_.get_and_wait({"", "v1", "configmaps"}, "kube-system", "cluster-autoscaler-status");
  if (!map) return false;
  const auto status = json::parse_yaml(json::get_string(*map, {"data", "status"}));
  if (!status) return false;
  const auto looked = parse_rfc3339(json::get_string(*status, {"clusterWide", "scaleUp", "lastProbeTime"}));
  return looked && *looked + kLongestSilence > now() && json::get_string(*status, {"clusterWide", "scaleUp", "status"}) == "InProgress";
}

void Descheduler::ask_for_usage(Snapshot& snapshot) {
  const auto queries = options_.policy.prometheus_queries();
  if (queries.empty() || !options_.policy.prometheus) return;
  const PrometheusProvider& provider = *options_.policy.prometheus;
  const auto token = prometheus_token(provider);
  for (const std::string& query : queries) {
    if (!token) {
      snapshot.queried_usage.emplace(query, std::unexpected(token.error()));
      continue;
    }
    const PrometheusAddress address{.url = provider.url, .token = *token, .ca_pem = read_file_or_nothing(kServiceAccount + "/ca.crt")};
    snapshot.queried_usage.emplace(query, ask_prometheus(address, query));
  }
}

Result<std::string> Descheduler::prometheus_token(const PrometheusProvider& provider) {
  if (provider.secret_name.empty()) return trimmed(read_file_or_nothing(kServiceAccount + "/token"));
  const auto secret = client_.get_and_wait({"", "v1", "secrets"}, provider.secret_namespace, provider.secret_name);
  const std::string name = provider.secret_namespace + "/" + provider.secret_name;
  if (!secret)
    return fail(ErrorCode::kUnavailable,
                fmt::format("unable to get secret with prometheus authentication token {}: {}", name, secret.error().message));
  const auto token = base64_decode(json::get_string(*secret, {"data", "prometheusAuthToken"}));
  if (!token || token->empty())
    return invalid(fmt::format("prometheus authentication token secret {} has no key prometheusAuthToken", name));
  return trimmed(*token);
}

client::Call Descheduler::call_for(const Step& step) const {
  const Removal& removal = step.removal;
  const model::PodView& pod = removal.pod->view();
  client::Call call{.verb = "create", .gvr = kPods, .ns = pod.ns(), .name = pod.name(), .subresource = "eviction"};
  call.answer = client::Answer::kNone;
  if (step.kind == Step::Kind::kKeepRoom) {
    call.verb = "patch";
    call.subresource = "status";
    call.content_type = "application/merge-patch+json";
    call.body = json::serialize(
        json::Object{{"metadata", json::Object{{"uid", pod.meta.uid}}}, {"status", json::Object{{"nominatedNodeName", step.node}}}});
    return call;
  }
  json::Object options;
  if (options_.policy.grace_period_seconds) options["gracePeriodSeconds"] = *options_.policy.grace_period_seconds;
  if (!pod.meta.uid.empty()) options["preconditions"] = json::Object{{"uid", pod.meta.uid}};
  if (options_.dry_run) options["dryRun"] = json::Array{"All"};
  const json::Object body = {
      {"apiVersion", "policy/v1"},
      {"kind", "Eviction"},
      {"metadata", json::Object{{"name", pod.name()},
                                {"namespace", pod.ns()},
                                {"annotations", json::Object{{"reason", fmt::format("triggered by {}/{}: {}", removal.profile,
                                                                                    strategy_name(removal.strategy), removal.why)},
                                                             {"requested-by", kName}}}}},
      {"deleteOptions", std::move(options)}};
  if (options_.dry_run) call.query = "dryRun=All";
  call.body = json::serialize(body);
  return call;
}

void Descheduler::tell(const CycleResult& result) {
  for (const Removal& removal : result.removals) {
    count_removal(*metrics_, removal);
    if (options_.dry_run) continue;
    if (removal.outcome == Outcome::kEvicted) {
      log::info("descheduler", "evicted {} from {} by {}: {}{}", removal.pod->key(), removal.pod->node(), strategy_name(removal.strategy),
                removal.why, removal.destination.empty() ? "" : "; its place is on " + removal.destination);
      write_event(removal, "Normal", strategy_name(removal.strategy),
                  fmt::format("pod eviction from {} node by {}", removal.pod->node(), kName));
    } else if (removal.outcome != Outcome::kNoBetterPlace && options_.policy.eviction_failure_events) {
      write_event(removal, "Warning", "EvictionFailed",
                  fmt::format("pod eviction from {} node by {} failed: {}", removal.pod->node(), kName, removal.message));
    }
  }
  for (const StrategyRun& run : result.runs) {
    const metrics::Labels labels = {{"strategy", std::string(strategy_name(run.strategy))}, {"profile", run.profile}};
    for (const char* name : {"descheduler_descheduler_strategy_duration_seconds", "descheduler_strategy_duration_seconds"})
      metrics_->histogram(name, "Time taken to complete Each strategy of the descheduling operation", kStrategyBounds, labels)
          .observe(run.seconds);
  }
}

void Descheduler::write_event(const Removal& removal, std::string_view type, std::string_view reason, std::string_view note) {
  const model::PodView& pod = removal.pod->view();
  write_event_about({{"apiVersion", "v1"}, {"kind", "Pod"}, {"namespace", pod.ns()}, {"name", pod.name()}, {"uid", pod.meta.uid}}, type,
                    "Descheduled", reason, note);
}

void Descheduler::write_event_about(json::Object regarding, std::string_view type, std::string_view action, std::string_view reason,
                                    std::string_view note) {
  const TimePoint now = this->now();
  const auto suffix = static_cast<std::uint64_t>(now.time_since_epoch().count()) * 1000 + events_++ % 1000;
  const std::string ns(json::as_view(regarding["namespace"])), name(json::as_view(regarding["name"]));
  const json::Object event = {{"apiVersion", "events.k8s.io/v1"},
                              {"kind", "Event"},
                              {"metadata", json::Object{{"name", fmt::format("{}.{:x}", name, suffix)}, {"namespace", ns}}},
                              {"eventTime", format_rfc3339_micro(now)},
                              {"reportingController", kEventController},
                              {"reportingInstance", fmt::format("{}-{}", kEventController, options_.host)},
                              {"action", action},
                              {"reason", reason},
                              {"type", type},
                              {"note", note},
                              {"regarding", std::move(regarding)}};
  // An event is told once; whoever may not write events does without.
  (void)client_.create_and_wait(kEvents, ns, event);
}

Result<void> Descheduler::refresh_policy() {
  if (options_.policy_file.empty()) return {};
  const auto say = [&](std::string_view type, std::string_view reason, const std::string& note) {
    constexpr std::size_t kLongestNote = 1024;
    if (!options_.dry_run)
      write_event_about(
          {{"apiVersion", "coordination.k8s.io/v1"}, {"kind", "Lease"}, {"namespace", "kube-system"}, {"name", "descheduler"}}, type,
          "PolicyRead", reason, std::string_view(note).substr(0, kLongestNote));
  };
  auto text = config::read_whole_file(options_.policy_file);
  if (text && policy_text_ == *text && policy_problem_.empty()) return {};
  auto read = text ? load_policy(options_.policy_file) : Result<Policy>(std::unexpected(text.error()));
  if (!read) {
    if (policy_problem_ != read.error().message) say("Warning", "InvalidPolicy", "no pod is evicted: " + read.error().message);
    policy_problem_ = read.error().message;
    return std::unexpected(read.error());
  }
  if (policy_text_ && policy_text_ != *text) {
    for (const std::string& warning : read->warnings) log::warning("descheduler", "{}", warning);
    say("Normal", "PolicyChanged", fmt::format("{} changed: it holds from this cycle on", options_.policy_file));
  }
  options_.policy = std::move(*read);
  policy_text_ = std::move(*text);
  policy_problem_.clear();
  return {};
}

}  // namespace berth::descheduler
