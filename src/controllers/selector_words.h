// Selectors as Go prints them: some messages have them so.
#pragma once
#include <string>

#include "base/json.h"

namespace berth::controllers {

/// A metav1.LabelSelector as Go's %v prints it, which is what some messages have; null: "nil".
std::string selector_in_go_words(const json::Value* selector);

}  // namespace berth::controllers
