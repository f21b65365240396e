// berth record: a cluster's day as a file, for replays.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <future>
#include <thread>

#include "base/log.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/command/session.h"
#include "cli/planning/simulate.h"
#include "client/informer.h"
#include "simulator/audit_log.h"
#include "simulator/recording.h"
#include "simulator/report.h"
#include "simulator/scenario_values.h"

namespace berth::cli {
namespace {

using simulator::RecordedKind;
using simulator::RecordingWriter;

/// Watches every recorded kind that the server serves and the user may list. Lives on the loop.
class Recorder {
 public:
  Recorder(client::Client& client, RecordingWriter& writer, TimePoint start) : client_(client), writer_(writer), start_(start) {}

  void begin(const std::vector<const RecordedKind*>& kinds) {
    for (const RecordedKind* kind : kinds) {
      const auto* info = model::find_resource(kind->group, kind->plural);
      informers_.push_back(std::make_unique<client::Informer>(client_, info->gvr(), client::InformerOptions{.is_optional = true}));
      client::InformerHandler handler;
      handler.on_add = [this, kind](const client::ObjectRef& object) { write("ADDED", *kind, *object); };
      handler.on_update = [this, kind](const client::ObjectRef&, const client::ObjectRef& object) { write("MODIFIED", *kind, *object); };
      handler.on_delete = [this, kind](const client::ObjectRef& object) { write("DELETED", *kind, *object); };
      informers_.back()->add_handler(std::move(handler));
      informers_.back()->start();
    }
    flush();
  }
  void end() {
    client_.loop()->cancel(timer_);
    informers_.clear();
  }

 private:
  /// What the first lists bring was there at the start, however long they took.
  [[nodiscard]] std::int64_t now_ms() const {
    for (const auto& informer : informers_)
      if (!informer->has_synced()) return 0;
    return std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(client_.loop()->now() - start_).count(), 1);
  }
  void write(const char* type, const RecordedKind& kind, const client::Object& object) {
    json::Value document = object.document();
    if (!document.is_object()) return;
    // The items of a list leave out what the list says.
    document.get_object()["kind"] = kind.kind;
    document.get_object()["apiVersion"] = kind.api_version;
    last_ms_ = std::max(last_ms_, now_ms());
    writer_.add(last_ms_, type, json::serialize(document));
  }
  void flush() {
    writer_.flush();
    timer_ = client_.loop()->schedule_after(std::chrono::seconds(1), [this] { flush(); });
  }

  client::Client& client_;
  RecordingWriter& writer_;
  TimePoint start_;
  std::int64_t last_ms_ = 0;
  TimerId timer_ = TimerId::kNone;
  std::vector<std::unique_ptr<client::Informer>> informers_;
};

/// The kinds that the server serves; says which it may not list.
Result<std::vector<const RecordedKind*>> served_kinds(client::Client& client) {
  std::vector<const RecordedKind*> out;
  std::vector<std::string> refused;
  for (const RecordedKind& kind : simulator::recorded_kinds()) {
    client::Call call{.verb = "list", .gvr = model::find_resource(kind.group, kind.plural)->gvr(), .query = "limit=1"};
    call.answer = client::Answer::kNone;
    const auto answer = client.call_and_wait(std::move(call));
    if (answer) {
      out.push_back(&kind);
    } else if (answer.error().code == 403 && kind.plural != "nodes" && kind.plural != "pods") {
      refused.push_back(kind.plural);
    } else if (answer.error().code != 404) {
      return fail(ErrorCode::kUnavailable, fmt::format("listing {}: {}", kind.plural, answer.error().message));
    }
  }
  if (!refused.empty())
    std::fprintf(stderr, "note: not allowed to list %s: the recording goes without\n", fmt::format("{}", fmt::join(refused, ", ")).c_str());
  return out;
}

/// Until the time is over, or a signal comes.
void wait(std::optional<Duration> length) {
  if (!length) return static_cast<void>(wait_for_signal());
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*length);
  const timespec limit{static_cast<time_t>(seconds.count()), static_cast<long>((*length - seconds).count() * 1000)};
  sigtimedwait(&signals, nullptr, &limit);
}

int convert_audit_logs(const std::vector<std::string>& logs, const std::string& file) {
  const auto day = simulator::read_audit_logs(logs);
  if (!day) return report(day.error());
  for (const std::string& note : day->notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  auto writer = RecordingWriter::open(file, day->head.start, day->head.source);
  if (!writer) return report(writer.error());
  static constexpr std::array<const char*, 3> kTypes = {"ADDED", "MODIFIED", "DELETED"};
  for (const simulator::RecordedEvent& event : day->events)
    (*writer)->add(event.at_ms, kTypes[static_cast<std::size_t>(event.type)], json::serialize(event.object));
  if (const auto closed = (*writer)->close(); !closed) return report(closed.error());
  std::printf("%s: %zu changes in %s\n", file.c_str(), day->events.size(),
              simulator::show_time(std::chrono::milliseconds(day->events.back().at_ms)).c_str());
  return 0;
}

}  // namespace

int run_record(const std::vector<std::string>& args) {
  CLI::App app(
      "Records what happens to a cluster's objects, any cluster's, as a file that `berth simulate` and the dashboard replay. Ctrl-C ends "
      "it. "
      "Pods are recorded as they are, with their environment variables; Secrets and ConfigMaps are not",
      "berth record");
  ConnectionFlags connection;
  connection.add_to(app);
  std::string file = "recording.jsonl", length_text;
  app.add_option("-o,--output", file, "The file to write")->capture_default_str();
  app.add_option("--for", length_text, "How long, such as 1h or 1d; without: until Ctrl-C");
  std::vector<std::string> audit_logs;
  app.add_option(
      "--audit-log", audit_logs,
      "Make the recording from these audit logs (audit.k8s.io, levels RequestResponse or Request) instead of from a live cluster");
  if (const auto code = parse_args(app, args)) return *code;
  if (!audit_logs.empty()) return convert_audit_logs(audit_logs, file);
  std::optional<Duration> length;
  if (!length_text.empty()) {
    const auto span = simulator::parse_span(length_text);
    if (!span) return report(Error{ErrorCode::kInvalid, "--for: " + span.error().message});
    length = *span;
  }
  block_signals();
  const auto session = Session::open(connection);
  if (!session) return report(session.error());
  const auto kinds = served_kinds((*session)->client());
  if (!kinds) return report(kinds.error());
  const TimePoint start = SystemClock().now();
  auto writer = RecordingWriter::open(file, start, "berth record");
  if (!writer) return report(writer.error());
  ThreadLoop& loop = lasting_loop("record");
  client::Client client((*session)->client().transport(), &loop, "berth-record");
  Recorder recorder(client, **writer, start);
  loop.post([&] { recorder.begin(*kinds); });
  std::fprintf(stderr, "recording to %s%s\n", file.c_str(), length ? "" : "; Ctrl-C ends it");
  wait(length);
  std::promise<void> ended;
  loop.post([&] {
    recorder.end();
    ended.set_value();
  });
  ended.get_future().wait();
  loop.stop();
  const std::int64_t lines = (*writer)->lines();
  if (const auto closed = (*writer)->close(); !closed) return report(closed.error());
  std::printf("%s: %lld changes in %s\n", file.c_str(), static_cast<long long>(lines),
              format_go_duration(std::chrono::floor<std::chrono::seconds>(SystemClock().now() - start)).c_str());
  return 0;
}

}  // namespace berth::cli
