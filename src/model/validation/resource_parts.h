// What the kinds of resource.k8s.io share. Within src/model/validation only. Kubernetes: pkg/apis/resource/validation.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "model/validation/validation.h"

namespace berth::model::validation::devices {

inline constexpr std::size_t kRequestsMax = 32, kConstraintsMax = 32, kConfigMax = 32, kSelectorsMax = 32, kFirstAvailableMax = 8,
                             kReservedForMax = 256, kResultsMax = 32, kRawMax = 10 * 1024, kExpressionMax = 10 * 1024;

/// The names of a claim's requests, each with those of its alternatives (none for an exact request).
using RequestNames = std::map<std::string_view, std::set<std::string_view>, std::less<>>;
RequestNames request_names(const Value& claim_spec);

void device_name(std::string_view name, const Path& at, Errors& errors);
void pool_name(std::string_view name, const Path& at, Errors& errors);
/// Needed, and a subdomain.
void class_name(std::string_view name, const Path& at, Errors& errors);
/// A C identifier, or one of a domain: "a.example.com/name".
void qualified_name(std::string_view name, const Path& at, Errors& errors);
void label_name(std::string_view name, const Path& at, Errors& errors);
/// Selectors in `holder`.
void selectors(const Value& holder, const Path& at, Errors& errors);
/// Opaque configuration of a driver, in an entry of a config list.
void configuration(const Value& entry, const Path& at, Errors& errors);
/// bindingConditions and bindingFailureConditions of a device or of an allocated one.
void binding_conditions(const Value& holder, const Path& at, Errors& errors);
/// The spec of a claim; `stored` expressions are not judged anew.
void claim_spec(const Value& spec, const Path& at, Errors& errors);
/// A JSON object of a driver's own.
void raw_object(const Value* value, std::size_t limit, const Path& at, Errors& errors);
/// RFC 4122 in lower case.
void uid(std::string_view text, const Path& at, Errors& errors);

/// "a-long-…-name" in the middle cut to `limit` bytes, as map keys are shown.
std::string shortened(std::string_view text, std::size_t limit);

void resource_slice(const Value* old, const Value& doc, Errors& errors);
void device_taint_rule(const Value* old, const Value& doc, Errors& errors);

}  // namespace berth::model::validation::devices
