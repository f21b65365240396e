#include "dashboard/recording.h"

#include "base/clock.h"
#include "base/json.h"
#include "dashboard/rows.h"
#include "dashboard/sessions.h"

namespace berth::dashboard {
namespace {

constexpr std::size_t kMostProblems = 20, kPieceBytes = 256 * 1024, kMostQueuedRows = 8 * 1024 * 1024;

/// One answer under way.
class Sending : public std::enable_shared_from_this<Sending> {
 public:
  Sending(std::string text, EventLoop& loop, std::shared_ptr<net::ResponseWriter> writer)
      : text_(std::move(text)), loop_(loop), writer_(std::move(writer)) {}

  void go_on() {
    for (;;) {
      if (is_begun_ && writer_->queued_bytes() > kMostQueuedRows)
        return writer_->on_drain([self = shared_from_this()] { self->loop_.post([self] { self->go_on(); }); });
      std::string piece;
      while (at_ < text_.size() && piece.size() < kPieceBytes) {
        const auto end = std::min(text_.find('\n', at_), text_.size());
        const auto taken = rows_.take(std::string_view(text_).substr(at_, end - at_), piece);
        at_ = end + 1;
        if (!taken) return refuse(taken.error().message);
      }
      const bool is_end = at_ >= text_.size();
      if (is_end) piece += rows_.end();
      if (!is_begun_ && piece.starts_with("{\"kind\":\"end\"")) return refuse("the file is empty");
      if (!std::exchange(is_begun_, true)) begin();
      if (!writer_->write(make_bytes(std::move(piece)))) return;
      if (is_end) return writer_->finish();
    }
  }

 private:
  void begin() {
    net::Headers headers;
    headers.add("Content-Type", "application/x-ndjson");
    headers.add("Cache-Control", "no-store");
    add_security_headers(headers);
    writer_->start_stream(200, std::move(headers));
  }
  void refuse(std::string_view why) { writer_->respond(refusal(net::HttpRequest(), 422, why)); }

  std::string text_;
  EventLoop& loop_;
  std::shared_ptr<net::ResponseWriter> writer_;
  RecordingRows rows_;
  std::size_t at_ = 0;
  bool is_begun_ = false;
};

}  // namespace

Result<void> RecordingRows::begin(std::string_view line, std::string& out) {
  const auto header = json::parse(line);
  if (!header || json::get_string(*header, {"recording"}) != "berth/v1")
    return invalid("this is no recording: its first line must be {\"recording\":\"berth/v1\",\"start\":…}, as `berth record` writes it");
  const auto start = parse_rfc3339(json::get_string(*header, {"start"}));
  if (!start) return invalid(fmt::format("line 1: start \"{}\" is not a time (RFC 3339)", json::get_string(*header, {"start"})));
  out +=
      json::serialize(json::Object{
          {"kind", "recording"}, {"start", start->time_since_epoch().count() / 1000}, {"source", json::get_string(*header, {"source"})}}) +
      "\n";
  return {};
}

void RecordingRows::problem(std::string what) {
  ++problem_count_;
  if (problems_.size() < kMostProblems) problems_.push_back(fmt::format("line {}: {}", lines_, what));
}

Result<void> RecordingRows::take(std::string_view line, std::string& out) {
  ++lines_;
  if (lines_ == 1) return begin(line, out);
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return {};
  const auto event = json::parse(line);
  if (!event) {
    problem(event.error().message);
    return {};
  }
  const json::Value* at = json::find(*event, {"at"});
  const json::Value* object = json::find(*event, {"object"});
  const auto type = json::get_string(*event, {"type"});
  if (at == nullptr || !at->is_number() || object == nullptr || (type != "ADDED" && type != "MODIFIED" && type != "DELETED")) {
    problem("not {\"at\":<ms>,\"type\":\"ADDED|MODIFIED|DELETED\",\"object\":{…}}");
    return {};
  }
  std::int64_t ms = at->is_double() ? static_cast<std::int64_t>(at->get_double()) : json::get_int(*event, {"at"});
  if (ms < last_ms_) {
    problem(fmt::format("at {} is before the line above it ({}); shown at that time", ms, last_ms_));
    ms = last_ms_;
  }
  last_ms_ = ms;
  const auto kind = row_kind_of(*object);
  if (!kind) return {};
  const auto ns = json::get_string(*object, {"metadata", "namespace"}), name = json::get_string(*object, {"metadata", "name"});
  if (name.empty()) {
    problem("the object has no name");
    return {};
  }
  const std::string key = fmt::format("{}{}/{}", static_cast<int>(*kind), ns, name);
  json::Object row = type == "DELETED" ? gone_row(*kind, ns, name) : row_of(*kind, *object);
  if (type == "DELETED") {
    if (*kind == RowKind::kEvent) return {};
    seen_.erase(key);
  } else {
    const auto hash = std::hash<std::string>()(json::serialize(row));
    if (const auto [known, is_new] = seen_.emplace(key, hash); !is_new && std::exchange(known->second, hash) == hash) return {};
  }
  row["t"] = ms;
  ++shown_;
  out += json::serialize(row) + "\n";
  return {};
}

std::string RecordingRows::end() const {
  json::Array problems;
  for (const std::string& one : problems_) problems.emplace_back(one);
  if (problem_count_ > problems_.size()) problems.emplace_back(fmt::format("and {} more", problem_count_ - problems_.size()));
  return json::serialize(
             json::Object{{"kind", "end"}, {"length", last_ms_}, {"lines", lines_}, {"shown", shown_}, {"problems", std::move(problems)}}) +
         "\n";
}

void send_recording(std::string text, EventLoop& loop, std::shared_ptr<net::ResponseWriter> writer) {
  auto sending = std::make_shared<Sending>(std::move(text), loop, std::move(writer));
  loop.post([sending] { sending->go_on(); });
}

}  // namespace berth::dashboard
