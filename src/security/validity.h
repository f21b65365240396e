// Whether certificates that people give are good for anything, asked before a connection fails without a reason. Sentences without a place:
// who asks says before them which flag, file or field it is about. What is no certificate or key at all is passed over; others tell that.
#pragma once
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace berth::security {

/// Of the text's first certificate, in quotes, as RFC 4514 writes it; "nobody" where there is none.
std::string subject_of(const std::string& certificate_pem);
/// The text's first certificate is good at `now`. kInvalid: whose it is, who signed it, since when it is none or from when on, what to do.
Result<void> check_dates(const std::string& certificate_pem, TimePoint now);
/// The key is the first certificate's, and that is good at `now`.
Result<void> check_identity(const std::string& certificate_pem, const std::string& key_pem, TimePoint now);
/// Of authorities: kInvalid when none of them is good at `now`; otherwise a sentence for each that is not, for it may be on its way out.
Result<std::vector<std::string>> check_authorities(const std::string& bundle_pem, TimePoint now);

}  // namespace berth::security
