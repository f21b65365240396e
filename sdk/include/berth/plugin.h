// What a scheduler plugin includes, first of all: the framework (placement/framework.h), the reader of its arguments, and what makes a
// library out of it that `berth --plugin FILE.so` loads. docs/plugins.md tells how.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/json.hpp>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "berth/plugin_abi.h"
#include "placement/framework.h"
#include "placement/plugin_of.h"

namespace berth::plugin {

/// What a library says of itself.
struct Exports {
  const char* stamp;  ///< BERTH_PLUGIN_STAMP as it was when the library was compiled.
  const placement::PluginRegistration* plugins;
  std::size_t count;
};

}  // namespace berth::plugin

extern "C" const berth::plugin::Exports* berth_plugin_exports();

/// Once in a library, outside of namespaces: its plugins by name, each with what makes it.
///   BERTH_PLUGIN({.name = "GpuShare", .build = build_gpu_share})
#define BERTH_PLUGIN(...)                                                                         \
  extern "C" __attribute__((used)) const char berth_plugin_stamp[] = BERTH_PLUGIN_STAMP;          \
  extern "C" const berth::plugin::Exports* berth_plugin_exports() {                               \
    static const berth::placement::PluginRegistration plugins[] = {__VA_ARGS__};                  \
    static const berth::plugin::Exports exports{berth_plugin_stamp, plugins, std::size(plugins)}; \
    return &exports;                                                                              \
  }

namespace berth::plugin {

/// Registers the plugins that are linked into this program: for tests and tools. False when a name is taken.
inline bool register_linked() {
  const Exports* linked = berth_plugin_exports();
  return std::ranges::all_of(std::span(linked->plugins, linked->count), placement::register_plugin);
}

}  // namespace berth::plugin
