#include "apiserver/reads/reading.h"
#include "apiserver/reads/reads.h"
#include "apiserver/reads/watch_stream.h"
#include "model/watch_options.h"

namespace berth::apiserver {

void Reads::watch(const RequestPtr& request) {
  if (auto wrong = check_list_options(*request, true)) return respond.status(*request, *wrong);
  auto selection = read_selection(*request);
  if (!selection) return respond.status(*request, selection.error());
  const auto revision = read_revision(request->query.get("resourceVersion"));
  if (!revision) return respond.status(*request, revision.error());

  WatchStream::Options stream;
  stream.bookmarks = request->query.flag("allowWatchBookmarks");
  const bool has_choice = request->query.has("sendInitialEvents");
  const bool send_initial = request->query.flag("sendInitialEvents");
  // Without a revision (or with "any"), a watch starts with what is there, unless the client says that it does not want that.
  stream.initial_state = has_choice ? send_initial : !*revision || **revision == 0;
  // Who takes bookmarks and starts with what is there learns where that ends without asking for it.
  stream.mark_initial_end = stream.bookmarks && stream.initial_state;
  stream.mark_current = stream.bookmarks && !stream.initial_state && request->query.flag(model::kTellWhenCurrent);
  stream.timeout = options.default_watch_timeout;
  if (const auto seconds = request->query.get("timeoutSeconds"); !seconds.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), number);
    if (error != std::errc() || end != seconds.data() + seconds.size())
      return respond.status(*request, model::bad_request(fmt::format("strconv.ParseInt: parsing \"{}\": invalid syntax", seconds)));
    if (number > 0) stream.timeout = std::chrono::seconds(std::min<std::int64_t>(number, 1'000'000));
  }
  if (stream.initial_state && *revision && **revision > ground.cache->revision()) {
    // "Not older than" what is not there yet: waited for, like a list.
    const auto open = std::make_shared<WatchStream>(*this, request, stream);
    return ground.cache->wait_for(**revision, std::chrono::seconds(3),
                                  [this, open, selection = std::move(*selection), wanted = **revision](bool reached) mutable {
                                    if (reached) return open->start(std::move(selection), wanted);
                                    open->refuse(too_large_revision(wanted, ground.cache->revision()));
                                  });
  }
  const Revision after = *revision && **revision > 0 ? **revision : ground.cache->revision();
  std::make_shared<WatchStream>(*this, request, stream)->start(std::move(*selection), after);
}

}  // namespace berth::apiserver
