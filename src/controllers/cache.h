// What controllers see of the cluster: the last known revision of every object of the watched kinds, indexed for the questions they ask.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "controllers/kinds.h"
#include "controllers/label_index.h"

namespace berth::controllers {

/// .spec as it stands in the object's bytes; empty without one.
std::string spec_text(const Object& object);

/// A change of one object: `before` null: it is new; `after` null: it is gone (`before` is the last state known). The pods are set for
/// pods.
struct Event {
  Kind kind = nullptr;
  ObjectRef before, after;
  PodRef pod_before, pod_after;
  bool is_heartbeat = false;  ///< Of a node that says no more than that it lives (client/heartbeats.h).
  [[nodiscard]] const Object& object() const { return after ? *after : *before; }
};

/// What an object selects by spec.selector: a plain map for Services and ReplicationControllers, where none or an empty one selects
/// nothing, a LabelSelector for others, where an empty one selects everything.
model::Selector selector_of(Kind kind, const json::Value& document);

/// Single-threaded: lives on the manager's loop; reconcile steps read it, the shell alone writes it.
class Cache {
 public:
  /// Takes a change over and returns it completed with the pod summaries. A duplicate of the state already known has after == before; the
  /// end of what was never there has neither.
  Event apply(Kind kind, ObjectRef after, bool is_delete);

  [[nodiscard]] ObjectRef get(Kind kind, std::string_view ns, std::string_view name) const;
  /// In order of (namespace, name).
  void for_each(Kind kind, const std::function<void(const ObjectRef&)>& each) const;
  void for_each_in(Kind kind, std::string_view ns, const std::function<void(const ObjectRef&)>& each) const;
  [[nodiscard]] std::size_t size(Kind kind) const;
  [[nodiscard]] std::size_t size_in(Kind kind, std::string_view ns) const;
  /// Objects of a kind whose controlling owner has this uid, in order of (namespace, name).
  [[nodiscard]] std::vector<ObjectRef> controlled(Kind kind, std::string_view owner_uid) const;
  /// Objects of a kind in a namespace that nobody controls.
  [[nodiscard]] std::vector<ObjectRef> uncontrolled(Kind kind, std::string_view ns) const;
  /// Objects of a kind in a namespace whose spec.selector matches the labels, in order of name.
  [[nodiscard]] std::vector<ObjectRef> selecting(Kind kind, std::string_view ns, const model::Labels& labels) const;
  /// Custom kinds are known from the moment on that their objects are followed.
  void add_custom_kind(Kind kind) { custom_.push_back(kind); }
  void drop_custom_kind(Kind kind);
  [[nodiscard]] const std::vector<Kind>& custom_kinds() const { return custom_; }
  /// collectable_kinds() and the custom ones.
  [[nodiscard]] std::vector<Kind> all_collectable() const;
  /// As kind_of_reference() in kinds.h; custom kinds in any version of their group.
  [[nodiscard]] Kind find_reference(std::string_view api_version, std::string_view kind) const;
  /// The highest revision seen of a kind.
  [[nodiscard]] std::int64_t revision(Kind kind) const;

  [[nodiscard]] PodRef pod(std::string_view ns, std::string_view name) const;
  [[nodiscard]] PodRange pods_in(std::string_view ns) const;
  [[nodiscard]] PodRange pods_controlled(std::string_view owner_uid) const;
  /// Pods without a controlling owner in a namespace.
  [[nodiscard]] PodRange orphan_pods(std::string_view ns) const;
  /// The pods of a namespace that the selector matches, in order of name.
  void for_each_matching(std::string_view ns, const model::Selector& selector, const std::function<void(const PodRef&)>& each) const;
  /// The empty node: pods not bound yet.
  [[nodiscard]] PodRange pods_on(std::string_view node) const;
  void for_each_pod(const std::function<void(const PodRef&)>& each) const;

 private:
  struct StringHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  template <typename T>
  using StringMap = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;
  struct Store {
    std::unordered_set<std::unique_ptr<KnownObject>, NameHash, SameName> all;
    std::map<std::string, ObjectSet, std::less<>> by_ns;
    StringMap<ObjectSet> by_controller;                     ///< By the owner's uid.
    std::map<std::string, ObjectSet, std::less<>> orphans;  ///< Those without a controlling owner, by namespace.
    std::int64_t revision = 0;
    [[nodiscard]] KnownObject* find(std::string_view ns, std::string_view name) const;
  };
  [[nodiscard]] const Store* store_of(Kind kind) const;
  [[nodiscard]] const KnownObject* find(Kind kind, std::string_view ns, std::string_view name) const;
  /// An object is new, has changed, is gone. Sets are left before they are entered.
  void enter(Store& store, ObjectRef object, PodRef pod);
  void replace(Store& store, KnownObject& known, ObjectRef object, PodRef pod);
  void leave(Store& store, const KnownObject& known);
  static void enter_owner(Store& store, const KnownObject& known);
  static void leave_owner(Store& store, const KnownObject& known);
  void index_selector(Kind kind, const ObjectRef& before, const ObjectRef& after);

  std::unordered_map<Kind, Store> stores_;
  std::vector<Kind> custom_;
  mutable std::unordered_map<Kind, SelectorIndex> selectors_;  ///< Of the kinds that somebody asked `selecting` about.
  mutable PodLabelIndex pods_by_label_;
  StringMap<ObjectSet> pods_by_node_;
};

}  // namespace berth::controllers
