"""A page of Markdown, read for what can be checked: fences with their language and marks, links, code between backticks, comments to the checker."""
import re
import shlex

FENCE = re.compile(r"^(\s*)```(.*)$")
COMMENT = re.compile(r"^<!--\s*check:\s*(.*?)\s*-->\s*$")


class Fence:
    """A fence of a page. `language` is the first word behind the backticks; then come marks, and behind "notest:" why nobody runs it here."""

    def __init__(self, line, info, lines):
        self.line, self.lines = line, lines
        info, _, reason = info.partition("notest:")
        self.notest = reason.strip() if _ else None
        words = info.split()
        self.language = words[0] if words else ""
        self.marks = dict((word.split("=", 1) + [""])[:2] for word in words[1:])

    def steps(self):
        """(line, command, lines that it prints): of console what stands behind "$ ", of sh every command."""
        if self.language == "console":
            return self._of_console()
        return [(line, command, []) for line, command in commands(self.lines, self.line + 1)]

    def _of_console(self):
        steps = []
        at = 0
        while at < len(self.lines):
            text = self.lines[at]
            if text.startswith("$ "):
                first, command = self.line + 1 + at, text[2:]
                while unfinished(command) and at + 1 < len(self.lines):
                    at += 1
                    command += "\n" + re.sub(r"^> ", "", self.lines[at])
                steps.append((first, command, []))
            elif steps:
                steps[-1][2].append(text)
            at += 1
        return steps


class Page:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        self.items = []  # Fences, and (line, text) of comments to the checker, in their order.
        self.prose = []  # (line, text) outside of fences.
        at = 0
        while at < len(self.lines):
            fence, comment = FENCE.match(self.lines[at]), COMMENT.match(self.lines[at])
            if fence:
                first = at
                at += 1
                body = []
                while at < len(self.lines) and not FENCE.match(self.lines[at]):
                    body.append(self.lines[at].removeprefix(fence.group(1)))
                    at += 1
                self.items.append(Fence(first + 1, fence.group(2).strip(), body))
            elif comment:
                self.items.append((at + 1, comment.group(1)))
            else:
                self.prose.append((at + 1, self.lines[at]))
            at += 1

    def fences(self):
        return [item for item in self.items if isinstance(item, Fence)]

    def spans(self):
        """(line, text) of code between backticks."""
        for line, text in self.prose:
            for span in re.findall(r"`([^`]+)`", text):
                yield line, span


def unfinished(command):
    """Whether a command goes on in the next line: a backslash at its end, a here-document or a quote that is open."""
    last = command.split("\n")[-1]
    if last.endswith("\\"):
        return True
    here = re.search(r"<<-?\s*['\"]?(\w+)['\"]?", command.split("\n")[0])
    if here:
        return "\n" not in command or last.strip() != here.group(1)
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return False


def commands(lines, first):
    """(line, command) of a script's lines: comments and empty lines left out, continued ones put together."""
    at = 0
    while at < len(lines):
        start, command = at, lines[at]
        while unfinished(command) and at + 1 < len(lines):
            at += 1
            command += "\n" + lines[at]
        if command.strip() and not command.lstrip().startswith("#"):
            yield first + start, command
        at += 1
