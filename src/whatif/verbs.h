// The changes that a question can ask for, a row each: what a change may say, what it does, what is told of it.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "whatif/world.h"

namespace berth::whatif {

struct Verb {
  std::string_view name;
  std::vector<std::string_view> fields = {};  ///< Beside its own.
  /// Of what is said of nodes, "drained"; empty: it is not about nodes alone.
  std::string_view participle = {};
  /// "drained", "lost": applied to nodes that are chosen already. Null where `run` does all.
  Result<void> (*on_nodes)(World& world, const std::vector<std::string>& nodes, const json::Value& change) = nullptr;
  Result<void> (*run)(World& world, const json::Value& change, const json::Value& what) = nullptr;
  /// "shop/web is scaled to 3": what happens, in a question. Null: by the participle.
  std::string (*words)(const json::Value& change, const json::Value& what) = nullptr;
  std::string_view reason = {};  ///< Why a pod moves; empty: the words.
};
const std::vector<Verb>& verbs();
/// Null when there is none of the name.
const Verb* find_verb(std::string_view name);

/// The change as a part of "What if …?".
std::string change_words(const json::Value& change);
/// Carries the change out. Chooses its nodes first, where it is about nodes.
Result<void> carry_out(World& world, const Verb& verb, const json::Value& change);

}  // namespace berth::whatif
