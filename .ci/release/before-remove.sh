#!/bin/sh
# Stops dlo before it is removed: dpkg says "remove", and rpm says 0 copies are left.
set -e
if [ -d /run/systemd/system ] && { [ "$1" = remove ] || [ "$1" = 0 ]; }; then
	systemctl disable --now dlo.service
fi
