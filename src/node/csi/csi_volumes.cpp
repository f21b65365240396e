#include "node/csi/csi_volumes.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "node/agent/task_group.h"
#include "node/agent/volume_ownership.h"
#include "node/csi/csi_drivers.h"

namespace berth::node::csi {
namespace {

using Effect = VolumeLedger::Effect;
using Kind = Effect::Kind;
using State = VolumeLedger::State::Kind;

constexpr std::chrono::seconds kTick{1}, kFiguresAge{60};
constexpr std::chrono::milliseconds kLook{100};  ///< How soon a wait sees that it is called off.
constexpr int kStatsTimeoutMs = 10'000;
constexpr int kConflicts = 5;

const model::Gvr kNodes{"", "v1", "nodes"}, kCsiNodes{"storage.k8s.io", "v1", "csinodes"},
    kCsiDrivers{"storage.k8s.io", "v1", "csidrivers"}, kAttachments{"storage.k8s.io", "v1", "volumeattachments"},
    kClaims{"", "v1", "persistentvolumeclaims"}, kSecrets{"", "v1", "secrets"};

std::uint64_t number(const json::Value& usage, std::string_view field) {
  const std::string_view text = json::get_string(usage, {field});
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

eviction::FsUsage usage_of(const json::Value& answer) {
  eviction::FsUsage out;
  for (const json::Value& usage : json::get_array(answer, {"usage"})) {
    const bool is_files = json::get_string(usage, {"unit"}) == "INODES";
    (is_files ? out.inodes : out.capacity_bytes) = number(usage, "total");
    (is_files ? out.inodes_used : out.used_bytes) = number(usage, "used");
    (is_files ? out.inodes_free : out.available_bytes) = number(usage, "available");
  }
  return out;
}

class Volumes final : public CsiVolumes {
 public:
  Volumes(const Clock& clock, CsiOptions options) : clock_(clock), options_(std::move(options)) {}
  ~Volumes() override {
    {
      const MutexLock lock(mutex_);
      is_over_ = true;
    }
    news_.notify_all();
    tick_.notify_all();
    if (timer_.joinable()) timer_.join();
    tasks_.wait();
  }
  Volumes(const Volumes&) = delete;
  Volumes& operator=(const Volumes&) = delete;

  Result<void> open() {
    DriverHooks hooks;
    hooks.install = [this](const DriverNodeInfo& info) { return install(info); };
    hooks.uninstall = [this](const std::string& driver) { uninstall(driver); };
    hooks.came = [this](const std::string& driver) {
      const MutexLock lock(mutex_);
      carry_out(ledger_.driver_came(driver, clock_.now()));
    };
    hooks.went = [this](const std::string& driver) {
      const MutexLock lock(mutex_);
      ledger_.driver_went(driver);
      news_.notify_all();
    };
    auto drivers = CsiDrivers::make(std::move(hooks));
    if (!drivers) return std::unexpected(drivers.error());
    drivers_ = std::move(*drivers);
    const MutexLock lock(mutex_);
    for (const FoundVolume& found : find_volumes(options_.root)) {
      places_[found.volume.key()] = found.volume;
      if (found.pod.empty())
        ledger_.found_staged(found.volume.key(), found.volume.driver);
      else
        ledger_.found_published(found.volume.key(), found.volume.driver, found.pod, found.volume.is_persistent, found.is_mounted);
    }
    timer_ = std::thread([this] { run(); });
    return {};
  }

  plugins::PluginHandler& handler() override { return *drivers_; }

  Result<agent::PlacedVolume> place(const PodVolume& volume, const std::atomic<bool>& cancel) override {
    const auto its = place_of(volume);
    if (!its) return std::unexpected(its.error());
    const std::string pod(json::get_string(volume.pod, {"metadata", "uid"})), key = its->key();
    const agent::PlacedVolume placed{target_path(options_.root, *its, pod), volume.is_read_only, false, its->is_block};
    if (!drivers_->capabilities(its->driver)) {
      // What is mounted stays, whether its driver is there or not.
      const MutexLock lock(mutex_);
      if (ledger_.published(key, pod).kind == State::kReady) return placed;
      return fail(ErrorCode::kUnavailable,
                  fmt::format("MountVolume.SetUp failed for volume \"{}\" : driver name {} not found in the list of registered CSI drivers",
                              its->name, its->driver));
    }
    auto request = prepare(volume, *its);
    if (!request) return std::unexpected(request.error());
    if (const auto bytes = pending_expansion(volume); bytes > 0 && !request->can_expand) finish_expansion(volume.pod, *volume.claim);
    const Want want = request->want;
    MutexLock lock(mutex_);
    places_[key] = request->place;
    claims_[{key, pod}] = {volume.name, volume.claim == nullptr ? json::Value() : *volume.claim};
    requests_.insert_or_assign({key, pod}, std::move(*request));
    pods_.insert_or_assign(pod, volume.pod);
    const auto used = ledger_.in_use();
    auto effects = ledger_.want(want, clock_.now());
    if (!effects) return std::unexpected(effects.error());
    if (used != ledger_.in_use() && options_.in_use_changed) options_.in_use_changed();
    carry_out(*effects);
    const auto state = wait(cancel, [&]() BERTH_REQUIRES(mutex_) { return ledger_.published(key, pod); });
    if (state.kind == State::kReady) return placed;
    return fail(ErrorCode::kUnavailable, state.kind == State::kFailed ? state.error : "it is on its way");
  }

  Result<void> release(const std::string& pod, const std::atomic<bool>& cancel) override {
    MutexLock lock(mutex_);
    carry_out(ledger_.release(pod, clock_.now()));
    const auto state = wait(cancel, [&]() BERTH_REQUIRES(mutex_) { return ledger_.released(pod); });
    if (state.kind != State::kReady) return fail(ErrorCode::kUnavailable, state.kind == State::kFailed ? state.error : "it is under way");
    std::erase_if(requests_, [&](const auto& one) { return one.first.second == pod; });
    std::erase_if(claims_, [&](const auto& one) { return one.first.second == pod; });
    std::erase_if(figures_, [&](const auto& one) { return one.first.second == pod; });
    pods_.erase(pod);
    token_caches_.erase(pod);
    return {};
  }

  void settle(const std::set<std::string>& pods) override {
    const MutexLock lock(mutex_);
    carry_out(ledger_.settle(pods, clock_.now()));
  }

  std::vector<std::string> in_use() const override {
    const MutexLock lock(mutex_);
    std::vector<std::string> out;
    for (const auto& key : ledger_.in_use()) out.push_back("kubernetes.io/csi/" + key);
    return out;
  }

  std::vector<VolumeFigures> figures(const std::string& pod) override {
    const MutexLock lock(mutex_);
    std::vector<VolumeFigures> out;
    for (const auto& [which, named] : claims_) {
      if (which.second != pod || ledger_.published(which.first, pod).kind != State::kReady) continue;
      Counted& counted = figures_[which];
      if (!counted.is_under_way && clock_.now() - counted.at >= kFiguresAge) count(which, counted);
      if (!counted.usage) continue;
      out.push_back({named.name, std::string(json::get_string(named.claim, {"metadata", "namespace"})),
                     std::string(json::get_string(named.claim, {"metadata", "name"})), *counted.usage});
    }
    return out;
  }

  Result<void> ensure_csi_node() override {
    return change_csi_node([](json::Value&) { return false; });
  }

 private:
  using Which = std::pair<std::string, std::string>;  ///< Volume and pod.
  struct Named {
    std::string name;  ///< In the pod.
    json::Value claim;
  };
  struct Counted {
    std::optional<eviction::FsUsage> usage;
    TimePoint at{};
    bool is_under_way = false;
  };

  // ---- what is decided, and what comes of it

  void run() {
    MutexLock lock(mutex_);
    while (!is_over_) {
      carry_out(ledger_.tick(clock_.now()));
      tick_.wait_for(mutex_, kTick, [this] { return is_over_.load(); });
    }
  }

  template <typename Look>
  VolumeLedger::State wait(const std::atomic<bool>& cancel, Look look) BERTH_REQUIRES(mutex_) {
    auto state = look();
    while (state.kind == State::kUnderWay && !cancel && !is_over_) {
      news_.wait_for(mutex_, kLook);
      state = look();
    }
    return state;
  }

  void carry_out(const VolumeLedger::Effects& effects) BERTH_REQUIRES(mutex_) {
    if (is_over_) return;
    for (const Effect& effect : effects)
      tasks_.run([this, effect] {
        const auto [outcome, error] = carry_out(effect);
        if (is_over_) return;  // What was called off is found by the next process.
        if (outcome != Outcome::kDone) log::warning("csi", "volume {}: {}", effect.volume, error);
        const MutexLock lock(mutex_);
        const auto used = ledger_.in_use();
        carry_out(ledger_.done(effect, outcome, error, clock_.now()));
        if (used != ledger_.in_use() && options_.in_use_changed) options_.in_use_changed();
        news_.notify_all();
        if (!effect.pod.empty()) return options_.changed(effect.pod);
        for (const auto& [pod, document] : pods_) options_.changed(pod);
      });
  }

  std::pair<Outcome, std::string> carry_out(const Effect& effect) {
    VolumePlace place;
    std::optional<VolumeRequest> request;
    {
      const MutexLock lock(mutex_);
      place = places_.at(effect.volume);
      for (const auto& [which, known] : requests_)
        if (which.first == effect.volume && (effect.pod.empty() || which.second == effect.pod)) request = known;
    }
    switch (effect.kind) {
      case Kind::kStage:
        return request ? stage(*request) : std::pair(Outcome::kUnknown, std::string("nobody wants it any more"));
      case Kind::kPublish:
        return request ? publish(*request) : std::pair(Outcome::kUnknown, std::string("nobody wants it any more"));
      case Kind::kExpand:
        return request ? expand(effect, *request) : std::pair(Outcome::kUnknown, std::string("nobody wants it any more"));
      case Kind::kUnpublish:
        return unpublish(place, effect.pod);
      case Kind::kUnstage:
        return unstage(place);
    }
    return {Outcome::kUnknown, ""};
  }

  static std::pair<Outcome, std::string> refused(const Error& error) { return {Outcome::kRefused, error.message}; }

  std::pair<Outcome, std::string> ask(const VolumePlace& place, const std::string& method, const json::Value& request) {
    const auto answer = drivers_->call(place.driver, method, request, is_over_);
    if (answer) return {Outcome::kDone, ""};
    return {answer.error().outcome, answer.error().message};
  }

  std::pair<Outcome, std::string> stage(const VolumeRequest& request) {
    if (auto recorded = record_staged(options_.root, request.place); !recorded) return refused(recorded.error());
    auto asked = ask(request.place, "NodeStageVolume", request.stage);
    if (asked.first == Outcome::kRefused) (void)forget_staged(options_.root, request.place);
    if (asked.first != Outcome::kDone)
      asked.second = fmt::format("MountVolume.MountDevice failed for volume \"{}\" : {}", request.place.name, asked.second);
    return asked;
  }

  std::pair<Outcome, std::string> publish(const VolumeRequest& request) {
    const std::string& pod = request.want.pod;
    if (auto recorded = record_published(options_.root, request.place, pod, options_.node); !recorded) return refused(recorded.error());
    auto asked = ask(request.place, "NodePublishVolume", request.publish);
    const std::string target = target_path(options_.root, request.place, pod);
    if (asked.first == Outcome::kRefused) (void)forget_published(options_.root, request.place, pod);
    if (asked.first != Outcome::kDone) {
      asked.second = fmt::format("MountVolume.SetUp failed for volume \"{}\" : {}", request.place.name, asked.second);
      return asked;
    }
    bool is_first = false;
    {
      const MutexLock lock(mutex_);
      is_first = owned_.insert({request.want.volume, pod}).second;
    }
    if (request.owner_group && is_first) agent::give_to_group(target, *request.owner_group, request.is_owner_kept_where_root_has_it);
    return asked;
  }

  std::pair<Outcome, std::string> expand(const Effect& effect, const VolumeRequest& request) {
    auto asked = ask(request.place, "NodeExpandVolume", request.expand);
    json::Value pod, claim;
    {
      const MutexLock lock(mutex_);
      if (const auto known = claims_.find({effect.volume, effect.pod}); known != claims_.end()) claim = known->second.claim;
      if (const auto known = pods_.find(effect.pod); known != pods_.end()) pod = known->second;
    }
    if (asked.first == Outcome::kDone) {
      finish_expansion(pod, claim);
    } else {
      asked.second = fmt::format("MountVolume.NodeExpandVolume failed for volume \"{}\" : {}", request.place.name, asked.second);
      options_.event(pod, "Warning", "VolumeResizeFailed", asked.second);
    }
    return asked;
  }

  std::pair<Outcome, std::string> unpublish(const VolumePlace& place, const std::string& pod) {
    auto asked = ask(place, "NodeUnpublishVolume",
                     json::Object{{"volume_id", place.handle}, {"target_path", target_path(options_.root, place, pod)}});
    if (asked.first == Outcome::kDone)
      if (auto forgotten = forget_published(options_.root, place, pod); !forgotten) asked = {Outcome::kUnknown, forgotten.error().message};
    if (asked.first != Outcome::kDone)
      asked.second = fmt::format("UnmountVolume.TearDown failed for volume \"{}\" : {}", place.name, asked.second);
    const MutexLock lock(mutex_);
    if (asked.first == Outcome::kDone) owned_.erase({place.key(), pod});
    return asked;
  }

  std::pair<Outcome, std::string> unstage(const VolumePlace& place) {
    auto asked = ask(place, "NodeUnstageVolume",
                     json::Object{{"volume_id", place.handle}, {"staging_target_path", staging_path(options_.root, place)}});
    if (asked.first == Outcome::kDone)
      if (auto forgotten = forget_staged(options_.root, place); !forgotten) asked = {Outcome::kUnknown, forgotten.error().message};
    if (asked.first != Outcome::kDone) asked.second = fmt::format("UnmountDevice failed for volume \"{}\" : {}", place.name, asked.second);
    return asked;
  }

  void count(const Which& which, Counted& counted) BERTH_REQUIRES(mutex_) {
    const VolumePlace place = places_.at(which.first);
    const auto able = drivers_->capabilities(place.driver);
    if (!able || !able->contains("GET_VOLUME_STATS")) return;
    counted.is_under_way = true;
    json::Object request{{"volume_id", place.handle}, {"volume_path", target_path(options_.root, place, which.second)}};
    if (able->contains("STAGE_UNSTAGE_VOLUME") && place.is_persistent) request["staging_target_path"] = staging_path(options_.root, place);
    tasks_.run([this, which, place, request = std::move(request)] {
      const auto answer = drivers_->call(place.driver, "NodeGetVolumeStats", request, is_over_, kStatsTimeoutMs);
      const MutexLock lock(mutex_);
      const auto found = figures_.find(which);
      if (found == figures_.end()) return;
      found->second.is_under_way = false;
      found->second.at = clock_.now();
      if (answer) found->second.usage = usage_of(*answer);
    });
  }

  // ---- what the API knows

  Result<json::Value> get(const model::Gvr& gvr, const std::string& ns, const std::string& name) const {
    return options_.api({.verb = "get", .gvr = gvr, .ns = ns, .name = name});
  }

  /// Null where it is not there.
  Result<json::Value> get_if_there(const model::Gvr& gvr, const std::string& name) const {
    auto found = get(gvr, "", name);
    if (!found && found.error().code == ErrorCode::kNotFound) return json::Value();
    return found;
  }

  /// All that a request is made of.
  Result<VolumeRequest> prepare(const PodVolume& volume, const VolumePlace& place) {
    Surroundings around{.root = options_.root, .node = options_.node};
    around.capabilities = drivers_->capabilities(place.driver).value_or(Capabilities{});
    const auto driver = get_if_there(kCsiDrivers, place.driver);
    if (!driver) return std::unexpected(driver.error());
    if (!driver->is_null()) around.driver = &*driver;
    json::Value attachment;
    if (needs_attachment(around.driver, place)) {
      auto found = get_if_there(kAttachments, attachment_name(place.handle, place.driver, options_.node));
      if (!found) return std::unexpected(found.error());
      attachment = std::move(*found);
      if (!attachment.is_null()) around.attachment = &attachment;
    }
    for (auto [field, into] :
         {std::pair("nodeStageSecretRef", &around.stage_secrets), std::pair("nodePublishSecretRef", &around.publish_secrets),
          std::pair("nodeExpandSecretRef", &around.expand_secrets)})
      if (const auto ref = secret_of(volume, field)) {
        const auto secret = get(kSecrets, ref->first, ref->second);
        if (!secret)
          return fail(secret.error().code,
                      fmt::format("fetching {} {}/{} failed: {}", field, ref->first, ref->second, secret.error().message));
        for (const auto& [key, value] : json::get_object(*secret, {"data"}))
          if (value.is_string()) into->emplace(std::string(key), agent::decode_base64(json::as_view(value)));
      }
    if (auto tokens = ask_tokens(volume, around); !tokens) return std::unexpected(tokens.error());
    return make_request(volume, around);
  }

  Result<void> ask_tokens(const PodVolume& volume, Surroundings& around) {
    if (around.driver == nullptr || json::get_array(*around.driver, {"spec", "tokenRequests"}).empty()) return {};
    const std::string uid(json::get_string(volume.pod, {"metadata", "uid"}));
    std::shared_ptr<agent::TokenCache> cache;
    {
      const MutexLock lock(mutex_);
      auto& known = token_caches_[uid];
      if (known == nullptr) known = std::make_shared<agent::TokenCache>();
      cache = known;
    }
    for (const json::Value& wanted : json::get_array(*around.driver, {"spec", "tokenRequests"})) {
      agent::TokenRequest request{std::string(json::get_string(volume.pod, {"metadata", "namespace"})),
                                  std::string(json::get_string(volume.pod, {"spec", "serviceAccountName"}, "default")),
                                  std::string(json::get_string(wanted, {"audience"})),
                                  std::string(json::get_string(volume.pod, {"metadata", "name"})),
                                  uid,
                                  json::get_int(wanted, {"expirationSeconds"}, 3600)};
      const auto token = cache->get(options_.tokens, request, clock_.now());
      if (!token) return std::unexpected(token.error());
      around.tokens[request.audience] =
          json::serialize(json::Object{{"token", token->text}, {"expirationTimestamp", format_rfc3339(token->expires)}});
    }
    return {};
  }

  /// The claim shows the size that its volume has now.
  void finish_expansion(const json::Value& pod, const json::Value& known) {
    const std::string ns(json::get_string(known, {"metadata", "namespace"})), name(json::get_string(known, {"metadata", "name"}));
    for (int i = 0; i < kConflicts; ++i) {
      const auto claim = get(kClaims, ns, name);
      const auto volume = claim ? get({"", "v1", "persistentvolumes"}, "", std::string(json::get_string(*claim, {"spec", "volumeName"})))
                                : Result<json::Value>(std::unexpected(claim.error()));
      if (!volume) return;
      client::Call call{.verb = "patch", .gvr = kClaims, .ns = ns, .name = name, .subresource = "status"};
      call.content_type = "application/merge-patch+json";
      call.body = json::serialize(expanded_claim_patch(*claim, *volume));
      const auto patched = options_.api(std::move(call));
      if (patched)
        options_.event(
            pod, "Normal", "FileSystemResizeSuccessful",
            fmt::format("MountVolume.NodeExpandVolume succeeded for volume \"{}\"", json::get_string(*volume, {"metadata", "name"})));
      if (patched || patched.error().code != ErrorCode::kConflict) return;
    }
  }

  Result<void> patch_node(const json::Value& patch) const {
    client::Call call{.verb = "patch", .gvr = kNodes, .name = options_.node};
    call.content_type = "application/merge-patch+json";
    call.body = json::serialize(patch);
    const auto patched = options_.api(std::move(call));
    if (!patched) return std::unexpected(patched.error());
    return {};
  }

  Result<void> install(const DriverNodeInfo& info) {
    const auto node = get(kNodes, "", options_.node);
    if (!node) return std::unexpected(node.error());
    const auto patch = node_patch(*node, info);
    if (!patch) return std::unexpected(patch.error());
    if (auto patched = patch_node(*patch); !patched) return patched;
    return change_csi_node([&](json::Value& document) { return put_driver(document, info); });
  }

  void uninstall(const std::string& driver) {
    if (auto changed = change_csi_node([&](json::Value& document) { return remove_driver(document, driver); }); !changed)
      log::warning("csi", "CSINode {} names {} still: {}", options_.node, driver, changed.error().message);
    if (const auto node = get(kNodes, "", options_.node)) (void)patch_node(node_patch_without(*node, driver));
  }

  Result<void> change_csi_node(const std::function<bool(json::Value& document)>& change) {
    Result<void> out;
    for (int i = 0; i < kConflicts; ++i) {
      auto document = get_if_there(kCsiNodes, options_.node);
      if (!document) return std::unexpected(document.error());
      client::Call call{.verb = "update", .gvr = kCsiNodes, .name = options_.node};
      if (document->is_null()) {
        const auto node = get(kNodes, "", options_.node);
        if (!node) return std::unexpected(node.error());
        document = new_csi_node(*node);
        call.verb = "create";
        call.name.clear();
      }
      if (!change(*document) && call.verb == "update") return {};
      call.body = json::serialize(*document);
      const auto written = options_.api(std::move(call));
      if (written) return {};
      out = std::unexpected(written.error());
      if (written.error().code != ErrorCode::kConflict) return out;
    }
    return out;
  }

  const Clock& clock_;
  const CsiOptions options_;
  std::unique_ptr<CsiDrivers> drivers_;
  std::atomic<bool> is_over_{false};

  mutable Mutex mutex_;
  CondVar news_, tick_;
  VolumeLedger ledger_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, VolumePlace> places_ BERTH_GUARDED_BY(mutex_);  ///< By volume.
  std::map<Which, VolumeRequest> requests_ BERTH_GUARDED_BY(mutex_);    ///< As last made.
  std::map<Which, Named> claims_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, json::Value> pods_ BERTH_GUARDED_BY(mutex_);                                 ///< By uid.
  std::map<std::string, std::shared_ptr<agent::TokenCache>> token_caches_ BERTH_GUARDED_BY(mutex_);  ///< By pod, which asks on one thread.
  std::map<Which, Counted> figures_ BERTH_GUARDED_BY(mutex_);
  std::set<Which> owned_ BERTH_GUARDED_BY(mutex_);  ///< Given to their group by this process.
  agent::TaskGroup tasks_;
  std::thread timer_;
};

}  // namespace

Result<std::unique_ptr<CsiVolumes>> CsiVolumes::start(const Clock& clock, CsiOptions options) {
  auto out = std::make_unique<Volumes>(clock, std::move(options));
  if (auto opened = out->open(); !opened) return std::unexpected(opened.error());
  return out;
}

}  // namespace berth::node::csi
