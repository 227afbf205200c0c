#!/bin/sh
# Chromium for the page tests, where this user may install packages; without it those tests are skipped and say so.
command -v chromium >/dev/null 2>&1 && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || exit 0
apt-get update -qq >/dev/null 2>&1
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null 2>&1
exit 0
