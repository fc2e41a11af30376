/* link_zap.c - every CURVE key may connect, and is named on its messages */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_server.h"

#include <errno.h>
#include <string.h>
#include <zmq.h>

/* RFC 27 of ZeroMQ: version, request id, domain, address, routing id,
 * mechanism, credentials.  The answers are given in the server's loop: its
 * turns are short, and a handshake waits up to HANDSHAKE_IVL for one.
 */
enum {
    FRAME_VERSION,
    FRAME_REQUEST,
    FRAME_MECHANISM = 5,
    FRAME_KEY,
    FRAMES,
    FRAME_BYTES = 256,
    KEY_BYTES = 32,
};

struct frame {
    char data[FRAME_BYTES];
    size_t size;
};

int hk_zap_open (struct hk_link_server *link, struct hk_error *err)
{
    int zero = 0;

    link->zap = zmq_socket (link->context, ZMQ_REP);
    if (!link->zap)
        return hk_error_errno (err, errno, "zap socket");
    zmq_setsockopt (link->zap, ZMQ_LINGER, &zero, sizeof (zero));
    zmq_setsockopt (link->zap, ZMQ_RCVHWM, &zero, sizeof (zero));
    zmq_setsockopt (link->zap, ZMQ_SNDHWM, &zero, sizeof (zero));
    if (zmq_bind (link->zap, "inproc://zeromq.zap.01") < 0)
        return hk_error_errno (err, errno, "zap socket");
    return 0;
}

/* All frames of one request; how many there were, or -1 if none is there. */
static int receive (void *socket, struct frame *frames)
{
    int count = 0;
    int more = 1;
    size_t more_size = sizeof (more);

    while (more) {
        struct frame spare;
        struct frame *frame = count < FRAMES ? &frames[count] : &spare;
        int n = zmq_recv (socket, frame->data, FRAME_BYTES, ZMQ_DONTWAIT);

        if (n < 0)
            return -1;
        frame->size = (size_t)n;
        count++;
        if (zmq_getsockopt (socket, ZMQ_RCVMORE, &more, &more_size) < 0)
            return -1;
    }
    return count;
}

static bool is_text (const struct frame *frame, const char *text)
{
    return frame->size == strlen (text)
           && memcmp (frame->data, text, frame->size) == 0;
}

static void send_text (void *socket, const char *text, int flags)
{
    zmq_send (socket, text, strlen (text), flags | ZMQ_DONTWAIT);
}

void hk_zap_answer (struct hk_link_server *link)
{
    struct frame frames[FRAMES];
    int count;

    while ((count = receive (link->zap, frames)) >= 0) {
        char key[HK_KEY_TEXT_BYTES] = "";
        bool ok = count == FRAMES && is_text (&frames[FRAME_VERSION], "1.0")
                  && is_text (&frames[FRAME_MECHANISM], "CURVE")
                  && frames[FRAME_KEY].size == KEY_BYTES
                  && zmq_z85_encode (
                      key, (uint8_t *)frames[FRAME_KEY].data, KEY_BYTES);

        send_text (link->zap, "1.0", ZMQ_SNDMORE);
        zmq_send (link->zap,
                  frames[FRAME_REQUEST].data,
                  count > FRAME_REQUEST ? frames[FRAME_REQUEST].size : 0,
                  ZMQ_SNDMORE | ZMQ_DONTWAIT);
        send_text (link->zap, ok ? "200" : "400", ZMQ_SNDMORE);
        send_text (link->zap, ok ? "" : "CURVE only", ZMQ_SNDMORE);
        send_text (link->zap, key, ZMQ_SNDMORE);
        send_text (link->zap, "", 0);
    }
}
