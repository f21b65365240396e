#include "controllers/custom_kinds.h"

#include <list>

#include "base/dotted.h"
#include "base/mutex.h"
#include "controllers/common.h"
#include "model/kind_hooks.h"

namespace berth::controllers {
namespace {

constexpr Duration kPatience = std::chrono::seconds(30);

/// "spec.replicas" of ".spec.replicas".
std::string without_dot(std::string_view path) { return std::string(path.starts_with('.') ? path.substr(1) : path); }

/// Interned: controllers compare and keep pointers.
Kind interned(model::KindInfo info, std::optional<model::Scale> scale) {
  struct Known {
    std::string identity;
    model::KindInfo info;
  };
  static Mutex mutex;
  static std::list<Known>& all = *new std::list<Known>();
  std::string identity = fmt::format("{}/{}/{}/{}/{}", info.group, info.version, info.plural, info.kind, info.namespaced);
  if (scale) identity += fmt::format("/{}/{}/{}", scale->spec_replicas, scale->status_replicas, scale->selector);
  const MutexLock lock(mutex);
  for (const Known& known : all)
    if (known.identity == identity) return &known.info;
  if (scale) {
    model::KindHooks hooks = model::KindHooks::all_default();
    hooks.scale = *scale;
    info.hooks = std::make_shared<const model::KindHooks>(std::move(hooks));
    info.subresources.emplace_back("scale");
  }
  all.push_back({std::move(identity), std::move(info)});
  return &all.back().info;
}

/// The version that is read; null when none is served.
const json::Value* read_version(const json::Value& definition) {
  const json::Value* first = nullptr;
  for (const json::Value& version : json::get_array(definition, {"spec", "versions"})) {
    if (!json::get_bool(version, {"served"})) continue;
    if (json::get_bool(version, {"storage"})) return &version;
    if (first == nullptr) first = &version;
  }
  return first;
}

}  // namespace

Kind kind_of_definition(const json::Value& definition) {
  const bool is_established = std::ranges::any_of(json::get_array(definition, {"status", "conditions"}), [](const json::Value& one) {
    return json::get_string(one, {"type"}) == "Established" && json::get_string(one, {"status"}) == "True";
  });
  const json::Value* version = read_version(definition);
  if (!is_established || version == nullptr) return nullptr;
  model::KindInfo info;
  info.group = info.storage_group = json::get_string(definition, {"spec", "group"});
  info.version = info.storage_version = json::get_string(*version, {"name"});
  info.plural = json::get_string(definition, {"status", "acceptedNames", "plural"});
  info.kind = json::get_string(definition, {"status", "acceptedNames", "kind"});
  info.list_kind = json::get_string(definition, {"status", "acceptedNames", "listKind"});
  info.namespaced = json::get_string(definition, {"spec", "scope"}) != "Cluster";
  info.verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
  if (model::find_resource(info.group, info.plural) != nullptr) return nullptr;
  std::optional<model::Scale> scale;
  if (const json::Value* paths = json::find(*version, {"subresources", "scale"}))
    scale = model::Scale{without_dot(json::get_string(*paths, {"specReplicasPath"})),
                         without_dot(json::get_string(*paths, {"statusReplicasPath"})),
                         without_dot(json::get_string(*paths, {"labelSelectorPath"})), model::Scale::Selector::kText, 0};
  return interned(std::move(info), std::move(scale));
}

std::optional<CustomScale> read_custom_scale(Kind kind, const json::Value& document) {
  if (kind == nullptr || kind->hooks == nullptr || !kind->has_subresource("scale")) return std::nullopt;
  const auto at = [&](std::string_view path) { return path.empty() ? nullptr : json::find_dotted(document, path); };
  const model::Scale& scale = *kind->hooks->scale;
  if (scale.selector_form != model::Scale::Selector::kText) return std::nullopt;  // One of the API's own kinds.
  CustomScale out;
  if (const json::Value* replicas = at(scale.spec_replicas); replicas != nullptr && replicas->is_int64())
    out.replicas = replicas->get_int64();
  if (const json::Value* selector = at(scale.selector); selector != nullptr && selector->is_string())
    out.selector = json::as_view(*selector);
  return out;
}

CustomKinds::CustomKinds(client::Client& client, Engine& engine) : client_(client), engine_(engine) {}

CustomKinds::~CustomKinds() {
  lifeline_.end();
  if (patience_ != TimerId::kNone) client_.loop()->cancel(patience_);
}

void CustomKinds::follow(client::Informer& definitions) {
  client::InformerHandler handler;
  const auto changed = [this](const ObjectRef& object) { take(object->name(), kind_of_definition(*object->parsed()), false); };
  handler.on_add = changed;
  handler.on_update = [changed](const ObjectRef&, const ObjectRef& after) { changed(after); };
  handler.on_delete = [this](const ObjectRef& object) { take(object->name(), nullptr, true); };
  definitions.add_handler(std::move(handler));
}

void CustomKinds::take(const std::string& name, Kind kind, bool is_gone) {
  const auto it = followed_.find(name);
  if (it != followed_.end() && it->second.kind == kind) return;
  if (it != followed_.end()) {
    const Followed old = std::move(it->second);
    followed_.erase(it);
    // What is read in another version from now on is not gone; what had its definition deleted is.
    if (is_shown_) engine_.drop_custom_kind(old.kind, is_gone);
  }
  if (kind != nullptr) {
    Followed& followed = followed_[name];
    followed.kind = kind;
    followed.informer = std::make_unique<client::Informer>(client_, kind->gvr(), client::InformerOptions{.is_optional = true});
    if (is_shown_) show(followed);
    followed.informer->on_synced([this] { tell_if_synced(); });
    followed.informer->start();
  }
  tell_if_synced();
}

void CustomKinds::show() {
  is_shown_ = true;
  for (const auto& [name, followed] : followed_) show(followed);
}

void CustomKinds::show(const Followed& followed) {
  const Kind kind = followed.kind;
  engine_.add_custom_kind(kind);
  client::InformerHandler handler;
  handler.on_add = [this, kind](const ObjectRef& object) { engine_.observe(kind, object, false); };
  handler.on_update = [this, kind](const ObjectRef&, const ObjectRef& after) { engine_.observe(kind, after, false); };
  handler.on_delete = [this, kind](const ObjectRef& object) { engine_.observe(kind, object, true); };
  followed.informer->add_handler(std::move(handler));
  followed.informer->on_synced([this, kind] { engine_.filled_custom_kind(kind); });
}

void CustomKinds::on_synced(std::function<void()> synced) {
  synced_ = std::move(synced);
  patience_ = client_.loop()->schedule_after(kPatience, lifeline_.guard([this] {
    patience_ = TimerId::kNone;
    if (const auto tell = std::exchange(synced_, nullptr)) tell();
  }));
  tell_if_synced();
}

void CustomKinds::tell_if_synced() {
  if (!synced_) return;
  const bool all = std::ranges::all_of(followed_, [](const auto& one) { return one.second.informer->has_synced(); });
  if (!all) return;
  if (patience_ != TimerId::kNone) client_.loop()->cancel(std::exchange(patience_, TimerId::kNone));
  std::exchange(synced_, nullptr)();
}

}  // namespace berth::controllers
