#!/bin/sh
# What a superuser of PostgreSQL prepares once (`cofire db upgrade --print-setup` prints the same):
# the role that owns the tables, the role that programs open them with, and the database.
set -eu
psql --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
    --set owner_password="$COFIRE_OWNER_PASSWORD" --set app_password="$COFIRE_APP_PASSWORD" <<'SQL'
CREATE ROLE cofire_owner LOGIN PASSWORD :'owner_password' NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
CREATE ROLE cofire_app LOGIN PASSWORD :'app_password' NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
CREATE DATABASE cofire OWNER cofire_owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE cofire FROM PUBLIC;
GRANT CONNECT ON DATABASE cofire TO cofire_owner, cofire_app;
\connect cofire
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;
SQL
