// A ledger of what pods of a node have, shared by threads and kept in a file for the next process.
#pragma once
#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/mutex.h"
#include "node/state_files.h"

namespace berth::node::numa {

/// A Ledger has checkpoint() and restore(). Thread-safe.
template <typename Ledger>
class KeptLedger {
 public:
  /// `whose`: how the manager is called.
  KeptLedger(Ledger ledger, std::string file, std::string whose)
      : ledger_(std::move(ledger)), file_(std::move(file)), whose_(std::move(whose)) {}

  /// Takes over what the file says. The error says what of it does not fit, and what to do.
  Result<void> begin() {
    const auto text = read_file(file_);
    if (!text) return {};
    const auto document = json::parse(*text);
    const MutexLock lock(mutex_);
    const auto restored = document ? ledger_.restore(*document) : Result<void>(invalid("it cannot be read"));
    if (restored) return {};
    return invalid(fmt::format("could not restore state from checkpoint: {}; {}", restored.error().message, advice(file_, whose_)));
  }
  /// Who has the policy "none" must not find what another policy wrote.
  static Result<void> expect_no_file(const std::string& file, const std::string& whose, const std::string& none, const std::string& other) {
    if (!read_file(file)) return {};
    return invalid(
        fmt::format("configured policy \"{}\" differs from state checkpoint policy \"{}\"; {}", none, other, advice(file, whose)));
  }

  template <typename Look>
  auto look(const Look& look) const {
    const MutexLock lock(mutex_);
    return look(ledger_);
  }
  /// Writes the file where the ledger is another afterwards.
  template <typename Change>
  auto change(const Change& change) {
    const MutexLock lock(mutex_);
    struct AtEnd {
      KeptLedger& kept;
      ~AtEnd() { kept.save(); }
    } at_end{*this};
    return change(ledger_);
  }

 private:
  static std::string advice(const std::string& file, const std::string& whose) {
    return fmt::format("drain this node and delete the {} manager checkpoint file {} before starting it again", whose, file);
  }
  void save() BERTH_REQUIRES(mutex_) {
    const std::string text = json::serialize(ledger_.checkpoint());
    if (text == saved_) return;
    if (replace_file(file_, text))
      saved_ = text;
    else
      log::warning("node", "{} cannot be written: the next start of this node will not know what the {} manager gave to whom", file_,
                   whose_);
  }

  mutable Mutex mutex_;
  Ledger ledger_ BERTH_GUARDED_BY(mutex_);
  const std::string file_, whose_;
  std::string saved_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::node::numa
