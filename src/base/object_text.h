// The objects of a text, one after the other: a dump of a cluster (`kubectl get -A -o yaml`) is hundreds of megabytes, of which no more
// than one object at a time is held as values.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace berth::config {

using ObjectVisitor = std::function<void(json::Value object)>;

/// Hands over every object of the text: YAML documents or JSON, lists (also typed ones such as NodeList, whose items leave out what the
/// list says) taken apart, what is no object left out. Callouts (config_reader.h) are taken off texts below a megabyte.
///
/// A large text is parsed on all processors; objects are handed over in their order, on the calling thread.
///
/// `word`: objects whose text lacks it may be left out, unread. An error tells the line; objects may have been handed over before it.
Result<void> for_each_object(std::string_view text, const ObjectVisitor& each, std::string_view word = {});

/// The message about a text that cannot be read; of one that fails where it ends, with what probably happened to it.
std::string told_of_cut(std::string_view text, std::string message);

}  // namespace berth::config
