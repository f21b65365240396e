// The objects of a text, one after the other: a dump of a cluster (`kubectl get -A -o yaml`) is hundreds of megabytes, of which no more
// than one object at a time is held as values.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::config {

using ObjectVisitor = std::function<void(json::Value object)>;
using Notes = std::vector<std::string>;

/// Hands over every object of the text: YAML documents or JSON, lists (also typed ones such as NodeList, whose items leave out what the
/// list says) taken apart, what is no object left out. A text below a megabyte that does not parse is read as the documents mean it
/// (config_repair.h), which is told in `notes`.
///
/// A large text is parsed on all processors; objects are handed over in their order, on the calling thread.
///
/// `word`: objects whose text lacks it may be left out, unread. An error tells the line; objects may have been handed over before it.
Result<void> for_each_object(std::string_view text, const ObjectVisitor& each, Notes& notes, std::string_view word = {});

/// The message about a text that cannot be read; of one that fails where it ends, with what probably happened to it.
std::string told_of_cut(std::string_view text, std::string message);

}  // namespace berth::config
