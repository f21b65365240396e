#include "tests/scheduler/lives/life.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "placement/cluster_kinds.h"
#include "placement/plugin_of.h"

namespace berth::scheduler::lives {

using client::ObjectRef;

namespace {

constexpr const char* kNamespace = "default";

class Doorman final : public placement::PluginOf<Doorman> {
 public:
  std::string_view name() const override { return "Doorman"; }
  placement::PermitOutcome permit(placement::CycleState&, const placement::PodInfo& pod, const placement::NodeInfo&,
                                  placement::WaitingPods& waiting) const override {
    const std::string* door = pod.view().meta.labels.get("door");
    if (door == nullptr) return {};
    if (*door == "opens") waiting.for_each([&](const auto& other, std::string_view) { waiting.allow(other.view().meta.uid, name()); });
    if (*door == "clears")
      waiting.for_each([&](const auto& other, std::string_view) { waiting.reject(other.view().meta.uid, name(), "make way"); });
    if (*door == "shut") return {placement::Status::unschedulable("the door is shut")};
    if (*door == "broken") return {placement::Status::error("the door is broken")};
    if (*door == "wait") return {placement::Status::wait(), std::chrono::seconds(20)};
    if (*door == "long") return {placement::Status::wait(), std::chrono::hours(2)};
    return {};
  }
  placement::EventSet events_to_register() const override {
    return placement::EventSet(placement::ClusterEvent::kNodeAdded) | placement::ClusterEvent::kOwnLabels;
  }
};

Result<placement::PluginPtr> make_doorman(const placement::Profile&) { return std::make_unique<Doorman>(); }

std::shared_ptr<const Extenders> two_extenders(Extenders::Post post) {
  config::Extender first, second;
  first.url_prefix = "http://first";
  first.filter_verb = "filter";
  first.prioritize_verb = "rank";
  first.preempt_verb = "preempt";
  first.weight = 1;
  first.node_cache_capable = true;
  first.managed_resources = {{"example.com/fpga", false}};
  second.url_prefix = "http://second";
  second.filter_verb = "filter";
  second.bind_verb = "bind";
  second.ignorable = true;
  second.node_cache_capable = true;
  second.managed_resources = {{"example.com/nic", false}};
  return std::make_shared<const Extenders>(std::vector{first, second}, std::move(post));
}

}  // namespace

void register_doorman() {
  static const bool is_registered = placement::register_plugin({"Doorman", make_doorman});
  ASSERT_TRUE(is_registered);
}

Life::Life(Subject of) : dice(of.seed), subject(std::move(of)) {
  SchedulerOptions options;
  options.profiles = subject.profiles;
  options.groups = std::make_shared<GroupOptions>(subject.groups);
  options.max_bindings_in_flight = subject.max_bindings_in_flight;
  options.preemption.budgets_are_hard = subject.budgets_are_hard;
  if (!subject.random_ties) options.engine.tie_break = placement::EngineOptions::TieBreak::kFirstByName;
  core_ = std::make_unique<Core>(
      options, *placement::Profiles::create(options.profiles),
      [this](const client::Gvr& gvr, const std::string& ns, const std::string& name) { return server.known(gvr.resource, ns, name); },
      clock_, [this](Effect effect) { std::visit([this](auto& one) { take(one); }, effect); });
  if (subject.extenders)
    core_->extenders = two_extenders(
        [this](std::size_t extender, const std::string& verb, const std::string& body) { return extender_says(extender, verb, body); });
  core_->serves_groups = subject.serves_groups;
  core_->is_ready = true;
  core_->now = clock_.now();
}

std::string Life::run() {
  step("leads");
  core_->lead(true);
  end_step();
  for (int i = 0; i < 3; ++i) make_node();
  int weights = 0;
  for (const auto& [weight, act] : subject.acts) weights += weight;
  for (std::size_t i = 0; i < subject.steps && wrongs_ < 3; ++i) {
    if (!core_->is_leader && dice.chance(15)) change_leader();
    int at = dice.below(static_cast<std::size_t>(weights));
    for (const auto& [weight, act] : subject.acts) {
      at -= weight;
      if (at >= 0) continue;
      (this->*act)();
      break;
    }
  }
  come_to_rest();
  empty_the_world();
  return text_;
}

// What the core wants done.

void Life::ask(Ask id, std::string what, decltype(Question::of) of) {
  if (id == 0) ++waits_for_nobody_;
  say("  > " + what);
  open_.push_back({id, std::move(what), std::move(of)});
}

void Life::take(Request& request) {
  const client::Call& call = request.call;
  std::string what = fmt::format("{} {}/{}", call.verb, call.gvr.resource, call.name);
  if (!call.subresource.empty()) what += "/" + call.subresource;
  if (!call.body.empty()) what += " " + call.body;
  ask(request.id, std::move(what), std::move(request.call));
}

void Life::take(const Report& report) {
  say(fmt::format("  ! {}: {} {}/{}{}: {} ({}{}{})", report.profile, report.type, report.regarding.kind, report.regarding.name,
                  report.regarding.uid.empty() ? " without uid" : "", report.message, report.reason,
                  report.action == report.reason ? "" : ", ", report.action == report.reason ? "" : report.action));
  if (report.related) say(fmt::format("    because of {}", report.related->name));
}

void Life::take(const WakeAt& wake) {
  timers_[wake.id] = wake.when;
  say(fmt::format("  > wake at {}", shown(wake.when)));
}

void Life::take(const CancelWake& wake) {
  const auto timer = timers_.extract(wake.id);
  if (timer.empty()) return wrong("a timer is called off that is not set");
  say(fmt::format("  > no wake at {}", shown(timer.mapped())));
}

void Life::take(const Later& later) { posted_.push_back(later.id); }

void Life::take(const TakeTurns&) {
  if (!std::exchange(turns_posted_, true)) posted_.push_back(kTurns);
}

void Life::take(AskForNode& question) {
  const std::string what = "ask for the node of " + question.info->key;
  ask(question.id, what, std::move(question));
  open_.back().fork = std::make_shared<placement::Trial>(core_->trial.fork());
}

void Life::take(AskForVictims& question) {
  const std::string what = "ask for the victims of " + question.info->key;
  ask(question.id, what, std::move(question));
  open_.back().fork = std::make_shared<placement::Trial>(core_->trial.fork());
}

void Life::take(AskToBind& question) {
  const std::string what = fmt::format("ask to bind {} to {}", question.info->key, question.node_name);
  ask(question.id, what, std::move(question));
}

// What the world does.

void Life::answer() {
  if (open_.empty()) return;
  // Mostly in order.
  std::size_t which = dice.chance(60) ? 0 : static_cast<std::size_t>(dice.below(open_.size()));
  // What concerns one object reaches the server as it was sent.
  const auto target = [this](std::size_t i) {
    const auto* call = std::get_if<client::Call>(&open_[i].of);
    return call != nullptr ? call->gvr.resource + "/" + call->name : std::to_string(i);
  };
  for (std::size_t i = 0; i < which; ++i)
    if (target(i) == target(which)) which = i;
  answer_question(which, false);
}

void Life::answer_question(std::size_t which, bool is_quiet) {
  Question question = std::move(open_[which]);
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
  if (question.id == 0) --waits_for_nobody_;
  const std::string what = question.what.substr(0, question.what.find(" {"));
  Answer answer;
  std::string how = "done";
  if (const auto* call = std::get_if<client::Call>(&question.of)) {
    const int luck = is_quiet ? 100 : dice.below(100);
    const bool is_done = luck >= subject.faults / 2 || luck < subject.faults / 4;
    Answered answered = json::Value();
    if (is_done) {
      answered = server.carry_out(*call);
      if (answered && call->subresource == "binding") {
        const auto uid = json::get_string(*json::parse(call->body), {"metadata", "uid"});
        if (!bound_.emplace(uid).second) wrong(fmt::format("{} is bound twice", uid));
      }
    }
    if (luck < subject.faults / 2) {
      answered = std::unexpected(model::ApiStatus{.code = 0, .message = "connection reset by peer"});
      how = is_done ? "done, and no answer" : "lost";
    } else if (luck < subject.faults) {
      constexpr std::array<std::pair<int, const char*>, 4> kRefusals = {
          {{409, "the object has been modified"}, {500, "etcdserver: request timed out"}, {403, "forbidden"}, {404, "not found"}}};
      const auto& [code, message] = kRefusals.at(static_cast<std::size_t>(dice.below(kRefusals.size())));
      answered = std::unexpected(model::ApiStatus{.code = code, .message = message});
      how = fmt::format("{}, whatever was done", code);
    } else if (!answered) {
      how = fmt::format("{} {}", answered.error().code, answered.error().message);
    }
    answer = std::move(answered);
  } else if (auto* node = std::get_if<AskForNode>(&question.of)) {
    Chosen chosen;
    chosen.decision = core_->extenders->choose(question.fork->cluster(), *node->info, node->object->document(), *node->evaluation,
                                               [](const std::string& name) {
                                                 return json::Value{{"metadata", {{"name", name}}}};
                                               });
    chosen.node_name = chosen.decision.node_name;
    how = chosen.decision.outcome == placement::Decision::Outcome::kScheduled ? chosen.node_name
          : chosen.decision.outcome == placement::Decision::Outcome::kError
              ? chosen.decision.error
              : placement::fit_error_message(*chosen.decision.diagnosis, placement::Era::k136, "");
    answer = std::move(chosen);
  } else if (auto* victims = std::get_if<AskForVictims>(&question.of)) {
    const Extenders::Documents documents{[](const placement::PodInfo& pod) {
                                           return json::Value{{"metadata", {{"uid", pod.view().meta.uid}}}};
                                         },
                                         [](const std::string& name) {
                                           return json::Value{{"metadata", {{"name", name}}}};
                                         }};
    LeftVictims left = core_->extenders->process_preemption(question.fork->cluster(), *victims->info, victims->object->document(),
                                                            victims->candidates, documents);
    how = left ? fmt::format("{} of {} candidates", left->size(), victims->candidates.size()) : left.error().message;
    answer = std::move(left);
  } else {
    const auto& bind = std::get<AskToBind>(question.of);
    Bound bound = core_->extenders->bind(bind.info->view(), bind.node_name);
    how = bound ? (*bound ? "bound" : "not theirs") : bound.error().message;
    if (bound && *bound) {
      const json::Value binding{{"metadata", {{"uid", bind.info->view().meta.uid}}}, {"target", {{"name", bind.node_name}}}};
      const client::Call call{.verb = "create",
                              .gvr = kPods,
                              .ns = kNamespace,
                              .name = bind.info->view().meta.name,
                              .subresource = "binding",
                              .body = json::serialize(binding)};
      if (const auto done = server.carry_out(call); !done) {
        bound = invalid(done.error().message);
        how = done.error().message;
      }
    }
    answer = std::move(bound);
  }
  step(fmt::format("answer to {}: {}", what, how));
  if (question.id != 0) core_->out.answered(question.id, std::move(answer));
  end_step();
}

Result<std::string> Life::extender_says(std::size_t extender, const std::string& verb, const std::string& body) {
  const int luck = is_restful_ ? 100 : dice.below(100);
  if (luck < 8) return fail(ErrorCode::kUnavailable, fmt::format("the extender {} is away", extender));
  if (verb == "bind") return std::string(luck < 16 ? R"({"Error":"will not bind"})" : "{}");
  const json::Value asked = *json::parse(body);
  if (verb == "preempt") {
    json::Object left;
    for (const auto& [node, victims] : json::get_object(asked, {"NodeNameToMetaVictims"}))
      if (luck > 90 || dice.chance(70)) left[node] = victims;
    return json::serialize(json::Value{{"NodeNameToMetaVictims", std::move(left)}});
  }
  json::Array names, scores;
  json::Object failed, hopeless;
  for (const json::Value& name : json::get_array(asked, {"NodeNames"})) {
    const bool is_kept = is_restful_ || dice.chance(70);
    if (is_kept) names.push_back(name);
    if (!is_kept) (dice.chance(50) ? failed : hopeless)[json::as_view(name)] = "the extender does not want it";
    scores.push_back(json::Object{{"Host", name}, {"Score", is_restful_ ? 1 : dice.below(11)}});
  }
  if (verb == "rank") return json::serialize(json::Value(std::move(scores)));
  return json::serialize(json::Value{
      {"NodeNames", std::move(names)}, {"FailedNodes", std::move(failed)}, {"FailedAndUnresolvableNodes", std::move(hopeless)}});
}

void Life::show() {
  const auto news = server.news();
  if (news.empty()) return;
  const std::string resource = dice.of(news);
  for (int i = dice.chance(30) ? 1 + dice.below(4) : 1; i > 0 && server.has_news(resource); --i) show_of(resource, dice.chance(20));
}

void Life::show_of(const std::string& resource, bool skips) {
  const Server::Shown shown = server.show(resource, skips);
  const client::Object& one = shown.after != nullptr ? *shown.after : *shown.before;
  step(fmt::format("seen {} {}{}", resource, one.name(), shown.after == nullptr ? " gone" : shown.before == nullptr ? " new" : ""));
  if (resource == "pods" || resource == "nodes") {
    const bool is_pod = resource == "pods";
    if (shown.before == nullptr)
      is_pod ? core_->pod_added(shown.after) : core_->node_added(shown.after);
    else if (shown.after == nullptr)
      is_pod ? core_->pod_deleted(shown.before) : core_->node_deleted(shown.before);
    else
      is_pod ? core_->pod_updated(shown.before, shown.after) : core_->node_updated(shown.before, shown.after);
  } else {
    const auto kind = std::ranges::find(placement::kClusterResources, resource, &placement::ClusterResource::plural);
    const client::Gvr gvr{std::string(kind->group), "v1", resource};
    core_->object_changed({std::string(kind->kind), gvr, kind->event}, shown.before, shown.after);
  }
  end_step();
}

void Life::change_leader() {
  const bool leads = !core_->is_leader;
  step(leads ? "leads" : "leads no more");
  core_->lead(leads);
  end_step();
}

void Life::pass_time() {
  constexpr std::array<int, 8> kMilliseconds = {1, 300, 1000, 1000, 2500, 10'000, 61'000, 310'000};
  pass(std::chrono::milliseconds(dice.of(kMilliseconds)));
}

void Life::pass(Duration time) {
  const TimePoint until = clock_.time + time;
  for (int turns = 0;; ++turns) {
    if (turns > 2000) return wrong("time stands still");
    const auto due = std::ranges::min_element(timers_, {}, [](const auto& timer) { return std::pair(timer.second, timer.first); });
    const auto turn = core_->is_leader ? core_->next_turn() : std::nullopt;
    const TimePoint next = std::min(due != timers_.end() ? due->second : TimePoint::max(), turn.value_or(TimePoint::max()));
    if (next > until) break;
    const bool is_timer = due != timers_.end() && due->second == next;
    clock_.time = std::max(next, clock_.time);
    core_->now = clock_.time;
    step(is_timer ? "a timer" : "a turn");
    if (is_timer) {
      const Ask id = due->first;
      timers_.erase(due);
      core_->out.answered(id, {});
    } else {
      take(TakeTurns{});
    }
    run_posted();
    end_step();
  }
  clock_.time = until;
  core_->now = until;
}

void Life::run_posted() {
  while (!posted_.empty()) {
    const Ask id = posted_.front();
    posted_.pop_front();
    if (id != kTurns) {
      core_->out.answered(id, {});
      continue;
    }
    turns_posted_ = false;
    if (!core_->is_leader) continue;
    while (core_->take_turn()) continue;
  }
}

// What is written down.

std::string Life::shown(TimePoint at) const {
  return fmt::format("{:.3f}", static_cast<double>((at - TimePoint(std::chrono::hours(500'000))).count()) / 1e6);
}

std::string Life::shown(const Tracked& pod) const {
  std::string out(kStageNames[pod.stage().index()]);
  const std::string& uid = pod.info->view().meta.uid;
  if (const HeldPtr held = pod.held()) {
    out += fmt::format(" on {}", held->node_name);
    if (!held->writes.empty()) out += fmt::format(", {} of {} written", held->written, held->writes.size());
    if (held->holds_slot) out += ", slot";
    if (!held->is_assumed) out += ", seen";
  }
  if (const auto* open = pod.as<Preempting>())
    out += fmt::format(" {}{}{}", fmt::join(open->victims, " "), open->has_failed ? ", failed" : "", open->missed_event ? ", missed" : "");
  if (const auto* wait = pod.as<AtPermit>())
    for (const auto& [plugin, timer] : wait->plugins) out += " for " + plugin;
  if (!pod.nominated().empty()) out += ", nominated " + pod.nominated();
  if (!pod.gated_by.empty()) out += ", gated by " + pod.gated_by;
  if (const auto* queued = core_->queue.find(uid)) {
    out += fmt::format(", tried {} {} {}{}{}", queued->attempts, queued->unschedulable_count, queued->consecutive_errors,
                       queued->waited_in_vain ? " in vain" : "", core_->queue.is_in_flight(uid) ? " in flight" : "");
    if (queued->rejected_by != 0) out += fmt::format(" by {}", fmt::join(core_->bits.names(queued->rejected_by), " "));
  }
  return out;
}

void Life::step(const std::string& what) {
  core_->now = clock_.time;
  say(fmt::format("{} {}", shown(clock_.time), what));
  ++steps_;
}

void Life::end_step() {
  // Now and then the next thing happens before what was put off.
  if (is_restful_ || !dice.chance(15)) run_posted();
  std::map<std::string, std::string> now;
  for (const auto& [uid, pod] : core_->pods) now[uid] = shown(pod);
  for (const auto& [uid, what] : now)
    if (const auto last = last_shown_.find(uid); last == last_shown_.end() || last->second != what)
      say(fmt::format("  = {}: {}", uid, what));
  for (const auto& [uid, what] : last_shown_)
    if (!now.contains(uid)) say(fmt::format("  = {}: no more", uid));
  last_shown_ = std::move(now);
  const auto sizes = core_->queue.sizes();
  std::string queue = fmt::format("{} active, {} backoff, {} unschedulable, {} gated, {} assumed, {} bindings", sizes.active, sizes.backoff,
                                  sizes.unschedulable, sizes.gated, core_->assumed, core_->bindings_in_flight);
  if (const auto next = core_->queue.next_wake()) queue += ", next " + shown(*next);
  for (const auto& [key, kept] : core_->reservations) queue += fmt::format(", {} has {} stand-ins", key, kept.stand_ins.size());
  for (const auto& [key, wait] : core_->group_waits) queue += fmt::format(", {} waits since {}", key, shown(wait.since));
  if (queue != last_queue_) say("  = " + queue);
  last_queue_ = std::move(queue);
  judge();
}

/// Sums and counts, without buckets.
std::string Life::metrics() const {
  std::string out;
  const std::string all = core_->meters.registry().expose();
  for (std::size_t at = 0; at < all.size();) {
    const std::string line = all.substr(at, all.find('\n', at) - at);
    at += line.size() + 1;
    if (line.empty() || line.front() == '#' || line.find("_bucket") != std::string::npos) continue;
    out += "  " + line + "\n";
  }
  return out;
}

void Life::come_to_rest() {
  is_restful_ = true;
  if (!core_->is_leader) change_leader();
  for (int round = 0; round < 40 && wrongs_ < 3; ++round) {
    for (int i = 0; i < 200 && !(open_.empty() && server.news().empty()); ++i) {
      if (!open_.empty()) answer_question(0, true);
      for (const std::string& resource : server.news()) show_of(resource, false);
    }
    run_nodes();
    provision();
    tend_devices();
    pass(std::chrono::seconds(61));
    if (round > 12 && open_.empty() && server.news().empty()) break;
  }
  judge_rest();
  text_ += metrics();
}

void Life::empty_the_world() {
  for (const char* resource : {"podgroups", "pods", "nodes", "poddisruptionbudgets", "persistentvolumeclaims", "persistentvolumes",
                               "resourceclaims", "resourceslices", "deviceclasses", "storageclasses", "services", "namespaces"})
    for (const std::string& key : server.names(resource)) {
      const std::size_t slash = key.find('/');
      server.erase(resource, slash == std::string::npos ? "" : key.substr(0, slash),
                   key.substr(slash == std::string::npos ? 0 : slash + 1));
    }
  for (int i = 0; i < 200 && !(open_.empty() && server.news().empty()); ++i) {
    if (!open_.empty()) answer_question(0, true);
    for (const std::string& resource : server.news()) show_of(resource, false);
    pass(std::chrono::seconds(2));
  }
  expect_nothing_left();
}

}  // namespace berth::scheduler::lives
