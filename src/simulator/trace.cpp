// Traces: a CSV file with a line for each pod that came.
#include <fmt/format.h>

#include "model/quantity.h"
#include "simulator/scenario_parts.h"

namespace berth::simulator {
namespace {

/// RFC 4180's fields of one line; `at` moves behind it. Quoted fields may have commas, quotes and line breaks. `ends`: whether the text
/// goes on, or ended with a line of its own and outside of quotes.
std::vector<std::string> read_line(std::string_view text, std::size_t& at, bool& ends) {
  ends = false;
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c != '"')
        fields.back() += c;
      else if (at + 1 < text.size() && text[at + 1] == '"')
        fields.back() += text[++at];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      ++at;
      ends = true;
      break;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

struct Units {
  Duration time{};                        ///< Of bare numbers; zero: they need a unit of their own.
  std::map<std::string, std::string> of;  ///< By resource: what is put behind bare numbers ("m", "Mi").
};

/// One row's problem, with its line.
struct TraceReader {
  const config::Reader& at;
  std::string file;
  Units units;
  std::map<std::string, std::size_t> columns;  ///< What a column means, and which it is.
  std::size_t line = 1;
  std::size_t width = 0;  ///< Of the header.
  std::size_t problems = 0;

  void problem(const std::string& message) {
    if (++problems <= 20) at.problem(fmt::format("{}:{}: {}", file, line, message));
  }
  [[nodiscard]] std::string_view field(const std::vector<std::string>& row, const std::string& name) const {
    const auto found = columns.find(name);
    return found == columns.end() || found->second >= row.size() ? std::string_view() : std::string_view(row[found->second]);
  }
  std::optional<Duration> time(std::string_view text, const char* name) {
    if (text.empty()) return std::nullopt;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) {
      if (units.time == Duration(0))
        return problem(fmt::format("{}: {} has no unit; say timeUnit in the scenario", name, text)), std::nullopt;
      const double micros = number * static_cast<double>(units.time.count());
      if (!(micros > -3e17 && micros < 3e17)) return problem(fmt::format("{}: {} is out of range", name, text)), std::nullopt;
      return Duration(static_cast<std::int64_t>(micros));
    }
    if (const auto moment = parse_rfc3339(text)) return moment->time_since_epoch();
    const auto span = parse_span(text);
    if (!span) return problem(fmt::format("{}: {}", name, span.error().message)), std::nullopt;
    return *span;
  }
};

constexpr std::array<std::string_view, 13> kColumns = {
    "at",  "size",   "end", "duration", "name",           "namespace",        "priorityClass",
    "cpu", "memory", "gpu", "pods",     "nvidia.com/gpu", "ephemeral-storage"};

bool find_columns(const config::Reader& at, const std::vector<std::string>& header, TraceReader& reader) {
  std::map<std::string, std::string> names;  // Meaning by the file's column name.
  for (const auto& [meaning, column] : read_texts(at.field("columns"))) {
    if (std::ranges::find(kColumns, std::string_view(meaning)) == kColumns.end() && meaning.find('/') == std::string::npos)
      at.field("columns").problem(meaning, fmt::format("not one of {}, or a resource's name with a slash{}", fmt::join(kColumns, ", "),
                                                       config::suggestion(meaning, kColumns)));
    names[column] = meaning == "gpu" ? "nvidia.com/gpu" : meaning;
  }
  std::vector<std::string_view> known;
  for (const std::string& name : header) known.push_back(name);
  for (const auto& [column, meaning] : names)
    if (std::ranges::find(header, column) == header.end())
      at.field("columns").problem(meaning,
                                  fmt::format("{} has no column \"{}\"{}", reader.file, column, config::suggestion(column, known)));
  for (std::size_t i = 0; i < header.size(); ++i) {
    const auto named = names.find(header[i]);
    if (named != names.end())
      reader.columns[named->second] = i;
    else if (std::ranges::find(kColumns, std::string_view(header[i])) != kColumns.end() && !reader.columns.contains(header[i]))
      reader.columns[header[i] == "gpu" ? "nvidia.com/gpu" : header[i]] = i;
  }
  if (!reader.columns.contains("at")) {
    at.problem(fmt::format("{}: no column \"at\" (when a pod comes); name it by columns: {{at: …}}", reader.file));
    return false;
  }
  return true;
}

std::shared_ptr<const AmountTexts> read_requests(const std::vector<std::string>& row, TraceReader& reader,
                                                 std::map<AmountTexts, std::shared_ptr<const AmountTexts>>& shared) {
  AmountTexts amounts;
  for (const auto& [name, column] : reader.columns) {
    if (name == "at" || name == "end" || name == "duration" || name == "name" || name == "namespace" || name == "priorityClass" ||
        name == "size")
      continue;
    std::string text = column < row.size() ? row[column] : "";
    if (text.empty() || text == "0") continue;
    const bool is_bare = text.find_first_not_of("0123456789.-") == std::string::npos;
    if (const auto unit = reader.units.of.find(name); is_bare && unit != reader.units.of.end()) text += unit->second;
    const auto quantity = model::Quantity::parse(text);
    if (!quantity || quantity->sign() < 0)
      reader.problem(fmt::format("{}: \"{}\" is not an amount", name, text));
    else if (is_bare && (name == "memory" || name == "ephemeral-storage") && !reader.units.of.contains(name))
      reader.problem(fmt::format("{}: {} has no unit; say units: {{{}: Mi}} in the scenario", name, text, name));
    else
      amounts[name] = text;
  }
  auto& slot = shared[amounts];
  if (!slot) slot = std::make_shared<const AmountTexts>(amounts);
  return slot;
}

TraceRow read_row(const std::vector<std::string>& row, TraceReader& reader,
                  std::map<AmountTexts, std::shared_ptr<const AmountTexts>>& shared) {
  TraceRow out;
  const auto at = reader.time(reader.field(row, "at"), "at");
  if (!at) {
    if (reader.field(row, "at").empty()) reader.problem("at: empty");
    return out;
  }
  out.at = *at;
  if (const auto end = reader.time(reader.field(row, "end"), "end")) {
    if (*end < *at) reader.problem(fmt::format("ends ({}) before it starts ({})", reader.field(row, "end"), reader.field(row, "at")));
    out.run_for = std::max<Duration>(*end - *at, std::chrono::milliseconds(1));
  }
  if (const auto length = reader.time(reader.field(row, "duration"), "duration")) {
    if (*length < Duration(0)) reader.problem(fmt::format("duration: {} is negative", reader.field(row, "duration")));
    out.run_for = std::max<Duration>(*length, std::chrono::milliseconds(1));
  }
  out.name = reader.field(row, "name");
  out.ns = reader.field(row, "namespace");
  out.priority_class = reader.field(row, "priorityClass");
  if (const std::string_view size = reader.field(row, "size"); !size.empty()) {
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), out.size);
    if (error != std::errc() || end != size.data() + size.size() || out.size < 1)
      reader.problem(fmt::format("size: \"{}\" is not a number of pods", size));
  }
  out.requests = read_requests(row, reader, shared);
  return out;
}

}  // namespace

std::vector<TraceRow> read_trace(const config::Reader& at, const PartContext& context) {
  std::vector<TraceRow> out;
  if (!at.expect_object()) return out;
  at.only({"file", "columns", "timeUnit", "units", "keepTimes", "speed"});
  const std::string file = at.string("file");
  if (file.empty()) return at.problem("file", "required: a CSV file with a header"), out;
  const auto text = config::read_whole_file(resolve(context.directory, file));
  if (!text) return at.problem("file", text.error().message), out;
  TraceReader reader{.at = at.field("file"), .file = file, .units = {}, .columns = {}};
  if (at.has("timeUnit")) {
    const std::string unit = at.string("timeUnit");
    const auto length = parse_go_duration("1" + unit);
    if (!length || *length <= Duration(0)) at.problem("timeUnit", fmt::format("\"{}\" is not one of us, ms, s, m and h", unit));
    reader.units.time = length.value_or(std::chrono::seconds(1));
  }
  reader.units.of = read_texts(at.field("units"));
  std::size_t position = 0;
  bool ends = false;
  const std::vector<std::string> header = read_line(*text, position, ends);
  reader.width = header.size();
  if (!find_columns(at, header, reader)) return out;
  std::map<AmountTexts, std::shared_ptr<const AmountTexts>> shared;
  while (position < text->size()) {
    ++reader.line;
    const auto row = read_line(*text, position, ends);
    if (row.size() == 1 && row[0].empty()) continue;
    // A row that lacks its end would run for ever, or ask for nothing.
    if (row.size() != reader.width) {
      reader.problem(fmt::format("has {} column{}, the header {}{}", row.size(), row.size() == 1 ? "" : "s", reader.width,
                                 row.size() < reader.width && !ends ? ": the file seems to be cut off" : ""));
      continue;
    }
    out.push_back(read_row(row, reader, shared));
  }
  if (reader.problems > 20) at.problem("file", fmt::format("{}: and {} problems more", file, reader.problems - 20));
  if (out.empty() && reader.problems == 0) at.problem("file", fmt::format("{}: no rows", file));
  std::ranges::stable_sort(out, {}, &TraceRow::at);
  // Traces count from days of their own: the first row comes at the start, unless the scenario says otherwise.
  if (!at.boolean("keepTimes", false) && !out.empty()) {
    const Duration first = out.front().at;
    for (TraceRow& row : out) row.at -= first;
  }
  if (const double speed = at.number("speed", 1); speed != 1) {
    if (!(speed > 0)) return at.problem("speed", "must be more than 0"), out;
    for (TraceRow& row : out) row.at = Duration(static_cast<std::int64_t>(static_cast<double>(row.at.count()) / speed));
  }
  if (!out.empty() && out.front().at < Duration(0)) at.problem("file", fmt::format("{}: rows before the scenario's start", file));
  return out;
}

}  // namespace berth::simulator
