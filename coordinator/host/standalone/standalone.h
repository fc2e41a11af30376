/* standalone.h - the coordinator as a daemon of its own */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_STANDALONE_H
#define HKC_STANDALONE_H

/* Everything but argv's name of it: the exit status of the program. */
int hkc_standalone_main (int argc, char **argv);

#endif
