"""Refusals of the command line.

Their place in the tree of refusals: see `families`.
"""

from collections.abc import Sequence

from foretell.domain.errors.families import (
    Conflict,
    ForetellError,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unavailable,
    Upstream,
)


class MissingKey(Unavailable):
    """A key that the installation needs is missing or unusable."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"FORETELL_{name.upper()} {why}", setting=name)


class ForeignChain(Conflict):
    """The orders of the journal or the tables are of another chain than the node serves."""

    def __init__(self, folder: str, kept: str, seen: str) -> None:
        super().__init__(
            f"the orders in {folder} are of {kept}, and the node serves {seen}: they cannot be settled"
            " there; use the node or the data folder that belong together, or another folder with --data",
            kept=kept,
            seen=seen,
        )


class PortTaken(Unavailable):
    """Another program listens on a port that this one needs."""

    def __init__(self, host: str, port: int, setting: str) -> None:
        super().__init__(
            f"{host}:{port} is taken by another program; choose another with {setting}",
            setting=setting,
        )


class CannotListen(Unavailable):
    """The operating system does not let the process listen on the address."""

    def __init__(self, host: str, port: int, setting: str, cause: str) -> None:
        super().__init__(
            f"cannot listen on {host}:{port}: {cause}; check FORETELL_HOST and {setting}",
            setting=setting,
        )


class ComponentStopped(Unavailable):
    """A part of the installation that runs until shutdown has ended."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the {name} stopped unexpectedly; the log has the cause", part=name)


class ChildRefused(Unavailable):
    """A process that was to be kept running refuses to run, and would refuse again."""

    def __init__(self, name: str, exit_code: int) -> None:
        super().__init__(
            f"the {name} process refuses to run (exit code {exit_code}); its error is printed above",
            process=name,
            exit_code=exit_code,
        )


class ApiRefused(Upstream):
    """An API of the installation refused a command's request; `body` is its answer."""

    def __init__(self, what: str, status: int, body: str) -> None:
        super().__init__(f"{what} answered {status}: {body[:2000]}", status=status)
        self.status = status
        self.body = body


class ApiUnreachable(Upstream):
    """An API of the installation does not answer."""

    definite = False

    def __init__(self, url: str, cause: str) -> None:
        super().__init__(f"{url} does not answer ({cause}); is it running? try: foretell up")


class KeyFileDamaged(Conflict):
    """A key file is no key file, or its contents changed."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(
            f"the key file {file} cannot be used: {what}; restore a copy of it, or create or derive the key"
            " again",
            file=file,
        )


class KeystoreDamaged(Conflict):
    """A keystore file cannot be read, or asks for too much memory."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"the keystore {file} cannot be used: {what}", file=file)


class WrongKeystorePassword(Unauthenticated):
    """The password does not open a keystore file."""

    def __init__(self, file: str) -> None:
        super().__init__(f"the password does not open the keystore {file}")


class SignerRefused(Upstream):
    """A remote signer gave no signature, or one that is not the account's over what was asked."""

    def __init__(self, account: str, why: str) -> None:
        super().__init__(f"the signer of {account} gave no valid signature: {why}", account=account)


class NoNode(Unavailable):
    """A client that was given no node is to send a transaction."""

    def __init__(self) -> None:
        super().__init__(
            "the address of a node is needed to send a transaction: name it with --rpc"
        )


class CommandRefused(Upstream):
    """An API refused what a client command asked for: its code, its cause, and what to do."""

    def __init__(self, code: str, cause: str, cure: str) -> None:
        named = f"{cause} ({code})" if code else cause
        super().__init__(f"{named}; {cure}" if cure else named, api_code=code)


class NoSigner(Unavailable):
    """A command that signs was given no key."""

    def __init__(self) -> None:
        super().__init__("no key is named: use --key-file, or --signer with --address")


class StructNotAccepted(InvalidInput):
    """An order was to be signed by a version of the struct that the exchange or the wallet lacks."""

    def __init__(self, version: int, accepted: Sequence[int]) -> None:
        known = ", ".join(map(str, accepted)) or "none that this client signs"
        super().__init__(f"order struct version {version} is not accepted here; accepted: {known}")


class BuilderNotSigned(InvalidInput):
    """An order names a builder or has metadata, which only version 2 of the struct signs, and that cannot be used."""

    def __init__(self, why: str) -> None:
        super().__init__(f"version 2 of the order struct signs builder and metadata, and {why}")


class NoSuchWallet(NotFound):
    """The installation has no wallet of a kind."""

    def __init__(self, kind: str, kinds: Sequence[str]) -> None:
        super().__init__(
            f"this installation has no wallet of kind {kind}; it has {', '.join(kinds)}"
        )


class OrderNotPlaced(Conflict):
    """An order was refused; the message is the server's."""


class StreamLost(Upstream):
    """A stream could not be opened again."""

    definite = False

    def __init__(self, url: str, cause: str) -> None:
        super().__init__(f"the stream {url} is lost ({cause}): is it running?")


class MarketUnknown(NotFound):
    """A command names a market or an outcome that does not exist."""


class NotDirectlyResolved(Conflict):
    """A market's question is not one of the direct stack."""

    def __init__(self, condition_id: str) -> None:
        super().__init__(
            f"the market {condition_id} is not resolved directly: its question is at another oracle",
            condition_id=condition_id,
        )


class NotOptimistic(Conflict):
    """A market's question is not one of the optimistic stack."""

    def __init__(self, condition_id: str) -> None:
        super().__init__(
            f"the market {condition_id} is resolved directly: its proposer's answer is final, and takes no"
            " bond or dispute",
            condition_id=condition_id,
        )


class QuestionUnknown(NotFound):
    """No resolution stack of the installation was asked the question of a market."""

    def __init__(self, condition_id: str) -> None:
        super().__init__(
            f"no oracle of this installation was asked the question of the market {condition_id}"
        )


class OtherAnswer(Conflict):
    """Another answer than the wanted one is proposed."""

    def __init__(self, market: str, proposed: str) -> None:
        super().__init__(
            f"the proposed answer of {market} is {proposed}; if it is wrong, dispute it with:"
            f" foretell market dispute {market}"
        )


class QuestionAskedAgain(Conflict):
    """A proposed answer was disputed while somebody waited for it."""

    def __init__(self, market: str) -> None:
        super().__init__(
            f"the proposed answer of {market} was disputed, and the question is asked again;"
            " run the command again to propose it once more"
        )


class ArbiterDecides(Conflict):
    """A question was disputed twice."""

    def __init__(self, market: str) -> None:
        super().__init__(
            f"the answer of {market} was disputed twice: its arbiter decides within a week;"
            " run the command again then"
        )


class OtherArbiter(Conflict):
    """Somebody else than the oracle's arbiter decides a question."""

    def __init__(self, arbiter: str, account: str) -> None:
        super().__init__(f"the arbiter of the oracle is {arbiter}, and the account is {account}")


class NothingToArbitrate(Conflict):
    """A question is decided that was not disputed twice."""

    def __init__(self, condition_id: str) -> None:
        super().__init__(
            f"the answer of the market {condition_id} was not disputed twice, or is decided already",
            condition_id=condition_id,
        )


class NoWhitelist(NotFound):
    """A creator has registered no whitelist."""

    def __init__(self, creator: str) -> None:
        super().__init__(f"{creator} has no whitelist; make one with: foretell whitelist create")


class UnfinishedCreation(Conflict):
    """A folder has the notes of another payload's creation."""

    def __init__(self, folder: str, payload_hash: str) -> None:
        super().__init__(
            f"{folder} has the notes of a creation with payload {payload_hash}; finish it, or use another"
            " folder",
            payload_hash=payload_hash,
        )


class CreationEnded(Upstream):
    """A creation request failed; its cause is the worker's."""

    def __init__(self, request_id: str, cause: str) -> None:
        super().__init__(f"request {request_id} failed: {cause}", request_id=request_id)


class WrongKeyFilePassphrase(Unauthenticated):
    """The passphrase does not open a key file."""

    def __init__(self, key_id: str) -> None:
        super().__init__(f"the passphrase does not open the key file of API key {key_id}")


class NotInTime(Upstream):
    """A condition was not met within its time limit."""

    definite = False

    def __init__(self, what: str, deadline_s: float) -> None:
        super().__init__(f"timed out after {deadline_s:g} s waiting for {what}")


class NotRunning(Unavailable):
    """No installation runs on a data folder."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"no exchange runs on {folder}; start one with: foretell up")


class NoJournal(NotFound):
    """A folder holds no journal."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"there is no journal in {folder}; name the folder with --data")


class JournalTruncated(Conflict):
    """A rebuild needs the whole journal, and its beginning was deleted."""

    def __init__(self, journal: str, first_sequence: int) -> None:
        super().__init__(
            f"the journal {journal} begins with sequence {first_sequence}: earlier commands were deleted,"
            " so the tables cannot be rebuilt from it"
        )


class DemoMismatch(ForetellError):
    """The demo observed another value than the expected one."""

    def __init__(self, what: str, seen: object, wanted: object) -> None:
        super().__init__(f"{what} is {seen!r}, and the demo expects {wanted!r}")


class WebBuildTooLarge(ForetellError):
    """The folder of the built web app has more than is held in memory."""

    def __init__(self, size: int, bytes_max: int) -> None:
        super().__init__(
            f"the built web app has {size} bytes, and at most {bytes_max} are served; build it again:"
            " make run"
        )


class MissingSetting(Unavailable):
    """A command needs a setting that is not set."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"FORETELL_{name.upper()} is not set: {why}", setting=name)


class UnknownSetting(InvalidInput):
    """The environment has a variable with the prefix of settings that is no setting."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"unknown settings: {', '.join(names)}; docs/reference/settings.md lists all"
        )


class UnknownRole(InvalidInput):
    """A role is unknown."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"{name} is not a role; roles are {', '.join(known)}")


class InvalidWorkerRoles(InvalidInput):
    """Several workers were asked for roles other than trading."""

    def __init__(self, roles: Sequence[str]) -> None:
        named = ", ".join(roles) or "none"
        super().__init__(f"--workers needs the one role trading; the roles named are: {named}")


class ProblemsFound(Unavailable):
    """The doctor found problems."""

    def __init__(self, what: Sequence[str]) -> None:
        super().__init__(f"problems found: {', '.join(what)}")


class BenchFailed(ForetellError):
    """A benchmark failed before its end."""


class InsecureSocketFolder(Unavailable):
    """The folder of the engine sockets belongs to another user, or others may enter it."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"{folder} must belong to this user, with mode 0700; remove it, or set TMPDIR"
        )
