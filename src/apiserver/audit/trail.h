// One request on its way into the audit log: what is known of it grows, and its answer is seen as it leaves (apiserver/pkg/endpoints/
// filters/audit.go).
#pragma once
#include <map>
#include <memory>
#include <string>

#include "apiserver/audit/log.h"
#include "apiserver/auth/interfaces.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "net/http.h"

namespace berth::apiserver::audit {

/// What a request asks for, for whom, since when.
struct TrailStart {
  const net::HttpRequest& http;
  const UserInfo* user = nullptr;  ///< Who was let in; null: nobody, his credentials were bad.
  const Attributes& attributes;
  TimePoint received;
  bool is_long_running = false;
};

/// Thread-safe. Lives as long as the request or its answer.
class Trail {
 public:
  /// Null where the policy wants nothing of it. Writes the stage RequestReceived.
  // Not looked into: nobody else has it yet.
  static std::shared_ptr<Trail> begin(Log& log, const Clock& clock, const TrailStart& start) BERTH_NO_THREAD_SAFETY_ANALYSIS;
  /// What goes on writes through it; null stays null.
  static std::shared_ptr<net::ResponseWriter> watch_answer(const std::shared_ptr<Trail>& trail,
                                                           std::shared_ptr<net::ResponseWriter> writer);

  void set_impersonated(const UserInfo& user);
  /// Of an object whose name stands in the body alone.
  void set_name(std::string_view name);
  void annotate(std::string key, std::string value);
  [[nodiscard]] const std::string& id() const { return id_; }

 private:
  friend class AnswerWatcher;
  Trail(Log& log, const Clock& clock, Decision decision) : log_(log), clock_(clock), decision_(std::move(decision)) {}
  void emit(Stage stage, int code, std::string content_type = {}, std::vector<Bytes> body = {});
  void answered(int code, std::string content_type, std::vector<Bytes> body);
  void started(int code);

  Log& log_;
  const Clock& clock_;
  const Decision decision_;
  std::string id_;
  bool is_long_running_ = false, is_anonymous_failure_ = false;
  Mutex mutex_;
  json::Object fields_ BERTH_GUARDED_BY(mutex_);
  std::string request_type_ BERTH_GUARDED_BY(mutex_), request_body_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, std::string> annotations_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::apiserver::audit
