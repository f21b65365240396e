// CustomResourceDefinitions as kube-apiserver stores them: apiextensions.k8s.io/v1beta1 to this day (1.36).
#pragma once
#include "base/json.h"

namespace berth::apiserver::etcd {

/// Makes a v1beta1 definition a v1 one: what stood once for all versions (schema, subresources, columns) is then each version's
/// (apiextensions-apiserver pkg/apis/apiextensions/v1beta1/conversion.go). apiVersion is left as it is.
void definition_from_v1beta1(json::Value& document);

}  // namespace berth::apiserver::etcd
