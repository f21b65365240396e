// A scenario: how the pods of a fleet behave, said in one file instead of by annotations on each (SPEC F1; issue 6 "usage curves").
//
//   kubelet:                      # fields of a KubeletConfiguration, for every node; optional
//     evictionHard: {memory.available: 1Gi}
//   pods:                         # the first rule that sets a key wins; a pod's own annotation wins over all
//   - namespace: load-*           # each of these may be left out; * stands for any characters
//     name: hog-*
//     node: node-1*
//     selector: app=hog
//     set:                        # keys of sim.berth.dev/ annotations, KEY or KEY.CONTAINER
//       memory: 0s=100Mi,5m=2Gi
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "base/error.h"
#include "base/json.h"
#include "model/selector.h"
#include "node/eviction/kubelet_config.h"

namespace berth::node::simulated {

class Scenario {
 public:
  Scenario() = default;
  /// YAML or JSON. The error lists all that is wrong, "FILE:LINE: PATH: …": unknown keys, values that no annotation could have, wrong
  /// curves, selectors, kubelet settings. `notes` gets what is read and has no effect.
  static Result<Scenario> parse(std::string_view text, const std::string& file = "scenario", std::vector<std::string>* notes = nullptr);

  /// The pod with the annotations that the rules give it.
  [[nodiscard]] json::Value apply(json::Value pod) const;
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  [[nodiscard]] const std::optional<eviction::KubeletSettings>& kubelet() const { return kubelet_; }

 private:
  struct Rule {
    std::string ns = "*", name = "*", node = "*";
    std::optional<model::Selector> selector;
    std::vector<std::pair<std::string, std::string>> set;  ///< Annotation keys, complete, and their values.
  };
  static Rule read_rule(const config::Reader& rule);

  std::vector<Rule> rules_;
  std::optional<eviction::KubeletSettings> kubelet_;
};

/// Whether the text has the pattern's form; `*` stands for any characters, none included.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text);

}  // namespace berth::node::simulated
