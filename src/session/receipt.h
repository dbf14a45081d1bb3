/* receipt.h - what a session tells its receipt, if it has one: at the start of a request, before each token, at the end of a
 * reply. Without one none of this is called. The public part is mica_receipt.h. */
#ifndef MICA_SESSION_RECEIPT_H
#define MICA_SESSION_RECEIPT_H
#include "mica/mica_receipt.h"
#include "session/session.h"

/** MICA_REFUSED if a request to a session with these resolved options would be refused now, as far as that can be told without the
 * session: what is about threads is left to mica_receipt_begin(). */
mica_status mica_receipt_foresee(mica_receipt *r, const mica_session_options *options, mica_error *err);

/** A request was accepted: forgets the one before, looks at the machine, checks the conditions. */
mica_status mica_receipt_begin(mica_receipt *r, const mica_session *s, mica_error *err);

/** A reply begins: the same, unless its request has begun already. It has not where the history stays as it was: after a reply,
 * a refusal, or a restored snapshot. */
mica_status mica_receipt_ensure(mica_receipt *r, const mica_session *s, mica_error *err);

/** MICA_REFUSED if tokens must not be dropped. */
mica_status mica_receipt_may_drop(const mica_receipt *r, mica_error *err);

/** Before a token: notes threads and company; some times a second, if a condition is about it, what the machine says. */
mica_status mica_receipt_tick(mica_receipt *r, const mica_session *s, mica_error *err);

/** The reply ended with `status`. Returns that, or MICA_REFUSED if a condition was broken since the last look. */
mica_status mica_receipt_end(mica_receipt *r, const mica_session *s, mica_status status, const mica_result *result,
                             mica_error *err);

/** MICA_YES if something shows that the machine is throttled; MICA_NO if something could have shown it; else MICA_UNKNOWN. */
int mica_state_throttled(const mica_device_state *state);

#endif
