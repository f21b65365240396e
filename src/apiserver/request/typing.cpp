#include "apiserver/request/typing.h"

#include "apiserver/cache/object_codec.h"
#include "apiserver/request/element_limit.h"
#include "model/go_words.h"

namespace berth::apiserver {
namespace {

using model::bad_request;

/// Two kinds have words of their own for what is no field of theirs (pkg/apis/batch/v1, pkg/apis/resource/v1: conversion.go).
std::string unknown_label(const model::KindInfo& kind, std::string_view field) {
  if (kind.group == "batch" && kind.kind == "Job") return fmt::format("field label \"{}\" not supported for Job", field);
  if (kind.group == "resource.k8s.io" && kind.kind == "ResourceSlice")
    return fmt::format("field label not supported for {}, Kind={}: {}", kind.api_version(), kind.kind, field);
  return fmt::format("field label not supported: {}", field);
}

/// Another kind is read as well as this, and is wrong by its name; so is another version in a patch. Nothing: it does not say what it is.
std::optional<model::ApiStatus> other_type(const Request& request, const model::KindInfo& kind, const json::Value& document) {
  const std::string its_kind(json::get_string(document, {"kind"})), its_version(json::get_string(document, {"apiVersion"}));
  if (its_kind.empty() || its_version.empty()) return std::nullopt;
  const auto find = [&](std::string field, const std::string& given, const std::string& wanted) {
    return model::invalid_object(
        split_version(its_version).first, its_kind, json::get_string(document, {"metadata", "name"}),
        {{model::FieldError::Type::kInvalid, std::move(field), json::serialize(json::Value(given)), fmt::format("must be {}", wanted)}});
  };
  if (its_version == kind.api_version()) return find("kind", its_kind, kind.kind);
  if (request.info.verb == "patch") return find("apiVersion", its_version, kind.api_version());
  return bad_request(
      fmt::format("the API version in the data ({}) does not match the expected API version ({})", its_version, kind.api_version()));
}

constexpr std::string_view kUnknownFormat = "the body of the request was in an unknown format - accepted media types include: ";

/// Of custom kinds.
class Unstructured final : public Typing {
 public:
  [[nodiscard]] std::optional<model::ApiStatus> no_route() const override { return std::nullopt; }
  [[nodiscard]] model::ApiStatus no_subresource(const Request& request) const override {
    return model::not_found(request.kind->group, request.kind->plural, request.info.name);
  }
  /// Whoever finishes what is there may still change it when the definition goes, whatever discovery says then.
  [[nodiscard]] bool takes_verb(const Request& request) const override {
    return request.info.verb != "create" || !request.custom->is_terminating;
  }
  [[nodiscard]] std::optional<model::ApiStatus> refuse_verb(const Request& request) const override {
    const auto& info = request.info;
    const bool is_change = info.verb == "update" || info.verb == "patch";
    auto status = model::method_not_supported(info.group, info.resource, info.verb);
    if (!info.subresource.empty()) return status;
    if (request.kind->namespaced && info.ns.empty()) return std::nullopt;
    if (is_change && info.name.empty()) return bad_request("name must be provided");
    if (takes_verb(request)) return model::method_not_allowed();
    status.message = "create not allowed while custom resource definition is terminating";
    return status;
  }
  [[nodiscard]] model::ApiStatus refuse_selector(const model::KindInfo& kind, std::string_view field) const override {
    return bad_request(unknown_label(kind, field));
  }
  [[nodiscard]] std::string go_type(const model::KindInfo&) const override { return "unstructured.Unstructured"; }
  [[nodiscard]] bool is_routed() const override { return false; }

  [[nodiscard]] std::optional<model::ApiStatus> refuse_protobuf() const override {
    return model::unsupported_media_type(fmt::format("{}application/json, application/yaml", kUnknownFormat));
  }
  [[nodiscard]] std::optional<model::ApiStatus> refuse_many_elements(const json::Value& document) const override {
    return apiserver::refuse_many_elements(document, true);
  }
  [[nodiscard]] std::optional<BodyRefusal> check_type(const Request& request, const model::KindInfo& kind,
                                                      const json::Value& document) const override {
    if (request.info.verb == "create" || request.info.verb == "update") {
      if (json::get_string(document, {"kind"}).empty())
        return bad_request(fmt::format("the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{}' ({})",
                                       kind.kind, request.http.body, model::body_summary(request.http.body)));
      if (json::get_string(document, {"apiVersion"}).empty())
        return bad_request(fmt::format("the API version in the data () does not match the expected API version ({})", kind.api_version()));
    }
    auto wrong = Typing::check_type(request, kind, document);
    auto otherwise = wrong ? other_type(request, kind, document) : std::nullopt;
    if (!otherwise) return wrong;
    BodyRefusal refusal(std::move(*otherwise));
    refusal.is = BodyRefusal::Is::kOtherType;
    return refusal;
  }
  [[nodiscard]] bool tells_repeated_first() const override { return true; }
  /// What a custom kind's lists merge by is nowhere said (handlers/patch.go: no strategic merge for unstructured objects).
  [[nodiscard]] std::optional<model::ApiStatus> refuse_patch(std::string_view media_type) const override {
    if (media_type == "application/json-patch+json" || media_type == "application/merge-patch+json") return std::nullopt;
    return model::unsupported_media_type(
        fmt::format("{}application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml", kUnknownFormat));
  }

  [[nodiscard]] bool is_shown_whole() const override { return true; }
  [[nodiscard]] const ScaleTexts& scale_texts() const override {
    static constexpr ScaleTexts kTexts{"name", "Number of desired replicas", "Number of actual replicas", "date"};
    return kTexts;
  }
  [[nodiscard]] std::optional<model::ApiStatus> no_replicas(std::string_view path) const override {
    return model::internal_error(fmt::format("the spec replicas field \".{}\" does not exist", path));
  }

  [[nodiscard]] std::optional<model::ApiStatus> refuse_multiplied(const json::Value& object) const override { return refuse_large(object); }
  [[nodiscard]] bool is_stale(const model::KindInfo& stored, const StoredObject& object) const override {
    return !object.text()->starts_with(fmt::format(R"({{"apiVersion":"{}",)", stored.api_version()));
  }
  /// The codec of such scales cannot name what it failed to read.
  [[nodiscard]] model::ApiStatus unreadable_scale(model::ApiStatus) const override {
    return bad_request(
        R"(no kind is registered for the type v1.Scale in scheme "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781")");
  }
  [[nodiscard]] bool has_rules_of_replicas() const override { return true; }
};

const Typing kTyped;
const Unstructured kUnstructured;

}  // namespace

const Typing& Typing::of(const Request& request) {
  if (request.custom != nullptr) return kUnstructured;
  return kTyped;
}

const Typing& Typing::of(const Request& request, const model::KindInfo& kind) { return &kind == request.kind ? of(request) : kTyped; }

model::ApiStatus Typing::refuse_selector(const model::KindInfo& kind, std::string_view field) const {
  if (!kind.field_selectors.empty()) return bad_request(unknown_label(kind, field));
  return bad_request(fmt::format("\"{}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", field));
}

std::string Typing::go_type(const model::KindInfo& kind) const { return internal_go_type(kind); }

std::optional<model::ApiStatus> Typing::refuse_many_elements(const json::Value& document) const {
  return apiserver::refuse_many_elements(document, false);
}

std::optional<BodyRefusal> Typing::check_type(const Request&, const model::KindInfo& kind, const json::Value& document) const {
  return apiserver::check_type(document, kind.group, kind.version, kind.kind);
}

std::optional<model::ApiStatus> Typing::refuse_patch(std::string_view media_type) const {
  for (const std::string_view language : {"json-patch", "merge-patch", "strategic-merge-patch"})
    if (media_type == fmt::format("application/{}+json", language)) return std::nullopt;
  return model::unknown_patch_type();
}

const ScaleTexts& Typing::scale_texts() const {
  static constexpr ScaleTexts kTexts{"", "replicas is the desired number of instances for the scaled object.",
                                     "replicas is the actual number of observed instances of the scaled object.", "string"};
  return kTexts;
}

bool Typing::is_stale(const model::KindInfo&, const StoredObject&) const { return false; }

}  // namespace berth::apiserver
