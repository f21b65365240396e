// The shapes that can be bought, with their prices: a catalogue file.
//
//   kind: InstanceTypeCatalogue
//   priced: "2025-01"                        when the prices were so, told with every answer
//   currency: USD
//   zones: [zone-a, zone-b]                  of every type that names none
//   instanceTypes:
//   - {name: m5.large, cpu: "2", memory: 8Gi, pods: 29, prices: {on-demand: 0.096, spot: 0.034}}
//   - name: g4dn.xlarge
//     cpu: "4"
//     memory: 16Gi
//     pods: 29
//     arch: amd64                            default
//     os: linux                              default
//     resources: {nvidia.com/gpu: 1}
//     labels: {example.com/gpu-name: t4}
//     overhead: {cpu: 80m, memory: 600Mi}    what pods do not get
//     zones: [zone-a]
//     offerings: [{zone: zone-a, capacityType: on-demand, price: 0.526, available: true}]    instead of zones and prices
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/views/common.h"

namespace berth::pools {

/// Where a runner publishes what can be bought, so that whoever asks need not be told: a ConfigMap of kube-system.
inline constexpr std::string_view kPublishedTypes = "berth-instance-types";
inline constexpr std::string_view kPublishedKey = "instance-types.yaml";

/// One place and manner in which a type can be had.
struct Offering {
  std::string zone, capacity_type;
  double price = 0;  ///< Of an hour.
  bool is_available = true;
  std::string group{};              ///< The group of machines that it is had from (machines.h); empty: none.
  std::int64_t supply = INT64_MAX;  ///< How many more there are of it.
};

struct InstanceType {
  std::string name;
  model::ResourceList capacity, allocatable;
  model::Labels labels;  ///< Architecture, system, its own name, and what the file says more.
  std::vector<Offering> offerings;
  std::string node_class{};            ///< The MachineNodeClass whose pools may buy it; empty: those of a SimulatedNodeClass.
  std::vector<model::Taint> taints{};  ///< That its nodes have of themselves.
};

struct Catalogue {
  std::string priced, currency = "USD";
  std::string text;  ///< As it was read.
  std::vector<InstanceType> types;

  /// All problems at once, "FILE:LINE: PATH: what".
  static Result<Catalogue> parse(std::string_view text, const std::string& file);
  static Result<Catalogue> load(const std::string& file);
  /// Null when there is none of that name.
  [[nodiscard]] const InstanceType* find(std::string_view name) const;
  /// "0.096 USD".
  [[nodiscard]] std::string money(double amount) const;
};

}  // namespace berth::pools
