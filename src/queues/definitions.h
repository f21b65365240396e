// The kinds of kueue.x-k8s.io and the policies that stand for Kueue's webhooks, as YAML: definitions/*.yaml.
#pragma once
#include <string_view>

namespace berth::queues {

std::string_view kinds_text();
std::string_view policies_text();

}  // namespace berth::queues
