#!/bin/sh
# Restarts dlo after an upgrade, if it runs. It does not start dlo, which first needs a broker.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart dlo.service
fi
