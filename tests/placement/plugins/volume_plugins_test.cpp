// VolumeRestrictions, VolumeZone, NodeVolumeLimits and the clouds' limits. VolumeBinding: volumes_test.cpp.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

std::string claim(const std::string& name, const std::string& fields, bool bound = true) {
  return fmt::format("{{kind: PersistentVolumeClaim, metadata: {{name: {}, uid: {}, annotations: {{{}}}}}, spec: {{{}}}}}", name, name,
                     bound ? "pv.kubernetes.io/bind-completed: 'yes'" : "", fields);
}
const std::string kUsesData = "{containers: [{name: c}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}";

TEST(VolumeRestrictions, ADiskIsWrittenByOnePodAlone) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    const auto gce = [](bool read_only) {
      return fmt::format("{{volumes: [{{name: v, gcePersistentDisk: {{pdName: d, readOnly: {}}}}}]}}", read_only);
    };
    const std::string ebs = "{volumes: [{name: v, awsElasticBlockStore: {volumeID: e, readOnly: true}}]}";
    world.add("{kind: Node, metadata: {name: node}}").run("reader", "node", gce(true)).run("ebs", "node", ebs);
    const std::string refused = "VolumeRestrictions Unschedulable: node(s) had no available disk";
    EXPECT_EQ(world.verdict("node", world.pod(gce(true))), "fits");
    EXPECT_EQ(world.verdict("node", world.pod(gce(false))), refused);
    EXPECT_EQ(world.verdict("node", world.pod(ebs)), refused) << "not even for reading";
  }
}

TEST(VolumeRestrictions, ReadWriteOncePodIsForOnePodInTheCluster) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: node}}").add("{kind: Node, metadata: {name: m}}");
  world.add("{kind: PersistentVolume, metadata: {name: pv}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOncePod]}}");
  world.add(claim("data", "volumeName: pv, accessModes: [ReadWriteOncePod]")).run("user", "node", kUsesData);
  EXPECT_EQ(world.verdict("m", world.pod(kUsesData)),
            "VolumeRestrictions Unschedulable: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
            "in-use by another pod");
}

TEST(VolumeRestrictions, AClaimOfAPodOnADeletedNodeIsFree) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: m}}");
  world.add("{kind: PersistentVolume, metadata: {name: pv}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOncePod]}}");
  world.add(claim("data", "volumeName: pv, accessModes: [ReadWriteOncePod]")).run("user", "gone", kUsesData);
  EXPECT_EQ(world.verdict("m", world.pod(kUsesData)), "fits");
}

TEST(VolumeZone, LabelsOfTheVolumeMustAgreeWithTheNodes) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    for (const char* zone : {"a", "b", "c"})
      world.add(fmt::format("{{kind: Node, metadata: {{name: {0}, labels: {{topology.kubernetes.io/zone: {0}}}}}}}", zone));
    world.add("{kind: Node, metadata: {name: unlabelled}}");
    world.add(
        "{kind: PersistentVolume, metadata: {name: pv, labels: {topology.kubernetes.io/zone: a__b}}, spec: {capacity: {storage: 1Gi}}}");
    world.add(claim("data", "volumeName: pv"));
    const auto pod = world.pod(kUsesData);
    EXPECT_EQ(world.verdict("a", pod), "fits");
    EXPECT_EQ(world.verdict("b", pod), "fits");
    EXPECT_EQ(world.verdict("c", pod), "VolumeZone UnschedulableAndUnresolvable: node(s) had no available volume zone");
    EXPECT_EQ(world.verdict("unlabelled", pod), "fits") << "a cluster of one zone may not label its nodes";
  }
}

TEST(NodeVolumeLimits, CountsVolumesOfADriverOnce) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: node}}")
        .add("{kind: CSINode, metadata: {name: node}, spec: {drivers: [{name: csi.x, nodeID: node, allocatable: {count: 1}}]}}");
    for (const char* name : {"data", "more"}) {
      world.add(
          fmt::format("{{kind: PersistentVolume, metadata: {{name: pv-{0}}}, spec: {{capacity: {{storage: 1Gi}}, csi: {{driver: csi.x, "
                      "volumeHandle: {0}}}}}}}",
                      name));
      world.add(claim(name, fmt::format("volumeName: pv-{}", name)));
    }
    world.run("user", "node", kUsesData);
    EXPECT_EQ(world.verdict("node", world.pod(kUsesData)), "fits") << "the same volume";
    EXPECT_EQ(world.verdict("node", world.pod("{volumes: [{name: v, persistentVolumeClaim: {claimName: more}}]}")),
              "NodeVolumeLimits Unschedulable: node(s) exceed max volume count");
  }
}

TEST(NodeVolumeLimits, AttachmentsThatNoPodStandsForCountToday) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: node}}")
        .add("{kind: CSINode, metadata: {name: node}, spec: {drivers: [{name: csi.x, nodeID: node, allocatable: {count: 1}}]}}");
    for (const char* name : {"data", "left"}) {
      world.add(
          fmt::format("{{kind: PersistentVolume, metadata: {{name: pv-{0}}}, spec: {{capacity: {{storage: 1Gi}}, csi: {{driver: csi.x, "
                      "volumeHandle: {0}}}}}}}",
                      name));
      world.add(claim(name, fmt::format("volumeName: pv-{}", name)));
    }
    const auto attach = [&](const char* name, const char* node, const char* volume) {
      world.add(
          fmt::format("{{kind: VolumeAttachment, metadata: {{name: {}}}, spec: {{attacher: csi.x, nodeName: {}, source: "
                      "{{persistentVolumeName: {}}}}}}}",
                      name, node, volume));
    };
    const std::string full = era == Era::k120 ? "fits" : "NodeVolumeLimits Unschedulable: node(s) exceed max volume count";
    attach("a", "another", "pv-left");
    EXPECT_EQ(world.verdict("node", world.pod(kUsesData)), "fits");
    attach("b", "node", "pv-left");
    EXPECT_EQ(world.verdict("node", world.pod(kUsesData)), full);
    world.cluster.remove("VolumeAttachment", "", "b");
    EXPECT_EQ(world.verdict("node", world.pod(kUsesData)), "fits");
    attach("c", "node", "pv-gone");
    EXPECT_EQ(world.verdict("node", world.pod(kUsesData)), "fits") << "a volume nobody knows";
  }
}

/// However much room there seems to be: what cannot be counted is looked at one by one.
TEST(NodeVolumeLimits, ANeighbourWhoseClaimHasNoNameIsAnError) {
  PluginWorld world(Era::k120);
  world.profile.pre_filter = {};
  world.profile.filter = {{"NodeVolumeLimits", 0}};
  world.add("{kind: Node, metadata: {name: node}}")
      .add("{kind: CSINode, metadata: {name: node}, spec: {drivers: [{name: csi.x, nodeID: node, allocatable: {count: 9}}]}}")
      .add("{kind: PersistentVolume, metadata: {name: pv-data}, spec: {csi: {driver: csi.x, volumeHandle: data}}}")
      .add(claim("data", "volumeName: pv-data"));
  EXPECT_EQ(world.verdict("node", world.pod(kUsesData)), "fits");
  world.run("plain", "node", "{volumes: [{name: v, emptyDir: {}}]}");
  EXPECT_EQ(world.verdict("node", world.pod(kUsesData)), "fits");
  world.run("nameless", "node", "{volumes: [{name: v, persistentVolumeClaim: {claimName: ''}}]}");
  EXPECT_EQ(world.verdict("node", world.pod(kUsesData)),
            "error: running \"NodeVolumeLimits\" filter plugin for pod \"pod\": PersistentVolumeClaim had no name");
}

TEST(NodeVolumeLimits, AVolumeThatAPodUsesAndAnAttachmentStandsForCountsOnce) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: node}}")
      .add("{kind: CSINode, metadata: {name: node}, spec: {drivers: [{name: csi.x, nodeID: node, allocatable: {count: 3}}]}}");
  for (const char* name : {"data", "more", "left", "last"}) {
    world.add(
        fmt::format("{{kind: PersistentVolume, metadata: {{name: pv-{0}}}, spec: {{capacity: {{storage: 1Gi}}, csi: {{driver: csi.x, "
                    "volumeHandle: {0}}}}}}}",
                    name));
    world.add(claim(name, fmt::format("volumeName: pv-{}", name)));
  }
  const auto attach = [&](const char* name, const char* volume) {
    world.add(
        fmt::format("{{kind: VolumeAttachment, metadata: {{name: {}}}, spec: {{attacher: csi.x, nodeName: node, source: "
                    "{{persistentVolumeName: {}}}}}}}",
                    name, volume));
  };
  const auto user = [&](const char* name) {
    return world.pod(fmt::format("{{volumes: [{{name: v, persistentVolumeClaim: {{claimName: {}}}}}]}}", name));
  };
  const char* full = "NodeVolumeLimits Unschedulable: node(s) exceed max volume count";
  world.run("user", "node", kUsesData);
  attach("a", "pv-data");
  attach("b", "pv-left");
  EXPECT_EQ(world.verdict("node", user("more")), "fits") << "two are there, one of them with a pod";
  attach("c", "pv-last");
  EXPECT_EQ(world.verdict("node", user("more")), full);
  EXPECT_EQ(world.verdict("node", user("data")), "fits") << "the same volume as another pod's";
}

TEST(CloudLimits, CountDisksByTheNodesAllocatableIn120) {
  PluginWorld world(Era::k120);
  world.add(
      "{kind: Node, metadata: {name: node}, status: {allocatable: {cpu: '4', memory: 4Gi, pods: '10', attachable-volumes-gce-pd: '1', "
      "attachable-volumes-aws-ebs: '1'}}}");
  const auto gce = [](const char* disk) {
    return fmt::format("{{volumes: [{{name: v, gcePersistentDisk: {{pdName: {}, readOnly: true}}}}]}}", disk);
  };
  const auto ebs = [](const char* disk) { return fmt::format("{{volumes: [{{name: v, awsElasticBlockStore: {{volumeID: {}}}}}]}}", disk); };
  world.run("1", "node", gce("d1")).run("2", "node", ebs("e1"));
  EXPECT_EQ(world.verdict("node", world.pod(gce("d1"))), "fits");
  EXPECT_EQ(world.verdict("node", world.pod(gce("d2"))), "GCEPDLimits Unschedulable: node(s) exceed max volume count");
  EXPECT_EQ(world.verdict("node", world.pod(ebs("e2"))), "EBSLimits Unschedulable: node(s) exceed max volume count");
}

TEST(NodeVolumeLimits, AnEbsVolumeWhoseAddressNamesNoneIsAnError) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: node}}").add("{kind: CSINode, metadata: {name: node}, spec: {drivers: []}}");
  const auto pod = [&](const std::string& id) {
    return world.pod("{volumes: [{name: v, awsElasticBlockStore: {volumeID: '" + id + "'}}]}");
  };
  EXPECT_EQ(world.verdict("node", pod("aws://zone/vol-1")), "fits");
  EXPECT_EQ(
      world.evaluate(pod("aws://zone/disk")).errors,
      std::vector<std::string>{"running \"NodeVolumeLimits\" filter plugin: converting volume(v) from inline to csi: failed to translate "
                               "Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone/disk)"});
}

TEST(VolumeZone, AMissingClassIsToldInTheReleasesWords) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: node, labels: {topology.kubernetes.io/zone: a}}}");
    world.profile.pre_filter = world.profile.filter = {{"VolumeZone", 0}};
    if (era == Era::k120) world.profile.pre_filter.clear();
    world.add(claim("data", "storageClassName: gone", false));
    const auto evaluation = world.evaluate(world.pod(kUsesData));
    if (era == Era::k120) {
      EXPECT_EQ(evaluation.errors,
                std::vector<std::string>{"running \"VolumeZone\" filter plugin for pod \"pod\": StorageClass \"gone\" claimed by "
                                         "PersistentVolumeClaim \"data\" not found"});
    } else {
      EXPECT_EQ(evaluation.pre_filter.message(), "storageclass.storage.k8s.io \"gone\" not found");
    }
  }
}

TEST(VolumeBinding, AVolumeOfAnotherAttributesClassIsNoMatch) {
  const auto verdict = [](const std::string& volume_class) {
    PluginWorld world(Era::k136);
    world.add("{kind: Node, metadata: {name: node}}");
    world.add(
        "{kind: StorageClass, metadata: {name: local}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: "
        "WaitForFirstConsumer}");
    world.add(
        "{kind: PersistentVolume, metadata: {name: pv}, spec: {capacity: {storage: 1Gi}, storageClassName: local, accessModes: "
        "[ReadWriteOnce]" +
        volume_class + "}, status: {phase: Available}}");
    world.add(claim("data", "storageClassName: local, accessModes: [ReadWriteOnce], volumeAttributesClassName: gold", false));
    return world.verdict("node", world.pod(kUsesData));
  };
  EXPECT_EQ(verdict(", volumeAttributesClassName: gold"), "fits");
  EXPECT_EQ(verdict(""), "VolumeBinding UnschedulableAndUnresolvable: node(s) didn't find available persistent volumes to bind");
}

/// Alone: others would refuse before it.
TEST(VolumeZone, EachClaimThatCannotBeLookedUpIsRefusedInItsWords) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.profile.pre_filter = {};
    if (era == Era::k136) world.profile.pre_filter = {{"VolumeZone", 0}};
    world.profile.filter = {{"VolumeZone", 0}};
    world.add("{kind: Node, metadata: {name: node, labels: {topology.kubernetes.io/zone: z, failure-domain.beta.kubernetes.io/zone: z}}}");
    world.add("{kind: StorageClass, metadata: {name: later}, provisioner: p, volumeBindingMode: WaitForFirstConsumer}");
    world.add("{kind: StorageClass, metadata: {name: now}, provisioner: p, volumeBindingMode: Immediate}");
    world.add("{kind: StorageClass, metadata: {name: modeless}, provisioner: p}");
    const auto claim = [&](const std::string& name, const std::string& spec) {
      world.add("{kind: PersistentVolumeClaim, metadata: {name: " + name + "}, spec: {" + spec + "}}");
    };
    claim("classless", "accessModes: []");
    claim("unknown-class", "storageClassName: nowhere");
    claim("waits", "storageClassName: later");
    claim("bound-now", "storageClassName: now");
    claim("without-mode", "storageClassName: modeless");
    claim("lost", "volumeName: gone");
    const auto has = [&](const std::string& name, const std::string& words) {
      const std::string all =
          world.verdict("node", world.pod("{volumes: [{name: v, persistentVolumeClaim: {claimName: '" + name + "'}}]}"));
      EXPECT_TRUE(all.ends_with(words)) << name << ": " << all;
      EXPECT_EQ(all.starts_with("error"), era == Era::k120) << all;
    };
    has("", "PersistentVolumeClaim had no name");
    has("missing", "persistentvolumeclaim \"missing\" not found");
    has("classless", "PersistentVolumeClaim had no pv name and storageClass name");
    has("unknown-class", era == Era::k120 ? "StorageClass \"nowhere\" claimed by PersistentVolumeClaim \"unknown-class\" not found"
                                          : "storageclass.storage.k8s.io \"nowhere\" not found");
    has("without-mode", "VolumeBindingMode not set for StorageClass \"modeless\"");
    has("bound-now", "PersistentVolume had no name");
    has("lost", "persistentvolume \"gone\" not found");
    EXPECT_EQ(world.verdict("node", world.pod("{volumes: [{name: v, persistentVolumeClaim: {claimName: waits}}]}")), "fits");
  }
}

/// 1.20: how many disks of a cloud a node takes that says nothing itself.
TEST(CloudVolumeLimits, EachCloudHasItsDefault) {
  const auto fits = [](const std::string& plugin, const std::string& volume, int count, const std::string& label,
                       const std::string& status) {
    PluginWorld world(Era::k120);
    world.profile.filter = {{plugin, 0}};
    world.add("{kind: Node, metadata: {name: node, labels: {" + label + "}}" + status + "}");
    std::string list;
    for (int i = 0; i < count; ++i) list += (i > 0 ? ", " : "") + fmt::format("{{name: v{0}, {1}: '{0}'}}}}", i, volume);
    return world.verdict("node", world.pod("{volumes: [" + list + "]}"));
  };
  const std::string refused = ": node(s) exceed max volume count";
  const std::string ebs = "awsElasticBlockStore: {volumeID", gce = "gcePersistentDisk: {pdName", azure = "azureDisk: {diskName",
                    cinder = "cinder: {volumeID";
  const auto most = [&](const std::string& plugin, const std::string& volume, int limit, const std::string& label = "",
                        const std::string& status = "") {
    EXPECT_EQ(fits(plugin, volume, limit, label, status), "fits") << plugin << " " << label;
    EXPECT_EQ(fits(plugin, volume, limit + 1, label, status), plugin + " Unschedulable" + refused) << plugin << " " << label;
  };
  most("EBSLimits", ebs, 39);
  for (const char* nitro : {"m5.large", "c5.large", "r5d.large", "t3.nano", "z1d.large"})
    most("EBSLimits", ebs, 25, std::string("node.kubernetes.io/instance-type: ") + nitro);
  for (const char* other : {"m4.5xlarge", "x5.large", "t2.nano", "m", "5m"})
    most("EBSLimits", ebs, 39, std::string("node.kubernetes.io/instance-type: ") + other);
  most("EBSLimits", ebs, 25, "node.kubernetes.io/instance-type: t2.nano, beta.kubernetes.io/instance-type: t3.nano");
  most("GCEPDLimits", gce, 16);
  most("AzureDiskLimits", azure, 16);
  most("CinderLimits", cinder, 256);
  most("GCEPDLimits", gce, 3, "", ", status: {allocatable: {cpu: '4', memory: 4Gi, pods: '10', attachable-volumes-gce-pd: '3'}}");
  most("CinderLimits", cinder, 2, "",
       ", status: {allocatable: {cpu: '4', memory: 4Gi, pods: '10', attachable-volumes-cinder: '2', attachable-volumes-aws-ebs: '9'}}");
}

}  // namespace
}  // namespace berth::placement::testing
