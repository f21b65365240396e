// How log lines are written: for people, or for programs that collect them. Kept out of log.h, which everybody includes.
#pragma once

namespace berth::log {

enum class Format {
  kText,  ///< klog's shape.
  kJson,  ///< One object a line: {"ts":"…","level":"info","component":"…","msg":"…"}
};
/// Thread-safe; default kText.
void set_format(Format format);

}  // namespace berth::log
