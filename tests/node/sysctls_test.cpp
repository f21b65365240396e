// Kernel parameters of pods: what a node lets them set (pkg/kubelet/sysctl).
#include "node/sysctls.h"

#include <gtest/gtest.h>

namespace berth::node {
namespace {

std::string refusal(const std::string& spec, const std::vector<std::string>& allowed = {}) {
  const auto pod = json::parse_yaml("spec: {" + spec + "}");
  const auto refused = refuse_sysctls(*pod, allowed);
  return refused ? refused->reason + ": " + refused->message : "";
}

TEST(Sysctls, SafeOnesMayBeSetAndOthersOnlyWhereTheNodeSaysSo) {
  const std::string safe = "securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}";
  const std::string unsafe = "securityContext: {sysctls: [{name: kernel.msgmax, value: '65536'}]}";
  EXPECT_EQ(refusal(safe), "");
  EXPECT_EQ(refusal(unsafe), "SysctlForbidden: forbidden sysctl: \"kernel.msgmax\" not allowlisted");
  EXPECT_EQ(refusal(unsafe, {"kernel.msg*"}), "");
  EXPECT_EQ(refusal(unsafe, {"kernel.msgmax"}), "");
  EXPECT_NE(refusal(unsafe, {"kernel.shm*"}), "");
  EXPECT_EQ(refusal(""), "");
}

TEST(Sysctls, TheSlashFormIsTheSameParameter) {
  EXPECT_EQ(refusal("securityContext: {sysctls: [{name: net/ipv4/tcp_syncookies, value: '1'}]}"), "");
  EXPECT_EQ(refusal("securityContext: {sysctls: [{name: kernel/msgmax, value: '1'}]}"),
            "SysctlForbidden: forbidden sysctl: \"kernel.msgmax\" not allowlisted");
}

TEST(Sysctls, WhatBelongsToASharedNamespaceIsTheHosts) {
  EXPECT_EQ(refusal("hostNetwork: true, securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}"),
            "SysctlForbidden: forbidden sysctl: \"net.ipv4.tcp_syncookies\" not allowed with host Net enabled");
  EXPECT_EQ(refusal("hostIPC: true, securityContext: {sysctls: [{name: kernel.shm_rmid_forced, value: '1'}]}"),
            "SysctlForbidden: forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host IPC enabled");
}

TEST(Sysctls, OnlyWhatHasANamespaceMayBeAllowed) {
  EXPECT_EQ(check_allowed_sysctl("kernel.msg*"), "");
  EXPECT_EQ(check_allowed_sysctl("net.core.somaxconn"), "");
  EXPECT_NE(check_allowed_sysctl("vm.swappiness"), "");
  EXPECT_NE(check_allowed_sysctl("*"), "");
}

}  // namespace
}  // namespace berth::node
