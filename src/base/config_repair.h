// Texts as people paste them from the OpenShift documents: lines of "..." that stand for what was left out, callout numbers behind a value
// (`1`, `<1>`, `(1)`), a `kind: "Policy"` head above bare JSON lists, slips of the documents' own. A text that its reader takes is never
// changed: whatever is here is tried only on one that it refuses, counts only if it is taken then, and every change is told.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::config {

/// What a reader says of a text.
struct Look {
  bool is_parsed = false;  ///< It is text of the form that the reader wants.
  std::size_t problems = 0;
  std::set<int> lines;  ///< Where those are, from 1.

  [[nodiscard]] bool is_taken() const { return is_parsed && problems == 0; }
};

struct Mended {
  std::string text;                  ///< Lines keep their numbers.
  std::vector<std::string> changes;  ///< "line 3: read without the callout \"1\""; empty: nothing to change.
  Look look;                         ///< What the reader says of it.
};

enum class TextKind {
  kManifest,       ///< Objects of the API.
  kConfiguration,  ///< Files that configure a component; an entry that stands deeper than the one before it is a slip of theirs.
};

/// Whether a line ends in what could be a callout behind a word: only then can a text that parses be one of the documents'.
[[nodiscard]] bool may_have_callouts(std::string_view text);

/// The text as the documents mean it, of one that the reader refuses as it is (`refused`). When nothing is taken: what came nearest to it,
/// or the text itself without changes.
Mended as_documents_mean(std::string_view text, TextKind kind, const Look& refused, const std::function<Look(const std::string&)>& look);

/// A stream of documents. One that does not parse is tried as the documents mean it, and is taken when all it holds are objects with a
/// kind; what was changed is added to `notes`. An error is that of the text as it was given.
Result<std::vector<json::Value>> parse_stream(std::string_view text, std::vector<std::string>& notes);

}  // namespace berth::config
