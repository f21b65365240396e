#include "cli/roles/placement_pages.h"

#include "cli/planning/placement_question.h"

namespace berth::cli {
namespace {

void respond(net::ResponseWriter& writer, const model::ApiResult<std::string>& answer, bool is_text) {
  net::HttpResponse response;
  response.status = answer ? 200 : answer.error().code;
  response.headers.add("Content-Type", answer && is_text ? "text/plain; charset=utf-8" : "application/json");
  response.headers.add("Cache-Control", "no-cache, private");
  response.body = answer ? *answer : json::serialize(answer.error().to_json());
  writer.respond(std::move(response));
}

model::ApiStatus refusal(int code, std::string reason, std::string message) {
  model::ApiStatus out;
  out.code = code;
  out.reason = std::move(reason);
  out.message = std::move(message);
  return out;
}

}  // namespace

void PlacementPages::set(Answer answer) {
  const MutexLock lock(mutex_);
  answer_ = std::move(answer);
}

void PlacementPages::handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  if (request.path != kQuestionPath) return respond(*writer, std::unexpected(refusal(404, "NotFound", "404 page not found")), false);
  if (request.method != "POST")
    return respond(*writer, std::unexpected(refusal(405, "MethodNotAllowed", "a question is sent by POST: {\"pod\": {…}}")), false);
  auto question = PlacementQuestion::parse(request.body);
  if (!question) return respond(*writer, std::unexpected(model::bad_request(question.error().message)), false);
  const bool is_text = question->output == "text" || question->output == "wide";
  const MutexLock lock(mutex_);
  if (!answer_)
    return respond(*writer, std::unexpected(refusal(503, "ServiceUnavailable", "no scheduler runs in this server's process")), false);
  answer_(std::move(*question), [writer, is_text](const model::ApiResult<std::string>& answer) { respond(*writer, answer, is_text); });
}

}  // namespace berth::cli
