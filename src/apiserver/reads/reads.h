// GET of objects: one, many, or what becomes of them.
#pragma once
#include "apiserver/answers/respond.h"
#include "apiserver/reads/reading.h"
#include "apiserver/reads/streams.h"

namespace berth::apiserver {

/// Everything but the writes' answers that shows objects; from memory. Thread-safe. What its members refer to outlives it.
struct Reads {
  void get(const RequestPtr& request);
  void list(const RequestPtr& request);
  void watch(const RequestPtr& request);
  /// Answers a list with what has been found, in the request's version, streaming it when it is long. `selects`: Selection::of_converted.
  void answer_list(const RequestPtr& request, ListResult result, Rest rest, const std::function<bool(const StoredObject&)>& selects = {});

  Ground& ground;
  Versions& versions;
  Responder& respond;
  Streams& streams;
  const WatchOptions& options;
};

}  // namespace berth::apiserver
