// A node's configuration, files and flags, and what becomes of each, word for word (kubelet_told.txt beside this): what the role that
// starts the node says, what the kubelet's own loading says where that is another, why it would not start, and what it shows otherwise than
// without.
#include <gtest/gtest.h>

#include "node/eviction/kubelet_config.h"
#include "node/eviction/policies.h"
#include "tests/support/told.h"

namespace berth::node::eviction {
namespace {

std::string told(std::string text) {
  const auto flags = testing::take_flags(text);
  std::string out;
  KubeletSettings settings;
  apply_kubelet_defaults(settings);
  if (!text.empty()) {
    const auto read = read_kubelet_file(text, "f");
    const auto loaded = load_config_text(text, "f");
    if (!loaded) out += "loading: " + loaded.error() + "\n";
    if (!read) return out + read.error().message + "\n";
    settings = *read;
  }
  for (const auto& [name, value] : flags)
    if (const auto wrong = apply_kubelet_argument(settings, name, value ? std::vector{*value} : std::vector<std::string>()))
      out += *wrong + "\n";
  for (const std::string& warning : settings.warnings) out += "note: " + warning + "\n";
  for (const std::string& error : start_errors(settings)) out += "no start: " + error + "\n";
  KubeletSettings plain;
  apply_kubelet_defaults(plain);
  const json::Object before = kubelet_configuration(plain), now = kubelet_configuration(settings);
  for (const auto& [field, value] : now)
    if (const json::Value* was = before.if_contains(field); was == nullptr || !json::equal(*was, value))
      out += std::string(field.data(), field.size()) + " = " + json::serialize(value) + "\n";
  for (const auto& [field, value] : before)
    if (!now.contains(field)) out += "no " + std::string(field.data(), field.size()) + "\n";
  return out.empty() ? "as without\n" : out;
}

TEST(KubeletFiles, WhatBecomesOfEachIsWrittenDown) { testing::expect_told("tests/node/kubelet_told.txt", told); }

}  // namespace
}  // namespace berth::node::eviction
