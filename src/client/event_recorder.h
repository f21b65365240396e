// Events about objects, written asynchronously and correlated as client-go does, so that a thing that repeats does not flood the server.
//
// Core shape (tools/record, what controllers and kubelets use): the same event again raises its count; ten that differ only in their
// message within ten minutes become one "(combined from similar events): …"; a source may write 25 events about an object, then one every
// five minutes. events.k8s.io shape (tools/events, what kube-scheduler uses): repeats of one kind become a series, written at its second
// event and then at its end or every half hour.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "client/client.h"
#include "client/object.h"

namespace berth::client {

/// corev1.ObjectReference. Empty fields are left out.
struct ObjectReference {
  std::string api_version, kind, ns, name, uid, resource_version, field_path;
};
/// Reads kind and apiVersion out of the object's bytes.
ObjectReference reference_to(const Object& object);
ObjectReference reference_to(const json::Value& document);

struct EventRecorderOptions {
  enum class Shape { kCore, kEvents };
  Shape shape = Shape::kCore;
  std::string component;            ///< "default-scheduler", "kubelet", "deployment-controller"
  std::string host;                 ///< The node, or empty. kEvents: reportingInstance is COMPONENT-HOST.
  std::size_t max_queued = 10'000;  ///< Events beyond are dropped, and counted.
  int max_in_flight = 32;
  std::uint64_t seed = 0;  ///< Of the retries' jitter.
};

/// Lives on its client's loop. Events about one object are written in order. A server that is away is tried twelve times, ten seconds
/// apart; what it refuses is dropped.
class EventRecorder {
 public:
  EventRecorder(Client& client, EventRecorderOptions options);
  /// Drops what is queued.
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  /// `type` is "Normal" or "Warning". `action` and `related` (may be null) are for the events.k8s.io shape. Its note is cut to 1024 bytes.
  void event(const ObjectReference& regarding, std::string_view type, std::string_view reason, std::string_view message,
             std::string_view action = {}, const ObjectReference* related = nullptr);
  /// Events not yet written or given up.
  [[nodiscard]] std::size_t pending() const;
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::client
