// Group versions that other API servers serve (kube-aggregator): who they are, whether they answer, and how requests reach them.
//
//   APIService ─> locate: Service, EndpointSlices ─> check: GET /apis/GROUP/VERSION ─> condition Available
//                                                         └─> resources and OpenAPI, merged into this server's own until it goes
//   request for one of its paths ─> authorised here ─> on by the front proxy's certificate, the user in headers
#pragma once
#include <map>
#include <memory>
#include <string>

#include "apiserver/aggregation/registrations.h"
#include "apiserver/relays/relay.h"
#include "base/gate.h"
#include "base/mutex.h"

namespace berth::apiserver::aggregation {

/// An APIService's condition Available.
struct Condition {
  std::string status, reason, message;
  friend bool operator==(const Condition&, const Condition&) = default;
};

/// What an aggregated server said of itself last.
struct Known {
  json::Array resources;    ///< Of its APIResourceList.
  bool is_current = false;  ///< It answered the last time.
  Bytes openapi_v2;         ///< Or null.
  std::string v3_url;       ///< serverRelativeURL of its OpenAPI v3 document; empty: it has none.
};

/// Thread-safe but for look(), which runs on the server's loop.
class Aggregator {
 public:
  /// All outlive this.
  Aggregator(Ground& ground, Responder& respond, Relays& relays);
  ~Aggregator();
  /// Follows the registrations from now on, and looks at them once. Before any request.
  void start();
  /// Nothing is asked any more. Idempotent.
  void stop();

  /// Answers a request whose group version is another server's; false: it is not, and was not touched.
  bool serve(const RequestPtr& request);
  /// What serve asks of resource requests that are to be admitted there, not here.
  [[nodiscard]] bool is_remote(std::string_view group, std::string_view version) const;

  // discovery.cpp: documents of this server's own kinds, with the others' added.
  void add_groups(json::Value& group_list) const;
  void add_versions(std::string_view group, std::optional<json::Value>& group_document) const;
  void add_aggregated(json::Value& list) const;

  // openapi.cpp
  Bytes openapi_v2(const Bytes& own);
  Bytes openapi_v2_protobuf(const Bytes& own, const std::function<Bytes()>& own_encoded);
  Bytes openapi_v3_index(const Bytes& own) const;

  /// Looks at every APIService now: what is missing of the server's own, which servers answer.
  void look();

 private:
  struct Check {
    bool is_under_way = false;
    TimePoint next{}, next_openapi{};
    std::string where;  ///< What was found last: another one is asked at once.
  };
  struct Located {
    FarEnd far;          ///< One of those that answer for the Service, in turn.
    std::string places;  ///< All of them, and how they are known: asked anew when this changes.
  };

  // availability.cpp
  void look_later();
  void look_at(const Registration& registration);
  void ask(const Registration& registration, const FarEnd& far);
  void take_answer(const Registration& registration, const FarEnd& far, net::HttpResponse response);
  void ask_openapi(const std::string& name, const FarEnd& far, const std::string& group, const std::string& version);
  void set_condition(const Registration& registration, const Condition& condition);
  void restore_own();
  /// The error is the condition that says why there is nobody to ask.
  [[nodiscard]] Expected<Located, Condition> locate(const Registration& registration) const;
  void send(const FarEnd& far, std::string path, std::function<void(net::HttpResponse)> done);

  [[nodiscard]] std::map<std::string, Known> known() const;
  void forget_gone(const Table& table);

  Ground& ground_;
  Responder& respond_;
  Relays& relays_;
  std::unique_ptr<Registrations> registrations_;
  std::atomic<bool> is_looking_{false};
  TimerId timer_ = TimerId::kNone;
  std::map<std::string, Check> checks_;  ///< Behind the gate.
  /// Callbacks of requests under way hold it; null within: the aggregator is gone.
  struct Self {
    Gate gate;
    Aggregator* aggregator = nullptr;
  };
  std::shared_ptr<Self> self_;

  mutable Mutex mutex_;
  std::map<std::string, Known> known_ BERTH_GUARDED_BY(mutex_);  ///< By the APIService's name.
  std::uint64_t generation_ BERTH_GUARDED_BY(mutex_) = 0;        ///< Of known_.
  struct Merged {
    std::uint64_t generation = 0;
    Bytes own, text, protobuf;
  };
  Mutex merged_mutex_;
  Merged merged_ BERTH_GUARDED_BY(merged_mutex_);
};

/// The APIService of a group version that this server serves itself.
json::Value own_api_service(const std::string& group, const std::string& version, const std::string& now);
/// The headers that tell an aggregated server for whom is asked, in place of any that came along.
void set_user_headers(net::HttpRequest& request, const UserInfo& user);

}  // namespace berth::apiserver::aggregation
