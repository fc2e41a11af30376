/* fuse_folder.c - an empty folder on a real file system of kind fuse */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/fuse_folder.h"

enum { REQUEST_BYTES = 1 << 20 };

int mounts_private (void)
{
    if (unshare (CLONE_NEWNS) < 0)
        return -1;
    return mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static void reply (
    int fd, const struct fuse_in_header *in, int error, void *data, size_t size)
{
    struct fuse_out_header out = {
        .len = (uint32_t)(sizeof (out) + size),
        .error = error,
        .unique = in->unique,
    };
    struct iovec parts[] = { { &out, sizeof (out) }, { data, size } };

    if (writev (fd, parts, size ? 2 : 1) < 0)
        _exit (1); /* nobody waits for it any more */
}

static void serve_one (int fd, const struct fuse_in_header *in)
{
    struct fuse_init_out init = {
        .major = FUSE_KERNEL_VERSION,
        .minor = FUSE_KERNEL_MINOR_VERSION,
        .max_write = 4096,
    };
    struct fuse_attr_out attr = {
        .attr = { .ino = FUSE_ROOT_ID, .mode = S_IFDIR | 0700, .nlink = 2 },
    };
    struct fuse_statfs_out fs = { .st = { .bsize = 4096, .namelen = 255 } };

    switch (in->opcode) {
    case FUSE_INIT:
        reply (fd, in, 0, &init, sizeof (init));
        break;
    case FUSE_GETATTR:
        reply (fd, in, 0, &attr, sizeof (attr));
        break;
    case FUSE_STATFS:
        reply (fd, in, 0, &fs, sizeof (fs));
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
        break; /* not answered */
    default:
        reply (fd, in, -ENOSYS, NULL, 0);
        break;
    }
}

static void serve (int fd)
{
    static _Alignas(8) char buf[REQUEST_BYTES];
    ssize_t n;

    while ((n = read (fd, buf, sizeof (buf))) > 0 || errno == EINTR)
        if (n >= (ssize_t)sizeof (struct fuse_in_header))
            serve_one (fd, (const struct fuse_in_header *)buf);
    _exit (0);
}

pid_t fuse_folder_mount (const char *path)
{
    int fd = open ("/dev/fuse", O_RDWR | O_CLOEXEC);
    char options[128];
    pid_t child = -1;

    if (fd < 0)
        return -1;
    snprintf (options,
              sizeof (options),
              "fd=%d,rootmode=40000,user_id=%u,group_id=%u",
              fd,
              geteuid (),
              getegid ());
    if (mount ("test", path, "fuse", 0, options) == 0) {
        if ((child = fork ()) == 0) {
            prctl (PR_SET_PDEATHSIG, SIGKILL);
            serve (fd);
        }
        if (child < 0)
            umount2 (path, MNT_DETACH);
    }
    close (fd);
    return child;
}

void fuse_folder_unmount (const char *path, pid_t child)
{
    umount2 (path, MNT_DETACH);
    kill (child, SIGKILL);
    waitpid (child, NULL, 0);
}
