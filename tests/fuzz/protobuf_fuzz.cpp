// Fuzz target: protobuf bodies. Whatever is taken must print as JSON that parses.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "model/protobuf/protobuf.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace berth;
  // A copy of the exact size, so that a read behind the end is noticed; with the magic number before it, which the fuzzer need not find.
  std::string text(reinterpret_cast<const char*>(bytes), size);
  (void)model::decode_protobuf(text);
  const std::string magic("k8s\0", 4);
  auto document = model::decode_protobuf(magic + text);
  if (!document) return 0;
  if (json::parse(json::serialize(*document))) return 0;
  std::fprintf(stderr, "broken: the document does not print as JSON\n");
  std::abort();
}
