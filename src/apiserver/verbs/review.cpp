// Reviews: questions that are answered and not stored.
#include "apiserver/verbs/review.h"

#include "apiserver/answers/respond.h"
#include "apiserver/auth/reviews.h"
#include "apiserver/request/request_body.h"

namespace berth::apiserver {

namespace {

void answer_now(const Ground& ground, Responder& respond, const RequestPtr& request, json::Value body) {
  const auto& plural = request->kind->plural;
  auto& authorizer = *ground.options.authorizer;
  model::ApiResult<json::Value> answer = std::unexpected(model::method_not_supported(request->kind->group, plural, "create"));
  if (plural == "tokenreviews") answer = auth::review_token(*ground.options.authenticator, std::move(body));
  if (plural == "subjectaccessreviews") answer = auth::review_subject_access(authorizer, std::move(body));
  if (plural == "localsubjectaccessreviews") answer = auth::review_local_subject_access(authorizer, std::move(body), request->info.ns);
  if (plural == "selfsubjectaccessreviews") answer = auth::review_self_subject_access(authorizer, request->user, std::move(body));
  if (plural == "selfsubjectrulesreviews") answer = auth::review_self_subject_rules(authorizer, request->user, std::move(body));
  if (plural == "selfsubjectreviews") answer = auth::review_self_subject(request->user, std::move(body));
  if (plural == "selfsubjectreviews" && answer) json::set(*answer, {"metadata", "creationTimestamp"}, json::Value(ground.now_text()));
  if (!answer) return respond.status(*request, answer.error());
  respond.document(*request, 201, *answer);
}

}  // namespace

void answer_review(const Ground& ground, Responder& respond, const RequestPtr& request) {
  auto body = decode_object_body(*request);
  if (!body) return respond.status(*request, body.error());
  const auto& options = ground.options;
  if (ground.askers != nullptr && !Askers::is_one()) {
    if (const auto whom =
            auth::review_waits_for(*options.authenticator, *options.authorizer, request->user, request->kind->plural, *body)) {
      const bool is_taken = ground.askers->post(
          {*whom, request->user.name, [&ground, &respond, request, body = std::move(*body)] { answer_now(ground, respond, request, body); },
           [&respond, request] { respond.busy(*request); }});
      if (!is_taken) respond.busy(*request);
      return;
    }
  }
  answer_now(ground, respond, request, std::move(*body));
}

}  // namespace berth::apiserver
