// Any text as an expression: compiles or is refused, evaluates or fails, and never crashes or runs away.
#include "cel/cel.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  static const auto document = *json::parse(R"({"a":[1,2.5,"x",null,true],"m":{"k":"v","n":{"d":[{"e":1}]}},"s":"text"})");
  static const cel::Environment environment{
      {{"object", cel::dyn_type()}, {"i", cel::int_type()}, {"s", cel::string_type()}}, {}, nullptr, true};
  static const cel::Bindings bindings{
      {"object", cel::Value::borrowed_json(document)}, {"i", cel::Value::integer(7)}, {"s", cel::Value::borrowed_string("text")}};
  if (size > 4096) return 0;
  const auto program = cel::compile({reinterpret_cast<const char*>(data), size}, environment);
  if (!program) return program.error().text.empty() ? __builtin_trap(), 1 : 0;
  const auto out = program->evaluate(bindings, 20'000);
  if (out.value) (void)cel::to_json(*out.value);
  return 0;
}
