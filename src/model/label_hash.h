// A hash of labels, for those who keep equal ones once (base/shared_pool.h).
#pragma once
#include "base/shared_pool.h"
#include "model/selector.h"

namespace berth::model {

struct LabelsHash {
  std::size_t operator()(const Labels& labels) const {
    std::size_t hash = 0;
    for (const auto& [key, value] : labels.pairs()) {
      mix_hash(hash, std::hash<std::string>()(key));
      mix_hash(hash, std::hash<std::string>()(value));
    }
    return hash;
  }
};

}  // namespace berth::model
