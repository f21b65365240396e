#include "simulator/scenario_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/config_repair.h"
#include "base/go/duration.h"
#include "base/object_text.h"
#include "model/etcd_snapshot.h"
#include "model/quantity.h"
#include "model/selector.h"

namespace berth::simulator {
namespace {

constexpr std::string_view kSpanHelp = "write \"30s\", \"10m\", \"6h\" or \"7d\"";
/// Three hundred years: sums of what is below stay within a time point.
constexpr double kMostHours = 24.0 * 365 * 100;

std::string shown(const json::Value& value) {
  return value.is_string() ? fmt::format("\"{}\"", json::as_view(value)) : json::serialize(value);
}

bool is_bare_number(const json::Value& value) {
  if (value.is_number()) return true;
  if (!value.is_string()) return false;
  const std::string_view text = json::as_view(value);
  return !text.empty() && text.find_first_not_of("0123456789.-+") == std::string_view::npos;
}

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number > -1e15 && number < 1e15)) return std::nullopt;
  return number;
}

}  // namespace

Result<Duration> parse_span(std::string_view text) {
  if (text.ends_with('d') || text.ends_with('w'))
    if (const auto days = parse_number(text.substr(0, text.size() - 1))) {
      const double hours = *days * 24 * (text.ends_with('w') ? 7 : 1);
      if (hours < 0 || hours > kMostHours) return invalid(fmt::format("\"{}\" is out of range", text));
      return Duration(static_cast<std::int64_t>(hours * 3.6e9));
    }
  if (parse_number(text) && text != "0") return invalid(fmt::format("\"{}\" has no unit: {}", text, kSpanHelp));
  const auto span = parse_go_duration(text);
  if (!span) return invalid(fmt::format("\"{}\" is not a duration: {}", text, kSpanHelp));
  if (*span < Duration(0)) return invalid(fmt::format("\"{}\" is negative", text));
  if (*span > std::chrono::hours(static_cast<std::int64_t>(kMostHours))) return invalid(fmt::format("\"{}\" is out of range", text));
  return *span;
}

std::optional<Duration> read_span(const config::Reader& at) {
  if (!at.is_present()) return std::nullopt;
  const json::Value& value = *at.value();
  if (value.is_number() && json::serialize(value) == "0") return Duration(0);
  const auto span = parse_span(value.is_string() ? json::as_view(value) : std::string_view(json::serialize(value)));
  if (span) return *span;
  at.problem(span.error().message);
  return std::nullopt;
}

std::optional<double> read_rate(const config::Reader& at) {
  if (!at.is_present()) return std::nullopt;
  const json::Value& value = *at.value();
  if (is_bare_number(value)) {
    at.problem(fmt::format("{} has no unit: write \"120/h\", \"2/m\", \"0.5/s\" or \"3/day\"", shown(value)));
    return std::nullopt;
  }
  const std::string_view text = value.is_string() ? json::as_view(value) : std::string_view();
  const std::size_t slash = text.find('/');
  if (const auto number = slash == std::string_view::npos ? std::nullopt : parse_number(text.substr(0, slash))) {
    const std::string unit(text.substr(slash + 1));
    static const std::map<std::string, double, std::less<>> kUnits = {{"s", 3600},       {"second", 3600},   {"m", 60},   {"min", 60},
                                                                      {"minute", 60},    {"h", 1},           {"hour", 1}, {"d", 1.0 / 24},
                                                                      {"day", 1.0 / 24}, {"week", 1.0 / 168}};
    if (*number < 0) {
      at.problem(fmt::format("\"{}\" is negative", text));
      return std::nullopt;
    }
    if (const auto found = kUnits.find(unit); found != kUnits.end()) return *number * found->second;
    if (const auto span = parse_span(unit); span && *span > Duration(0)) return *number * 3.6e9 / static_cast<double>(span->count());
  }
  at.problem(fmt::format("{} is not a rate such as \"120/h\", \"2/m\" or \"3/day\"", shown(value)));
  return std::nullopt;
}

std::optional<double> read_share(const config::Reader& at) {
  if (!at.is_present()) return std::nullopt;
  const std::string_view text = at.value()->is_string() ? json::as_view(*at.value()) : std::string_view();
  const auto number = text.ends_with('%') ? parse_number(text.substr(0, text.size() - 1)) : std::nullopt;
  if (number && *number >= 0 && *number <= 100) return *number / 100;
  at.problem(fmt::format("{} is not a share such as \"10%\"", shown(*at.value())));
  return std::nullopt;
}

std::int64_t read_count(const config::Reader& parent, std::string_view name, std::int64_t fallback) {
  const std::int64_t count = parent.integer(name, fallback);
  if (count >= 0) return count;
  parent.problem(name, fmt::format("{} is negative", count));
  return fallback;
}

void read_amount_into(AmountTexts& into, const config::Reader& at, const std::string& resource) {
  if (!at.is_present()) return;
  const json::Value& value = *at.value();
  const bool has_bytes = resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  const std::string text = value.is_string() ? std::string(json::as_view(value)) : json::serialize(value);
  const auto quantity = value.is_string() || value.is_number() ? model::Quantity::parse(text) : std::nullopt;
  if (!quantity)
    at.problem(fmt::format("{} is not a quantity such as {}", shown(value), has_bytes ? "512Mi or 4Gi" : "2 or 500m"));
  else if (quantity->sign() < 0)
    at.problem(fmt::format("{} is negative", shown(value)));
  else if (has_bytes && is_bare_number(value) && !quantity->is_zero())
    at.problem(fmt::format("{} has no unit: write 512Mi or 4Gi", shown(value)));
  else
    into[resource] = text;
}

AmountTexts read_amounts(const config::Reader& at) {
  AmountTexts out;
  if (!at.is_present()) return out;
  for (const auto& [name, value] : at.members()) read_amount_into(out, value, name);
  return out;
}

AmountTexts read_texts(const config::Reader& at) {
  AmountTexts out;
  if (!at.is_present()) return out;
  for (const auto& [name, value] : at.members())
    if (const auto texts = value.texts(); texts.size() == 1) out[name] = texts[0];
  return out;
}

std::vector<Duration> read_times(const config::Reader& at) {
  std::vector<Duration> out;
  if (!at.is_present()) return out;
  if (at.value()->is_array()) {
    for (const config::Reader& item : at.items())
      if (const auto span = read_span(item)) out.push_back(*span);
  } else if (const auto span = read_span(at)) {
    out.push_back(*span);
  }
  std::ranges::sort(out);
  return out;
}

std::optional<Duration> parse_time_of_day(std::string_view text) {
  constexpr Duration kDay = std::chrono::hours(24);
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    const auto hours = parse_number(text.substr(0, colon)), minutes = parse_number(text.substr(colon + 1));
    if (!hours || !minutes || *hours < 0 || *hours >= 24 || *minutes < 0 || *minutes >= 60) return std::nullopt;
    return std::chrono::minutes(static_cast<std::int64_t>(*hours) * 60 + static_cast<std::int64_t>(*minutes));
  }
  const auto span = parse_span(text);
  return span && *span < kDay ? std::optional(*span) : std::nullopt;
}

Arrivals read_arrivals(const config::Reader& at) {
  Arrivals out;
  if (!at.expect_object()) return out;
  at.only({"at", "every", "rate", "daily", "from", "until", "max"});
  if (at.has("at") + at.has("every") + at.has("rate") + at.has("daily") != 1)
    at.problem("one of at, every (constant), rate (Poisson) and daily (a curve over the day) is needed");
  out.from = read_span(at.field("from")).value_or(Duration(0));
  out.until = read_span(at.field("until"));
  if (out.until && *out.until <= out.from) at.problem("until", "is not after from");
  out.most = read_count(at, "max", 0);
  if (at.has("at")) {
    out.times = read_times(at.field("at"));
  } else if (at.has("every")) {
    out.kind = Arrivals::Kind::kConstant;
    out.period = read_span(at.field("every")).value_or(std::chrono::hours(1));
    if (out.period < std::chrono::milliseconds(1)) at.problem("every", "must be at least 1ms");
  } else if (at.has("rate")) {
    out.kind = Arrivals::Kind::kPoisson;
    out.per_hour = read_rate(at.field("rate")).value_or(0);
  } else if (at.has("daily")) {
    out.kind = Arrivals::Kind::kDaily;
    out.curve = read_day(at.field("daily"), [](const config::Reader& value) { return read_rate(value); });
  }
  return out;
}

std::optional<Lengths> read_lengths(const config::Reader& at) {
  if (!at.is_present()) return std::nullopt;
  Lengths out;
  if (!at.is_object()) {
    const auto span = read_span(at);
    if (!span) return std::nullopt;
    out.first = *span;
    return out;
  }
  at.only({"mean", "min", "max", "median", "p95"});
  const auto mean = read_span(at.field("mean")), low = read_span(at.field("min")), high = read_span(at.field("max")),
             median = read_span(at.field("median")), p95 = read_span(at.field("p95"));
  if (mean && !low && !high && !median && !p95) {
    out.kind = Lengths::Kind::kExponential;
    out.first = *mean;
  } else if (low && high && !mean && !median && !p95) {
    out.kind = Lengths::Kind::kUniform;
    std::tie(out.first, out.second) = std::pair(*low, *high);
    if (*high < *low) at.problem("max", "is less than min");
  } else if (median && p95 && !mean && !low && !high) {
    out.kind = Lengths::Kind::kLogNormal;
    std::tie(out.first, out.second) = std::pair(*median, *p95);
    if (*median <= Duration(0) || *p95 < *median) at.problem("p95", "must be at least the median, which must be more than 0s");
  } else {
    at.problem("a duration, or mean (exponential), or min and max (uniform), or median and p95 (log-normal)");
    return std::nullopt;
  }
  return out;
}

NodeChoice read_node_choice(const config::Reader& at) {
  NodeChoice out;
  if (!at.is_present()) return out;
  if (at.value()->is_array()) {
    for (const std::string& name : at.texts()) out.names.push_back(name);
    return out;
  }
  if (at.value()->is_int64()) {
    out.count = at.value()->get_int64();
    if (out.count <= 0) at.problem(fmt::format("{} nodes: a positive number is needed", out.count));
    return out;
  }
  if (at.value()->is_string()) {
    out.names.emplace_back(json::as_view(*at.value()));
    return out;
  }
  at.only({"count", "names", "zone", "selector"});
  out.count = read_count(at, "count", 0);
  out.names = at.strings("names");
  out.zone = at.string("zone");
  out.selector = at.string("selector");
  if (const auto selector = model::Selector::parse(out.selector); !selector) at.problem("selector", selector.error().message);
  if (out.is_empty()) at.problem("which nodes? a number, names, a zone or a selector");
  return out;
}

std::string resolve(const std::string& directory, const std::string& file) {
  if (directory.empty() || std::filesystem::path(file).is_absolute()) return file;
  return (std::filesystem::path(directory) / file).string();
}

namespace {

void add_documents(const json::Value& document, std::vector<json::Value>& out) {
  if (json::get_string(document, {"kind"}).ends_with("List") && json::find(document, "items") != nullptr) {
    const std::string_view list_kind = json::get_string(document, {"kind"});
    for (json::Value item : json::get_array(document, {"items"})) {
      if (!item.is_object()) continue;
      if (json::find(item, "kind") == nullptr && list_kind.size() > 4) {
        item.get_object()["kind"] = list_kind.substr(0, list_kind.size() - 4);
        item.get_object()["apiVersion"] = json::get_string(document, {"apiVersion"});
      }
      out.push_back(std::move(item));
    }
    return;
  }
  out.push_back(document);
}

}  // namespace

std::vector<json::Value> read_objects(const config::Reader& at, const std::string& directory) {
  std::vector<json::Value> out;
  if (!at.is_present()) return out;
  if (at.value()->is_array()) {
    for (const config::Reader& item : at.items()) {
      auto more = read_objects(item, directory);
      std::ranges::move(more, std::back_inserter(out));
    }
    return out;
  }
  if (at.value()->is_object()) {
    add_documents(*at.value(), out);
  } else if (at.value()->is_string()) {
    const std::string file = resolve(directory, std::string(json::as_view(*at.value())));
    const auto text = config::read_whole_file(file);
    if (!text) return at.problem(text.error().message), out;
    if (model::is_etcd_snapshot(*text)) {
      const auto notes = model::read_etcd_snapshot(*text, [&](json::Value object) { out.push_back(std::move(object)); });
      if (!notes) return at.problem(fmt::format("{}: {}", file, notes.error().message)), out;
      for (const std::string& sentence : model::sentences_of(*notes)) at.note(fmt::format("{}: {}", file, sentence));
      return out;
    }
    std::vector<std::string> changes;
    auto documents = config::parse_stream(*text, changes);
    for (const std::string& change : changes) at.note(fmt::format("{}: {}", file, change));
    if (!documents) return at.problem(fmt::format("{}: {}", file, config::told_of_cut(*text, documents.error().message))), out;
    for (const json::Value& document : *documents) add_documents(document, out);
  } else {
    at.problem("a file's name, an object, or a list of these");
  }
  for (const json::Value& object : out)
    if (!object.is_object() || json::get_string(object, {"kind"}).empty() || json::get_string(object, {"apiVersion"}).empty()) {
      at.problem("an object without kind or apiVersion");
      out.clear();
      break;
    }
  return out;
}

}  // namespace berth::simulator
