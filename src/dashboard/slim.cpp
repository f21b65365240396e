#include "dashboard/slim.h"

#include <array>

#include "base/json_scan.h"

namespace berth::dashboard {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024 * 1024;

std::string slim_list(RowKind kind, std::string_view body) {
  static const json::PathScanner scanner({"apiVersion", "kind", "metadata", "items"});
  std::array<std::string_view, 4> at;
  if (!scanner.scan(body, at) || at[0].empty() || at[1].empty() || at[2].empty()) return std::string(body);
  std::string out = fmt::format(R"({{"apiVersion":{},"kind":{},"metadata":{},"items":[)", at[0], at[1], at[2]);
  bool is_first = true;
  json::for_each_element(at[3], [&](std::string_view item) {
    if (!std::exchange(is_first, false)) out += ',';
    out += slim_object(kind, item);
  });
  out += "]}";
  return out;
}

/// One event of a watch, without its end of line.
std::string slim_line(RowKind kind, std::string_view line) {
  static const json::PathScanner scanner({"type", "object"});
  std::array<std::string_view, 2> at;
  const bool is_object = scanner.scan(line, at) && (at[0] == R"("ADDED")" || at[0] == R"("MODIFIED")" || at[0] == R"("DELETED")");
  if (!is_object) return std::string(line);
  return fmt::format(R"({{"type":{},"object":{}}})", at[0], slim_object(kind, at[1]));
}

/// The lines of one watch, which come in pieces.
struct Lines {
  bool is_watch = false;
  std::string partial;

  /// Whole lines slim, what is left kept.
  std::string take(RowKind kind, std::string_view data) {
    partial += data;
    std::string out;
    std::size_t from = 0;
    for (auto end = partial.find('\n'); end != std::string::npos; end = partial.find('\n', from)) {
      out += slim_line(kind, std::string_view(partial).substr(from, end - from));
      out += '\n';
      from = end + 1;
    }
    partial.erase(0, from);
    if (partial.size() > kLongestLine) out += std::exchange(partial, {});  // Whoever reads it refuses it.
    return out;
  }
};

class SlimTransport final : public client::Transport {
 public:
  SlimTransport(std::shared_ptr<client::Transport> inner, RowKind kind) : inner_(std::move(inner)), kind_(kind) {}

  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    inner_->send(std::move(request), [kind = kind_, done = std::move(done)](net::HttpResponse response) {
      if (response.status == 200) response.body = slim_list(kind, response.body);
      done(std::move(response));
    });
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override {
    const auto lines = std::make_shared<Lines>();
    callbacks.on_header = [lines, on_header = std::move(callbacks.on_header)](int status, const net::Headers& headers) {
      lines->is_watch = status == 200;
      if (on_header) on_header(status, headers);
    };
    callbacks.on_data = [lines, kind = kind_, on_data = std::move(callbacks.on_data)](std::string_view data) {
      if (!lines->is_watch) return on_data(data);
      if (const auto whole = lines->take(kind, data); !whole.empty()) on_data(whole);
    };
    callbacks.on_event = nullptr;  // Whole objects.
    return inner_->stream(std::move(request), std::move(callbacks));
  }
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override {
    inner_->upgrade(std::move(request), std::move(done));
  }
  [[nodiscard]] bool is_in_process() const override { return inner_->is_in_process(); }

 private:
  std::shared_ptr<client::Transport> inner_;
  RowKind kind_;
};

}  // namespace

std::string slim_object(RowKind kind, std::string_view object) {
  const auto document = json::parse(object);
  if (!document || !document->is_object()) return std::string(object);
  json::Object metadata;
  for (const std::string_view field : {"name", "namespace", "uid", "resourceVersion"})
    if (const auto text = json::get_string(*document, {"metadata", field}); !text.empty()) metadata[field] = text;
  return json::serialize(json::Object{{"metadata", std::move(metadata)}, {"row", row_of(kind, *document)}});
}

std::string_view row_in(const std::string& slim) {
  static const json::PathScanner scanner({"row"});
  std::array<std::string_view, 1> at;
  return scanner.scan(slim, at) ? at[0] : std::string_view();
}

std::shared_ptr<client::Transport> with_slim_objects(std::shared_ptr<client::Transport> inner, RowKind kind) {
  return std::make_shared<SlimTransport>(std::move(inner), kind);
}

}  // namespace berth::dashboard
