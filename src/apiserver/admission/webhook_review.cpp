#include "apiserver/admission/webhook_review.h"

#include "apiserver/auth/reviews.h"
#include "apiserver/kinds/kind_table.h"
#include "base/base64.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

json::Object gvk(std::string_view group, std::string_view version, std::string_view kind) {
  return json::Object{{"group", group}, {"version", version}, {"kind", kind}};
}
json::Object gvr(const model::KindInfo& kind) {
  return json::Object{{"group", kind.group}, {"version", kind.version}, {"resource", kind.plural}};
}

/// The webhook with no more time than is left of the request's, in whole seconds and at least one; nothing where its own is less.
std::optional<Webhook> hurried(const Webhook& webhook, const AdmissionRequest& request) {
  if (request.caller.deadline == std::chrono::steady_clock::time_point::max()) return std::nullopt;
  const auto left = std::chrono::ceil<std::chrono::seconds>(request.caller.deadline - std::chrono::steady_clock::now());
  const auto left_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 1, 30)) * 1000;
  if (left_ms >= webhook.timeout_ms) return std::nullopt;
  auto out = webhook;
  out.timeout_ms = left_ms;
  return out;
}

}  // namespace

json::Value in_form(const AdmissionRequest& request, const model::KindInfo& form, const json::Value& document) {
  if (const auto made = request.notes.forms.find(&form); made != request.notes.forms.end())
    return &document == &request.old_object ? made->second.old_object : made->second.object;
  auto out = document;
  if (&form != request.kind && out.is_object() && !request.body) model::convert(*request.kind, form, out);
  return out;
}

json::Object admission_request_fields(const AdmissionRequest& request, const model::KindInfo& form) {
  json::Object kind = gvk(form.group, form.version, form.kind);
  json::Object request_kind = gvk(request.kind->group, request.kind->version, request.kind->kind);
  if (request.body) {
    const auto [group, version] = split_version(request.body->api_version);
    kind = request_kind = gvk(group, version, request.body->kind);
  }
  json::Object body{{"kind", std::move(kind)},
                    {"resource", gvr(form)},
                    {"requestKind", std::move(request_kind)},
                    {"requestResource", gvr(*request.kind)},
                    {"operation", to_string(request.operation)},
                    {"userInfo", auth::user_to_json(*request.user)},
                    {"dryRun", request.dry_run},
                    {"options", request.options}};
  if (!request.name.empty()) body["name"] = request.name;
  if (!request.ns.empty()) body["namespace"] = request.ns;
  if (!request.subresource.empty()) body["subResource"] = body["requestSubResource"] = request.subresource;
  return body;
}

json::Value make_admission_review(const AdmissionRequest& request, const model::KindInfo& form, const std::string& uid, bool v1) {
  auto body = admission_request_fields(request, form);
  body["uid"] = uid;
  body["object"] = in_form(request, form, request.object);
  body["oldObject"] = in_form(request, form, request.old_object);
  return json::Object{
      {"kind", "AdmissionReview"}, {"apiVersion", v1 ? "admission.k8s.io/v1" : "admission.k8s.io/v1beta1"}, {"request", std::move(body)}};
}

WebhookAnswer read_admission_review(const Webhook& webhook, const std::string& uid, int status, std::string_view body) {
  WebhookAnswer answer;
  const auto failed = [&](std::string why) {
    answer.failure = std::move(why);
    return answer;
  };
  if (status != 200)
    return failed(
        fmt::format("an error on the server (\"{}\") has prevented the request from succeeding (HTTP {})", body.substr(0, 256), status));
  const auto review = json::parse(body);
  if (!review || json::get_string(*review, {"kind"}) != "AdmissionReview")
    return failed("received invalid webhook response: expected an AdmissionReview");
  const auto* response = json::find(*review, "response");
  if (response == nullptr) return failed("received invalid webhook response: webhook response was absent");
  if (webhook.is_v1 && json::get_string(*response, {"uid"}) != uid)
    return failed(fmt::format("received invalid webhook response: expected response.uid=\"{}\", got \"{}\"", uid,
                              json::get_string(*response, {"uid"})));
  for (const auto& warning : json::get_array(*response, {"warnings"}))
    if (warning.is_string()) answer.warnings.emplace_back(json::as_view(warning));
  answer.allowed = json::get_bool(*response, {"allowed"});
  if (!answer.allowed) {
    auto& refusal = answer.refusal;
    refusal.code = static_cast<int>(json::get_int(*response, {"status", "code"}));
    if (refusal.code < 400 || refusal.code > 599) refusal.code = 400;
    refusal.reason = json::get_string(*response, {"status", "reason"});
    const auto message = json::get_string(*response, {"status", "message"});
    const auto denied = fmt::format("admission webhook \"{}\" denied the request", webhook.name);
    refusal.message = !message.empty()          ? fmt::format("{}: {}", denied, message)
                      : !refusal.reason.empty() ? fmt::format("{}: {}", denied, refusal.reason)
                                                : denied + " without explanation";
    return answer;
  }
  const auto encoded = json::get_string(*response, {"patch"});
  if (encoded.empty()) return answer;
  if (const auto type = json::get_string(*response, {"patchType"}); type != "JSONPatch")
    return failed(fmt::format(
        "received invalid webhook response: webhook returned response.patch but response.patchType \"{}\" is not JSONPatch", type));
  const auto text = base64_decode(encoded);
  auto patch = text ? json::parse(*text) : Result<json::Value>(invalid("not base64"));
  if (!patch) return failed("received invalid webhook response: response.patch is not a JSON patch in base64");
  answer.patch = std::move(*patch);
  return answer;
}

void call_webhook(WebhookClient& client, const Webhook& asked, const AdmissionRequest& request, const model::KindInfo& form,
                  std::string uid, std::function<void(WebhookAnswer)> done) {
  const auto less = hurried(asked, request);
  const auto& webhook = less ? *less : asked;
  auto review = json::serialize(make_admission_review(request, form, uid, webhook.is_v1));
  auto answered = [webhook, uid = std::move(uid), done = std::move(done)](PostAnswer posted) {
    if (posted.status != 0) return done(read_admission_review(webhook, uid, posted.status, posted.body));
    WebhookAnswer answer;
    answer.failure =
        posted.failure.starts_with("Post ") ? fmt::format("failed to call webhook: {}", posted.failure) : std::move(posted.failure);
    done(std::move(answer));
  };
  client.post(webhook, std::move(review), "kube-apiserver-admission", std::move(answered), request.caller.traceparent);
}

}  // namespace berth::apiserver
