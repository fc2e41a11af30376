/* limits.h - every bound on what comes from the wire, a file or a user */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_LIMITS_H
#define HK_LIMITS_H

enum {
    HK_RANK_LIMIT = 1 << 20,          /* ranks are below this */
    HK_JOB_RANKS_LIMIT = 1 << 16,     /* ranks of one ended job */
    HK_HOST_NAME_BYTES = 256,         /* RFC 1123 name with NUL */
    HK_HOSTLIST_LIMIT = 1 << 20,      /* names in one list */
    HK_IDSET_TEXT_BYTES = 1 << 21,    /* text of one rank set */
    HK_HOSTLIST_TEXT_BYTES = 1 << 23, /* text of one host list */
    HK_R_BYTES = 8 << 20,             /* text of one R */
    HK_ID_BYTES = 33,                 /* 32 hex digits and NUL: boot, session */
    HK_SCRIPT_NAME_BYTES = 256,       /* NAME_MAX and NUL */
    HK_SCRIPTS_LIMIT = 256,           /* scripts in one run */
    HK_REASON_BYTES = 1024,           /* a reason said by a person or node */
    HK_LEFTOVERS_LIMIT = 32,          /* processes named in a report */
    HK_RUNS_LIMIT = 64,               /* runs in one part of a state */
    HK_MSG_UNBOUND_BYTES = 4 << 10,   /* before welcome */
    HK_MSG_NODE_BYTES = 256 << 10,    /* from nodes and guests */
    HK_MSG_OWNER_BYTES = 16 << 20,    /* from owners and managers */
    HK_MSG_DEPTH = 8,
};

#endif
