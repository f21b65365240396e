#include "cel/device_selector.h"

#include <fmt/format.h>

namespace berth::cel {
namespace {

constexpr std::uint64_t kMaxDomain = 63, kMaxId = 32, kMaxDriver = 63, kMaxAttributeText = 64, kMaxEntries = 32;

Type by_domain(Type value) {
  Type names = bounded(map_type(bounded(string_type(), kMaxId), std::move(value)), kMaxEntries);
  return bounded(map_type(bounded(string_type(), kMaxDomain), std::move(names)), kMaxEntries);
}

}  // namespace

const Environment& device_environment() {
  static const Environment environment = [] {
    Environment out;
    out.variables.push_back({"device", struct_type("kubernetes.DRADevice")});
    StructType device{"kubernetes.DRADevice", {}};
    device.fields["driver"] = bounded(string_type(), kMaxDriver);
    device.fields["allowMultipleAllocations"] = bounded(bool_type(), 1);
    device.fields["attributes"] = by_domain(bounded(any_type(), kMaxAttributeText));
    device.fields["capacity"] = by_domain(quantity_type());
    out.structs.push_back(std::move(device));
    out.has_bind = true;
    return out;
  }();
  return environment;
}

Expected<Program, std::string> compile_device_selector(std::string_view expression) {
  auto program = compile(expression, device_environment());
  if (!program) return std::unexpected("compilation failed: " + program.error().text);
  const Type& type = program->output_type();
  if (!same_type(type, bool_type()) && !same_type(type, any_type()))
    return std::unexpected(fmt::format("must evaluate to bool or the unknown type, not {}", to_string(type)));
  return std::move(*program);
}

}  // namespace berth::cel
