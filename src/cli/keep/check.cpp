// berth check: whether a store is sound, from SQLite's structure to the objects.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

#include "apiserver/cache/object_codec.h"
#include "apiserver/encryption/transform.h"
#include "cli/command/data_dir.h"
#include "cli/command/parse.h"
#include "cli/keep/keep.h"
#include "cli/keep/snapshot_etcd.h"
#include "model/kinds.h"
#include "store/snapshot.h"

namespace berth::cli {
namespace {

/// What is found while the store is read: what is wrong, and what is just counted.
struct Report {
  std::vector<std::string> wrong;
  std::map<std::string, std::int64_t> by_resource;
  std::int64_t objects = 0, encrypted = 0, unknown = 0;
  std::map<std::string, std::string> key_of_uid;
};

/// "/apps/deployments/NAMESPACE/NAME", the namespace empty for objects of the cluster.
struct KeyParts {
  std::string group, plural, ns, name;
};
std::optional<KeyParts> split_key(std::string_view key) {
  std::vector<std::string> parts;
  if (!key.starts_with('/')) return std::nullopt;
  for (std::size_t start = 1; parts.size() < 3;) {
    const auto end = key.find('/', start);
    if (end == std::string_view::npos) return std::nullopt;
    parts.emplace_back(key.substr(start, end - start));
    start = end + 1;
    if (parts.size() == 3) parts.emplace_back(key.substr(start));
    if (parts.size() == 4) break;
  }
  if (parts[1].empty() || parts[3].empty()) return std::nullopt;
  return KeyParts{parts[0], parts[1], parts[2], parts[3]};
}

void check_object(const std::string& key, const std::string& value, Report& report) {
  const auto wrong = [&](std::string_view what) { report.wrong.push_back(fmt::format("{}: {}", key, what)); };
  ++report.objects;
  const auto parts = split_key(key);
  if (!parts) return wrong("the key is not of the form /GROUP/RESOURCE/NAMESPACE/NAME");
  ++report.by_resource[parts->group.empty() ? parts->plural : parts->plural + "." + parts->group];
  if (value.starts_with(apiserver::encryption::kPrefix)) {
    ++report.encrypted;
    return;
  }
  const auto doc = json::parse(value);
  if (!doc || !doc->is_object()) return wrong("is no JSON object");
  if (model::find_resource(parts->group, parts->plural) == nullptr) ++report.unknown;
  if (json::get_string(*doc, {"metadata", "name"}) != parts->name) wrong("metadata.name is another than the key's");
  if (json::get_string(*doc, {"metadata", "namespace"}) != parts->ns) wrong("metadata.namespace is another than the key's");
  const std::string uid(json::get_string(*doc, {"metadata", "uid"}));
  if (uid.empty()) return wrong("has no metadata.uid");
  if (const auto [other, is_new] = report.key_of_uid.emplace(uid, key); !is_new) wrong(fmt::format("has the uid of {}", other->second));
}

Result<store::StoreState> read_store(const std::string& path, Report& report) {
  std::map<std::string, std::pair<store::Revision, Bytes>> live;
  auto state = store::scan_sqlite_store(path, [&](store::Record record) -> Result<void> {
    const auto before = live.find(record.key);
    if (before != live.end() && record.previous_revision != before->second.first)
      report.wrong.push_back(fmt::format("{}: revision {} supersedes {}, but {} came before it", record.key, record.revision,
                                         record.previous_revision, before->second.first));
    if (record.value == nullptr)
      live.erase(record.key);
    else
      live[record.key] = {record.revision, record.value};
    return {};
  });
  if (!state) return state;
  for (const auto& [key, latest] : live) check_object(key, *latest.second, report);
  return state;
}

/// Everything below the prefix as of one revision, as a server reads it.
Result<store::Revision> read_etcd(const EtcdAccess::Plan& plan, Report& report) {
  auto etcd = store::open_etcd_store(plan.etcd.options);
  if (!etcd) return std::unexpected(etcd.error());
  const std::string& prefix = plan.etcd.options.prefix;
  if (auto whole = apiserver::etcd::expect_no_mark(**etcd, prefix); !whole) return std::unexpected(whole.error());
  const auto form = plan.form(prefix);
  return (*etcd)->read([&](store::SharedRecord record) -> Result<void> {
    if (apiserver::etcd::belongs_to_servers(std::string_view(record.key).substr(prefix.size()))) return {};
    const auto key = form.cache_key(record.key);
    const auto is_sealed = record.value->starts_with(apiserver::encryption::kPrefix) && plan.encryption.rules.empty();
    if (!key || is_sealed) {
      ++report.objects;
      ++(key ? report.encrypted : report.unknown);
      return {};
    }
    const auto text = form.to_text(*key, record.key, *record.value);
    if (text)
      check_object(*key, text->value, report);
    else if (text.error().code == ErrorCode::kNotFound)
      ++report.objects, ++report.unknown;
    else
      report.wrong.push_back(text.error().message);
    return {};
  });
}

/// What was found, where, and the exit code.
int tell(const std::string& place, const Report& report, bool counts, const std::string& up_to) {
  for (const std::string& line : report.wrong) fmt::print(stderr, "error: {}\n", line);
  if (counts)
    for (const auto& [resource, count] : report.by_resource) fmt::print("{:8} {}\n", count, resource);
  if (!report.wrong.empty()) {
    fmt::print(stderr, "{}: {} findings; restore a snapshot (berth snapshot restore), or ask with these lines\n", place,
               report.wrong.size());
    return 1;
  }
  fmt::print("{}: sound: {} objects at {}", place, report.objects, up_to);
  if (report.encrypted > 0) fmt::print("; {} encrypted ones were not looked into", report.encrypted);
  if (report.unknown > 0) fmt::print("; {} of kinds that this berth does not serve", report.unknown);
  fmt::print("\n");
  return 0;
}

}  // namespace

int run_check(const std::vector<std::string>& args) {
  CLI::App app(
      "Reads a server's store from end to end and says what is wrong with it: the file's structure, every record's checksum and "
      "place in the history, every object's key, name and uid. Changes nothing; the server may run. Exit code 1: something is wrong",
      "berth check");
  std::string data_dir = default_data_dir();
  bool counts = false;
  EtcdAccess access;
  app.add_option("DIR,--data-dir", data_dir, "The server's data directory")->capture_default_str();
  app.add_flag("--counts", counts, "How many objects of each resource there are");
  access.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  Report report;
  if (access.is_wanted()) {
    const auto plan = access.plan();
    const auto read = plan ? read_etcd(*plan, report) : std::unexpected(plan.error());
    if (!read) report.wrong.push_back(read.error().message);
    return tell(fmt::format("{}", fmt::join(access.flags.servers, ",")), report, counts, fmt::format("revision {}", read.value_or(0)));
  }
  const std::string path = std::filesystem::path(data_dir) / "store.db";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    fmt::print(stderr, "error: {}: there is no store here; give a server's data directory, or --etcd-servers\n", path);
    return 1;
  }
  const auto state = read_store(path, report);
  if (!state) report.wrong.push_back(state.error().message);
  const auto up_to = state ? fmt::format("revision {}, history from {}", state->last_revision, state->compacted_revision) : "";
  return tell(path, report, counts, up_to);
}

}  // namespace berth::cli
