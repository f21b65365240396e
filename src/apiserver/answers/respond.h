// Every answer of the API server leaves through here.
#pragma once
#include <atomic>
#include <string>
#include <string_view>

#include "apiserver/answers/request_metrics.h"
#include "apiserver/representation/versions.h"

namespace berth::apiserver {

struct Body;

/// What a write came to.
struct WriteOutcome {
  ObjectPtr object;      ///< As stored now, or as it was when it is gone; null on a dry run.
  json::Value document;  ///< On a dry run: what would be stored, in the request's version.
  bool created = false;
  bool gone = false;       ///< The deletion took it away at once.
  std::string shown = {};  ///< The answer in JSON, where it is at hand already and not what is stored.
};

/// Answers requests: headers, the form asked for, what is counted of them. Thread-safe.
class Responder {
 public:
  /// `flow_control`: null when single-threaded. All outlive this.
  Responder(Ground& ground, Versions& versions, flow::Controller* flow_control);

  /// A request has come; account() or an answer ends it.
  void begin(const Request& request) { metrics_.began(request); }
  /// It is answered, by whomever, with this code: it is counted, and gives its seats back. Once, further calls do nothing.
  void account(Request& request, int code);
  [[nodiscard]] net::Headers headers_for(const Request& request, std::string_view content_type) const;

  void status(Request& request, const model::ApiStatus& status);
  /// 429: come back later (apiserver/pkg/server/filters/priority-and-fairness.go).
  void busy(Request& request, int retry_after_seconds = 1);
  void document(Request& request, int code, const json::Value& what);
  void text(Request& request, int code, std::string content_type, std::string body);
  void body(Request& request, int code, Body what);
  /// An object in the request's version, in the form asked for (object, Table, PartialObjectMetadata).
  void object(Request& request, int code, const ObjectPtr& shown);
  /// The same after a conversion, where one is needed.
  void converted(const RequestPtr& request, int code, const ObjectPtr& stored);
  /// The answer to a write: on the caller's thread, the writer's, only where it takes no more than copying bytes.
  void written(const RequestPtr& request, int code, WriteOutcome outcome);
  /// Status Success, with what it was about.
  void success(Request& request, int code, std::string_view name, std::string_view uid);

 private:
  [[nodiscard]] std::string next_audit_id() const;

  Ground& ground_;
  Versions& versions_;
  flow::Controller* flow_control_;
  RequestMetrics metrics_;
  std::uint64_t first_audit_id_ = 0;
  mutable std::atomic<std::uint64_t> answers_ = 0;
};

}  // namespace berth::apiserver
