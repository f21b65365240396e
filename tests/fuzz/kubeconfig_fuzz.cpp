// Fuzz target: kubeconfig files, as whoever is handed one reads it. It loads or says why not.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "client/kubeconfig.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace berth;
  static const std::string path = "/tmp/berth-fuzz-kubeconfig." + std::to_string(getpid());
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  const client::Surroundings nobody;
  auto connection = client::load_kubeconfig(path, {}, nobody);
  if (connection || !connection.error().message.empty()) return 0;
  std::fprintf(stderr, "broken: refused without a reason\n");
  std::abort();
}
