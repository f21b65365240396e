#include "apiserver/upkeep/flow_objects.h"

#include <latch>

#include "apiserver/cache/follow.h"
#include "apiserver/ground/proposals.h"
#include "base/lifeline.h"
#include "base/mutex.h"
#include "model/conditions.h"
#include "model/flow_control.h"

namespace berth::apiserver {
namespace {

using model::flow_control::BootstrapObject;

constexpr std::string_view kAutoUpdate = "apf.kubernetes.io/autoupdate-spec";
constexpr Duration kLookAgain = std::chrono::minutes(1), kRebalance = std::chrono::seconds(10);

const model::KindInfo& level_kind() { return *model::find_resource(model::flow_control::kGroup, "prioritylevelconfigurations"); }
const model::KindInfo& schema_kind() { return *model::find_resource(model::flow_control::kGroup, "flowschemas"); }

/// As Go's strconv.ParseBool.
std::optional<bool> flag_of(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"})
    if (text == yes) return true;
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False"})
    if (text == no) return false;
  return std::nullopt;
}

std::optional<bool> auto_update_of(const json::Value& object) {
  return flag_of(json::get_string(object, {"metadata", "annotations", kAutoUpdate}));
}

std::string name_of(const json::Value& object) { return std::string(json::get_string(object, {"metadata", "name"})); }

/// The object as it should be, where it is not: its spec, and what it says about its being kept.
std::optional<json::Value> kept_up(const json::Value& object, const BootstrapObject& wanted) {
  const auto said = auto_update_of(object);
  const bool is_kept = wanted.is_mandatory || said.value_or(json::get_int(object, {"metadata", "generation"}) == 1);
  json::Value spec = *json::find(wanted.document, "spec");
  // How much others may borrow of the exempt level is the administrator's matter.
  if (const auto* exempt = json::find(object, {"spec", "exempt"});
      exempt != nullptr && exempt->is_object() && spec.get_object().contains("exempt"))
    spec.get_object()["exempt"] = *exempt;
  const auto* present = json::find(object, "spec");
  const bool differs = is_kept && (present == nullptr || !json::equal(*present, spec));
  if (!differs && said == is_kept) return std::nullopt;
  json::Value out = object;
  json::set(out, {"metadata", "annotations", kAutoUpdate}, is_kept ? "true" : "false");
  if (differs) {
    out.get_object()["spec"] = std::move(spec);
    json::set(out, {"metadata", "generation"}, json::get_int(object, {"metadata", "generation"}) + 1);
  }
  return out;
}

/// A schema's condition is applied by the server itself, and its field managers say so.
void own_condition(json::Value& schema, const std::string& now) {
  constexpr std::string_view kManager = "api-priority-and-fairness-config-consumer-v1";
  json::Object fields{{".", json::Object()}};
  for (const char* field : {"f:lastTransitionTime", "f:message", "f:reason", "f:status", "f:type"}) fields[field] = json::Object();
  json::Array entries{json::Object{
      {"manager", kManager},
      {"operation", "Apply"},
      {"apiVersion", "flowcontrol.apiserver.k8s.io/v1"},
      {"time", now},
      {"fieldsType", "FieldsV1"},
      {"fieldsV1",
       json::Object{{"f:status", json::Object{{"f:conditions", json::Object{{R"(k:{"type":"Dangling"})", std::move(fields)}}}}}}},
      {"subresource", "status"}}};
  for (const json::Value& entry : json::get_array(schema, {"metadata", "managedFields"}))
    if (json::get_string(entry, {"manager"}) != kManager) entries.push_back(entry);
  json::set(schema, {"metadata", "managedFields"}, std::move(entries));
}

/// The schema with the condition that it should have, where it has another.
std::optional<json::Value> with_condition(const json::Value& schema, bool is_missing, TimePoint now) {
  const auto message = fmt::format("This FlowSchema references the PriorityLevelConfiguration object named \"{}\" {}",
                                   json::get_string(schema, {"spec", "priorityLevelConfiguration", "name"}),
                                   is_missing ? "but there is no such object" : "and it exists");
  json::Value out = schema;
  if (!model::set_condition(out, {"Dangling", is_missing ? "True" : "False", is_missing ? "NotFound" : "Found", message}, now))
    return std::nullopt;
  own_condition(out, format_rfc3339(now));
  return out;
}

}  // namespace

struct FlowObjects::State : Guarded<State> {
  struct Stored {
    ObjectPtr object;
    json::Value document;
  };
  using ByName = std::map<std::string, Stored>;

  State(Ground& of, flow::Controller* told, bool is_kept)
      : ground(of), flow_control(told), follows(is_kept), uids(of.options.seed == 0 ? 0 : ~of.options.seed) {}

  Ground& ground;
  flow::Controller* flow_control;
  const bool follows;
  NameSource uids;  ///< Of its own: other objects' names and uids are what they were before there were these.
  Mutex mutex BERTH_ACQUIRED_AFTER(running);
  bool is_stopped BERTH_GUARDED_BY(mutex) = false, is_scheduled BERTH_GUARDED_BY(mutex) = false;
  TimerId look_again BERTH_GUARDED_BY(mutex) = TimerId::kNone, rebalance BERTH_GUARDED_BY(mutex) = TimerId::kNone;
  Mutex running;  ///< Held while objects are looked at.
  std::vector<std::unique_ptr<Watch>> watches;

  void changed() {
    const MutexLock lock(mutex);
    if (is_stopped || std::exchange(is_scheduled, true)) return;
    ground.loop.post(guarded(&State::look));
  }

  void schedule(TimerId& timer, Duration pause, void (State::*task)()) BERTH_REQUIRES(mutex) {
    timer = ground.loop.schedule_after(pause, guarded([&timer, pause, task](State& self) {
                                         (self.*task)();
                                         const MutexLock lock(self.mutex);
                                         if (!self.is_stopped) self.schedule(timer, pause, task);
                                       }));
  }

  void share_out() {
    const MutexLock lock(running);
    if (!stopped() && flow_control != nullptr) flow_control->rebalance();
  }

  bool stopped() {
    const MutexLock lock(mutex);
    return is_stopped;
  }

  ByName read(const model::KindInfo& kind) const {
    ByName out;
    for (const auto& object : ground.cache->list({.prefix = make_prefix(kind.storage_group, kind.plural)}, "", 0).items)
      out.emplace(std::string(object->meta.name), Stored{object, decode_object(*object)});
    return out;
  }

  json::Value made(const model::KindInfo& kind, const BootstrapObject& wanted) {
    json::Value out = newborn(ground, uids, kind, wanted.document);
    auto& metadata = json::ensure_object(out, {"metadata"});
    metadata["generation"] = 1;
    metadata["annotations"] = json::Object{{kAutoUpdate, "true"}};
    if (&kind == &schema_kind()) out = *with_condition(out, false, ground.loop.now());
    return out;
  }

  Result<void> make_missing() {
    std::vector<std::pair<const model::KindInfo*, json::Value>> missing;
    const auto add = [&](const model::KindInfo& kind, const std::vector<BootstrapObject>& objects) {
      const auto present = read(kind);
      for (const auto& object : objects)
        if (!present.contains(name_of(object.document))) missing.emplace_back(&kind, made(kind, object));
    };
    add(level_kind(), model::flow_control::bootstrap_levels());
    add(schema_kind(), model::flow_control::bootstrap_schemas());
    std::latch stored(static_cast<std::ptrdiff_t>(missing.size()));
    std::atomic<bool> failed{false};
    for (auto& [kind, document] : missing)
      put(ground, *kind, std::move(document), 0, [&](const ProposeResult& result) {
        if (!result && result.error() != ProposeError::kExists) failed = true;
        stored.count_down();
      });
    stored.wait();
    if (failed) return fail(ErrorCode::kInternal, "the objects of flow control could not be stored");
    return {};
  }

  /// Brings objects of one kind to what they should be; true when something was written. What follows from a refused write is another
  /// event, and so another look.
  bool keep(const model::KindInfo& kind, const std::vector<BootstrapObject>& objects, const ByName& present) {
    bool wrote = false;
    for (const auto& wanted : objects) {
      const auto found = present.find(name_of(wanted.document));
      if (found == present.end()) {
        put(ground, kind, made(kind, wanted), 0);
        wrote = true;
        continue;
      }
      if (json::find(found->second.document, {"metadata", "deletionTimestamp"}) != nullptr) continue;
      if (auto better = kept_up(found->second.document, wanted)) {
        put(ground, kind, std::move(*better), found->second.object->revision);
        wrote = true;
      }
    }
    for (const auto& [name, stored] : present) {
      if (model::flow_control::bootstrap_object(kind.kind, name) != nullptr || !auto_update_of(stored.document).value_or(false)) continue;
      if (has_finalizers(stored.document)) continue;
      take_away(ground, object_key(kind, "", name), stored.object->revision);
      wrote = true;
    }
    return wrote;
  }

  void look() {
    const MutexLock lock(running);
    {
      const MutexLock guard(mutex);
      if (is_stopped) return;
      is_scheduled = false;
    }
    const auto levels = read(level_kind()), schemas = read(schema_kind());
    tell(levels, schemas);
    if (ground.cache->is_read_only()) return;
    // Conditions follow when the specs are as they should be.
    const bool wrote_levels = keep(level_kind(), model::flow_control::bootstrap_levels(), levels);
    if (keep(schema_kind(), model::flow_control::bootstrap_schemas(), schemas) || wrote_levels) return;
    for (const auto& [name, stored] : schemas) {
      const std::string level(json::get_string(stored.document, {"spec", "priorityLevelConfiguration", "name"}));
      if (auto better = with_condition(stored.document, !levels.contains(level), ground.loop.now()))
        put(ground, schema_kind(), std::move(*better), stored.object->revision);
    }
  }

  void tell(const ByName& levels, const ByName& schemas) const {
    if (flow_control == nullptr) return;
    std::vector<flow::PriorityLevel> read_levels;
    std::vector<flow::FlowSchema> read_schemas;
    for (const auto& [name, stored] : levels) read_levels.push_back(flow::read_level(stored.document));
    for (const auto& [name, stored] : schemas) read_schemas.push_back(flow::read_schema(stored.document));
    flow_control->configure(std::move(read_levels), std::move(read_schemas));
  }
};

FlowObjects::FlowObjects(Ground& ground, flow::Controller* flow_control, bool follows)
    : state_(std::make_shared<State>(ground, flow_control, follows)) {}
FlowObjects::~FlowObjects() { stop(); }

Result<void> FlowObjects::start() {
  if (auto made = state_->make_missing(); !made) return made;
  state_->tell(state_->read(level_kind()), state_->read(schema_kind()));
  if (!state_->follows) return {};
  for (const auto* kind : {&level_kind(), &schema_kind()})
    state_->watches.push_back(follow(*state_->ground.cache, make_prefix(kind->storage_group, kind->plural),
                                     state_->guarded([](State& state, const WatchEvent&) { state.changed(); })));
  const MutexLock lock(state_->mutex);
  state_->schedule(state_->look_again, kLookAgain, &State::look);
  state_->schedule(state_->rebalance, kRebalance, &State::share_out);
  return {};
}

void FlowObjects::stop() {
  {
    const MutexLock running(state_->running);
    const MutexLock lock(state_->mutex);
    state_->is_stopped = true;
    state_->ground.loop.cancel(state_->look_again);
    state_->ground.loop.cancel(state_->rebalance);
  }
  state_->watches.clear();
}

}  // namespace berth::apiserver
