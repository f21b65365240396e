#include "base/check.h"

#include <cstdlib>
#include <string_view>

#include "base/log.h"

namespace berth {

void check_failed(const char* file, int line, const char* condition, const std::string& details) {
  std::string_view place = file;
  if (const auto at = place.rfind("src/"); at != std::string_view::npos) place.remove_prefix(at);
  log::error("check", "{}:{}: {} is false: {}. This is a fault of berth: the process ends, so that nothing is done on a wrong state", place,
             line, condition, details);
  std::_Exit(kCheckFailedExit);
}

}  // namespace berth
