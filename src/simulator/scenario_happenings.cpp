// What happens in a scenario: faults at times or at rates, changes on purpose, and what must hold.
#include <fmt/format.h>

#include "model/kinds.h"
#include "pools/crds.h"
#include "simulator/checks.h"
#include "simulator/scenario_parts.h"

namespace berth::simulator {
namespace {

constexpr std::array<std::string_view, 7> kComponents = {"server",     "scheduler", "controllers", "nodes",
                                                         "autoscaler", "pools",     "descheduler"};

std::string text_of(const NodeChoice& choice) {
  std::vector<std::string> parts;
  if (choice.count > 0) parts.push_back(fmt::format("{} node{}", choice.count, choice.count == 1 ? "" : "s"));
  if (!choice.names.empty()) parts.push_back(fmt::format("{}", fmt::join(choice.names, ", ")));
  if (!choice.zone.empty()) parts.push_back("zone " + choice.zone);
  if (!choice.selector.empty()) parts.push_back("nodes with " + choice.selector);
  return parts.empty() ? "all nodes" : fmt::format("{}", fmt::join(parts, " of "));
}

/// When a fault comes: `at`, or `rate` with from and until.
Arrivals read_when(const config::Reader& at) {
  Arrivals when;
  if (at.has("at") == at.has("rate")) at.problem("one of at (when) and rate (how often, such as 2/day) is needed");
  when.times = read_times(at.field("at"));
  if (at.has("rate")) {
    when.kind = Arrivals::Kind::kPoisson;
    when.per_hour = read_rate(at.field("rate")).value_or(0);
  }
  when.from = read_span(at.field("from")).value_or(Duration(0));
  when.until = read_span(at.field("until"));
  return when;
}

std::string read_component(const config::Reader& at, std::string_view name) {
  const std::string component = at.one_of(name, kComponents);
  if (component.empty() && !at.has(name)) at.problem(name, "required");
  return component;
}

void read_clock(const config::Reader& at, Fault& out) {
  at.only({"component", "by"});
  out.what = Fault::What::kClock;
  out.component = read_component(at, "component");
  if (!out.component.empty() && out.component != "controllers") at.problem("component", "only the controllers have a clock of their own");
  const std::string by = at.string("by");
  const bool is_negative = by.starts_with('-');
  const auto span = parse_span(is_negative || by.starts_with('+') ? std::string_view(by).substr(1) : std::string_view(by));
  if (!span)
    at.problem("by", span.error().message);
  else
    out.delay = is_negative ? -*span : *span;
  out.text = fmt::format("the clock of the {} jumps by {}", out.component, by);
}

void read_taint(const config::Reader& at, Fault& out) {
  at.only({"nodes", "key", "value", "effect"});
  constexpr std::array<std::string_view, 3> kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
  out.what = Fault::What::kTaint;
  out.nodes = read_node_choice(at.field("nodes"));
  json::Object taint{{"key", at.string("key", "storm")}, {"effect", at.one_of("effect", kEffects, "NoExecute")}};
  if (at.has("value")) taint["value"] = at.string("value");
  out.taint = std::move(taint);
  out.text = fmt::format("{} tainted {}", text_of(out.nodes), json::get_string(out.taint, {"key"}));
}

}  // namespace

void note_what_never_comes(const config::Reader& at, const Arrivals& when, const PartContext& context) {
  if (context.duration <= Duration(0)) return;
  const Duration first = !when.times.empty() ? when.times.front() : when.from;
  if (first > context.duration)
    at.note(
        fmt::format("never comes: {} is after the scenario's end ({})", format_go_duration(first), format_go_duration(context.duration)));
}

Fault read_fault(const config::Reader& at, const PartContext& context) {
  Fault out;
  if (!at.expect_object()) return out;
  constexpr std::array<std::string_view, 10> kWhats = {"lose",    "delete",     "taint",   "cordon", "interrupt",
                                                       "slowApi", "failingApi", "restart", "cut",    "clock"};
  at.only({"at", "rate", "from", "until", "for", "lose", "delete", "taint", "cordon", "interrupt", "slowApi", "failingApi", "restart",
           "cut", "clock"});
  out.when = read_when(at);
  note_what_never_comes(at, out.when, context);
  out.lasts = read_lengths(at.field("for"));
  const auto given = std::ranges::count_if(kWhats, [&](std::string_view name) { return at.has(name); });
  if (given != 1) at.problem(fmt::format("one of {} is needed", fmt::join(kWhats, ", ")));
  const auto nodes = [&](const char* name, Fault::What what, const char* word) {
    if (!at.has(name)) return;
    out.what = what;
    out.nodes = read_node_choice(at.field(name));
    out.text = fmt::format("{} {}", text_of(out.nodes), word);
  };
  nodes("lose", Fault::What::kLose, "lost");
  nodes("delete", Fault::What::kDelete, "deleted");
  nodes("cordon", Fault::What::kCordon, "cordoned");
  nodes("interrupt", Fault::What::kInterrupt, "interrupted");
  if (at.has("taint") && at.field("taint").expect_object()) read_taint(at.field("taint"), out);
  if (at.has("slowApi")) {
    out.what = Fault::What::kSlowApi;
    out.delay = read_span(at.field("slowApi")).value_or(Duration(0));
    if (out.delay > std::chrono::seconds(25)) at.problem("slowApi", "more than 25s, which no client waits for: use cut");
    out.text = fmt::format("every answer of the API server takes {}", format_go_duration(out.delay));
  }
  if (at.has("failingApi")) {
    out.what = Fault::What::kFailingApi;
    out.share = read_share(at.field("failingApi")).value_or(0);
    out.text = fmt::format("{:.0f}% of requests to the API server fail", out.share * 100);
  }
  if (at.has("restart")) {
    out.what = Fault::What::kRestart;
    out.component = read_component(at, "restart");
    out.text = fmt::format("{} restarts", out.component);
  }
  if (at.has("cut")) {
    out.what = Fault::What::kCut;
    out.component = read_component(at, "cut");
    if (out.component == "server" || out.component == "descheduler")
      at.problem("cut", "one of scheduler, controllers, nodes, autoscaler and pools");
    out.text = fmt::format("{} cut off from the API server", out.component);
  }
  if (at.has("clock") && at.field("clock").expect_object()) read_clock(at.field("clock"), out);
  if (out.what == Fault::What::kDelete && out.lasts) at.problem("for", "deleted nodes do not come back; use lose");
  return out;
}

namespace {

void read_target(const config::Reader& at, PlannedChange& out) {
  const std::string api_version = at.string("apiVersion"), kind = at.string("kind");
  const std::size_t slash = api_version.find('/');
  const model::KindInfo* found = nullptr;
  std::vector<std::string_view> known;
  for (const model::KindInfo& info : model::all_kinds()) {
    known.push_back(info.kind);
    if (info.kind != kind || info.is_virtual || !info.has_verb("patch")) continue;
    if (!api_version.empty() && info.group != (slash == std::string::npos ? "" : api_version.substr(0, slash))) continue;
    if (found == nullptr) found = &info;
  }
  const auto own = std::ranges::find(pools::own_kinds(), kind, &pools::OwnKind::kind);
  if (found == nullptr && own == pools::own_kinds().end())
    return at.problem("kind", fmt::format("\"{}\" is not a kind{}", kind, config::suggestion(kind, known)));
  out.group = found != nullptr ? std::string(found->group) : own->gvr.group;
  out.resource = found != nullptr ? std::string(found->plural) : own->gvr.resource;
  out.kind = kind;
  out.ns = found != nullptr && found->namespaced ? at.string("namespace", "default") : "";
  out.name = at.string("name");
  if (out.name.empty()) at.problem("name", "required");
}

void read_scale(const config::Reader& at, PlannedChange& out) {
  at.only({"deployment", "statefulSet", "namespace", "replicas"});
  const bool is_set = at.has("statefulSet");
  out.what = PlannedChange::What::kPatch;
  out.group = "apps";
  out.resource = is_set ? "statefulsets" : "deployments";
  out.kind = is_set ? "StatefulSet" : "Deployment";
  out.name = at.string(is_set ? "statefulSet" : "deployment");
  out.ns = at.string("namespace", "default");
  if (out.name.empty()) at.problem("deployment", "required");
  const std::int64_t replicas = read_count(at, "replicas", 1);
  out.patch = json::Object{{"spec", json::Object{{"replicas", replicas}}}};
  out.text = fmt::format("{}/{} scaled to {}", out.ns, out.name, replicas);
}

}  // namespace

PlannedChange read_change(const config::Reader& at, const PartContext& context) {
  PlannedChange out;
  if (!at.expect_object()) return out;
  constexpr std::array<std::string_view, 10> kWhats = {"apply",       "delete",   "patch",       "scale", "scheduler",
                                                       "descheduler", "addNodes", "removeNodes", "drain", "uncordon"};
  at.only({"at", "apply", "delete", "patch", "scale", "scheduler", "descheduler", "addNodes", "removeNodes", "drain", "uncordon"});
  out.at = read_times(at.field("at"));
  if (!at.has("at")) at.problem("at", "required");
  Arrivals when;
  when.times = out.at;
  note_what_never_comes(at, when, context);
  const auto given = std::ranges::count_if(kWhats, [&](std::string_view name) { return at.has(name); });
  if (given != 1) at.problem(fmt::format("one of {} is needed", fmt::join(kWhats, ", ")));
  if (at.has("apply")) {
    out.objects = read_objects(at.field("apply"), context.directory);
    out.text = fmt::format("{} object{} applied", out.objects.size(), out.objects.size() == 1 ? "" : "s");
  } else if (at.has("delete") && at.field("delete").expect_object()) {
    out.what = PlannedChange::What::kDelete;
    at.field("delete").only({"apiVersion", "kind", "namespace", "name"});
    read_target(at.field("delete"), out);
    out.text = fmt::format("{} {} deleted", out.kind, out.name);
  } else if (at.has("patch") && at.field("patch").expect_object()) {
    out.what = PlannedChange::What::kPatch;
    const config::Reader patch = at.field("patch");
    patch.only({"apiVersion", "kind", "namespace", "name", "merge"});
    read_target(patch, out);
    if (patch.has("merge") && patch.field("merge").expect_object()) out.patch = *patch.field("merge").value();
    patch.field("merge").skip();
    out.text = fmt::format("{} {} patched", out.kind, out.name);
  } else if (at.has("scale") && at.field("scale").expect_object()) {
    read_scale(at.field("scale"), out);
  } else if (at.has("scheduler")) {
    out.what = PlannedChange::What::kScheduler;
    if (auto config = read_scheduler(at.field("scheduler"), context))
      out.scheduler = std::make_shared<const scheduler::config::SchedulerConfig>(std::move(*config));
    out.text = "the scheduler's configuration changes";
  } else if (at.has("descheduler")) {
    out.what = PlannedChange::What::kDescheduler;
    const config::Reader policy = at.field("descheduler");
    if (!(policy.value()->is_bool() && !policy.value()->get_bool()) &&
        !(policy.value()->is_string() && json::as_view(*policy.value()) == "off"))
      out.descheduler = read_descheduler_policy(policy, context);
    out.text = out.descheduler ? "the descheduler's policy changes" : "the descheduler is switched off";
  } else if (at.has("addNodes")) {
    out.what = PlannedChange::What::kAddNodes;
    out.node_set = read_node_set(at.field("addNodes"), context);
    out.text = fmt::format("{} nodes {} added", out.node_set.count, out.node_set.name);
  } else {
    for (const auto& [name, what, word] : {std::tuple("removeNodes", PlannedChange::What::kRemoveNodes, "removed"),
                                           std::tuple("drain", PlannedChange::What::kDrain, "drained"),
                                           std::tuple("uncordon", PlannedChange::What::kUncordon, "uncordoned")}) {
      if (!at.has(name)) continue;
      out.what = what;
      out.nodes = read_node_choice(at.field(name));
      out.text = fmt::format("{} {}", text_of(out.nodes), word);
    }
  }
  return out;
}

Check read_check(const config::Reader& at, const PartContext& context) {
  Check out;
  if (at.is_present() && at.value()->is_string()) {
    out.expression = json::as_view(*at.value());
  } else if (at.expect_object()) {
    at.only({"name", "that", "always", "at", "after"});
    out.name = at.string("name");
    if (at.has("that") == at.has("always")) at.problem("one of that (at the end, or at a time) and always is needed");
    out.expression = at.has("always") ? at.string("always") : at.string("that");
    out.when = at.has("always") ? Check::When::kAlways : at.has("at") && at.string("at") != "end" ? Check::When::kAt : Check::When::kEnd;
    if (out.when == Check::When::kAt) {
      out.at = read_span(at.field("at")).value_or(Duration(0));
      if (out.at > context.duration) at.problem("at", "is after the scenario's end");
    }
    out.after = read_span(at.field("after")).value_or(Duration(0));
    if (at.has("after") && out.when != Check::When::kAlways) at.problem("after", "only of always");
  }
  if (out.name.empty()) out.name = out.expression;
  if (out.expression.empty()) return out;
  if (const auto wrong = check_problem(out.expression); !wrong.empty()) at.problem(wrong);
  return out;
}

}  // namespace berth::simulator
