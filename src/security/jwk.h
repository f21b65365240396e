// Keys of others: a JSON Web Key Set (RFC 7517), and tokens that one of its keys signed (RFC 7515, 7518: RS, PS and ES with SHA-2).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::security {

/// The header of a token, unverified.
struct TokenHeader {
  std::string algorithm, key_id;
  /// It names extensions that whoever reads it must know (`crit`): none is known here, so nobody may accept it (RFC 7515 4.1.11).
  bool has_extensions = false;
};
std::optional<TokenHeader> token_header(std::string_view token);

/// Immutable; thread-safe.
class KeySet {
 public:
  /// Keys of kinds that are not known are passed over.
  static Result<KeySet> parse(std::string_view jwks);
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool has(std::string_view key_id) const;
  /// The claims of a token that one of the keys signed (the one that its header names, where it names one), by one of the algorithms.
  [[nodiscard]] std::optional<json::Value> verify(std::string_view token, const std::vector<std::string>& algorithms) const;

 private:
  struct Entry;
  std::shared_ptr<const std::vector<Entry>> keys_;
};

}  // namespace berth::security
