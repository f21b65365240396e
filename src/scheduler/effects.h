// What the scheduler's core wants done, as values, and what it is told of it. The shell (scheduler.cpp) carries effects out in their order
// and brings each answer back under the number of its effect; tests do so by hand, in any order.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "client/client.h"
#include "client/event_recorder.h"
#include "client/object.h"
#include "net/tracing/tracer.h"
#include "placement/trial.h"

namespace berth::scheduler {

/// By which an answer finds what was asked; never given twice. 0: nobody waits for an answer.
using Ask = std::uint64_t;

struct Request {
  Ask id;
  client::Call call;
  std::optional<net::tracing::SpanContext> span;  ///< What it is a part of.
};
struct Report {
  std::string profile;  ///< Whose recorder tells it.
  client::ObjectReference regarding;
  std::string type, reason, message, action;
  std::optional<client::ObjectReference> related;
};
struct WakeAt {
  Ask id;
  TimePoint when;
};
struct CancelWake {
  Ask id;
};
/// Comes back after everything that is on its way to the core already.
struct Later {
  Ask id;
};
/// Somebody's turn may have come.
struct TakeTurns {};
/// Of extenders: which of the feasible nodes they want, which victims they leave, and that they bind.
struct AskForNode {
  Ask id;
  placement::PodInfoPtr info;
  client::ObjectRef object;
  std::shared_ptr<placement::Evaluation> evaluation;  ///< Tells afterwards what they said of each node.
};
struct AskForVictims {
  Ask id;
  placement::PodInfoPtr info;
  client::ObjectRef object;
  std::vector<placement::Candidate> candidates;
};
struct AskToBind {
  Ask id;
  placement::PodInfoPtr info;
  std::string node_name;
};
using Effect = std::variant<Request, Report, WakeAt, CancelWake, Later, TakeTurns, AskForNode, AskForVictims, AskToBind>;

using Answered = client::ApiResult<json::Value>;
struct Chosen {
  placement::Decision decision;
  std::string node_name;
};
using LeftVictims = Result<std::vector<placement::Candidate>>;
using Bound = Result<bool>;  ///< False: no extender did.
/// Of Request; of WakeAt and Later; of the questions to extenders.
using Answer = std::variant<std::monostate, Answered, Chosen, LeftVictims, Bound>;

/// Where effects leave the core, and answers come in. An answer comes once; what is not answered is held, and nothing else.
class Outbox {
 public:
  using Then = std::function<void(Answered)>;
  explicit Outbox(std::function<void(Effect)> sink) : sink_(std::move(sink)) {}

  void call(client::Call call, Then then, const std::optional<net::tracing::SpanContext>& span = {});
  void get(const client::Gvr& gvr, const std::string& ns, const std::string& name, Then then);
  void create(const client::Gvr& gvr, const std::string& ns, const json::Value& body, Then then);
  void update(const client::Gvr& gvr, const std::string& ns, const std::string& name, const json::Value& body, Then then,
              const std::string& subresource);
  /// A merge patch, or a strategic one. `then` may be empty.
  void patch(const client::Gvr& gvr, const std::string& ns, const std::string& name, client::PatchType type, const json::Value& body,
             Then then, const std::string& subresource = "");
  /// The object of this uid, and no other of its name.
  void remove(const client::Gvr& gvr, const std::string& ns, const std::string& name, const std::string& uid, Then then);
  void report(const std::string& profile, client::ObjectReference regarding, std::string_view type, std::string_view reason,
              std::string message, std::string_view action, const client::ObjectReference* related = nullptr);
  Ask at(TimePoint when, std::function<void()> then);
  void cancel(Ask id);
  void later(std::function<void()> then);
  void take_turns() { sink_(TakeTurns{}); }
  template <typename Question, typename Then, typename... Values>
  void ask(Then then, Values&&... values) {
    sink_(Question{expect(std::move(then)), std::forward<Values>(values)...});
  }

  /// Ends the program when nobody asked, or when it was answered before.
  void answered(Ask id, Answer answer);
  /// What is not answered yet.
  [[nodiscard]] std::size_t open() const { return open_.size(); }

 private:
  Ask expect(std::function<void(Answer&)> then);

  std::function<void(Effect)> sink_;
  std::unordered_map<Ask, std::function<void(Answer&)>> open_;
  Ask last_ = 0;
};

inline Ask Outbox::expect(std::function<void(Answer&)> then) {
  open_.emplace(++last_, std::move(then));
  return last_;
}

inline void Outbox::answered(Ask id, Answer answer) {
  auto open = open_.extract(id);
  BERTH_CHECK(!open.empty(), "effect {} is answered, and nobody waits for that", id);
  open.mapped()(answer);
}

inline void Outbox::call(client::Call call, Then then, const std::optional<net::tracing::SpanContext>& span) {
  const Ask id = then ? expect([then = std::move(then)](Answer& answer) { then(std::get<Answered>(std::move(answer))); }) : 0;
  sink_(Request{id, std::move(call), span});
}

inline void Outbox::get(const client::Gvr& gvr, const std::string& ns, const std::string& name, Then then) {
  call({.verb = "get", .gvr = gvr, .ns = ns, .name = name}, std::move(then));
}

inline void Outbox::create(const client::Gvr& gvr, const std::string& ns, const json::Value& body, Then then) {
  call({.verb = "create", .gvr = gvr, .ns = ns, .body = json::serialize(body)}, std::move(then));
}

inline void Outbox::update(const client::Gvr& gvr, const std::string& ns, const std::string& name, const json::Value& body, Then then,
                           const std::string& subresource) {
  call({.verb = "update", .gvr = gvr, .ns = ns, .name = name, .subresource = subresource, .body = json::serialize(body)}, std::move(then));
}

inline void Outbox::patch(const client::Gvr& gvr, const std::string& ns, const std::string& name, client::PatchType type,
                          const json::Value& body, Then then, const std::string& subresource) {
  client::Call patch{.verb = "patch", .gvr = gvr, .ns = ns, .name = name, .subresource = subresource, .body = json::serialize(body)};
  patch.content_type = type == client::PatchType::kMerge ? "application/merge-patch+json" : "application/strategic-merge-patch+json";
  call(std::move(patch), std::move(then));
}

inline void Outbox::remove(const client::Gvr& gvr, const std::string& ns, const std::string& name, const std::string& uid, Then then) {
  const json::Value options{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}};
  call({.verb = "delete", .gvr = gvr, .ns = ns, .name = name, .body = json::serialize(options)}, std::move(then));
}

inline void Outbox::report(const std::string& profile, client::ObjectReference regarding, std::string_view type, std::string_view reason,
                           std::string message, std::string_view action, const client::ObjectReference* related) {
  Report out{profile, std::move(regarding), std::string(type), std::string(reason), std::move(message), std::string(action), {}};
  if (related != nullptr) out.related = *related;
  sink_(std::move(out));
}

inline Ask Outbox::at(TimePoint when, std::function<void()> then) {
  const Ask id = expect([then = std::move(then)](Answer&) { then(); });
  sink_(WakeAt{id, when});
  return id;
}

inline void Outbox::cancel(Ask id) {
  if (open_.erase(id) != 0) sink_(CancelWake{id});
}

inline void Outbox::later(std::function<void()> then) {
  sink_(Later{expect([then = std::move(then)](Answer&) { then(); })});
}

}  // namespace berth::scheduler
