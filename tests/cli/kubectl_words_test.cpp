// What people type that is no command of berth's gets an answer that they can use (SPEC A8).
#include "cli/command/kubectl_words.h"

#include <gtest/gtest.h>

#include "cli/commands.h"

namespace berth::cli {
namespace {

TEST(KubectlWords, AVerbOfKubectlIsShownAsTheLineToType) {
  const std::string text = instead_of_command("scale", {"deployment", "web", "--replicas=3"});
  EXPECT_NE(text.find("the same kubeconfig works:\n  kubectl scale deployment web --replicas=3"), std::string::npos) << text;
}

TEST(KubectlWords, WordsKeepTheirQuotes) {
  EXPECT_EQ(kubectl_line("patch", {"pod", "a", "-p", R"({"spec":{}})", "it's"}), R"(kubectl patch pod a -p '{"spec":{}}' 'it'\''s')");
}

TEST(KubectlWords, AnOcWordHasItsKubectlForm) {
  EXPECT_NE(instead_of_command("rsh", {"web-1"}).find("kubectl exec -it web-1 -- sh"), std::string::npos);
  EXPECT_NE(instead_of_command("new-app", {}).find("kubectl create deployment"), std::string::npos);
  EXPECT_NE(instead_of_adm("top", {"nodes"}).find("kubectl top nodes"), std::string::npos);
}

TEST(KubectlWords, RestartingTheMasterSaysHowAndWhatIsReadThen) {
  const std::string text = instead_of_command("master-restart", {"api"});
  for (const char* word : {"berth up", "same flags", "systemctl restart berth-server", "--master-config", "--validate"})
    EXPECT_NE(text.find(word), std::string::npos) << word;
}

TEST(KubectlWords, ACommandOfBerthIsNotSentToKubectl) {
  for (const Command& command : commands()) EXPECT_TRUE(instead_of_command(command.name, {}).empty()) << command.name;
}

TEST(KubectlWords, ASlipHasASuggestion) {
  EXPECT_EQ(did_you_mean("tain", {"taint", "drain"}), "; did you mean \"taint\"?");
  EXPECT_EQ(did_you_mean("frobnicate", {"taint", "drain"}), "");
}

TEST(KubectlWords, AShortWordIsAnotherUnlessItsLettersChangedPlaces) {
  EXPECT_EQ(did_you_mean("pod", {"job", "sa"}), "");
  EXPECT_EQ(did_you_mean("jbo", {"job", "sa"}), "; did you mean \"job\"?");
}

TEST(KubectlWords, ATypeOfOpenShiftsSaysWhatThereIs) {
  EXPECT_NE(instead_of_type("deploymentconfigs").find("a Deployment does the same"), std::string::npos);
  EXPECT_EQ(instead_of_type("podz"), "; did you mean \"pods\"?");
}

}  // namespace
}  // namespace berth::cli
