# A plugin's parameter that nobody reads is a question not asked.
target_compile_options(berth_placement PRIVATE -Wunused-parameter)
