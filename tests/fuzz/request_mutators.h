// libFuzzer's hooks for targets whose inputs are lists of requests. Included once, by the target's own source.
#pragma once
#include "tests/fuzz/requests.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

#ifndef BERTH_FUZZ_REPLAY
namespace berth::fuzz {

inline std::size_t give_back(const std::string& text, std::uint8_t* data, std::size_t max_size) {
  if (text.size() > max_size) return 0;
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

}  // namespace berth::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  berth::fuzz::Random random(seed);
  auto requests = berth::fuzz::parse_requests({reinterpret_cast<const char*>(data), size});
  if (requests.empty() || random() % 12 == 0 || !berth::fuzz::mutate_requests(requests, random))
    return LLVMFuzzerMutate(data, size, max_size);
  const auto made = berth::fuzz::give_back(berth::fuzz::print(requests), data, max_size);
  return made != 0 ? made : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b, std::size_t b_size,
                                                 std::uint8_t* out, std::size_t max_size, unsigned seed) {
  berth::fuzz::Random random(seed);
  auto one = berth::fuzz::parse_requests({reinterpret_cast<const char*>(a), a_size});
  const auto other = berth::fuzz::parse_requests({reinterpret_cast<const char*>(b), b_size});
  if (!berth::fuzz::cross_requests(one, other, random)) return 0;
  return berth::fuzz::give_back(berth::fuzz::print(one), out, max_size);
}
#endif
