# common.sh - what demo, test and fuzz share; sourced by them. They set `me` (the script's name, for messages) before.
# shellcheck shell=sh disable=SC2034

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
packages="gcc libc6-dev cmake ninja-build pkg-config ccache libjansson-dev libpcre2-dev libutf8proc-dev libedit-dev libcmocka-dev
libevent-dev libsqlite3-dev libzstd-dev libsodium-dev libnats-dev libpq-dev libcurl4-openssl-dev python3 python3-pip
python3-jinja2 python3-jsonschema"

say() { echo "$me: $*" >&2; }

fail() {
    say "$*"
    exit 1
}

# The packages of "$@" that are not installed.
missing_packages() {
    for package in "$@"; do
        dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || printf '%s ' "$package"
    done
}

# What the tests of OpenAI clients, of the page, of many machines, of signatures and of the headers need, and scripts/lint cppcheck. A command
# that is there is taken, whatever package it came from; libatomic1 is for Playwright's driver.
client_packages() {
    printf 'libatomic1 '
    for pair in chromium:chromium node:nodejs npm:npm nats-server:nats-server minisign:minisign prometheus:prometheus zsh:zsh fish:fish \
        mvn:maven javac:default-jdk-headless g++:g++ clang:clang abidiff:abigail-tools cppcheck:cppcheck; do
        command -v "${pair%:*}" >/dev/null 2>&1 || printf '%s ' "${pair#*:}"
    done
}

# Installs the packages that are missing, as root or through sudo that asks for no password; else says what to type.
install_packages() {
    if ! command -v dpkg-query >/dev/null 2>&1; then
        say "no Debian package system here; these are needed under the names that your system has for them: $*"
        return
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" = 0 ]; then
        as_root="env"
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root="sudo"
    else
        say "packages are missing; install them and run this again:"
        echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing"
        exit 1
    fi
    say "installing $missing"
    # shellcheck disable=SC2086
    { $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends $missing; } >"$root/build/apt.log" 2>&1 || {
        tail -n 20 "$root/build/apt.log" >&2
        fail "apt-get failed (its output is in build/apt.log)"
    }
}

# build PRESET [TARGET...]: configures and builds; quiet unless it fails.
build() {
    preset=$1
    shift
    log=$root/build/$preset.log
    say "building build/$preset"
    (
        cd "$root"
        cmake --preset "$preset" || exit 1
        if [ $# -gt 0 ]; then cmake --build --preset "$preset" --target "$@"; else cmake --build --preset "$preset"; fi
    ) >"$log" 2>&1 || {
        grep -E -A 8 'error|FAILED|CMake Error' "$log" | head -n 60 >&2
        fail "the build failed (all of its output is in build/$preset.log)"
    }
}

mkdir -p "$root/build"
