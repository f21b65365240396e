// What several plugins ask of pods.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/pods/pod_resources.h"

namespace berth::apiserver {

using model::amounts_of;
using model::pod_total;
using model::ResourceAmounts;

/// The pod spec within an object of the given kind ("Pod", "Deployment", "CronJob", …) and where it is; null when there is none.
const json::Value* pod_spec_of(std::string_view kind, const json::Value& object);
json::Value* pod_spec_of(std::string_view kind, json::Value& object);

bool is_mirror_pod(const json::Value& pod);

/// All tolerations but those that another one covers (pkg/util/tolerations).
json::Array merge_tolerations(const json::Array& all);

/// "a=b,c=d" → map, in labels.ConvertSelectorToLabelsMap's grammar; nullopt when malformed.
std::optional<std::map<std::string, std::string>> parse_label_map(std::string_view text);
std::string render_label_map(const std::map<std::string, std::string>& labels);

}  // namespace berth::apiserver
