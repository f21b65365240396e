// Content negotiation: which media type and which form of the object a client takes, and what a body is written in.
#pragma once
#include <string>
#include <string_view>

#include "model/api_status.h"

namespace berth::apiserver {

/// What a route offers.
struct Offer {
  bool watch = false;        ///< A stream of events: JSON alone.
  bool list = false;         ///< A collection, which the same route can watch.
  bool forms = true;         ///< Table and PartialObjectMetadata may be asked for.
  std::string_view kind;     ///< Go's internal type of one object ("core.ConfigMap"), for what is said about forms that do not fit.
  bool checks_form = false;  ///< Whether the form must fit a list or a single object.
};

enum class Format { kJson, kYaml };
enum class ObjectForm { kFull, kTable, kPartialMetadata, kPartialMetadataList };

struct Negotiated {
  Format format = Format::kJson;
  ObjectForm form = ObjectForm::kFull;
  bool pretty = false;
  bool beta_form = false;  ///< The form in meta.k8s.io/v1beta1.
};

/// Reads an Accept header: the first acceptable alternative by quality, then order. Empty accepts JSON. 406 in the words of Kubernetes when
/// nothing offered can be made (application/vnd.kubernetes.protobuf alone included, although the words name it).
model::ApiResult<Negotiated> negotiate(std::string_view accept, const Offer& offer);

/// Whether a client that cannot be served takes YAML for the answer that says so.
bool prefers_yaml(std::string_view accept);

/// The format of a request body by its Content-Type (empty: JSON). 415 for others.
model::ApiResult<Format> body_format(std::string_view content_type);

/// The media type alone, lower case, without parameters.
std::string media_type(std::string_view content_type);

}  // namespace berth::apiserver
