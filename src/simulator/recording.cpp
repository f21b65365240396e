#include "simulator/recording.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "model/kinds.h"
#include "simulator/audit_log.h"

namespace berth::simulator {

const std::vector<RecordedKind>& recorded_kinds() {
  static const std::vector<RecordedKind> all = [] {
    std::vector<RecordedKind> out;
    for (const auto& [group, plural] :
         std::initializer_list<std::pair<const char*, const char*>>{{"", "namespaces"},
                                                                    {"scheduling.k8s.io", "priorityclasses"},
                                                                    {"storage.k8s.io", "storageclasses"},
                                                                    {"", "persistentvolumes"},
                                                                    {"", "persistentvolumeclaims"},
                                                                    {"", "nodes"},
                                                                    {"policy", "poddisruptionbudgets"},
                                                                    {"", "resourcequotas"},
                                                                    {"", "services"},
                                                                    {"apps", "deployments"},
                                                                    {"apps", "replicasets"},
                                                                    {"apps", "statefulsets"},
                                                                    {"apps", "daemonsets"},
                                                                    {"", "replicationcontrollers"},
                                                                    {"batch", "jobs"},
                                                                    {"batch", "cronjobs"},
                                                                    {"autoscaling", "horizontalpodautoscalers"},
                                                                    {"machine.openshift.io", "machinesets"},
                                                                    {"machine.openshift.io", "machines"},
                                                                    {"autoscaling.openshift.io", "clusterautoscalers"},
                                                                    {"", "pods"},
                                                                    {"", "events"}})
      if (const model::KindInfo* kind = model::find_resource(group, plural))
        out.push_back({kind->group, kind->plural, kind->kind, kind->api_version()});
    return out;
  }();
  return all;
}

Result<std::unique_ptr<RecordingWriter>> RecordingWriter::open(const std::string& file, TimePoint start, const std::string& source) {
  std::FILE* out = std::fopen(file.c_str(), "w");
  if (out == nullptr) return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", file, std::strerror(errno)));
  std::unique_ptr<RecordingWriter> writer(new RecordingWriter(file, out));
  const std::string head =
      json::serialize(json::Object{{"recording", "berth/v1"}, {"start", format_rfc3339(start)}, {"source", source}}) + "\n";
  writer->failed_ = std::fwrite(head.data(), 1, head.size(), out) != head.size();
  return writer;
}

RecordingWriter::~RecordingWriter() {
  if (out_ != nullptr) std::fclose(out_);
}

void RecordingWriter::add(std::int64_t at_ms, std::string_view type, std::string_view object) {
  const std::string line = fmt::format("{{\"at\":{},\"type\":\"{}\",\"object\":{}}}\n", at_ms, type, object);
  failed_ |= std::fwrite(line.data(), 1, line.size(), out_) != line.size();
  ++lines_;
}

void RecordingWriter::flush() { failed_ |= std::fflush(out_) != 0; }

Result<void> RecordingWriter::close() {
  failed_ |= std::fclose(std::exchange(out_, nullptr)) != 0;
  if (failed_) return fail(ErrorCode::kUnavailable, fmt::format("{}: could not be written whole: is the disk full?", file_));
  return {};
}

class RecordingTap::Sink final : public apiserver::WatchSink {
 public:
  explicit Sink(RecordingTap& tap) : tap_(tap) {}
  bool deliver(const apiserver::WatchEvent& event) override {
    if (!event.object || tap_.is_replacing_) return true;
    const char* type = event.type == apiserver::WatchEventType::kAdded      ? "ADDED"
                       : event.type == apiserver::WatchEventType::kModified ? "MODIFIED"
                                                                            : "DELETED";
    tap_.writer_->add(tap_.now_ms(), type, event.object->text().here());
    return true;
  }

 private:
  RecordingTap& tap_;
};

RecordingTap::~RecordingTap() = default;

std::int64_t RecordingTap::now_ms() const {
  return std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - start_).count(), 0);
}

void RecordingTap::add_event(std::string_view event) {
  if (writer_ != nullptr) writer_->add(now_ms(), "ADDED", event);
}

void RecordingTap::attach(apiserver::ObjectCache* cache) {
  watches_.clear();
  if (cache == nullptr || writer_ == nullptr) return;
  is_replacing_ = std::exchange(has_begun_, true);
  for (const RecordedKind& kind : recorded_kinds()) {
    apiserver::WatchFilter filter;
    const model::KindInfo* info = model::find_resource(kind.group, kind.plural);
    filter.prefix = apiserver::make_prefix(info->storage_group, kind.plural);
    watches_.push_back(cache->watch(filter, 0, true, std::make_shared<Sink>(*this)));
  }
  is_replacing_ = false;
}

namespace {

Result<RecordedEvent> read_event(const std::string& line, const std::string& place) {
  auto document = json::parse(line);
  if (!document) return invalid(fmt::format("{}: {}", place, document.error().message));
  RecordedEvent out;
  const std::string_view type = json::get_string(*document, {"type"});
  if (type == "ADDED")
    out.type = RecordedEvent::Type::kAdded;
  else if (type == "MODIFIED")
    out.type = RecordedEvent::Type::kModified;
  else if (type == "DELETED")
    out.type = RecordedEvent::Type::kDeleted;
  else
    return invalid(fmt::format("{}: type \"{}\" is not ADDED, MODIFIED or DELETED", place, type));
  const json::Value* at = json::find(*document, "at");
  if (at == nullptr || !at->is_int64() || at->get_int64() < 0)
    return invalid(fmt::format("{}: at must be whole milliseconds since the start", place));
  out.at_ms = at->get_int64();
  json::Value* object = json::find(*document, "object");
  if (object == nullptr || !object->is_object() || json::get_string(*object, {"kind"}).empty() ||
      json::get_string(*object, {"metadata", "name"}).empty())
    return invalid(fmt::format("{}: object must have kind and metadata.name", place));
  out.object = std::move(*object);
  return out;
}

Result<RecordingHead> read_head(const std::string& line, const std::string& file) {
  const auto head = json::parse(line);
  if (!head || json::get_string(*head, {"recording"}) != "berth/v1")
    return invalid(fmt::format(
        "{}:1: not a recording, which begins with {{\"recording\":\"berth/v1\",\"start\":…}}, and no audit log of audit.k8s.io", file));
  RecordingHead out;
  out.source = json::get_string(*head, {"source"});
  const auto start = parse_rfc3339(json::get_string(*head, {"start"}));
  if (!start) return invalid(fmt::format("{}:1: start \"{}\" is not a time", file, json::get_string(*head, {"start"})));
  out.start = *start;
  return out;
}

/// The last line that is not empty, found from the end.
std::string last_line(std::ifstream& in) {
  constexpr std::streamoff kStep = 1 << 16;
  in.clear();
  in.seekg(0, std::ios::end);
  std::string tail;
  for (std::streamoff left = in.tellg(); left > 0;) {
    const std::streamoff step = std::min(kStep, left);
    std::string part(static_cast<std::size_t>(step), '\0');
    in.seekg(left -= step);
    in.read(part.data(), step);
    tail.insert(0, part);
    const std::size_t end = tail.find_last_not_of('\n');
    const std::size_t before = end == std::string::npos ? end : tail.rfind('\n', end);
    if (before != std::string::npos) return tail.substr(before + 1, end - before);
  }
  return tail;
}

}  // namespace

bool is_recording(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  if (!line.starts_with('{')) return false;
  if (is_audit_line(line)) return true;
  const auto head = json::parse(line);
  return head && !json::get_string(*head, {"recording"}).empty();
}

Result<RecordingSpan> span_of_recording(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(ErrorCode::kNotFound, fmt::format("{}: {}", file, std::strerror(errno)));
  std::string line;
  std::getline(in, line);
  if (is_audit_line(line)) {
    auto day = read_audit_logs({file});
    if (!day) return std::unexpected(day.error());
    return RecordingSpan{day->head.start, std::chrono::milliseconds(day->events.back().at_ms)};
  }
  auto head = read_head(line, file);
  if (!head) return std::unexpected(head.error());
  std::int64_t last = 0;
  // Time goes forward: the last line knows. A file that was cut off is refused by who reads all of it.
  if (const std::string event = last_line(in); !event.empty())
    if (const auto document = json::parse(event)) last = json::get_int(*document, {"at"});
  return RecordingSpan{head->start, std::chrono::milliseconds(last)};
}

Result<RecordingHead> read_recording(const std::string& file, const std::function<Result<void>(RecordedEvent)>& each) {
  std::ifstream in(file);
  if (!in) return fail(ErrorCode::kNotFound, fmt::format("{}: {}", file, std::strerror(errno)));
  std::string line;
  std::getline(in, line);
  if (is_audit_line(line)) {
    auto day = read_audit_logs({file});
    if (!day) return std::unexpected(day.error());
    for (RecordedEvent& event : day->events)
      if (auto done = each(std::move(event)); !done) return std::unexpected(done.error());
    day->head.notes = std::move(day->notes);
    return day->head;
  }
  auto head = read_head(line, file);
  if (!head) return head;
  std::int64_t last = 0;
  for (std::size_t number = 2; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const std::string place = fmt::format("{}:{}", file, number);
    if (in.eof()) return invalid(fmt::format("{}: the recording is cut off in the middle of a line", place));
    auto event = read_event(line, place);
    if (!event) return std::unexpected(event.error());
    if (event->at_ms < last) return invalid(fmt::format("{}: {} ms comes after {} ms", place, event->at_ms, last));
    last = event->at_ms;
    if (auto done = each(std::move(*event)); !done) return std::unexpected(done.error());
  }
  return head;
}

}  // namespace berth::simulator
