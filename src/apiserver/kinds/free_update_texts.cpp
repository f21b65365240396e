#include "apiserver/kinds/free_update_texts.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "model/validation/validation.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kLongest = 1024, kLongestAnnotation = 16 * 1024;

/// A text that stands for itself.
bool is_plain(std::string_view text) {
  return !text.empty() && text.size() <= kLongest &&
         std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

/// The same in order within a key, whatever stands behind it.
bool is_word(std::string_view text) {
  return is_plain(text) && std::ranges::all_of(text, [](char c) { return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); });
}

/// A text with escapes that are written in one way only.
bool is_written_one_way(std::string_view text) {
  if (text.size() > kLongestAnnotation) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c < 0x20 || c >= 0x7f || c == '"') return false;
    if (c == '\\' && (++i == text.size() || std::string_view(R"("\nt)").find(text[i]) == std::string_view::npos)) return false;
  }
  return true;
}

/// A time of this millennium as it is written down: in UTC, with so many digits behind the second.
bool is_time(std::string_view text, std::string_view form) {
  if (text.size() != form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return false;
  const auto number = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  const auto part = [&](std::size_t at) { return static_cast<unsigned>(number(at)); };
  const std::chrono::year_month_day date(std::chrono::year(number(0) * 100 + number(2)), std::chrono::month(part(5)),
                                         std::chrono::day(part(8)));
  return text.front() == '2' && date.ok() && part(11) < 24 && part(14) < 60 && part(17) < 60;
}
bool is_second_text(std::string_view text) { return is_time(text, "0000-00-00T00:00:00Z"); }
bool is_microsecond_text(std::string_view text) { return is_time(text, "0000-00-00T00:00:00.000000Z"); }

/// "4", "6": of a range of addresses of that family.
char form_of_range(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return '\0';
  const char family = form_of(TextClass::kAddress, text.substr(0, slash));
  const auto bits = text.substr(slash + 1);
  if (family == '\0' || bits.empty() || bits.size() > 3 || (bits.front() == '0' && bits.size() > 1)) return '\0';
  int count = 0;
  for (const char c : bits) {
    if (c < '0' || c > '9') return '\0';
    count = count * 10 + (c - '0');
  }
  return count <= (family == '4' ? 32 : 128) ? family : '\0';
}

FreeUpdateTexts of_all() {
  using enum TextClass;
  return {.places = {{"metadata.name", kName},
                     {"metadata.uid", kUid},
                     {"metadata.resourceVersion", kRevision},
                     {"metadata.creationTimestamp", kCreated},
                     {"metadata.managedFields.*.time", kOwnerTime}}};
}

constexpr std::array<std::string_view, 3> kStatus = {"status", "metadata.uid", "metadata.resourceVersion"};
constexpr std::array<std::string_view, 1> kReplicas = {"spec.replicas"};

/// What pods of one workload, or of many alike, do not share.
FreeUpdateTexts of_pod() {
  using enum TextClass;
  auto out = of_all();
  out.keys = {{"ip", kAddress}, {"uid", kReferredUid}};
  out.add({{"metadata.generateName", kReferredName},
           {"metadata.ownerReferences.*.name", kReferredName},
           {"metadata.ownerReferences.*.uid", kReferredUid},
           {"metadata.labels.*", kLabel},
           {"metadata.deletionTimestamp", kDeleted},
           {"status.hostIP", kAddress},
           {"status.hostIPs.*.ip", kAddress},
           {"status.podIP", kAddress},
           {"status.podIPs.*.ip", kAddress},
           {"status.startTime", kStartTime},
           {"status.conditions.*.lastTransitionTime", kConditionTime},
           {"status.conditions.*.lastProbeTime", kConditionTime}});
  for (const std::string list : {"containerStatuses", "initContainerStatuses"}) {
    const auto add = [&](std::string_view path, TextClass is) { out.places.push_back({fmt::format("status.{}.*.{}", list, path), is}); };
    add("containerID", kContainer);
    add("volumeMounts.*.name", kVolume);
    add("state.running.startedAt", kStateTime);
    for (const std::string ended : {"state.terminated.", "lastState.terminated."}) {
      add(ended + "containerID", kContainer);
      add(ended + "startedAt", kStateTime);
      add(ended + "finishedAt", kStateTime);
    }
  }
  return out;
}

/// As kubelets report a pod. What stands in a status besides (images, reasons, codes) is alike in pods that are.
FreeUpdateTexts of_pod_status() {
  using enum TextClass;
  auto out = of_pod();
  out.named = kStatus;
  out.add({{"spec", kKept},
           {"metadata.annotations.*", kAnnotation},
           {"status.$setElementOrder/podIPs.*.ip", kAddress},
           {"status.$setElementOrder/hostIPs.*.ip", kAddress}});
  return out;
}

/// As their labels, finalizers and gates change. What annotations say is looked at.
FreeUpdateTexts of_pod_itself() {
  using enum TextClass;
  auto out = of_pod();
  out.add({{"spec.nodeName", kNode},
           {"spec.volumes.*.name", kVolume},
           {"spec.containers.*.volumeMounts.*.name", kVolume},
           {"spec.initContainers.*.volumeMounts.*.name", kVolume}});
  return out;
}

FreeUpdateTexts of_node() {
  using enum TextClass;
  auto out = of_all();
  out.keys = {{"", kRange}};
  out.add({{"metadata.labels.*", kLabel},
           {"metadata.annotations.*", kAnnotation},
           {"status.addresses.*.address", kNodeAddress},
           {"status.conditions.*.lastHeartbeatTime", kConditionTime},
           {"status.conditions.*.lastTransitionTime", kConditionTime},
           {"status.nodeInfo.machineID", kMachine},
           {"status.nodeInfo.systemUUID", kMachine},
           {"status.nodeInfo.bootID", kMachine}});
  return out;
}

/// As kubelets report a node.
FreeUpdateTexts of_node_status() {
  auto out = of_node();
  out.named = kStatus;
  out.add({{"spec", TextClass::kKept}});
  return out;
}

/// As nodes get labels and taints.
FreeUpdateTexts of_node_itself() {
  using enum TextClass;
  auto out = of_node();
  out.add({{"spec.podCIDR", kRange}, {"spec.podCIDRs.*", kRange}, {"spec.providerID", kProvider}, {"spec.taints.*.timeAdded", kStateTime}});
  return out;
}

FreeUpdateTexts of_workload() {
  using enum TextClass;
  auto out = of_all();
  out.keys = {{"uid", kReferredUid}};
  out.add({{"metadata.labels.*", kLabel},
           {"metadata.annotations.*", kAnnotation},
           {"metadata.ownerReferences.*.name", kReferredName},
           {"metadata.ownerReferences.*.uid", kReferredUid}});
  return out;
}

/// As workloads are scaled.
FreeUpdateTexts of_workload_scale() {
  using enum TextClass;
  auto out = of_workload();
  out.named = kReplicas;
  out.add({{"metadata.generation", kGeneration},
           {"spec.replicas", kCount},
           {"spec.selector", kKept},
           {"spec.template", kKept},
           {"status", kKept}});
  return out;
}

/// As controllers report what they count.
FreeUpdateTexts of_workload_status() {
  using enum TextClass;
  auto out = of_workload();
  out.named = kStatus;
  out.add({{"spec", kKept},
           {"metadata.generation", kCount},
           {"status.conditions.*.lastTransitionTime", kConditionTime},
           {"status.conditions.*.lastUpdateTime", kConditionTime},
           {"status.conditions.*.message", kMessage},
           {"status.currentRevision", kReferredName},
           {"status.updateRevision", kReferredName},
           {"status.replicas", kCount},
           {"status.*", kCount}});
  return out;
}

/// As leases are renewed.
FreeUpdateTexts of_lease() {
  using enum TextClass;
  auto out = of_all();
  out.keys = {{"uid", kReferredUid}};
  out.add({{"metadata.ownerReferences.*.name", kReferredName},
           {"metadata.ownerReferences.*.uid", kReferredUid},
           {"spec.holderIdentity", kHolder},
           {"spec.renewTime", kRenewal},
           {"spec.acquireTime", kAcquired}});
  return out;
}

}  // namespace

bool is_ordered(TextClass of) {
  // Field owners stand in the order of their times, list items among the fields in that of their keys.
  return of == TextClass::kOwnerTime || of == TextClass::kAddress || of == TextClass::kReferredUid || of == TextClass::kRange ||
         of == TextClass::kCount;
}

char form_of(TextClass of, std::string_view text) {
  using enum TextClass;
  const auto if_so = [](bool fits) { return fits ? 'x' : '\0'; };
  switch (of) {
    case kKept:
      return 'x';
    case kRevision:
      // "" and "0" insist on none.
      if (text.empty() || text == "0") return text.empty() ? '-' : '0';
      return if_so(text.size() < 20 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }));
    case kLabel:
      return if_so(is_plain(text) && model::validation::check_label_value(text).empty());
    case kCount:
    case kGeneration:
      return if_so(!text.empty() && text.size() < 10 && text.front() != '0' &&
                   std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }));
    case kAnnotation:
    case kMessage:
      return if_so(is_written_one_way(text));
    case kAddress:
      if (!is_plain(text) || !model::validation::is_ip(text)) return '\0';
      if (text.find(':') == std::string_view::npos) return '4';
      return text.find('.') == std::string_view::npos ? '6' : '\0';  // What holds the other family's is of neither.
    case kCreated:
    case kDeleted:
    case kOwnerTime:
    case kConditionTime:
    case kStartTime:
    case kStateTime:
      return if_so(is_second_text(text));
    case kRenewal:
    case kAcquired:
      return if_so(is_microsecond_text(text));
    case kUid:
    case kReferredUid:
      return if_so(is_word(text));
    case kVolume:
      return if_so(text.starts_with("kube-api-access-") && model::validation::check_dns1123_label(text).empty());
    case kNode:
      return if_so(is_plain(text) && model::validation::check_dns1123_subdomain(text).empty());
    case kRange:
      return form_of_range(text);
    case kFree:
    case kName:
    case kReferredName:
    case kContainer:
    case kNodeAddress:
    case kMachine:
    case kProvider:
    case kHolder:
      return if_so(is_plain(text));
  }
  return '\0';
}

const FreeUpdateTexts* free_update_texts(const model::KindInfo& kind, std::string_view subresource) {
  struct Of {
    std::string_view group, plural, subresource;
    FreeUpdateTexts texts;
  };
  static const Of kAll[] = {{"", "pods", "status", of_pod_status()},
                            {"", "pods", "", of_pod_itself()},
                            {"", "nodes", "status", of_node_status()},
                            {"", "nodes", "", of_node_itself()},
                            {"coordination.k8s.io", "leases", "", of_lease()},
                            {"apps", "deployments", "status", of_workload_status()},
                            {"apps", "replicasets", "status", of_workload_status()},
                            {"apps", "statefulsets", "status", of_workload_status()},
                            {"apps", "daemonsets", "status", of_workload_status()},
                            {"apps", "deployments", "scale", of_workload_scale()},
                            {"apps", "replicasets", "scale", of_workload_scale()},
                            {"apps", "statefulsets", "scale", of_workload_scale()},
                            {"policy", "poddisruptionbudgets", "status", of_workload_status()}};
  const auto* found = std::ranges::find_if(
      kAll, [&](const Of& of) { return of.plural == kind.plural && of.group == kind.group && of.subresource == subresource; });
  return found == std::end(kAll) || kind.version != "v1" ? nullptr : &found->texts;
}

}  // namespace berth::apiserver
