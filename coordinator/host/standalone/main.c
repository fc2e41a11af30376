/* main.c - hk-coordinator */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "coordinator/host/standalone/standalone.h"

int main (int argc, char **argv)
{
    return hkc_standalone_main (argc, argv);
}
