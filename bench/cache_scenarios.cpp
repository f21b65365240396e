// The store and the object cache below the API: what a write, a watch, a list, a start and a stored pod cost (issue 2 "Speed and size").
#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "apiserver/cache/object_cache.h"
#include "base/json_scan.h"
#include "bench/bench.h"
#include "store/store.h"

namespace berth::bench {
namespace {

using namespace apiserver;

constexpr int kNodes = 1000;

struct ScratchDirectory {
  ScratchDirectory() {
    std::string pattern = (std::filesystem::current_path() / "bench-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~ScratchDirectory() {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }
  std::filesystem::path path;
};

std::string node_of(std::size_t i) { return fmt::format("node-{:05}", i % kNodes); }

/// A pod of the size that a Deployment's pod has after admission and scheduling: about 2 KiB.
Proposal pod(std::size_t i, std::string_view phase, std::optional<Revision> expected) {
  std::string name = fmt::format("web-{:03}-6d4cf56db6-{:06}", i % 200, i);
  std::string ns = fmt::format("team-{:02}", i % 20), uid = fmt::format("{:08x}-5c1e-4a53-9e0b-{:012x}", i * 2654435761U % 0xffffffffU, i);
  Proposal p;
  p.key = make_key("", "pods", ns, name);
  p.expected = expected;
  p.value = fmt::format(
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}","generateName":"web-{:03}-6d4cf56db6-","namespace":"{}","uid":"{}","creationTimestamp":"2026-11-21T05:00:00Z","labels":{{"app":"web-{:03}","pod-template-hash":"6d4cf56db6","tier":"front"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-{:03}-6d4cf56db6","uid":"0c9e2c4e-7b0a-4f0e-8d0e-2f6b8f3d2a11","controller":true,"blockOwnerDeletion":true}}],"managedFields":[{{"manager":"berth-controllers","operation":"Update","apiVersion":"v1","time":"2026-11-21T05:00:00Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:labels":{{".":{{}},"f:app":{{}}}}}},"f:spec":{{"f:containers":{{}}}}}}}}],"resourceVersion":")",
      name, i % 200, ns, uid, i % 200, i % 200);
  p.revision_offset = p.value.size();
  p.value += fmt::format(
      R"("}},"spec":{{"volumes":[{{"name":"kube-api-access-x7k2p","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}}],"defaultMode":420}}}}],"containers":[{{"name":"web","image":"registry.example.com/team/web:1.27.3","ports":[{{"containerPort":8080,"protocol":"TCP"}}],"env":[{{"name":"LOG_LEVEL","value":"info"}}],"resources":{{"limits":{{"cpu":"500m","memory":"512Mi"}},"requests":{{"cpu":"100m","memory":"200Mi"}}}},"volumeMounts":[{{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default","nodeName":"{}","securityContext":{{}},"schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}},"status":{{"phase":"{}","qosClass":"Burstable"}}}})",
      node_of(i), phase);
  p.meta.ns = ns;
  p.meta.name = name;
  p.meta.uid = uid;
  p.meta.labels = model::Labels({{"app", fmt::format("web-{:03}", i % 200)}, {"pod-template-hash", "6d4cf56db6"}, {"tier", "front"}});
  p.meta.fields = {{"spec.nodeName", node_of(i)},
                   {"spec.restartPolicy", "Always"},
                   {"spec.schedulerName", "default-scheduler"},
                   {"status.phase", std::string(phase)},
                   {"spec.serviceAccountName", "default"}};
  return p;
}

ObjectMeta meta_of(std::string_view, const std::string& text) {
  static const std::vector<std::string> paths = {"metadata.namespace", "metadata.name", "metadata.uid",
                                                 "metadata.labels",    "spec.nodeName", "spec.restartPolicy",
                                                 "spec.schedulerName", "status.phase",  "spec.serviceAccountName"};
  static const json::PathScanner scanner(paths);
  std::array<std::string_view, 9> raw;
  ObjectMeta meta;
  if (!scanner.scan(text, raw)) return meta;
  meta.ns = json::unquote(raw[0]);
  meta.name = json::unquote(raw[1]);
  meta.uid = json::unquote(raw[2]);
  std::vector<std::pair<std::string, std::string>> labels;
  json::for_each_member(
      raw[3], [&](std::string_view key, std::string_view value) { labels.emplace_back(json::unquote(key), json::unquote(value)); });
  meta.labels = model::Labels(std::move(labels));
  for (std::size_t i = 4; i < paths.size(); ++i) meta.fields.emplace_back(paths[i], json::unquote(raw[i]));
  return meta;
}

/// Runs `count` writes made by `make(i)` with `in_flight` of them under way, from one thread. Returns the seconds.
double write_many(ObjectCache& cache, std::size_t count, std::size_t in_flight, const std::function<Proposal(std::size_t)>& make) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t done = 0, failed = 0;
  double start = now_seconds();
  for (std::size_t i = 0; i < count; ++i) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return i - done < in_flight; });
    }
    cache.propose(make(i), [&](const ProposeResult& result) {
      std::lock_guard lock(mutex);
      ++done;
      failed += result ? 0 : 1;
      changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done == count; });
  return failed == 0 ? now_seconds() - start : -1;
}

struct Opened {
  SystemClock clock;
  std::unique_ptr<ObjectCache> cache;
};

std::unique_ptr<Opened> open_cache(const std::string& path, std::string& error) {
  auto opened = std::make_unique<Opened>();
  auto store = path.empty() ? Result<std::unique_ptr<store::Store>>(store::make_memory_store()) : store::open_sqlite_store({.path = path});
  if (!store) {
    error = store.error().message;
    return nullptr;
  }
  auto cache = ObjectCache::open(std::move(*store), opened->clock, {}, meta_of, false);
  if (!cache) {
    error = cache.error().message;
    return nullptr;
  }
  opened->cache = std::move(*cache);
  return opened;
}

json::Object failed(const std::string& error) { return {{"error", error.empty() ? std::string("a write failed") : error}}; }
std::size_t scaled(double scale, std::size_t count) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(scale * static_cast<double>(count)));
}
double rounded(double value) { return std::round(value * 100) / 100; }

json::Object store_commit(const Options& options) {
  ScratchDirectory scratch;
  std::string error;
  auto opened = open_cache((scratch.path / "s.db").string(), error);
  if (!opened) return failed(error);
  const std::size_t count = scaled(options.scale, 100'000);
  double seconds = write_many(*opened->cache, count, 64, [](std::size_t i) { return pod(i, "Pending", 0); });
  double alone = write_many(*opened->cache, scaled(options.scale, 2000), 1, [&](std::size_t i) { return pod(count + i, "Pending", 0); });
  if (seconds < 0 || alone < 0) return failed("");
  return {{"pods", count},
          {"seconds", rounded(seconds)},
          {"commits_per_s_alone", std::round(static_cast<double>(scaled(options.scale, 2000)) / alone)}};
}

struct CountingSink final : WatchSink {
  std::atomic<std::size_t> events{0};
  bool deliver(const WatchEvent&) override {
    ++events;
    return true;
  }
};

json::Object cache_watch(const Options& options) {
  ScratchDirectory scratch;
  std::string error;
  auto opened = open_cache((scratch.path / "s.db").string(), error);
  if (!opened) return failed(error);
  ObjectCache& cache = *opened->cache;
  const std::size_t count = scaled(options.scale, 60'000);
  std::size_t made = 0;
  const auto round = [&] {
    double seconds = write_many(cache, count, 64, [&](std::size_t i) { return pod(made + i, "Pending", 0); });
    made += count;
    return static_cast<double>(count) / seconds;
  };
  round();  // Warms up the file and the allocator.
  // Measured in turns, so that a disk that gets slower meets both.
  double without = 0, filtered = 0, with_all = 0;
  std::size_t seen = 0, seen_all = 0;
  WatchFilter all{.prefix = make_prefix("", "pods")};
  for (int turn = 0; turn < 2; ++turn) {
    without += round() / 2;
    std::vector<std::shared_ptr<CountingSink>> sinks;
    std::vector<std::unique_ptr<Watch>> watches;
    for (int n = 0; n < kNodes; ++n) {
      WatchFilter filter = all;
      filter.fields.terms.push_back({"spec.nodeName", true, node_of(static_cast<std::size_t>(n))});
      sinks.push_back(std::make_shared<CountingSink>());
      watches.push_back(cache.watch(filter, cache.revision(), false, sinks.back()));
    }
    filtered += round() / 2;
    std::vector<std::shared_ptr<CountingSink>> all_sinks;
    for (int n = 0; n < 20; ++n) {
      all_sinks.push_back(std::make_shared<CountingSink>());
      watches.push_back(cache.watch(all, cache.revision(), false, all_sinks.back()));
    }
    with_all += round() / 2;
    for (const auto& sink : sinks) seen += sink->events;
    for (const auto& sink : all_sinks) seen_all += sink->events;
  }
  // Per turn: two rounds by the 1,000, one by each of the 20.
  if (seen != 4 * count || seen_all != 2 * 20 * count) return failed(fmt::format("events lost or doubled: {} and {}", seen, seen_all));
  return {{"writes_per_s_without", std::round(without)},
          {"writes_per_s_1000_filtered", std::round(filtered)},
          {"writes_per_s_1000_filtered_20_all", std::round(with_all)},
          {"loss_percent", rounded(100 * (1 - with_all / without))}};
}

json::Object cache_list(const Options& options) {
  std::string error;
  auto opened = open_cache("", error);
  const std::size_t count = scaled(options.scale, 100'000);
  write_many(*opened->cache, count, 512, [](std::size_t i) { return pod(i, "Running", 0); });
  WatchFilter all{.prefix = make_prefix("", "pods")};
  double whole = 0, by_node = 0, paged = 0;
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    double start = now_seconds();
    std::size_t got = opened->cache->list(all, {}, 0).items.size();
    whole += now_seconds() - start;
    if (got != count) return failed("the list is not complete");
    WatchFilter one = all;
    one.fields.terms.push_back({"spec.nodeName", true, node_of(7)});
    start = now_seconds();
    opened->cache->list(one, {}, 0);
    by_node += now_seconds() - start;
    start = now_seconds();
    std::string after;
    for (;;) {
      auto page = opened->cache->list(all, after, 500);
      if (!page.more) break;
      after = page.items.back()->key;
    }
    paged += now_seconds() - start;
  }
  return {{"objects", count},
          {"list_ms", rounded(1000 * whole / kRounds)},
          {"list_one_node_ms", rounded(1000 * by_node / kRounds)},
          {"list_pages_of_500_ms", rounded(1000 * paged / kRounds)}};
}

json::Object cache_start(const Options& options) {
  ScratchDirectory scratch;
  std::string path = (scratch.path / "s.db").string(), error;
  const std::size_t count = scaled(options.scale, 1'000'000);
  {
    // Straight into the store, as a cache would have written it.
    auto store = store::open_sqlite_store({.path = path});
    if (!store) return failed(store.error().message);
    std::vector<store::Record> records;
    for (std::size_t i = 0; i < count; ++i) {
      Proposal p = pod(i, "Running", 0);
      auto revision = static_cast<Revision>(i + 1);
      p.value.insert(p.revision_offset, std::to_string(revision));
      records.push_back(
          {.revision = revision, .create_revision = revision, .key = std::move(p.key), .value = make_bytes(std::move(p.value))});
      if (records.size() < 10'000 && i + 1 < count) continue;
      if (auto ok = (*store)->commit(records, false); !ok) return failed(ok.error().message);
      records.clear();
    }
  }
  auto file_bytes = std::filesystem::file_size(path);
  double start = now_seconds();
  auto opened = open_cache(path, error);
  double seconds = now_seconds() - start;
  if (!opened) return failed(error);
  std::size_t found = opened->cache->counts().empty() ? 0 : opened->cache->counts()[0].second;
  if (found != count) return failed("not everything came back");
  return {{"objects", count},
          {"seconds", rounded(seconds)},
          {"file_mb", std::round(static_cast<double>(file_bytes) / (1 << 20))},
          {"bytes_per_object", std::round(rss_mb() * (1 << 20) / static_cast<double>(count))}};
}

json::Object cache_memory(const Options& options) {
  ScratchDirectory scratch;
  std::string error;
  auto opened = open_cache((scratch.path / "s.db").string(), error);
  if (!opened) return failed(error);
  const double empty = rss_mb();
  const std::size_t count = scaled(options.scale, 100'000);
  // The life of a pod: created, bound, running. The superseded states stay as watch history within its bounds.
  for (const char* phase : {"Pending", "Pending", "Running"}) {
    if (write_many(*opened->cache, count, 512, [&](std::size_t i) { return pod(i, phase, {}); }) < 0) return failed("");
  }
  const double full = rss_mb();
  auto sample = opened->cache->list({.prefix = make_prefix("", "pods")}, {}, 1);
  return {{"pods_stored", count},
          {"empty_mb", rounded(empty)},
          {"full_mb", rounded(full)},
          {"json_bytes", sample.items[0]->text_bytes()},
          {"bytes_per_pod", std::round((full - empty) * (1 << 20) / static_cast<double>(count))}};
}

const Register kCommit({"StoreCommit", "durable pod writes into the object cache on SQLite, full sync, 64 in flight; and one at a time",
                        store_commit});
const Register kWatch({"CacheWatch", "durable writes without watchers, with 1,000 per-node watchers, and with 20 on all pods besides",
                       cache_watch});
const Register kList({"CacheList100k", "list of 100,000 pods from the object cache, without the bytes being copied", cache_list});
const Register kStart({"CacheStart1M", "opening the object cache on a store of 1,000,000 pods", cache_start});
const Register kMemory({"CacheMemory", "memory per stored pod after create, bind and status update, watch history and store included",
                        cache_memory});

}  // namespace
}  // namespace berth::bench
