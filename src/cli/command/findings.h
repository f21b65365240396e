// What is wrong with how a role is to be started: all of it, from files, flags and how they go together. A start and `--validate` look for
// the same, so that what validates starts.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
}

namespace berth::cli {

class Findings {
 public:
  void error(std::string message) { errors_.push_back(std::move(message)); }
  void note(std::string message) { notes_.push_back(std::move(message)); }
  void notes(const std::vector<std::string>& all) { notes_.insert(notes_.end(), all.begin(), all.end()); }
  /// The value; nullopt, with the error kept, when there is none.
  template <typename T>
  std::optional<T> take(Result<T> result) {
    if (result) return std::move(*result);
    error(result.error().message);
    return std::nullopt;
  }
  bool take(const Result<void>& result) {
    if (!result) error(result.error().message);
    return result.has_value();
  }
  [[nodiscard]] bool ok() const { return errors_.empty(); }
  /// One a line.
  [[nodiscard]] std::string all_errors() const;

  /// Before a start: notes go to the log as warnings of `component`, errors to standard error. False: do not start.
  bool may_start(const char* component) const;
  /// Of `--validate`: prints everything; the exit code is 0 when a start would get as far as the network, else 1.
  [[nodiscard]] int print_validation(const std::string& what) const;

 private:
  void print_errors() const;
  std::vector<std::string> errors_, notes_;
};

/// The flag --validate.
void add_validate_flag(CLI::App& app, bool& validate_only);

/// That this kubeconfig gives a connection: files, certificates, context. Nothing is sent. That there is none is a note.
void check_connection(const std::string& kubeconfig, const std::string& context, Findings& findings);

}  // namespace berth::cli
