#include "whatif/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "whatif/orders.h"
#include "whatif/steps.h"
#include "whatif/verbs.h"

namespace berth::whatif {
namespace {

Result<void> apply_one(World& world, const json::Value& change, const std::function<std::string(std::string_view field)>& path) {
  if (!change.is_object()) return invalid(path("") + ": an object such as {\"drain\": \"node-7\"} is wanted");
  const Verb* verb = nullptr;
  std::vector<std::string_view> names;
  for (const Verb& one : verbs()) {
    names.push_back(one.name);
    if (!change.get_object().contains(one.name)) continue;
    // A field of one verb may be the name of another: whoever comes first in the table of verbs that has the others among its fields.
    if (verb != nullptr)
      return invalid(
          fmt::format("{}: \"{}\" and \"{}\" are two changes: each stands in an object of its own", path(""), verb->name, one.name));
    verb = &one;
  }
  if (verb == nullptr) {
    const std::string first = change.get_object().empty() ? std::string() : std::string(change.get_object().begin()->key());
    return invalid(
        fmt::format("{}: \"{}\" is no change{}; there are: {}", path(""), first, config::suggestion(first, names), fmt::join(names, ", ")));
  }
  for (const auto& [key, value] : change.get_object()) {
    const std::string_view name = key;
    if (name == verb->name || std::ranges::find(verb->fields, name) != verb->fields.end()) continue;
    std::vector<std::string_view> known = verb->fields;
    known.push_back(verb->name);
    return invalid(fmt::format("{}: no such field of \"{}\"{}", path(name), verb->name, config::suggestion(name, known)));
  }
  const auto done = carry_out(world, *verb, change);
  return done ? done : std::unexpected(Error{done.error().code, fmt::format("{}: {}", path(verb->name), done.error().message)});
}

/// One loss: its name, and the nodes.
using Loss = std::pair<std::string, std::vector<std::string>>;

Result<std::vector<Loss>> losses_of(const World& world, const std::string& each) {
  std::vector<Loss> out;
  if (each == "node") {
    for (std::string& name : world.node_names()) out.push_back({name, {name}});
    return out;
  }
  const std::string label = label_meant(world, each);
  std::map<std::string, std::vector<std::string>> values;
  for (const auto* node : world.cluster().nodes())
    if (const std::string* value = node->label(label)) values[*value].push_back(node->name);
  static constexpr std::array<std::string_view, 2> kUsual = {"node", "zone"};
  if (values.empty())
    return invalid(
        fmt::format("each: no node has a label \"{}\"{} (\"node\", \"zone\", or a label's key)", label, config::suggestion(each, kUsual)));
  for (auto& [value, nodes] : values) {
    std::ranges::sort(nodes);
    out.push_back({each + "=" + value, std::move(nodes)});
  }
  return out;
}

json::Object outcome_of(World& world, const std::string& lost, std::size_t first_move, std::size_t first_departure) {
  constexpr std::int64_t kMostListed = 20;
  json::Array pending, gone, blocked, broken;
  std::int64_t pending_count = 0, gone_count = 0, blocked_count = 0;
  for (const std::string& pod : world.waiting_since_thought())
    if (++pending_count <= kMostListed) pending.push_back(json::Object{{"pod", pod}, {"message", world.find(pod)->message}});
  for (std::size_t i = first_departure; i < world.departures.size(); ++i) {
    const Departure& one = world.departures[i];
    if (one.outcome == "lost" && ++gone_count <= kMostListed) gone.push_back(json::Object{{"pod", one.pod}, {"reason", one.reason}});
    if (one.outcome == "blocked" && ++blocked_count <= kMostListed)
      blocked.push_back(json::Object{{"pod", one.pod}, {"reason", one.reason}});
  }
  for (const Budgets::Id id : world.dipped) broken.emplace_back(world.tables().budgets[id].key());
  json::Object out{{"lost", lost}, {"moves", static_cast<std::int64_t>(world.moves.size() - first_move)}};
  out["pendingCount"] = pending_count;
  out["pending"] = std::move(pending);
  out["lostPodsCount"] = gone_count;
  out["lostPods"] = std::move(gone);
  out["blockedCount"] = blocked_count;
  out["blocked"] = std::move(blocked);
  out["broken"] = std::move(broken);
  return out;
}

}  // namespace

Result<void> apply_changes(World& world, const json::Value& question, const NameOfChange& name_of) {
  if (!question.is_object()) return invalid("a question is an object: {\"changes\": [{\"drain\": \"node-7\"}]}");
  static constexpr std::array<std::string_view, 7> kFields = {"changes", "each", "by", "preempt", "capacity", "pack", "orders"};
  for (const auto& [key, value] : question.get_object()) {
    const std::string_view name = key;
    if (std::ranges::find(kFields, name) == kFields.end())
      return invalid(fmt::format("{}: no such field of a question{}", name, config::suggestion(name, kFields)));
  }
  if (const json::Value* preempt = json::find(question, "preempt"); preempt != nullptr && !preempt->is_bool())
    return invalid(fmt::format("preempt: {} is neither true nor false", json::serialize(*preempt)));
  if (auto orders = orders_wanted(question); !orders) return std::unexpected(orders.error());
  if (json::find(question, "by") != nullptr && json::find(question, "each") == nullptr)
    return invalid("by: it says how the losses of \"each\" come, which is not there");
  const json::Value* changes = json::find(question, "changes");
  if (changes != nullptr && !changes->is_array()) return invalid("changes: a list is wanted");
  for (std::size_t number = 0; changes != nullptr && number < changes->get_array().size(); ++number) {
    world.begin_change(static_cast<int>(number), {});
    const auto path = [&](std::string_view field) {
      if (name_of) return name_of(number, field);
      return fmt::format("changes[{}]{}{}", number, field.empty() ? "" : ".", field);
    };
    if (auto done = apply_one(world, changes->get_array()[number], path); !done) return done;
  }
  return {};
}

void join_losses(json::Value& answer, const json::Value& next) {
  json::Object& out = answer.get_object();
  out["eachPending"] = json::get_int(answer, {"eachPending"}) + json::get_int(next, {"eachPending"});
  for (const json::Value& one : json::get_array(next, {"each"})) out["each"].get_array().push_back(one);
  json::Array& notes = out["notes"].get_array();
  for (const json::Value& note : json::get_array(next, {"notes"}))
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
}

Result<json::Object> each_loss(World& world, const json::Value& question, Part part) {
  const std::string each(json::get_string(question, {"each"})), by(json::get_string(question, {"by"}, "fail"));
  if (json::find(question, "each") == nullptr) return json::Object();
  if (each.empty()) return invalid("each: \"node\", \"zone\" or a label's key is wanted");
  static constexpr std::array<std::string_view, 3> kWays = {"fail", "remove", "drain"};
  if (std::ranges::find(kWays, by) == kWays.end())
    return invalid(fmt::format("by: \"{}\" is none of fail, remove, drain{}", by, config::suggestion(by, kWays)));
  const Verb& verb = *find_verb(by);
  auto losses = losses_of(world, each);
  if (!losses) return std::unexpected(losses.error());
  json::Array found;
  std::int64_t failing = 0;
  const std::size_t first = losses->size() * part.index / part.count, last = losses->size() * (part.index + 1) / part.count;
  for (const auto& [lost, nodes] : std::span(*losses).subspan(first, last - first)) {
    if (nodes.size() == world.cluster().node_count() && nodes.size() > 1)
      world.note(fmt::format("{} is all there is: nothing survives its loss", lost));
    const std::size_t moves = world.moves.size(), departures = world.departures.size();
    world.begin_thought();
    world.begin_change(world.change(), fmt::format("{} is {}", lost, verb.participle));
    if (auto done = verb.on_nodes(world, nodes, {}); !done) return std::unexpected(done.error());
    json::Object outcome = outcome_of(world, lost, moves, departures);
    world.end_thought();
    const json::Value& entry = found.emplace_back(std::move(outcome));
    const bool fails = json::get_int(entry, {"pendingCount"}) > 0;
    failing += fails;
    if (!fails && json::get_int(entry, {"lostPodsCount"}) == 0 && json::get_int(entry, {"blockedCount"}) == 0 &&
        json::get_array(entry, {"broken"}).empty())
      found.pop_back();
  }
  return json::Object{{"eachCount", static_cast<std::int64_t>(losses->size())}, {"eachPending", failing}, {"each", std::move(found)}};
}

void add_preemption(World& world, json::Array& pending) {
  constexpr std::size_t kMost = 100;
  std::size_t done = 0;
  for (json::Value& entry : pending) {
    if (++done > kMost) {
      entry.get_object()["wouldHaveToGo"] = json::Object{{"message", fmt::format("not asked: only the first {} are", kMost)}};
      continue;
    }
    const Record& record = *world.find(std::string(json::get_string(entry, {"pod"})));
    // As if it were more important than everybody.
    auto view = std::make_shared<model::PodView>(record.view());
    view->priority = INT32_MAX;
    view->preemption_never = false;
    const auto pod = placement::PodInfo::make(std::move(view), world.cluster().era());
    const placement::PostFilterResult result = world.trial().victims_for(pod);
    const placement::Candidate* choice = result.choice();
    if (choice == nullptr) {
      entry.get_object()["wouldHaveToGo"] = json::Object{{"message", "evicting pods does not help: " + result.status.message()}};
      continue;
    }
    json::Array victims;
    for (const auto& victim : choice->victims)
      victims.push_back(json::Object{
          {"pod", victim->key}, {"priority", victim->view().priority}, {"controlled", victim->view().meta.controller() != nullptr}});
    entry.get_object()["wouldHaveToGo"] = json::Object{{"node", world.cluster().node(choice->node)->name},
                                                       {"pods", std::move(victims)},
                                                       {"budgetsBroken", static_cast<std::int64_t>(choice->budget_violations)},
                                                       {"priority", record.view().priority}};
  }
}

}  // namespace berth::whatif
