// A pod from the moment it wants a node of us until the API has told what became of it: one record, in one stage.
//
//                       +------------------------- its place is held -------------------------+
//   Queued --> Asking --> AtPermit --> PreBinding --> AwaitingClaims --> Binding --> (no more) |
//    ^  ^ \                  |              |                |               |                 |
//    |  |  +--> Preempting   +--------------+----------------+---------------+-- refused: given back
//    |  +-- Aside                                                            |
//    +-----------------------------------------------------------------------+
//
// Who is in the queue's care is Queued, whichever box it is in; Preempting stays there, too. Everything from Aside on is in flight there. A
// stage may be passed in no time, and is left by `enter` alone, which knows the ways. What comes late finds another record, or none.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "client/object.h"
#include "net/tracing/tracer.h"
#include "placement/trial.h"
#include "scheduler/effects.h"
#include "scheduler/queue.h"

namespace berth::scheduler {

/// One pod's turn, from the queue to its place or back.
struct Turn {
  SchedulingQueue::Entry entry;
  placement::PodInfoPtr info;
  placement::FrameworkPtr framework;
  TimePoint started;
  std::optional<placement::Evaluation> refused;             ///< Every node that the engine found feasible was refused by extenders.
  std::shared_ptr<const placement::Diagnosis> diagnosis{};  ///< Why no node took it.
  placement::EventSet missed{};                             ///< What happened while extenders were asked.
  std::string held_back{};                                  ///< For whom room is kept that it would have; empty: nobody.
  std::vector<std::string_view> mates_rejected_by{};        ///< What rejected others of its group: that counts for each of them.
};

/// A place that a pod has in the cluster before the API says so, and how far its binding is.
struct Held {
  SchedulingQueue::Entry entry;
  placement::PodInfoPtr info;
  client::ObjectRef object;  ///< As it was decided on.
  placement::FrameworkPtr framework;
  placement::NodeIndex node;
  std::string node_name;
  TimePoint started;         ///< When the turn began.
  TimePoint step_started{};  ///< When PreBind or Bind did.
  placement::Reservation reservation;
  std::vector<placement::PreBindWrite> writes;
  std::string_view bind_plugin{};  ///< Whose call binds it.
  std::size_t written = 0;
  std::vector<std::int64_t> written_at{};  ///< The revision that each write made.
  TimePoint claims_deadline{};
  bool holds_slot = false;  ///< Counts in bindings_in_flight.
  std::optional<net::tracing::Span> span{};
  bool told_of_conditions = false;
  bool is_assumed = true;  ///< The watch has not yet shown what became of it.
};
using HeldPtr = std::shared_ptr<Held>;

struct Queued {};
/// Popped while another pod was asked about: its turn comes after the answer.
struct Aside {
  SchedulingQueue::Entry entry;
};
/// Extenders are being asked about the pod.
struct Asking {
  Turn turn;
  std::uint64_t node_changes_seen = 0;  ///< When the asking began.
};
/// Its victims' eviction is not yet shown by the watch. Until then nothing about it is decided: the plan would be made a second time,
/// perhaps for another node.
struct Preempting {
  std::set<std::string> victims;  ///< uids
  bool has_failed = false;        ///< An eviction was refused: it is to be tried again.
  bool missed_event = false;      ///< Something that could have helped it happened meanwhile.
};
/// The plugins that make it wait, with the timers that end their patience.
struct AtPermit {
  HeldPtr held;
  std::map<std::string, Ask> plugins{};
};
/// What has to be written before it is bound, is.
struct PreBinding {
  HeldPtr held;
};
struct AwaitingClaims {
  HeldPtr held;
  Ask deadline = 0;
};
/// Its node is asked for. With the watch's word and the server's answer, whichever comes last, the record goes.
struct Binding {
  HeldPtr held;
  bool is_answered = false;
};

struct Tracked {
  using Stage = std::variant<Queued, Aside, Asking, Preempting, AtPermit, PreBinding, AwaitingClaims, Binding>;

  placement::PodInfoPtr info;  ///< With its nomination: where preemption makes room for it. The API may lag behind.
  client::ObjectRef object;
  std::string message;             ///< The condition's message last written by us; empty: see the object.
  std::string gated_by;            ///< The plugin whose PreEnqueue holds it back; empty: none.
  bool has_topology_note = false;  ///< Topology keys that no node has were told of.

  [[nodiscard]] const std::string& nominated() const { return info->view().nominated_node_name; }
  [[nodiscard]] const Stage& stage() const { return stage_; }
  /// Its stage as a T; null while it is in another.
  template <typename T>
  [[nodiscard]] T* as() {
    return std::get_if<T>(&stage_);
  }
  template <typename T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&stage_);
  }
  /// The place that it holds; null while it has none.
  [[nodiscard]] HeldPtr held() const;
  /// Into the next stage; ends the program where no way leads there. What the last one held is let go.
  void enter(Stage next);

 private:
  Stage stage_;
};

inline constexpr std::array<std::string_view, 8> kStageNames = {"Queued",   "Aside",      "Asking",         "Preempting",
                                                                "AtPermit", "PreBinding", "AwaitingClaims", "Binding"};
static_assert(std::variant_size_v<Tracked::Stage> == kStageNames.size());

/// By stage: what may follow, as bits. A place that is given back ends the record; who waits again gets a new one.
inline constexpr std::array<unsigned, 8> kNextStages = {
    1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,  // Queued: popped
    1u << 0,                                // Aside: its turn
    1u << 0,                                // Asking: answered
    1u << 0,                                // Preempting: its victims go, or it is tried again
    1u << 5,                                // AtPermit: allowed
    1u << 6 | 1u << 7,                      // PreBinding: written
    1u << 7,                                // AwaitingClaims: bound
    0,                                      // Binding
};

inline HeldPtr Tracked::held() const {
  return std::visit(
      [](const auto& stage) -> HeldPtr {
        if constexpr (requires { stage.held; })
          return stage.held;
        else
          return nullptr;
      },
      stage_);
}

inline void Tracked::enter(Stage next) {
  BERTH_CHECK((kNextStages[stage_.index()] >> next.index() & 1) != 0, "pod {} cannot go from {} to {}", info->key,
              kStageNames[stage_.index()], kStageNames[next.index()]);
  stage_ = std::move(next);
}

}  // namespace berth::scheduler
