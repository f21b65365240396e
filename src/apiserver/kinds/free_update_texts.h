// What may differ between two updates that are otherwise alike (writes/alike.h).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/kinds.h"

namespace berth::apiserver {

/// Texts of a class are copied and compared with each other, and nothing else: whatever becomes of an update is the same for other texts
/// that are the same and, where the class is ordered, stand in the same order.
enum class TextClass : std::uint8_t {
  kFree,      ///< Of a creation: one of its kind's (model/kind_hooks.h).
  kKept,      ///< A part of the object that the update leaves as bytes, whatever it is.
  kRevision,  ///< metadata.resourceVersion.
  kName,
  kUid,
  kCreated,
  kDeleted,
  kLabel,
  kAnnotation,
  kOwnerTime,  ///< Of an entry of field owners; the time of the update is one.
  kReferredName,
  kReferredUid,
  kAddress,
  kConditionTime,
  kStartTime,
  kStateTime,
  kContainer,
  kVolume,  ///< Of a service account's token: that is made up for each pod.
  kNode,
  kNodeAddress,
  kMachine,
  kProvider,
  kRange,
  kHolder,
  kRenewal,
  kAcquired,
  kCount,       ///< A number above 0, whose place among the others of an update is the same; 0 is no other number.
  kGeneration,  ///< A number too; the next one is one of the texts of an update.
  kMessage,
};

bool is_ordered(TextClass of);
/// Whether a text, without its quotes, is one of the class that no rule has anything to say about. Given by no more than its class to
/// whoever asks for its form (an address's family); 0: it is not.
char form_of(TextClass of, std::string_view text);

/// The places of a kind's updates.
struct FreeUpdateTexts {
  struct Place {
    std::string path;  ///< "status.conditions.*.lastTransitionTime"; *: of each element or member.
    TextClass is = TextClass::kKept;
    bool (*fits)(std::string_view text) = nullptr;  ///< What else it must be; null: nothing.
  };
  /// In the names of list items in metadata.managedFields: k:{"ip":"…"}, or, of no field, v:"…".
  struct Key {
    std::string_view field;
    TextClass is;
  };
  std::vector<Place> places;
  std::vector<Key> keys;
  /// Patches that name no more than these ("metadata.uid"), and no other updates; all of them, if empty.
  std::span<const std::string_view> named;

  void add(std::vector<Place> more) { places.insert(places.end(), more.begin(), more.end()); }
};

/// Null: updates of these always go the long way.
const FreeUpdateTexts* free_update_texts(const model::KindInfo& kind, std::string_view subresource);

}  // namespace berth::apiserver
