#include "tests/world/users.h"

#include <algorithm>

namespace berth::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kRegisters = 4;
const model::Gvr kConfigMaps{"", "v1", "configmaps"};

store::Revision revision_of(const json::Value& object) {
  return std::atoll(std::string(json::get_string(object, {"metadata", "resourceVersion"})).c_str());
}

json::Value register_of(const std::string& name, const std::string& value, const std::string& version) {
  json::Object metadata{{"name", name}, {"namespace", "default"}};
  if (!version.empty()) metadata["resourceVersion"] = version;
  return json::Object{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", std::move(metadata)}, {"data", json::Object{{"v", value}}}};
}

/// What a refusal says of whether it happened.
Act::Outcome outcome_of(const model::ApiStatus& status) {
  return status.code == 0 || status.code >= 500 ? Act::Outcome::kUnknown : Act::Outcome::kRefused;
}

}  // namespace

std::size_t Ledger::begin(Act act) {
  act.least = told_;
  act.before = world_.held().revision();
  acts_.push_back(std::move(act));
  return acts_.size() - 1;
}

void Ledger::end(std::size_t number, Act::Outcome outcome, store::Revision revision, std::string value) {
  Act& act = acts_[number];
  act.outcome = outcome;
  act.revision = revision;
  act.after = world_.held().revision();
  if (act.kind == Act::Kind::kRead) act.value = std::move(value);
  if (outcome == Act::Outcome::kDone) told_ = std::max(told_, revision);
}

RegisterUser::RegisterUser(World& world, Ledger& ledger, const std::string& name, std::uint64_t seed)
    : world_(world), ledger_(ledger), name_(name), random_(seed, name), client_(world.process(name).wire, &world.loop(), name) {
  next();
}

void RegisterUser::next() {
  world_.loop().schedule_after(milliseconds(random_.below(500)), [this] {
    if (!is_stopped_) act();
  });
}

void RegisterUser::act() {
  const std::string name = fmt::format("register-{}", random_.below(kRegisters));
  std::string& seen = seen_[name];
  switch (random_.below(6)) {
    case 0: {
      const auto number = ledger_.begin({.kind = Act::Kind::kDelete, .user = name_, .name = name});
      client::DeleteOptions options;
      if (random_.below(2) == 0) options.precondition_resource_version = seen;
      return client_.remove(kConfigMaps, "default", name, options, [this, number, name](client::ApiResult<json::Value> answer) {
        ledger_.end(number, answer ? Act::Outcome::kDone : outcome_of(answer.error()), 0);
        if (answer) seen_[name].clear();
        next();
      });
    }
    case 1:
    case 2: {
      const auto number = ledger_.begin({.kind = Act::Kind::kRead, .user = name_, .name = name});
      return client_.get(kConfigMaps, "default", name, [this, number, name](client::ApiResult<json::Value> answer) {
        if (answer) {
          seen_[name] = json::get_string(*answer, {"metadata", "resourceVersion"});
          ledger_.end(number, Act::Outcome::kDone, revision_of(*answer), std::string(json::get_string(*answer, {"data", "v"})));
        } else {
          if (answer.error().code == 404) seen_[name].clear();
          ledger_.end(number, answer.error().code == 404 ? Act::Outcome::kDone : Act::Outcome::kUnknown, 0);
        }
        next();
      });
    }
    default: {
      const std::string value = fmt::format("{}-{}", name_, ++writes_);
      const auto number = ledger_.begin({.kind = Act::Kind::kPut, .user = name_, .name = name, .value = value});
      auto done = [this, number, name](client::ApiResult<json::Value> answer) {
        if (answer) seen_[name] = json::get_string(*answer, {"metadata", "resourceVersion"});
        if (!answer && answer.error().code == 404) seen_[name].clear();
        ledger_.end(number, answer ? Act::Outcome::kDone : outcome_of(answer.error()), answer ? revision_of(*answer) : 0);
        next();
      };
      if (seen.empty()) return client_.create(kConfigMaps, "default", register_of(name, value, ""), std::move(done));
      // Half of them on condition that nobody else was there meanwhile.
      client_.update(kConfigMaps, "default", name, register_of(name, value, random_.below(2) == 0 ? seen : ""), std::move(done));
    }
  }
}

RegisterWatcher::RegisterWatcher(World& world, const std::string& name)
    : world_(world), wire_(world.process(name).wire), client_(wire_, &world.loop(), name) {
  list();
}

void RegisterWatcher::stop() {
  is_stopped_ = true;
  handle_.reset();
}

void RegisterWatcher::later(void (RegisterWatcher::*what)()) {
  world_.loop().schedule_after(milliseconds(200), [this, what, alive = std::weak_ptr(alive_)] {
    if (!alive.expired() && !is_stopped_) (this->*what)();
  });
}

void RegisterWatcher::list() {
  client_.list(kConfigMaps, "default", {}, [this](client::ApiResult<client::ListPage> page) {
    if (is_stopped_) return;
    if (!page) return later(&RegisterWatcher::list);
    const store::Revision revision = std::atoll(page->resource_version.c_str());
    stretches_.push_back({revision, revision, {}});
    watch();
  });
}

void RegisterWatcher::watch() {
  is_gone_ = false;
  decoder_ = std::make_shared<client::WatchDecoder>();
  net::HttpRequest request;
  request.method = "GET";
  request.path = "/api/v1/namespaces/default/configmaps";
  request.query = fmt::format("watch=true&allowWatchBookmarks=true&resourceVersion={}", stretches_.back().to);
  net::StreamCallbacks callbacks;
  callbacks.on_header = [this](int status, const net::Headers&) { is_gone_ = is_gone_ || status == 410; };
  callbacks.on_data = [this, decoder = decoder_](std::string_view data) {
    std::deque<client::WatchEvent> events;
    if (!decoder->feed(data, events)) return;
    for (const auto& event : events) take(event);
  };
  callbacks.on_end = [this](const std::string&) {
    // Not from within its own callback.
    later(is_gone_ ? &RegisterWatcher::list : &RegisterWatcher::watch);
  };
  handle_ = wire_->stream(std::move(request), std::move(callbacks));
}

void RegisterWatcher::take(const client::WatchEvent& event) {
  using Type = client::WatchEvent::Type;
  if (event.type == Type::kError) {
    is_gone_ = is_gone_ || event.status.code == 410;
    return;
  }
  Stretch& stretch = stretches_.back();
  const store::Revision revision = event.object->revision();
  if (event.type != Type::kBookmark) {
    static constexpr const char* kNames[] = {"ADDED", "MODIFIED", "DELETED"};
    const std::string name(event.object->name());
    if (name.starts_with("register-")) stretch.events.push_back({kNames[static_cast<int>(event.type)], name, revision});
  }
  if (revision < stretch.to) world_.wrongs.push_back(fmt::format("a watch goes backwards, from {} to {}", stretch.to, revision));
  stretch.to = std::max(stretch.to, revision);
}

}  // namespace berth::world
