// Indexes over labels, so that nobody reads all selectors for one pod, nor all pods for one selector.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controllers/known_objects.h"
#include "model/selector.h"

namespace berth::controllers {

/// Which selectors match given labels. A lookup costs what shares a label value with the pod, not what there is.
class SelectorIndex {
 public:
  /// Replaces the selector known by that name. One that matches nothing is not kept.
  void set(const std::string& ns, const std::string& name, model::Selector selector);
  void erase(const std::string& ns, const std::string& name);
  /// Names in order.
  [[nodiscard]] std::vector<std::string> matching(std::string_view ns, const model::Labels& labels) const;

 private:
  struct Namespace {
    std::map<std::string, model::Selector> selectors;
    /// By one label of each selector that asks for certain values: "key=value" to names.
    std::unordered_map<std::string, std::set<std::string>> by_label;
    std::set<std::string> others;  ///< Selectors that ask for no label's value.
  };
  static const model::Requirement* indexed_by(const model::Selector& selector);
  static std::string label(std::string_view key, std::string_view value);
  std::map<std::string, Namespace, std::less<>> by_ns_;
};

/// Which pods a selector matches. Keys are indexed, namespace by namespace, from the first question about them on.
class PodLabelIndex {
 public:
  /// A pod's labels changed. Null before: it is new; null after: it is gone.
  void update(const KnownObject& pod, const model::Labels* before, const model::Labels* after);
  void forget(std::string_view ns);
  /// The matching ones of `pods`, all pods of the namespace, in order of name.
  void for_each(std::string_view ns, const ObjectSet& pods, const model::Selector& selector,
                const std::function<void(const PodRef&)>& each);

 private:
  using ByValue = std::unordered_map<std::string, ObjectSet>;
  const ByValue& indexed(std::string_view ns, const std::string& key, const ObjectSet& pods);
  std::map<std::string, std::map<std::string, ByValue>, std::less<>> by_ns_;  ///< By namespace and key.
};

}  // namespace berth::controllers
