#include "tests/world/judges.h"

#include <algorithm>

#include "model/quantity.h"
#include "tests/world/builds.h"

namespace berth::world {
namespace {

using store::Revision;

/// What etcd holds, as a document; null: deleted.
json::Value document_of(const store::SharedRecord& record) {
  if (record.value == nullptr) return nullptr;
  const auto key = all_forms().cache_key(record.key);
  if (!key) return nullptr;
  const auto text = all_forms().to_text(*key, record.key, *record.value);
  return text ? *json::parse(text->value) : json::Value(nullptr);
}

std::string name_of_key(const std::string& key) { return key.substr(key.rfind('/') + 1); }

/// One register through time.
struct Register {
  struct State {
    Revision revision = 0;
    std::string value;  ///< Empty: not there.
  };
  std::vector<State> states{{}};
  /// The state at a revision.
  [[nodiscard]] std::size_t at(Revision revision) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(states, revision, {}, &State::revision) - states.begin()) - 1;
  }
};

std::map<std::string, Register> registers_of(const Held& held) {
  std::map<std::string, Register> out;
  for (const auto& record : held.whole_history()) {
    if (!record.key.starts_with("/registry/configmaps/default/register-")) continue;
    const json::Value document = document_of(record);
    out[name_of_key(record.key)].states.push_back({record.revision, std::string(json::get_string(document, {"data", "v"}))});
  }
  return out;
}

std::string words(const Act& act) {
  static constexpr const char* kKinds[] = {"put", "delete", "read"};
  return fmt::format("{} by {} of {}{}{} (between {} and {}, told of {})", kKinds[static_cast<int>(act.kind)], act.user, act.name,
                     act.value.empty() ? "" : " = ", act.value, act.before, act.after, act.least);
}

void judge_put(const Act& act, const Register& of, Findings& findings) {
  const auto times = std::ranges::count(of.states, act.value, &Register::State::value);
  if (times > 1) findings.push_back(fmt::format("written {} times: {}", times, words(act)));
  if (act.outcome == Act::Outcome::kRefused && times != 0) findings.push_back("refused, and done all the same: " + words(act));
  if (act.outcome != Act::Outcome::kDone) return;
  if (times == 0) return findings.push_back("acknowledged, and lost: " + words(act));
  const auto& state = *std::ranges::find(of.states, act.value, &Register::State::value);
  if (state.revision != act.revision)
    findings.push_back(fmt::format("acknowledged with revision {}, done at {}: {}", act.revision, state.revision, words(act)));
  if (state.revision <= act.before || state.revision > act.after) findings.push_back("done outside of its time: " + words(act));
}

void judge_read(const Act& act, const Register& of, Findings& findings) {
  for (std::size_t i = of.at(act.least); i < of.states.size() && of.states[i].revision <= act.after; ++i)
    if (of.states[i].value == act.value) return;
  findings.push_back("read what was not there at any time in question: " + words(act));
}

/// Whether a pod takes room.
bool takes_room(const json::Value& pod) {
  const auto phase = json::get_string(pod, {"status", "phase"});
  return phase != "Succeeded" && phase != "Failed";
}

std::int64_t cpu_of(const json::Value& pod) {
  std::int64_t milli = 0;
  for (const auto& container : json::get_array(pod, {"spec", "containers"}))
    if (const auto amount = model::Quantity::parse(json::get_string(container, {"resources", "requests", "cpu"})))
      milli += amount->milli_value();
  return milli;
}

/// Goes through the whole history once.
class History {
 public:
  void see(const store::SharedRecord& record) {
    if (record.key.starts_with("/registry/pods/")) return see_pod(record);
    if (!record.key.starts_with("/registry/minions/")) return;
    if (record.value == nullptr) return (void)has_.erase(name_of_key(record.key));
    if (const auto amount = model::Quantity::parse(json::get_string(document_of(record), {"status", "allocatable", "cpu"})))
      has_[name_of_key(record.key)] = amount->milli_value();
  }
  Findings findings;

 private:
  struct Pod {
    std::string uid, node;
    std::int64_t cpu = 0;
    bool is_leaving = false, takes_room = false;
  };
  void see_pod(const store::SharedRecord& record) {
    const json::Value document = document_of(record);
    Pod now;
    if (!document.is_null()) {
      now = {std::string(json::get_string(document, {"metadata", "uid"})), std::string(json::get_string(document, {"spec", "nodeName"})),
             takes_room(document) ? cpu_of(document) : 0, is_leaving(document), takes_room(document)};
    }
    Pod& before = pods_[record.key];
    if (before.uid == now.uid && !before.node.empty() && before.node != now.node)
      findings.push_back(fmt::format("{} moves from {} to {} at {}", record.key, before.node, now.node, record.revision));
    if (before.uid != now.uid || now.is_leaving) see_leave(record, before, document);
    if (!before.node.empty()) used_[before.node] -= before.cpu;
    if (!now.node.empty()) {
      const auto used = used_[now.node] += now.cpu;
      if (const auto has = has_.find(now.node); has != has_.end() && used > has->second && before.node.empty())
        findings.push_back(fmt::format("{} has {}m of cpu and is asked for {}m at {}", now.node, has->second, used, record.revision));
    }
    before = now;
  }
  /// What runs on a node is told to go first, and has its own seconds to do it.
  void see_leave(const store::SharedRecord& record, const Pod& before, const json::Value& now) {
    if (before.node.empty() || before.is_leaving || !before.takes_room || !has_.contains(before.node)) return;
    if (Seen::uid(now) != before.uid)
      findings.push_back(fmt::format("{} is gone at {}, and nobody told it to go", record.key, record.revision));
    else if (const auto grace = json::get_int(now, {"metadata", "deletionGracePeriodSeconds"});
             grace != json::get_int(now, {"spec", "terminationGracePeriodSeconds"}))
      findings.push_back(fmt::format("{} has {} s to go at {}", record.key, grace, record.revision));
  }
  std::map<std::string, Pod> pods_;
  std::map<std::string, std::int64_t> used_, has_;
};

}  // namespace

Findings judge_registers(const Ledger& ledger, const Held& held) {
  Findings findings;
  const auto registers = registers_of(held);
  static const Register kNever;
  std::map<std::string, std::int64_t> deletions, allowed;
  for (const auto& record : held.whole_history())
    if (record.value == nullptr && record.key.starts_with("/registry/configmaps/default/register-")) ++deletions[name_of_key(record.key)];
  for (const Act& act : ledger.acts()) {
    const auto found = registers.find(act.name);
    const Register& of = found == registers.end() ? kNever : found->second;
    if (act.kind == Act::Kind::kPut) judge_put(act, of, findings);
    if (act.kind == Act::Kind::kRead && act.outcome == Act::Outcome::kDone) judge_read(act, of, findings);
    if (act.kind != Act::Kind::kDelete || act.outcome == Act::Outcome::kRefused) continue;
    ++allowed[act.name];
    if (act.outcome != Act::Outcome::kDone) continue;
    const bool is_there = std::ranges::any_of(of.states, [&](const Register::State& state) {
      return state.value.empty() && state.revision > act.before && state.revision <= act.after;
    });
    if (!is_there) findings.push_back("a deletion was acknowledged, and is not there: " + words(act));
  }
  for (const auto& [name, count] : deletions)
    if (count > allowed[name]) findings.push_back(fmt::format("{} was deleted {} times, asked {} times", name, count, allowed[name]));
  return findings;
}

Findings judge_watch(const RegisterWatcher& watcher, const Held& held) {
  struct Event {
    std::string text;
    Revision revision;
  };
  std::vector<Event> all;
  std::set<std::string> there;
  for (const auto& record : held.whole_history()) {
    if (!record.key.starts_with("/registry/configmaps/default/register-")) continue;
    const std::string name = name_of_key(record.key);
    const char* type = record.value == nullptr ? "DELETED" : there.contains(name) ? "MODIFIED" : "ADDED";
    record.value == nullptr ? (void)there.erase(name) : (void)there.insert(name);
    all.push_back({fmt::format("{} {}@{}", type, name, record.revision), record.revision});
  }
  Findings findings;
  for (const auto& stretch : watcher.stretches()) {
    std::vector<std::string> wanted, seen;
    for (const Event& event : all)
      if (event.revision > stretch.from && event.revision <= stretch.to) wanted.push_back(event.text);
    for (const auto& event : stretch.events) seen.push_back(fmt::format("{} {}@{}", event.type, event.name, event.revision));
    if (seen == wanted) continue;
    const auto [one, other] = std::ranges::mismatch(seen, wanted);
    findings.push_back(fmt::format("a watch from {} to {} saw {} where etcd has {}", stretch.from, stretch.to,
                                   one == seen.end() ? "nothing" : *one, other == wanted.end() ? "nothing" : *other));
  }
  return findings;
}

Findings judge_history(const Held& held) {
  History history;
  for (const auto& record : held.whole_history()) history.see(record);
  return history.findings;
}

namespace {

std::map<std::string, Revision> held_by(const Held& held) {
  std::map<std::string, Revision> out;
  for (const auto& [key, item] : held.items())
    if (const auto cache_key = all_forms().cache_key(key)) out[*cache_key] = item.modified;
  return out;
}

std::map<std::string, Revision> shown_by(const apiserver::ObjectCache& cache) {
  std::map<std::string, Revision> shown;
  for (const auto& [resource, count] : cache.counts())
    for (const auto& object : cache.list({.prefix = resource + "/"}, "", 0).items) shown[std::string(object->key)] = object->revision;
  return shown;
}

/// A watch is a moment behind, and leases are renewed at rest, too: what was held a second ago is shown, or something newer.
Findings judge_caches(World& world) {
  Findings findings;
  const auto before = held_by(world.held());
  world.loop().run_for(std::chrono::seconds(1));
  const auto now = held_by(world.held());
  for (std::size_t i = 0; i < world.servers(); ++i) {
    if (!world.server(i).api) {
      findings.push_back(fmt::format("server {} did not come back", i));
      continue;
    }
    const auto shown = shown_by(world.server(i).api->cache());
    for (const auto& [key, revision] : before) {
      const auto found = shown.find(key);
      if (found == shown.end() ? now.contains(key) : found->second < revision)
        findings.push_back(
            fmt::format("server {} shows {} at {}, etcd has it at {}", i, key, found == shown.end() ? 0 : found->second, revision));
    }
    for (const auto& [key, revision] : shown)
      if (!before.contains(key) && !now.contains(key))
        findings.push_back(fmt::format("server {} shows {} at {}, which is gone", i, key, revision));
  }
  return findings;
}

/// Whoever wrote an object and however it is stored, all servers show it alike, and in its present version.
Findings judge_texts(World& world) {
  Findings findings;
  std::map<std::pair<std::string, Revision>, json::Value> seen;
  for (std::size_t i = 0; i < world.servers(); ++i) {
    if (!world.server(i).api) continue;
    const auto& cache = world.server(i).api->cache();
    for (const auto& [resource, count] : cache.counts())
      for (const auto& object : cache.list({.prefix = resource + "/"}, "", 0).items) {
        const Bytes text = object->text().shared();
        json::Value document = json::parse(*text).value_or(json::Value());
        const auto [at, is_new] = seen.try_emplace({std::string(object->key), object->revision}, document);
        if (!is_new && !json::equal(at->second, document))
          findings.push_back(fmt::format("server {} shows {} as {}, others as {}", i, object->key, *text, json::serialize(at->second)));
        if (as_read_by(0, text) != text) findings.push_back(fmt::format("server {} shows {} as an older build stored it", i, object->key));
      }
  }
  return findings;
}

/// What is there of each gang.
struct Gangs {
  explicit Gangs(const Held& held) {
    for (const auto& [key, item] : held.items()) {
      const store::SharedRecord record{key, item.value, item.modified, item.created};
      if (key.starts_with("/registry/podgroups/default/"))
        wanted[name_of_key(key)] = json::get_int(document_of(record), {"spec", "schedulingPolicy", "gang", "minCount"});
      else if (key.starts_with("/registry/pods/default/"))
        ++members[std::string(json::get_string(document_of(record), {"metadata", "labels", "gang"}))];
    }
  }
  std::map<std::string, std::int64_t> wanted, members;
};

/// A member without a place whose gang cannot be whole.
bool is_in_vain(const json::Value& pod, const Gangs& gangs) {
  const std::string gang(json::get_string(pod, {"metadata", "labels", "gang"}));
  if (gang.empty() || !json::get_string(pod, {"spec", "nodeName"}).empty()) return false;
  const auto wanted = gangs.wanted.find(gang);
  return wanted == gangs.wanted.end() || gangs.members.at(gang) < wanted->second;
}

}  // namespace

Findings judge_rest(World& world, const std::map<std::string, int>& deployments) {
  Findings findings = judge_caches(world);
  for (auto& one : judge_texts(world)) findings.push_back(std::move(one));
  std::map<std::string, int> running;
  const Gangs gangs(world.held());
  for (const auto& [key, item] : world.held().items()) {
    if (!key.starts_with("/registry/pods/default/")) continue;
    const json::Value pod = document_of({key, item.value, item.modified, item.created});
    const std::string app(json::get_string(pod, {"metadata", "labels", "app"}));
    const auto phase = json::get_string(pod, {"status", "phase"});
    if (phase == "Running" && json::find(pod, {"metadata", "deletionTimestamp"}) == nullptr)
      ++running[app];
    else if (is_in_vain(pod, gangs))
      continue;
    else
      findings.push_back(fmt::format("{} is {} on \"{}\"", key, phase, json::get_string(pod, {"spec", "nodeName"})));
  }
  for (const auto& [name, replicas] : deployments)
    if (running[name] != replicas) findings.push_back(fmt::format("{} has {} of {} replicas", name, running[name], replicas));
  return findings;
}

}  // namespace berth::world
