#include "apiserver/representation/versions.h"

#include "apiserver/webhook/conversion.h"
#include "custom/objects.h"
#include "model/kind_hooks.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

using json::Value;

std::string_view written_version(const Value& object) { return json::get_string(object, {"apiVersion"}); }

/// The object with other bytes. They begin with what the object is, as stored ones do.
ObjectPtr shown_object(const model::KindInfo& kind, const StoredObject& was, const Value& document) {
  json::Object out{{"apiVersion", kind.api_version()}, {"kind", kind.kind}};
  for (const auto& [key, member] : document.get_object()) out.emplace(key, member);
  return std::make_shared<const StoredObject>(was.key, make_bytes(json::serialize(out)), was.revision, was.create_revision,
                                              extract_meta(kind, document));
}

/// What a webhook gives back is as its version's schema has it; nothing is filled in.
void prune_converted(const Request& request, const model::KindInfo& kind, Value& document) {
  const auto& definition = *request.custom->kind->definition;
  if (definition.preserves_unknown) return;
  for (const auto& version : definition.versions) {
    if (version.name != kind.version) continue;
    custom::prune(document, *version.schema, true, nullptr);
    custom::drop_nulls(document, *version.schema);
  }
}

}  // namespace

bool asks_converter(const Request& request) {
  return request.custom != nullptr && request.custom->kind->definition->conversion.has_value();
}

bool is_shown_as_stored(const Request& request, const StoredObject& object) {
  if (request.kind == nullptr) return true;
  // Whatever comes this far was converted, or is of the version that is asked for.
  if (asks_converter(request))
    return object.kept != nullptr && object.text()->starts_with(fmt::format(R"({{"apiVersion":"{}",)", request.kind->api_version()));
  if (&request.kind->storage() != request.kind) return false;
  return request.custom == nullptr || object.revision >= request.custom->valid_since;
}

json::Value read_document(const Request& request, const StoredObject& object) {
  auto document = decode_object(object);
  if (is_shown_as_stored(request, object)) return document;
  if (&storage_kind(*request.kind) != request.kind) {
    model::convert(storage_kind(*request.kind), *request.kind, document);
  } else {
    model::hooks_of(*request.kind).form->from_storage(document);
    document.get_object()["apiVersion"] = request.kind->api_version();  // Another version may have been stored then.
  }
  return document;
}

Versions::Versions(Ground& ground)
    : ground_(ground), conversions_(std::make_unique<Conversions>(*ground.cache, [&ground] { return ground.names.uid(); })) {}
Versions::~Versions() = default;

void Versions::stop() { conversions_.reset(); }

void Versions::convert_ahead(const RequestPtr& request, std::vector<ObjectPtr> objects, ShownObjects done) {
  if (!asks_converter(*request)) return done(std::move(objects));
  const auto& kind = *request->kind;
  const auto own_version = kind.api_version();
  const auto head = fmt::format(R"({{"apiVersion":"{}",)", own_version);
  std::vector<std::size_t> places;
  std::vector<Value> foreign;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects[i] == nullptr || objects[i]->kept == nullptr) continue;
    const bool is_own = objects[i]->text()->starts_with(head);
    if (is_own && objects[i]->revision >= request->custom->valid_since) continue;
    auto document = decode_object(*objects[i]);
    if (is_own || written_version(document) == own_version) {
      // Written under an older schema.
      kind.hooks->form->from_storage(document);
      objects[i] = shown_object(kind, *objects[i], document);
      continue;
    }
    const auto* its = request->kinds->find_kind(kind.group, written_version(document).substr(kind.group.size() + 1), kind.kind);
    if (its != nullptr && its->hooks != nullptr) its->hooks->form->from_storage(document);
    places.push_back(i);
    foreign.push_back(std::move(document));
  }
  if (foreign.empty()) return done(std::move(objects));
  conversions_->convert(request->custom->kind->definition, own_version, std::move(foreign),
                        [this, request, objects = std::move(objects), places = std::move(places),
                         done = std::move(done)](model::ApiResult<std::vector<Value>> converted) mutable {
                          // Not on the thread that all webhooks' answers arrive on.
                          ground_.offload([request, objects = std::move(objects), places = std::move(places), done = std::move(done),
                                           converted = std::move(converted)]() mutable {
                            if (!converted) return done(std::unexpected(std::move(converted.error())));
                            for (std::size_t i = 0; i < places.size(); ++i) {
                              auto& document = (*converted)[i];
                              prune_converted(*request, *request->kind, document);
                              objects[places[i]] = shown_object(*request->kind, *objects[places[i]], document);
                            }
                            done(std::move(objects));
                          });
                        });
}

void Versions::convert_to_storage(const RequestPtr& request, const model::KindInfo& kind, Value document, Document done) {
  const auto& stored = storage_kind(kind);
  if (&stored == &kind) return done(std::move(document));
  if (!asks_converter(*request)) {
    model::convert(kind, stored, document);
    return done(std::move(document));
  }
  std::vector<Value> one;
  one.push_back(std::move(document));
  conversions_->convert(request->custom->kind->definition, stored.api_version(), std::move(one),
                        [this, request, &stored, done = std::move(done)](model::ApiResult<std::vector<Value>> converted) mutable {
                          ground_.offload([request, &stored, done = std::move(done), converted = std::move(converted)]() mutable {
                            if (!converted) return done(std::unexpected(std::move(converted.error())));
                            prune_converted(*request, stored, converted->front());
                            done(std::move(converted->front()));
                          });
                        });
}

void Versions::read_converted(const RequestPtr& request, const ObjectPtr& object, Document done) {
  if (!asks_converter(*request)) return done(read_document(*request, *object));
  convert_ahead(request, {object}, [this, request, done = std::move(done)](const model::ApiResult<std::vector<ObjectPtr>>& shown) {
    if (!shown) return done(std::unexpected(shown.error()));
    done(read_document(*request, *shown->front()));
  });
}

}  // namespace berth::apiserver
