// The tokens of a CEL expression.
#pragma once
#include <string_view>
#include <vector>

#include "cel/ast.h"

namespace berth::cel {

enum class Tok : std::uint8_t {
  kEnd,
  kPunctuation,
  kIdent,
  kEscapedIdent,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kTrue,
  kFalse,
  kNull,
  kIn
};

struct Token {
  Tok kind = Tok::kEnd;
  std::size_t offset = 0;
  std::string_view text;
  [[nodiscard]] bool is(std::string_view punctuation) const { return kind == Tok::kPunctuation && text == punctuation; }
};

/// Cuts `source` into tokens; the last one is kEnd. What is no token is reported to `issues` in cel-go's words and left out. The tokens
/// point into `source`.
std::vector<Token> tokenize(std::string_view source, Issues& issues);

}  // namespace berth::cel
