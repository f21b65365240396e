// What decides where a pod may go, as the plugins of a profile say it themselves (Kubernetes' KEP-5598: each plugin signs what it reads).
// Pods of one signature are interchangeable for every asker: the columns, preemption, the descheduler's judge, the autoscaler's estimator.
#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/cluster.h"

namespace berth::placement {

/// A value; compared exactly, by its bytes. Two pods with equal signatures get the same verdict and score on every node, and the same
/// preemption; what stays outside is who they are (name, uid) and their own nomination. Signatures of one profile, and where they were made
/// with onlookers, of one state of one cluster, may be compared.
class Signature {
 public:
  Signature() = default;
  /// The bytes of columns follow on those of static plugins, and those of checks on both.
  Signature(std::string bytes, std::size_t static_size, std::size_t columns_size, std::vector<std::uint32_t> audience);

  /// What the plugins read that look at a node's object alone.
  [[nodiscard]] std::string_view statics() const { return std::string_view(bytes_).substr(0, static_size_); }
  /// The part that columns are kept by, `statics` in it.
  [[nodiscard]] std::string_view columns() const { return std::string_view(bytes_).substr(0, columns_size_); }
  [[nodiscard]] std::uint64_t columns_hash() const { return columns_hash_; }
  /// The part that is asked node by node: claims, disks, devices. Without it Reserve and PreBind have nothing to do for the pod either.
  [[nodiscard]] bool has_checks() const { return columns_size_ < bytes_.size(); }
  /// The same without that part.
  [[nodiscard]] Signature without_checks() const { return {std::string(columns()), static_size_, columns_size_, audience_}; }
  /// The affinity terms, held by pods that are there, that match the pod: ids of the onlookers', ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& audience() const { return audience_; }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] std::size_t memory_bytes() const { return bytes_.capacity() + audience_.capacity() * sizeof(audience_[0]); }

  /// What was made for this signature, when terms [0, seen) were there, can go on serving `other`: the same but for terms that came since.
  [[nodiscard]] bool continues_as(const Signature& other, std::size_t seen) const;

  friend bool operator==(const Signature& a, const Signature& b) {
    return a.hash_ == b.hash_ && a.columns_size_ == b.columns_size_ && a.bytes_ == b.bytes_ && a.audience_ == b.audience_;
  }
  friend std::strong_ordering operator<=>(const Signature& a, const Signature& b);

 private:
  std::string bytes_;
  std::size_t static_size_ = 0, columns_size_ = 0;
  std::vector<std::uint32_t> audience_;
  std::uint64_t columns_hash_ = 0, hash_ = 0;
};

struct SignatureHash {
  std::size_t operator()(const Signature& signature) const { return signature.hash(); }
};

/// The selectors in play in one cluster, and what they see of a pod: its labels and namespace matter no further.
class Onlookers {
 public:
  virtual ~Onlookers() = default;
  /// Ids of the affinity terms of pods that are there that match the pod, ascending. Holds until the next call.
  [[nodiscard]] virtual std::span<const std::uint32_t> terms_that_match(const PodInfo& pod) = 0;
  /// A term that rejects those it matches (required anti-affinity).
  [[nodiscard]] virtual bool rejects(std::uint32_t term) const = 0;
  /// What default spreading selects for the pod (services and workloads). Holds until the next call.
  [[nodiscard]] virtual const model::Selector& default_selector(const PodInfo& pod) = 0;
  [[nodiscard]] virtual const Cluster& cluster() const = 0;
};

/// Collects what plugins read of one pod. A fact is written once, however many plugins name it.
class Signer {
 public:
  /// `onlookers` null: what selectors of others may see counts whole, so that the signature holds in every cluster.
  Signer(const PodInfo& pod, bool counts_scores, Onlookers* onlookers) : pod_(pod), counts_scores_(counts_scores), onlookers_(onlookers) {
    bytes_.reserve(768);
  }

  [[nodiscard]] const PodInfo& pod() const { return pod_; }
  /// False: only what rejects is asked for (preemption).
  [[nodiscard]] bool counts_scores() const { return counts_scores_; }

  // Facts of the pod.
  void priority();
  void name_of_node();
  void tolerations();
  /// nodeSelector and node affinity.
  void node_selection();
  /// What it asks for, what it takes, what the resource scorers count.
  void request();
  void host_ports();
  /// Those that some node has, where that is known.
  void images();
  void controller();
  void name_space();
  void labels();
  /// Disks and claims, as far as any plugin looks at volumes: projected ones, secrets and the like are no matter.
  void volumes();
  void resource_claims();
  /// Whether it has the annotation, and what it says.
  void annotation(std::string_view key);
  /// Name and uid: the pod is like no other.
  void identity();

  // Facts of the pod as others see it.
  /// The affinity terms of pods that are there, as far as they match.
  void audience();
  /// The selector that services and workloads make for it, with its namespace where there is one; returns whether there is one (true when
  /// that is not known).
  bool default_selector();
  /// Whether the pod matches all of its own required affinity terms.
  void matches_own_affinity();

  // Whatever else a plugin reads, in a fixed order of its own.
  void add(std::int64_t value);
  void add(std::string_view text);
  void add(const model::Selector& selector);
  void add(const AffinityTerm& term);
  void add(const std::vector<AffinityTerm>& terms);
  void add(const model::Requirement& requirement);
  void add(const std::vector<std::string>& texts);

  /// Tells apart whose bytes they are: to be called before each plugin, and after the last.
  void begin_plugin(std::size_t slot);
  /// What came until here is read by plugins that look at a node's object alone.
  void end_static() { static_size_ = bytes_.size(); }
  /// What follows is asked node by node.
  void begin_checks() { columns_size_ = bytes_.size(); }
  [[nodiscard]] Signature finish() &&;

 private:
  [[nodiscard]] std::vector<std::string> backed_resources() const;

  enum Fact : std::uint32_t {
    kPriority = 1,
    kNodeName = 2,
    kTolerations = 4,
    kNodeSelection = 8,
    kRequest = 16,
    kHostPorts = 32,
    kImages = 64,
    kController = 128,
    kNamespace = 256,
    kLabels = 512,
    kIdentity = 1024,
    kAudience = 2048,
    kDefaultSelector = 4096,
    kOwnAffinity = 8192,
    kVolumes = 16384,
    kResourceClaims = 32768
  };
  /// Announces a fact; false when it is there already.
  bool begin(Fact fact);
  void add(const Resource& resource);
  void add(const model::NodeSelectorTerm& term);

  const PodInfo& pod_;
  bool counts_scores_;
  Onlookers* onlookers_;
  std::string bytes_;
  std::size_t static_size_ = 0, columns_size_ = 0, plugin_begin_ = 0, plugin_slot_ = 0;
  std::vector<std::uint32_t> audience_;
  std::uint32_t written_ = 0;
  bool has_default_selector_ = false;
};

}  // namespace berth::placement
