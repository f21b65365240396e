# Writes OUT, berth/plugin_abi.h: what a library of plugins and the berth that loads it must have in common. A file of its own, so that only what
# loads plugins is compiled again when a header changes.
file(GLOB_RECURSE headers ${ROOT}/src/base/*.h ${ROOT}/src/model/*.h ${ROOT}/src/cel/*.h ${ROOT}/src/placement/*.h ${ROOT}/sdk/include/*.h)
list(SORT headers)
set(sums "")
foreach(header ${headers})
  file(SHA256 ${header} sum)
  string(APPEND sums ${sum})
endforeach()
string(SHA256 sum "${sums}")
string(SUBSTRING ${sum} 0 12 sum)
file(WRITE ${OUT} "// Made by the build.
#pragma once
#define BERTH_PLUGIN_TEXT_OF(x) #x
#define BERTH_PLUGIN_TEXT(x) BERTH_PLUGIN_TEXT_OF(x)
#if defined(__clang__)
#define BERTH_PLUGIN_COMPILER \"clang \" BERTH_PLUGIN_TEXT(__clang_major__)
#else
#define BERTH_PLUGIN_COMPILER \"GCC \" BERTH_PLUGIN_TEXT(__GNUC__)
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BERTH_PLUGIN_CHECKS \", address sanitizer\"
#elif defined(__SANITIZE_THREAD__)
#define BERTH_PLUGIN_CHECKS \", thread sanitizer\"
#else
#define BERTH_PLUGIN_CHECKS \"\"
#endif
/// Compared to the letter by whoever loads a plugin.
#define BERTH_PLUGIN_STAMP \"BERTH-PLUGIN: berth ${VERSION}, headers ${sum}, \" BERTH_PLUGIN_COMPILER BERTH_PLUGIN_CHECKS
")
