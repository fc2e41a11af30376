/* faulty_vfs.c - the disk under SQLite, made to fail at one operation */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>

#include "tests/unit/faulty_vfs.h"

/* Before each file of the real VFS stands one of ours. */
struct faulty_file {
    sqlite3_file base;
    _Alignas(8) char real[]; /* as SQLite places it */
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs faulty_vfs;
static long left; /* 0: none fails */
static bool failed;
static enum faulty_kind fault;

void faulty_vfs_fail_at (long n, enum faulty_kind kind)
{
    left = n;
    failed = false;
    fault = kind;
}

bool faulty_vfs_end (void)
{
    left = 0;
    return failed;
}

static bool fails_now (void)
{
    if (left == 0 || (failed && fault != FAULTY_CRASH))
        return false;
    if (!failed && --left > 0)
        return false;
    left = 1; /* a crash goes on until faulty_vfs_end */
    failed = true;
    return true;
}

static int result (int io_error)
{
    switch (fault) {
    case FAULTY_FULL:
        errno = ENOSPC;
        return SQLITE_FULL;
    case FAULTY_READ_ONLY:
        errno = EROFS;
        return SQLITE_READONLY;
    case FAULTY_IO:
    case FAULTY_CRASH:
        break;
    }
    errno = EIO;
    return io_error;
}

static sqlite3_file *real_of (sqlite3_file *file)
{
    return (sqlite3_file *)((struct faulty_file *)file)->real;
}

static int f_close (sqlite3_file *file)
{
    sqlite3_file *real = real_of (file);

    return real->pMethods ? real->pMethods->xClose (real) : SQLITE_OK;
}

static int f_read (sqlite3_file *file, void *buf, int n, sqlite3_int64 at)
{
    return real_of (file)->pMethods->xRead (real_of (file), buf, n, at);
}

static int f_write (sqlite3_file *file,
                    const void *buf,
                    int n,
                    sqlite3_int64 at)
{
    if (fails_now ())
        return result (SQLITE_IOERR_WRITE);
    return real_of (file)->pMethods->xWrite (real_of (file), buf, n, at);
}

static int f_truncate (sqlite3_file *file, sqlite3_int64 size)
{
    if (fails_now ())
        return result (SQLITE_IOERR_TRUNCATE);
    return real_of (file)->pMethods->xTruncate (real_of (file), size);
}

static int f_sync (sqlite3_file *file, int flags)
{
    if (fails_now ())
        return result (SQLITE_IOERR_FSYNC);
    return real_of (file)->pMethods->xSync (real_of (file), flags);
}

static int f_size (sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of (file)->pMethods->xFileSize (real_of (file), size);
}

static int f_lock (sqlite3_file *file, int level)
{
    return real_of (file)->pMethods->xLock (real_of (file), level);
}

static int f_unlock (sqlite3_file *file, int level)
{
    return real_of (file)->pMethods->xUnlock (real_of (file), level);
}

static int f_reserved (sqlite3_file *file, int *out)
{
    return real_of (file)->pMethods->xCheckReservedLock (real_of (file), out);
}

static int f_control (sqlite3_file *file, int op, void *arg)
{
    return real_of (file)->pMethods->xFileControl (real_of (file), op, arg);
}

static int f_sector (sqlite3_file *file)
{
    return real_of (file)->pMethods->xSectorSize (real_of (file));
}

static int f_device (sqlite3_file *file)
{
    return real_of (file)->pMethods->xDeviceCharacteristics (real_of (file));
}

static int f_shm_map (
    sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    if (extend && fails_now ())
        return result (SQLITE_IOERR_SHMSIZE);
    return real_of (file)->pMethods->xShmMap (
        real_of (file), page, size, extend, out);
}

static int f_shm_lock (sqlite3_file *file, int at, int n, int flags)
{
    return real_of (file)->pMethods->xShmLock (real_of (file), at, n, flags);
}

static void f_shm_barrier (sqlite3_file *file)
{
    real_of (file)->pMethods->xShmBarrier (real_of (file));
}

static int f_shm_unmap (sqlite3_file *file, int remove_it)
{
    return real_of (file)->pMethods->xShmUnmap (real_of (file), remove_it);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* 3 would be memory maps of the file itself */
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_reserved,
    .xFileControl = f_control,
    .xSectorSize = f_sector,
    .xDeviceCharacteristics = f_device,
    .xShmMap = f_shm_map,
    .xShmLock = f_shm_lock,
    .xShmBarrier = f_shm_barrier,
    .xShmUnmap = f_shm_unmap,
};

static int vfs_open (
    sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    int rc = real_vfs->xOpen (real_vfs, name, real_of (file), flags, out);

    (void)vfs;
    file->pMethods = rc == SQLITE_OK ? &methods : NULL;
    return rc;
}

/* What is gone when the power goes is not deleted either. */
static int vfs_delete (sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    (void)vfs;
    if (left > 0 && failed && fault == FAULTY_CRASH)
        return result (SQLITE_IOERR_DELETE);
    return real_vfs->xDelete (real_vfs, name, sync_folder);
}

int faulty_vfs_install (void)
{
    if (real_vfs)
        return 0;
    if (!(real_vfs = sqlite3_vfs_find (NULL)))
        return -1;
    faulty_vfs = *real_vfs;
    faulty_vfs.pNext = NULL;
    faulty_vfs.zName = "faulty";
    faulty_vfs.szOsFile = (int)sizeof (struct faulty_file) + real_vfs->szOsFile;
    faulty_vfs.xOpen = vfs_open;
    faulty_vfs.xDelete = vfs_delete;
    return sqlite3_vfs_register (&faulty_vfs, 1) == SQLITE_OK ? 0 : -1;
}
