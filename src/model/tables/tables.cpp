#include "model/tables/tables.h"

#include "model/kind_hooks.h"
#include "model/tables/table_cells.h"

namespace berth::model {

using json::Array;
using json::Object;
using json::Value;

const Printer& printer_of(const KindInfo& kind) {
  static const Printer plain = {{{"Name"}, {"Age"}}, [](const Value& o, TimePoint now) -> Array {
                                  return {tables::name_of(o), tables::age_of(o, now)};
                                }};
  const auto& own = hooks_of(kind).printer;
  return own.is_default() ? plain : *own;
}

json::Array table_columns(const KindInfo& kind) {
  Array out;
  for (const Column& column : printer_of(kind).columns)
    out.push_back(Object{{"name", column.name},
                         {"type", column.type},
                         {"format", column.format.empty() && column.name == "Name" ? "name" : column.format},
                         {"description", column.description},
                         {"priority", column.priority}});
  return out;
}

json::Value table_row(const KindInfo& kind, const Value& object, TimePoint now, IncludeObject include) {
  Object row{{"cells", printer_of(kind).cells(object, now)}, {"object", nullptr}};
  if (include == IncludeObject::kObject) {
    row["object"] = object;
  } else if (include == IncludeObject::kMetadata) {
    row["object"] =
        Object{{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", json::get_object(object, {"metadata"})}};
  }
  return row;
}

json::Value make_table(const KindInfo& kind, std::span<const Value> objects, TimePoint now, IncludeObject include, Object list_metadata,
                       bool columns) {
  Array rows;
  for (const Value& object : objects) rows.push_back(table_row(kind, object, now, include));
  return Object{{"kind", "Table"},
                {"apiVersion", "meta.k8s.io/v1"},
                {"metadata", std::move(list_metadata)},
                {"columnDefinitions", columns ? Value(table_columns(kind)) : Value(nullptr)},
                {"rows", std::move(rows)}};
}

std::string human_duration(Duration d) {
  // k8s.io/apimachinery duration.HumanDuration: two units while the smaller still tells something.
  const std::int64_t seconds = d.count() / 1'000'000;
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return fmt::format("{}s", seconds);
  const std::int64_t minutes = seconds / 60;
  if (minutes < 10) return seconds % 60 == 0 ? fmt::format("{}m", minutes) : fmt::format("{}m{}s", minutes, seconds % 60);
  if (minutes < 180) return fmt::format("{}m", minutes);
  const std::int64_t hours = minutes / 60;
  if (hours < 8) return minutes % 60 == 0 ? fmt::format("{}h", hours) : fmt::format("{}h{}m", hours, minutes % 60);
  if (hours < 48) return fmt::format("{}h", hours);
  if (hours < 192) return hours % 24 == 0 ? fmt::format("{}d", hours / 24) : fmt::format("{}d{}h", hours / 24, hours % 24);
  if (hours < 24 * 365 * 2) return fmt::format("{}d", hours / 24);
  if (hours < 24 * 365 * 8)
    return hours / 24 % 365 == 0 ? fmt::format("{}y", hours / 24 / 365) : fmt::format("{}y{}d", hours / 24 / 365, hours / 24 % 365);
  return fmt::format("{}y", hours / 24 / 365);
}

std::string human_age(std::string_view rfc3339, TimePoint now) {
  const auto time = parse_rfc3339(rfc3339);
  return time ? human_duration(now - *time) : "<unknown>";
}

}  // namespace berth::model
