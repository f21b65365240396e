#include "placement/signature.h"

#include <algorithm>
#include <cstring>

#include "placement/devices/extended.h"
#include "placement/plugins/inter_pod_affinity.h"

namespace berth::placement {
namespace {

/// Eight bytes at a time; equality never rests on it.
std::uint64_t hash_of(std::string_view bytes, std::uint64_t state) {
  const auto mix = [&](std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15ULL;
    state ^= state >> 29;
  };
  mix(bytes.size());
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    mix(word);
    bytes.remove_prefix(8);
  }
  std::uint64_t word = 0;
  if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
  mix(word);
  return state * 0xff51afd7ed558ccdULL ^ state >> 32;
}

}  // namespace

Signature::Signature(std::string bytes, std::size_t static_size, std::size_t columns_size, std::vector<std::uint32_t> audience)
    : bytes_(std::move(bytes)), static_size_(static_size), columns_size_(columns_size), audience_(std::move(audience)) {
  columns_hash_ = hash_of(columns(), 1);
  hash_ = hash_of(std::string_view(bytes_).substr(columns_size_), columns_hash_);
  for (const auto id : audience_) hash_ = (hash_ ^ id) * 0xff51afd7ed558ccdULL;
}

bool Signature::continues_as(const Signature& other, std::size_t seen) const {
  const auto &mine = audience_, &theirs = other.audience_;
  return columns_hash_ == other.columns_hash_ && has_checks() == other.has_checks() && columns() == other.columns() &&
         mine.size() <= theirs.size() && std::ranges::equal(mine, std::span(theirs).first(mine.size())) &&
         (mine.size() == theirs.size() || theirs[mine.size()] >= seen);
}

std::strong_ordering operator<=>(const Signature& a, const Signature& b) {
  if (const auto order = a.bytes_ <=> b.bytes_; order != 0) return order;
  if (const auto order = a.columns_size_ <=> b.columns_size_; order != 0) return order;
  return a.audience_ <=> b.audience_;
}

void Signer::begin_plugin(std::size_t slot) {
  if (bytes_.size() != plugin_begin_) add(static_cast<std::int64_t>(plugin_slot_ << 32 | (bytes_.size() - plugin_begin_)));
  plugin_begin_ = bytes_.size();
  plugin_slot_ = slot;
}

bool Signer::begin(Fact fact) {
  if ((written_ & fact) != 0) return false;
  written_ |= fact;
  add(static_cast<std::int64_t>(fact));
  return true;
}

void Signer::add(std::int64_t value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes_.append(raw, sizeof value);
}

void Signer::add(std::string_view text) {
  add(static_cast<std::int64_t>(text.size()));
  bytes_.append(text);
}

void Signer::add(const model::Requirement& requirement) {
  add(requirement.key);
  add(static_cast<std::int64_t>(requirement.op));
  add(static_cast<std::int64_t>(requirement.values.size()));
  for (const auto& value : requirement.values) add(value);
}

void Signer::add(const std::vector<std::string>& texts) {
  add(static_cast<std::int64_t>(texts.size()));
  for (const auto& text : texts) add(text);
}

void Signer::add(const model::Selector& selector) {
  add(selector.is_nothing() ? -1 : static_cast<std::int64_t>(selector.requirements().size()));
  for (const auto& requirement : selector.requirements()) add(requirement);
}

void Signer::add(const AffinityTerm& term) {
  add(static_cast<std::int64_t>(term.namespaces.size()));
  for (const auto& ns : term.namespaces) add(ns);
  add(static_cast<std::int64_t>(term.namespace_selector.has_value()));
  if (term.namespace_selector) add(*term.namespace_selector);
  add(term.selector);
  add(term.topology_key);
  add(term.weight);
}

void Signer::add(const std::vector<AffinityTerm>& terms) {
  add(static_cast<std::int64_t>(terms.size()));
  for (const auto& term : terms) add(term);
}

void Signer::add(const Resource& resource) {
  add(resource.cpu_milli);
  add(resource.memory_bytes);
  add(resource.ephemeral_storage_bytes);
  add(static_cast<std::int64_t>(resource.scalars.size()));
  for (const auto& [name, amount] : resource.scalars) {
    add(name);
    add(amount);
  }
}

void Signer::add(const model::NodeSelectorTerm& term) {
  for (const auto* list : {&term.expressions, &term.fields}) {
    add(static_cast<std::int64_t>(list->size()));
    for (const auto& requirement : *list) add(requirement);
  }
  add(static_cast<std::int64_t>(term.errors.size()));
  for (const auto& error : term.errors) add(error);
}

void Signer::priority() {
  if (begin(kPriority)) add(pod_.view().priority);
}

void Signer::name_of_node() {
  if (begin(kNodeName)) add(pod_.view().node_name);
}

/// How long a toleration lasts is no matter of placement.
void Signer::tolerations() {
  if (!begin(kTolerations)) return;
  add(static_cast<std::int64_t>(pod_.view().tolerations.size()));
  for (const auto& one : pod_.view().tolerations) {
    add(one.key);
    add(one.op);
    add(one.value);
    add(one.effect);
  }
}

void Signer::node_selection() {
  if (!begin(kNodeSelection)) return;
  const auto& view = pod_.view();
  add(static_cast<std::int64_t>(view.node_selector.size()));
  for (const auto& [key, value] : view.node_selector) {
    add(key);
    add(value);
  }
  const auto& required = view.node_affinity.required;
  add(required ? static_cast<std::int64_t>(required->terms.size()) : -1);
  if (required)
    for (const auto& term : required->terms) add(term);
  add(static_cast<std::int64_t>(view.node_affinity.preferred.size()));
  for (const auto& [weight, preference] : view.node_affinity.preferred) {
    add(weight);
    add(preference);
  }
}

void Signer::request() {
  if (!begin(kRequest)) return;
  add(pod_.request.total);
  add(pod_.request.nonzero_cpu_milli);
  add(pod_.request.nonzero_memory_bytes);
  add(pod_.scoring_request);
  add(static_cast<std::int64_t>(pod_.spec_request != nullptr));
  if (pod_.spec_request != nullptr) add(*pod_.spec_request);
  add(backed_resources());
}

/// What device classes back of what it asks for, where the classes are known.
std::vector<std::string> Signer::backed_resources() const {
  if (onlookers_ == nullptr) return {};
  return devices::backed_resources(pod_.wanted(), onlookers_->cluster());
}

void Signer::host_ports() {
  if (!begin(kHostPorts)) return;
  add(static_cast<std::int64_t>(pod_.host_ports.size()));
  for (const auto& port : pod_.host_ports) {
    add(static_cast<std::int64_t>(port.port));
    add(port.protocol);
    add(port.host_ip);
  }
}

void Signer::images() {
  if (!begin(kImages)) return;
  add(static_cast<std::int64_t>(pod_.image_containers));
  add(static_cast<std::int64_t>(pod_.images.size()));
  const Cluster* cluster = onlookers_ == nullptr ? nullptr : &onlookers_->cluster();
  for (const auto& image : pod_.images) add(cluster == nullptr || cluster->image(image) != nullptr ? std::string_view(image) : "");
}

void Signer::controller() {
  if (!begin(kController)) return;
  const auto* owner = pod_.view().meta.controller();
  add(static_cast<std::int64_t>(owner != nullptr));
  if (owner == nullptr) return;
  add(owner->api_version);
  add(owner->kind);
  add(owner->name);
  add(owner->uid);
}

void Signer::name_space() {
  if (begin(kNamespace)) add(pod_.view().ns());
}

void Signer::labels() {
  if (!begin(kLabels)) return;
  const auto& pairs = pod_.view().meta.labels.pairs();
  add(static_cast<std::int64_t>(pairs.size()));
  for (const auto& [key, value] : pairs) {
    add(key);
    add(value);
  }
}

void Signer::volumes() {
  using Kind = model::VolumeView::Kind;
  const auto matters = [](const model::VolumeView& volume) {
    return volume.kind != Kind::kOther && volume.kind != Kind::kCsi && volume.kind != Kind::kImage;
  };
  const auto& volumes = pod_.view().volumes;
  const auto count = std::ranges::count_if(volumes, matters);
  if (count == 0 || !begin(kVolumes)) return;
  add(static_cast<std::int64_t>(count));
  for (const auto& volume : volumes) {
    if (!matters(volume)) continue;
    add(static_cast<std::int64_t>(volume.kind));
    add(volume.name);
    add(volume.id);
    add(volume.disk_uri);
    add(volume.pool);
    add(volume.monitors);
    add(volume.target_portal);
    add(volume.lun);
    add(static_cast<std::int64_t>(volume.read_only));
    if (volume.kind == Kind::kPersistentVolumeClaim) name_space();
    if (volume.kind == Kind::kEphemeral) identity();  // Its claim is named after the pod, and owned by it.
  }
}

void Signer::annotation(std::string_view key) {
  const std::string* value = pod_.view().meta.annotation(key);
  add(static_cast<std::int64_t>(value != nullptr));
  if (value != nullptr) add(*value);
}

void Signer::resource_claims() {
  if (!backed_resources().empty()) {
    add("devices");
    identity();  // A claim of its own is made for it.
  }
  const auto& claims = pod_.view().resource_claims;
  if (claims.empty() || !begin(kResourceClaims)) return;
  add(static_cast<std::int64_t>(claims.size()));
  for (const auto& claim : claims) {
    add(claim.name);
    add(claim.claim_name);
    add(claim.template_name);
    add(static_cast<std::int64_t>(claim.has_status));
    add(claim.made_name);
  }
  identity();  // Claims are reserved for a pod, and those of templates are its own.
}

void Signer::identity() {
  if (!begin(kIdentity)) return;
  add(pod_.key);
  add(pod_.view().meta.uid);
}

void Signer::audience() {
  if (onlookers_ == nullptr) {
    name_space();
    labels();
    return;
  }
  if (!begin(kAudience)) return;
  const auto terms = onlookers_->terms_that_match(pod_);
  std::ranges::copy_if(terms, std::back_inserter(audience_), [&](std::uint32_t id) { return counts_scores_ || onlookers_->rejects(id); });
}

bool Signer::default_selector() {
  if (onlookers_ == nullptr) {
    name_space();
    labels();
    controller();
    return true;
  }
  if (begin(kDefaultSelector)) {
    const model::Selector& selector = onlookers_->default_selector(pod_);
    has_default_selector_ = !selector.is_everything();
    add(selector);
    add(static_cast<std::int64_t>(selector.matches(pod_.view().meta.labels)));
  }
  if (has_default_selector_) name_space();
  return has_default_selector_;
}

void Signer::matches_own_affinity() {
  if (onlookers_ == nullptr) {
    name_space();
    labels();
    return;
  }
  if (!begin(kOwnAffinity)) return;
  const Cluster& cluster = onlookers_->cluster();
  const auto& of_namespace = cluster.namespace_labels(pod_.view().ns());
  // As the plugin has it: a selector of namespaces picks those that are there.
  const bool selects =
      std::ranges::any_of(pod_.required_affinity, [](const AffinityTerm& term) { return term.namespace_selector.has_value(); });
  const bool matches = selects ? matches_all_terms(pod_.view(), of_namespace, resolve_namespaces(pod_.required_affinity, cluster))
                               : matches_all_terms(pod_.view(), of_namespace, pod_.required_affinity);
  add(static_cast<std::int64_t>(matches));
}

Signature Signer::finish() && { return {std::move(bytes_), static_size_, columns_size_, std::move(audience_)}; }

}  // namespace berth::placement
