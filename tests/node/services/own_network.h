// A network namespace of a test's own.
#pragma once
#include <gtest/gtest.h>
#include <sched.h>

#include <functional>
#include <string>
#include <thread>

#include "node/services/kernel.h"

namespace berth::node::services {

/// In a network namespace of its own, on a thread that ends with it.
inline void in_own_network(const std::function<void(Kernel&)>& body) {
  std::string why;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      why = "needs the right to make a network namespace";
      return;
    }
    const auto kernel = open_kernel();
    if (!kernel)
      why = kernel.error().message;
    else
      body(**kernel);
  }).join();
  if (!why.empty()) GTEST_SKIP() << why;
}

}  // namespace berth::node::services
