// Documents that are as unpleasant as their size allows: what anybody may send.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::testing {

struct Sent {
  std::string method, path, content_type, body;
};

/// What is sent first, and what is measured, for a size.
struct Adversary {
  std::string name;
  std::function<std::vector<Sent>(std::size_t size)> requests;  ///< The last one is measured.
  bool changes_nothing = false;                                 ///< One server will do for all of these.
};

/// Bodies with a great many keys, list items, equal and unequal merge keys, long names above many members, deep nesting, owners, volumes,
/// patches of every kind, reviews, YAML with aliases.
std::vector<Adversary> adversaries();

/// Every list and map of every kind, lengthened in a document with something in every field.
std::vector<Adversary> lengthened_kinds();

}  // namespace berth::testing
