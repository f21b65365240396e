// A node short of memory, disk and process ids, off and on, over hours: what the eviction manager sees, says and does; which images and
// dead containers go.
#include "node/eviction/container_gc.h"
#include "node/eviction/image_gc.h"
#include "node/eviction/manager.h"
#include "tests/support/long_life.h"

namespace berth::node::eviction {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::LongLife;

const TimePoint kStart = *parse_rfc3339("2026-01-05T10:00:00Z");
constexpr std::uint64_t kMi = 1U << 20;

template <typename T>
T one_of(LongLife& life, std::initializer_list<T> list) {
  return *(list.begin() + life.dice.below(list.size()));
}

EvictionSettings random_settings(LongLife& life) {
  EvictionSettings out;
  const auto amount = [&] { return one_of<std::string>(life, {"100Mi", "10%", "250Mi", "5%", "0%", "33.3%"}); };
  for (const char* signal :
       {"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "pid.available", "containerfs.available"}) {
    if (life.dice.chance(50)) out.hard[signal] = amount();
    if (life.dice.chance(35)) {
      out.soft[signal] = amount();
      out.soft_grace_period[signal] = one_of<std::string>(life, {"30s", "1m", "90s"});
    }
    if (life.dice.chance(30)) out.minimum_reclaim[signal] = one_of<std::string>(life, {"50Mi", "5%", "0"});
  }
  if (life.dice.chance(30)) out.enforce_node_allocatable = {"none"};
  return out;
}

FsUsage random_fs(LongLife& life, TimePoint now) {
  FsUsage out;
  out.capacity_bytes = 1000 * kMi;
  out.available_bytes = static_cast<std::uint64_t>(one_of<int>(life, {0, 50, 99, 100, 101, 150, 151, 250, 300, 600, 900})) * kMi;
  out.inodes = 1000;
  out.inodes_free = static_cast<std::uint64_t>(one_of<int>(life, {0, 50, 99, 100, 101, 333, 900}));
  if (life.dice.chance(80)) out.time = now - seconds(life.dice.below(20));
  if (life.dice.chance(5)) out.available_bytes.reset();
  return out;
}

NodeUsage random_node(LongLife& life, TimePoint now) {
  NodeUsage out;
  const auto memory = [&] {
    MemoryUsage usage;
    usage.available_bytes = static_cast<std::uint64_t>(one_of<int>(life, {20, 99, 100, 101, 150, 250, 400, 700, 900})) * kMi;
    usage.working_set_bytes = 1000 * kMi - *usage.available_bytes;
    usage.time = now - seconds(life.dice.below(20));
    return usage;
  };
  if (life.dice.chance(95)) out.memory = memory();
  if (life.dice.chance(60)) out.pods_memory = memory();
  if (life.dice.chance(95)) out.fs = random_fs(life, now);
  if (life.dice.chance(70)) out.image_fs = random_fs(life, now);
  if (life.dice.chance(50)) out.container_fs = random_fs(life, now);
  if (life.dice.chance(80)) {
    out.max_pid = 1000;
    out.running_processes = one_of<std::int64_t>(life, {100, 667, 900, 901, 950, 999});
    out.process_time = now;
  }
  return out;
}

PodFacts random_pod(LongLife& life, int number) {
  const char* cls = one_of<const char*>(life, {"guaranteed", "burstable", "best-effort"});
  json::Object requests, limits;
  if (std::string_view(cls) != "best-effort")
    requests = {{"memory", one_of<const char*>(life, {"50Mi", "200Mi"})}, {"cpu", "1"}, {"ephemeral-storage", "10Mi"}};
  if (std::string_view(cls) == "guaranteed") limits = requests;
  if (life.dice.chance(25)) limits["ephemeral-storage"] = one_of<const char*>(life, {"40Mi", "100Mi"});
  json::Object container{{"name", "c"}, {"resources", json::Object{{"requests", requests}, {"limits", limits}}}};
  json::Object spec{{"containers", json::Array{container, json::Object{{"name", "d"}}}},
                    {"priority", one_of<int>(life, {0, 0, 10, 1000, 2'000'000'000})}};
  if (life.dice.chance(50)) spec["terminationGracePeriodSeconds"] = one_of<int>(life, {0, 5, 100});
  if (life.dice.chance(40))
    spec["volumes"] =
        json::Array{json::Object{{"name", "v"}, {"emptyDir", json::Object{{"sizeLimit", one_of<const char*>(life, {"30Mi", "0"})}}}}};
  if (life.dice.chance(20))
    spec["tolerations"] = json::Array{json::Object{{"key", "node.kubernetes.io/memory-pressure"}, {"operator", "Exists"}}};
  if (life.dice.chance(15)) spec["resources"] = json::Object{{"requests", json::Object{{"memory", "70Mi"}}}};
  return read_pod_facts(json::Object{
      {"metadata", json::Object{{"name", fmt::format("p{}", number)}, {"namespace", "default"}, {"uid", fmt::format("u{}", number)}}},
      {"spec", spec}});
}

PodUsage random_usage(LongLife& life, const std::string& uid, TimePoint now) {
  PodUsage out;
  out.uid = uid;
  std::uint64_t working_set = 0;
  for (const char* name : {"c", "d"}) {
    ContainerUsage one;
    one.name = name;
    if (life.dice.chance(85)) {
      one.memory = MemoryUsage{};
      one.memory->working_set_bytes = static_cast<std::uint64_t>(life.dice.below(6)) * 50 * kMi;
      working_set += *one.memory->working_set_bytes;
    }
    if (life.dice.chance(85)) {
      one.rootfs = FsUsage{};
      one.rootfs->used_bytes = static_cast<std::uint64_t>(life.dice.below(5)) * 10 * kMi;
      one.rootfs->inodes_used = static_cast<std::uint64_t>(life.dice.below(50));
      one.logs = one.rootfs;
    }
    out.containers.push_back(std::move(one));
  }
  if (life.dice.chance(85)) {
    out.memory = MemoryUsage{};
    out.memory->working_set_bytes = working_set;
    out.memory->time = now;
  }
  VolumeUsage volume{.name = "v", .fs = {}};
  volume.fs.used_bytes = static_cast<std::uint64_t>(life.dice.below(5)) * 10 * kMi;
  out.volumes.push_back(std::move(volume));
  out.ephemeral_storage = FsUsage{};
  out.ephemeral_storage->used_bytes = static_cast<std::uint64_t>(life.dice.below(15)) * 10 * kMi;
  if (life.dice.chance(80)) out.process_count = static_cast<std::uint64_t>(life.dice.below(9));
  return out;
}

void tell(LongLife& life, const Outcome& outcome, const std::vector<PodFacts>& pods, const std::vector<NodeCondition>& conditions) {
  std::string said = " ";
  for (const MetThreshold& one : outcome.observed)
    said += fmt::format(" {}{}@{}", to_string(one.threshold.signal), one.threshold.is_hard() ? "" : "~",
                        std::chrono::duration_cast<seconds>(one.first_observed - kStart).count());
  said += fmt::format(" | {} over |", outcome.met.size());
  for (const NodeCondition condition : conditions) said += fmt::format(" {}", to_string(condition));
  if (outcome.acting_on) said += fmt::format(" | for {}", to_string(outcome.acting_on->signal));
  for (const Reclaim one : outcome.reclaim) said += one == Reclaim::kContainers ? " containers" : " images";
  if (outcome.was_ranked) {
    said += " | order";
    for (const RankedPod& one : outcome.ranking) said += fmt::format(" {}", one.facts->name);
  }
  life.tell(std::move(said));
  for (const Eviction& one : outcome.evictions) {
    EXPECT_FALSE(pods[one.pod].is_critical) << life.last() << "a critical pod is never evicted";
    std::string notes;
    if (one.annotations)
      for (const auto& [key, value] : *one.annotations) notes += fmt::format(" {}={}", key, value);
    life.tell(fmt::format("    {} in {} s{}: {}{}", pods[one.pod].name, one.grace_period_seconds, one.is_disruption ? "" : " (limit)",
                          one.message, notes));
  }
}

TEST(PressureLives, AreAsRecorded) {
  LongLife life("tests/node/lives/pressure.txt", 91, 40'000);
  TimePoint now = kStart;
  for (int round = 0; round < 40; ++round) {
    const EvictionSettings settings = random_settings(life);
    const auto thresholds = parse_thresholds(settings);
    ASSERT_TRUE(thresholds) << thresholds.error();
    ManagerConfig config{.thresholds = *thresholds, .spare_places = thresholds_spare_places(settings)};
    config.max_pod_grace_period_seconds = one_of<std::int64_t>(life, {0, 10, 60});
    config.pressure_transition_period_ns = one_of<std::int64_t>(life, {0, 60'000'000'000, 300'000'000'000});
    config.local_storage_capacity_isolation = life.dice.chance(40);
    config.rules = life.dice.chance(70) ? EvictionRules::kKubernetes : EvictionRules::kDocument;
    config.amounts = life.dice.chance(60) ? AmountText::kReadable : AmountText::kKubelet;
    EvictionManager manager(config);
    const DiskLayout layout{.dedicated_image_fs = life.dice.chance(50), .dedicated_container_fs = life.dice.chance(30)};
    const std::string warning = manager.set_layout(layout);
    life.tell(fmt::format("a node with {} thresholds, {} spare, images {} containers {}: {}", thresholds->size(), config.spare_places,
                          layout.dedicated_image_fs, layout.dedicated_container_fs, warning));
    for (const Threshold& one : manager.thresholds())
      life.tell(fmt::format("  {} {} {} ns{}", to_string(one.signal),
                            one.has_operator ? one.value.text_of(Quantity::from_value(1000, Quantity::Format::kBinarySI)) : "never",
                            one.grace_period_ns, one.min_reclaim ? " and reclaims" : ""));
    std::vector<PodFacts> pods;
    NodeUsage node = random_node(life, now);
    for (int pass = 0; pass < 25; ++pass) {
      now += seconds(life.dice.below(5) == 0 ? life.dice.below(400) : 10);
      if (life.dice.chance(50)) node = random_node(life, now);
      pods.clear();
      for (int i = 0; i < life.dice.below(6); ++i) pods.push_back(random_pod(life, i));
      Summary summary{.node = node, .pods = {}};
      for (const PodFacts& pod : pods)
        if (life.dice.chance(85)) summary.pods[pod.uid] = random_usage(life, pod.uid, now);
      if (life.dice.chance(5)) {
        manager.skip_pass();
        life.tell("  no figures");
        continue;
      }
      life.tell(fmt::format("  {} pods after {} s", pods.size(), std::chrono::duration_cast<seconds>(now - kStart).count()));
      const Outcome& outcome = manager.begin(pods, summary, now);
      tell(life, outcome, pods, manager.conditions());
      if (!outcome.reclaim.empty()) {
        NodeUsage after = node;
        if (life.dice.chance(50)) after = random_node(life, now);
        const bool known = life.dice.chance(85), relieved = known && manager.is_relieved(after);
        const Outcome& then = manager.finish(known ? &after : nullptr);
        EXPECT_EQ(then.was_ranked, !relieved && !pods.empty()) << life.last();
        life.tell(fmt::format("  then{}: {} met", known ? "" : " unknown", manager.met_by(after).size()));
        tell(life, then, pods, manager.conditions());
      }
      for (const PodFacts& pod : pods)
        if (const auto refused = manager.refuse(pod)) {
          EXPECT_FALSE(pod.is_critical) << life.last();
          life.tell(fmt::format("    {} is refused: {}", pod.name, *refused));
        }
    }
  }
  life.expect_as_recorded();
}

TEST(ImageLives, AreAsRecorded) {
  LongLife life("tests/node/lives/images.txt", 92, 16'000);
  TimePoint now = kStart;
  for (int round = 0; round < 25; ++round) {
    ImageGcPolicy policy{.high_threshold_percent = one_of<int>(life, {85, 100, 50}), .low_threshold_percent = one_of<int>(life, {80, 40})};
    policy.minimum_age = one_of<Duration>(life, {Duration{}, minutes(2)});
    policy.maximum_age = one_of<Duration>(life, {Duration{}, minutes(10)});
    ImageCollector collector(policy, now);
    life.tell(fmt::format("a node, {}% to {}%, ages {} and {}", policy.high_threshold_percent, policy.low_threshold_percent,
                          format_go_duration(policy.minimum_age), format_go_duration(policy.maximum_age)));
    std::map<std::string, Image> there;
    for (int i = 0; i < 40; ++i) {
      now += one_of<Duration>(life, {seconds(1), minutes(1), minutes(2), minutes(5)});
      const std::string id = fmt::format("i{}", life.dice.below(6));
      there[id] = {.id = id, .size_bytes = static_cast<std::uint64_t>(1 + life.dice.below(4)) * 100, .is_pinned = life.dice.chance(10)};
      std::vector<Image> images;
      std::set<std::string> used;
      for (const auto& [name, image] : there) {
        images.push_back(image);
        if (life.dice.chance(30)) used.insert(name);
      }
      collector.observe(images, used, now);
      const auto remove = [&](const std::string& which) -> Result<void> {
        EXPECT_FALSE(used.contains(which) || there.at(which).is_pinned) << life.last() << which << " is needed";
        if (life.dice.chance(15)) return fail(ErrorCode::kUnavailable, "busy");
        there.erase(which);
        return {};
      };
      FsUsage fs;
      fs.capacity_bytes = one_of<std::uint64_t>(life, {1000, 1000, 1000, 0});
      fs.available_bytes = one_of<std::uint64_t>(life, {100, 149, 150, 151, 500, 900});
      if (life.dice.chance(5)) fs.available_bytes.reset();
      const bool asked = life.dice.chance(25);
      const ImageGcResult done = asked ? collector.delete_unused(now, remove) : collector.collect(fs, now, remove);
      life.tell(fmt::format("  {} {} of {} free, {} images, {} used: removed {} freed {} {}{}", asked ? "asked," : "",
                            fs.available_bytes.value_or(0), fs.capacity_bytes.value_or(0), images.size(), used.size(),
                            fmt::join(done.removed, " "), done.freed_bytes, done.error,
                            done.event ? fmt::format(" event {} {}", done.event->reason, done.event->message) : ""));
    }
  }
  life.expect_as_recorded();
}

TEST(DeadContainerLives, AreAsRecorded) {
  LongLife life("tests/node/lives/dead_containers.txt", 93, 12'000);
  const TimePoint now = kStart;
  for (int round = 0; round < 500; ++round) {
    std::vector<DeadContainer> containers;
    std::vector<DeadSandbox> sandboxes;
    for (int i = 0; i < life.dice.below(12); ++i)
      containers.push_back({.id = fmt::format("c{}", i),
                            .pod_uid = fmt::format("u{}", life.dice.below(3)),
                            .name = fmt::format("n{}", life.dice.below(2)),
                            .sandbox_id = fmt::format("s{}", life.dice.below(4)),
                            .created = now - seconds(life.dice.below(5) * 30) - Duration(i),
                            .attempt = static_cast<std::uint32_t>(life.dice.below(3)),
                            .is_running = life.dice.chance(15)});
    for (int i = 0; i < life.dice.below(5); ++i)
      sandboxes.push_back({.id = fmt::format("s{}", i),
                           .pod_uid = fmt::format("u{}", life.dice.below(3)),
                           .created = now - seconds(life.dice.below(5) * 30) - Duration(i),
                           .attempt = static_cast<std::uint32_t>(life.dice.below(3)),
                           .is_ready = life.dice.chance(25)});
    const ContainerGcPolicy policy{.minimum_age = seconds(one_of<int>(life, {0, 30, 60})),
                                   .most_per_container = one_of<int>(life, {-1, 0, 1, 2}),
                                   .most = one_of<int>(life, {-1, 0, 2, 5})};
    const std::array<PodExistence, 3> pods = {PodExistence::kLive, static_cast<PodExistence>(life.dice.below(3)),
                                              static_cast<PodExistence>(life.dice.below(3))};
    const auto pod = [&](const std::string& uid) { return pods[static_cast<std::size_t>(uid[1] - '0')]; };
    const bool short_of_disk = life.dice.chance(30);
    const auto gone = containers_to_remove(containers, policy, pod, short_of_disk, now);
    const auto boxes = sandboxes_to_remove(sandboxes, containers, pod, short_of_disk);
    for (const std::string& id : gone) EXPECT_FALSE(std::ranges::find(containers, id, &DeadContainer::id)->is_running) << life.last();
    for (const std::string& id : boxes) {
      EXPECT_FALSE(std::ranges::find(sandboxes, id, &DeadSandbox::id)->is_ready) << life.last();
      EXPECT_TRUE(std::ranges::none_of(containers, [&](const auto& one) { return one.sandbox_id == id; })) << life.last();
    }
    life.tell(fmt::format("{} containers, {} boxes, {} {} {}{}, pods {} {}: {} and {}", containers.size(), sandboxes.size(),
                          format_go_duration(policy.minimum_age), policy.most_per_container, policy.most, short_of_disk ? " short" : "",
                          static_cast<int>(pods[1]), static_cast<int>(pods[2]), fmt::join(gone, " "), fmt::join(boxes, " ")));
  }
  life.expect_as_recorded();
}

}  // namespace
}  // namespace berth::node::eviction
