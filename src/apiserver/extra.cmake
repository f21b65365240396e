target_link_libraries(berth_apiserver PRIVATE OpenSSL::SSL OpenSSL::Crypto)
berth_text(apiserver default_roles_text auth/default_roles.txt)
