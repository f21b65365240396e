// Machines where no cloud makes them: MachineSets make Machines, Machines become simulated nodes, MachineAutoscalers say how far a set may
// grow (openshift/machine-api-operator, openshift/cluster-autoscaler-operator; SPEC H1, H6).
#pragma once
#include "controllers/controller.h"

namespace berth::controllers {

/// On a Machine, or its MachineSet: how long the machine takes from its creation to its node ("30s"); "never": it does not come up.
inline constexpr std::string_view kBootDelayAnnotation = "sim.berth.dev/boot-delay";

/// As many Machines as replicas say. Surplus ones go in the order: marked by machine.openshift.io/delete-machine (or
/// cluster-api-delete-machine), without a node, then by spec.deletePolicy. A set whose capacity annotations are missing gets them by its
/// provider spec's instance type (AWS' families; any other: 4 cores, 16 GiB).
ControllerPtr make_machine_set_controller();
/// Phases Provisioning -> Provisioned -> Running -> Deleting; a Node that the fleet "default" of the simulated nodes plays.
ControllerPtr make_simulated_machine_controller();
/// Writes the bounds of a MachineAutoscaler as the annotations by which the cluster autoscaler knows its groups, and takes them back.
ControllerPtr make_machine_autoscaler_controller();

/// Cores and MiB of an AWS instance type ("m5.xlarge": 4, 16384); 4 and 16384 for others.
struct InstanceSize {
  std::int64_t cores = 4, memory_mib = 16384;
};
InstanceSize instance_size(std::string_view type);

}  // namespace berth::controllers
