target_link_libraries(berth_apiserver PRIVATE OpenSSL::SSL OpenSSL::Crypto)
