// scale: replicas and selector of a workload as an autoscaling/v1 Scale.
#include "apiserver/apply/managed_fields.h"
#include "apiserver/apply/typed_merge.h"
#include "apiserver/kinds/shape.h"
#include "apiserver/patch/json_patch.h"
#include "apiserver/patch/strategic_merge.h"
#include "apiserver/representation/tables.h"
#include "apiserver/request/typing.h"
#include "apiserver/subresources/subresources.h"
#include "base/dotted.h"
#include "custom/column_texts.h"
#include "model/kind_hooks.h"
#include "model/selector.h"
#include "model/tables/tables.h"

namespace berth::apiserver {
namespace {

const model::Scale& scale_rules(const model::KindInfo& kind) { return *model::hooks_of(kind).scale; }

std::int64_t count_at(const json::Value& document, std::string_view path, std::int64_t absent) {
  const auto* found = json::find_dotted(document, path);
  return found != nullptr ? json::get_int(*found, {}, absent) : absent;
}

/// A Scale shows the selector as text.
std::string selector_text(const model::KindInfo& kind, const json::Value& workload) {
  using Form = model::Scale::Selector;
  const auto& own = scale_rules(kind);
  const auto* selector = own.selector.empty() ? nullptr : json::find_dotted(workload, own.selector);
  if (own.selector_form == Form::kMap) return model::Selector::from_map(selector).to_string();
  if (own.selector_form == Form::kText) return selector != nullptr && selector->is_string() ? std::string(json::as_view(*selector)) : "";
  const auto parsed = model::Selector::from_label_selector(selector);
  return parsed && !parsed->is_nothing() ? parsed->to_string() : std::string();
}

json::Value scale_of(const model::KindInfo& kind, const json::Value& workload) {
  const auto& own = scale_rules(kind);
  json::Object metadata;
  for (std::string_view field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"})
    if (const auto* value = json::find(workload, {"metadata", field})) metadata[field] = *value;
  json::Object status{{"replicas", count_at(workload, own.status_replicas, 0)}};
  if (auto text = selector_text(kind, workload); !text.empty()) status["selector"] = std::move(text);
  json::Object spec;
  if (const auto replicas = count_at(workload, own.spec_replicas, own.absent_replicas); replicas != 0) spec["replicas"] = replicas;
  return json::Object{{"kind", "Scale"},
                      {"apiVersion", "autoscaling/v1"},
                      {"metadata", std::move(metadata)},
                      {"spec", std::move(spec)},
                      {"status", std::move(status)}};
}

/// A Scale as kubectl prints it (printers' scale columns); the row carries the metadata.
json::Value scale_table(const Request& request, const json::Value& scale, TimePoint now) {
  const auto& texts = Typing::of(request).scale_texts();
  using Column = std::array<std::string_view, 4>;
  json::Array columns;
  for (const auto& [name, type, format, description] :
       {Column{"Name", "string", texts.name_format, custom::kNameText}, Column{"Desired", "integer", "", texts.desired},
        Column{"Available", "integer", "", texts.available}, Column{"Age", texts.age_type, "", custom::kCreationText}})
    columns.push_back(json::Object{{"name", name}, {"type", type}, {"format", format}, {"description", description}, {"priority", 0}});
  const auto& metadata = scale.at("metadata");
  json::Value row = json::Object{
      {"cells", json::Array{metadata.at("name"), json::get_int(scale, {"spec", "replicas"}), json::get_int(scale, {"status", "replicas"}),
                            model::human_age(json::get_string(scale, {"metadata", "creationTimestamp"}), now)}},
      {"object", json::Object{{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", metadata}}}};
  json::Value table =
      json::Object{{"kind", "Table"},
                   {"apiVersion", "meta.k8s.io/v1"},
                   {"metadata", json::Object{{"resourceVersion", json::get_string(scale, {"metadata", "resourceVersion"})}}},
                   {"columnDefinitions", std::move(columns)},
                   {"rows", json::Array{std::move(row)}}};
  put_meta_version(table, request.accept.meta_version);
  return table;
}

const model::KindInfo& scale_kind() { return unserved_kind("autoscaling", "v1", "Scale", "autoscaling.v1.Scale"); }

/// A Scale that was sent whole.
model::ApiResult<json::Value> sent_scale(Request& request) {
  auto scale = decode_unserved_body(request, scale_kind());
  if (scale) return std::move(*scale);
  const bool is_unreadable = scale.error().is == BodyRefusal::Is::kUnreadable;
  auto status = std::move(scale.error().status);
  return std::unexpected(is_unreadable ? Typing::of(request).unreadable_scale(std::move(status)) : std::move(status));
}

/// What a patch made of a Scale, judged by fieldValidation. `repeated`: what the patch says twice.
model::ApiResult<json::Value> patched_scale(Request& request, json::Value scale, const Repeated& repeated) {
  json::Value typed = scale;
  const auto decoded = decode_document(request, scale_kind(), typed, repeated, false);
  if (decoded) return typed;
  if (decoded.error().is != BodyRefusal::Is::kStrict) return scale;  // Its values are judged with those that came whole.
  return std::unexpected(
      model::invalid_object("", "", "",
                            {{model::FieldError::Type::kInvalid, "patch",
                              json::serialize(json::Value(std::string_view(request.http.body).substr(0, 8192))), decoded.error().reason}}));
}

model::ApiResult<std::int64_t> checked_replicas(const Request& request, const json::Value& scale) {
  const auto& typing = Typing::of(request);
  if (auto wrong = check_type(scale, "autoscaling", "v1", "Scale"))
    return std::unexpected(typing.unreadable_scale(std::move(wrong->status)));
  const auto name = json::get_string(scale, {"metadata", "name"});
  if (name.empty() && request.info.verb == "update") return std::unexpected(no_name(request.info.name));
  if (!name.empty() && name != request.info.name) return std::unexpected(other_name(name, request.info.name));
  const auto ns = json::get_string(scale, {"metadata", "namespace"});
  if (!ns.empty() && ns != request.info.ns) return std::unexpected(other_namespace());
  const auto* replicas = json::find(scale, {"spec", "replicas"});
  if (replicas == nullptr) return 0;
  if (!replicas->is_int64()) {
    auto unreadable = model::bad_request(
        "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal into Go struct field "
        "ScaleSpec.spec.replicas of type int32");
    return std::unexpected(request.info.verb == "update" ? typing.unreadable_scale(std::move(unreadable)) : std::move(unreadable));
  }
  if (typing.has_rules_of_replicas() && replicas->get_int64() < 0) return replicas->get_int64();
  if (replicas->get_int64() < 0 || replicas->get_int64() > std::numeric_limits<std::int32_t>::max())
    return std::unexpected(model::invalid_object("autoscaling", "Scale", request.info.name,
                                                 {{model::FieldError::Type::kInvalid, "spec.replicas",
                                                   std::to_string(replicas->get_int64()), "must be greater than or equal to 0"}}));
  return replicas->get_int64();
}

/// What was sent of a Scale: it whole, operations on it, or what is merged into it.
using ScaleChange = std::variant<json::Value, std::vector<patch::JsonPatchOperation>, ParsedPatch>;

model::ApiResult<ScaleChange> decode_change(Request& request) {
  if (request.info.verb == "update") {
    auto whole = sent_scale(request);
    if (!whole) return std::unexpected(std::move(whole.error()));
    return ScaleChange(std::in_place_index<0>, std::move(*whole));
  }
  auto parsed = parse_patch(request);
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  const auto type = media_type(request.http.headers.get("Content-Type"));
  if (auto refused = Typing::of(request).refuse_patch(type)) return std::unexpected(std::move(*refused));
  if (type != "application/json-patch+json") return ScaleChange(std::in_place_index<2>, std::move(*parsed));
  auto operations = patch::parse_json_patch(parsed->document);
  if (!operations) return std::unexpected(std::move(operations.error()));
  return ScaleChange(std::in_place_index<1>, std::move(*operations));
}

model::ApiResult<json::Value> changed_scale(Request& request, const ScaleChange& change, json::Value present) {
  if (const auto* whole = std::get_if<json::Value>(&change)) return *whole;
  if (const auto* merged = std::get_if<ParsedPatch>(&change)) {
    patch::apply_merge_patch(present, merged->document);
    return patched_scale(request, std::move(present), merged->repeated);
  }
  if (!patch::apply_json_patch(present, std::get<1>(change))) return std::unexpected(model::unprocessable());
  return patched_scale(request, std::move(present), {});
}

/// The workload with the replicas of another Scale.
class Scaled final : public Change {
 public:
  Scaled(const RequestPtr& request, ScaleChange change) : request_(request), change_(std::move(change)) {}

  [[nodiscard]] model::ApiResult<json::Value> made_of(const json::Value& current) const override {
    const auto& kind = *request_->kind;
    auto wanted = changed_scale(*request_, change_, scale_of(kind, current));
    if (!wanted) return wanted;
    const auto replicas = checked_replicas(*request_, *wanted);
    if (!replicas) return std::unexpected(replicas.error());
    auto updated = current;
    json::set_dotted(updated, scale_rules(kind).spec_replicas, json::Value(*replicas));
    const auto& sent = json::get_string(*wanted, {"metadata", "resourceVersion"});
    if (sent.empty() || request_->info.verb == "patch") {
      json::erase(updated, {"metadata", "resourceVersion"});
    } else {
      json::set(updated, {"metadata", "resourceVersion"}, json::Value(sent));
    }
    if (const auto uid = json::get_string(*wanted, {"metadata", "uid"}); request_->info.verb == "update" && !uid.empty())
      json::set(updated, {"metadata", "uid"}, json::Value(uid));
    return updated;
  }

 private:
  RequestPtr request_;
  ScaleChange change_;
};

/// Server-side apply of a Scale: the workload's replicas then belong to the applier, as a field of the workload.
class AppliedScale final : public Change {
 public:
  AppliedScale(WritePipeline& writes, const RequestPtr& request, json::Value wanted)
      : loop_(writes.ground.loop), request_(request), wanted_(std::move(wanted)) {}

  [[nodiscard]] model::ApiResult<json::Value> made_of(const json::Value& current) const override {
    return apply::apply(*request_->kind, current, wanted_, wanted_, {request_->field_manager, "scale", loop_.now()}, request_->force);
  }

 private:
  EventLoop& loop_;
  RequestPtr request_;
  json::Value wanted_;
};

/// What the applier says of the workload.
model::ApiResult<json::Value> applied_scale(const RequestPtr& request) {
  if (!request->field_manager_given)
    return std::unexpected(model::invalid_object(
        "meta.k8s.io", "PatchOptions", "", {{model::FieldError::Type::kRequired, "fieldManager", "", "is required for apply patch"}}));
  auto scale = json::parse_yaml(request->http.body);
  if (!scale) return std::unexpected(model::bad_request(fmt::format("error decoding YAML: {}", scale.error().message)));
  if (!scale->is_object()) return std::unexpected(model::bad_request("error decoding YAML: an apply configuration must be an object"));
  const auto& kind = *request->kind;
  const auto replicas = checked_replicas(*request, *scale);
  if (!replicas) return std::unexpected(replicas.error());
  if (auto wrong = apply::check_typed(scale_kind(), *scale)) {
    model::ApiStatus status;
    status.code = 500;
    status.message =
        fmt::format("failed to create typed patch object ({}/{}; autoscaling/v1, Kind=Scale): {}",
                    json::get_string(*scale, {"metadata", "namespace"}), json::get_string(*scale, {"metadata", "name"}), *wrong);
    return std::unexpected(std::move(status));
  }
  json::Value config = json::Object{{"apiVersion", kind.api_version()},
                                    {"kind", kind.kind},
                                    {"metadata", json::Object{{"name", request->info.name}, {"namespace", request->info.ns}}}};
  if (json::find(*scale, {"spec", "replicas"}) != nullptr)
    json::set_dotted(config, scale_rules(kind).spec_replicas, json::Value(*replicas));
  return config;
}

/// What a Scale shows of a kind of ours.
Take scaled_part(std::string_view parent, std::string_view key) {
  if (parent.empty()) return key == "metadata" || key == "spec" || key == "status" ? Take::kMembers : Take::kNot;
  return (parent == "metadata" ? key != "managedFields" : key == "replicas" || key == "selector") ? Take::kWhole : Take::kNot;
}

/// The object in the request's version, as far as a Scale shows it.
void read_scaled(Versions& versions, Responder& respond, const RequestPtr& request, const ObjectPtr& object,
                 std::function<void(const json::Value&)> then) {
  if (request->custom == nullptr && is_shown_as_stored(*request, *object)) return then(ObjectPart(object, scaled_part).document());
  versions.read_converted(request, object, [&respond, request, then = std::move(then)](model::ApiResult<json::Value> workload) {
    if (!workload) return respond.status(*request, workload.error());
    then(*workload);
  });
}

}  // namespace

namespace steps {

/// That takes reading the object: no work for the thread that stored it.
StepResult answer_scale(WritePipeline& writes, const WritePtr& operation) {
  operation->done = [&writes, request = operation->request](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return writes.respond.status(*request, outcome.error());
    writes.ground.offload([&writes, request, written = std::make_shared<const WriteOutcome>(std::move(*outcome))] {
      if (!written->object) return writes.respond.document(*request, 200, scale_of(*request->kind, written->document));
      read_scaled(writes.versions, writes.respond, request, written->object, [&writes, request](const json::Value& workload) {
        writes.respond.document(*request, 200, scale_of(*request->kind, workload));
      });
    });
  };
  return Flow::kNext;
}

}  // namespace steps

void get_scale(Reads& reads, const RequestPtr& request) {
  const auto& kind = *request->kind;
  const auto object = reads.ground.cache->get(object_key(kind, request->info.ns, request->info.name));
  if (object == nullptr) return reads.respond.status(*request, model::not_found(kind.group, kind.plural, request->info.name));
  read_scaled(reads.versions, reads.respond, request, object, [&reads, request](const json::Value& workload) {
    if (const auto& path = scale_rules(*request->kind).spec_replicas; json::find_dotted(workload, path) == nullptr)
      if (const auto nothing = Typing::of(*request).no_replicas(path)) return reads.respond.status(*request, *nothing);
    const auto scale = scale_of(*request->kind, workload);
    reads.respond.document(*request, 200,
                           request->accept.form == ObjectForm::kTable ? scale_table(*request, scale, reads.ground.loop.now()) : scale);
  });
}

namespace steps {

StepResult decode_scale_apply(WritePipeline& writes, const WritePtr& operation) {
  auto applied = applied_scale(operation->request);
  if (!applied) return std::unexpected(std::move(applied.error()));
  operation->decoded.change = std::make_unique<AppliedScale>(writes, operation->request, std::move(*applied));
  return Flow::kNext;
}

StepResult decode_scale(WritePipeline&, const WritePtr& operation) {
  const auto& request = operation->request;
  auto change = decode_change(*request);
  if (!change) return std::unexpected(std::move(change.error()));
  operation->decoded.change = std::make_unique<Scaled>(request, std::move(*change));
  return Flow::kNext;
}

}  // namespace steps
}  // namespace berth::apiserver
