"""Commands are called in this process, without any setting but those of a test."""

import shutil
from pathlib import Path

import pytest
from tests.rigs.in_process import (  # noqa: F401 - fixtures
    call,
    defaults_of_the_logs,
    own_environment,
    settings,
)
from tests.rigs.postgres import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql"])
def stored(
    request: pytest.FixtureRequest,
    own_environment: None,  # noqa: F811 - it forgets the database's URL
    empty_database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A data folder whose database has the current schema: a file in it, or one that the environment names."""
    del own_environment
    data = tmp_path / "data"
    data.mkdir()
    if request.param == "sqlite":
        shutil.copy(empty_database, data / "foretell.db")
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        server.empty_database()
        monkeypatch.setenv("FORETELL_DATABASE_URL", server.database_url)
    return data
