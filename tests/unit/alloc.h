/* alloc.h - make the allocations of the code under test fail, one at a time */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_ALLOC_H
#define TESTS_UNIT_ALLOC_H

#include <stdbool.h>

/* Tests are linked with --wrap for malloc, calloc, realloc and strdup, which
 * reaches the calls of our objects and no library's. CRoaring and czmq would
 * end the process; jansson is reached by alloc_fail_jansson.
 *
 *     long n = 0;
 *     do {
 *         alloc_fail_at (++n);
 *         p = function_under_test ();
 *     } while (alloc_did_fail ());
 *
 * The last round is the first without a failure.
 */
void alloc_fail_at (long n);
/* Ends the round. True if the n-th allocation was reached. */
bool alloc_did_fail (void);

/* From now on jansson's allocations count as well. */
void alloc_fail_jansson (void);

#endif
