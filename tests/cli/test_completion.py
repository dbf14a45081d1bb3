"""What shells complete after "mica": the same commands and options as the help, and shells that are here take it."""
import functools
import re
import shutil
import subprocess

from climica import TestCase, main, mica, write_temporary
import test_usage

commands = functools.lru_cache(maxsize=None)(test_usage.commands)


@functools.lru_cache(maxsize=None)
def options(command):
    """(letter or "", name, what is shown of its value) of each option of a command, from its help."""
    return re.findall(r"^  (?:-(\w), |    )--([a-z0-9-]+)(?: (\S+))?", mica("help", command).text, re.MULTILINE)


def shell(name, *args, script=""):
    if not shutil.which(name):
        return None
    done = subprocess.run([name, *args], input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                          timeout=60)
    return done.returncode, done.stdout


class Completion(TestCase):
    def completion(self, shell_name):
        return self.ok(mica("help", "--completion", "--shell", shell_name)).text

    def test_bash_is_the_default(self):
        self.assertEqual(self.ok(mica("help", "--completion")).text, self.completion("bash"))
        self.fails(mica("help", "--completion", "--shell", "csh"), "csh", "bash|zsh|fish", code=2)

    def test_bash_completes(self):
        """With the functions of the file itself: what it offers for "mica run --te" and "mica ru"."""
        path = write_temporary(self, self.completion("bash"))
        for words, wanted in ((["mica", "run", "--te"], ["--temp"]), (["mica", "ru"], ["run"])):
            done = shell("bash", "--norc", script=f"source {path}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _mica; "
                                                  'echo "${COMPREPLY[@]}"')
            if done is None:
                self.skipTest("no bash here")
            self.assertEqual((done[0], [w for w in done[1].split() if w in wanted]), (0, wanted), done)

    def test_zsh_has_all(self):
        text = self.completion("zsh")
        self.assertTrue(text.startswith("#compdef mica\n"))
        for command in commands():
            block = re.search(rf"^    {re.escape(command)}\) _arguments.*?;;$", text, re.MULTILINE | re.DOTALL)
            self.assertIsNotNone(block, command)
            self.assertEqual(len(re.findall(r"^        '.*\\$", block.group(), re.MULTILINE)), len(options(command)), command)
            for letter, name, value in options(command):
                self.assertRegex(block.group(), rf"--{name}{'=' if value else ''}[}}\[']", command)
                self.assertEqual(bool(letter), f"{{-{letter},--{name}" in block.group(), (command, name))

    def test_zsh_takes_it(self):
        """zsh runs the file with functions of ours in place of those of its completion, which show what they are asked."""
        path = write_temporary(self, self.completion("zsh"))
        show = "_arguments() { shift; print -rl -- \"$@\" }; _describe() { print -rl -- ${(P)4} }; compadd() { : }\n"
        each = "".join(f"words=(mica {command} --x); CURRENT=3; source {path}; print @@\n" for command in commands())
        done = shell("zsh", "-f", script=f"{show}{each}words=(mica r); CURRENT=2; source {path}\n")
        if done is None:
            self.skipTest("no zsh here")
        self.assertEqual(done[0], 0, done)
        *blocks, listed = done[1].split("@@\n")
        self.assertEqual([line.split(":")[0] for line in listed.splitlines()], commands(), done)
        for command, block in zip(commands(), blocks):
            pairs = sum(1 for letter, _, _ in options(command) if letter)  # those with a letter are two arguments
            self.assertEqual(len(block.splitlines()), len(options(command)) + pairs + 1, (command, block))

    def test_fish_has_all(self):
        lines = self.completion("fish").splitlines()
        self.assertEqual([m.group(1) for line in lines for m in [re.search(r"use_subcommand -f -a (\S+) ", line)] if m], commands())
        for command in commands():
            mine = [line for line in lines if re.search(rf"from [^']*(?<![\w-]){re.escape(command)}(?![\w-])", line)]
            self.assertEqual(len(mine), len(options(command)), command)
            for letter, name, value in options(command):
                found = [line for line in mine if f" -l {name} " in line]
                self.assertEqual(len(found), 1, (command, name))
                self.assertEqual((bool(letter), bool(value)), (f" -s {letter} " in found[0] if letter else False,
                                                               bool(re.search(r" -l \S+ (-x|-r)\b", found[0]))), found)

    def test_fish_completes(self):
        path = write_temporary(self, self.completion("fish"), ".fish")
        for line, wanted in (("mica ru", "run"), ("mica run --te", "--temp"), ("mica run --full ", "shift"), ("mica bench --backend ", "npu")):
            done = shell("fish", "--no-config", "-c", f"source {path}; complete -C '{line}'")
            if done is None:
                self.skipTest("no fish here")
            self.assertEqual(done[0], 0, done)
            self.assertIn(wanted, [re.split(r"[\t=]", one)[0] for one in done[1].splitlines()], (line, done))


if __name__ == "__main__":
    main()
