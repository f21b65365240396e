// Objects of files go to the server with every field checked, as kubectl sends them; a refusal names file and line.
#pragma once
#include <string>

#include "cli/command/session.h"

namespace berth::cli {

/// --validate: what the server does about fields it does not know or that stand twice (kubectl's words; default strict).
struct ValidateFlag {
  std::string mode = "strict";
  void add_to(CLI::App& app);
  /// "fieldValidation=Strict"
  [[nodiscard]] std::string query() const;
};

/// Reports that the server refused an object of a file. Of unknown and duplicate fields each line of the file is named, and the field that
/// was probably meant. Returns 1. `doing`: "creating", "applying".
int report_in_file(const Manifest& manifest, const model::ApiStatus& status, std::string_view doing);

/// The lines of that report that name fields: "pod.yaml:7: unknown field \"spec.nodeSelectr\"; did you mean \"nodeSelector\"?".
std::vector<std::string> places_of(const Manifest& manifest, std::string_view message);

}  // namespace berth::cli
