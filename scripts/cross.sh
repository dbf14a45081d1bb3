# cross.sh - what build-musl, build-android and build-web share; sourced by them after common.sh. They set `sources` (of fetch-sources)
# and, for each machine, `out` (a folder in build/), `prefix` (where the libraries go) and `toolchain` (cmake's arguments).
# shellcheck shell=sh disable=SC2154

# zig_tools ZIG OPTION...: the commands that cmake/musl.cmake and cmake/wasm.cmake name, in $out/tools; the options are the compiler's.
zig_tools() {
    zig_path=$1
    shift
    mkdir -p "$out/tools"
    for tool in ar ranlib "cc $*"; do
        printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig_path" "$tool" >"$out/tools/${tool%% *}"
        chmod +x "$out/tools/${tool%% *}"
    done
}

# cmake_build SOURCE NAME [OPTION...]: configures and builds $targets in $out/NAME; quiet unless it fails.
cmake_build() {
    source=$1 folder=$out/$2
    shift 2
    # shellcheck disable=SC2086
    {
        cmake -S "$source" -B "$folder" -G Ninja $toolchain -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
            -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
            -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@" &&
            cmake --build "$folder" --target $targets
    } >"$folder.log" 2>&1 || {
        grep -E -A 8 'error|FAILED|CMake Error' "$folder.log" | head -n 60 >&2
        fail "the build failed (all of its output is in $folder.log)"
    }
}

# libraries STAMP: jansson, PCRE2 and utf8proc in $prefix, unless those of that stamp are there.
libraries() {
    stamp=$(cat "$root/scripts/sources.sha256" "$root/scripts/cross.sh" | sha256sum)$1
    [ "$(cat "$prefix/.complete" 2>/dev/null)" = "$stamp" ] && return
    say "building jansson, PCRE2 and utf8proc in $out"
    rm -rf "$prefix"
    targets=all
    cmake_build "$sources/jansson" jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
    # No JIT: it needs pages that can be written and executed, and the patterns here are short.
    cmake_build "$sources/pcre2" pcre2 -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF
    cmake_build "$sources/utf8proc" utf8proc
    for library in jansson pcre2 utf8proc; do
        cmake --install "$out/$library" >>"$out/$library.log" 2>&1 || fail "installing $library failed, see $out/$library.log"
    done
    echo "$stamp" >"$prefix/.complete"
}

# mica_build TARGETS [OPTION...]: in $out/mica, with those libraries.
mica_build() {
    targets=$1
    shift
    say "building mica in $out"
    PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig
    export PKG_CONFIG_LIBDIR
    cmake_build "$root" mica -DMICA_TESTS=OFF -DMICA_SERVER=OFF -DMICA_ROUTER=OFF -DMICA_OPS=OFF \
        -DMICA_WERROR=OFF "$@" # these compilers are newer than the code
}
