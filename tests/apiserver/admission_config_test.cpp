// The files that configure admission: a slip in them is told with file, line and what is meant, and never starts a server without its rules
// (SPEC E1).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "apiserver/admission/config.h"

namespace berth::apiserver {
namespace {

std::string master_error(std::string_view text) {
  const auto read = parse_master_config(text, "", "m.yaml");
  return read ? "(accepted)" : read.error().message;
}

MasterConfig master(std::string_view text) {
  auto read = parse_master_config(text, "", "m.yaml");
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read ? std::move(*read) : MasterConfig();
}

TEST(MasterConfigFile, SlipsAreTold) {
  EXPECT_EQ(master_error("admissionconfig:\n  pluginConfig: {}\n"),
            "m.yaml:1: admissionconfig: unknown field \"admissionconfig\"; did you mean \"admissionConfig\"?");
  EXPECT_EQ(master_error("kind: MasterConfg\n"), "m.yaml:1: kind: must be MasterConfig, is \"MasterConfg\"");
  EXPECT_EQ(master_error("admissionConfig:\n  plugins: {}\n"), "m.yaml:2: admissionConfig.plugins: unknown field \"plugins\"");
  EXPECT_EQ(master_error("admissionConfig:\n  pluginConfig:\n    PodNodeConstraints:\n      configuration:\n        apiversion: v1\n"
                         "        kind: PodNodeConstraintsConfig\n        nodeSelectorLabelBlackList: [region]\n"),
            "m.yaml:7: admissionConfig.pluginConfig.PodNodeConstraints.configuration.nodeSelectorLabelBlackList: unknown field "
            "\"nodeSelectorLabelBlackList\"; did you mean \"nodeSelectorLabelBlacklist\"?");
  EXPECT_EQ(master_error("admissionConfig:\n  pluginConfig:\n    PodNodeConstraint: {configuration: {}}\n"),
            "m.yaml:3: admissionConfig.pluginConfig.PodNodeConstraint: there is no admission plugin \"PodNodeConstraint\"; did you mean "
            "\"PodNodeConstraints\"?");
  EXPECT_NE(master_error("admissionConfig: {pluginConfig: {PodNodeConstraints: {configuration: {kind: PodNodeConstraintConfig}}}}\n")
                .find("did you mean \"PodNodeConstraintsConfig\"?"),
            std::string::npos);
  EXPECT_NE(master_error("kubernetesMasterConfig:\n  schedulerArg: {}\n").find("did you mean \"schedulerArgs\"?"), std::string::npos);
  EXPECT_NE(master_error("kubernetesMasterConfig:\n  apiServerArguments:\n    enable-admission-plugin: [A]\n").find("m.yaml:3: "),
            std::string::npos);
  EXPECT_NE(master_error("admissionConfig: {pluginConfig: []}").find("must be a map"), std::string::npos);
}

TEST(MasterConfigFile, SectionsThatOpenShiftHasAndNothingHereActsOnAreToldOnce) {
  const auto read = master(
      "kind: MasterConfig\napiVersion: v1\noauthConfig:\n  grantConfig: {}\netcdClientInfo: {urls: []}\n"
      "admissionConfig:\n  pluginConfig:\n    BuildDefaults: {configuration: {kind: BuildDefaultsConfig}}\n");
  ASSERT_EQ(read.admission.notes.size(), 2u);
  EXPECT_NE(read.admission.notes[0].find("there is no admission plugin \"BuildDefaults\" here"), std::string::npos);
  EXPECT_EQ(read.admission.notes[1], "m.yaml: known, and without effect here: oauthConfig (line 3), etcdClientInfo (line 5)");
}

TEST(MasterConfigFile, TheDocumentsAreTakenAsTheyArePrinted) {
  const auto selector = master(R"(admissionConfig:
  pluginConfig:
    PodNodeSelector:
      configuration:
        podNodeSelectorPluginConfig: 1
          clusterDefaultNodeSelector: "k3=v3" 2
          ns1: region=west,env=test,infra=fedora,os=fedora 3
)");
  EXPECT_EQ(json::get_string(selector.admission.plugin_config.at("PodNodeSelector"), {"podNodeSelectorPluginConfig", "ns1"}),
            "region=west,env=test,infra=fedora,os=fedora");
  const auto constraints = master(R"(    ...
    admissionConfig:
      pluginConfig:
        PodNodeConstraints:
          configuration:
            apiversion: v1
            kind: PodNodeConstraintsConfig
    ...
)");
  EXPECT_TRUE(constraints.admission.plugin_config.contains("PodNodeConstraints"));
}

TEST(MasterConfigFile, APluginsFileIsReadWithItsOwnLines) {
  const auto dir = std::filesystem::temp_directory_path() / ("berth-plugins-" + std::to_string(getpid()));
  std::filesystem::create_directories(dir);
  const auto write = [&](const char* text) { std::ofstream(dir / "selectors.yaml") << text; };
  const std::string config = "admissionConfig: {pluginConfig: {PodNodeSelector: {location: selectors.yaml}}}";
  // As the document prints it, the second entry deeper than the first.
  write("podNodeSelectorPluginConfig:\n    clusterDefaultNodeSelector: \"k3=v3\"\n     ns1: region=west\n");
  const auto good = parse_master_config(config, dir, "m.yaml");
  EXPECT_TRUE(good) << good.error().message;
  write("podNodeSelectorPluginConfig:\n  ns1: region\n");
  const auto wrong = parse_master_config(config, dir, "m.yaml");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("selectors.yaml:2: podNodeSelectorPluginConfig.ns1: must be a string of the form key=value"),
            std::string::npos)
      << wrong.error().message;
  std::filesystem::remove_all(dir);
}

TEST(AdmissionConfigurationFile, SlipsAreTold) {
  const auto error_of = [](std::string_view text) {
    AdmissionConfig config;
    const auto read = parse_admission_configuration(text, "", config, "a.yaml");
    return read ? std::string("(accepted)") : read.error().message;
  };
  const std::string head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";
  EXPECT_EQ(error_of(head + "plugin: []\n"), "a.yaml:3: plugin: unknown field \"plugin\"; did you mean \"plugins\"?");
  EXPECT_NE(error_of(head + "plugins:\n- name: PodSecurity\n  configuration:\n    defaults: {enforce: baselin}\n")
                .find("\"baselin\" is not one of privileged, baseline, restricted; did you mean \"baseline\"?"),
            std::string::npos);
  EXPECT_NE(
      error_of(head + "plugins:\n- name: PodSecurity\n- name: PodSecurity\n").find("a.yaml:5: plugins[1].name: \"PodSecurity\" is there"),
      std::string::npos);
  EXPECT_NE(error_of("kind: Other\n").find("must be AdmissionConfiguration"), std::string::npos);
}

}  // namespace
}  // namespace berth::apiserver
