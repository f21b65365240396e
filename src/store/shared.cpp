#include "store/shared.h"

#include <future>

namespace berth::store {

WriteAnswer SharedStore::write_and_wait(SharedWrite write) {
  auto promise = std::make_shared<std::promise<WriteAnswer>>();
  auto answer = promise->get_future();
  this->write(std::move(write), [promise](WriteAnswer given) { promise->set_value(std::move(given)); });
  return answer.get();
}

}  // namespace berth::store
