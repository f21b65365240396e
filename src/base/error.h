// The project's one value for expected failures below the API (the API's own failures are model::ApiStatus).
#pragma once
#include <string>

#include "base/expected.h"

namespace berth {

/// What the caller can do next decides the code.
enum class ErrorCode {
  kInvalid,      ///< The input is wrong: tell its author. Retrying the same cannot help.
  kNotFound,     ///< The thing asked for is not there.
  kConflict,     ///< Somebody else was faster: read again, then retry.
  kUnavailable,  ///< Try again later.
  kCorrupt,      ///< Stored data is damaged or from a newer version: stop, tell the operator, change nothing.
  kInternal,     ///< A bug or an unexpected answer of the system below.
};

/// An expected failure. `message` is written for people: what is wrong, where (file, line, field path), what to do.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

template <typename T>
using Result = Expected<T, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message) { return std::unexpected(Error{code, std::move(message)}); }
inline std::unexpected<Error> invalid(std::string message) { return fail(ErrorCode::kInvalid, std::move(message)); }

}  // namespace berth
