#!/bin/sh
# Starts pgbouncer with the application role's password from the environment.
set -eu
umask 077
users=${PGBOUNCER_USERS:-/tmp/pgbouncer.users} # as auth_file in pgbouncer.ini
printf '"cofire_app" "%s"\n' "$(printf %s "$COFIRE_APP_PASSWORD" | sed 's/"/""/g')" > "$users"
exec pgbouncer "${1:-/etc/cofire/pgbouncer.ini}"
