#include "tests/integration/story_masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace berth::integration {
namespace {

using json::Value;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Whether `text` at `at` looks like `shape`: 9 a digit, x a hexadecimal digit, anything else itself.
bool has_shape(std::string_view text, std::size_t at, std::string_view shape) {
  if (at + shape.size() > text.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const char c = text[at + i], want = shape[i];
    if (want == '9' ? !is_digit(c) : want == 'x' ? !is_hex(c) : c != want) return false;
  }
  return true;
}

/// The end of four numbers with dots between that begin at `at`, or 0.
std::size_t address_end(std::string_view text, std::size_t at) {
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && (at >= text.size() || text[at++] != '.')) return 0;
    std::size_t digits = 0;
    while (digits < 4 && at + digits < text.size() && is_digit(text[at + digits])) ++digits;
    if (digits == 0 || digits > 3) return 0;
    at += digits;
  }
  return at < text.size() && is_word(text[at]) ? 0 : at;
}

std::size_t time_end(std::string_view text, std::size_t at) {
  if (!has_shape(text, at, "9999-99-99T99:99:99")) return 0;
  at += 19;
  if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1]))
    for (++at; at < text.size() && is_digit(text[at]);) ++at;
  return at < text.size() && text[at] == 'Z' ? at + 1 : 0;
}

constexpr std::string_view kRandomLetters = "bcdfghjklmnpqrstvwxz2456789";

/// The end of a template's or revision's hash that begins at `at`, or 0.
std::size_t hash_end(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && kRandomLetters.contains(text[end])) ++end;
  if (end - at < 7 || end - at > 10) return 0;
  return end < text.size() && is_word(text[end]) && text[end] != '_' ? 0 : end;
}

bool is_random_end(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '-') return false;
  for (std::size_t i = at + 1; i < at + 6; ++i)
    if (!kRandomLetters.contains(text[i])) return false;
  return at + 6 == text.size() || !(is_digit(text[at + 6]) || (text[at + 6] >= 'a' && text[at + 6] <= 'z'));
}

void mask_all(Value& value) {
  if (value.is_string()) {
    value = mask(json::as_view(value));
  } else if (auto* list = value.if_array()) {
    for (Value& one : *list) mask_all(one);
  } else if (auto* object = value.if_object()) {
    json::Object out;
    for (auto& [key, member] : *object) {
      if (key == "resourceVersion" || key == "nodePort")
        member = "N";
      else
        mask_all(member);
      out[mask(key)] = std::move(member);
    }
    *object = std::move(out);
  }
}

void drop_token_volumes(Value* list, std::string_view key) {
  if (list == nullptr || !list->is_object()) return;
  json::Array kept;
  for (const Value& one : json::get_array(*list, {key}))
    if (!json::get_string(one, {"name"}).contains("kube-api-access")) kept.push_back(one);
  list->get_object()[key] = std::move(kept);
}

template <typename Texts>
json::Array list_of(const Texts& texts) {
  json::Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

/// "Type=Status Reason", sorted; of those that `wanted` names, or all.
json::Array conditions_of(const Value& status, const std::set<std::string_view>& wanted) {
  std::vector<std::string> said;
  for (const Value& c : json::get_array(status, {"conditions"}))
    if (wanted.empty() || wanted.contains(json::get_string(c, {"type"})))
      said.push_back(
          fmt::format("{}={} {}", json::get_string(c, {"type"}), json::get_string(c, {"status"}), json::get_string(c, {"reason"})));
  std::ranges::sort(said);
  return list_of(said);
}

json::Array managers_of(const Value& metadata) {
  std::set<std::string> said;
  for (const Value& field : json::get_array(metadata, {"managedFields"})) {
    const std::string_view manager = json::get_string(field, {"manager"}), subresource = json::get_string(field, {"subresource"});
    said.insert(fmt::format("{} {}{}{}", manager.contains("kube") ? manager : "other", json::get_string(field, {"operation"}),
                            subresource.empty() ? "" : " ", subresource));
  }
  return list_of(said);
}

void show_pod(Value& item) {
  Value& spec = *json::find(item, "spec");
  for (const char* field : {"tolerations", "nodeName", "enableServiceLinks", "dnsPolicy", "schedulerName", "securityContext",
                            "preemptionPolicy", "priority", "serviceAccount", "serviceAccountName"})
    json::erase(spec, {field});
  if (Value* containers = json::find(spec, "containers"); containers != nullptr && containers->is_array())
    for (Value& one : containers->get_array()) drop_token_volumes(&one, "volumeMounts");
  drop_token_volumes(&spec, "volumes");
  const Value status = *json::find(item, "status");
  json::Object kept{{"phase", json::get_string(status, {"phase"})},
                    {"reason", json::get_string(status, {"reason"})},
                    {"targets", conditions_of(status, {"DisruptionTarget", "Ready", "FailureTarget"})}};
  item.get_object()["status"] = std::move(kept);
}

}  // namespace

std::string mask(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char before = at == 0 ? ' ' : text[at - 1];
    std::size_t end = 0;
    if (has_shape(text, at, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")) {
      out += "UID", at += 36;
    } else if ((end = time_end(text, at)) != 0) {
      out += "TIME", at = end;
    } else if (is_digit(text[at]) && !is_word(before) && (end = address_end(text, at)) != 0) {
      out += "IP", at = end;
    } else if (text.substr(at).starts_with("node-") && has_shape(text, at + 5, "9") && text[at + 5] >= '1' && text[at + 5] <= '3' &&
               (at + 6 == text.size() || !is_word(text[at + 6])) && !(before >= 'a' && before <= 'z')) {
      out += "NODE", at += 6;
    } else if ((has_shape(text, at, "-29999999") || has_shape(text, at, "-30999999")) &&
               (at + 9 == text.size() || !is_word(text[at + 9]))) {
      out += "-MINUTES", at += 9;
    } else if (is_random_end(text, at)) {
      out += "-xxxxx", at += 6;
    } else if ((!is_word(before) || before == '_') && (end = hash_end(text, at)) != 0) {
      out += "HASH", at = end;
    } else if (text.substr(at).starts_with("zone-") && at + 5 < text.size() && text[at + 5] >= 'a' && text[at + 5] <= 'c' &&
               !is_word(before) && (at + 6 == text.size() || !is_word(text[at + 6]))) {
      out += "ZONE", at += 6;
    } else {
      out += text[at++];
    }
  }
  return out;
}

Value shown(std::string_view resource, Value item) {
  static const std::set<std::string_view> kManaged = {"deployments",
                                                      "replicasets",
                                                      "statefulsets",
                                                      "daemonsets",
                                                      "jobs",
                                                      "cronjobs",
                                                      "replicationcontrollers",
                                                      "poddisruptionbudgets",
                                                      "horizontalpodautoscalers"};
  Value& metadata = *json::find(item, "metadata");
  const json::Array managers = managers_of(metadata);
  for (const char* field : {"uid", "resourceVersion", "creationTimestamp", "selfLink", "namespace", "managedFields"})
    json::erase(metadata, {field});
  for (const char* field : {"apiVersion", "kind"}) json::erase(item, {field});
  if (kManaged.contains(resource)) metadata.get_object()["managers"] = managers;
  if (resource == "pods") show_pod(item);
  if (resource == "serviceaccounts") json::erase(item, {"secrets"});
  if (resource == "endpointslices") json::erase(metadata, {"generation"});  // Counts the steps between.
  if (resource == "leases") json::erase(item, {"spec"});
  if (resource == "configmaps" && json::get_string(item, {"metadata", "name"}) == "kube-root-ca.crt") json::erase(item, {"data"});
  if (resource == "secrets") {
    std::set<std::string> keys;
    for (const auto& [key, value] : json::get_object(item, {"data"})) keys.insert(key);
    item.get_object()["data"] = list_of(keys);
  }
  if (resource == "nodes") {
    const Value status = json::find(item, "status") == nullptr ? Value(json::Object{}) : *json::find(item, "status");
    item.get_object()["status"] = json::Object{{"conditions", conditions_of(status, {})}};
    for (const char* field : {"addresses", "podCIDR", "podCIDRs"}) json::erase(item, {"spec", field});
  }
  mask_all(item);
  return item;
}

Value shown_event(const Value& item) {
  std::string_view source = json::get_string(item, {"source", "component"});
  if (source.empty()) source = json::get_string(item, {"reportingComponent"});
  constexpr std::string_view kCombined = "(combined from similar events): ";
  std::string_view message = json::get_string(item, {"message"});
  if (message.starts_with(kCombined)) message.remove_prefix(kCombined.size());
  const auto about =
      fmt::format("{}/{}", json::get_string(item, {"involvedObject", "kind"}), json::get_string(item, {"involvedObject", "name"}));
  json::Array out;
  out.emplace_back(mask(about));
  out.emplace_back(json::get_string(item, {"type"}));
  out.emplace_back(json::get_string(item, {"reason"}));
  out.emplace_back(mask(message));
  out.emplace_back(source);
  return out;
}

}  // namespace berth::integration
