#!/bin/sh
# make_tls.sh - makes the certificates here again: two authorities, a server's certificate for localhost and one for another name.
# They are for tests only; the keys are public. Valid for a hundred years, so that no test fails because of the day.
set -eu
cd "$(dirname -- "$0")"

# authority NAME
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj "/CN=mica test $1" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign -keyout "$1.key" -out "$1.pem" 2>/dev/null
}

# server NAME SUBJECT-ALTERNATIVE-NAMES: signed by ca
server() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2>/dev/null
    printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$2" >"$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 36500 -extfile "$1.ext" -out "$1.pem" 2>/dev/null
    rm "$1.csr" "$1.ext"
}

authority ca
authority other-ca
server server DNS:localhost,IP:127.0.0.1
server wrong-name DNS:elsewhere.example
rm -f ca.srl ca.key other-ca.key
