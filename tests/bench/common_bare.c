/* common_bare.c - what ZeroMQ and SQLite do by themselves, in the same run */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>
#include "tests/bench/common.h"

enum { REPORT_BYTES = 480, WINDOW = 256 };

struct bare {
    void *context;
    void *server; /* handed to its thread */
    int messages;
    char server_pub[41], server_sec[41];
    char endpoint[64];
};

/* A router that sends back what comes. */
static void *bare_server (void *arg)
{
    struct bare *b = arg;
    void *s = b->server;
    char id[64], text[REPORT_BYTES];

    for (int i = 0; i < b->messages; i++) {
        int n = zmq_recv (s, id, sizeof (id), 0);
        if (n < 0 || zmq_recv (s, text, sizeof (text), 0) < 0)
            break;
        zmq_send (s, id, (size_t)n, ZMQ_SNDMORE);
        zmq_send (s, text, 80, 0); /* an acknowledgement is short */
    }
    usleep (100000);
    zmq_close (s);
    return NULL;
}

static void bare_listen (struct bare *b)
{
    void *s = b->server = zmq_socket (b->context, ZMQ_ROUTER);
    int one = 1, wait = 10000;
    size_t size = sizeof (b->endpoint);

    zmq_setsockopt (s, ZMQ_CURVE_SERVER, &one, sizeof (one));
    zmq_setsockopt (s, ZMQ_CURVE_SECRETKEY, b->server_sec, 41);
    zmq_setsockopt (s, ZMQ_RCVTIMEO, &wait, sizeof (wait));
    zmq_setsockopt (s, ZMQ_SNDHWM, &b->messages, sizeof (int));
    zmq_setsockopt (s, ZMQ_RCVHWM, &b->messages, sizeof (int));
    zmq_setsockopt (s, ZMQ_LINGER, &one, sizeof (one));
    if (zmq_bind (s, "tcp://127.0.0.1:*") < 0
        || zmq_getsockopt (s, ZMQ_LAST_ENDPOINT, b->endpoint, &size) < 0)
        bench_fail ("bare ZeroMQ: %s", zmq_strerror (zmq_errno ()));
}

double bench_bare_zmq (int messages)
{
    struct bare b = { .context = zmq_ctx_new (), .messages = messages };
    char pub[41], sec[41], text[REPORT_BYTES] = "x";
    pthread_t thread;
    void *c;
    double t0 = 0;
    int sent = 0, got = 0, wait = 10000, none = 0;

    zmq_curve_keypair (b.server_pub, b.server_sec);
    zmq_curve_keypair (pub, sec);
    bare_listen (&b);
    if (pthread_create (&thread, NULL, bare_server, &b) != 0)
        bench_fail ("bare ZeroMQ: no thread");
    c = zmq_socket (b.context, ZMQ_DEALER);
    zmq_setsockopt (c, ZMQ_CURVE_SERVERKEY, b.server_pub, 41);
    zmq_setsockopt (c, ZMQ_CURVE_PUBLICKEY, pub, 41);
    zmq_setsockopt (c, ZMQ_CURVE_SECRETKEY, sec, 41);
    zmq_setsockopt (c, ZMQ_RCVTIMEO, &wait, sizeof (wait));
    zmq_setsockopt (c, ZMQ_LINGER, &none, sizeof (none));
    zmq_connect (c, b.endpoint);
    while (got < messages) {
        while (sent < messages && sent - got < WINDOW) {
            zmq_send (c, text, sizeof (text), 0);
            sent++;
        }
        if (zmq_recv (c, text, sizeof (text), 0) < 0)
            bench_fail ("bare ZeroMQ: no answer");
        if (got++ == 0)
            t0 = bench_now ();
    }
    t0 = bench_now () - t0;
    zmq_close (c);
    pthread_join (thread, NULL);
    zmq_ctx_term (b.context);
    return (messages - 1) / t0;
}

double bench_bare_sqlite (const char *dir, int rows, int batch)
{
    char path[128];
    sqlite3 *db;
    sqlite3_stmt *s;
    double t0;

    snprintf (path, sizeof (path), "%s/bare.db", dir);
    if (sqlite3_open (path, &db) != SQLITE_OK
        || sqlite3_exec (db,
                         "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                         "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT,"
                         " c TEXT, d REAL, e REAL, f INTEGER);",
                         NULL,
                         NULL,
                         NULL)
               != SQLITE_OK
        || sqlite3_prepare_v2 (
               db, "INSERT INTO t VALUES (?,?,?,?,?,?)", -1, &s, NULL)
               != SQLITE_OK)
        bench_fail ("bare SQLite: %s", sqlite3_errmsg (db));
    t0 = bench_now ();
    for (int i = 0; i < rows; i++) {
        if (i % batch == 0)
            sqlite3_exec (db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        sqlite3_bind_int64 (s, 1, i);
        sqlite3_bind_text (s, 2, "node1234", -1, SQLITE_STATIC);
        sqlite3_bind_text (
            s, 3, "0123456789abcdef0123456789abcdef", -1, SQLITE_STATIC);
        sqlite3_bind_double (s, 4, i);
        sqlite3_bind_double (s, 5, i);
        sqlite3_bind_int (s, 6, 1);
        if (sqlite3_step (s) != SQLITE_DONE)
            bench_fail ("bare SQLite: %s", sqlite3_errmsg (db));
        sqlite3_reset (s);
        if ((i + 1) % batch == 0 || i + 1 == rows)
            sqlite3_exec (db, "COMMIT", NULL, NULL, NULL);
    }
    t0 = bench_now () - t0;
    sqlite3_finalize (s);
    sqlite3_close (db);
    return rows / t0;
}
