#include "cli/keep/etcd_flags.h"

#include <CLI/CLI.hpp>
#include <set>

#include "base/config_reader.h"
#include "base/json.h"
#include "cli/command/parse.h"
#include "net/certificates.h"

namespace berth::cli {
void EtcdFlags::add_to(CLI::App& app) {
  app.add_option("--etcd-servers", servers,
                 "URLs of etcd's members, comma separated (https://10.0.0.1:2379,…): everything is kept there, as kube-apiserver keeps it, "
                 "instead of in the data directory. Several servers, of berth and of Kubernetes, may share it")
      ->delimiter(',')
      // A variable that is not set must not begin another cluster in the data directory.
      ->check([](const std::string& url) { return url.empty() ? "no URL: is a variable not set?" : ""; }, "");
  app.add_option("--etcd-cafile", ca_file, "Who signed etcd's certificates");
  app.add_option("--etcd-certfile", certificate_file, "The certificate shown to etcd");
  app.add_option("--etcd-keyfile", key_file, "Its key");
  app.add_option("--etcd-prefix", prefix, "What all keys in etcd begin with")->capture_default_str();
  app.add_option("--storage-media-type", media_type,
                 "application/vnd.kubernetes.protobuf or application/json: how objects are written to etcd; both are read")
      ->capture_default_str();
  app.add_option("--etcd-compaction-interval", compaction_interval, "How often superseded revisions are forgotten; 0: left to others")
      ->capture_default_str();
}

EtcdPlan EtcdFlags::plan(Findings& findings) const {
  EtcdPlan out;
  out.options.servers = servers;
  const auto read = [&](const char* flag, const std::string& path, std::string& into) {
    if (path.empty()) return;
    if (!out.is_wanted()) findings.error(fmt::format("{} is for etcd, and --etcd-servers is not given", flag));
    if (auto text = config::read_whole_file(path))
      into = std::move(*text);
    else
      findings.error(fmt::format("{}: {}", flag, text.error().message));
  };
  read("--etcd-cafile", ca_file, out.options.ca_pem);
  read("--etcd-certfile", certificate_file, out.options.certificate_pem);
  read("--etcd-keyfile", key_file, out.options.key_pem);
  out.options.ca_file = ca_file;
  out.options.certificate_file = certificate_file;
  out.options.key_file = key_file;
  if (findings.ok() && out.is_wanted()) findings.take(store::check_etcd_certificates(out.options));
  out.options.prefix = prefix;
  if (!prefix.starts_with('/') || prefix.find_first_not_of('/') == std::string::npos)
    findings.error(fmt::format("--etcd-prefix: \"{}\" must begin with / and name something", prefix));
  if (media_type != "application/vnd.kubernetes.protobuf" && media_type != "application/json")
    findings.error(
        fmt::format("--storage-media-type: \"{}\" is neither application/vnd.kubernetes.protobuf nor application/json", media_type));
  out.writes_protobuf = media_type != "application/json";
  const auto interval = compaction_interval == "0" ? std::optional(Duration::zero()) : parse_go_duration(compaction_interval);
  if (!interval || *interval < Duration::zero())
    findings.error(fmt::format("--etcd-compaction-interval: \"{}\" is not a duration", compaction_interval));
  else
    out.compaction_interval = *interval;
  return out;
}

Result<void> claim_prefix(store::SharedStore& store, const std::string& prefix, const std::string& ca_pem, const std::string& data_dir) {
  const std::string key = prefix + "/berth.dev/cluster";
  const auto hashes = net::public_key_hashes(ca_pem);
  const std::set<std::string> ours(hashes.begin(), hashes.end());
  for (int attempt = 0; attempt < 10; ++attempt) {
    auto found = store.find(key, false);
    if (!found) return std::unexpected(found.error());
    std::set<std::string> theirs;
    if (!found->empty())
      if (const auto noted = json::parse(*found->front().value))
        for (const auto& one : json::get_array(*noted, {"authorities"}))
          if (one.is_string()) theirs.emplace(json::as_view(one));
    const bool in_common = std::ranges::any_of(ours, [&](const std::string& hash) { return theirs.contains(hash); });
    if (!theirs.empty() && !in_common)
      return invalid(fmt::format(
          "{} in this etcd belongs to another cluster: its authority is {}, this server's, in {}/pki, is {}. To run a further server of "
          "that "
          "cluster, copy ca.crt, ca.key and the service account keys of its pki directory to {}/pki first; for a cluster of its own choose "
          "another --etcd-prefix. Nothing was written",
          prefix, *theirs.begin(), data_dir, ours.empty() ? "unreadable" : *ours.begin(), data_dir));
    if (theirs == ours) return {};
    json::Array list;
    for (const std::string& hash : ours) list.emplace_back(hash);
    store::SharedWrite note;
    note.key = key;
    note.value = make_bytes(json::serialize(json::Object{{"authorities", std::move(list)}}));
    note.expected = found->empty() ? 0 : found->front().revision;
    const auto answer = store.write_and_wait(std::move(note));
    if (answer.verdict == store::WriteVerdict::kDone) return {};
    if (answer.verdict != store::WriteVerdict::kRefused) return fail(ErrorCode::kUnavailable, answer.message);
  }
  return fail(ErrorCode::kUnavailable, fmt::format("{} is being written by others", key));
}

}  // namespace berth::cli
