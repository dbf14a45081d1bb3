# maven.sh - what test-kotlin and test-compose share; sourced by them after common.sh.
# shellcheck shell=sh disable=SC2154
#
# What Maven downloads stays in its own repository (~/.m2, or MICA_MAVEN_REPOSITORY); when it is all there, nothing is asked for any more.

# native_library [FILE]: the absolute path of libmica_jni.so, default that of build/release.
native_library() {
    file=${1:-$root/build/release/bindings/kotlin/libmica_jni.so}
    [ -e "$file" ] || fail "there is no $file: build the target mica_jni"
    echo "$(CDPATH='' cd -- "$(dirname -- "$file")" && pwd)/$(basename -- "$file")"
}

# target_folder FOLDER: makes it; its absolute path.
target_folder() {
    mkdir -p "$1"
    (CDPATH='' cd -- "$1" && pwd)
}

need_maven() {
    command -v mvn >/dev/null 2>&1 && command -v javac >/dev/null 2>&1 || {
        say "skipped: no Maven or no JDK here (Debian: maven, default-jdk-headless)"
        exit 77
    }
}

# maven LOG ARGUMENT...: first without the network; its output is kept in LOG. Ends the script with 77 if something cannot be had.
maven() {
    log=$1
    shift
    lacking='could not be resolved|Could not (transfer|find|resolve) artifact|Plugin .* or one of its dependencies|offline mode'
    for network in -o ''; do
        status=0
        mvn -B -ntp ${network:+"$network"} ${MICA_MAVEN_REPOSITORY:+"-Dmaven.repo.local=$MICA_MAVEN_REPOSITORY"} "$@" >"$log" 2>&1 ||
            status=$?
        if [ $status -eq 0 ] || ! grep -qE "$lacking" "$log"; then return $status; fi
    done
    grep -m 1 -E "$lacking" "$log" >&2
    say "skipped: what Maven needs is not here and cannot be downloaded"
    exit 77
}

# show_tests LOG STATUS: one line for each class of tests; ends the script if they failed.
show_tests() {
    grep -E '^\[(INFO|ERROR|WARNING)\] .*(Tests run|<<< (FAILURE|ERROR))' "$1" || true
    if [ "$2" -ne 0 ]; then
        grep -E '^\[ERROR\]' "$1" | head -n 40 >&2
        fail "failed (all of the output is in $1)"
    fi
}
