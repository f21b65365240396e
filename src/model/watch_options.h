// What a watch can be asked for beyond what every server knows.
#pragma once
#include <string_view>

namespace berth::model {

/// A query parameter of berth's own, true with a resourceVersion and allowWatchBookmarks: once all has been sent that anybody was told is
/// written before the request, a bookmark with kInitialEventsEnd says so. Other servers pass over it.
inline constexpr std::string_view kTellWhenCurrent = "tellWhenCurrent";
/// The annotation of the bookmark that ends what a watch begins with (KEP-3157).
inline constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

}  // namespace berth::model
