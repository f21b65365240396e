// Question and verdict of an answer, in sentences: what a page begins with.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::whatif {

/// "What if zone=b is lost, then shop/web is scaled to 300?", "How many more of the pod fit?", "With how few nodes would it do?"
std::string question_words(const json::Value& answer);

struct Verdict {
  bool is_good = true;
  std::string sentence;
  std::vector<std::string> more;  ///< What else happens, the worst first.
};
/// Whether anything is left without a place, then what it takes.
Verdict verdict_of(const json::Value& answer);

/// What of the answer depends on the order in which pods arrive, a line or two; empty where nothing does and nothing is left over.
std::string orders_words(const json::Value& answer);

}  // namespace berth::whatif
