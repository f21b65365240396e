// What a route offers its clients, and which of it they get.
#pragma once
#include "apiserver/negotiate.h"

namespace berth::apiserver {

struct Offer {
  bool watch = false;        ///< A stream of events: JSON alone.
  bool list = false;         ///< A collection, which the same route can watch.
  bool forms = true;         ///< Table and PartialObjectMetadata may be asked for; otherwise those alternatives are passed over.
  bool checks_form = false;  ///< Whether the form must fit a list or a single object.
  std::string_view kind;     ///< Go's internal type of one object ("core.ConfigMap"), for what is said about forms that do not fit.
};

/// As negotiate() below, by all that the route says of itself. 406 in Kubernetes' words.
model::ApiResult<Negotiated> negotiate(std::string_view accept, const Offer& offer);

/// Whether a client that is refused takes YAML for the answer that says so.
bool prefers_yaml(std::string_view accept);

}  // namespace berth::apiserver
