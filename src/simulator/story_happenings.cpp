// Faults and changes of a story.
#include <fmt/format.h>

#include "model/selector.h"
#include "model/topology_labels.h"
#include "model/views/pod_facts.h"
#include "pools/node_pool.h"
#include "simulator/story.h"

namespace berth::simulator {
namespace {

/// After a fault, before heartbeats may go without being written: longer than any grace period.
constexpr Duration kSettle = std::chrono::minutes(2);
constexpr Duration kDrainRetry = std::chrono::seconds(5), kDrainLimit = std::chrono::hours(1);

json::Value annotation(std::string_view key, json::Value value) {
  return json::Object{{"metadata", json::Object{{"annotations", json::Object{{key, std::move(value)}}}}}};
}

/// What is to be said of a choice that found less than it named.
std::string how_many(const NodeChoice& choice, const std::vector<std::string>& found) {
  if (found.empty()) return ": there is none";
  const std::size_t wanted = std::max(choice.names.size(), static_cast<std::size_t>(std::max<std::int64_t>(choice.count, 0)));
  return found.size() < wanted ? fmt::format(": there {} only {}", found.size() == 1 ? "is" : "are", found.size()) : "";
}

}  // namespace

std::vector<std::string> Story::choose(const NodeChoice& choice, Random& random) const {
  apiserver::ObjectCache* cache = cluster_.cache();
  if (cache == nullptr) return {};
  apiserver::WatchFilter filter;
  filter.prefix = apiserver::make_prefix("", "nodes");
  if (auto selector = model::Selector::parse(choice.selector)) filter.labels = std::move(*selector);
  std::vector<std::string> out;
  for (const apiserver::ObjectPtr& node : cache->list(filter, "", 0).items) {
    const std::string* zone = node->meta.labels().get(model::kZoneLabel.present);
    const bool is_in_zone = choice.zone.empty() || (zone != nullptr && (*zone == choice.zone || *zone == "zone-" + choice.zone));
    const bool is_named = choice.names.empty() || std::ranges::find(choice.names, std::string(node->meta.name)) != choice.names.end();
    if (is_in_zone && is_named) out.emplace_back(node->meta.name);
  }
  if (choice.count > 0 && static_cast<std::size_t>(choice.count) < out.size()) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(choice.count); ++i) std::swap(out[i], out[i + random.below(out.size() - i)]);
    out.resize(static_cast<std::size_t>(choice.count));
    std::ranges::sort(out);
  }
  return out;
}

void Story::start_fault(const Fault& fault, std::size_t number) {
  const Duration day_offset = scenario_.start.time_since_epoch() % Duration(std::chrono::hours(24));
  const std::string name = fmt::format("fault {}", number);
  auto stream = std::make_shared<ArrivalStream>(fault.when, Random(scenario_.seed, name), day_offset, scenario_.duration);
  auto random = std::make_shared<Random>(scenario_.seed, name + "/choice");
  auto next = std::make_shared<std::function<void()>>();
  *next = [this, &fault, stream, random, weak = std::weak_ptr(next)] {
    const auto again = weak.lock();
    const auto when = stream->next();
    if (!when || !again) return;
    at(*when, [this, &fault, random, again] {
      strike(fault, *random);
      (*again)();
    });
  };
  (*next)();
}

void Story::strike(const Fault& fault, Random& random) {
  Strike strike{fault, ++strikes_};
  const bool is_of_nodes = fault.what == Fault::What::kLose || fault.what == Fault::What::kDelete || fault.what == Fault::What::kTaint ||
                           fault.what == Fault::What::kCordon || fault.what == Fault::What::kInterrupt;
  if (is_of_nodes) return strike_nodes(strike, random);
  if (fault.lasts) strike.lasts = fault.lasts->draw(random);
  const bool is_of_component = fault.what == Fault::What::kRestart || fault.what == Fault::What::kClock;
  tell_("fault", fault.text);
  unsteadily([this, strike, is_of_component] { is_of_component ? strike_component(strike) : strike_links(strike); });
}

void Story::strike_nodes(Strike strike, Random& random) {
  const Fault& fault = strike.fault;
  const std::vector<std::string> nodes = choose(fault.nodes, random);
  if (fault.lasts) strike.lasts = fault.lasts->draw(random);
  tell_("fault",
        fmt::format("{}{}{}", fault.text,
                    fault.nodes.names.empty() && !nodes.empty() && nodes.size() <= 5 ? fmt::format(" ({})", fmt::join(nodes, ", ")) : "",
                    how_many(fault.nodes, nodes)));
  for (const std::string& node : nodes) change_node(strike, node, true);
  if (!strike.lasts) return;
  at(now() + *strike.lasts, [this, strike, nodes] {
    if (!nodes.empty()) tell_("fault", strike.fault.text + ": over");
    for (const std::string& node : nodes) change_node(strike, node, false);
  });
}

void Story::change_node(const Strike& strike, const std::string& node, bool begins) {
  const Fault& fault = strike.fault;
  if (fault.what == Fault::What::kDelete) {
    if (begins) remove("", "nodes", "", node);
    return;
  }
  if (fault.what == Fault::What::kInterrupt) {
    if (begins) patch("", "nodes", "", node, annotation(pools::kInterruption, "2m"));
    return;
  }
  std::string what = fault.what == Fault::What::kLose ? "dead" : "unschedulable";
  if (fault.what == Fault::What::kTaint)
    what = fmt::format("{}:{}", json::get_string(fault.taint, {"key"}), json::get_string(fault.taint, {"effect"}));
  InForce<json::Value>& wanted = node_changes_[{node, what}];
  if (begins)
    wanted.begin(strike.number, fault.what == Fault::What::kTaint ? fault.taint : json::Value(true));
  else
    wanted.end(strike.number);
  apiserver::ObjectCache* cache = cluster_.cache();
  const bool is_gone = cache != nullptr && cache->get(apiserver::make_key("", "nodes", "", node)) == nullptr;
  if (!begins && is_gone) return;  // Removed in the meantime, as lost machines are.
  const bool holds = !wanted.empty();
  if (fault.what == Fault::What::kLose)
    patch("", "nodes", "", node, annotation("sim.berth.dev/dead", holds ? json::Value("true") : json::Value(nullptr)));
  if (fault.what == Fault::What::kCordon)
    patch("", "nodes", "", node, json::Object{{"spec", json::Object{{"unschedulable", holds ? json::Value(true) : json::Value(nullptr)}}}});
  if (fault.what == Fault::What::kTaint) set_taint(node, holds ? wanted.value() : fault.taint, holds);
}

void Story::set_taint(const std::string& node, const json::Value& taint, bool present) {
  apiserver::ObjectCache* cache = cluster_.cache();
  if (cache == nullptr) return at(now() + std::chrono::seconds(1), [this, node, taint, present] { set_taint(node, taint, present); });
  const apiserver::ObjectPtr object = cache->get(apiserver::make_key("", "nodes", "", node));
  const auto document = object ? json::parse(object->text().here()) : Result<json::Value>(json::Value());
  if (!object || !document) return;
  json::Array taints;
  for (const json::Value& one : json::get_array(*document, {"spec", "taints"}))
    if (json::get_string(one, {"key"}) != json::get_string(taint, {"key"}) ||
        json::get_string(one, {"effect"}) != json::get_string(taint, {"effect"}))
      taints.push_back(one);
  if (present) taints.push_back(taint);
  patch("", "nodes", "", node, json::Object{{"spec", json::Object{{"taints", std::move(taints)}}}});
}

void Story::unsteadily(std::function<void()> what) {
  if (unsteady_++ == 0) cluster_.set_steady_heartbeats(false);
  // Once what heartbeats had to say is written.
  at(now() + std::chrono::milliseconds(1), std::move(what));
}

void Story::steady_again() {
  at(now() + kSettle, [this] {
    if (--unsteady_ == 0) cluster_.set_steady_heartbeats(true);
  });
}

void Story::strike_links(const Strike& strike) {
  const auto each = [this, strike](bool begins) {
    const Fault& fault = strike.fault;
    const auto change = [&](auto& in_force, auto value) { begins ? in_force.begin(strike.number, value) : in_force.end(strike.number); };
    if (fault.what == Fault::What::kSlowApi) change(delays_, fault.delay);
    if (fault.what == Fault::What::kFailingApi) change(failing_, fault.share);
    if (fault.what == Fault::What::kCut) change(cuts_[fault.component], true);
    for (const std::string_view name : {"scheduler", "controllers", "nodes", "autoscaler", "pools"}) {
      Link& link = cluster_.link(name);
      link.set_delay(delays_.value());
      link.set_failing(failing_.value());
      if (fault.what == Fault::What::kCut && name == fault.component) cuts_[fault.component].empty() ? link.heal() : link.cut();
    }
  };
  each(true);
  if (!strike.lasts) return;
  at(now() + *strike.lasts, [this, each, strike] {
    tell_("fault", strike.fault.text + ": over");
    each(false);
    steady_again();
  });
}

void Story::hold_down(const std::string& component, std::uint64_t strike, Duration away) {
  cluster_.stop(component);
  down_[component].begin(strike, true);
  at(now() + away, [this, component, strike] {
    down_[component].end(strike);
    if (!down_[component].empty()) return;
    if (const auto started = cluster_.start(component); !started)
      tell_("fault", fmt::format("{} does not start: {}", component, started.error().message));
  });
}

/// A machine whose clock is wrong takes over.
void Story::set_clock(const Strike& strike, bool begins) {
  begins ? clocks_.begin(strike.number, strike.fault.delay) : clocks_.end(strike.number);
  cluster_.stop("controllers");
  cluster_.set_clock_ahead(clocks_.value());
  hold_down("controllers", ++strikes_, std::chrono::seconds(1));
}

void Story::strike_component(const Strike& strike) {
  const Fault& fault = strike.fault;
  if (fault.what == Fault::What::kRestart) {
    const Duration away = strike.lasts.value_or(std::chrono::seconds(10));
    hold_down(fault.component, strike.number, away);
    at(now() + away, [this, component = fault.component] {
      if (down_[component].empty()) tell_("fault", component + " is back");
      steady_again();
    });
    return;
  }
  set_clock(strike, true);
  if (!strike.lasts) return steady_again();
  at(now() + *strike.lasts, [this, strike] {
    tell_("fault", strike.fault.text + ": over");
    set_clock(strike, false);
    steady_again();
  });
}

void Story::carry_out(const PlannedChange& change) {
  // Each time others, of those that are there then.
  Random random(scenario_.seed, fmt::format("{} at {}", change.text, format_go_duration(now())));
  const bool is_of_nodes = change.what == PlannedChange::What::kRemoveNodes || change.what == PlannedChange::What::kDrain ||
                           change.what == PlannedChange::What::kUncordon;
  const std::vector<std::string> nodes = is_of_nodes ? choose(change.nodes, random) : std::vector<std::string>();
  tell_("change", change.text + (is_of_nodes ? how_many(change.nodes, nodes) : ""));
  switch (change.what) {
    case PlannedChange::What::kApply:
      for (const json::Value& object : change.objects) apply(object);
      return;
    case PlannedChange::What::kDelete:
      return remove(change.group, change.resource, change.ns, change.name);
    case PlannedChange::What::kPatch:
      return patch(change.group, change.resource, change.ns, change.name, change.patch);
    case PlannedChange::What::kScheduler:
      if (const auto set = cluster_.set_scheduler(*change.scheduler); !set) ++refusals_["scheduler: " + set.error().message];
      return;
    case PlannedChange::What::kDescheduler:
      return cluster_.set_descheduler(change.descheduler);
    case PlannedChange::What::kAddNodes:
      return make_nodes(change.node_set);
    case PlannedChange::What::kRemoveNodes:
      for (const std::string& node : nodes) remove("", "nodes", "", node);
      return;
    case PlannedChange::What::kDrain:
      for (const std::string& node : nodes) {
        patch("", "nodes", "", node, json::Object{{"spec", json::Object{{"unschedulable", true}}}});
        drain(node, cluster_.loop().now() + kDrainLimit);
      }
      return;
    case PlannedChange::What::kUncordon:
      for (const std::string& node : nodes) patch("", "nodes", "", node, json::Object{{"spec", json::Object{{"unschedulable", nullptr}}}});
      return;
  }
}

/// As kubectl drain: through the eviction API, again and again while budgets hold a pod, for an hour.
void Story::drain(const std::string& node, TimePoint until) {
  if (cluster_.loop().now() >= until)
    return tell_("change", fmt::format("{} is not empty after {}", node, format_go_duration(kDrainLimit)));
  bool is_left = false;
  if (apiserver::ObjectCache* cache = cluster_.cache()) {
    apiserver::WatchFilter filter;
    filter.prefix = apiserver::make_prefix("", "pods");
    for (const apiserver::ObjectPtr& pod : cache->list(filter, "", 0).items) {
      if (pod->meta.field("spec.nodeName") != node || pod->meta.field("status.phase") == "Succeeded" ||
          pod->meta.field("status.phase") == "Failed")
        continue;
      const auto document = json::parse(pod->text().here());
      const auto meta = model::ObjectMeta::parse(document ? *document : json::Value());
      if (model::is_mirror(meta) || model::is_of_daemon_set(meta) || meta.is_deleting) continue;
      client::Call call{.verb = "create",
                        .gvr = {"", "v1", "pods"},
                        .ns = std::string(pod->meta.ns),
                        .name = std::string(pod->meta.name),
                        .subresource = "eviction"};
      call.body =
          fmt::format(R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{}","namespace":"{}"}}}})", call.name, call.ns);
      call.answer = client::Answer::kNone;
      const auto answer = cluster_.client().call_and_wait(std::move(call));
      is_left |= !answer && answer.error().code == 429;
    }
  } else {
    is_left = true;
  }
  if (is_left) at(now() + kDrainRetry, [this, node, until] { drain(node, until); });
}

}  // namespace berth::simulator
