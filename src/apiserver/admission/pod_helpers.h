// What several plugins ask of pods.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/quantity.h"

namespace berth::apiserver {

enum class Qos { kGuaranteed, kBurstable, kBestEffort };
/// The pod's QoS class from its containers' cpu and memory (pkg/apis/core/v1/helper/qos).
Qos pod_qos(const json::Value& pod);

using ResourceAmounts = std::map<std::string, model::Quantity, std::less<>>;
/// A resource list object's parsed quantities; malformed ones are left out.
ResourceAmounts amounts_of(const json::Value* resource_list);
/// What a pod asks for in all (`field`: "requests" or "limits"): containers and restartable init containers summed, the largest init
/// container, plus overhead (k8s.io/component-helpers/resource).
ResourceAmounts pod_total(const json::Value& pod, std::string_view field);

/// The pod spec within an object of the given kind ("Pod", "Deployment", "CronJob", …) and where it is; null when there is none.
const json::Value* pod_spec_of(std::string_view kind, const json::Value& object);
json::Value* pod_spec_of(std::string_view kind, json::Value& object);

bool is_mirror_pod(const json::Value& pod);

/// Does a toleration tolerate a taint (key, value, effect)? With effect empty: any effect.
bool tolerates(const json::Value& toleration, std::string_view key, std::string_view value, std::string_view effect);

/// "a=b,c=d" → map, in labels.ConvertSelectorToLabelsMap's grammar; nullopt when malformed.
std::optional<std::map<std::string, std::string>> parse_label_map(std::string_view text);
std::string render_label_map(const std::map<std::string, std::string>& labels);

}  // namespace berth::apiserver
