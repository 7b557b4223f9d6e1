from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError
from tests.rigs.in_process import forget_environment

from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.creation.storages import Storage
from foretell.settings import Settings


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_environment(monkeypatch, tmp_path)


def test_the_defaults_are_a_sandbox_in_one_folder() -> None:
    settings = Settings()
    assert settings.is_sandbox
    assert settings.chain_id == SANDBOX_CHAIN_ID
    assert settings.base_url == "http://127.0.0.1:8000"
    assert settings.deployment_file == Path(".foretell/deployment.json")


def test_a_named_node_is_not_a_sandbox() -> None:
    assert not Settings(rpc_url=SecretStr("http://127.0.0.1:1")).is_sandbox


def test_an_argument_is_read_before_the_environment_and_that_before_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "foretell.toml").write_text("port = 1\nchain_port = 1\nconfirmations = 1\n")
    monkeypatch.setenv("FORETELL_PORT", "2")
    monkeypatch.setenv("FORETELL_CHAIN_PORT", "2")
    settings = Settings(port=3)
    assert (settings.port, settings.chain_port, settings.confirmations) == (3, 2, 1)


def test_the_database_is_a_file_of_the_data_folder_by_its_absolute_path(tmp_path: Path) -> None:
    database = Settings(data=Path("kept")).database
    assert database == f"sqlite+aiosqlite:///{tmp_path}/kept/foretell.db"
    named = "postgresql+asyncpg://db.example/foretell"
    assert Settings(database_url=SecretStr(named)).database == named


@pytest.mark.parametrize("url", ["my.db", "sqlite:///my.db", "postgresql://db", "mysql://db"])
def test_a_database_with_another_driver_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="database_url"):
        Settings(database_url=SecretStr(url))


@pytest.mark.parametrize(
    ("host", "public_url", "base_url"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:9000"),
        ("::1", None, "http://[::1]:9000"),
        ("0.0.0.0", "https://api.example/", "https://api.example"),
    ],
)
def test_the_address_for_clients_is_the_public_one(
    host: str, public_url: str | None, base_url: str
) -> None:
    assert Settings(host=host, port=9000, public_url=public_url).base_url == base_url


@pytest.mark.parametrize("text", ["debug", "DEBUG", "Debug"])
def test_a_log_level_is_read_in_any_case(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("FORETELL_LOG_LEVEL", text)
    assert Settings().log_level == "debug"


@pytest.mark.parametrize("text", ["loud", "", "10", "notset"])
def test_an_unknown_log_level_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("FORETELL_LOG_LEVEL", text)
    with pytest.raises(ValidationError, match="log_level"):
        Settings()


def test_a_deployment_may_be_kept_elsewhere() -> None:
    settings = Settings(data=Path("kept"), deployment=Path("elsewhere.json"))
    assert settings.deployment_file == Path("elsewhere.json")


@pytest.mark.parametrize("ticks_per_one", [0, 3, 7, 99, 20_000])
def test_a_price_has_a_finite_decimal(ticks_per_one: int) -> None:
    with pytest.raises(ValidationError, match="must be one of 10, 100, 200, 400, 1000, 10000"):
        Settings(market_ticks_per_one=ticks_per_one)


def test_the_databases_password_is_not_shown() -> None:
    url = "postgresql+asyncpg://foretell:hunter2@db.example/foretell"
    assert "hunter2" not in repr(Settings(database_url=SecretStr(url)))


def test_images_are_served_by_the_same_process_unless_an_address_is_set() -> None:
    assert Settings().blob_base_url == "http://127.0.0.1:8000/create-market"
    assert Settings(blobs_url="https://make.example/").blob_base_url == "https://make.example"


@pytest.mark.parametrize(
    ("url", "kind", "storage"),
    [
        (None, "bundler", Storage.LOCAL),
        (None, "ipfs", Storage.LOCAL),
        ("https://bundler.example/tx", "bundler", Storage.ARWEAVE),
        ("https://ipfs.example", "ipfs", Storage.IPFS),
    ],
)
def test_metadata_is_stored_where_the_settings_say(
    monkeypatch: pytest.MonkeyPatch, url: str | None, kind: str, storage: Storage
) -> None:
    if url is not None:
        monkeypatch.setenv("FORETELL_STORAGE_UPLOAD_URL", url)
    monkeypatch.setenv("FORETELL_STORAGE_KIND", kind)
    assert Settings().storage is storage


def test_the_storage_token_is_not_shown() -> None:
    settings = Settings(storage_token=SecretStr("a-secret-token"))
    assert settings.storage_bearer == "a-secret-token"
    assert "a-secret-token" not in repr(settings)


def test_the_own_prefix_of_headers_is_always_accepted_and_others_are_set() -> None:
    assert Settings().header_rules.prefixes == ("SERVICE_", "POLY_", "KUEST_")
    assert Settings(header_prefixes="").header_rules.prefixes == ("SERVICE_",)
    rules = Settings(header_prefixes="EXAMPLE_, SERVICE_", l1_domain="Example").header_rules
    assert rules == (("SERVICE_", "EXAMPLE_"), "Example", None, True)


@pytest.mark.parametrize(
    ("fields", "accepts"),
    [
        ({}, True),
        ({"rpc_url": "http://127.0.0.1:1"}, False),
        ({"rpc_url": "http://127.0.0.1:1", "accepts_unbound_l1": True}, True),
        ({"accepts_unbound_l1": False}, False),
    ],
)
def test_a_signature_that_names_no_installation_is_accepted_in_the_sandbox_only(
    fields: dict[str, Any], *, accepts: bool
) -> None:
    assert Settings(**fields).header_rules.accepts_unbound_l1 is accepts


@pytest.mark.parametrize("prefixes", ["EXAMPLE", "example_", "_", "A B_", "1_"])
def test_a_prefix_that_no_header_has_is_refused(prefixes: str) -> None:
    with pytest.raises(ValidationError, match="header_prefixes"):
        Settings(header_prefixes=prefixes)
