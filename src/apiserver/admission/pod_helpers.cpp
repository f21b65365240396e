#include "apiserver/admission/pod_helpers.h"

#include "base/split.h"

namespace berth::apiserver {

const json::Value* pod_spec_of(std::string_view kind, const json::Value& object) {
  if (kind == "Pod") return json::find(object, {"spec"});
  if (kind == "PodTemplate") return json::find(object, {"template", "spec"});
  if (kind == "CronJob") return json::find(object, {"spec", "jobTemplate", "spec", "template", "spec"});
  for (std::string_view known : {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job"})
    if (kind == known) return json::find(object, {"spec", "template", "spec"});
  return nullptr;
}

json::Value* pod_spec_of(std::string_view kind, json::Value& object) {
  return const_cast<json::Value*>(pod_spec_of(kind, static_cast<const json::Value&>(object)));
}

bool is_mirror_pod(const json::Value& pod) {
  return json::find(pod, {"metadata", "annotations", "kubernetes.io/config.mirror"}) != nullptr;
}

namespace {

/// Does `wide` tolerate whatever `narrow` does?
bool covers(const json::Value& wide, const json::Value& narrow) {
  if (json::equal(wide, narrow)) return true;
  const auto same = [&](std::string_view field) { return json::get_string(wide, {field}) == json::get_string(narrow, {field}); };
  const auto is_any = [&](std::string_view field) { return json::get_string(wide, {field}).empty(); };
  const bool exists = json::get_string(wide, {"operator"}) == "Exists";
  if (!same("key") && !(is_any("key") && exists)) return false;
  if (!same("effect") && !is_any("effect")) return false;
  if (json::get_string(wide, {"effect"}) == "NoExecute") {
    const auto *its = json::find(wide, "tolerationSeconds"), *other = json::find(narrow, "tolerationSeconds");
    if (its != nullptr && (other == nullptr || its->get_int64() < other->get_int64())) return false;
  }
  if (exists) return true;
  return json::get_string(narrow, {"operator"}) != "Exists" && same("value");
}

}  // namespace

json::Array merge_tolerations(const json::Array& all) {
  json::Array merged;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto is_covered = [&](const json::Value& other) { return covers(other, all[i]); };
    if (std::any_of(merged.begin(), merged.end(), is_covered)) continue;
    // Of equal ones the first stays.
    const auto later = [&](const json::Value& other) { return !json::equal(other, all[i]) && covers(other, all[i]); };
    if (std::any_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), later)) continue;
    merged.push_back(all[i]);
  }
  return merged;
}

std::optional<std::map<std::string, std::string>> parse_label_map(std::string_view text) {
  std::map<std::string, std::string> labels;
  auto trim = [](std::string_view part) {
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    return part;
  };
  text = trim(text);
  if (text.empty()) return labels;
  if (text.ends_with(',')) text.remove_suffix(1);
  for (const auto pair : split(text, ',')) {
    const auto eq = pair.find('=');
    if (eq == std::string_view::npos) return std::nullopt;
    const auto key = trim(pair.substr(0, eq)), value = pair.substr(eq + 1);
    if (key.empty() || value.find('=') != std::string_view::npos) return std::nullopt;
    labels[std::string(key)] = std::string(trim(value));
  }
  return labels;
}

std::string render_label_map(const std::map<std::string, std::string>& labels) {
  std::string out;
  for (const auto& [key, value] : labels) {
    if (!out.empty()) out += ',';
    out += key + "=" + value;
  }
  return out;
}

}  // namespace berth::apiserver
