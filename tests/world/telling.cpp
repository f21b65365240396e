#include "tests/world/telling.h"

#include <algorithm>

#include "node/simulated/fleet.h"

namespace berth::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using What = Fault::What;

const std::map<std::string, int> kDeployments = {{"web", 6}, {"api", 3}};
/// Beside the Deployments all of them fit at rest, whoever stands where.
constexpr int kGangs = 3, kGangSize = 3;
constexpr int kNodes = 4;
constexpr int kOperations = 60;                          ///< Of the disk, until the power fails: a dozen writes.
constexpr Duration kMostTurn = std::chrono::minutes(3);  ///< Of etcd's clock.
constexpr const char* kUsers[] = {"ann", "ben", "cleo"};
const model::Gvr kPodGroups{"scheduling.k8s.io", "v1alpha2", "podgroups"};

std::vector<std::pair<std::string, std::unique_ptr<Subject>>> make_subjects(World& world, Chronicle& chronicle) {
  std::vector<std::pair<std::string, std::unique_ptr<Subject>>> out;
  out.emplace_back("quota", make_quota_subject(world, chronicle));
  out.emplace_back("budgets", make_budget_subject(world, chronicle));
  out.emplace_back("services", make_service_subject(world, chronicle));
  out.emplace_back("devices", make_device_subject(world, chronicle));
  out.emplace_back("jobs", make_job_subject(world, chronicle));
  out.emplace_back("stateful set", make_stateful_set_subject(world, chronicle));
  out.emplace_back("taints", make_taint_subject(world, chronicle));
  out.emplace_back("rollout", make_rollout_subject(world, chronicle));
  out.emplace_back("apply", make_apply_subject(world, chronicle));
  out.emplace_back("secrets", make_secret_subject(world, chronicle));
  out.emplace_back("pools", make_pool_subject(world, chronicle));
  out.emplace_back("groups", make_group_subject(world, chronicle));
  return out;
}

}  // namespace

Telling::Telling(std::uint64_t seed, const std::vector<Fault>& faults, Ground ground)
    : world_(seed, kNodes, ground),
      chronicle_(world_),
      ledger_(world_),
      operator_(world_, "operator"),
      subjects_(make_subjects(world_, chronicle_)) {
  chronicle_.on_seen = [this](const Seen& seen) {
    for (auto& [name, subject] : subjects_) subject->see(seen);
  };
  for (const auto& [name, replicas] : kDeployments) want(name, replicas);
  for (auto& [name, subject] : subjects_) subject->set_up();
  for (const char* user : kUsers) users_.push_back(std::make_unique<RegisterUser>(world_, ledger_, user, seed));
  for (const char* name : {"watcher-1", "watcher-2"}) watchers_.push_back(std::make_unique<RegisterWatcher>(world_, name));
  Duration end = seconds(20);
  for (const Fault& fault : faults) {
    world_.loop().schedule_after(fault.at, [this, fault] { begin(fault); });
    world_.loop().schedule_after(fault.at + fault.lasts, [this, fault] { this->end(fault); });
    end = std::max(end, fault.at + fault.lasts);
  }
  world_.loop().run_for(end + seconds(1));
  heal();
}

Findings Telling::findings() {
  Findings all = world_.wrongs;
  if (world_.disk() != nullptr) all.insert(all.end(), world_.disk()->wrongs.begin(), world_.disk()->wrongs.end());
  const auto add = [&](const std::string& judge, const Findings& more) {
    for (const auto& one : more) all.push_back(fmt::format("{}: {}", judge, one));
  };
  add("registers", judge_registers(ledger_, world_.held()));
  for (const auto& watcher : watchers_) add("watch", judge_watch(*watcher, world_.held()));
  add("history", judge_history(world_.held()));
  for (auto& [name, subject] : subjects_) add(name, subject->findings);
  add("rest", at_the_end_);
  return all;
}

std::size_t Telling::fingerprint() {
  std::size_t sum = 0;
  for (const auto& record : world_.held().whole_history())
    sum = sum * 1'000'003 + std::hash<std::string>()(fmt::format("{}{}{}", record.key, record.revision, record.value == nullptr));
  return sum;
}

std::pair<int, int> Telling::power_failures() {
  return world_.disk() == nullptr ? std::pair{0, 0} : std::pair{world_.disk()->failures, world_.disk()->lost};
}

std::size_t Telling::acknowledged() const {
  return static_cast<std::size_t>(std::ranges::count(ledger_.acts(), Act::Outcome::kDone, &Act::outcome));
}

void Telling::begin(const Fault& fault) {
  switch (fault.what) {
    case What::kKillServer:
      return world_.kill_server(server(fault));
    case What::kStopServer:
      return world_.stop_server(server(fault));
    case What::kCutWire:
      return wire(fault).cut();
    case What::kLoseAnswers:
      wire(fault).loses_answers = fault.share;
      return;
    case What::kLoseRequests:
      wire(fault).loses_requests = fault.share;
      return;
    case What::kSlowWire:
      wire(fault).most_delay = milliseconds(1 + static_cast<int>(fault.share * 1500));
      return;
    case What::kKillComponent:
      return world_.kill(component(fault).name, fault.share < 0.5);
    case What::kStopComponent:
      return world_.stop_process(component(fault));
    case What::kTurnClocks:
      return world_.set_skew(Duration(static_cast<std::int64_t>((2 * fault.share - 1) * static_cast<double>(kMostSkew.count()))));
    case What::kNodeDies:
      return set_dead(fmt::format("node-{}", 1 + fault.which % kNodes), true);
    default:
      if (fault.what >= What::kCutWire) return begin_act(fault);
      return world_.disk() != nullptr ? begin_near_disk(fault) : begin_near_etcd(fault);
  }
}

void Telling::begin_near_etcd(const Fault& fault) {
  switch (fault.what) {
    case What::kCutEtcd:
      link(fault).is_cut = true;
      return;
    case What::kLoseEtcdAnswers:
      link(fault).loses_answers = fault.share / 2;
      return;
    case What::kLoseEtcdRequests:
      link(fault).loses_requests = fault.share;
      return;
    case What::kLagWatch:
      link(fault).watch_lag = milliseconds(static_cast<int>(fault.share * 3000));
      return;
    case What::kSlowEtcd:
      link(fault).most_delay = milliseconds(1 + static_cast<int>(fault.share * 1500));
      return;
    case What::kNoLeader:
      world_.etcd().has_leader = false;
      return;
    case What::kFullDisk:
      world_.etcd().is_full = true;
      return;
    case What::kCompact:
      return world_.etcd().compact(world_.held().revision() - static_cast<store::Revision>(fault.share * 50));
    case What::kTurnEtcdClock:
      return world_.etcd().turn_clock(Duration(static_cast<std::int64_t>((2 * fault.share - 1) * static_cast<double>(kMostTurn.count()))));
    default:
      return;
  }
}

void Telling::begin_near_disk(const Fault& fault) {
  if (fault.what == What::kFullDisk) return world_.disk()->set_full(true);
  if (fault.what != What::kCompact) world_.lose_power_after(1 + static_cast<int>(fault.share * kOperations));
}

void Telling::end_near_disk(const Fault& fault) {
  if (fault.what == What::kFullDisk) return world_.disk()->set_full(false);
  if (fault.what == What::kCompact) return;
  world_.lose_power();
  world_.start_server(0);
}

void Telling::begin_act(const Fault& fault) {
  switch (fault.what) {
    case What::kScale:
      return scale(fault);
    case What::kDeletePod:
      return delete_pod(fault);
    case What::kGang:
      return make_gang(fault);
    case What::kEndGang:
      return end_gang(fmt::format("gang-{}", fault.which % kGangs));
    case What::kUpgrade:
      return upgrade(fault);
    case What::kSubject:
      return subjects_[fault.which % subjects_.size()].second->act(fault.which / subjects_.size(), fault.share);
    default:
      return;
  }
}

void Telling::end(const Fault& fault) {
  switch (fault.what) {
    case What::kKillServer:
      return world_.start_server(server(fault));
    case What::kStopServer:
      return world_.continue_server(server(fault));
    case What::kCutWire:
      return wire(fault).heal();
    case What::kLoseAnswers:
      wire(fault).loses_answers = 0;
      return;
    case What::kLoseRequests:
      wire(fault).loses_requests = 0;
      return;
    case What::kSlowWire:
      wire(fault).most_delay = milliseconds(2);
      return;
    case What::kKillComponent:
      return world_.start(component(fault).name);
    case What::kStopComponent:
      return world_.continue_process(component(fault));
    case What::kNodeDies:
      return set_dead(fmt::format("node-{}", 1 + fault.which % kNodes), false);
    default:
      if (fault.what >= What::kCutWire) return;
      return world_.disk() != nullptr ? end_near_disk(fault) : end_near_etcd(fault);
  }
}

void Telling::end_near_etcd(const Fault& fault) {
  switch (fault.what) {
    case What::kCutEtcd:
      link(fault).is_cut = false;
      return;
    case What::kLoseEtcdAnswers:
      link(fault).loses_answers = 0;
      return;
    case What::kLoseEtcdRequests:
      link(fault).loses_requests = 0;
      return;
    case What::kLagWatch:
      link(fault).watch_lag = {};
      return;
    case What::kSlowEtcd:
      link(fault).most_delay = milliseconds(3);
      return;
    case What::kNoLeader:
      world_.etcd().has_leader = true;
      return;
    case What::kFullDisk:
      world_.etcd().is_full = false;
      return;
    default:
      return;
  }
}

void Telling::heal() {
  for (auto& user : users_) user->stop();
  world_.etcd().has_leader = true;
  world_.etcd().is_full = false;
  world_.set_skew({});
  for (auto& process : world_.processes()) {
    world_.continue_process(*process);
    process->wire->heal();
    process->wire->loses_answers = process->wire->loses_requests = 0;
    process->wire->most_delay = milliseconds(2);
  }
  if (world_.disk() != nullptr) world_.disk()->set_full(false);
  for (std::size_t i = 0; i < world_.servers(); ++i) {
    world_.continue_server(i);
    if (EtcdLink* link = world_.server(i).etcd.get()) {
      link->is_cut = false;
      link->loses_answers = link->loses_requests = 0;
      link->watch_lag = {};
      link->most_delay = milliseconds(3);
    }
    world_.start_server(i);
  }
  for (const char* name : World::kComponents) world_.start(name);
  for (const auto& [name, replicas] : kDeployments) want(name, replicas);
  for (int i = 1; i <= kNodes; ++i) set_dead(fmt::format("node-{}", i), false);
  for (auto& [name, subject] : subjects_) subject->heal();
  world_.loop().run_for(minutes(5));
  for (auto& [name, subject] : subjects_) subject->later();
  world_.loop().run_for(minutes(1));
  at_the_end_ = judge_rest(world_, kDeployments);
  for (auto& [name, subject] : subjects_) subject->judge_rest();
  lose_a_node();
}

void Telling::lose_a_node() {
  for (int i = 0; i < kGangs; ++i) end_gang(fmt::format("gang-{}", i));
  const std::string node = "node-1";
  set_dead(node, true);
  // Silence is noticed after 50 s, their tolerance lasts 10; a node more or less is asked about every 10 s.
  world_.loop().run_for(seconds(50 + 10 + 10 + 10));
  int elsewhere = 0;
  chronicle_.for_each("pods", "default", [&](const std::string& name, const json::Value& pod) {
    if (json::get_string(pod, {"metadata", "labels", "app"}) != "web") return;
    if (json::get_string(pod, {"spec", "nodeName"}) != node)
      elsewhere += is_active(pod) && is_ready(pod);
    else if (!is_leaving(pod))
      at_the_end_.push_back(fmt::format("{} stays on {}, whose machine has ended", name, node));
  });
  if (elsewhere != kDeployments.at("web")) at_the_end_.push_back(fmt::format("{} pods of web without {}", elsewhere, node));
}

void Telling::want(const std::string& name, int replicas) {
  json::Value labels = json::Object{{"app", name}};
  json::Value spec = pod_spec("500m");
  // Of a node that has gone silent these go soon, and are made elsewhere. What the operator's taint is about are other pods.
  json::set(spec, {"tolerations"},
            name == "web"
                ? document(R"([{"key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":10,"effect":)"
                           R"("NoExecute"},{"key":"berth.dev/op","operator":"Exists","tolerationSeconds":20,"effect":"NoExecute"}])")
                : document(R"([{"key":"berth.dev/op","operator":"Exists"}])"));
  json::Value object = document(R"({"apiVersion":"apps/v1","kind":"Deployment"})");
  json::set(object, {"metadata", "name"}, json::Value(name));
  json::set(object, {"spec", "replicas"}, replicas);
  json::set(object, {"spec", "selector", "matchLabels"}, labels);
  json::set(object, {"spec", "template", "metadata", "labels"}, labels);
  json::set(object, {"spec", "template", "spec"}, std::move(spec));
  operator_.apply(gvr::kDeployments, "default", name, std::move(object));
}

void Telling::scale(const Fault& fault) {
  const std::string name = fault.which % 2 == 0 ? "web" : "api";
  const json::Value body = json::Object{{"spec", json::Object{{"replicas", static_cast<int>(fault.share * 9)}}}};
  operator_.client.patch(gvr::kDeployments, "default", name, client::PatchType::kMerge, body, [](const auto&) {});
}

/// To the next build, or back to the one before. What that one could not read is written anew instead.
void Telling::upgrade(const Fault& fault) {
  const std::size_t to = (world_.build() + (fault.share < 0.3 ? kBuilds - 1 : 1)) % kBuilds;
  std::vector<std::pair<std::string, std::string>> unreadable;
  world_.for_each_secret([&](std::string_view ns, std::string_view name, const std::string& stored) {
    if (!opens_secret(to, stored)) unreadable.emplace_back(ns, name);
  });
  for (const auto& [ns, name] : unreadable) operator_.edit(gvr::kSecrets, ns, name, [](json::Value&) {});
  if (unreadable.empty()) world_.upgrade(to, fault.which, std::min<Duration>(fault.lasts / 4, seconds(5)));
}

void Telling::delete_pod(const Fault& fault) {
  const auto pods = chronicle_.names("pods", "default");
  if (!pods.empty()) operator_.try_remove(gvr::kPods, "default", pods[fault.which % pods.size()]);
}

/// Three pods that are of use together alone. The group may come before them, between them or after them.
void Telling::make_gang(const Fault& fault) {
  const std::string gang = fmt::format("gang-{}", fault.which % kGangs);
  json::Value group = document(R"({"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup"})");
  json::set(group, {"metadata", "name"}, json::Value(gang));
  json::set(group, {"spec", "schedulingPolicy", "gang", "minCount"}, kGangSize);
  json::Value spec = pod_spec("1");
  json::set(spec, {"schedulingGroup", "podGroupName"}, json::Value(gang));
  json::set(spec, {"tolerations"}, document(R"([{"key":"berth.dev/op","operator":"Exists"}])"));
  const auto place = static_cast<int>(fault.share * (kGangSize + 1));
  int members = 0;
  for (int i = 0; i <= kGangSize; ++i) {
    if (i == place) {
      operator_.try_make(kPodGroups, "default", group);
      continue;
    }
    json::Value pod = document(R"({"apiVersion":"v1","kind":"Pod"})");
    json::set(pod, {"metadata", "name"}, json::Value(fmt::format("{}-{}", gang, members++)));
    json::set(pod, {"metadata", "labels", "gang"}, json::Value(gang));
    json::set(pod, {"spec"}, spec);
    operator_.try_make(gvr::kPods, "default", pod);
  }
}

void Telling::end_gang(const std::string& gang) {
  operator_.try_remove(kPodGroups, "default", gang);
  for (int i = 0; i < kGangSize; ++i) operator_.try_remove(gvr::kPods, "default", fmt::format("{}-{}", gang, i));
}

void Telling::set_dead(const std::string& node, bool is_dead) {
  json::Value patch = json::Object();
  json::set(patch, {"metadata", "annotations", node::simulated::kDeadAnnotation}, is_dead ? "true" : "false");
  operator_.change(gvr::kNodes, "", node, client::PatchType::kMerge, std::move(patch));
}

}  // namespace berth::world
