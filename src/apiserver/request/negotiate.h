// Content negotiation: which media type and which form of the object a client takes, and what a body is written in.
#pragma once
#include <string>
#include <string_view>

#include "model/api_status.h"

namespace berth::apiserver {

enum class Format { kJson, kYaml, kProtobuf };
enum class ObjectForm { kFull, kTable, kPartialMetadata, kPartialMetadataList };

struct Negotiated {
  Format format = Format::kJson;
  ObjectForm form = ObjectForm::kFull;
  bool pretty = false;
  std::string_view meta_version = "meta.k8s.io/v1";  ///< Of a Table, or of metadata alone.
};

/// Reads an Accept header: the first acceptable alternative by quality, then order. Empty accepts JSON. 406 when nothing offered can be
/// made. `allow_forms`: Table and PartialObjectMetadata may be asked for here; otherwise those alternatives are passed over. Protobuf is
/// passed over here (offer.h).
model::ApiResult<Negotiated> negotiate(std::string_view accept, bool allow_forms = true);

/// The format of a request body by its Content-Type (empty: JSON). 415 for others.
model::ApiResult<Format> body_format(std::string_view content_type);

/// The media type alone, lower case, without parameters.
std::string media_type(std::string_view content_type);

}  // namespace berth::apiserver
