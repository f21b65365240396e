#include "dashboard/relay.h"

#include "base/lifeline.h"
#include "base/mutex.h"
#include "base/split.h"
#include "dashboard/sessions.h"
#include "net/onward.h"

namespace berth::dashboard {
namespace {

/// More than this queued for the browser: the cluster waits.
constexpr std::size_t kMostRelayed = 1024 * 1024;

/// The subresource that a path names: of /api/v1/namespaces/n/pods/p/exec/… "exec". A name may be "exec", too.
std::string_view subresource_of(const std::vector<std::string_view>& segments) {
  std::size_t at = segments[0] == "api" ? 2 : 3;
  if (segments.size() > at + 2 && segments[at] == "namespaces" && segments.size() > at + 3) at += 2;
  return segments.size() > at + 2 ? segments[at + 2] : std::string_view();
}

/// One request on its way. Kept by its callbacks until the answer has ended or the browser has gone.
struct Exchange : Guarded<Exchange> {
  std::shared_ptr<net::ResponseWriter> writer;
  EventLoop* loop = nullptr;
  Mutex mutex;
  std::unique_ptr<net::StreamHandle> handle BERTH_GUARDED_BY(mutex);
  bool is_over BERTH_GUARDED_BY(mutex) = false, is_held BERTH_GUARDED_BY(mutex) = false, is_answered = false;

  void begin(client::Transport& transport, net::HttpRequest request) {
    const auto self = shared_from_this();
    writer->on_close(guarded(&Exchange::let_go));
    auto made = transport.stream(std::move(request),
                                 {.on_header = [self](int status, const net::Headers& headers) { self->answer(status, headers); },
                                  .on_data = [self](std::string_view data) { self->pass(data); },
                                  .on_end = [self](std::string error) { self->end(error); }});
    MutexLock lock(mutex);
    if (is_over) {
      lock.unlock();
      return drop(std::move(made));
    }
    handle = std::move(made);
    if (is_held) handle->pause();
  }

  void answer(int status, const net::Headers& from) {
    net::Headers headers;
    // The cluster's answer is data, whatever it calls itself: it is never a page of this origin.
    const auto type = from.get("Content-Type");
    const bool is_known = type.starts_with("application/json") || type.starts_with("text/plain") || type.starts_with("application/yaml");
    headers.add("Content-Type", is_known ? std::string(type) : "application/octet-stream");
    for (const std::string_view name : {"Warning", "Retry-After"})
      if (const auto value = from.get(name); !value.empty()) headers.add(std::string(name), std::string(value));
    headers.add("Cache-Control", "no-store");
    add_security_headers(headers);
    is_answered = true;
    writer->start_stream(status, std::move(headers));
  }

  void pass(std::string_view data) {
    if (!writer->write(make_bytes(std::string(data)))) return let_go();
    if (writer->queued_bytes() <= kMostRelayed) return;
    {
      MutexLock lock(mutex);
      if (is_held || is_over) return;
      is_held = true;
      if (handle) handle->pause();
    }
    writer->on_drain([self = shared_from_this()] {
      MutexLock lock(self->mutex);
      self->is_held = false;
      if (self->handle) self->handle->resume();
    });
  }

  void end(const std::string& error) {
    if (error.empty()) {
      writer->finish();
    } else if (!is_answered) {
      net::HttpRequest program;
      writer->respond(refusal(program, 502, "the cluster does not answer: " + error));
    }
    // An answer that was cut off is cut off for the browser, too: its writer is dropped unfinished.
    writer.reset();
    let_go();
  }

  /// The handle may not be destroyed by its own callback, nor where others hold a lock.
  void let_go() {
    std::unique_ptr<net::StreamHandle> dropped;
    {
      MutexLock lock(mutex);
      is_over = true;
      dropped = std::move(handle);
    }
    drop(std::move(dropped));
  }
  void drop(std::unique_ptr<net::StreamHandle> dropped) const {
    if (dropped) loop->post([keep = std::shared_ptr(std::move(dropped))] {});
  }
};

}  // namespace

std::string relay_refusal(const net::HttpRequest& request, bool allows_changes) {
  const auto segments = words(request.path, '/').list();
  if (segments.empty() || (segments[0] != "api" && segments[0] != "apis" && segments[0] != "version"))
    return "the dashboard relays /api, /apis and /version only";
  if (net::asks_for_upgrade(request.headers)) return "the dashboard relays no change of protocol";
  for (const std::string_view closed : {"exec", "attach", "portforward", "proxy"})
    if (subresource_of(segments) == closed) return fmt::format("the dashboard does not relay \"{}\"", closed);
  // Paths of long ago that mean the same: /api/v1/proxy/nodes/… and /api/v1/watch/….
  for (std::size_t i = 0; i < std::min<std::size_t>(segments.size(), 4); ++i)
    if (segments[i] == "proxy") return "the dashboard does not relay \"proxy\"";
  if (request.method == "GET" || request.method == "HEAD") return {};
  const bool is_known = request.method == "POST" || request.method == "PUT" || request.method == "PATCH" || request.method == "DELETE";
  if (!is_known) return fmt::format("the dashboard does not relay {}", request.method);
  if (!allows_changes) return "the dashboard only reads; start it with --allow-changes to change things";
  return {};
}

net::HttpRequest relayed_request(const net::HttpRequest& request) {
  net::HttpRequest out;
  out.method = request.method;
  out.path = request.path;
  out.query = request.query;
  if (request.method != "GET" && request.method != "HEAD") out.body = request.body;
  for (const std::string_view name : {"Accept", "Content-Type"})
    if (const auto value = request.headers.get(name); !value.empty()) out.headers.add(std::string(name), std::string(value));
  out.headers.add("User-Agent", "berth-dashboard");
  return out;
}

void Relay::handle(const net::HttpRequest& request, std::shared_ptr<net::ResponseWriter> writer) {
  if (const std::string why = relay_refusal(request, allows_changes_); !why.empty()) return writer->respond(refusal(request, 403, why));
  auto exchange = std::make_shared<Exchange>();
  exchange->writer = std::move(writer);
  exchange->loop = &loop_;
  exchange->begin(*transport_, relayed_request(request));
}

}  // namespace berth::dashboard
