// What NodeEnv and PodNodeSelector have in common: a namespace's node selector becomes its pods' own.
#pragma once
#include "apiserver/admission/plugin.h"

namespace berth::apiserver {

class NodeSelectorPlugin : public AdmissionPlugin {
 public:
  bool add_circumstances(const AdmissionRequest& write, Circumstances& circumstances) final;
  Admitted mutate(AdmissionRequest& request) final;
  Admitted validate(const AdmissionRequest& request) final;

 protected:
  using LabelMap = std::map<std::string, std::string>;
  /// `conflict`: what is said of a pod that has another value itself.
  NodeSelectorPlugin(Mirror& namespaces, std::string_view conflict) : namespaces_(namespaces), conflict_(conflict) {}
  /// What the pod's namespace wants.
  [[nodiscard]] virtual model::ApiResult<LabelMap> selector_of(const AdmissionRequest& request) const = 0;
  /// Of a pod that has all of that.
  [[nodiscard]] virtual Admitted judge(const AdmissionRequest&) const { return {}; }
  /// Warns whoever gives a namespace a selector that no pod can have.
  virtual void tell(const AdmissionRequest& of_namespace) const = 0;

  Mirror& namespaces_;

 private:
  [[nodiscard]] Admitted hold(const AdmissionRequest& request, const LabelMap& wanted) const;
  std::string_view conflict_;
};

}  // namespace berth::apiserver
