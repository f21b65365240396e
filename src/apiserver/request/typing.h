// What Kubernetes does otherwise with custom objects, which it knows by their definition alone (there: unstructured), than with those that
// it has a type in Go for: how they are refused, decoded, shown and stored. Nobody else asks which of both an object is; what only a
// webhook's answer tells is representation/versions.h.
#pragma once
#include "apiserver/request/request_body.h"

namespace berth::apiserver {

struct StoredObject;

/// What kubectl prints of a Scale.
struct ScaleTexts {
  std::string_view name_format, desired, available, age_type;
};

/// Of kinds with a type. Stateless, one of each, for ever: what else they go by is the request's.
class Typing {
 public:
  /// Of the resource in the path.
  static const Typing& of(const Request& request);
  /// Of a kind that the request's body is read as: a Scale has its type, whoever is scaled.
  static const Typing& of(const Request& request, const model::KindInfo& kind);
  virtual ~Typing() = default;

  // Refuse. Where nothing is given instead of a Status, the answer is a page: "404 page not found".
  /// A path that leads nowhere.
  [[nodiscard]] virtual std::optional<model::ApiStatus> no_route() const { return model::unknown_path(); }
  /// A subresource that the kind has not.
  [[nodiscard]] virtual model::ApiStatus no_subresource(const Request&) const { return model::unknown_path(); }
  [[nodiscard]] virtual bool takes_verb(const Request& request) const { return request.kind->has_verb(request.info.verb); }
  /// A verb that the path does not take.
  [[nodiscard]] virtual std::optional<model::ApiStatus> refuse_verb(const Request&) const { return model::method_not_allowed(); }
  [[nodiscard]] virtual model::ApiStatus refuse_selector(const model::KindInfo& kind, std::string_view field) const;
  /// Of one object, as messages call it.
  [[nodiscard]] virtual std::string go_type(const model::KindInfo& kind) const;
  /// A router looks at the bare media types first.
  [[nodiscard]] virtual bool is_routed() const { return true; }

  // Decode.
  [[nodiscard]] virtual std::optional<model::ApiStatus> refuse_protobuf() const { return std::nullopt; }
  /// 413: element_limit.h.
  [[nodiscard]] virtual std::optional<model::ApiStatus> refuse_many_elements(const json::Value& document) const;
  /// A body that is, or says to be, of another type.
  [[nodiscard]] virtual std::optional<BodyRefusal> check_type(const Request& request, const model::KindInfo& kind,
                                                              const json::Value& document) const;
  /// What is said twice is told before what is unknown, not in the order of the text.
  [[nodiscard]] virtual bool tells_repeated_first() const { return false; }
  /// A patch in a language that is none of the kind's.
  [[nodiscard]] virtual std::optional<model::ApiStatus> refuse_patch(std::string_view media_type) const;

  // Show.
  /// Items of lists say what they are, and the list its continue token, even an empty one.
  [[nodiscard]] virtual bool is_shown_whole() const { return false; }
  [[nodiscard]] virtual const ScaleTexts& scale_texts() const;
  /// An object at whose path there are no replicas; nothing: it has none, as far as its Scale shows.
  [[nodiscard]] virtual std::optional<model::ApiStatus> no_replicas(std::string_view) const { return std::nullopt; }

  // Store.
  /// Defaults may have made a multiple of it that is not worth looking at any more.
  [[nodiscard]] virtual std::optional<model::ApiStatus> refuse_multiplied(const json::Value&) const { return std::nullopt; }
  /// It is written anew, in the version of `stored`, even where nothing changes.
  [[nodiscard]] virtual bool is_stale(const model::KindInfo& stored, const StoredObject& object) const;
  /// Why a Scale that was sent cannot be read.
  [[nodiscard]] virtual model::ApiStatus unreadable_scale(model::ApiStatus why) const { return why; }
  /// Its number of replicas is judged by the rules of its kind.
  [[nodiscard]] virtual bool has_rules_of_replicas() const { return false; }
};

}  // namespace berth::apiserver
