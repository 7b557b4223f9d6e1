"""The child process that writes an engine's tables, as its supervisor and the engine's side see it."""

from typing import Final

from foretell.app.framed_child import FramedChild
from foretell.app.tables_process.messages import FromTables

NAME: Final = "tables"
MODULE: Final = "foretell.app.tables_process.process"

TablesChild = FramedChild[FromTables]
