#include "simulator/gangs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "simulator/story.h"

namespace berth::simulator {
namespace {

constexpr Duration kBackoff = std::chrono::seconds(30);  ///< Before who gave up comes anew.

double seconds(Duration length) { return static_cast<double>(length.count()) / 1e6; }

}  // namespace

struct Gangs::Gang {
  const Workload* workload = nullptr;
  std::string ns, name;
  json::Value pod;
  std::int64_t size = 0, needed = 0;
  Duration length{}, arrived{};
  struct Member {
    std::optional<Duration> bound, running, over;
    Amounts requests{};
  };
  // Of this attempt:
  std::int64_t attempt = 0;
  std::optional<Duration> started;
  std::map<std::string, Member> members;  ///< By pod.
  bool has_ever_started = false, is_over = false;

  [[nodiscard]] const GangSetting& setting() const { return *workload->gang; }
  [[nodiscard]] std::string key() const { return ns + "/" + name; }
  [[nodiscard]] const std::string& queue() const { return setting().queue.empty() ? workload->name : setting().queue; }
  [[nodiscard]] std::int64_t count(std::optional<Duration> Member::*what) const {
    return std::ranges::count_if(members, [&](const auto& entry) { return (entry.second.*what).has_value(); });
  }
};

void GangCount::add(const GangCount& other) {
  arrived += other.arrived;
  started += other.started;
  finished += other.finished;
  anew += other.anew;
  waits.insert(waits.end(), other.waits.begin(), other.waits.end());
  for (std::size_t i = 0; i < kResources; ++i) {
    held[i] += other.held[i];
    worked[i] += other.worked[i];
  }
}

double GangCount::held_percent() const {
  const Resource one = counted();
  const double all = held[one] + worked[one];
  return all > 0 ? 100 * held[one] / all : 0;
}

double GangCount::wait_mean() const {
  double sum = 0;
  for (const float wait : waits) sum += wait;
  return waits.empty() ? 0 : sum / static_cast<double>(waits.size());
}

double GangCount::wait_at(double share) const {
  if (waits.empty()) return 0;
  std::vector<float> sorted = waits;
  std::ranges::sort(sorted);
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(static_cast<double>(sorted.size()) * share))];
}

Gangs::Gangs(Story& story, GangPolicy policy) : story_(story), policy_(policy) {}
Gangs::~Gangs() { lifeline_.end(); }

void Gangs::arrive(const Workload& workload, const std::string& ns, const std::string& name, json::Value pod, std::int64_t size,
                   Duration length) {
  auto gang = std::make_shared<Gang>();
  gang->workload = &workload;
  gang->ns = ns;
  gang->name = name;
  gang->pod = std::move(pod);
  gang->size = size;
  gang->needed = workload.gang->min_count > 0 ? std::min(workload.gang->min_count, size) : size;
  gang->length = length;
  gang->arrived = story_.now();
  if (!gang->setting().queue.empty())
    json::set(gang->pod, {"metadata", "labels", "kueue.x-k8s.io/queue-name"}, json::Value(std::string_view(gang->setting().queue)));
  ++counts_[gang->queue()].arrived;
  under_way_[gang->key()] = gang;
  if (policy_ != GangPolicy::kNone) {
    json::set(gang->pod, {"spec", "schedulingGroup", "podGroupName"}, json::Value(std::string_view(name)));
    json::Object spec{{"schedulingPolicy", json::Object{{"gang", json::Object{{"minCount", gang->needed}}}}}};
    if (!gang->setting().topology.empty())
      spec["schedulingConstraints"] = json::Object{{"topology", json::Array{json::Object{{"key", gang->setting().topology}}}}};
    if (gang->setting().goes_as_one) spec["disruptionMode"] = "PodGroup";
    if (const auto priority = json::get_string(gang->pod, {"spec", "priorityClassName"}); !priority.empty())
      spec["priorityClassName"] = priority;
    story_.create(json::Object{{"apiVersion", "scheduling.k8s.io/v1alpha2"},
                               {"kind", "PodGroup"},
                               {"metadata", json::Object{{"name", name}}},
                               {"spec", std::move(spec)}},
                  ns);
  }
  create_pods(gang);
}

void Gangs::create_pods(const GangPtr& gang) {
  for (std::int64_t i = 0; i < gang->size; ++i) {
    const std::string name =
        gang->attempt == 0 ? fmt::format("{}-{}", gang->name, i) : fmt::format("{}-a{}-{}", gang->name, gang->attempt, i);
    gang->members[name] = {};
    of_pod_[gang->ns + "/" + name] = gang;
    json::Value pod = gang->pod;
    json::set(pod, {"metadata", "name"}, json::Value(std::string_view(name)));
    story_.keep_track(gang->ns, name, gang->workload->keep_finished);
    story_.create(std::move(pod), gang->ns);
  }
}

void Gangs::see(PodStage stage, std::string_view ns, std::string_view name, const Amounts& requests) {
  const auto found = of_pod_.find(fmt::format("{}/{}", ns, name));
  if (found == of_pod_.end()) return;
  story_.at(story_.now(),
            lifeline_.guard([this, stage, gang = found->second, pod = std::string(name), requests] { act(stage, gang, pod, requests); }));
}

void Gangs::act(PodStage stage, const GangPtr& gang, const std::string& pod, const Amounts& requests) {
  const auto member = gang->members.find(pod);
  if (gang->is_over || member == gang->members.end()) return;
  Gang::Member& mine = member->second;
  const Duration now = story_.now();
  switch (stage) {
    case PodStage::kBound:
      if (gang->setting().patience > Duration(0) && gang->count(&Gang::Member::bound) == 0)
        story_.at(now + gang->setting().patience, lifeline_.guard([this, gang, attempt = gang->attempt] {
          if (gang->attempt == attempt && !gang->started && !gang->is_over) come_anew(gang);
        }));
      mine.bound = now;
      mine.requests = requests;
      break;
    case PodStage::kRunning:
      mine.running = now;
      if (gang->started)
        run_out(*gang, pod);
      else if (gang->count(&Gang::Member::running) >= gang->needed)
        start(*gang);
      break;
    case PodStage::kOver:
      mine.over = now;
      // It works for its length, to the second; who ends before has failed.
      if (!gang->started || now + std::chrono::seconds(1) < *gang->started + gang->length) return come_anew(gang);
      if (gang->count(&Gang::Member::over) >= gang->count(&Gang::Member::bound)) finish(gang);
      break;
    case PodStage::kGone:
      if (!mine.over) come_anew(gang);
      break;
  }
}

void Gangs::start(Gang& gang) {
  gang.started = story_.now();
  if (!std::exchange(gang.has_ever_started, true)) {
    GangCount& count = counts_[gang.queue()];
    ++count.started;
    count.waits.push_back(static_cast<float>(seconds(*gang.started - gang.arrived)));
  }
  for (const auto& [pod, member] : gang.members)
    if (member.running) run_out(gang, pod);
}

/// The pod ends with the gang: from here on it is known when.
void Gangs::run_out(const Gang& gang, const std::string& pod) {
  const Duration length = *gang.started + gang.length - *gang.members.at(pod).running;
  story_.patch(
      "", "pods", gang.ns, pod,
      json::Object{{"metadata", json::Object{{"annotations", json::Object{{"sim.berth.dev/run-for", format_go_duration(length)}}}}}});
}

void Gangs::account(Gang& gang, GangCount& into) const {
  const Duration now = story_.now();
  for (auto& [pod, member] : gang.members) {
    if (!member.bound) continue;
    const Duration end = member.over.value_or(now), work = gang.started ? std::max(*gang.started, *member.bound) : end;
    for (std::size_t i = 0; i < kResources; ++i) {
      into.held[i] += seconds(std::min(work, end) - *member.bound) * static_cast<double>(member.requests[i]);
      into.worked[i] += seconds(end - std::min(work, end)) * static_cast<double>(member.requests[i]);
    }
  }
}

void Gangs::come_anew(const GangPtr& gang) {
  GangCount& count = counts_[gang->queue()];
  ++count.anew;
  account(*gang, count);
  for (const auto& [pod, member] : gang->members) {
    of_pod_.erase(gang->ns + "/" + pod);
    story_.remove("", "pods", gang->ns, pod);
  }
  gang->members.clear();
  gang->started.reset();
  ++gang->attempt;
  story_.at(story_.now() + kBackoff, lifeline_.guard([this, gang] { create_pods(gang); }));
}

void Gangs::finish(const GangPtr& gang) {
  GangCount& count = counts_[gang->queue()];
  ++count.finished;
  account(*gang, count);
  gang->is_over = true;
  for (const auto& [pod, member] : gang->members) {
    of_pod_.erase(gang->ns + "/" + pod);
    if (!member.bound) story_.remove("", "pods", gang->ns, pod);
  }
  if (policy_ != GangPolicy::kNone) story_.remove("scheduling.k8s.io", "podgroups", gang->ns, gang->name);
  under_way_.erase(gang->key());
}

std::map<std::string, GangCount> Gangs::counts() const {
  std::map<std::string, GangCount> out = counts_;
  for (const auto& [key, gang] : under_way_) {
    GangCount& count = out[gang->queue()];
    account(*gang, count);
    // Whoever waits still has waited so long at least: left out, starving would look well.
    if (!gang->has_ever_started) count.waits.push_back(static_cast<float>(seconds(story_.now() - gang->arrived)));
  }
  return out;
}

}  // namespace berth::simulator
