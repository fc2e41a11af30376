# Makefile - builds everything into $(O); a new .c file needs no line here
# SPDX-License-Identifier: LGPL-3.0-or-later
#
#   make demo    on a bare Debian 12 with git and make: installs what is missing,
#                builds, shows the system at work on nodes in namespaces
#   make check   likewise, and runs every test in one report
#   make deps | all | man | lint | format | bench | bench-flux | install | clean
#
#   O=DIR                    build folder (build; variants below choose their own)
#   CC=clang                 build/clang
#   SAN=address,undefined    build/asan      SAN=thread    build/tsan
#   COV=1                    build/cov
#   TESTS='FILE ..'          what `make check` runs (all)
#   V=1                      show each command

VERSION := 0.1.0
PREFIX ?= /usr
DESTDIR ?=

ifeq ($(origin CC),default)
CC := gcc
endif

variant := $(if $(findstring clang,$(CC)),clang) \
	$(if $(findstring address,$(SAN)),asan) \
	$(if $(filter undefined,$(SAN)),ubsan) \
	$(if $(findstring thread,$(SAN)),tsan) $(if $(COV),cov)
empty :=
space := $(empty) $(empty)
O ?= build$(if $(strip $(variant)),/$(subst $(space),-,$(strip $(variant))))

# ---- flags: ours, then the caller's ------------------------------------------

PKGS := libzmq libczmq jansson libsystemd munge sqlite3 inih smartcols
PKG_CONFIG ?= pkg-config
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
# libroaring-dev has no .pc file
PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null) -lroaring
HAVE_FLUX := $(shell $(PKG_CONFIG) --exists flux-core 2>/dev/null && echo yes)
ifeq ($(HAVE_FLUX),yes)
FLUX_CFLAGS := $(shell $(PKG_CONFIG) --cflags flux-core)
FLUX_LIBS := $(shell $(PKG_CONFIG) --libs flux-core)
endif

HK_CPPFLAGS := -I. -D_GNU_SOURCE -DHK_VERSION='"$(VERSION)"' $(PKG_CFLAGS)
# `return hk_error_set (..)` is a failure, which gcc cannot see: what it then
# takes for uninitialized is a warning, not an error
HK_CFLAGS := -std=c17 -g -fPIC -pthread -Wall -Wextra -Werror -Wshadow \
	-Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
	$(if $(findstring clang,$(CC)),,-Wno-error=maybe-uninitialized)
HK_LDFLAGS := -pthread -Wl,--as-needed -Wl,-z,relro -Wl,-z,now
ifneq ($(SAN),)
# with them gcc warns of what cannot be
HK_CFLAGS += -O1 -Wno-error -fno-omit-frame-pointer -fsanitize=$(SAN) \
	$(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined)
HK_LDFLAGS += -fsanitize=$(SAN)
else ifneq ($(COV),)
HK_CFLAGS += -O0 --coverage
HK_LDFLAGS += --coverage
else
HK_CPPFLAGS += -D_FORTIFY_SOURCE=2
HK_CFLAGS += -O2 -fstack-protector-strong
endif
ifeq ($(V),)
Q = @echo '  $(@:$(O)/%=%)' &&
endif
all_cflags = $(HK_CPPFLAGS) $(CPPFLAGS) $(HK_CFLAGS) $(CFLAGS)
all_ldflags = $(HK_LDFLAGS) $(LDFLAGS)

# ---- sources -------------------------------------------------------------------

proto_src := $(wildcard proto/*.c)
hkd_src := $(filter-out hkd/main.c,$(wildcard hkd/*.c))
hkctl_src := $(filter-out hkctl/main.c,$(wildcard hkctl/*.c))
coordinator_src := $(wildcard $(addprefix coordinator/,core/*.c store/*.c \
	engine/*.c host/*.c)) \
	$(filter-out %/main.c,$(wildcard coordinator/host/standalone/*.c))
main_src := $(wildcard hkd/main.c hkctl/main.c \
	coordinator/host/standalone/main.c)
flux_src := $(wildcard coordinator/host/flux/*.c)

unit_src := $(wildcard tests/unit/test_*.c)
unit_help_src := $(filter-out $(unit_src),$(wildcard tests/unit/*.c))
sim_src := $(wildcard tests/sim/*.c)
tools_src := $(wildcard tests/tools/*.c)
bench_help_src := $(wildcard tests/bench/common*.c)
bench_src := $(filter-out $(bench_help_src),$(wildcard tests/bench/*.c))

product_src := $(proto_src) $(hkd_src) $(hkctl_src) $(coordinator_src) \
	$(main_src) $(if $(HAVE_FLUX),$(flux_src))
test_src := $(unit_src) $(unit_help_src) $(sim_src) $(bench_src) \
	$(bench_help_src) $(tools_src)
all_src := $(product_src) $(test_src)
man_src := $(wildcard */*.[1-8].scd)

obj = $(patsubst %.c,$(O)/%.o,$(1))

libs := $(O)/libhkctl.a $(O)/libhkd.a $(O)/libhk-coordinator.a \
	$(O)/libhk-proto.a
progs := $(if $(wildcard hkd/main.c),$(O)/hkd/hkd) \
	$(if $(wildcard hkctl/main.c),$(O)/hkctl/hkctl) \
	$(if $(wildcard coordinator/host/standalone/main.c), \
		$(O)/coordinator/hk-coordinator)
plugin := $(if $(HAVE_FLUX),$(if $(flux_src),$(O)/coordinator/hk-coordinator.so))
man_pages := $(foreach m,$(man_src),$(O)/man/$(notdir $(m:.scd=)))
unit_progs := $(patsubst %.c,$(O)/%,$(unit_src))
sim_prog := $(if $(sim_src),$(O)/tests/sim/sim)
bench_progs := $(patsubst %.c,$(O)/%,$(bench_src))
tools_progs := $(patsubst %.c,$(O)/%,$(tools_src))

# ---- build ---------------------------------------------------------------------

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all man tests benches deps demo demo-run check check-run \
	check-programs list-programs bench bench-flux lint lint-format lint-tidy \
	lint-cppcheck lint-shell format install clean FORCE

all: $(libs) $(progs) $(plugin) man
man: $(man_pages)
tests: $(unit_progs) $(sim_prog) $(tools_progs)

# Objects follow a change of flags, libraries a change of their list of files.
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(CC) $(all_cflags) $(all_ldflags))' | \
		cmp -s - $@ || \
		echo '$(subst ','\'',$(CC) $(all_cflags) $(all_ldflags))' >$@
$(O)/%.list: FORCE
	@mkdir -p $(@D)
	@echo '$(sort $(filter %.c,$^))' | cmp -s - $@ || echo '$(sort $(filter %.c,$^))' >$@
$(O)/libhk-proto.a.list: $(proto_src)
$(O)/libhkd.a.list: $(hkd_src)
$(O)/libhkctl.a.list: $(hkctl_src)
$(O)/libhk-coordinator.a.list: $(coordinator_src)

$(call obj,$(flux_src)): private HK_CPPFLAGS += $(FLUX_CFLAGS)
$(O)/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(all_cflags) -MMD -MP -c -o $@ $<

$(O)/libhk-proto.a: $(call obj,$(proto_src))
$(O)/libhkd.a: $(call obj,$(hkd_src))
$(O)/libhkctl.a: $(call obj,$(hkctl_src))
$(O)/libhk-coordinator.a: $(call obj,$(coordinator_src))
$(libs): %.a: %.a.list
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

link = $(CC) $(all_ldflags) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
	$(LINK_LIBS) $(PKG_LIBS) -lm
proto_lib := $(O)/libhk-proto.a
$(O)/hkd/hkd: $(O)/hkd/main.o $(O)/libhkd.a $(proto_lib)
	$(Q)$(link)
$(O)/hkctl/hkctl: $(O)/hkctl/main.o $(O)/libhkctl.a $(proto_lib)
	$(Q)$(link)
$(O)/coordinator/hk-coordinator: $(O)/coordinator/host/standalone/main.o \
		$(O)/libhk-coordinator.a $(proto_lib)
	$(Q)$(link)
# flux_jobtap_* live in job-manager's module: undefined symbols are meant
$(O)/coordinator/hk-coordinator.so: LINK_LIBS = $(FLUX_LIBS)
$(O)/coordinator/hk-coordinator.so: $(call obj,$(flux_src)) \
		$(O)/libhk-coordinator.a $(proto_lib)
	$(Q)$(link) -shared \
	  -Wl,--version-script=coordinator/host/flux/hk-coordinator.map

$(O)/tests/%: LINK_LIBS = -lcmocka
# tests/unit/alloc.c makes allocations of our objects fail
$(unit_progs): LINK_LIBS = -lcmocka \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup
$(unit_progs): $(O)/tests/unit/%: $(O)/tests/unit/%.o \
		$(call obj,$(unit_help_src)) $(libs)
	$(Q)$(link)
$(O)/tests/sim/sim: $(call obj,$(sim_src)) $(libs)
	$(Q)$(link)
$(tools_progs): $(O)/tests/tools/%: $(O)/tests/tools/%.o $(libs)
	$(Q)$(link)
$(bench_progs): $(O)/tests/bench/%: $(O)/tests/bench/%.o \
		$(call obj,$(bench_help_src)) $(libs)
	$(Q)$(link)

define man_rule
$(O)/man/$(notdir $(1:.scd=)): $(1)
	@mkdir -p $$(@D)
	$$(Q)scdoc <$$< >$$@
endef
$(foreach m,$(man_src),$(eval $(call man_rule,$(m))))

-include $(patsubst %.c,$(O)/%.d,$(all_src))

# ---- what a run needs ------------------------------------------------------------

# debian/control is the only list. dpkg-checkbuilddeps comes with
# build-essential, which build-dep installs; before that there is all to do.
export DEBIAN_FRONTEND := noninteractive
build_dep := apt-get build-dep -y --no-install-recommends ./
deps:
	@if ! dpkg-checkbuilddeps >/dev/null 2>&1; then \
	  $(build_dep) || { apt-get update && $(build_dep); }; \
	fi

# The packages that deps brings are asked about when make reads this file:
# what needs them runs in a make of its own.
demo: deps
	+@$(MAKE) --no-print-directory demo-run
demo-run: all
	HK_BUILD=$(abspath $(O)) tests/demo/demo

check: deps
	+@$(MAKE) --no-print-directory check-run

# One report: each test is a program that speaks TAP. prove runs one after the
# other, so a cluster test has the machine for itself.
bats_files := $(sort $(wildcard tests/*/*.bats))
TESTS ?= $(unit_progs) $(sim_prog) $(bats_files)
PROVE ?= prove --timer
run_tests = HK_BUILD=$(abspath $(O)) HK_SAN=$(SAN) \
	CMOCKA_MESSAGE_OUTPUT=TAP $(PROVE) -e '$(WRAPPER)'
check-run: all tests
	$(run_tests) $(TESTS)

# the C programs alone: quick, and for sanitizers and valgrind (WRAPPER)
PROGRAMS ?= $(unit_progs) $(sim_prog)
check-programs: $(PROGRAMS)
	$(run_tests) $^
list-programs:
	@printf '%s\n' $(PROGRAMS)

benches: $(bench_progs)
bench: all benches
	@for b in $(bench_progs); do \
	  HK_BUILD=$(abspath $(O)) $$b || exit 1; \
	done
# beside flux-core's own housekeeping; a line where there is no flux-core
bench-flux: all benches
	@HK_BUILD=$(abspath $(O)) tests/bench/flux

# ---- lint ------------------------------------------------------------------------

c_files := $(sort $(product_src) $(test_src) $(flux_src) \
	$(wildcard proto/*.h hkd/*.h hkctl/*.h coordinator/*/*.h \
	coordinator/host/*/*.h tests/*/*.h))
# whatever names a shell or bats in its first line, and the sourced parts
sh_files = $(sort $(wildcard tests/*/lib/*.sh) $(shell find .ci tests -type f \
	-exec awk 'FNR == 1 { if (/^\#!.*(sh|bats)/) print FILENAME; nextfile }' \
	{} +))

lint: lint-format lint-tidy lint-cppcheck lint-shell
lint-format:
	clang-format --dry-run -Werror $(c_files)
format:
	clang-format -i $(c_files)

# after the object, whose dependencies name the headers
lint-tidy: $(patsubst %.c,$(O)/%.tidy,$(all_src))
$(O)/%.tidy: %.c $(O)/%.o .clang-tidy
	$(Q)clang-tidy --quiet $< -- $(HK_CPPFLAGS) $(CPPFLAGS) -std=c17 2>$@.log || \
		{ cat $@.log; exit 1; }
	@touch $@

lint-cppcheck:
	@mkdir -p $(O)/cppcheck
	cppcheck --quiet --std=c11 --enable=warning,performance,portability \
	  --inline-suppr --suppress=missingInclude --error-exitcode=1 \
	  --cppcheck-build-dir=$(O)/cppcheck -D_GNU_SOURCE \
	  -DHK_VERSION='"$(VERSION)"' -I. $(filter %.c,$(c_files))
lint-shell:
	shellcheck -x $(sh_files)

# ---- install ---------------------------------------------------------------------

doc_dir := $(PREFIX)/share/doc/flux-hk
unit_dir := $(PREFIX)/lib/systemd/system
install: all
	@for f in hkd/hkd coordinator/hk-coordinator; do \
	  test ! -e $(O)/$$f || \
	    install -D -t $(DESTDIR)$(PREFIX)/sbin $(O)/$$f || exit 1; \
	done
	@test ! -e $(O)/hkctl/hkctl || \
	  install -D -t $(DESTDIR)$(PREFIX)/bin $(O)/hkctl/hkctl
	@test -z "$(plugin)" || install -D -m 644 -t \
	  $(DESTDIR)$(PREFIX)/lib/flux/job-manager/plugins $(plugin)
	install -D -m 644 -t $(DESTDIR)$(unit_dir) \
	  $(wildcard systemd/*.service systemd/*.slice)
	sed -i 's,/usr/sbin/,$(PREFIX)/sbin/,' \
	  $(DESTDIR)$(unit_dir)/flux-hk*.service
	install -D -m 644 systemd/tmpfiles.conf \
	  $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/flux-hk.conf
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/firewalld/services \
	  systemd/flux-hk.xml
	@test ! -e systemd/hk.conf || \
	  install -D -m 644 -t $(DESTDIR)$(doc_dir) systemd/hk.conf
	@for m in $(man_pages); do \
	  install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$${m##*.} $$m || \
	    exit 1; \
	done

clean:
	rm -rf $(O)
