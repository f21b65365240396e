#include "apiserver/webhook/conversion.h"

#include "model/validation/validation.h"

namespace berth::apiserver {
namespace {

using json::Value;

constexpr int kConversionTimeoutMs = 30'000;
/// Of one review: the answer is as large, and what is read of an answer is limited.
constexpr std::size_t kMostObjects = 500, kMostBytes = 2 * 1024 * 1024;

std::string_view version_of(const Value& object) { return json::get_string(object, {"apiVersion"}); }

/// As Go prints a GroupVersionKind.
std::string gvk_text(const Value& object) {
  const auto version = version_of(object);
  return fmt::format("{}{}, Kind={}", version.find('/') == std::string_view::npos ? "/" : "", version, json::get_string(object, {"kind"}));
}

/// Kubernetes' type names of JSON values in Go.
std::string_view go_type(const Value& value) {
  return value.is_string()   ? "string"
         : value.is_bool()   ? "bool"
         : value.is_int64()  ? "int64"
         : value.is_array()  ? "[]interface {}"
         : value.is_null()   ? "<nil>"
         : value.is_object() ? "map[string]interface {}"
                             : "float64";
}

/// The identity may not change.
std::string check_identity(const Value& in, const Value& out) {
  for (const auto& [word, field] : {std::pair("name", "name"), std::pair("namespace", "namespace"), std::pair("UID", "uid")}) {
    const auto before = json::get_string(in, {"metadata", field}), after = json::get_string(out, {"metadata", field});
    if (before != after) return fmt::format("must have the same {}: {} != {}", word, before, after);
  }
  return {};
}

/// Everything in metadata but labels and annotations is the original's.
std::string restore_metadata(const Value& original, Value& converted) {
  const auto* given = json::find(converted, "metadata");
  if (given == nullptr) return "missing metadata in converted object";
  if (!given->is_object()) return fmt::format("invalid metadata of type {} in converted object", go_type(*given));
  const auto response = given->get_object();
  json::Object metadata = json::get_object(original, {"metadata"});
  for (const std::string_view field : {"labels", "annotations"}) {
    const auto* value = response.if_contains(field);
    if (value == nullptr || value->is_null()) {
      metadata.erase(field);
      continue;
    }
    if (!value->is_object()) return fmt::format("invalid metadata.{} of type {} in converted object", field, go_type(*value));
    for (const auto& [key, text] : value->get_object())
      if (!text.is_string())
        return fmt::format("metadata.{}[{}] must be a string, but is {} in converted object", field, std::string_view(key), go_type(text));
    const model::validation::Path root("metadata");
    model::validation::Errors errors;
    field == "labels" ? model::validation::labels(*value, root / field, errors)
                      : model::validation::annotations(*value, root / field, errors);
    if (!errors.empty()) return errors.take().front().render();
    if (value->get_object().empty() && json::find(original, {"metadata", field}) == nullptr) continue;
    metadata[field] = *value;
  }
  converted.get_object()["metadata"] = std::move(metadata);
  return {};
}

std::string status_text(int status, std::string_view body) {
  if (status == 404) return "the server could not find the requested resource";
  return fmt::format("an error on the server ({}) has prevented the request from succeeding", json::serialize(Value(body.substr(0, 2048))));
}

model::ApiStatus failed(const Value& object, std::string_view what) {
  model::ApiStatus status;
  status.code = 500;
  status.message = fmt::format("conversion webhook for {} {}", gvk_text(object), what);
  return status;
}

}  // namespace

namespace {

/// Why an answer is no ConversionReview of v1; empty when it is one.
std::string why_no_review(const Value& review) {
  const auto kind = json::get_string(review, {"kind"});
  const auto version = version_of(review);
  if (kind == "ConversionReview" && version == "apiextensions.k8s.io/v1") return {};
  if (kind == "ConversionReview" && version == "apiextensions.k8s.io/v1beta1")
    return "converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion";
  return fmt::format(R"(no kind "{}" is registered for version "{}" in scheme "k8s.io/apiserver/pkg/util/webhook/client.go:71")", kind,
                     version);
}

}  // namespace

Expected<std::vector<Value>, std::string> read_conversion_review(const std::vector<Value>& sent, const Value& review,
                                                                 std::string_view review_version, std::string_view uid,
                                                                 std::string_view api_version) {
  const auto refuse = [](std::string why) { return std::unexpected("failed: " + std::move(why)); };
  const bool is_v1 = review_version == "v1";
  if (is_v1)
    if (auto why = why_no_review(review); !why.empty()) return refuse(std::move(why));
  const auto* response = json::find(review, "response");
  if (response == nullptr || !response->is_object()) return refuse("no response provided");
  if (const auto got = json::get_string(*response, {"uid"}); is_v1 && got != uid)
    return refuse(fmt::format("expected response.uid=\"{}\", got \"{}\"", uid, got));
  if (const auto status = json::get_string(*response, {"result", "status"}); status != "Success") {
    const auto message = json::get_string(*response, {"result", "message"});
    return refuse(message.empty() ? fmt::format("response.result.status was '{}', not 'Success'", status) : std::string(message));
  }
  const auto& given = json::get_array(*response, {"convertedObjects"});
  if (given.size() != sent.size()) return std::unexpected(fmt::format("returned {} objects, expected {}", given.size(), sent.size()));
  std::vector<Value> out(given.begin(), given.end());
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto& converted = out[i];
    if (!converted.is_object() || json::get_string(converted, {"kind"}).empty())
      return refuse(fmt::format("Object 'Kind' is missing in '{}'", json::serialize(converted)));
    if (version_of(converted) != api_version)
      return std::unexpected(fmt::format("returned invalid object at index {}: invalid groupVersion (expected {}, received {})", i,
                                         api_version, version_of(converted)));
    if (const auto want = json::get_string(sent[i], {"kind"}), got = json::get_string(converted, {"kind"}); want != got)
      return std::unexpected(fmt::format("returned invalid object at index {}: invalid kind (expected {}, received {})", i, want, got));
    if (const auto why = check_identity(sent[i], converted); !why.empty()) return std::unexpected("returned invalid object: " + why);
    if (const auto why = restore_metadata(sent[i], converted); !why.empty()) return std::unexpected("returned invalid metadata: " + why);
  }
  return out;
}

/// A conversion under way, a part at a time.
struct Conversions::Batch {
  std::shared_ptr<const custom::Definition> definition;
  WebhookTarget webhook;
  std::string review_version, api_version;
  std::vector<Value> objects, converted;
  std::size_t next = 0;
  Done done;
};

Conversions::Conversions(ObjectCache& cache, std::function<std::string()> uid)
    : uid_(std::move(uid)), client_(cache, net::ClientConfig{}) {}

void Conversions::convert(std::shared_ptr<const custom::Definition> definition, std::string api_version, std::vector<Value> objects,
                          Done done) {
  if (objects.empty()) return done(std::move(objects));
  auto batch = std::make_shared<Batch>();
  const auto& conversion = *definition->conversion;
  for (const auto& version : conversion.review_versions)
    if (version == "v1" || version == "v1beta1") {
      batch->review_version = version;
      break;
    }
  if (batch->review_version.empty()) {
    model::ApiStatus status;
    status.message = "no supported conversion review versions";
    return done(std::unexpected(std::move(status)));
  }
  batch->webhook.timeout_ms = kConversionTimeoutMs;
  batch->webhook.read(conversion.client_config);
  batch->definition = std::move(definition);
  batch->api_version = std::move(api_version);
  batch->objects = std::move(objects);
  batch->done = std::move(done);
  next_part(batch);
}

void Conversions::next_part(const std::shared_ptr<Batch>& batch) {
  if (batch->next == batch->objects.size()) return batch->done(std::move(batch->converted));
  std::vector<Value> part;
  std::string objects;
  while (batch->next < batch->objects.size() && part.size() < kMostObjects && objects.size() < kMostBytes) {
    auto& object = batch->objects[batch->next++];
    if (!objects.empty()) objects += ',';
    json::serialize_to(objects, object);
    part.push_back(std::move(object));
  }
  const auto uid = uid_();
  auto review = fmt::format(
      R"({{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/{}","request":{{"uid":"{}","desiredAPIVersion":"{}","objects":[{}]}},)"
      R"("response":{{"uid":"","convertedObjects":null,"result":{{"metadata":{{}}}}}}}})",
      batch->review_version, uid, batch->api_version, objects);
  client_.post(batch->webhook, std::move(review), "kube-apiserver-admission",
               [this, batch, uid, part = std::move(part)](PostAnswer answer) {
                 const auto fail = [&](std::string_view why) { batch->done(std::unexpected(failed(part.front(), why))); };
                 if (answer.status == 0) return fail("failed: " + answer.failure);
                 if (answer.status < 200 || answer.status > 206) return fail("failed: " + status_text(answer.status, answer.body));
                 const auto parsed = json::parse(answer.body);
                 if (!parsed) return fail("failed: " + parsed.error().message);
                 auto converted = read_conversion_review(part, *parsed, batch->review_version, uid, batch->api_version);
                 if (!converted) return fail(converted.error());
                 std::ranges::move(*converted, std::back_inserter(batch->converted));
                 next_part(batch);
               });
}

}  // namespace berth::apiserver
