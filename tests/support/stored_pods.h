// Pods as an API server stores them: with what defaulting, admission and the workload controllers add to what a user writes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/views/pod_view.h"

namespace berth::testing {

/// Turns a pod as a user writes it into one that a scheduler sees. What is added is learned at construction from a real one, so that it
/// cannot drift: an API server in this process, with the controllers, is given a bare pod, a Deployment and a Job, and the pods that come
/// of them are read back. Single-threaded; names, uids and suffixes follow from the seed and the order of calls. A few milliseconds to
/// make.
class StoredPods {
 public:
  explicit StoredPods(std::uint64_t seed = 1);

  /// Why nothing could be learned; empty when all went well. Then the methods below may be called.
  [[nodiscard]] const std::string& error() const { return learned_.error; }

  /// A pod that nobody controls.
  model::PodView bare(model::PodView written, std::string_view name);
  /// A pod of the Deployment `workload`, by its ReplicaSet: the template's labels and the hash.
  model::PodView of_deployment(model::PodView written, std::string_view workload);
  /// The pod of the Job `workload`: the Job's labels, with its uid among them.
  model::PodView of_job(model::PodView written, std::string_view workload);

  /// The ReplicaSet that controls the Deployment's pods: metadata and selector.
  [[nodiscard]] json::Value replica_set(const model::PodView& written, std::string_view workload) const;

 private:
  /// What one of the three ways adds. In texts, kName, kUid and kHash stand for those of the workload.
  struct Addition {
    std::vector<std::pair<std::string, std::string>> labels;
    std::vector<model::OwnerReference> owners;
    std::vector<model::Toleration> tolerations;
    std::vector<model::VolumeView> volumes;  ///< Names end in five random characters.
    std::string scheduler_name;
    std::int64_t termination_grace_period_seconds = 0;
  };
  /// A workload's uid and hash follow from its name.
  struct Identity {
    std::string name, uid, hash;
  };

  struct Learned {
    Addition bare, deployment, job;
    std::string error;
  };
  static Learned learn();
  model::PodView add(model::PodView written, const Addition& addition, const Identity& workload);
  [[nodiscard]] Identity identity_of(std::string_view workload) const;
  [[nodiscard]] std::string fill(std::string text, const Identity& workload) const;
  std::string letters(std::size_t count);
  std::string uid();
  std::uint64_t next();

  const Learned& learned_;
  std::uint64_t seed_, state_;
};

}  // namespace berth::testing
