// The page's files, built from web/ and embedded by the build; none when it had no npm.
#pragma once
#include <span>
#include <string_view>

namespace berth::dashboard {

struct PageFile {
  std::string_view path;  ///< "/app.js"
  std::string_view content_type;
  std::string_view etag;  ///< With its quotes; changes with the content.
  std::string_view gzip;  ///< The content, packed.
};

std::span<const PageFile> page_files();

}  // namespace berth::dashboard
