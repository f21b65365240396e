#include "node/agent/system_logs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "/logs";
constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::size_t kMaxQueuedBytes = 512 * 1024;

/// A file on its way: kept alive by the reader's drain.
class FileStream : public std::enable_shared_from_this<FileStream> {
 public:
  FileStream(std::ifstream file, std::shared_ptr<net::ResponseWriter> writer) : file_(std::move(file)), writer_(std::move(writer)) {}

  void pump() {
    std::string chunk(kChunkBytes, '\0');
    while (file_.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file_.gcount() > 0) {
      const auto bytes = static_cast<std::size_t>(file_.gcount());
      if (!writer_->write(make_bytes(chunk.substr(0, bytes)))) return;
      if (writer_->queued_bytes() >= kMaxQueuedBytes) return writer_->on_drain([self = shared_from_this()] { self->pump(); });
    }
    writer_->finish();
  }

 private:
  std::ifstream file_;
  const std::shared_ptr<net::ResponseWriter> writer_;
};

void answer(net::ResponseWriter& writer, int status, std::string_view type, std::string body) {
  net::HttpResponse response{status, {}, std::move(body)};
  response.headers.add("Content-Type", std::string(type));
  writer.respond(std::move(response));
}

void answer_missing(net::ResponseWriter& writer) { answer(writer, 404, "text/plain; charset=utf-8", "404 page not found\n"); }

std::string html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// Go's net/http lists a folder so.
std::string listing(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    names.push_back(entry.path().filename().string() + (entry.is_directory(error) ? "/" : ""));
  std::ranges::sort(names);
  std::string out = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n";
  for (const auto& name : names) {
    std::string link = net::percent_encode(name);
    if (name.ends_with('/')) link = net::percent_encode(name.substr(0, name.size() - 1)) + "/";
    out += fmt::format("<a href=\"{}\">{}</a>\n", link, html(name));
  }
  return out + "</pre>\n";
}

}  // namespace

void answer_system_log(const std::string& root, const std::string& path, const std::shared_ptr<net::ResponseWriter>& writer) {
  std::error_code error;
  const fs::path top = fs::canonical(root, error);
  const fs::path at = error ? fs::path() : fs::canonical(top / fs::path(path.substr(kPrefix.size())).relative_path(), error);
  if (error || !std::ranges::equal(
                   std::ranges::subrange(top.begin(), top.end()),
                   std::ranges::subrange(at.begin(), std::ranges::next(at.begin(), std::distance(top.begin(), top.end()), at.end()))))
    return answer_missing(*writer);
  if (fs::is_directory(at, error)) {
    if (path.ends_with('/')) return answer(*writer, 200, "text/html; charset=utf-8", listing(at));
    net::HttpResponse moved{301, {}, {}};
    moved.headers.add("Location", net::percent_encode(fs::path(path).filename().string()) + "/");
    return writer->respond(std::move(moved));
  }
  std::ifstream file(at, std::ios::binary);
  if (!fs::is_regular_file(at, error) || !file) return answer_missing(*writer);
  net::Headers headers;
  headers.add("Content-Type", "text/plain; charset=utf-8");
  writer->start_stream(200, std::move(headers));
  std::make_shared<FileStream>(std::move(file), writer)->pump();
}

}  // namespace berth::node::agent
