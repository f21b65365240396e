#include "apiserver/kinds/free_update_texts.h"

#include <algorithm>
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

const std::vector<FreeUpdateTexts::Place> kOfAll = {{"metadata.name", TextClass::kName},
                                                    {"metadata.uid", TextClass::kUid},
                                                    {"metadata.resourceVersion", TextClass::kRevision},
                                                    {"metadata.creationTimestamp", TextClass::kCreated},
                                                    {"metadata.managedFields.*.time", TextClass::kOwnerTime}};

std::vector<FreeUpdateTexts::Place> and_of_all(std::vector<FreeUpdateTexts::Place> places) {
  places.insert(places.end(), kOfAll.begin(), kOfAll.end());
  return places;
}

/// As kubelets report a pod. What stands in a status besides (images, reasons, codes) is alike in pods that are.
FreeUpdateTexts of_pod_status() {
  using enum TextClass;
  FreeUpdateTexts out;
  out.is_of_status = true;
  out.keys = {{"ip", kAddress}};
  out.places = and_of_all({{"spec", kKept},
                           {"metadata.deletionTimestamp", kDeleted},
                           {"metadata.annotations.*", kAnnotation},
                           {"status.hostIP", kAddress},
                           {"status.hostIPs.*.ip", kAddress},
                           {"status.podIP", kAddress},
                           {"status.podIPs.*.ip", kAddress},
                           {"status.$setElementOrder/podIPs.*.ip", kAddress},
                           {"status.$setElementOrder/hostIPs.*.ip", kAddress},
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

/// As leases are renewed.
FreeUpdateTexts of_lease() {
  using enum TextClass;
  FreeUpdateTexts out;
  out.keys = {{"uid", kReferredUid}};
  out.places = and_of_all({{"metadata.ownerReferences.*.name", kReferredName},
                           {"metadata.ownerReferences.*.uid", kReferredUid},
                           {"spec.holderIdentity", kHolder},
                           {"spec.renewTime", kRenewal},
                           {"spec.acquireTime", kAcquired}});
  return out;
}

}  // namespace

bool is_ordered(TextClass of) {
  // Field owners stand in the order of their times, list items among the fields in that of their keys.
  return of == TextClass::kOwnerTime || of == TextClass::kAddress || of == TextClass::kReferredUid;
}

char form_of(TextClass of, std::string_view text) {
  using enum TextClass;
  const auto if_so = [](bool fits) { return fits ? 'x' : '\0'; };
  switch (of) {
    case kKept:
      return 'x';
    case kRevision:
      return if_so(text.size() < 20 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }));
    case kAnnotation:
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
    case kName:
    case kReferredName:
    case kContainer:
    case kVolume:
    case kHolder:
      return if_so(is_plain(text));
  }
  return '\0';
}

const FreeUpdateTexts* free_update_texts(const model::KindInfo& kind, std::string_view subresource) {
  static const FreeUpdateTexts kPodStatus = of_pod_status(), kLease = of_lease();
  if (kind.group.empty() && kind.plural == "pods" && subresource == "status") return &kPodStatus;
  if (kind.group == "coordination.k8s.io" && kind.plural == "leases" && kind.version == "v1" && subresource.empty()) return &kLease;
  return nullptr;
}

}  // namespace berth::apiserver
