// One request on its way through the pipeline.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/audit/trail.h"
#include "apiserver/auth/interfaces.h"
#include "apiserver/flow/controller.h"
#include "apiserver/kinds/kind_table.h"
#include "apiserver/request/negotiate.h"
#include "apiserver/request/request_info.h"
#include "model/empty_values.h"
#include "model/kinds.h"
#include "net/http.h"

namespace berth::apiserver {

enum class FieldValidation { kIgnore, kWarn, kStrict };

/// Owned by whoever works on it at the moment (shared between continuations, never used by two threads at once).
struct Request {
  net::HttpRequest http;
  std::shared_ptr<net::ResponseWriter> writer;
  RequestInfo info;
  Query query;
  UserInfo user;
  KindTablePtr kinds;                     ///< What is served as this request sees it; keeps `kind` alive.
  const model::KindInfo* kind = nullptr;  ///< Of the resource in the path; null for non-resource requests.
  const ServedKind* custom = nullptr;     ///< Of a custom kind.
  Negotiated accept;
  TimePoint received{};
  std::chrono::steady_clock::time_point started{};

  bool dry_run = false;
  FieldValidation field_validation = FieldValidation::kWarn;
  std::string field_manager;  ///< The parameter, or what the user agent says.
  bool field_manager_given = false;
  bool force = false;                     ///< Apply takes fields over.
  std::vector<std::string> warnings;      ///< Become Warning headers.
  std::optional<json::Value> read_ahead;  ///< What its body of protobuf says, for who decodes it next.
  model::EmptyValues empty;               ///< Of its object.
  std::shared_ptr<audit::Trail> audit;    ///< Null: nothing is written of it.
  bool answered = false;
  flow::Classified where;  ///< Nowhere, where no flow control is.
  flow::Seats seats;       ///< Until it is answered; a watch's until it has said what was there.
};
using RequestPtr = std::shared_ptr<Request>;

/// What the request asks for, as authorizers are asked of it; of a resource also which of its objects.
Attributes attributes_of(const Request& request);
/// The same object by another verb: whether somebody may also read what he patches, or create what he would replace.
Attributes attributes_of(const Request& request, std::string verb);

}  // namespace berth::apiserver
