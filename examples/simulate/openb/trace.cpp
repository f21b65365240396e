#include "trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "go_random.h"

namespace openb {
namespace {

using berth::invalid;
using berth::Result;

constexpr double kArrived = 1.3;  ///< Of the GPUs.
/// The simulator's informers draw once each between the pods' order and the nodes'.
constexpr int kInformers = 10;
constexpr std::int64_t kWhole = 1000;

/// Lines without their ends; gzipped files are read through.
Result<std::vector<std::string>> read_lines(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return invalid(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  std::string text;
  char buffer[1 << 16];
  int got = 0;
  while ((got = gzread(file, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(got));
  int code = 0;
  const std::string why = got < 0 ? gzerror(file, &code) : "";
  // A stream that is cut off reads well to its end, and closes badly.
  const int closed = gzclose_r(file);
  if (got < 0 || closed != Z_OK) return invalid(fmt::format("{}: cannot be read{}{}", path, why.empty() ? ": it is cut off" : ": ", why));
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    while (!out.back().empty() && out.back().back() == '\r') out.back().pop_back();
    at = end + 1;
  }
  if (!out.empty() && out.front().starts_with("\xef\xbb\xbf")) out.front().erase(0, 3);
  return out;
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line)
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

/// One file's rows by the names of its columns.
class Table {
 public:
  static Result<Table> read(const std::string& path, std::initializer_list<const char*> required) {
    auto lines = read_lines(path);
    if (!lines) return std::unexpected(lines.error());
    Table out;
    out.path_ = path;
    if (lines->empty()) return invalid(fmt::format("{}: is empty", path));
    const auto names = cells(lines->front());
    for (std::size_t i = 0; i < names.size(); ++i) out.columns_.emplace(names[i], i);
    for (const char* name : required)
      if (!out.columns_.contains(name))
        return invalid(fmt::format("{}:1: there is no column \"{}\"; there are {}", path, name, fmt::join(names, ", ")));
    for (std::size_t i = 1; i < lines->size(); ++i) {
      if ((*lines)[i].empty()) continue;
      out.rows_.push_back({i + 1, cells((*lines)[i])});
      if (out.rows_.back().second.size() != names.size())
        return invalid(fmt::format("{}:{}: {} columns, not {}", path, i + 1, out.rows_.back().second.size(), names.size()));
    }
    if (out.rows_.empty()) return invalid(fmt::format("{}: there are no rows", path));
    return out;
  }

  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] std::string place(std::size_t row) const { return fmt::format("{}:{}", path_, rows_[row].first); }
  /// Empty where there is no such column.
  [[nodiscard]] std::string text(std::size_t row, const char* column) const {
    const auto at = columns_.find(column);
    return at == columns_.end() ? std::string() : rows_[row].second[at->second];
  }
  /// A whole number from 0 to `most`; also written "4.0". The first that is none is kept in `error`.
  std::int64_t number(std::size_t row, const char* column, std::int64_t most) {
    const std::string value = text(row, column);
    double out = -1;
    const auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (wrong == std::errc() && end == value.data() + value.size() && out >= 0 && out <= static_cast<double>(most) &&
        out == static_cast<double>(static_cast<std::int64_t>(out)))
      return static_cast<std::int64_t>(out);
    if (error.empty()) error = fmt::format("{}: {}: \"{}\" is not a whole number from 0 to {}", place(row), column, value, most);
    return 0;
  }
  std::string error;

 private:
  std::string path_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::pair<std::size_t, std::vector<std::string>>> rows_;  ///< With their lines.
};

/// Sorts by name; the error names one that stands twice.
template <typename T>
Result<void> order(std::vector<T>& list, const std::string& path) {
  std::ranges::sort(list, {}, &T::name);
  const auto twice = std::ranges::adjacent_find(list, {}, &T::name);
  if (twice != list.end()) return invalid(fmt::format("{}: \"{}\" stands there twice", path, twice->name));
  return {};
}

constexpr std::int64_t kMostMilli = 1'000'000'000, kMostMib = 1'000'000'000, kMostGpus = 1024;

Result<std::vector<Node>> read_nodes(const std::string& path) {
  auto table = Table::read(path, {"sn", "cpu_milli", "memory_mib", "gpu", "model"});
  if (!table) return std::unexpected(table.error());
  std::vector<Node> out;
  for (std::size_t i = 0; i < table->size(); ++i) {
    out.push_back({table->text(i, "sn"), table->text(i, "model"), table->number(i, "cpu_milli", kMostMilli),
                   table->number(i, "memory_mib", kMostMib), table->number(i, "gpu", kMostGpus)});
    if (out.back().name.empty()) return invalid(fmt::format("{}: sn: a node needs a name", table->place(i)));
  }
  if (!table->error.empty()) return invalid(table->error);
  if (auto done = order(out, path); !done) return std::unexpected(done.error());
  return out;
}

Result<std::vector<Pod>> read_pods(const std::string& path) {
  auto table = Table::read(path, {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"});
  if (!table) return std::unexpected(table.error());
  std::vector<Pod> out;
  for (std::size_t i = 0; i < table->size(); ++i) {
    Pod pod{table->text(i, "name"),
            "",
            table->number(i, "cpu_milli", kMostMilli),
            table->number(i, "memory_mib", kMostMib),
            table->number(i, "num_gpu", kMostGpus),
            std::min(table->number(i, "gpu_milli", kMostMilli), kWhole)};
    if (pod.name.empty()) return invalid(fmt::format("{}: name: a pod needs a name", table->place(i)));
    if (pod.gpus == 0 || pod.gpu_milli == 0) pod.gpus = pod.gpu_milli = 0;
    if (pod.gpus > 1 && pod.gpu_milli < kWhole)
      return invalid(
          fmt::format("{}: gpu_milli: {} of each of {} GPUs: several are given whole only", table->place(i), pod.gpu_milli, pod.gpus));
    if (pod.gpus > 0) pod.gpu_spec = table->text(i, "gpu_spec");
    // "|V100M16|" means what "V100M16" does.
    std::erase_if(pod.gpu_spec, [](char c) { return c == ' '; });
    while (pod.gpu_spec.starts_with('|')) pod.gpu_spec.erase(0, 1);
    while (pod.gpu_spec.ends_with('|')) pod.gpu_spec.pop_back();
    out.push_back(std::move(pod));
  }
  if (!table->error.empty()) return invalid(table->error);
  if (auto done = order(out, path); !done) return std::unexpected(done.error());
  return out;
}

std::string stem(std::string path) {
  path.erase(0, path.rfind('/') + 1);
  for (const std::string_view suffix : {".gz", ".csv"})
    if (path.ends_with(suffix)) path.erase(path.size() - suffix.size());
  return path;
}

}  // namespace

Result<Trace> read_trace(const std::string& nodes_file, const std::string& pods_file) {
  auto nodes = read_nodes(nodes_file);
  if (!nodes) return std::unexpected(nodes.error());
  auto pods = read_pods(pods_file);
  if (!pods) return std::unexpected(pods.error());
  Trace out{stem(pods_file), std::move(*nodes), std::move(*pods)};
  for (const Node& node : out.nodes) out.gpu_milli += node.gpus * kWhole;
  std::int64_t wanted = 0;
  for (const Pod& pod : out.pods) wanted += pod.total_gpu_milli();
  if (out.gpu_milli == 0) return invalid(fmt::format("{}: no node has a GPU", nodes_file));
  if (wanted == 0) return invalid(fmt::format("{}: no pod asks for a GPU", pods_file));
  return out;
}

Arrivals arrivals_of(const Trace& trace, std::int32_t seed) {
  GoRandom random(seed);
  (void)random.int63();  // Goes into a log line there.
  Arrivals out;
  for (std::size_t i = 0; i < trace.pods.size(); ++i) out.pods.push_back(i);
  random.shuffle(out.pods);
  const auto most = kArrived * static_cast<double>(trace.gpu_milli);
  std::int64_t wanted = 0;
  for (const Pod& pod : trace.pods) wanted += pod.total_gpu_milli();
  if (static_cast<double>(wanted) > most) {
    while (static_cast<double>(wanted) > most) {
      const auto at = out.pods.begin() + random.below(static_cast<std::int32_t>(out.pods.size()));
      wanted -= trace.pods[*at].total_gpu_milli();
      out.pods.erase(at);
    }
  } else if (static_cast<double>(wanted) < most) {
    for (;;) {
      const auto drawn = static_cast<std::size_t>(random.below(static_cast<std::int32_t>(trace.pods.size())));
      // The simulator asks whether one GPU of the pod is too much, not all of them.
      if (static_cast<double>(wanted + trace.pods[drawn].gpu_milli) > most) break;
      wanted += trace.pods[drawn].total_gpu_milli();
      out.pods.push_back(drawn);
    }
  }
  for (int i = 0; i < kInformers; ++i) (void)random.int63();
  out.node_rank = random.permutation(static_cast<std::int32_t>(trace.nodes.size()));
  return out;
}

}  // namespace openb
