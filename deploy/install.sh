#!/bin/sh
# Installs Cofire with all that a server needs into a virtual environment of its own.
#
#   sh deploy/install.sh /opt/cofire [SOURCE]
#
# SOURCE is a checkout or a wheel (default: the checkout this script lies in). PYTHON names the
# interpreter (default: python3; 3.11 or newer).
set -eu
prefix=$1
source=${2:-$(cd "$(dirname "$0")/.." && pwd)}
"${PYTHON:-python3}" -m venv "$prefix"
"$prefix/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check \
    "$source[server,postgres,encryption]"
"$prefix/bin/cofire" --version
