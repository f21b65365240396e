// CustomResourceDefinitions. What is checked of them needs schemas and rules: src/custom/check_definition, which the API server puts in.
#include "model/kinds/record.h"

namespace berth::model::kinds {

std::vector<KindInfo> apiextensions_group() {
  return {Record("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
              .shorts({"crd", "crds"})
              .categories({"api-extensions"})
              .cluster()
              .subs({"status"})
              .generation()
              .does(KindHooks::all_default())};
}

}  // namespace berth::model::kinds
