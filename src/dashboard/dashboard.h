// The dashboard: a page in the browser and what it asks, on this machine's loopback only (SPEC I5; docs/dashboard.md).
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "client/transport.h"
#include "model/api_status.h"

namespace berth::dashboard {

/// Why a question has no answer, as the page is told.
struct Failure {
  int status = 502;  ///< HTTP's.
  std::string message;
  /// Our own words: 404 for what is not there, 422 for a wrong question, else 502.
  Failure(const Error& error);
  /// The cluster's words, unchanged; its status where it refused (401, 403, 404, …), and 502 where it failed.
  explicit Failure(const model::ApiStatus& refusal);
};
using Answer = Expected<json::Value, Failure>;

/// What others answer. Called on a thread of the dashboard, one at a time; may take seconds. What is null is told to the page as missing.
struct Answers {
  std::function<Answer(const std::string& ns, const std::string& pod)> explain;
  std::function<Answer(const json::Value& question)> what_if;  ///< Question and answer of whatif/whatif.h.
  std::function<Answer(const std::string& node)> node;         ///< {"text"}: why the autoscaler keeps the node.
  std::function<std::string()> metrics;                        ///< The scheduler's, in Prometheus' text form.
};

struct Options {
  std::uint16_t port = 0;                        ///< 0: any free one.
  std::shared_ptr<client::Transport> transport;  ///< To the cluster, as the user. Null: recordings only.
  std::string ns;                                ///< Pods of this namespace only; empty: of all.
  std::string own_ns;                            ///< Whose pods are shown where those of all may not be listed.
  std::string recording_file;                    ///< Shown first; or empty.
  bool allows_changes = false;
  json::Object about;  ///< For the page: "context", "server", "user".
  Answers answers;
  std::function<void(const std::string& url)> on_new_url;  ///< The address for a further browser, after one was used. May be null.
};

/// Serves until it is destroyed. Owns its threads.
class Dashboard {
 public:
  /// Errors: the port is taken; the page was not built.
  static Result<std::unique_ptr<Dashboard>> start(Options options);
  virtual ~Dashboard() = default;
  /// With the one-time token.
  [[nodiscard]] virtual std::string url() const = 0;
};

/// Whether this build has the page, and in words what to do where it has not.
bool has_page();
extern const char* const kNoPage;

}  // namespace berth::dashboard
