#include <algorithm>
#include <charconv>
#include <ctime>

#include "base/check.h"
#include "placement/cluster.h"
#include "placement/heap_bytes.h"
#include "placement/plugins/volumes.h"

namespace berth::placement {
namespace {

/// Seconds since 1970 of a UTC date (proleptic Gregorian).
std::int64_t days_from_civil(std::int64_t year, unsigned month, unsigned day) {
  year -= month <= 2;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto year_of_era = static_cast<unsigned>(year - era * 400);
  const unsigned day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + static_cast<std::int64_t>(day_of_era) - 719468;
}

/// "2026-01-10T04:18:00Z", with optional fraction; the far future when it is not that.
std::int64_t parse_time_ns(std::string_view text) {
  const auto number = [&](std::size_t at, std::size_t size) -> std::int64_t {
    std::int64_t value = -1;
    if (at + size > text.size()) return -1;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + size, value);
    return error == std::errc() && end == text.data() + at + size ? value : -1;
  };
  if (text.size() < 20 || text[4] != '-' || text[10] != 'T') return INT64_MAX;
  const auto year = number(0, 4), month = number(5, 2), day = number(8, 2), hour = number(11, 2), minute = number(14, 2),
             second = number(17, 2);
  if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || hour < 0 || minute < 0 || second < 0) return INT64_MAX;
  std::int64_t nanos = 0;
  std::size_t at = 19;
  if (text[at] == '.') {
    std::int64_t unit = 100'000'000;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10) nanos += (text[at] - '0') * unit;
  }
  std::int64_t offset_seconds = 0;
  if (at + 6 <= text.size() && (text[at] == '+' || text[at] == '-')) {
    offset_seconds = (number(at + 1, 2) * 60 + number(at + 4, 2)) * 60;
    if (text[at] == '-') offset_seconds = -offset_seconds;
  }
  const std::int64_t seconds = days_from_civil(year, static_cast<unsigned>(month), static_cast<unsigned>(day)) * 86400 + hour * 3600 +
                               minute * 60 + second - offset_seconds;
  return seconds * 1'000'000'000 + nanos;
}

AffinityTerm resolve(const model::PodAffinityTerm& term, const model::PodView& owner, Era era) {
  AffinityTerm out;
  out.namespaces = term.namespaces;
  // 1.20 knows no namespaceSelector.
  if (era != Era::k120) out.namespace_selector = term.namespace_selector;
  if (out.namespaces.empty() && !out.namespace_selector) out.namespaces.push_back(owner.meta.ns);
  out.selector = term.selector;
  out.topology_key = term.topology_key;
  return out;
}

std::vector<AffinityTerm> resolve_all(const SharedList<model::PodAffinityTerm>& terms, const model::PodView& owner, Era era) {
  std::vector<AffinityTerm> out;
  for (const auto& term : terms) out.push_back(resolve(term, owner, era));
  return out;
}

std::vector<AffinityTerm> resolve_all(const SharedList<model::WeightedPodAffinityTerm>& terms, const model::PodView& owner, Era era) {
  std::vector<AffinityTerm> out;
  for (const auto& [weight, term] : terms) out.emplace_back(resolve(term, owner, era)).weight = weight;
  return out;
}

void collect_ports(const SharedList<model::ContainerView>& containers, bool only_sidecars, std::vector<model::HostPort>& out) {
  for (const auto& container : containers) {
    if (only_sidecars && !container.restarts_always) continue;
    for (auto port : container.host_ports) {
      if (port.port <= 0) continue;
      if (port.protocol.empty()) port.protocol = "TCP";
      if (port.host_ip.empty()) port.host_ip = "0.0.0.0";
      out.push_back(std::move(port));
    }
  }
}

/// ":latest" where there is no tag; 1.36 counts init containers as well.
std::vector<std::string> image_references(const model::PodView& pod, Era era) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& image) {
    const auto colon = image.rfind(':');
    const auto slash = image.rfind('/');
    const bool untagged = colon == std::string::npos || (slash != std::string::npos && colon < slash);
    out.push_back(untagged ? image + ":latest" : image);
  };
  if (era != Era::k120)
    for (const auto& container : pod.init_containers) add(container.image);
  for (const auto& container : pod.containers) add(container.image);
  if (era != Era::k120)
    for (const auto& volume : pod.volumes)
      if (volume.kind == model::VolumeView::Kind::kImage) add(volume.id);
  return out;
}

class Hasher {
 public:
  void add(std::uint64_t value) {
    state_ ^= value + 0x9e3779b97f4a7c15ULL + (state_ << 6) + (state_ >> 2);
    state_ *= 0xff51afd7ed558ccdULL;
    state_ ^= state_ >> 32;
  }
  void add(std::string_view text) { add(std::hash<std::string_view>{}(text)); }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x2545f4914f6cdd1dULL;
};

void add_terms(Hasher& hasher, const SharedList<AffinityTerm>& terms) {
  hasher.add(terms.size());
  for (const auto& term : terms) {
    hasher.add(term.topology_key);
    hasher.add(static_cast<std::uint64_t>(term.weight));
    for (const auto& requirement : term.selector.requirements())
      for (const auto& value : requirement.values) hasher.add(value);
  }
}

void fill_hashes(PodInfo& info) {
  const model::PodView& view = *info.pod;
  Hasher traits;
  traits.add(view.meta.ns);
  traits.add(static_cast<std::uint64_t>(view.meta.is_deleting));
  for (const auto& [key, value] : view.meta.labels.pairs()) {
    traits.add(key);
    traits.add(value);
  }
  for (const auto* terms : {&info.required_affinity, &info.required_anti_affinity, &info.preferred_affinity, &info.preferred_anti_affinity})
    add_terms(traits, *terms);
  info.traits_hash = traits.value();
}

/// Sums that hit a limit cannot be taken apart again.
bool is_saturated(std::int64_t value) { return value == INT64_MAX || value == INT64_MIN; }

}  // namespace

bool AffinityTerm::matches(const model::PodView& pod, const model::Labels& namespace_labels) const {
  if (!std::ranges::binary_search(namespaces, pod.meta.ns) && !(namespace_selector && namespace_selector->matches(namespace_labels)))
    return false;
  return selector.matches(pod.meta.labels);
}

std::shared_ptr<const PodInfo> PodInfo::make(model::PodViewPtr pod, Era era) {
  auto out = std::make_shared<PodInfo>();
  const model::PodView& view = *pod;
  out->key = view.key();
  out->request = pod_request(view, era, true);
  if (era != Era::k120 && (!view.container_statuses.empty() || view.pod_level_status)) {
    auto by_spec = pod_request(view, era, false).total;
    if (by_spec != out->request.total) out->spec_request = std::make_shared<const Resource>(std::move(by_spec));
  }
  out->scoring_request = placement::scoring_request(view, era);
  out->images = image_references(view, era);
  out->image_containers = view.containers.size() + (era == Era::k120 ? 0 : view.init_containers.size());
  std::vector<model::HostPort> ports;
  collect_ports(view.containers, false, ports);
  if (era != Era::k120) collect_ports(view.init_containers, true, ports);
  out->host_ports = std::move(ports);
  out->required_affinity = resolve_all(view.required_affinity, view, era);
  out->required_anti_affinity = resolve_all(view.required_anti_affinity, view, era);
  out->preferred_affinity = resolve_all(view.preferred_affinity, view, era);
  out->preferred_anti_affinity = resolve_all(view.preferred_anti_affinity, view, era);
  out->start_time_ns = parse_time_ns(view.start_time);
  out->pod = std::move(pod);
  fill_hashes(*out);
  out->bytes = out->count_bytes();
  return out;
}

std::shared_ptr<const PodInfo> PodInfo::moved_on(model::PodViewPtr now) const {
  auto out = std::make_shared<PodInfo>(*this);
  out->start_time_ns = parse_time_ns(now->start_time);
  out->pod = std::move(now);
  return out;
}

std::size_t PodInfo::count_bytes() const {
  const model::PodView& view = *pod;
  const model::ObjectMeta& meta = view.meta;
  return sizeof(PodInfo) + sizeof(model::PodView) + heap_bytes(key, images, host_ports) +
         heap_bytes(required_affinity, required_anti_affinity, preferred_affinity, preferred_anti_affinity) +
         heap_bytes(meta.ns, meta.name, meta.uid, meta.labels, meta.annotations, meta.owner_references, meta.creation_timestamp) +
         heap_bytes(view.scheduling_gates, view.containers, view.init_containers, view.overhead, view.container_statuses) +
         heap_bytes(view.node_selector, view.node_affinity.preferred) +
         (view.node_affinity.required ? heap_bytes(view.node_affinity.required->terms) : 0) +
         heap_bytes(view.required_affinity, view.required_anti_affinity, view.preferred_affinity, view.preferred_anti_affinity) +
         heap_bytes(view.tolerations, view.spread_constraints, view.volumes, view.resource_claims, view.required_features);
}

bool same_traits(const PodInfo& a, const PodInfo& b) {
  const auto &left = a.view(), &right = b.view();
  return left.meta.is_deleting == right.meta.is_deleting && left.meta.ns == right.meta.ns && left.meta.labels == right.meta.labels &&
         a.required_affinity == b.required_affinity && a.required_anti_affinity == b.required_anti_affinity &&
         a.preferred_affinity == b.preferred_affinity && a.preferred_anti_affinity == b.preferred_anti_affinity;
}

std::atomic<std::uint64_t>& NoteId::next() {
  static std::atomic<std::uint64_t> id{1};
  return id;
}

namespace {

using VolumeKind = model::VolumeView::Kind;

bool is_claim(const model::VolumeView& volume) { return volume.kind == VolumeKind::kPersistentVolumeClaim && !volume.id.empty(); }
/// What NodeVolumeLimits would have to look at closer.
bool is_other_limited(const model::VolumeView& volume) {
  return volume.kind == VolumeKind::kEphemeral || (volume.kind == VolumeKind::kPersistentVolumeClaim && volume.id.empty()) ||
         !volumes::in_tree_plugin(volume).empty();
}

/// What pods of the node count together is what they count one by one: the last that goes leaves nothing.
void check_use(const NodeInfo& node, const PodInfo& gone) {
  const auto most = static_cast<std::uint32_t>(node.pods.size());
  BERTH_CHECK(node.pods_with_affinity <= most && node.pods_with_required_anti_affinity <= most && node.pods_with_ports <= most,
              "node {} without {}: of {} pods {} have affinity, {} required anti-affinity, {} ports", node.name, gone.key, most,
              node.pods_with_affinity, node.pods_with_required_anti_affinity, node.pods_with_ports);
  if (most > 0) return;
  BERTH_CHECK(node.requested.cpu_milli == 0 && node.requested.memory_bytes == 0 && node.requested.ephemeral_storage_bytes == 0 &&
                  node.nonzero_cpu_milli == 0 && node.nonzero_memory_bytes == 0 && node.claim_volumes == 0 && node.other_volumes == 0 &&
                  node.claim_references.empty(),
              "node {} is empty without {} and still uses {}m of CPU, {} bytes of memory, {} of storage, {} claims", node.name, gone.key,
              node.requested.cpu_milli, node.requested.memory_bytes, node.requested.ephemeral_storage_bytes, node.claim_volumes);
}

}  // namespace

void NodeInfo::add_pod(PodInfoPtr pod) {
  notes.clear();
  requested.add(pod->request.total);
  nonzero_cpu_milli = saturating_add(nonzero_cpu_milli, pod->request.nonzero_cpu_milli);
  nonzero_memory_bytes = saturating_add(nonzero_memory_bytes, pod->request.nonzero_memory_bytes);
  pods_with_affinity += pod->has_affinity();
  pods_with_required_anti_affinity += !pod->required_anti_affinity.empty();
  pods_with_ports += !pod->host_ports.empty();
  for (const auto& volume : pod->view().volumes) {
    claim_volumes += is_claim(volume);
    other_volumes += is_other_limited(volume);
    if (volume.kind == VolumeKind::kPersistentVolumeClaim || volume.kind == VolumeKind::kEphemeral)
      ++claim_references[pod->view().ns() + "/" + volume.id];
  }
  pods.push_back(std::move(pod));
}

bool NodeInfo::remove_pod(std::string_view key) {
  const auto at = std::ranges::find_if(pods, [&](const PodInfoPtr& pod) { return pod->key == key; });
  if (at == pods.end()) return false;
  const PodInfoPtr pod = *at;
  notes.clear();
  pods.erase(at);
  pods_with_affinity -= pod->has_affinity();
  pods_with_required_anti_affinity -= !pod->required_anti_affinity.empty();
  pods_with_ports -= !pod->host_ports.empty();
  for (const auto& volume : pod->view().volumes) {
    claim_volumes -= is_claim(volume);
    other_volumes -= is_other_limited(volume);
    if (volume.kind != VolumeKind::kPersistentVolumeClaim && volume.kind != VolumeKind::kEphemeral) continue;
    const auto claim = claim_references.find(pod->view().ns() + "/" + volume.id);
    if (claim != claim_references.end() && --claim->second == 0) claim_references.erase(claim);
  }
  const bool recount = is_saturated(requested.cpu_milli) || is_saturated(requested.memory_bytes) ||
                       is_saturated(requested.ephemeral_storage_bytes) || is_saturated(nonzero_cpu_milli) ||
                       is_saturated(nonzero_memory_bytes) ||
                       std::ranges::any_of(requested.scalars, [](const auto& pair) { return is_saturated(pair.second); });
  if (!recount) {
    requested.subtract(pod->request.total);
    nonzero_cpu_milli -= pod->request.nonzero_cpu_milli;
    nonzero_memory_bytes -= pod->request.nonzero_memory_bytes;
    check_use(*this, *pod);
    return true;
  }
  requested = {};
  nonzero_cpu_milli = nonzero_memory_bytes = 0;
  for (const auto& other : pods) {
    requested.add(other->request.total);
    nonzero_cpu_milli = saturating_add(nonzero_cpu_milli, other->request.nonzero_cpu_milli);
    nonzero_memory_bytes = saturating_add(nonzero_memory_bytes, other->request.nonzero_memory_bytes);
  }
  return true;
}

}  // namespace berth::placement
