// What a route offers its clients, and which of it they get.
#pragma once
#include "apiserver/request/negotiate.h"

namespace berth::apiserver {

struct Offer {
  bool watch = false;        ///< A stream of events: no YAML.
  bool list = false;         ///< A collection, which the same route can watch.
  bool forms = true;         ///< Table and PartialObjectMetadata may be asked for; otherwise those alternatives are passed over.
  bool protobuf = false;     ///< Whole objects have a protobuf form. Of their metadata alone there always is one, of a Table never.
  bool checks_form = false;  ///< Whether the form must fit a list or a single object.
  bool is_routed = true;     ///< A router looks at the bare media types first.
  std::string_view kind;     ///< Go's internal type of one object ("core.ConfigMap"), for what is said about forms that do not fit.
};

/// As negotiate() below, by all that the route says of itself. 406 in Kubernetes' words.
model::ApiResult<Negotiated> negotiate(std::string_view accept, const Offer& offer);

/// What a client gets a Status in: the first alternative that is no form of something else.
Format status_format(std::string_view accept);

}  // namespace berth::apiserver
