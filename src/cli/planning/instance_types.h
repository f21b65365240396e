// What NodePools buy from: a file, or what a cluster's autoscaler has published.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::pools {
struct Catalogue;
}

namespace berth::cli {

struct PlacementFlags;

/// The document of a file of instance types, once all of it is right. The error tells what is not, with its lines.
Result<json::Value> read_instance_types(const std::string& file);
/// The same of what `berth autoscaler` has published in the cluster of the flags, live or dumped. Nullopt: nobody has.
std::optional<json::Value> published_instance_types(const PlacementFlags& flags);
/// Of the file, or, where none is named, published among these objects. The error says that neither is there, or what is wrong.
Result<pools::Catalogue> catalogue_of(const std::string& file, const std::vector<json::Value>& objects);

}  // namespace berth::cli
