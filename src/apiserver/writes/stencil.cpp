#include "apiserver/writes/stencil.h"

#include <algorithm>

namespace berth::apiserver {

std::optional<Stencil> Stencil::cut(std::string_view text, std::vector<Place> places) {
  std::ranges::stable_sort(places, std::less<>(), [](const Place& place) { return place.was.data(); });
  Stencil out;
  const char* at = text.data();
  for (const auto& [was, index] : places) {
    if (was.data() < at) return std::nullopt;
    out.rest_.append(at, was.data());
    out.places_.push_back({out.rest_.size(), index});
    at = was.data() + was.size();
  }
  out.rest_.append(at, text.data() + text.size());
  return out;
}

EncodedObject Stencil::fill(std::span<const std::string_view> texts, std::string_view revision) const {
  EncodedObject out;
  const auto text_of = [&](const At& place) { return place.text == kRevision ? revision : texts[place.text]; };
  std::size_t size = rest_.size();
  for (const auto& place : places_) size += text_of(place).size();
  out.value.reserve(size + 20);  // A revision is put in later.
  std::size_t from = 0;
  for (const auto& place : places_) {
    out.value.append(rest_, from, place.offset - from);
    from = place.offset;
    if (place.text == kRevision) out.revision_offset = out.value.size();
    out.value.append(text_of(place));
  }
  out.value.append(rest_, from);
  return out;
}

}  // namespace berth::apiserver
