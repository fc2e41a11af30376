/* main.c - hkctl, the administrator's command */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

int main (int argc, char **argv)
{
    return ctl_main (argc, argv);
}
