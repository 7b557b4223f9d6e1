"""The refusals of the command line.

They belong to the tree at the top of `errors.py`.
"""

from collections.abc import Sequence

from foretell.domain.errors.families import (
    Conflict,
    ForetellError,
    InvalidInput,
    NotFound,
    Unavailable,
    Upstream,
)


class MissingKey(Unavailable):
    """A key that the installation needs is not there, or cannot be used."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"FORETELL_{name.upper()} {why}", setting=name)


class PortTaken(Unavailable):
    """Another program listens on a port that is needed."""

    def __init__(self, host: str, port: int, setting: str) -> None:
        super().__init__(
            f"{host}:{port} is taken by another program; choose another with {setting}",
            setting=setting,
        )


class CannotListen(Unavailable):
    """An address is not one that this process may listen on."""

    def __init__(self, host: str, port: int, setting: str, cause: str) -> None:
        super().__init__(
            f"cannot listen on {host}:{port}: {cause}; look at FORETELL_HOST and {setting}",
            setting=setting,
        )


class PartEnded(Unavailable):
    """A part that must not end has ended."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the {name} ended by itself", part=name)


class ChildRefused(Unavailable):
    """A process that was to be kept running refuses to run, and would refuse again."""

    def __init__(self, name: str, exit_code: int) -> None:
        super().__init__(
            f"the {name} process refuses to run (exit code {exit_code}); its error is printed above",
            process=name,
            exit_code=exit_code,
        )


class ApiRefused(Upstream):
    """An API of ours refused what a command asked of it."""

    def __init__(self, what: str, status: int, body: str) -> None:
        super().__init__(f"{what} answered {status}: {body[:2000]}", status=status)


class ApiUnreachable(Upstream):
    """An API of ours does not answer."""

    definite = False

    def __init__(self, url: str, cause: str) -> None:
        super().__init__(f"{url} does not answer ({cause}); is it running? try: foretell up")


class NotInTime(Upstream):
    """Something that was waited for did not happen in time."""

    definite = False

    def __init__(self, what: str, deadline_s: float) -> None:
        super().__init__(f"waited {deadline_s:g} s for {what}")


class NotRunning(Unavailable):
    """Nothing runs on a data folder."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"nothing runs on {folder}; start it with: foretell up")


class NoJournal(NotFound):
    """There is no journal where one was looked for."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"there is no journal in {folder}")


class BeginningGone(Conflict):
    """Everything would be made anew from a journal that has let go of its beginning."""

    def __init__(self, journal: str, first_sequence: int) -> None:
        super().__init__(
            f"the journal {journal} begins with sequence {first_sequence}: what came before it is not kept"
            " any more, so nothing can be made anew from it"
        )


class DemoMismatch(ForetellError):
    """The demo saw something else than the story says."""

    def __init__(self, what: str, seen: object, wanted: object) -> None:
        super().__init__(f"{what} is {seen!r}, and the story says {wanted!r}")


class MissingSetting(Unavailable):
    """A command needs a setting that is not there."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"FORETELL_{name.upper()} is not set: {why}", setting=name)


class UnknownSetting(InvalidInput):
    """The environment holds what looks like a setting and is none."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"{', '.join(names)}: no such setting; see docs/reference/settings.md")


class UnknownRole(InvalidInput):
    """No process does what was asked for."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"{name} is not a role; roles are {', '.join(known)}")


class WorkersUnfit(InvalidInput):
    """Several workers were asked for roles other than trading."""

    def __init__(self, roles: Sequence[str]) -> None:
        named = ", ".join(roles) or "none"
        super().__init__(f"--workers needs the one role trading; the roles named are: {named}")


class Ailing(Unavailable):
    """The doctor found something that is not well."""

    def __init__(self, what: Sequence[str]) -> None:
        super().__init__(f"not well: {', '.join(what)}")


class BenchFailed(ForetellError):
    """A benchmark could not be run to its end."""


class SocketsUnsafe(Unavailable):
    """The folder where engines listen belongs to somebody else, or others may enter it."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder} is not this user's alone; remove it, or set TMPDIR")
