// The one way in which components talk to an API server (DESIGN: "those meet only through client and placement").
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/json.h"
#include "client/transport.h"
#include "model/api_status.h"
#include "model/kinds.h"

namespace berth::client {

using model::ApiResult;
using model::ApiStatus;
using model::Gvr;

/// kApply is server-side apply: forced, and managed in the name of the user agent up to its slash.
enum class PatchType { kJson, kMerge, kStrategicMerge, kApply };
enum class Propagation { kDefault, kBackground, kForeground, kOrphan };

struct DeleteOptions {
  std::optional<std::int64_t> grace_period_seconds;
  Propagation propagation = Propagation::kDefault;
  std::string precondition_uid, precondition_resource_version;
  bool dry_run = false;
};

struct ListOptions {
  std::string label_selector, field_selector;
  std::string resource_version, continue_token;
  std::int64_t limit = 0;
};

struct ListPage {
  std::vector<json::Value> items;
  std::string resource_version, continue_token;
};

/// How much of a successful answer the caller reads: large answers that nobody looks at are not worth taking apart.
enum class Answer {
  kDocument,  ///< All of it.
  kIdentity,  ///< Only metadata.name, namespace, uid and resourceVersion.
  kNone       ///< That it succeeded; the value is null.
};

/// A call in full; the named verbs below are short forms of it.
struct Call {
  std::string verb;  ///< create get list update patch delete deletecollection
  Gvr gvr;
  std::string ns, name, subresource;
  std::string query;  ///< Raw extra query, without '?'.
  std::string body;   ///< Serialised; empty for none.
  std::string content_type = "application/json";
  Answer answer = Answer::kDocument;
  bool comes_again = true;  ///< When the server asks for it; otherwise that is the answer (ApiStatus::retry_after_seconds).
};

/// Asynchronous; thread-safe. With a loop, results are posted to it (what components use); without, they come on the transport's thread.
class Client {
 public:
  using Done = std::function<void(ApiResult<json::Value>)>;

  Client(std::shared_ptr<Transport> transport, EventLoop* loop, std::string user_agent);

  void call(Call call, Done done);
  void get(const Gvr& gvr, const std::string& ns, const std::string& name, Done done);
  void create(const Gvr& gvr, const std::string& ns, const json::Value& body, Done done, Answer answer = Answer::kDocument,
              bool comes_again = true);
  void update(const Gvr& gvr, const std::string& ns, const std::string& name, const json::Value& body, Done done,
              const std::string& subresource = "", Answer answer = Answer::kDocument);
  void patch(const Gvr& gvr, const std::string& ns, const std::string& name, PatchType type, const json::Value& body, Done done,
             const std::string& subresource = "", Answer answer = Answer::kDocument);
  void remove(const Gvr& gvr, const std::string& ns, const std::string& name, const DeleteOptions& options, Done done);
  void list(const Gvr& gvr, const std::string& ns, const ListOptions& options, std::function<void(ApiResult<ListPage>)> done);

  /// The same client without a loop, for blocking use from a thread that is not the transport's (command line, tests). With a synchronous
  /// in-process transport these never block.
  ApiResult<json::Value> call_and_wait(Call call);
  ApiResult<json::Value> get_and_wait(const Gvr& gvr, const std::string& ns, const std::string& name);
  ApiResult<json::Value> create_and_wait(const Gvr& gvr, const std::string& ns, const json::Value& body);
  ApiResult<ListPage> list_and_wait(const Gvr& gvr, const std::string& ns, const ListOptions& options = {});

  [[nodiscard]] const std::shared_ptr<Transport>& transport() const { return transport_; }
  [[nodiscard]] EventLoop* loop() const { return loop_; }
  [[nodiscard]] const std::string& user_agent() const { return user_agent_; }

 private:
  std::shared_ptr<Transport> transport_;
  EventLoop* loop_;
  std::string user_agent_;
};

/// "/apis/apps/v1/namespaces/default/deployments/web/status"
std::string resource_path(const Gvr& gvr, std::string_view ns, std::string_view name = {}, std::string_view subresource = {});

}  // namespace berth::client
