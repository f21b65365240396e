// Empty lists and maps of what is sent. Kubernetes keeps them in memory while it looks at an object; nearly all of them say nothing, and
// are left out of what is written.
#pragma once
#include <string>
#include <vector>

#include "model/schema.h"

namespace berth::model {

struct EmptyValues {
  /// One that was taken out: the keys and indices that lead there.
  struct LeftOut {
    std::vector<std::string> path;
    json::Value value;
  };

  bool has_written = false;  ///< There is one where something is always written: it stays what it is until it is stored.
  std::vector<LeftOut> left_out;
};

/// decode() with what is always written, noting what is empty.
Expected<void, DecodeError> decode(const KindInfo& kind, json::Value& doc, DecodeReport& report, EmptyValues& empty);
/// Storage of built-in kinds does not tell an empty list or map from none: null where one is always written.
void forget_empty(const KindInfo& kind, json::Value& doc);

/// The document as its sender wrote it, with what was left out of it, for as long as this lives. Both must outlive it.
class AsSent {
 public:
  AsSent(json::Value& doc, const EmptyValues& empty);
  ~AsSent();
  AsSent(const AsSent&) = delete;
  AsSent& operator=(const AsSent&) = delete;

 private:
  json::Value& doc_;
  std::vector<const std::vector<std::string>*> put_;
};

}  // namespace berth::model
